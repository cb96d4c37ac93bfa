"""Unit costs from what windows took: work is linear in them, so least squares finds them.

A measurement says how much work of each kind there was, as the cost model counts it, and what CPU
time it took.  Costs are not negative, and errors count by their share.  A job runs few plans, which
leaves much undecided: what the measurements do not say stays in the proportions of the shipped
costs, scaled to the machine, as if these were known to within a factor of two.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from optimizer.cost.dual import keep_cost, price
from optimizer.estimate import Estimator
from optimizer.identity import identity
from optimizer.plan import Emit, GroupBy, Join, Node, Plan
from optimizer.workload import UnitCosts, Workload
from stats.costs import BASE, UNITS, Costs, Fit

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOISE = 0.1
"""The error of a measurement, relative to one of the shipped costs: both by their size."""

DRAWS = 200
"""How often the fit is repeated, to see how sure it is."""

INTERVAL = (5.0, 95.0)

NAMES = (*UNITS, *BASE)


@dataclass(frozen=True)
class Measurement:
    """The work of some batches, by the name of its unit, and the CPU-seconds that it took."""

    work: Mapping[str, float]
    cpu: float
    batches: int = 1

    def predicted(self, costs: Costs) -> float:
        """What it would take at these costs."""
        return sum(self.work[name] * cost for name, cost in costs.values.items())

    def error(self, costs: Costs) -> float:
        """By what share that is wrong, and in which direction."""
        return self.predicted(costs) / self.cpu - 1


def median_error(measured: Sequence[Measurement], costs: Costs) -> float:
    """Half of the predictions are better than that."""
    return float(np.median([abs(one.error(costs)) for one in measured]))


# --- work ----------------------------------------------------------------------------------------


def work(plans: Mapping[str, Plan], loads: Mapping[str, Workload]) -> dict[str, float]:
    """How much work of each kind plans need a second: the cost model, at one cost after another.

    What queries share is done once.
    """
    return {unit: sum(_at(unit, plans, loads).values()) for unit in UNITS}


def _at(
    unit: str, plans: Mapping[str, Plan], loads: Mapping[str, Workload]
) -> dict[tuple[str, str], float]:
    alone = replace(_FREE, **{unit: 1.0})
    found = {}
    for name, plan in plans.items():
        load = replace(loads[name], unit_costs=alone)
        for key, cost in by_operator(plan, Estimator(plan.query, load)).items():
            found["" if key else name, key] = cost
    return found


_FREE = UnitCosts(**dict.fromkeys(vars(UnitCosts()), 0.0))


def by_operator(plan: Plan, estimator: Estimator) -> dict[str, float]:
    """A plan's CPU-seconds a second, by the engine's operators; "" for what makes its results.

    An operator fills the state that it is named after, and keeps it.
    """
    priced = price(plan, estimator)
    found: dict[str, float] = defaultdict(float)

    def visit(node: Node, key: str) -> None:
        cost = priced.costs[node].cpu
        if isinstance(node, GroupBy):
            key = identity(node).key
        elif isinstance(node, Join):
            for part in node.parts:
                kept = keep_cost(priced.estimates[part], estimator).cpu
                found[identity(part).key] += kept
                cost -= kept
        found[key] += cost
        for below in node.inputs:
            visit(below, identity(below).key if isinstance(node, Join) else key)

    assert isinstance(plan.root, Emit)
    visit(plan.root, "")
    return dict(found)


# --- the fit -------------------------------------------------------------------------------------


def fit(measured: Sequence[Measurement], shipped: Costs) -> Fit:
    """The costs that explain measurements best, starting from those that were shipped."""
    amounts = np.array([[one.work[name] for name in NAMES] for one in measured])
    took = np.array([one.cpu for one in measured])
    guess = np.array([shipped.values[name] for name in NAMES])
    guess *= np.median(took / (amounts @ guess))
    shares = amounts * guess / took[:, None]
    best = _solved(shares, np.ones(len(NAMES)))
    random = np.random.default_rng(len(measured))
    draws = [
        _solved(shares[random.integers(len(took), size=len(took))], random.normal(1, 1, len(NAMES)))
        for _ in range(DRAWS)
    ]
    low, high = np.percentile([guess * draw for draw in draws], INTERVAL, axis=0)
    costs = Costs.of(_named(guess * best))
    batches = sum(one.batches for one in measured)
    return Fit(costs, _named(low), _named(high), batches, median_error(measured, costs))


def _solved(shares: "NDArray[np.float64]", prior: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """By what to multiply the guess, so that the shares of each measurement add up to 1."""
    from sklearn.linear_model import LinearRegression

    rows = np.vstack([shares, NOISE * np.eye(len(prior))])
    target = np.concatenate([np.ones(len(shares)), NOISE * prior])
    solved: NDArray[np.float64] = (
        LinearRegression(fit_intercept=False, positive=True).fit(rows, target).coef_
    )
    return solved


def _named(values: "NDArray[np.float64]") -> dict[str, float]:
    return dict(zip(NAMES, map(float, values), strict=True))
