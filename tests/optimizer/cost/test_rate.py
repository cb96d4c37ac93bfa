"""The equations by hand, the settled figures, and the errors of the print."""

from itertools import permutations, product
from math import inf, sqrt
from random import Random

import numpy as np
import pytest

from optimizer.cost.rate.exact import Exact
from optimizer.cost.rate.judge import Judge, Model, crossings
from optimizer.cost.rate.load import Feed, Filter, Match, UnitCosts
from optimizer.cost.rate.objective import Objective
from optimizer.cost.rate.pulled import pulled
from optimizer.cost.rate.tree import Input, Meet, Servers, order
from optimizer.cost.rate.volumes import volume
from optimizer.estimate import Estimator
from optimizer.window import MICROSECONDS, close, everywhere, ranges
from tests.optimizer.cost.rates import five, load, plan, three
from tests.optimizer.search.cases import case

BOTH = ("((A B) C)", "((A C) B)")
COMPLEX = {
    "left deep": "((((A B) C) D) E)",
    "fast leaves": "((A C) (B (D E)))",
    "evenly spread": "((A C) ((B D) E))",
    "fast leaves, read otherwise": "(((A B) C) (D E))",
}


def made(given, text, seconds, servers=Servers.EACH, model=Model.EXACT):
    judge = Judge(given, Objective(by=seconds), servers, model)
    return judge.value(plan(text, given, servers))


def soonest(given, text, results, servers=Servers.EACH):
    return Judge(given, Objective(first=results), servers).value(plan(text, given, servers))


# --- one server after the other, by hand ---------------------------------------------------------


def test_all_pairs_have_met_where_every_operator_is_fast():
    given = load({"A": 30, "B": 40}, {"A-B": 0.1})
    assert made(given, "(A B)", 10) == pytest.approx(0.1 * 300 * 400)


def test_the_printed_integral_counts_one_in_k_of_the_results_of_k_streams():
    given = load({"A": 3, "B": 4, "C": 5, "D": 2}, {"A-B": 0.1, "B-C": 0.5, "C-D": 0.2})
    for text, k in (("(A B)", 2), ("((A B) C)", 3), ("((A B) (C D))", 4)):
        some = load({n: given.streams[n] for n in "ABCD"[:k]}, {})
        some = type(some)(some.streams, {e: m for e, m in given.joins.items() if e <= set(text)})
        printed = made(some, text, 10, model=Model.PRINTED)
        assert printed == pytest.approx(made(some, text, 10) / k)


def test_a_busy_join():
    """Work of 2 r c each second: only 1 / (2 r c) of the time is seen."""
    given = load({"A": 100, "B": 100}, {"A-B": 0.1}, move=0.01, hash=0.005, probe=0.005)
    seen = 100 * 10 / (2 * 100 * 0.02)
    assert made(given, "(A B)", 10) == pytest.approx(0.1 * seen**2)
    mean = 0.1 * 100 * 100 / (2 * 100 * 0.02)  # equation 2, over t
    assert made(given, "(A B)", 10, model=Model.PRINTED) == pytest.approx(mean * 10**2 / 2)


def test_a_nested_loop_falls_behind_later():
    """V = comp r^2 t^2 grows faster than t once 2 comp r^2 t = 1."""
    given = load({"A": 100, "B": 100}, {"A-B": 0.1}, comp=1e-5, nested=True)
    square, begin = 1e-5 * 100**2, 1 / (2 * 1e-5 * 100**2)
    done = square * begin**2 + 20 - begin
    assert made(given, "(A B)", 20) == pytest.approx(0.1 * 100**2 * done / square, rel=1e-3)
    judge = Judge(given, Objective(by=20.0))
    (late,) = judge.curve(plan("(A B)", given), 20).late
    assert late.operator == "(A B)"
    assert late.since == pytest.approx(begin, rel=0.05)


def test_nested_loop_as_printed():
    given = load({"A": 100, "B": 50}, {"A-B": 0.1}, move=1e-3, comp=1e-5, nested=True)

    def rate(t):
        busy = 100 * (1e-3 + 50 * t * 1e-5) + 50 * (1e-3 + 100 * t * 1e-5)
        return 0.1 * 100 * 50 * t / max(1.0, busy)

    times = np.linspace(0, 30, 30_001)
    by_hand = np.trapezoid([rate(t) for t in times], times)
    found = made(given, "(A B)", 30, model=Model.PRINTED)
    assert found == pytest.approx(by_hand, rel=1e-3)


def test_the_last_result_comes_when_all_work_is_done():
    given = load({"A": Feed(100, 500), "B": Feed(100, 800)}, {"A-B": 0.1}, move=0.02)
    assert soonest(given, "(A B)", 0.1 * 500 * 800) == pytest.approx(1_300 * 0.02, rel=1e-3)
    assert soonest(given, "(A B)", 0.1 * 500 * 800 + 1) is None


def test_one_server_takes_every_arrival_all_the_way_up():
    """5 ms for A and B and, at the top, for C and what A and B make."""
    given = load({"A": 100, "B": 100, "C": 100}, {"A-B": 0.01, "B-C": 0.01}, move=0.005)
    t = 10.0

    def work(u):
        return 0.005 * (300 * u + 0.01 * 100 * 100 * u**2)

    low, high = 0.0, t
    for _ in range(60):
        low, high = (
            (low, (low + high) / 2) if work((low + high) / 2) > t else ((low + high) / 2, high)
        )
    expected = 1e-4 * (100 * low) ** 3
    assert made(given, "((A B) C)", t, Servers.ONE) == pytest.approx(expected, rel=2e-3)


# --- selections ----------------------------------------------------------------------------------

SLOW, FREE = Filter("slow", 0.1, 0.02), Filter("free", 0.1)


@pytest.mark.parametrize(("selects", "rate"), [((SLOW, FREE), 0.5), ((FREE, SLOW), 5.0)])
@pytest.mark.parametrize("model", Model)
def test_figure_1(selects, rate, model):
    given = load({"I": Feed(500, inf, selects)}, {})
    judge = Judge(given, Objective(by=10.0), Servers.EACH, model)
    curve = judge.curve(Input("I", selects), 10.0)
    assert curve.made[-1] == pytest.approx(10 * rate)
    assert [late.operator for late in curve.late] == (["I: slow"] if rate < 1 else [])


def rate_of(selects, arriving):
    for select in selects:
        arriving = select.selectivity * min(arriving, 1 / select.cost if select.cost else inf)
    return arriving


def random_selects(random):
    return [
        Filter(f"s{i}", random.uniform(0.05, 1), 10 ** random.uniform(-4, -1))
        for i in range(random.randint(2, 5))
    ]


def test_by_cost_no_order_gives_more_and_by_rank_some_do():
    random, worse = Random(1), {Servers.EACH: 0, Servers.ONE: 0}
    for _ in range(300):
        selects, arriving = random_selects(random), 10 ** random.uniform(1, 4)
        best = max(rate_of(some, arriving) for some in permutations(selects))
        for kind in worse:
            worse[kind] += rate_of(order(selects, kind), arriving) < best * (1 - 1e-9)
    assert worse[Servers.EACH] == 0
    assert worse[Servers.ONE] > 10


def test_by_rank_no_order_is_less_work():
    random = Random(2)

    def work(selects):
        passing, total = 1.0, 0.0
        for select in selects:
            total, passing = total + passing * select.cost, passing * select.selectivity
        return total

    for _ in range(100):
        selects = random_selects(random)
        least = min(map(work, permutations(selects)))
        assert work(order(selects, Servers.ONE)) == pytest.approx(least)


def test_pulling_an_expensive_select_up_gives_more_or_less():
    """Above a join that lets little through it keeps up; above one that makes more it does not."""
    select = Filter("slow", 0.5, 0.02)
    for share, better in ((2e-5, True), (0.1, False)):
        given = load({"A": Feed(500, inf, (select,)), "B": 500}, {"A-B": share}, move=1e-5)
        below = plan("(A B)", given)
        (above,) = pulled(below, given, Servers.EACH)
        assert isinstance(above, Meet)
        judge = Judge(given, Objective(by=20.0))
        assert (above.selects, above.left.selects) == ((select,), ())
        assert (judge.score(above) > judge.score(below)) == better


def test_an_expensive_predicate_is_left_to_a_select_above():
    joins = {"A-B": 0.01, "A-C": Match(0.5, 0.05), "B-C": 0.001}
    given = load({"A": 20, "B": 20, "C": 20}, joins)
    (above,) = pulled(plan("((A B) C)", given), given, Servers.EACH)
    assert above.selects == (Filter("A-C", 0.5, 0.05),)
    judge = Judge(given, Objective(by=10.0))
    assert judge.score(above) > judge.score(plan("((A B) C)", given))


# --- windows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 4])
def test_one_window(k):
    names = "ABCD"[:k]
    bounds = everywhere(names, 5 * MICROSECONDS)
    for t in (3.0, 5.0, 12.0):
        expected = t**k if t <= 5 else 5**k + k * 5 ** (k - 1) * (t - 5)
        assert volume(dict.fromkeys(names, np.array([t])), bounds)[0] == pytest.approx(expected)


BOUNDS = {
    "ranges": close("ABC", ranges("ABC", {"A": 3_000_000, "B": 5_000_000, "C": 2_000_000})),
    "intervals": close(
        "ABC",
        {
            ("A", "B"): 4_000_000,
            ("B", "A"): -1_000_000,
            ("B", "C"): 2_000_000,
            ("C", "B"): 3_000_000,
        },
    ),
    "pair": close("AB", {("A", "B"): 4_000_000, ("B", "A"): -1_000_000}),
}


@pytest.mark.parametrize("kind", BOUNDS)
def test_volumes_of_streams_seen_unequally(kind):
    bounds, dice = BOUNDS[kind], np.random.default_rng(1)
    names = bounds.names
    far = dict(zip(names, (9.0, 7.0, 12.0), strict=False))
    at = {name: dice.random(400_000) * far[name] for name in names}
    within = np.ones(400_000, dtype=bool)
    for one, other in product(names, names):
        if one != other:
            within &= at[one] - at[other] <= bounds[one, other] / MICROSECONDS
    expected = within.mean() * np.prod(list(far.values()))
    found = volume({name: np.array([far[name]]) for name in names}, bounds)[0]
    assert found == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("kind", BOUNDS)
def test_the_rate_in_the_long_run_is_the_estimate(kind):
    bounds = BOUNDS[kind]
    streams = dict(zip(bounds.names, (20.0, 30.0, 40.0), strict=False))
    joins = {"A-B": 0.1, "B-C": 0.05} if len(streams) == 3 else {"A-B": 0.1}
    given = case(streams, joins, bounds)
    rates = load(streams, joins, bounds)
    text = "((A B) C)" if len(streams) == 3 else "(A B)"
    later, now = (made(rates, text, seconds) for seconds in (1_100.0, 1_000.0))
    memo = given.memo()
    expected = memo.output([memo.leaf(name) for name in bounds.names]).rate
    assert isinstance(given.estimator, Estimator)
    assert (later - now) / 100 == pytest.approx(expected, rel=0.01)


# --- the paper's figures -------------------------------------------------------------------------


def crossing(handling, model=Model.EXACT, seconds=120.0):
    given = three(handling)
    judge = Judge(given, Objective(by=seconds), Servers.EACH, model)
    return crossings([judge.curve(plan(text, given), seconds) for text in BOTH], seconds)


@pytest.mark.parametrize(("handling", "results"), [(0.003, 390), (0.00376, 2_000), (0.004, 3_070)])
def test_a_c_first_overtakes(handling, results):
    (found,) = crossing(handling)
    assert found.results == pytest.approx(results, rel=0.02)


def test_the_crossing_is_at_11_seconds_and_without_costs_there_is_none():
    assert crossing(0.00376)[0].seconds == pytest.approx(11, abs=0.3)
    assert not crossing(0.0016)


def test_as_printed_they_cross_early_or_need_28_ms():
    assert all(one.results < 40 for one in crossing(0.0026, Model.PRINTED))
    (found,) = crossing(0.028, Model.PRINTED)
    assert (found.results, found.seconds) == (
        pytest.approx(2_000, rel=0.02),
        pytest.approx(27, abs=0.5),
    )


def test_complex_plans():
    """Table 6: the first reading of Fast Leaves ties at the end, and is behind early on."""
    given, total = five(0.0016), 5e7
    last = {name: soonest(given, text, total) for name, text in COMPLEX.items()}
    assert last["fast leaves"] == pytest.approx(890, abs=2)
    assert last["evenly spread"] == pytest.approx(890, abs=2)
    assert last["left deep"] > 20 * 890
    early = {name: made(given, text, 50) for name, text in COMPLEX.items()}
    assert early["evenly spread"] == pytest.approx(28_345, rel=1e-3)
    assert early["fast leaves"] == pytest.approx(23_110, rel=1e-3)
    assert soonest(five(0.000023), COMPLEX["left deep"], total) == pytest.approx(1_300, rel=0.02)
    assert soonest(five(0.000023), COMPLEX["evenly spread"], total) == pytest.approx(300, rel=0.01)


# --- edges ---------------------------------------------------------------------------------------


def test_streams_without_tuples():
    for feed in (Feed(0), Feed(10, 0), Feed(0, 5)):
        given = load({"A": feed, "B": 10}, {"A-B": 0.5}, move=0.01)
        assert made(given, "(A B)", 10) == 0
        assert soonest(given, "(A B)", 1) is None


def test_what_cannot_be_an_objective():
    for wrong in (
        {},
        {"by": 0.0},
        {"by": -1.0},
        {"first": 0},
        {"by": 1.0, "first": 2},
        {"by": inf},
    ):
        with pytest.raises(ValueError, match="objective"):
            Objective(**wrong)


def test_only_binary_joins():
    with pytest.raises(ValueError, match="binary"):
        plan("(A B C)", load({"A": 1, "B": 1, "C": 1}, {}))


def test_parts_are_computed_once_for_a_grid():
    given = three(0.003)
    model = Exact(given, np.linspace(0, 10, 50))
    assert model.flow(plan("((A B) C)", given)) is model.flow(plan("((A B) C)", given))
    assert UnitCosts(move=1, hash=2, probe=3).tuple == 6
    assert sqrt(UnitCosts(comp=4, nested=True).pair) == 2
