"""What every strategy promises, the golden case of each, and which one is chosen."""

import pytest

from optimizer import query as queries
from optimizer.migration import MIGRATIONS, auto
from optimizer.migration.cost import Figures
from optimizer.migration.matching import Context, States
from optimizer.migration.steps import (
    CutOver,
    Drop,
    Fill,
    How,
    Keep,
    Parallel,
    Refused,
    Track,
    from_json,
    to_json,
    with_proof,
)
from optimizer.plan import build, parse
from optimizer.query import Aggregate
from optimizer.workload import UnitCosts
from tests.optimizer.builders import column, counts, joined, total, where, workload
from tests.optimizer.migration.by_hand import above, join, leaf, plan, told
from tests.optimizer.migration.test_brute import some_plan, some_queries
from tests.simulation.dice import Dice

CHAIN = joined("abcd", [("a", "b"), ("b", "c"), ("c", "d")])
OLD, NEW = (build(CHAIN, parse(tree)) for tree in ("(((a b) c) d)", "(a ((b c) d))"))
"""Figure 12.1 of Zhu."""

KEEPS = ["keep b", "keep c", "keep d", "keep a"]
DROPS = ["drop (a b)", "drop ((a b) c)"]

GOLDEN = {
    "moving-state": [
        "join (b c) from b, c",
        "join ((b c) d) from (b c), d",
        "cut over",
    ],
    "parallel-track": [
        "both plans, new in (b c), ((b c) d)",
        "wait",
        "cut over",
    ],
    "background": [
        "track (b c)",
        "join (b c) from b, c",
        "track ((b c) d)",
        "join ((b c) d) from (b c), d",
        "cut over",
    ],
}


@pytest.mark.parametrize("strategy", MIGRATIONS)
def test_golden(strategy):
    steps = told(MIGRATIONS[strategy](OLD, NEW, Context()), OLD, NEW)
    assert sorted(steps[:4]) == sorted(KEEPS)
    assert steps[4:] == GOLDEN[strategy] + DROPS


# --- what every strategy promises ----------------------------------------------------------------


@pytest.mark.parametrize("strategy", MIGRATIONS)
def test_contract(strategy):
    done = 0
    for seed in range(150):
        r = Dice(seed)
        asked, _ = some_queries(r)
        query = asked["q0"]
        old, new = some_plan(r, query), some_plan(r, query)
        try:
            steps = MIGRATIONS[strategy](old, new, Context())
        except Refused:
            continue
        done += 1
        every_state_is_there_at_the_cut_over(steps, old, new, seed)
        nothing_is_read_before_it_is_there(steps, old, seed)
        assert tuple(map(from_json, map(to_json, steps))) == steps
    assert done > 60


def test_parallel_track_never_refuses():
    for seed in range(300):
        r = Dice(seed)
        query = some_queries(r)[0]["q0"]
        old, new = some_plan(r, query), some_plan(r, query)
        assert old == new or MIGRATIONS["parallel-track"](old, new, Context()), seed


def every_state_is_there_at_the_cut_over(steps, old, new, seed):
    before, after = set(States.of(old).nodes), set(States.of(new).nodes)
    assert steps.count(CutOver()) == 1
    at = steps.index(CutOver())
    kept = {s.state for s in steps if isinstance(s, Keep)}
    filled = [s.state for s in steps[:at] if isinstance(s, Fill)]
    empty = {state for s in steps[:at] if isinstance(s, Parallel) for state in s.states}
    assert kept == before & after, seed
    assert sorted([*filled, *empty]) == sorted(after - before), seed
    assert {s.state for s in steps[at + 1 :] if isinstance(s, Drop)} == before - after, seed
    assert all(isinstance(s, Drop) for s in steps[at + 1 :]), seed


def nothing_is_read_before_it_is_there(steps, old, seed):
    there = set(States.of(old).nodes)
    for step in steps:
        if isinstance(step, Fill):
            assert set(step.sources) <= there, seed
            there.add(step.state)
        if isinstance(step, Track):
            assert not set(step.states) & there, seed


@pytest.mark.parametrize("strategy", MIGRATIONS)
def test_no_difference(strategy):
    with pytest.raises(Refused, match="the job runs this plan already"):
        MIGRATIONS[strategy](OLD, OLD, Context())


def test_what_only_parallel_track_can_do():
    """Combined tuples, a column that is gone, a state that is short or a part: all grow young."""
    grouped = joined("ab", [("a", "b")], grouping=counts("a.k", total("t", "b.v")))
    old, new = (build(grouped, parse(tree)) for tree in ("(a [b])", "(a b)"))
    for strategy in ("moving-state", "background"):
        with pytest.raises(Refused, match=r"combined b.*; parallel-track can do it"):
            MIGRATIONS[strategy](old, new, Context())
    steps = MIGRATIONS["parallel-track"](old, new, Context())
    assert told(steps, old, new) == [
        "keep a", "keep the group-by", "both plans, new in b", "wait", "cut over", "drop [b]",
    ]  # fmt: skip
    (missing,) = (s.states for s in steps if isinstance(s, Parallel))
    short = Context({missing[0]: 1}, {missing[0]: "other"}, "mine")
    assert told(MIGRATIONS["parallel-track"](old, new, short), old, new)[:4] == [
        "keep a", "keep b", "keep the group-by", "both plans, new in nothing",
    ]  # fmt: skip


def test_parallel_track_of_what_does_not_merge(monkeypatch):
    monkeypatch.setitem(queries.AGGREGATES, "median", ())
    median = Aggregate("m", "median", column("b.v"))
    query = joined("abc", [("a", "b"), ("b", "c")], grouping=counts("a.k", median))
    old, new = (build(query, parse(tree)) for tree in ("((a b) c)", "(a (b c))"))
    with pytest.raises(Refused, match=r"median\(b.v\) AS m cannot be put together"):
        MIGRATIONS["parallel-track"](old, new, Context())
    assert told(MIGRATIONS["moving-state"](old, new, Context()), old, new)


def test_a_proof():
    steps = with_proof(MIGRATIONS["moving-state"](OLD, NEW, Context()), 2)
    assert told(steps, OLD, NEW)[6:9] == ["track (b c), ((b c) d)", "prove for 2", "cut over"]


# --- auto ----------------------------------------------------------------------------------------

RATES = dict.fromkeys("abcd", 100.0)
EDGES = {("a", "b"): 0.01, ("b", "c"): 0.01, ("c", "d"): 0.01}


def figures(rows: dict[str, float] | None = None, **settings) -> Figures:
    return Figures(workload(RATES, EDGES, **settings), rows or {})


def test_a_short_stop_is_simplest():
    chosen = auto(OLD, NEW, Context(), figures(batch=10.0))
    assert chosen.strategy == "moving-state"
    assert chosen.reason.startswith("the job stops for")
    assert chosen.reason.endswith("of a batch only")
    assert chosen.refused == {}


def test_nothing_to_do_is_simplest():
    chosen = auto(OLD, build(CHAIN, parse("(a b c d)")), Context(), figures())
    assert (chosen.strategy, chosen.effort.pause) == ("moving-state", 0.0)
    assert chosen.reason == "every state is there already"


def test_a_long_stop_is_avoided():
    """1 s to write a row: (b c) alone has 100 * 100 * 0.01 * 10^2 of them."""
    slow = figures(batch=10.0, unit_costs=UnitCosts(write=1.0))
    chosen = auto(OLD, NEW, Context(), slow)
    assert (chosen.strategy, chosen.effort.pause) == ("background", 0.0)
    assert chosen.reason.startswith("the cut-over costs nothing; moving-state would stop the job")
    patient = auto(OLD, NEW, Context(), slow, brief=1e9)
    assert patient.strategy == "moving-state"


def test_side_by_side_where_nothing_else_can():
    query = joined("abcd", [("a", "b"), ("b", "c"), ("c", "d")], selects=[where("a.w")])
    others = [leaf(query, alias) for alias in "bcd"]
    gone = leaf(query, "a", where("a.w"), keep="a.k a.ts a.v")
    old = plan(query, join(query, gone, *others))
    new = plan(query, above(join(query, leaf(query, "a"), *others), where("a.w")))
    chosen = auto(old, new, Context(), figures())
    assert chosen.strategy == "parallel-track"
    assert chosen.reason.startswith("both plans run for 10 s at ")
    assert chosen.reason.count("has dropped a.w") == 1
    assert set(chosen.refused) == {"moving-state", "background"}


def test_nothing_to_choose():
    with pytest.raises(Refused, match="the job runs this plan already"):
        auto(OLD, OLD, Context(), figures())


def test_hows_are_words():
    assert [f"{how}" for how in How] == ["join", "derive", "combine"]
