"""What a deployment keeps and what moves to another one, by hand on a line of three sites."""

from dataclasses import replace

import pytest

from jobs.network.topology import network
from optimizer.network.deployment import Deployed, Key, Kind, Node, Read, at_site
from optimizer.network.load import Demand, Source, WindowLoad, wanted
from optimizer.network.sites import Link, Site
from optimizer.network.states import Fate, renamed, restated, states
from optimizer.network.steps import Start, Stop, steps
from optimizer.network.streams import Predicate

NET = network(
    {name: Site() for name in ("l", "m", "r")}, [Link(("l", "m"), 1.0), Link(("m", "r"), 2.0)]
)
SOURCES = {
    "A": Source(10.0, 100.0, "l"), "B": Source(5.0, 40.0, "r"), "C": Source(2.0, 10.0, "m"),
}  # fmt: skip
LOAD = WindowLoad(SOURCES, 10.0, {frozenset("AB"): 0.01, frozenset("BC"): 0.1})
A, B, C, AB, ABC = (frozenset(name) for name in ("A", "B", "C", "AB", "ABC"))
HALF = Predicate.of("x < 5", 0.5)


def begun(*demands: Demand, site: str = "m") -> Deployed:
    """Queries over A and B, each with its join at one site."""
    found = Deployed().knowing(LOAD)
    for demand in demands:
        found = at_site(found, LOAD, demand, site, [(AB, (A, B))])
    return found


def test_what_is_alive_of_a_joined_stream():
    """100 of A, 50 of B, one pair in a hundred; with a window of 20 s for A twice as many."""
    demand = Demand("q", ("A", "B"), "l")
    assert LOAD.held(wanted(LOAD, demand)) == pytest.approx(50)
    longer = replace(demand, windows={"A": (20.0, 0.0), "B": (10.0, 0.0)})
    assert LOAD.held(wanted(LOAD, longer)) == pytest.approx(100)


def test_everything_at_one_site():
    """1000 bytes of A over 1, 200 of B over 2, 10 tuples of 140 bytes back over 1."""
    found = begun(Demand("q", ("A", "B"), "l"))
    flows = found.shared_flows(LOAD, NET)
    rate = 2 * 10 * 10 * 5 * 0.01
    assert sorted(one.usage for one in flows) == [400.0, 1000.0, rate * 140]


def test_a_join_of_three_is_one_operator():
    found = at_site(
        Deployed().knowing(LOAD), LOAD, Demand("q", ("A", "B", "C"), "l"), "m", [(ABC, (A, B, C))]
    )
    (join,) = found.operators()
    assert [read.source.owner for read in join.reads] == ["A", "B", "C"]


def test_a_query_that_joins_nothing_goes_through_where_its_job_runs():
    found = at_site(Deployed().knowing(LOAD), LOAD, Demand("q", ("A",), "r"), "m", [(A, (A,))])
    assert [(one.start, one.end) for one in found.flows(LOAD, NET)] == [("l", "m"), ("m", "r")]
    assert states(found, found, LOAD, NET) == ()


def test_equal_joins_of_two_queries_are_one_and_streams_read_alike_come_once():
    alike = begun(Demand("q1", ("A", "B"), "l"), Demand("q2", ("A", "B"), "r"))
    assert len(alike.operators()) == 1
    half = Demand("q3", ("A", "B"), "r", {"A": (HALF,)})
    apart = begun(Demand("q1", ("A", "B"), "l"), half)
    assert len(apart.operators()) == 2
    reads = [(one.read.source.owner, one.bytes) for one in apart.shared_flows(LOAD, NET)
             if one.end == "m"]  # fmt: skip
    assert sorted(reads) == [("A", 500.0), ("A", 1000.0), ("B", 200.0)]


def test_states_are_kept_moved_narrowed_or_filled():
    """The join with a filter moves to r: it has half of A from m, where all of A is kept."""
    before = begun(Demand("q1", ("A", "B"), "l"))
    demands = Demand("q1", ("A", "B"), "l"), Demand("q2", ("A", "B"), "r", {"A": (HALF,)})
    after = at_site(begun(demands[0]), LOAD, demands[1], "r", [(AB, (A, B))])
    found = {(min(s.content.streams), s.site): s for s in states(before, after, LOAD, NET)}
    assert {at: (s.fate, s.bytes) for at, s in found.items()} == {
        ("A", "m"): (Fate.KEPT, 10_000.0), ("B", "m"): (Fate.KEPT, 2000.0),
        ("A", "r"): (Fate.MOVED, 5000.0), ("B", "r"): (Fate.MOVED, 2000.0),
    }  # fmt: skip
    assert {s.fate for s in states(after, before, LOAD, NET)} == {Fate.KEPT}
    narrow = begun(demands[1])
    fates = {min(s.content.streams): s.fate for s in states(narrow, before, LOAD, NET)}
    assert fates == {"A": Fate.FILLED, "B": Fate.KEPT}


def test_a_state_comes_from_the_nearest_site():
    one, other = Demand("q1", ("A", "B"), "l"), Demand("q2", ("A", "B"), "l")
    both = at_site(begun(one, site="l"), LOAD, other, "m", [(AB, (A, B))])
    after = begun(other, site="r")
    assert {s.source for s in states(both, after, LOAD, NET)} == {"m"}


def test_what_stays_keeps_its_name():
    demand = Demand("q", ("A", "B"), "l")
    before = begun(demand)
    assert steps(before, renamed(before, begun(demand))) == ()
    moved = renamed(before, begun(demand, site="r"))
    done = steps(before, moved)
    started, stopped = (
        [n for n, step in enumerate(done) if isinstance(step, kind)] for kind in (Start, Stop)
    )
    assert [done[n].node.site for n in (*started, *stopped)] == ["r", "m"]
    assert started < stopped
    assert moved.sinks == before.sinks


def test_new_statistics_do_not_make_another_deployment():
    named = frozenset({("k", 8.0), ("v", 4.0)})
    old = Demand("q", ("A", "B"), "l", {"A": (HALF,)}, columns={"A": named, "B": named})
    wider = frozenset({("k", 8.0), ("v", 40.0)})
    less = Predicate.of("x < 5", 0.1)
    new = replace(old, where={"A": (less,)}, columns={"A": wider, "B": wider})
    found = restated(begun(old), {"q": new})
    assert found.nodes == begun(new).nodes
    assert next(found.flows(LOAD, NET)).bytes == pytest.approx(10 * 0.1 * 48)


def test_a_query_goes_and_what_others_read_of_it_stays():
    """A sink that nobody reads goes, base streams are not asked for."""
    found = begun(Demand("q1", ("A", "B"), "l"), Demand("q2", ("A", "B"), "r"))
    kept = Deployed({k: n for k, n in found.nodes.items() if k.kind is not Kind.BASE},
                    found.demands, found.sinks).without("q1")  # fmt: skip
    assert {key.kind for key in kept.nodes} == {Kind.OPERATOR, Kind.SINK}
    join = next(key for key in kept.nodes if key.kind is Kind.OPERATOR)
    sink = kept.nodes[kept.sinks["q2"]]
    assert sink == Node(sink.key, sink.content, "r", (Read(join, sink.content),))
    assert join == Key(Kind.OPERATOR, "q1", 0)
