"""Unit costs: a plan's work by hand, costs recovered from measurements made with known ones."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from deltalake import DeltaTable

from optimizer.cost.dual import price
from optimizer.estimate import Estimator
from optimizer.identity import states
from optimizer.plan import build, parse
from optimizer.workload import Method, UnitCosts
from stats.calibrate import NAMES, Measurement, by_operator, fit, median_error, work
from stats.costs import SHIPPED, UNITS, Costs, history, in_force, keep, known
from stats.store import StatsStore
from tests.optimizer import builders

LOAD = builders.workload(
    dict.fromkeys("abc", 10.0),
    {("a", "b"): 0.1, ("b", "c"): 0.01},
    method=Method.BATCH,
    batch=5.0,
)
QUERY = builders.joined("abc", [("a", "b"), ("b", "c")], 10)
SHIPPED_HERE = SHIPPED["duckdb"]
TRUE = Costs(
    statement=3e-2, scan=1e-7, probe=6e-8, match=3e-7,
    write=4e-8, write_byte=1.5e-8, batch=1e-1, take=4e-7, result=1e-6,
)  # fmt: skip


def made(costs: Costs, count: int, noise: float, seed: int = 1) -> list[Measurement]:
    """Work of all sizes, and what it takes, each time a little more or less."""
    random = np.random.default_rng(seed)
    most = {
        "statement": 20, "scan": 3e6, "probe": 3e6, "match": 1e6, "write": 3e6,
        "write_byte": 3e7, "batch": 1, "take": 1e6, "result": 3e5,
    }  # fmt: skip
    found = []
    for _ in range(count):
        amounts = {name: size * random.uniform() ** 2 for name, size in most.items()}
        seconds = Measurement(amounts, 1.0).predicted(costs)
        found.append(Measurement(amounts, seconds * random.normal(1, noise)))
    return found


# --- the work of a plan --------------------------------------------------------------------------


def test_the_work_of_a_plan_by_hand():
    """Windows of 10 s hold 100 tuples of each stream; a-b yields 200 a second and holds 1,000."""
    found = work({"q": build(QUERY, parse("((a b) c)"))}, {"q": LOAD})
    assert found["statement"] * 5 == pytest.approx(4)  # a, b, a-b and c, each batch
    assert found["scan"] * 5 == pytest.approx(100 + 100 + 1000 + 100)
    assert found["probe"] == pytest.approx(10 + 10 + 200 + 10)
    assert found["match"] == pytest.approx(200 + 200 * 100 * 0.01 + 10 * 1000 * 0.01)
    assert found["write"] == pytest.approx(10 + 10 + 200 + 10)


def test_work_is_linear_in_the_costs():
    plan = build(QUERY, parse("(a b c)"))
    amounts = work({"q": plan}, {"q": LOAD})
    total = price(plan, Estimator(QUERY, LOAD)).total.cpu
    costs = LOAD.unit_costs
    assert sum(getattr(costs, name) * amounts[name] for name in UNITS) == pytest.approx(total)


def test_operators_are_the_engine_s_and_add_up_to_the_plan():
    grouped = builders.joined("abc", [("a", "b"), ("b", "c")], grouping=builders.counts("a.k"))
    for query, more in ((QUERY, {""}), (grouped, set[str]())):
        plan = build(query, parse("((a b) c)"))
        estimator = Estimator(query, LOAD)
        found = by_operator(plan, estimator)
        assert found.keys() - {""} == states(plan.root).keys()
        assert sum(found.values()) == pytest.approx(price(plan, estimator).total.cpu)
        assert {key for key, cost in found.items() if not key and cost} == more


def test_what_queries_share_is_done_once():
    plan = build(QUERY, parse("((a b) c)"))
    one = work({"q": plan}, {"q": LOAD})
    two = work({"q": plan, "r": plan}, {"q": LOAD, "r": LOAD})
    assert two["statement"] == pytest.approx(one["statement"])
    assert two["match"] - one["match"] == pytest.approx(300)  # the results are made for each


# --- the fit -------------------------------------------------------------------------------------


def test_known_costs_are_recovered():
    found = fit(made(TRUE, 300, noise=0.05), SHIPPED_HERE)
    inside = [found.low[n] <= cost <= found.high[n] for n, cost in TRUE.values.items()]
    assert sum(inside) >= 8  # of 9, each with a chance of 9 in 10
    for name in ("statement", "match", "write_byte", "batch", "take", "result"):
        assert found.costs.values[name] == pytest.approx(TRUE.values[name], rel=0.25), name
    assert found.error < 0.05
    assert found.batches == 300


def test_more_measurements_are_surer():
    def widths(count: int) -> Sequence[float]:
        found = fit(made(TRUE, count, noise=0.1), SHIPPED_HERE)
        return [(found.high[name] - found.low[name]) / TRUE.values[name] for name in NAMES]

    assert np.median(widths(400)) < np.median(widths(20)) / 2


def test_a_slower_machine_keeps_the_proportions_of_what_nothing_tells():
    slow = Costs.of({name: 3 * cost for name, cost in SHIPPED_HERE.values.items()})
    one_plan = made(slow, 1, noise=0)
    found = fit(one_plan * 20, SHIPPED_HERE)
    assert found.costs.values == pytest.approx(slow.values, rel=1e-3)
    assert found.low["scan"] < slow.scan / 2 < 2 * slow.scan < found.high["scan"] * 1.5


def test_held_out_work_is_predicted():
    measured = made(TRUE, 90, noise=0.1)
    found = fit(measured[::3], SHIPPED_HERE)
    others = [one for at, one in enumerate(measured) if at % 3]
    assert median_error(others, found.costs) < 0.15 < median_error(others, SHIPPED_HERE)


# --- the table -----------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> StatsStore:
    return StatsStore.of(tmp_path)


def test_a_new_job_has_the_shipped_costs(store: StatsStore):
    assert in_force(store, "duckdb") is None
    assert known(store, "duckdb") == SHIPPED_HERE
    assert history(store) == []


def test_a_fit_is_in_force_until_the_next_of_its_executor(store: StatsStore):
    first, second = (fit(made(TRUE, count, noise=0.1), SHIPPED_HERE) for count in (20, 40))
    keep(store, "duckdb", first, at=1_000_000)
    keep(store, "spark", first, at=2_000_000)
    keep(store, "duckdb", second, at=3_000_000)
    assert known(store, "duckdb") == second.costs
    assert known(store, "spark") == first.costs
    scans = [
        (r["executor"], r["value"], r["valid_from"], r["valid_until"], r["batches"])
        for r in history(store)
        if r["name"] == "scan"
    ]
    assert scans == [
        ("duckdb", first.costs.scan, 1_000_000, 3_000_000, 20),
        ("spark", first.costs.scan, 2_000_000, None, 20),
        ("duckdb", second.costs.scan, 3_000_000, None, 40),
    ]
    assert DeltaTable(store.path("costs")).version() == 2


def test_fitted_costs_price_plans():
    assert TRUE.units.scan == TRUE.scan
    assert TRUE.units.join == UnitCosts().join
