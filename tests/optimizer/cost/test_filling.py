"""Plans while states fill: by hand, by the volumes of the rate model, and where costs cross."""

from dataclasses import replace

import numpy as np
import pytest

from optimizer.cost.filling import Filling
from optimizer.cost.rate.volumes import volume
from optimizer.estimate import Estimator
from optimizer.plan import build, parse
from optimizer.window import MICROSECONDS, Bounds, close, everywhere, ranges
from optimizer.workload import Method, UnitCosts
from tests.optimizer.search.cases import case


def seconds(n: float) -> int:
    return round(n * MICROSECONDS)


def test_a_join_that_began_five_seconds_ago():
    """Ten tuples a second meet 50 each way, and half match: 500 a second; after 20 s, 2,000."""
    given = case({"A": 10, "B": 10}, {"A-B": 0.5}, 20.0)
    plan = build(given.query, parse("(A B)"))
    costs = given.workload.unit_costs
    keeps = 20 * (costs.insert + costs.delete)
    filling = Filling(given.query, given.workload, 5.0)
    assert filling.full == 15
    assert filling.cpus([plan], 0) == [pytest.approx(keeps + 500 * costs.join)]
    for ahead in (15, 100):
        assert filling.cpus([plan], ahead) == [pytest.approx(keeps + 2_000 * costs.join)]


@pytest.mark.parametrize(
    "bounds",
    [
        everywhere("ABC", seconds(10)),
        close("ABC", ranges("ABC", {"A": seconds(4), "B": seconds(10), "C": seconds(7)})),
    ],
    ids=["one window", "ranges"],
)
def test_the_rates_of_all_ages_add_up_to_the_combinations_so_far(bounds: Bounds):
    """The rate model counts them since the start; here it is the rate at each age, summed."""
    given = case(dict.fromkeys("ABC", 1.0), {"A-B": 1.0, "B-C": 1.0}, bounds)
    plan = build(given.query, parse("((A B) C)"))
    step, made = 0.05, 0.0
    for age in np.arange(step / 2, 20, step):
        young = Estimator(given.query, given.workload, given.query.bounds.within(seconds(age)))
        made += step * young.plan(plan)[plan.root].rate
    seen = dict.fromkeys("ABC", np.array([20.0]))
    assert made == pytest.approx(float(volume(seen, given.query.bounds)[0]), rel=0.001)


def test_bounds_of_the_last_seconds_that_leave_nothing():
    """B comes 5 to 8 s after A: in the first 5 s nothing can match, and that is no error."""
    bounds = close("AB", {("A", "B"): seconds(-5), ("B", "A"): seconds(8)})
    for age, width in ((1, 0), (6, 1), (9, 3)):
        young = bounds.within(seconds(age))
        assert young["A", "B"] + young["B", "A"] == seconds(width)


def crossed(window: float, age: float = 0.0) -> Filling:
    """Statements cost 1 ms a second each, of which an mjoin of three has 3, two joins 4.

    The mjoin makes the matches of C with B anew: 2.5 us * 10 * 10 * 0.1 for each second of window.
    So after 40 s it is no longer the cheaper one.
    """
    rates = dict.fromkeys("ABC", 10.0)
    given = case(rates, {"A-B": 0.01, "B-C": 0.1}, window, method=Method.BATCH)
    free = UnitCosts(**dict.fromkeys(vars(UnitCosts()), 0.0))
    costs = replace(free, statement=0.01, match=2.5e-6)
    return Filling(given.query, replace(given.workload, unit_costs=costs, batch=10.0), age)


@pytest.mark.parametrize(
    ("window", "age", "seconds"),
    [(120, 0, 40), (120, 30, 10), (120, 40, 0), (120, 200, 0), (50, 0, 40), (30, 0, 0)],
)
def test_where_plans_cross(window: float, age: float, seconds: float):
    """Not where windows are shorter than that: then the mjoin stays the better one."""
    filling = crossed(window, age)
    mjoin, pairs = (build(filling.query, parse(text)) for text in ("(B A C)", "((A B) C)"))
    assert filling.better_after(mjoin, pairs) == pytest.approx(seconds, abs=0.05)
    assert filling.better_after(pairs, mjoin) == 0.0
