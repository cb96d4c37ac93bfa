"""Where a job's operators should run: whether that has drifted, and what another deployment takes.

Drift of usage is how much more the job takes of its network than the best deployment would, window
by window.  A deployment is data: the states that would move, and the steps from what is in force.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from json import dumps
from math import inf, isfinite
from time import perf_counter
from typing import Any

from jobs.migrations import new_id
from jobs.network import picture, state, told
from jobs.network.deployments import Candidate, Deployment, DeploymentLog, Outcome
from jobs.network.job_queries import Resolved
from jobs.network.report import figure
from jobs.network.scene import Scene, Wish
from jobs.network.session import Session
from jobs.specs import Job
from jobs.status import SECOND
from jobs.tables.paths import local
from optimizer.explain import size
from optimizer.migration.cost import spell
from optimizer.network.deployment import Deployed
from optimizer.network.placement import NETWORK_PLACEMENTS
from optimizer.network.states import Fate, State, renamed, states
from optimizer.network.steps import Step, steps

EXACT = 8
"""Streams of a query up to which the exact least is looked for."""

QUICK = ("landmarks", "top-down", "bottom-up", "npc")
"""Strategies for queries of more."""

ADVICE = "`midstream stats collect` and `midstream stats validate` make them"

Decided = tuple[Deployment, "Choice | None"]
"""A deployment, and what it was chosen from; nothing where no window says anything."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The deployment to take, beside what is in force."""

    scene: Scene
    sessions: Mapping[str, Session]
    """What every strategy came to."""
    candidates: tuple[Candidate, ...]

    @cached_property
    def taken(self) -> Candidate:
        """The one of least usage, the first of equals."""
        return min(self.candidates, key=lambda one: one.usage)

    @property
    def session(self) -> Session:
        """What it came to."""
        return self.sessions[self.taken.strategy]

    @cached_property
    def before(self) -> Deployed:
        """What is in force."""
        return self.scene.running(self.scene.whole)

    @cached_property
    def after(self) -> Deployed:
        """What is to be; what stays where it is keeps its name."""
        return renamed(self.before, self.session.deployed)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """From the one to the other."""
        return steps(self.before, self.after)

    @cached_property
    def states(self) -> tuple[State, ...]:
        """What joins are to keep, and where that comes from."""
        place, load = self.scene.place, self.scene.whole.load
        return states(self.before, self.after, load, place.network)

    @cached_property
    def drift(self) -> list[float]:
        """By window, how much more is used than the best deployment of that window would."""
        return [self._drift(seen) for seen in self.scene.by_window]

    def _drift(self, seen: Resolved) -> float:
        now = self.scene.usage(self.scene.running(seen), seen)
        best = self.scene.planned(seen, self.taken.strategy).deployed
        least = min(now, self.scene.usage(best, seen))
        return now / least - 1 if least > 0 else (inf if now > 0 else 0.0)

    @cached_property
    def figures(self) -> dict[str, Any]:
        """What it comes to, in numbers."""
        running = self.scene.usage(self.before, self.scene.whole)
        carried = {fate: sum(s.bytes for s in self.states if s.fate is fate) for fate in Fate}
        saved = running - self.taken.usage
        return {
            "running_usage": running,
            "usage": self.taken.usage,
            "drift": [one if isfinite(one) else None for one in self.drift],
            "threshold": self.scene.job.reoptimize.usage,
            **{f"{fate}_bytes": total for fate, total in carried.items()},
            "transfer": self.transfer,
            "payback_seconds": self.transfer / saved if saved > 0 else None,
        }

    @property
    def transfer(self) -> float:
        """Bytes times distance of the states that move: what usage is in a second."""
        distance = self.scene.place.network.distance
        return sum(
            one.bytes * distance(one.source, one.site)
            for one in self.states
            if one.fate is Fate.MOVED
        )


def choose(scene: Scene, wish: Wish) -> Choice:
    """What every strategy comes to under the windows together."""
    most = max(len(demand.streams) for demand in scene.whole.demands.values())
    names = list(NETWORK_PLACEMENTS) if most <= EXACT else list(QUICK)
    sessions, candidates = {}, []
    for name in [wish.strategy] if wish.strategy else names:
        begun = perf_counter()
        sessions[name] = session = scene.planned(scene.whole, name)
        candidates.append(_candidate(scene, session, perf_counter() - begun, exact=most <= EXACT))
    return Choice(scene, sessions, tuple(candidates))


def _candidate(scene: Scene, session: Session, seconds: float, *, exact: bool) -> Candidate:
    plans = [plan for plan, _ in session.plans.values()]
    over = None
    if exact:
        least = sum(plan.optimum for plan in plans)
        over = sum(plan.usage for plan in plans) / least - 1 if least > 0 else 0.0
    return Candidate(
        session.strategy, scene.usage(session.deployed, scene.whole), over,
        sum(plan.effort.examined for plan in plans), sum(plan.effort.evaluated for plan in plans),
        seconds, len(session.deployed.operators()),
    )  # fmt: skip


def propose(job: Job, wish: Wish, *, keep: bool = True) -> Decided:
    """A deployment, if usage has drifted and that pays; written down unless it is there already."""
    return _decided(job, wish, _proposed, keep=keep)


def deploy(job: Job, wish: Wish, *, keep: bool = True) -> Decided:
    """The best deployment whatever the thresholds say; from now on it is in force."""
    return _decided(job, wish, _deployed, keep=keep)


def _decided(job: Job, wish: Wish, decide: Callable[..., Deployment], *, keep: bool) -> Decided:
    log = DeploymentLog.of(local(job.storage))
    with log.alone() if keep else nullcontext():
        scene = Scene.of(job, wish)
        if scene is None:
            return _nothing(job, wish), None
        choice = choose(scene, wish)
        return decide(choice, log, wish, keep=keep), choice


def _proposed(choice: Choice, log: DeploymentLog, wish: Wish, *, keep: bool) -> Deployment:
    outcome, reasons = _judged(choice, log, wish)
    found = _deployment(choice, wish, outcome, reasons)
    if outcome is Outcome.DEPLOY and keep:
        if (earlier := log.repeated(found.key)) is not None:
            return earlier
        _record(log, choice, found)
    return found


def _deployed(choice: Choice, log: DeploymentLog, wish: Wish, *, keep: bool) -> Deployment:
    if not _gains(choice):
        reasons = _said(choice), "nothing takes less"
        return _deployment(choice, wish, Outcome.HOLD, reasons)
    found = _deployment(choice, wish, Outcome.DEPLOY, (_said(choice), _price(choice)))
    if keep:
        found = replace(found, deployed=True)
        state.write(log.root, replace(choice.session, deployed=choice.after))
        _record(log, choice, found)
    return found


def _judged(choice: Choice, log: DeploymentLog, wish: Wish) -> tuple[Outcome, tuple[str, ...]]:
    """Whether to propose it, and why."""
    policy, drift = choice.scene.job.reoptimize, choice.drift
    said, limit = _said(choice), f"{policy.usage:.2f}"
    if len(drift) < policy.windows:
        return Outcome.HOLD, (said, f"{len(drift)} of {policy.windows} windows")
    if not all(one > policy.usage for one in drift) or not _gains(choice):
        return Outcome.HOLD, (said, f"not over {limit} for {policy.windows} windows")
    latest = log.latest()
    if latest is not None and wish.now - latest.at < policy.cooldown.total_seconds() * SECOND:
        ago = spell((wish.now - latest.at) / SECOND)
        return Outcome.HOLD, (said, f"{latest.id} was deployed {ago} ago, within the cooldown")
    payback = choice.figures["payback_seconds"]
    if payback > policy.horizon.total_seconds():
        return Outcome.HOLD, (said, f"{_price(choice)}, beyond the horizon")
    return Outcome.DEPLOY, (f"{said}, over {limit}", _price(choice))


def _gains(choice: Choice) -> bool:
    return bool(choice.taken.usage < choice.figures["running_usage"] * (1 - 1e-9))


def _said(choice: Choice) -> str:
    drifts = ", ".join(f"{one:.2f}" for one in choice.drift)
    now, then = choice.figures["running_usage"], choice.taken.usage
    return (
        f"usage drifts by {drifts}: {figure(now)} bytes/s x {choice.scene.place.measure} now, "
        f"{figure(then)} by {choice.taken.strategy}"
    )


def _price(choice: Choice) -> str:
    figures = choice.figures
    kept, moved, filled = (figures[f"{fate}_bytes"] for fate in Fate)
    return (
        f"{size(moved)} of state move, {size(kept)} stay, {size(filled)} fill anew; "
        f"pays back in {spell(figures['payback_seconds'])}"
    )


def _nothing(job: Job, wish: Wish) -> Deployment:
    reasons = (f"no good windows: {ADVICE}",)
    id_ = new_id(wish.now, "network")
    return Deployment(id_, wish.now, job.job, Outcome.BLOCKED, reasons, by=wish.by, why=wish.why)


def _deployment(
    choice: Choice, wish: Wish, outcome: Outcome, reasons: tuple[str, ...]
) -> Deployment:
    scene, load = choice.scene, choice.scene.whole.load
    both = Deployed({**choice.before.nodes, **choice.after.nodes})
    done = tuple(told.step(one, both, load) for one in choice.steps)
    said = [{n: v for n, v in one.items() if n != "bytes_per_s"} for one in done]
    return Deployment(
        id=new_id(wish.now, "network"),
        at=wish.now,
        job=scene.job.job,
        outcome=outcome,
        reasons=reasons,
        strategy=choice.taken.strategy,
        figures=choice.figures,
        candidates=choice.candidates,
        queries=tuple(told.query(p, seconds) for p, seconds in choice.session.plans.values()),
        states=tuple(told.state(one) for one in choice.states),
        steps=done,
        windows=tuple((one.start, one.end) for one in scene.windows),
        by=wish.by,
        why=wish.why,
        key=sha256(dumps(said, sort_keys=True).encode()).hexdigest()[:16],
    )


def _record(log: DeploymentLog, choice: Choice, found: Deployment) -> None:
    """Keep it, and what every strategy would deploy as a picture."""
    for name, session in choice.sessions.items():
        path = log.picture(found.id, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(picture.as_svg(session), encoding="utf-8")
    log.record(found)
