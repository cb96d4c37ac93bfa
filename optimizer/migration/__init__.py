"""Migrations: each takes a running job from one plan of a query to another without losing a result.

A strategy is one file and one line of `MIGRATIONS`: from both plans and what else the job keeps to
steps, or `Refused` with the reason.
"""

from collections.abc import Callable, Mapping

from optimizer.migration.background import background
from optimizer.migration.matching import Context
from optimizer.migration.moving_state import moving_state
from optimizer.migration.parallel_track import parallel_track
from optimizer.migration.steps import Steps
from optimizer.plan import Plan

Migration = Callable[[Plan, Plan, Context], Steps]

MIGRATIONS: Mapping[str, Migration] = {
    "moving-state": moving_state,
    "parallel-track": parallel_track,
    "background": background,
}
