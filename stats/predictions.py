"""What the cost model says of a window that has passed, beside what its batches took.

The workload is the window's own, so that what is left of the error is the costs' and the model's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from optimizer.estimate import Estimator
from optimizer.plan import Plan
from optimizer.workload import UnitCosts, Workload
from stats.calibrate import Measurement, by_operator, work
from stats.costs import Costs
from stats.store import BATCHES, ERRORS, OPERATORS, STREAMS, StatsStore, Window
from stats.workloads import observed


@dataclass(frozen=True)
class Measured:
    """A window in whose batches the same plans ran, and what these took."""

    window: Window
    plans: Mapping[str, Plan]
    """By the names of their queries."""
    loads: Mapping[str, Workload]
    seconds: float
    """Of input that the batches took in."""
    measurement: Measurement
    shares: Mapping[str, float]
    """Of the batches' time, by operator."""


def measure(store: StatsStore, window: Window, plans: Mapping[str, Plan]) -> Measured | None:
    """The work and the CPU time of a window; nothing where there is no telling.

    While states fill, they hold less than the model says that they do.
    """
    batches = next(iter(store.rows(BATCHES, [window])), None)
    seconds = _seconds(store, window)
    longest = max(plan.query.bounds.longest for plan in plans.values())
    began = min((known.start for known in store.windows()), default=window.start)
    filled = window.start >= began + longest
    if not (batches and batches["cpu"] and seconds and filled):
        return None
    each = seconds / batches["batches"]
    loads = {
        name: observed(
            plan.query, store, [window], name=name, batch=each, costs=UnitCosts(), memory=0
        ).workload
        for name, plan in plans.items()
    }
    done = {unit: amount * seconds for unit, amount in work(plans, loads).items()}
    taken = sum(_came(row) for row in store.rows(STREAMS, [window]))
    done |= {"batch": batches["batches"], "take": taken, "result": batches["results"]}
    shares = {row["operator"]: row["ms"] / batches["ms"] for row in store.rows(OPERATORS, [window])}
    measurement = Measurement(done, batches["cpu"], batches["batches"])
    return Measured(window, plans, loads, seconds, measurement, shares)


def _seconds(store: StatsStore, window: Window) -> float:
    """A job that catches up takes in more in the window's batches than the window has."""
    streams = store.rows(STREAMS, [window])
    rows = sum(row["rows"] or 0 for row in streams)
    return window.seconds * sum(row["accepted"] or 0 for row in streams) / rows if rows else 0.0


def _came(row: Mapping[str, Any]) -> int:
    return sum(row[name] or 0 for name in ("accepted", "late", "rejected"))


def tell(store: StatsStore, measured: Measured, costs: Costs) -> None:
    """Keep by how much a window's predictions are wrong, for each plan and each operator.

    Only the job's CPU time is known: a plan gets the part that it should have of it, an operator
    that of the time that its statement took.
    """
    predicted = measured.measurement.predicted(costs) / measured.seconds
    cpu = measured.measurement.cpu / measured.seconds
    plans = {name: _operators(measured, name, costs) for name in measured.plans}
    whole = sum(sum(operators.values()) for operators in plans.values())
    rows = []
    for name, operators in plans.items():
        part = sum(operators.values()) / whole
        rows.append(_row(name, None, predicted * part, cpu * part))
        rows += [
            _row(name, key, cost, cpu * measured.shares[key])
            for key, cost in operators.items()
            if measured.shares.get(key)
        ]
    store.replace(ERRORS, measured.window, rows)


def _operators(measured: Measured, name: str, costs: Costs) -> dict[str, float]:
    plan = measured.plans[name]
    load = replace(measured.loads[name], unit_costs=costs.units)
    return by_operator(plan, Estimator(plan.query, load))


def _row(query: str, operator: str | None, predicted: float, measured: float) -> dict[str, Any]:
    return {
        "query": query,
        "operator": operator,
        "predicted": predicted,
        "measured": measured,
        "error": predicted / measured - 1,
    }
