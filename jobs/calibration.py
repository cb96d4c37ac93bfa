"""What units of work cost a job, from its validated windows and the plans that ran in them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.errors import RefusedError
from jobs.specs import Job
from jobs.tables.history import History
from jobs.tables.job_store import JobStore
from jobs.tables.names import PROGRESS
from jobs.tables.paths import local
from optimizer.plan import Plan, PlanError, from_json
from stats import costs
from stats.calibrate import fit, median_error
from stats.costs import SHIPPED, Costs, Fit
from stats.predictions import Measured, measure, tell
from stats.store import Snapshot, StatsStore, Window

RECENT = 1500
"""How many windows are looked at, the newest: what a day of minutes has, and a bit more."""

LEAST = 3
"""Windows without which nothing is said."""


@dataclass(frozen=True)
class Calibration:
    """A fit, and what was in force before it."""

    executor: str
    before: Costs | None
    """Fitted earlier; otherwise the shipped costs were in force."""
    fit: Fit
    measured: Sequence[Measured]
    windows: int
    """That passed validation, of those looked at."""

    @property
    def error_before(self) -> float:
        """Median relative error of what was predicted for the same windows."""
        known = self.before or SHIPPED[self.executor]
        return median_error([one.measurement for one in self.measured], known)

    def to_json(self) -> dict[str, Any]:
        """As programs read it."""
        known = self.before or SHIPPED[self.executor]
        return {
            "executor": self.executor,
            "before": "fitted" if self.before else "shipped",
            "windows": len(self.measured),
            "windows_good": self.windows,
            "batches": self.fit.batches,
            "error_before": self.error_before,
            "error": self.fit.error,
            "costs": {
                name: {
                    "before": known.values[name],
                    "value": value,
                    "low": self.fit.low[name],
                    "high": self.fit.high[name],
                }
                for name, value in self.fit.costs.values.items()
            },
        }


def calibrate(job: Job, told: Callable[[int, int], None]) -> Calibration:
    """Fit a job's unit costs; `told` hears how many windows have been looked at."""
    store = Snapshot(StatsStore.of(local(job.storage)).root)
    windows = store.good()[-RECENT:]
    ran = _Ran(job)
    measured = []
    for number, window in enumerate(windows):
        told(number, len(windows))
        plans = ran.plans(window)
        if plans and (found := measure(store, window, plans)):
            measured.append(found)
    if len(measured) < LEAST:
        raise RefusedError(_too_few(job, len(windows), len(measured)))
    before = costs.in_force(store, job.engine)
    fitted = fit([one.measurement for one in measured], SHIPPED[job.engine])
    return Calibration(job.engine, before, fitted, measured, len(windows))


def adopt(job: Job, found: Calibration, at: int) -> None:
    """Put a fit in force, and say of each window how wrong predictions were until then."""
    store = StatsStore.of(local(job.storage))
    known = found.before or SHIPPED[found.executor]
    told = {row["window_start"] for row in store.rows("errors", store.windows())}
    for one in found.measured:
        if one.window.start not in told:
            tell(store, one, known)
    costs.keep(store, found.executor, found.fit, at)


def _too_few(job: Job, windows: int, usable: int) -> str:
    if not windows:
        return (
            f"no window of {job.job} has passed validation: `midstream stats collect {job.file}`, "
            f"then `midstream stats validate {job.file}`"
        )
    return (
        f"{usable} of {windows} validated windows tell what work costs, {LEAST} are needed: those "
        "do in which one plan ran, all states were full and the CPU time is known"
    )


class _Ran:
    """Which plans ran when, by a job's progress."""

    def __init__(self, job: Job) -> None:
        self._queries = {name: job.query(name) for name in job.queries}
        self._done = History(JobStore(local(job.storage)), PROGRESS)

    def plans(self, window: Window) -> dict[str, Plan]:
        """Those that ran in all of a window's batches; none if there was a change."""
        first = self._done.first(lambda row: _reached(row) >= window.start) + 1
        last = self._done.first(lambda row: _reached(row) >= window.end)
        rows = self._done.between(first, min(last, self._done.last))
        plans = [row["plans"] for row in rows]
        if not rows or any(map(_migrates, rows)) or any(one != plans[0] for one in plans):
            return {}
        try:
            return {name: from_json(self._queries[name], plan) for name, plan in plans[0].items()}
        except (KeyError, PlanError):  # of queries that the job file no longer has
            return {}


def _migrates(row: Mapping[str, Any]) -> bool:
    """Whether the batch had more to do than its plan says."""
    return bool(row["migration"] or row["events"])


def _reached(row: Mapping[str, Any]) -> int:
    """The watermark of the batch after."""
    return -1 if row["watermark"] is None else int(row["watermark"])
