"""When to change plans while a query's states still fill: now, or before a batch to come.

How long they have been filling is measured: by the rows that the states of streams hold, and the
rate at which they come.
"""

from dataclasses import dataclass
from math import ceil, inf, isfinite
from typing import Any

from jobs.planning_task import Task
from jobs.proposals import Running
from optimizer.cost.filling import Filling
from optimizer.estimate import Estimate, Estimator
from optimizer.migration.cost import spell
from optimizer.migration.matching import States
from optimizer.plan import GroupBy, Plan

FULL = 0.9
"""A state that holds this share of what is estimated counts as full."""


@dataclass(frozen=True)
class Due:
    """From when on the plan to take is the better one."""

    age: float
    """Seconds that the query's states have been filling; infinite once they are full."""
    seconds: float = 0.0
    """Until then."""
    batch: int | None = None
    """Before which to migrate, unless that is the next one."""

    @property
    def figures(self) -> dict[str, Any]:
        """As a decision keeps it."""
        return {
            "state_age_seconds": self.age if isfinite(self.age) else None,
            "better_after_seconds": self.seconds,
            "at_batch": self.batch,
        }

    def told(self, running: Plan, chosen: Plan) -> str:
        """`((f b) c) is better for the next 40 s, ...`; nothing if the change is due."""
        if self.batch is None:
            return ""
        return (
            f"{running} is better for the next {spell(self.seconds)}, while states fill, then "
            f"{chosen}: before batch {self.batch}"
        )


def due(running: Running, task: Task, old: Plan, new: Plan) -> Due:
    """When to change from one plan to the other, batches coming as the job file says."""
    filling = Filling(task.query, task.workload, age(running, task, old))
    seconds = filling.better_after(old, new)
    if not seconds:
        return Due(filling.age)
    next_ = running.batches[0]["batch"] + 1
    return Due(filling.age, seconds, next_ + ceil(seconds / task.workload.batch))


def age(running: Running, task: Task, plan: Plan) -> float:
    """Seconds that the states of the query's streams have been filling, by the oldest of them."""
    estimator = Estimator(task.query, task.workload)
    ages = [
        _filled(running.rows[key], estimator.node(nodes[0]))
        for key, nodes in States.of(plan).nodes.items()
        if key in running.rows and _is_streams(nodes[0])
    ]
    oldest = max(ages, default=inf)
    return oldest if oldest < Filling(task.query, task.workload, 0.0).full else inf


def _is_streams(node: Any) -> bool:
    return len(node.aliases) == 1 and not isinstance(node, GroupBy)


def _filled(rows: float, state: Estimate) -> float:
    """Seconds in which so many rows come, as many as fill the state at most."""
    if rows >= FULL * state.held:
        return state.held / state.rate if state.rate else 0.0
    return rows / state.rate
