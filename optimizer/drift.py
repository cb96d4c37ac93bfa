"""When to change plans: what fires, what holds it back, and whether it pays (Zhu 26.1).

Values in, a verdict out.  Every trigger looks at several windows in a row, because a burst is not
a trend; whatever fires, a cooldown passes first, and what is done to save work has to save more
than it takes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from math import inf, isfinite

BUSY = 0.8
"""A job that is less busy has a backlog for other reasons than its plan."""

BEHIND = 0.1
"""By how much of the time that passes a lag must grow to be more than the rhythm of batches."""


class Outcome(StrEnum):
    """What comes of a decision."""

    MIGRATE = "migrate"
    HOLD = "hold"
    BLOCKED = "blocked"
    """It would be good to migrate, but."""


class Wants(StrEnum):
    """What a new plan has to be good for."""

    QUALIFIED = "qualified"
    """To be within the budget, and to keep up, at any price."""
    MEMORY = "memory"
    """To keep less."""
    WORK = "work"
    """To need less CPU, so much less that it pays for the migration."""


@dataclass(frozen=True)
class Policy:
    """The thresholds of a job; times in seconds."""

    drift: float = 0.2
    windows: int = 3
    cooldown: float = 600.0
    horizon: float = 3600.0
    near: float = 0.9
    """The share of the memory in the budget at which it is nearly used up."""


@dataclass(frozen=True)
class Observation:
    """A window: what plans cost under its workload, and how the job fared; None: not observed."""

    running: float
    """CPU-seconds a second, of the plan that runs; with an objective of output rates, seconds that
    a second of input takes."""
    best: float
    """Of the best plan for this window alone."""
    chosen: float
    """Of the plan to migrate to."""
    heaviest: float = 0.0
    """Of the running plan's busiest operator."""
    cpu_share: float = 0.0
    """Of the CPU in the budget, as estimated for the running plan."""
    memory_share: float = 0.0
    """Of the memory in the budget, likewise."""
    state: float | None = None
    """Of the memory in the budget, as the job's states were measured."""
    backlog: float | None = None
    """Files or versions that waited at its end."""
    lag: float | None = None
    """Seconds from the watermark to the clock at its end."""
    busy: float | None = None
    """The share of the time that batches took."""
    intermediate: Mapping[str, float] = field(default_factory=dict)
    """Rows that joins inside the plan keep, of those that keep them for their full time."""
    seconds: float = 60.0

    @property
    def drift(self) -> float:
        """How much more the running plan costs than the best one would."""
        return self.running / self.best - 1 if self.best else 0.0

    @property
    def qualified(self) -> bool:
        """Whether the running plan is within the budget."""
        return max(self.cpu_share, self.memory_share) <= 1

    @property
    def feasible(self) -> bool:
        """Whether its busiest operator keeps up (Ji, definition 1)."""
        return self.heaviest < 1


@dataclass(frozen=True)
class Choice:
    """The plan to migrate to, and what that takes, under the workload of all windows together."""

    plan: str
    running: str
    cpu: float
    """CPU-seconds a second."""
    running_cpu: float
    qualified: bool = True
    feasible: bool = True
    lighter: bool = True
    """Whether it keeps less than the running plan."""
    same: bool = False
    """Whether it is the running plan."""
    work: float = 0.0
    """CPU-seconds that the migration takes."""
    why: str = ""
    """Why it is not qualified."""

    @property
    def gain(self) -> float:
        """CPU-seconds saved in an hour."""
        return 3600 * (self.running_cpu - self.cpu)

    @property
    def payback(self) -> float:
        """Seconds until it has saved what the migration took."""
        saved = self.running_cpu - self.cpu
        return self.work / saved if saved > 0 else inf


@dataclass(frozen=True)
class Standing:
    """What else counts now."""

    since: float | None = None
    """Seconds since the last migration of the query ended, if there was one."""
    returns: bool = False
    """Whether the plan chosen is the one that ran before it."""
    turns: int = 1
    """Migrations of the query that ended within the horizon."""
    obstacles: tuple[str, ...] = ()
    """What stands in the way whoever asks."""
    forced: bool = False
    """Whether someone wants it whatever the thresholds say."""


@dataclass(frozen=True)
class Verdict:
    """What to do, what asked for it, and why."""

    outcome: Outcome
    trigger: str
    """The first that fired."""
    reasons: tuple[str, ...]


# --- triggers ------------------------------------------------------------------------------------


def unqualified(seen: Sequence[Observation], policy: Policy) -> str:
    """The running plan is outside the budget."""
    lately = _lately(seen, policy.windows)
    if not lately or any(one.qualified for one in lately):
        return ""
    last = lately[-1]
    shares = f"{last.cpu_share:.0%} of the CPU and {last.memory_share:.0%} of the memory"
    return f"outside the budget {_for(policy)}: the running plan needs {shares} in it"


def infeasible(seen: Sequence[Observation], policy: Policy) -> str:
    """The running plan's busiest operator cannot keep up."""
    lately = _lately(seen, policy.windows)
    if not lately or any(one.feasible for one in lately):
        return ""
    last = lately[-1].heaviest
    return f"falling behind {_for(policy)}: the busiest operator needs {last:.2f} s a second"


def data_driven(seen: Sequence[Observation], policy: Policy) -> str:
    """The best plan would cost less, window after window, and so would the one chosen."""
    lately = _lately(seen, policy.windows)
    if not lately or any(one.drift <= policy.drift for one in lately):
        return ""
    if any(one.chosen >= one.running for one in lately):
        return ""
    least = min(one.drift for one in lately)
    return f"drift {least:.2f} {_for(policy)}, over {policy.drift:.2f}"


def memory_near(seen: Sequence[Observation], policy: Policy) -> str:
    """The states nearly use up the memory in the budget."""
    lately = _lately(seen, policy.windows)
    if not lately or any(one.state is None or one.state < policy.near for one in lately):
        return ""
    return f"states take {lately[-1].state:.0%} of the memory in the budget {_for(policy)}"


def backlog_rising(seen: Sequence[Observation], policy: Policy) -> str:
    """More and more input waits for a job that is busy."""
    lately = _lately(seen, policy.windows + 1)
    if not lately or any(one.busy is not None and one.busy < BUSY for one in lately):
        return ""
    waiting, lags = [one.backlog for one in lately], [one.lag for one in lately]
    if (grown := _risen(waiting)) is not None:
        return f"backlog rising {_for(policy)}, by {grown:.0f} to {waiting[-1]:.0f}"
    if any(one.busy is None for one in lately):
        return ""
    grown = _risen(lags)
    passed = sum(one.seconds for one in lately[1:])
    if grown is not None and grown >= BEHIND * passed:
        return f"lag rising {_for(policy)}, by {grown:.0f} s in {passed:.0f}"
    return ""


def intermediate_rising(seen: Sequence[Observation], policy: Policy) -> str:
    """A join inside the plan keeps more and more: seen before it reaches the input (26.1.3)."""
    lately = _lately(seen, policy.windows + 1)
    for name in lately[-1].intermediate if lately else ():
        kept = [one.intermediate.get(name) for one in lately]
        grown, first = _risen(kept), kept[0]
        if grown is not None and first and grown > policy.drift * first:
            rows = f"{kept[-1]:,.0f} rows, from {first:,.0f}"
            return f"{name} keeps more and more {_for(policy)}: {rows}"
    return ""


@dataclass(frozen=True)
class Trigger:
    """What asks for another plan, and what that plan has to be good for."""

    fires: Callable[[Sequence[Observation], Policy], str]
    """Why, or nothing."""
    wants: Wants


TRIGGERS: Mapping[str, Trigger] = {
    "unqualified": Trigger(unqualified, Wants.QUALIFIED),
    "infeasible": Trigger(infeasible, Wants.QUALIFIED),
    "data-driven": Trigger(data_driven, Wants.WORK),
    "memory-driven": Trigger(memory_near, Wants.MEMORY),
    "backlog-driven": Trigger(backlog_rising, Wants.WORK),
    "refined-memory-driven": Trigger(intermediate_rising, Wants.WORK),
}

HAND = "by hand"
"""What asked where no trigger fired, and a person did."""


def _lately(seen: Sequence[Observation], count: int) -> Sequence[Observation]:
    """The last so many windows; nothing where there are fewer."""
    return seen[-count:] if len(seen) >= count else ()


def _risen(values: Sequence[float | None]) -> float | None:
    """By how much they have risen, if they have from each to the next."""
    known = [value for value in values if value is not None]
    if len(known) < len(values) or any(later <= earlier for earlier, later in pairwise(known)):
        return None
    return known[-1] - known[0]


def _for(policy: Policy) -> str:
    return f"for {policy.windows} window{'s' * (policy.windows > 1)}"


# --- the verdict ---------------------------------------------------------------------------------


def judge(
    seen: Sequence[Observation], choice: Choice, policy: Policy, standing: Standing
) -> Verdict:
    """Whether to migrate to the plan chosen, from the windows seen, the oldest first."""
    fired = {
        name: reason
        for name, trigger in TRIGGERS.items()
        if (reason := trigger.fires(seen, policy))
    }
    trigger = next(iter(fired), HAND if standing.forced else "")
    why = (*fired.values(), _costs(choice))
    if choice.same:
        return _no_other(choice, trigger, why)
    if not trigger:
        return Verdict(Outcome.HOLD, "", (_quiet(seen, policy), _costs(choice)))
    wants = {TRIGGERS[name].wants for name in fired}
    against = tuple(_against(choice, wants, policy, standing))
    outcome = Outcome.BLOCKED if against else Outcome.MIGRATE
    return Verdict(outcome, trigger, (*why, *(against or (_pays(choice),))))


def _no_other(choice: Choice, trigger: str, why: tuple[str, ...]) -> Verdict:
    """The running plan is the best that is known, which may still not be good enough."""
    if choice.qualified and choice.feasible:
        return Verdict(Outcome.HOLD, trigger, (*why[:-1], f"no plan better than {choice.running}"))
    return Verdict(Outcome.BLOCKED, trigger, (*why[:-1], _unfit(choice)))


def _against(choice: Choice, wants: set[Wants], policy: Policy, standing: Standing) -> "list[str]":
    """Everything that speaks against it."""
    found = list(standing.obstacles)
    if not (choice.qualified and choice.feasible):
        found.append(_unfit(choice))
    if standing.forced:
        return found
    if standing.since is not None and standing.since < (wait := cooldown(policy, standing)):
        last = "the last migration" if standing.turns < 2 else f"the last of {standing.turns}"
        found.append(f"cooldown: {last} ended {standing.since:.0f} s ago, {wait:.0f} s must pass")
    if Wants.QUALIFIED not in wants:
        pays = horizon(policy, standing)
        useless = [_useless(choice, want, pays) for want in sorted(wants)]
        found += useless if all(useless) else []
    return found


def cooldown(policy: Policy, standing: Standing) -> float:
    """Seconds between two migrations: twice as many after each that came soon after another."""
    return policy.cooldown * 2.0 ** max(0, standing.turns - 1)


def horizon(policy: Policy, standing: Standing) -> float:
    """Seconds within which a migration must pay: what has come back soon may be gone as soon."""
    if standing.returns and standing.since is not None:
        return min(policy.horizon, standing.since)
    return policy.horizon


def _useless(choice: Choice, want: Wants, pays: float) -> str:
    """Why the plan chosen is not good for what is wanted of it."""
    if want == Wants.MEMORY:
        return "" if choice.lighter else f"{choice.plan} keeps no less than {choice.running}"
    if choice.gain <= 0:
        return f"{choice.plan} needs no less CPU than {choice.running}"
    if choice.payback > pays:
        return (
            f"payback too long: {choice.work:.3g} CPU-s to migrate, {choice.gain:.3g} saved an "
            f"hour: {choice.payback:.0f} s, over {pays:.0f}"
        )
    return ""


def _unfit(choice: Choice) -> str:
    if not choice.qualified:
        return f"no qualified plan: {choice.why or choice.plan + ' is outside the budget'}"
    return f"no feasible plan: an operator of {choice.plan} would fall behind"


def _quiet(seen: Sequence[Observation], policy: Policy) -> str:
    """Why nothing fired."""
    if len(seen) < policy.windows:
        return f"good windows: {len(seen)} of the {policy.windows} that a trend takes"
    drifts = ", ".join(f"{one.drift:.2f}" for one in _lately(seen, policy.windows))
    return f"no trigger {_for(policy)}: drift {drifts}, threshold {policy.drift:.2f}"


def _costs(choice: Choice) -> str:
    return (
        f"{choice.running} costs {choice.running_cpu:.3g} CPU-s/s, {choice.plan} {choice.cpu:.3g}"
    )


def _pays(choice: Choice) -> str:
    if not isfinite(choice.payback):
        return f"{choice.work:.3g} CPU-s to migrate"
    return (
        f"{choice.work:.3g} CPU-s to migrate, {choice.gain:.3g} saved an hour: "
        f"pays after {choice.payback:.3g} s"
    )
