"""The paper's examples: figure 3 and section 2.1, V_local of section 3.3, both costs of 3.4."""

from math import inf

import numpy as np
import pytest

from jobs.network.topology import builder, network
from optimizer.network.deployment import Deployed
from optimizer.network.hierarchy import Levels
from optimizer.network.load import Demand, Question, Source, WindowLoad
from optimizer.network.offers import Leaf, joins
from optimizer.network.placement import NETWORK_PLACEMENTS
from optimizer.network.planning import Planned, place, planned
from optimizer.network.sites import Link, Network, Site
from optimizer.network.streams import Predicate
from optimizer.network.task import Task

# --- figure 3: FLIGHTS, WEATHER, CHECK-INS; N1 to N5 take operators, sources and sinks do not -----


def airport(to_sink_3: float = 1.0, overloaded: tuple[str, ...] = ()) -> Network:
    ends = ("FL", "WR", "CI", "Sink3", "Sink4")
    sites = {name: Site(capacity=0) for name in (*ends, *overloaded)}
    sites = {f"N{i}": Site() for i in range(1, 6)} | sites
    near = [
        ("FL", "N1"), ("FL", "N2"), ("CI", "N1"), ("WR", "N2"), ("N1", "N3"), ("N2", "N3"),
        ("CI", "N3"), ("N3", "N4"),
    ]  # fmt: skip
    links = [Link(two, 1.0) for two in near]
    links += [Link(("N4", "Sink4"), 0.0), Link(("N3", "N5"), to_sink_3)]
    return network(sites, [*links, Link(("N5", "Sink3"), 0.0)])


def observed(flights_check_ins: float = 0.013) -> WindowLoad:
    sources = {"FL": Source(10, 100, "FL"), "WR": Source(6, 100, "WR"), "CI": Source(10, 100, "CI")}
    shares = {frozenset(("FL", "WR")): 0.02, frozenset(("FL", "CI")): flights_check_ins}
    return WindowLoad(sources, 1.0, shares)


Q1 = Demand("Q1", ("FL", "WR", "CI"), "Sink4")
Q2 = Demand("Q2", ("FL", "CI"), "Sink3")


def deploy(strategy: str, net: Network, load: WindowLoad, *demands: Demand, max_cs: int = 16):
    deployed = Deployed().knowing(load)
    found: list[Planned] = []
    for demand in demands:
        levels = Levels(builder(net, max_cs, 0).build(), net)
        task = Task(Question(load, demand), deployed, levels, lambda: net.distances)
        found.append(planned(strategy, task, place(strategy, task)))
        deployed = found[-1].after
    return found


def joined(done: Planned) -> list[tuple[str, str]]:
    """Each operator's streams and its site."""
    names = done.task.network.names
    members = done.task.question.members
    return [(" ".join(sorted(members(j.mask))), names[j.site]) for j in joins(done.tree)]


def test_the_smaller_result_first():
    (done,) = deploy("exhaustive", airport(), observed(), Q1)
    assert joined(done) == [("FL WR", "N2"), ("CI FL WR", "N3")]
    assert done.usage == pytest.approx(1000 + 600 + 480 + 1000 + 140.4)


def test_an_overloaded_site_changes_the_order_of_joining():
    (done,) = deploy("exhaustive", airport(overloaded=("N2",)), observed(), Q1)
    assert joined(done) == [("CI FL", "N1"), ("CI FL WR", "N3")]


def test_an_operator_that_runs_changes_the_order_too():
    net = airport()
    second, first = deploy("exhaustive", net, observed(), Q2, Q1)
    assert joined(second) == [("CI FL", "N1")]
    assert joined(first) == [("CI FL WR", "N3")]
    assert [r.node.key.owner for r in first.reused] == ["Q2"]
    assert first.usage == pytest.approx(520 + 1200 + 140.4)


@pytest.mark.parametrize(("to_sink_3", "reuses"), [(0.1, True), (10.0, False)])
def test_q1_follows_q2_only_while_their_sinks_are_near(to_sink_3: float, reuses: bool):
    """Here the join's result is larger than what it reads, so it stands by its own sink."""
    second, first = deploy("exhaustive", airport(to_sink_3), observed(0.06), Q2, Q1)
    assert joined(second) == [("CI FL", "N5")]
    assert bool(first.reused) is reuses


# --- relaxing filters -----------------------------------------------------------------------------


def test_a_stronger_filter_is_relaxed_where_that_is_cheaper_than_a_new_operator():
    """A line: A and B at the left, the sinks at the right.

    Wider, A costs 90 more and the result 189; a new operator costs 100 and 210.
    """
    net = network({n: Site() for n in "lmr"}, [Link(("l", "m"), 1), Link(("m", "r"), 1)])
    load = WindowLoad(
        {"A": Source(10, 10, "l"), "B": Source(1, 200, "m")}, 1.0, {frozenset("AB"): 0.05}
    )
    strong = Demand("strong", ("A", "B"), "r", {"A": (Predicate.of("x = 1", 0.1),)})
    weak = Demand("weak", ("A", "B"), "r")
    first, second = deploy("exhaustive", net, load, strong, weak)
    assert joined(first) == [("A B", "m")]
    assert first.usage == pytest.approx(10 + 0.1 * 210)
    assert [r.relaxed for r in second.reused] == [True]
    assert second.usage == pytest.approx(90 + 0.9 * 210)
    assert joined(second) == []
    told = [(stream, site, p.text) for stream, site, p in second.after.filters()]
    assert told == [("A", "r", "x = 1")]
    assert len(second.after.operators()) == 1


def test_a_weaker_filter_is_read_as_it_is_and_filtered_there():
    net = network({n: Site() for n in "lmr"}, [Link(("l", "m"), 1), Link(("m", "r"), 1)])
    load = WindowLoad(
        {"A": Source(10, 10, "l"), "B": Source(1, 200, "m")}, 1.0, {frozenset("AB"): 0.05}
    )
    weak = Demand("weak", ("A", "B"), "r", {"A": (Predicate.of("x < 5", 0.5),)})
    strong = Demand("strong", ("A", "B"), "l", {"A": (Predicate.of("x = 1", 0.1),)})
    _, second = deploy("exhaustive", net, load, weak, strong)
    assert [r.relaxed for r in second.reused] == [False]
    assert second.usage == pytest.approx(0.1 * 210)


# --- section 3.3 ----------------------------------------------------------------------------------


def two_clusters() -> Network:
    near = [("a1", "a2"), ("a1", "a3"), ("b1", "b2"), ("b1", "b3")]
    links = [Link(two, 1.0) for two in near]
    return network({f"{c}{i}": Site() for c in "ab" for i in (1, 2, 3)},
                   [*links, Link(("a1", "b1"), 50.0)])  # fmt: skip


def test_local_streams_are_joined_in_the_cluster_of_the_sink():
    """V_local is FLIGHTS with CHECK-INS, V_remote is WEATHER."""
    sources = {
        "FL": Source(10, 100, "a2"), "CI": Source(10, 100, "a3"), "WR": Source(1, 100, "b2"),
    }  # fmt: skip
    shares = {frozenset(("FL", "CI")): 0.001, frozenset(("FL", "WR")): 0.1}
    load = WindowLoad(sources, 1.0, shares)
    (done,) = deploy("bottom-up", two_clusters(), load, Demand("Q1", ("FL", "WR", "CI"), "a1"),
                     max_cs=3)  # fmt: skip
    order = joined(done)
    assert order[0][0] == "CI FL"
    assert order[0][1] in {"a1", "a2", "a3"}
    assert done.effort.steps[1]["local"] == [["FL", "CI"]]


def test_a_high_volume_remote_stream_is_not_joined_where_it_is():
    """The optimum joins S_r with S_1 in the remote cluster; bottom-up does not consider it."""
    sources = {
        "S1": Source(1, 100, "a2"), "S2": Source(1, 100, "a3"), "Sr": Source(100, 100, "b2"),
    }  # fmt: skip
    shares = {frozenset(("S1", "S2")): 1.0, frozenset(("S1", "Sr")): 0.001}
    load = WindowLoad(sources, 1.0, shares)
    demand = Demand("q", ("S1", "S2", "Sr"), "a1")
    (exact,) = deploy("exhaustive", two_clusters(), load, demand, max_cs=3)
    (upward,) = deploy("bottom-up", two_clusters(), load, demand, max_cs=3)
    assert joined(exact)[0][0] == "S1 Sr"
    assert joined(upward)[0][0] == "S1 S2"
    assert upward.over_optimum > 0.2


def test_nothing_is_joined_to_a_cartesian_product_on_the_way():
    sources = {
        "S1": Source(1, 100, "a2"), "S2": Source(1, 100, "a3"), "Sr": Source(9, 100, "b2"),
    }  # fmt: skip
    shares = {frozenset(("S1", "Sr")): 0.1, frozenset(("S2", "Sr")): 0.1}
    load = WindowLoad(sources, 1.0, shares)
    (done,) = deploy("bottom-up", two_clusters(), load, Demand("q", ("S1", "S2", "Sr"), "a1"),
                     max_cs=3)  # fmt: skip
    assert done.effort.steps[0]["local"] == []


# --- section 3.4 ----------------------------------------------------------------------------------


def test_net_present_cost_by_hand():
    """One level above; all other sites are seen there, so p is 1 and the sum is d_2 = 50."""
    sources = {
        "FL": Source(10, 100, "a2"), "CI": Source(10, 100, "a3"), "WR": Source(1, 100, "b2"),
    }  # fmt: skip
    shares = {frozenset(("FL", "CI")): 0.001, frozenset(("FL", "WR")): 0.1}
    load = WindowLoad(sources, 1.0, shares)
    (done,) = deploy("npc", two_clusters(), load, Demand("Q1", ("FL", "WR", "CI"), "a1"),
                     max_cs=3)  # fmt: skip
    step = done.effort.steps[0]
    local = 1000 + 1000  # both to a1, where the result is advertised
    result = 3 * (10 * 10 * 1) * 0.001 * 0.1 * 300
    assert step["gamma"] == pytest.approx(local + 100 * 50)
    assert step["omega"] == pytest.approx(result * 50)
    assert step["split"] is False


def test_chances_of_the_levels_sum_to_one():
    net = network({f"n{i}": Site() for i in range(30)},
                  [Link((f"n{i}", f"n{i + 1}"), 1.0) for i in range(29)])  # fmt: skip
    levels = Levels(builder(net, 3, 0).build(), net)
    seen = [int((at == at[0]).sum()) for at in levels.stands_for[1:]]
    assert levels.height > 2
    assert np.diff(seen).sum() / (seen[-1] - seen[0]) == pytest.approx(1.0)


# --- every strategy -------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", NETWORK_PLACEMENTS)
def test_a_full_site_is_planned_around(strategy: str):
    (done,) = deploy(strategy, airport(overloaded=("N2", "N1")), observed(), Q1, max_cs=4)
    assert {site for _, site in joined(done)} <= {"N3", "N4", "N5"}


@pytest.mark.parametrize("strategy", NETWORK_PLACEMENTS)
def test_the_same_query_twice_is_read_from_the_first(strategy: str):
    again = Demand("again", Q1.streams, Q1.sink)
    _, second = deploy(strategy, airport(), observed(), Q1, again, max_cs=4)
    assert second.usage == 0
    assert isinstance(second.tree, Leaf)


def test_landmarks_are_near_the_optimum():
    (done,) = deploy("landmarks", airport(), observed(), Q1)
    (exact,) = deploy("exhaustive", airport(), observed(), Q1)
    assert done.usage <= 1.02 * exact.usage < inf
