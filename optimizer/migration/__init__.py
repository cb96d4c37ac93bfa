"""Migrations: each takes a running job from one plan of a query to another without losing a result.

A strategy is one file and one line of `MIGRATIONS`: from both plans and what else the job keeps to
steps, or `Refused` with the reason.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from optimizer.explain import compact, share
from optimizer.migration.background import background
from optimizer.migration.cost import Effort, Figures, effort, spell
from optimizer.migration.matching import Context, check
from optimizer.migration.moving_state import moving_state
from optimizer.migration.parallel_track import parallel_track
from optimizer.migration.steps import Refused, Steps
from optimizer.plan import Plan

Migration = Callable[[Plan, Plan, Context], Steps]

MIGRATIONS: Mapping[str, Migration] = {
    "moving-state": moving_state,
    "parallel-track": parallel_track,
    "background": background,
}

AUTO = "auto"
"""Stands for the strategy that the cost models prefer."""

BRIEF = 0.1
"""The share of a batch for which a job may stop without anybody minding."""


@dataclass(frozen=True)
class Choice:
    """A strategy, what it does and takes, and why it was chosen."""

    strategy: str
    steps: Steps
    effort: Effort
    reason: str
    refused: Mapping[str, str]
    """Why others cannot do it."""


def auto(old: Plan, new: Plan, context: Context, figures: Figures, brief: float = BRIEF) -> Choice:
    """The simplest that nobody notices: a short stop, else in the background, else side by side."""
    check(old, new)
    steps, efforts, refused = {}, {}, {}
    for strategy, migration in MIGRATIONS.items():
        try:
            steps[strategy] = migration(old, new, context)
        except Refused as why:
            refused[strategy] = str(why)
        else:
            efforts[strategy] = effort(steps[strategy], old, new, figures)
    if not steps:
        raise Refused("; ".join(f"{strategy}: {why}" for strategy, why in refused.items()))
    batch = figures.workload.batch
    stop = efforts["moving-state"].pause if "moving-state" in steps else None
    if stop is not None and (stop <= brief * batch or "background" not in steps):
        strategy = "moving-state"
    else:
        strategy = "background" if "background" in steps else "parallel-track"
    reason = _reason(strategy, efforts, refused, batch)
    return Choice(strategy, steps[strategy], efforts[strategy], reason, refused)


def _reason(
    strategy: str, efforts: Mapping[str, Effort], refused: Mapping[str, str], batch: float
) -> str:
    chosen = efforts[strategy]
    if strategy == "parallel-track":
        others = " and ".join(dict.fromkeys(refused.values()))
        return (
            f"both plans run for {spell(chosen.lasts)} at {compact(chosen.beside)} CPU more, "
            f"because states cannot be made from states: {others}"
        )
    moving = efforts["moving-state"]
    if not moving.fills:
        return "every state is there already"
    stop = f"{spell(moving.pause)}, {share(moving.pause, batch)} of a batch"
    if strategy == "moving-state":
        return f"the job stops for {stop} only"
    return f"the cut-over costs nothing; moving-state would stop the job for {stop}"
