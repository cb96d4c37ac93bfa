"""Migrations: each takes a running job from one plan of a query to another without losing a result.

A strategy is one file and one line of `MIGRATIONS`: from both plans and what else the job keeps to
steps, or `Refused` with the reason.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from optimizer.explain import compact, share
from optimizer.migration.background import background
from optimizer.migration.cost import Effort, Figures, effort, spell
from optimizer.migration.matching import Context, check
from optimizer.migration.moving_state import moving_state
from optimizer.migration.parallel_track import parallel_track
from optimizer.migration.steps import Parallel, Refused, Steps
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
class Option:
    """A strategy, what it does, and what it says of itself: stops, length, work."""

    strategy: str
    steps: Steps
    effort: Effort

    def told(self, batch: float) -> str:
        """How the job fares meanwhile."""
        stop = ""
        if self.effort.pause:
            stop = f"{spell(self.effort.pause)}, {share(self.effort.pause, batch)} of a batch"
            stop = f"the job stops for {stop}"
        if any(isinstance(step, Parallel) for step in self.steps):
            beside = compact(self.effort.beside)
            both = f"both plans run for {spell(self.effort.lasts)} at {beside} CPU more"
            return f"{both}, first {stop}" if stop else both
        if stop:
            return stop
        return "the cut-over costs nothing" if self.effort.fills else "every state is there already"

    def to_json(self) -> dict[str, object]:
        """As plain data."""
        made = self.effort
        return {"strategy": self.strategy, "pause": made.pause, "lasts": made.lasts,
                "work": made.work, "cost": made.cost}  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """The option chosen, why, and what else there was."""

    chosen: Option
    reason: str
    others: tuple[Option, ...]
    refused: Mapping[str, str]
    """Why others cannot do it."""

    @property
    def strategy(self) -> str:
        """What it is called."""
        return self.chosen.strategy

    @property
    def steps(self) -> Steps:
        """What it does."""
        return self.chosen.steps

    @property
    def effort(self) -> Effort:
        """What it takes."""
        return self.chosen.effort


def auto(old: Plan, new: Plan, context: Context, figures: Figures, brief: float = BRIEF) -> Choice:
    """The cheapest of those that nobody notices, or else of the shortest stop."""
    check(old, new)
    options, refused = compared(old, new, context, figures)
    if not options:
        raise Refused("; ".join(f"{strategy}: {why}" for strategy, why in refused.items()))
    batch = figures.workload.batch
    bearable = max(brief * batch, min(option.effort.longest for option in options))
    unnoticed = (option for option in options if option.effort.longest <= bearable)
    chosen = min(unnoticed, key=lambda option: (option.effort.cost, option.effort.lasts))
    others = tuple(option for option in options if option is not chosen)
    return Choice(chosen, _reason(chosen, others, refused, batch), others, refused)


def compared(
    old: Plan, new: Plan, context: Context, figures: Figures
) -> tuple[list[Option], dict[str, str]]:
    """What each strategy would do and take, or why it cannot."""
    options, refused = [], {}
    for strategy, migration in MIGRATIONS.items():
        try:
            steps = migration(old, new, context)
        except Refused as why:
            refused[strategy] = str(why)
        else:
            options.append(Option(strategy, steps, effort(steps, old, new, figures)))
    return options, refused


def _reason(
    chosen: Option, others: Sequence[Option], refused: Mapping[str, str], batch: float
) -> str:
    """What is chosen and what it costs, then the others."""
    made = chosen.effort
    text = chosen.told(batch)
    if made.cost or made.lasts:
        text += f": {compact(made.work)} CPU-s until the cut-over in {spell(made.lasts)}"
        text += "".join(f"; {other.strategy}: {_against(other, batch)}" for other in others)
    if refused:
        text += f"; {' and '.join(refused)} cannot: {' and '.join(dict.fromkeys(refused.values()))}"
    return text


def _against(other: Option, batch: float) -> str:
    made = other.effort
    return f"{other.told(batch)}, {compact(made.work)} CPU-s in {spell(made.lasts)}"
