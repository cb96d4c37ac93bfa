"""Workloads from windows: means and spreads by hand, corrections by hand, bad windows left out."""

from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from optimizer.cost.dual import price
from optimizer.estimate import Estimator
from optimizer.identity import states
from optimizer.plan import build, parse
from optimizer.query import Query
from optimizer.workload import Method, UnitCosts, Workload
from stats.store import (
    BATCHES,
    EDGES,
    OPERATORS,
    STREAMS,
    VERDICTS,
    StatsStore,
    Window,
)
from stats.workloads import Observed, observed
from tests.optimizer import builders

MINUTE = 60_000_000
NAMES = "abcd"
EDGE = {"ab": 0.1, "bc": 0.1, "cd": 0.001}


@pytest.fixture
def store(tmp_path: Path) -> StatsStore:
    return StatsStore.of(tmp_path)


def window(number: int) -> Window:
    return Window(number * MINUTE, (number + 1) * MINUTE)


def chain(**settings: Any) -> Query:
    return builders.joined(NAMES, [(edge[0], edge[1]) for edge in EDGE], 10, **settings)


def fill(
    store: StatsStore,
    number: int,
    *,
    rate: float = 10.0,
    operators: Mapping[str, int] | None = None,
    good: bool = True,
    **rows: Sequence[Mapping[str, Any]],
) -> Window:
    """A window in which every stream has that rate and every edge its selectivity."""
    there = window(number)
    streams = [
        {"stream": name, "rows": int(rate * 60), "rate": rate, "width": 40.0,
         "taken": int(rate * 60), "accepted": int(rate * 60), "late": 0, "rejected": 0}
        for name in NAMES
    ]  # fmt: skip
    edges = [{"query": "q", "one": e[0], "other": e[1], "selectivity": s} for e, s in EDGE.items()]
    work = [{"operator": k, "batches": 6, "rows": n} for k, n in (operators or {}).items()]
    tables: dict[str, Sequence[Mapping[str, Any]]] = {
        STREAMS: streams, EDGES: edges, OPERATORS: work, BATCHES: [{"batches": 6}], **rows
    }  # fmt: skip
    verdict = {"good": good, "reasons": [] if good else ["broken"], "checked": 1, "at": 0}
    for table, content in (tables | {VERDICTS: [verdict]}).items():
        store.replace(table, there, content)
    return there


def seen(query: Query, store: StatsStore, name: str = "q") -> Observed:
    return observed(query, store, store.good(), name=name, batch=10, costs=UnitCosts(scan=1e-3))


def key(query: Query, aliases: str, plan: str = "(((a b) c) d)") -> str:
    """The operator of a plan that joins those inputs."""
    return next(
        k for k, n in states(build(query, parse(plan)).root).items() if n.aliases == set(aliases)
    )


# --- what windows say ----------------------------------------------------------------------------


def test_newer_windows_count_for_more(store: StatsStore):
    for number, rate in enumerate((10.0, 20.0, 40.0)):
        fill(store, number, rate=rate)
    found = seen(chain(), store)
    weights, rates = (0.5, sqrt(0.5), 1.0), (10.0, 20.0, 40.0)
    mean = (5 + 20 * sqrt(0.5) + 40) / (1.5 + sqrt(0.5))
    variance = sum(w * (r - mean) ** 2 for w, r in zip(weights, rates, strict=True)) / sum(weights)
    assert found.workload.streams["a"].rate == pytest.approx(mean)
    assert found.spread["rate a"] == pytest.approx(sqrt(variance) / mean)
    assert found.workload.streams["a"].width == 40
    assert (found.spread["width a"], found.spread["join a-b"]) == pytest.approx((0, 0))


def test_a_gap_makes_what_lies_before_it_older(store: StatsStore):
    fill(store, 0, rate=10)
    fill(store, 2, rate=40)
    assert seen(chain(), store).workload.streams["a"].rate == pytest.approx((5 + 40) / 1.5)


def test_what_windows_say_is_the_workload(store: StatsStore):
    query = chain(
        selects=[builders.where("a.v"), builders.where("a.w", "< 3")],
        grouping=builders.counts("a.k", builders.total("t", "b.v")),
    )
    selects: list[dict[str, Any]] = [
        {"query": "q", "alias": "a", "predicate": "a.v > 5", "selectivity": 0.25},
        {"query": "q", "alias": "a", "predicate": "a.w < 3", "selectivity": None},
        {"query": "another", "alias": "a", "predicate": "a.v > 5", "selectivity": 0.9},
    ]
    fill(
        store, 0, selects=selects, groups=[{"query": "q", "groups": 7.0}],
        combined=[{"query": "q", "alias": "b", "rate": 4.0}],
    )  # fmt: skip
    found = seen(query, store)
    load = found.workload
    assert (load.method, load.batch, load.assumed) == (Method.BATCH, 10, False)
    assert load.unit_costs.scan == 1e-3
    assert load.joins == {frozenset(edge): s for edge, s in EDGE.items()}
    assert load.selects == {"a.v > 5": 0.25, "a.w < 3": 1 / 3}
    assert (load.groups, load.combine) == (7, {"b": 4})
    assert found.assumed == ("select a.w < 3", "combine a", "combine c", "combine d")


def test_rows_between_the_same_inputs_count_together(store: StatsStore):
    rows = [{"query": "q", "one": "a", "other": "b", "selectivity": s} for s in (0.5, 0.2)]
    fill(store, 0, edges=rows)
    assert seen(chain(), store).workload.selectivity("a", "b") == pytest.approx(0.1)


def test_a_stream_under_two_names_is_as_fast_under_both(store: StatsStore):
    same = builders.stream("a", "k", "v", "w")
    query = builders.joined("xy", [("x", "y")], streams={"x": same, "y": same})
    fill(store, 0, rate=30)
    rates = {alias: load.rate for alias, load in seen(query, store).workload.streams.items()}
    assert rates == {"x": 30, "y": 30}


def test_nothing_seen_is_said_to_be_assumed(store: StatsStore):
    query = builders.joined("ab", [("a", "b")])
    found = seen(query, store)
    assert found.workload.assumed
    assert found.assumed == ("rate a", "width a", "rate b", "width b", "join a-b")


def test_quarantined_windows_are_not_used(store: StatsStore):
    query = chain()
    fill(store, 0)
    ran = {key(query, "ab"): 12_000}
    fill(store, 1, operators=ran)
    without = seen(query, store)
    fill(store, 2, rate=1e6, operators={k: rows * 9 for k, rows in ran.items()}, good=False)
    assert seen(query, store) == without


# --- corrections ---------------------------------------------------------------------------------

# Windows of 10 s and 10 tuples a second: a-b yields 2 * 10 * 10 * 10 * 0.1 = 200 a second, which is
# 12,000 a minute, and a-b-c 3 * 10 ** 2 * 10 ** 3 * 0.1 ** 2 = 3,000 a second, 180,000 a minute.


def corrected(store: StatsStore, plan: str, **put_out: int) -> Observed:
    query = chain()
    fill(store, 0)
    fill(store, 1, operators={key(query, part, plan): rows for part, rows in put_out.items()})
    return seen(query, store)


def test_joins_that_put_out_what_is_expected_need_no_correction(store: StatsStore):
    found = corrected(store, "(((a b) c) d)", ab=12_000, abc=180_000)
    assert all(factor == pytest.approx(1) for factor in found.corrections.values())


def test_a_join_corrects_the_selectivities_that_it_adds(store: StatsStore):
    found = corrected(store, "(((a b) c) d)", ab=18_000, abc=540_000)
    assert found.corrections == pytest.approx({"join a-b": 1.5, "join b-c": 2.0})
    assert found.workload.selectivity("a", "b") == pytest.approx(0.15)
    assert found.workload.selectivity("b", "c") == pytest.approx(0.2)
    assert found.workload.selectivity("c", "d") == pytest.approx(0.001)


def test_selectivities_first_applied_together_share_the_factor(store: StatsStore):
    found = corrected(store, "((a b c) d)", abc=720_000)
    assert found.corrections == pytest.approx({"join a-b": 2.0, "join b-c": 2.0})


def test_estimates_meet_what_was_put_out(store: StatsStore):
    found = corrected(store, "(((a b) c) d)", ab=3_000, abc=81_000)
    plan = build(chain(), parse("(((a b) c) d)"))
    estimates = Estimator(chain(), found.workload).plan(plan)
    per_minute = {n.aliases: e.rate * 60 for n, e in estimates.items() if len(n.aliases) > 1}
    assert per_minute[frozenset("ab")] == pytest.approx(3_000)
    assert per_minute[frozenset("abc")] == pytest.approx(81_000)


def test_no_selectivity_exceeds_one(store: StatsStore):
    found = corrected(store, "(((a b) c) d)", ab=360_000)
    assert found.corrections == pytest.approx({"join a-b": 10})
    assert found.workload.selectivity("a", "b") == 1


def test_a_few_tuples_correct_nothing(store: StatsStore):
    assert corrected(store, "((a b) (c d))", cd=40).corrections == {
        "join c-d": pytest.approx(1 / 3)
    }
    fill(store, 1, operators={key(chain(), "cd", "((a b) (c d))"): 40}, rate=5)
    assert seen(chain(), store).corrections == {}


def test_selects_that_depend_on_each_other_are_corrected_by_what_they_leave(store: StatsStore):
    query = chain(selects=[builders.where("a.v"), builders.where("a.w", "< 3")])
    selects = [
        {"query": "q", "alias": "a", "predicate": text, "selectivity": 0.4}
        for text in ("a.v > 5", "a.w < 3")
    ]
    fill(store, 0, selects=selects, operators={key(query, "a"): 216})  # of 600, not 96
    assert seen(query, store).workload.selects == pytest.approx({"a.v > 5": 0.6, "a.w < 3": 0.6})


def test_states_that_are_filling_correct_nothing(store: StatsStore):
    query = chain()
    fill(store, 0, operators={key(query, "ab"): 6_000})
    assert seen(query, store).corrections == {}


def test_a_join_that_ran_in_some_batches_only_corrects_nothing(store: StatsStore):
    query = chain()
    fill(store, 0)
    fill(store, 1, operators={key(query, "ab"): 6_000})
    store.replace(
        OPERATORS, window(1), [{"operator": key(query, "ab"), "batches": 3, "rows": 6_000}]
    )
    assert seen(query, store).corrections == {}


def test_a_job_that_catches_up_takes_more_than_a_window_has(store: StatsStore):
    query = chain()
    fill(store, 0)
    there = fill(store, 1, operators={key(query, "ab"): 36_000})
    rows = store.rows(STREAMS, [there])
    store.replace(STREAMS, there, [row | {"accepted": 1_800} for row in rows])
    assert seen(query, store).corrections == pytest.approx({"join a-b": 1.0})


def test_what_a_plan_showed_is_remembered_once_it_has_been_left(store: StatsStore):
    query = chain()
    fill(store, 0)
    fill(store, 1, rate=20, operators={key(query, "ab"): 96_000})
    for number in range(2, 6):
        fill(store, number)
    last = observed(query, store, store.good()[-3:], name="q", batch=10, costs=UnitCosts())
    assert last.workload.streams["a"].rate == pytest.approx(10)
    assert last.corrections == pytest.approx({"join a-b": 2.0})


# --- keys ----------------------------------------------------------------------------------------

KEY = "a.k = b.k = c.k = d.k"


def spread(*heavy: int, rest: int = 0, others: float = 0.0, names: str = NAMES) -> Any:
    """Of 100 tuples of each input so many have this value and that, the same in every input."""
    values = [{"value": str(i), "rows": rows} for i, rows in enumerate(heavy)]
    return [
        {"query": "q", "key": KEY, "alias": name, "rows": 100, "nulls": 100 - sum(heavy) - rest,
         "heavy": values, "rest": rest, "others": others}
        for name in names
    ]  # fmt: skip


def together(query: Query, load: Workload, names: str) -> float:
    """The share of the combinations of those inputs that match, less what pairs say of it."""
    return Estimator(query, load).lift(*(1 << NAMES.index(name) for name in names))


def test_what_a_key_adds_by_hand(store: StatsStore):
    query = chain()
    fill(store, 0, keys=spread(30, 20, rest=40, others=10.0))
    load = seen(query, store).workload
    pair = 0.3**2 + 0.2**2 + 10 * 0.04**2
    for names in ("abc", "abcd"):
        n = len(names)
        same = 0.3**n + 0.2**n + 10 * 0.04**n
        assert together(query, load, names) == pytest.approx(same / pair ** (n - 1))
    assert together(query, load, "abd") == 1


def test_keys_that_are_heavy_in_one_window_need_not_be_in_the_next(store: StatsStore):
    fill(store, 0, keys=spread(80))
    fill(store, 1, keys=spread(0, 40))
    query, weights = chain(), (sqrt(0.5), 1.0)

    def mean(n: int) -> float:
        return (weights[0] * 0.8**n + weights[1] * 0.4**n) / sum(weights)

    found = together(query, seen(query, store).workload, "abc")
    assert found == pytest.approx(mean(3) / mean(2) ** 2)


@pytest.mark.parametrize(
    "rows",
    [
        spread(30, names="abc"),  # an input is missing
        [row | {"rows": 0} for row in spread(30)],
        [row | {"key": "a.k = b.k"} for row in spread(30)],  # the query was another one
        [row | {"query": "another"} for row in spread(30)],
    ],
)
def test_keys_that_say_nothing_of_the_query(store: StatsStore, rows: Any):
    fill(store, 0, keys=rows)
    assert seen(chain(), store).workload.keys == {}


def test_what_keys_explain_is_not_corrected_once_more(store: StatsStore):
    """A window without them, of an earlier version, is taken to be like the others."""
    three = 0.5**3 / 0.25**2
    fill(store, 2, keys=spread(50))
    found = corrected(store, "(((a b) c) d)", ab=12_000, abc=round(180_000 * three))
    assert all(factor == pytest.approx(1) for factor in found.corrections.values())


def test_plans_are_compared_by_it(store: StatsStore):
    """By pairs b, c and d together are few; but all three meet on one value, which a never has."""
    query = chain()
    fill(store, 0)
    assert cheapest(query, seen(query, store).workload) == "(a (b (c d)))"
    often = {"a": (0, 10), "b": (1, 1), "c": (1, 0), "d": (1, 0)}
    rows = spread(0, 0)
    for row in rows:
        row["heavy"] = [{"value": str(i), "rows": n} for i, n in enumerate(often[row["alias"]])]
    fill(store, 0, keys=rows)
    assert cheapest(query, seen(query, store).workload) == "(((a b) c) d)"


def cheapest(query: Query, load: Workload) -> str:
    estimator = Estimator(query, load)
    trees = ("(((a b) c) d)", "((a b) (c d))", "(a (b (c d)))", "(a ((b c) d))")
    costs = {tree: price(build(query, parse(tree)), estimator).total.cpu for tree in trees}
    return min(costs, key=costs.__getitem__)
