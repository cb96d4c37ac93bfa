"""What validated windows say of a query and of its job: the workload of each, and how it fared.

Read without Spark.  Windows that did not pass validation might as well not be there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.planning_task import Task
from jobs.pricing import Ground, Prices, by_windows, recent
from jobs.specs import Job
from jobs.tables.paths import local
from optimizer.migration.matching import States
from optimizer.plan import GroupBy, Node, Plan
from optimizer.workload import Workload
from stats.store import BATCHES, OPERATORS, Snapshot, StatsStore, Window
from stats.workloads import MEMORY


@dataclass(frozen=True)
class Glimpse:
    """A window: the workload of the query, and what the job's batches and states were like."""

    window: Window
    load: Workload
    batches: Mapping[str, Any]
    states: Mapping[str, int]
    """Rows of each state at its end, by key."""


@dataclass(frozen=True)
class Seen:
    """The windows that a decision rests on, the oldest first."""

    glimpses: tuple[Glimpse, ...] = ()
    ground: Ground | None = None
    """By what plans are priced: the last ones together; none without windows."""
    settled: frozenset[str] = frozenset()
    """States that had been there for their full time: they no longer grow by being young."""
    unknown: tuple[str, ...] = ()
    """Figures that price plans and that no window has: the workload assumes them."""

    @property
    def windows(self) -> tuple[Window, ...]:
        """When that was."""
        return tuple(glimpse.window for glimpse in self.glimpses)


def see(job: Job, task: Task, running: Plan, prices: Prices) -> Seen:
    """The last windows of a job; a trend takes one more than a state of things."""
    store = StatsStore.of(local(job.storage))
    good = store.good()
    if not good:
        return Seen()
    least = MEMORY + 1 + job.reoptimize.windows
    store = Snapshot(store.root, since=good[-least:][0].start)
    windows = recent(job, good)

    def look(some: Sequence[Window]) -> Ground:
        return by_windows(job, task, store, some, prices)

    batches = {row["window_start"]: row for row in store.rows(BATCHES, windows)}
    states: dict[int, dict[str, int]] = {window.start: {} for window in windows}
    for row in store.rows(OPERATORS, windows):
        states[row["window_start"]][row["operator"]] = row["state_rows"]
    glimpses = tuple(
        Glimpse(
            window, look([window]).workload, batches.get(window.start, {}), states[window.start]
        )
        for window in windows
    )
    settled = frozenset(_settled(store, good, windows[0], running))
    whole = look(windows)
    return Seen(glimpses, whole, settled, tuple(_unknown(whole)))


def intermediate(plan: Plan) -> dict[str, Node]:
    """The states that hold joined tuples, by key; a group-by's is the same in every plan."""
    states = {key: nodes[0] for key, nodes in States.of(plan).nodes.items()}
    return {
        key: node
        for key, node in states.items()
        if len(node.aliases) > 1 and not isinstance(node, GroupBy)
    }


def _unknown(whole: Ground) -> Iterator[str]:
    """What is assumed and matters: nobody joins or selects a stream without tuples."""
    for figure in whole.assumed:
        kind, _, about = figure.partition(" ")
        silent = any(
            load.rate == 0 and alias in about.replace("-", ".").split(".")
            for alias, load in whole.workload.streams.items()
        )
        if kind in ("rate", "join", "select") and not silent:
            yield figure


def _settled(
    store: StatsStore, good: Sequence[Window], first: Window, running: Plan
) -> Iterator[str]:
    """Intermediate states that were there a whole retention before the first window."""
    lasts = States.of(running).retention
    for key in intermediate(running):
        before = [window for window in good if window.start <= first.start - lasts[key]]
        rows = store.rows(OPERATORS, before[-1:])
        yield from (key for row in rows if row["operator"] == key)
