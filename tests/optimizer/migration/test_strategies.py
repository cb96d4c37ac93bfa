"""What every strategy promises, the golden case of each, and which one is chosen."""

from contextlib import suppress
from dataclasses import replace

import pytest

from optimizer import query as queries
from optimizer.migration import MIGRATIONS, auto
from optimizer.migration.cost import Figures, Range, effort
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
from optimizer.window import MICROSECONDS
from optimizer.workload import UnitCosts, Workload
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


def test_what_is_only_counted_is_as_many_tuples_again():
    """Nothing of b is added up: its combined rows agree in every column that there is."""
    grouped = joined("ab", [("a", "b")], grouping=counts("a.k", total("t", "a.v")))
    old, new = (build(grouped, parse(tree)) for tree in ("(a [b])", "(a b)"))
    assert told(MIGRATIONS["moving-state"](old, new, Context()), old, new) == [
        "keep a", "keep the group-by", "expand b from [b]", "cut over", "drop [b]",
    ]  # fmt: skip
    held = dict.fromkeys(States.of(old).nodes, 30.0)
    load = workload({"a": 10, "b": 20}, {("a", "b"): 0.1}, combine={"b": 4.0})
    steps = MIGRATIONS["moving-state"](old, new, Context())
    (fill,) = effort(steps, old, new, Figures(load, held)).fills
    assert fill.written == pytest.approx(30 * 20 / 4)


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

EDGES = {("a", "b"): 0.01, ("b", "c"): 0.01, ("c", "d"): 0.01}


def figures(rows: dict[str, float] | None = None, rate: float = 100.0, **settings) -> Figures:
    given = {name: settings.pop(name) for name in ("lateness", "interval") if name in settings}
    return Figures(workload(dict.fromkeys("abcd", rate), EDGES, **settings), rows or {}, **given)


def test_a_short_stop_is_simplest():
    chosen = auto(OLD, NEW, Context(), figures(batch=10.0))
    assert chosen.strategy == "moving-state"
    assert chosen.reason.startswith("the job stops for")
    assert "of a batch: " in chosen.reason
    assert {option.strategy for option in chosen.others} == {"parallel-track", "background"}
    assert chosen.refused == {}


def test_nothing_to_do_is_simplest():
    chosen = auto(OLD, build(CHAIN, parse("(a b c d)")), Context(), figures())
    assert (chosen.strategy, chosen.effort.pause) == ("moving-state", 0.0)
    assert chosen.reason == "every state is there already"


LATE = 100_000 * MICROSECONDS


def test_a_long_stop_is_avoided():
    """1 s to write a row: (b c) alone has 100 * 100 * 0.01 * 10^2 of them."""
    slow = figures(batch=10.0, unit_costs=UnitCosts(write=1.0), lateness=LATE)
    chosen = auto(OLD, NEW, Context(), slow)
    assert (chosen.strategy, chosen.effort.pause) == ("background", 0.0)
    assert chosen.reason.startswith("the cut-over costs nothing")
    assert "moving-state: the job stops for" in chosen.reason
    patient = auto(OLD, NEW, Context(), slow, brief=1e9)
    assert patient.strategy == "moving-state"


def test_a_stop_that_may_be_long_is_avoided():
    """About as brief as may be, but keys are skewed, and it may be ten times that."""
    some = {key: Range(1e4, 1e4) for key in States.of(NEW).nodes}
    skewed = {key: Range(1e4, 1e7) for key in some}
    known = replace(figures(batch=10.0, lateness=LATE), made=some)
    assert auto(OLD, NEW, Context(), known).strategy == "moving-state"
    chosen = auto(OLD, NEW, Context(), replace(known, made=skewed))
    assert chosen.strategy == "background"


def test_falling_rates():
    """What is kept is of busier times: filling it takes much, the little that comes runs twice."""
    held = dict.fromkeys(States.of(OLD).nodes, 300000.0)
    fallen = figures(held, rate=1.0, batch=10.0)
    chosen = auto(OLD, NEW, Context(), fallen)
    assert chosen.strategy == "parallel-track"
    for other in chosen.others:
        assert other.effort.work > 20 * chosen.effort.work
    background = next(other for other in chosen.others if not other.effort.pause)
    assert background.effort.lasts > 5 * chosen.effort.lasts


def test_rising_rates():
    """Nearly nothing is there to be filled."""
    chosen = auto(OLD, NEW, Context(), figures(dict.fromkeys(States.of(OLD).nodes, 10.0), 1000.0))
    assert chosen.strategy == "moving-state"


@pytest.mark.parametrize("seed", range(60))
def test_the_cheapest_that_nobody_notices(seed):
    """Of all that do not refuse: what they do, and what the old plan takes more until then."""
    r = Dice(seed)
    query = some_queries(r)[0]["q0"]
    old, new = some_plan(r, query), some_plan(r, query)
    if old == new:
        return
    load = Workload.assume(query, r.choice((0.1, 10.0, 1000.0)), batch=r.choice((1.0, 10.0)))
    rows = {key: 10.0 ** r.randint(0, 6) for key in States.of(old).nodes}
    given = Figures(load, rows, r.choice((0, LATE)), r.choice((0.0, load.batch)))
    costs = {}
    for strategy, migration in MIGRATIONS.items():
        with suppress(Refused):
            made = effort(migration(old, new, Context()), old, new, given)
            costs[strategy] = (made.pause > 0.1 * load.batch, made.work + made.forgone, made.lasts)
    chosen = auto(old, new, Context(), given)
    assert costs[chosen.strategy] == min(costs.values()), seed
    assert chosen.refused.keys() == MIGRATIONS.keys() - costs.keys(), seed


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
    assert [f"{how}" for how in How] == ["join", "derive", "combine", "expand"]
