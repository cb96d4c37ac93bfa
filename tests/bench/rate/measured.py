"""A query that no plan keeps up with, on the engine, while selectivities are reversed.

Two jobs stay with a plan each, whose rates cross there; one decides by results, one by its cost.
All have the same small share of a core: a batch is done when the CPU that it took, as measured, is
used up at that pace, and from then on the sink's rows count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jobs import specs
from optimizer.plan import Plan
from tests.bench.chain import Chain
from tests.bench.drift.engine import PARTNERS, Trip, ideal, job_file, run
from tests.bench.migration.run import scratch

CORE = 0.008
"""The share of a core that a job has: less than the best plan needs."""

OBJECTIVE = "rate by 1 minute"

LOOKS = 6
"""Times at which results are compared."""

DECIDING = ("cost", "results")
"""The jobs that decide, by what they decide."""


@dataclass(frozen=True)
class Curve:
    """When each batch was done, and what the sink held then."""

    seconds: Sequence[float]
    results: Sequence[int]

    @classmethod
    def of(cls, trip: Trip, length: float, core: float) -> "Curve":
        """Batches arrive one after the other, and wait until the one before is done."""
        seconds, free = [0.0], 0.0
        for number, cpu in enumerate(trip.cpu):
            free = max(free, (number + 1) * length) + cpu / core
            seconds.append(free)
        return cls(seconds, [0, *trip.sink])

    def at(self, seconds: float) -> int:
        """What the sink held at a time."""
        return self.results[int(np.searchsorted(self.seconds, seconds, side="right")) - 1]

    def rate(self, first: int, last: int) -> float:
        """Results per second from the end of one batch to that of another."""
        made = self.results[last] - self.results[first]
        return made / (self.seconds[last] - self.seconds[first])


def measured(chain: Chain, batches: int, core: float = CORE) -> dict[str, Any]:
    """All four over the same rows; selectivities are reversed before a third of the batches."""
    at = batches // 3
    orders = chain.values(PARTNERS), chain.values(PARTNERS[::-1])
    first, second = (ideal(chain, values) for values in orders)
    with scratch() as directory:
        chain.write(directory / "data", [orders[batch >= at] for batch in range(batches)])
        course = _Course(chain, directory, batches, core)
        trips = {
            "first": course.job("first", first),
            "second": course.job("second", second),
            "cost": course.job("cost", first, "cost"),
            "results": course.job("results", first, OBJECTIVE),
        }
    curves = {name: Curve.of(trip, chain.batch, core) for name, trip in trips.items()}
    return {
        "core": core,
        "objective": OBJECTIVE,
        "batches": batches,
        "changed_before": at,
        "jobs": {name: _told(trips[name], curves[name], chain.filling, at) for name in trips},
        "results_by": _compared(curves),
        "same_results": len({trip.results for trip in trips.values()}) == 1,
        "decided": {name: trips[name].decided for name in DECIDING},
    }


@dataclass(frozen=True)
class _Course:
    """What all jobs have alike."""

    chain: Chain
    directory: Path
    batches: int
    core: float

    def job(self, name: str, plan: Plan, objective: str | None = None) -> Trip:
        """A job that begins with a plan, and stays with it unless it decides for something."""
        wanted = {"cooldown": "2 minutes", "objective": objective or "cost"}
        changes = {"budget": {"cpu": self.core}, "reoptimize": wanted}
        job = specs.load(job_file(self.chain, self.directory, name, plan, **changes))
        return run(self.chain, job, self.batches, decides=objective is not None, asks={})


def _told(trip: Trip, curve: Curve, filled: int, at: int) -> dict[str, Any]:
    """A job's rates before the change and in the end, its windows being full."""
    last = len(trip.cpu)
    return {
        "plan": trip.plan,
        "cut_overs": trip.cut_overs,
        "rate_before": curve.rate(filled, at),
        "rate_after": curve.rate(min(at + 2 * filled, last - 1), last),
        "seconds": curve.seconds[-1],
        "results": curve.results[-1],
        "curve": [list(point) for point in zip(curve.seconds, curve.results, strict=True)],
    }


def _compared(curves: Mapping[str, Curve]) -> list[dict[str, Any]]:
    """What each job's sink held at even distances, until the first one is done."""
    end = min(curve.seconds[-1] for curve in curves.values())
    times = [end * (number + 1) / LOOKS for number in range(LOOKS)]
    return [
        {"seconds": seconds, "results": {name: curve.at(seconds) for name, curve in curves.items()}}
        for seconds in times
    ]
