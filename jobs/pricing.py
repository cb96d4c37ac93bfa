"""What the plans of a running job are priced under: one workload, whoever asks.

It rests on the last validated windows of statistics, corrected by what joins put out, and on the
unit costs in force.  Where there are no such windows there are the job's own tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jobs.engine.observed import observed as by_tables
from jobs.planning_task import Task
from jobs.specs import MICROSECOND, Job
from jobs.status import moment
from jobs.tables.job_store import JobStore
from jobs.tables.paths import local
from optimizer.plan import Plan
from optimizer.workload import UnitCosts, Workload
from stats.costs import SHIPPED, in_force
from stats.store import StatsStore, Window
from stats.workloads import observed


@dataclass(frozen=True)
class Prices:
    """What units of work cost a job."""

    executor: str
    units: UnitCosts
    fitted: bool
    """To what its own batches took; otherwise they are those shipped for its executor."""

    @classmethod
    def of(cls, job: Job) -> "Prices":
        """Those in force."""
        fitted = in_force(StatsStore.of(local(job.storage)), job.engine)
        units = (fitted or SHIPPED[job.engine]).units
        return cls(job.engine, units, fitted is not None)


@dataclass(frozen=True)
class Ground:
    """A workload, and what it rests on."""

    workload: Workload
    prices: Prices
    windows: tuple[Window, ...] = ()
    """Of statistics; without any, the job's own tables say what they can."""
    assumed: tuple[str, ...] = ()
    """Figures that no window has."""

    @property
    def source(self) -> str:
        """What says so."""
        return "statistics" if self.windows else "tables"

    def __str__(self) -> str:
        fitted = "fitted" if self.prices.fitted else "shipped"
        return (
            f"{self._where}; method {self.workload.method}, batches of {self.workload.batch:g} s, "
            f"{fitted} unit costs for {self.prices.executor}"
        )

    @property
    def _where(self) -> str:
        if not self.windows:
            return "the job's own tables, for there are no good windows of statistics"
        first, last = moment(self.windows[0].start), moment(self.windows[-1].end)
        count = len(self.windows)
        return f"{count} window{'s' if count > 1 else ''} of statistics, {first} to {last}"

    def to_json(self) -> dict[str, Any]:
        """As programs read it."""
        return {
            "source": self.source,
            "windows": [[moment(one.start), moment(one.end)] for one in self.windows],
            "assumed": list(self.assumed),
            "method": str(self.workload.method),
            "batch": self.workload.batch,
            "executor": self.prices.executor,
            "fitted": self.prices.fitted,
        }


def recent(job: Job, good: Sequence[Window]) -> list[Window]:
    """The last windows that a decision looks at, one more than those that price plans.

    Some may be missing between them, or not be good, but not as many as there are.
    """
    count = job.reoptimize.windows
    since = good[-1].end - 2 * count * (job.statistics.window // MICROSECOND) if good else 0
    return [window for window in good if window.start >= since][-count - 1 :]


def ground(
    job: Job, task: Task, plan: Plan, store: JobStore, batches: Sequence[Mapping[str, Any]]
) -> Ground:
    """By what plans of a query are priced now; `plan` runs, and `batches` are its newest."""
    stats, prices = StatsStore.of(local(job.storage)), Prices.of(job)
    if windows := recent(job, stats.good()):
        return by_windows(job, task, stats, windows, prices)
    found = by_tables(plan, store, batches, job.trigger.total_seconds())
    return Ground(replace(found, unit_costs=prices.units), prices)


def by_windows(
    job: Job, task: Task, stats: StatsStore, windows: Sequence[Window], prices: Prices
) -> Ground:
    """The same by the last of those windows."""
    some, batch = windows[-job.reoptimize.windows :], job.trigger.total_seconds()
    seen = observed(task.query, stats, some, name=task.name, batch=batch, costs=prices.units)
    return Ground(seen.workload, prices, seen.windows, seen.assumed)
