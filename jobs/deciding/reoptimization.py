"""Whether a running job's query should change its plan now, and the request for it, made once.

What was observed and what the searches find under it go into `optimizer.drift`; what comes out is
a `Decision`, kept in the job's log whatever it says.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from json import dumps
from math import isfinite
from typing import Any

from jobs import workloads
from jobs.deciding.decisions import Approval, Decision, DecisionLog
from jobs.deciding.filling import Due, due
from jobs.deciding.learning import keep, learn
from jobs.deciding.library import PlanLibrary, signature
from jobs.deciding.objectives import changed
from jobs.deciding.observations import Seen, see
from jobs.deciding.weighing import Weighed, weigh
from jobs.engine.microbatch import fingerprint
from jobs.engine.migration.migrator import ENDED, plan_fingerprint
from jobs.errors import InputError, RefusedError
from jobs.migrations import Record, new_id, records
from jobs.planning_task import Task, from_job
from jobs.pricing import Prices
from jobs.proposals import Proposal, Running, Subject
from jobs.specs import MICROSECOND, Job
from jobs.status import SECOND
from jobs.tables.lease import holder
from jobs.tables.paths import local
from jobs.tables.phases import Phase
from jobs.tables.requests import Event, Request, append_request
from jobs.words import unknown
from optimizer.drift import Choice, Outcome, Policy, Standing, Verdict, judge
from optimizer.migration.cost import spell
from optimizer.plan import Plan, to_json
from optimizer.search import COSTS, ENDLESS

ADVICE = "`midstream stats collect` and `midstream stats validate` make them"


@dataclass(frozen=True)
class Asked:
    """Who wants a decision, when (in microseconds), why, and what may come of it."""

    now: int
    by: str
    why: str = ""
    force: bool = False
    dry_run: bool = False


@dataclass(frozen=True)
class Desk:
    """What decisions about a job's queries share: the job as it stands, its log, its library."""

    running: Running
    log: DecisionLog
    library: PlanLibrary
    records: tuple[Record, ...]
    prices: Prices

    @classmethod
    def of(cls, job: Job) -> "Desk":
        """A job that has run."""
        storage, running = local(job.storage), Running.of(job)
        log = DecisionLog.of(storage)
        keep = job.statistics.keep // MICROSECOND
        found = tuple(records(running.store))
        return cls(running, log, PlanLibrary(log.root, keep), found, Prices.of(job))

    @property
    def job(self) -> Job:
        """The one whose queries are looked at."""
        return self.running.job

    def ended(self, query: str) -> list[tuple[Record, Event]]:
        """The migrations of a query that had begun and have ended, the last one last."""
        ends = [
            (one, one.event(one.phase))
            for one in self.records
            if one.request.query == query and one.phase in ENDED
        ]
        return sorted(ends, key=lambda end: end[1].at)


@dataclass(frozen=True)
class Basis:
    """What a decision is made from; without windows there is no more than the running plan."""

    running: Plan
    seen: Seen
    weighed: Weighed | None = None
    proposal: Proposal | None = None
    choice: Choice | None = None
    due: Due | None = None
    """When to migrate, where the objective is one of output rates."""

    @property
    def before(self) -> dict[str, Any]:
        """The plan that runs."""
        return to_json(self.running.root)

    @property
    def after(self) -> dict[str, Any]:
        """The plan to take."""
        return to_json(self.weighed.taken.priced.plan.root) if self.weighed else {}

    @property
    def figures(self) -> dict[str, Any]:
        """What it comes to, in numbers."""
        if self.weighed is None or self.choice is None:
            return {}
        choice, windows = self.choice, self.weighed.observations
        return {
            "running_cpu": choice.running_cpu,
            "chosen_cpu": choice.cpu,
            "drift": [one.drift for one in windows],
            "running_by_window": [one.running for one in windows],
            "best_by_window": [one.best for one in windows],
            "chosen_by_window": [one.chosen for one in windows],
            "gain_per_hour": choice.gain,
            "migration_work": choice.work,
            "migration_takes": self.proposal.request.takes if self.proposal else 0.0,
            "payback_seconds": choice.payback if isfinite(choice.payback) else None,
            "advantage": self.weighed.advantage,
            "signature": self.weighed.signature,
            "priced_by": str(self.seen.ground),
            **self.weighed.results,
        }


def policy_of(job: Job) -> Policy:
    """The thresholds in a job file."""
    wanted = job.reoptimize
    return Policy(
        wanted.drift,
        wanted.windows,
        wanted.cooldown.total_seconds(),
        wanted.horizon.total_seconds(),
    )


# --- deciding ------------------------------------------------------------------------------------


def decide(desk: Desk, query: str, asked: Asked) -> Decision:
    """What to do about a query of a job; nothing is done yet.

    Where the same has been decided on the same windows, it is that decision.
    """
    job = desk.job
    task, plan = _task(desk, query), desk.running.plans[query]
    seen = see(job, task, plan, desk.prices)
    if seen.ground is None:
        nothing = Verdict(Outcome.BLOCKED, "", (f"no good windows: {ADVICE}",))
        return _decision(desk, query, asked, Basis(plan, seen), nothing)
    task, policy = replace(task, workload=seen.ground.workload), policy_of(job)
    entry = desk.library.find(query, fingerprint(task.query), signature(task.workload))
    weighed = weigh(task, plan, seen, policy, job.reoptimize.strategy, entry)
    proposal, refusal = _proposal(
        Subject(desk.running, task, seen.ground), weighed, job.reoptimize.migration
    )
    choice = weighed.choice(proposal.preview.effort.work if proposal else 0.0)
    when = None if task.objective is None or weighed.same else _due(desk, task, plan, weighed)
    basis = Basis(plan, seen, weighed, proposal, choice, when)
    if earlier := _earlier(desk, query, basis):
        return earlier
    obstacles = (*_obstacles(desk, query, basis, asked), *refusal)
    standing = _standing(desk, query, basis, asked, obstacles)
    return _decision(
        desk, query, asked, basis, judge(weighed.observations, choice, policy, standing)
    )


def _task(desk: Desk, query: str) -> Task:
    task, strategy = from_job(desk.job, query), desk.job.reoptimize.strategy
    if query not in desk.running.plans:
        raise RefusedError(f"the job has not run query {query} yet")
    names = COSTS if task.objective is None else (*COSTS, *ENDLESS)
    if task.objective is None and strategy in ENDLESS:
        why = f"{strategy} needs an objective of output rates: rate by 10 seconds"
        raise InputError(why, "reoptimize.strategy")
    if strategy not in names:
        raise InputError(unknown("strategy", strategy, names), "reoptimize.strategy")
    return task


def _due(desk: Desk, task: Task, running: Plan, weighed: Weighed) -> Due:
    return due(desk.running, task, running, weighed.taken.priced.plan)


def _proposal(
    subject: Subject, weighed: Weighed, strategy: str
) -> tuple[Proposal | None, tuple[str, ...]]:
    """What the migration would do, or why it cannot be done."""
    if weighed.same:
        return None, ()
    try:
        proposal = subject.propose(Request("", 0, strategy=strategy), weighed.taken.priced)
    except RefusedError as why:
        return None, (str(why),)
    fatal = [check for check in proposal.checks if check.fatal and not check.ok]
    return proposal, tuple(check.text for check in fatal)


def _earlier(desk: Desk, query: str, basis: Basis) -> Decision | None:
    """A decision that is this one already: asked for, or waiting for a person."""
    if (earlier := desk.log.repeated(_key(desk, query, basis))) is not None:
        return earlier
    waiting = [one for one in desk.log.gated(query) if one.approval == Approval.WAITS]
    if waiting and waiting[-1].is_about(basis.before, basis.after):
        return waiting[-1]
    return None


def _obstacles(desk: Desk, query: str, basis: Basis, asked: Asked) -> Iterator[str]:
    """What stands in the way, whatever would be gained."""
    job, running = desk.job, desk.running
    if holder(local(job.storage)) is None:
        yield "the job does not run"
    for request in running.waiting(query):
        yield f"migration {request.id} has been asked for already"
    behind = (running.batches[0]["watermark"] or 0) - basis.seen.windows[-1].end
    if behind > job.statistics.stale // MICROSECOND:
        yield f"no good windows: the newest ended {spell(behind / SECOND)} ago; {ADVICE}"
    if basis.seen.unknown:
        yield f"no window says: {', '.join(basis.seen.unknown)}"
    said = [one for one in desk.log.gated(query) if one.is_about(basis.before, basis.after)]
    if said and said[-1].approval == Approval.REJECTED and not asked.force:
        ago = (asked.now - said[-1].answered_at) / SECOND
        if ago < policy_of(job).horizon:
            yield f"rejected by {said[-1].answered_by} {spell(ago)} ago: {said[-1].answered_why}"


def _standing(
    desk: Desk, query: str, basis: Basis, asked: Asked, obstacles: tuple[str, ...]
) -> Standing:
    ended = desk.ended(query)
    if not ended:
        return Standing(obstacles=obstacles, forced=asked.force)
    record, last = ended[-1]
    back = basis.weighed is not None and plan_fingerprint(basis.weighed.taken.priced.plan)
    returns = last.phase == Phase.DONE and record.request.base == back
    horizon = asked.now - policy_of(desk.job).horizon * SECOND
    turns = sum(event.at > horizon for _, event in ended)
    return Standing((asked.now - last.at) / SECOND, returns, turns, obstacles, asked.force)


def _decision(desk: Desk, query: str, asked: Asked, basis: Basis, verdict: Verdict) -> Decision:
    weighed, proposal, seen = basis.weighed, basis.proposal, basis.seen
    migrates = verdict.outcome == Outcome.MIGRATE
    gate = migrates and desk.job.reoptimize.approve
    return Decision(
        id=new_id(asked.now, query),
        at=asked.now,
        job=desk.job.job,
        query=query,
        outcome=verdict.outcome,
        trigger=verdict.trigger,
        reasons=(*_told(basis, verdict), *verdict.reasons),
        figures=basis.figures | (basis.due.figures if migrates and basis.due else {}),
        running=str(basis.running),
        running_plan=basis.before,
        candidates=weighed.candidates if weighed else (),
        chosen=str(weighed.taken.priced.plan) if weighed else "",
        chosen_plan=basis.after,
        strategy=weighed.taken.strategy if weighed else "",
        migration=proposal.request.strategy if proposal else "",
        workload=workloads.to_json(seen.ground.workload) if seen.ground else {},
        windows=tuple((window.start, window.end) for window in seen.windows),
        library=weighed.signature if weighed and weighed.hit else "",
        by=asked.by,
        why=asked.why,
        forced=asked.force,
        dry_run=asked.dry_run,
        key=_key(desk, query, basis),
        approval=Approval.WAITS if gate else Approval.NOT_NEEDED,
    )


def _told(basis: Basis, verdict: Verdict) -> Iterator[str]:
    """What the objective gains, and what has changed."""
    weighed = basis.weighed
    if weighed is not None and verdict.outcome == Outcome.MIGRATE and weighed.ahead:
        why = changed([(one.window.start, one.load) for one in basis.seen.glimpses])
        yield f"{why}: {weighed.ahead}" if why else weighed.ahead
        if basis.due is not None and basis.due.batch is not None:
            yield basis.due.told(basis.running, weighed.taken.priced.plan)


def _key(desk: Desk, query: str, basis: Basis) -> str:
    """The same as long as neither windows nor plans nor the history of migrations change."""
    ended = sum(one.request.query == query and one.ended for one in desk.records)
    windows = [window.end for window in basis.seen.windows[-1:]]
    said = [desk.job.job, query, basis.before, basis.after, windows, ended]
    return sha256(dumps(said, sort_keys=True).encode()).hexdigest()[:16]


# --- acting --------------------------------------------------------------------------------------


def reoptimize(job: Job, query: str, asked: Asked) -> Decision:
    """Decide and act; nobody else decides meanwhile, so that two who look at once ask once."""
    if asked.dry_run:
        return decide(Desk.of(job), query, asked)
    with DecisionLog.of(local(job.storage)).alone():
        desk = Desk.of(job)
        learn(desk, query)
        return carry_out(desk, decide(desk, query, asked))


def carry_out(desk: Desk, decision: Decision) -> Decision:
    """Keep a decision, and ask the job for its migration if nobody has to agree first."""
    if desk.log.get(decision.id) is not None:
        return decision
    if decision.migrates and not decision.gated:
        decision = _submit(desk, decision)
    desk.log.record(decision)
    if decision.outcome == Outcome.HOLD and decision.stays:
        keep(desk, decision)
    return decision


def answer(job: Job, id_: str, asked: Asked, *, agrees: bool) -> Decision:
    """Note what a person says of a decision that waits, and do as they say."""
    with DecisionLog.of(local(job.storage)).alone():
        return _answer(Desk.of(job), id_, asked, agrees=agrees)


def _answer(desk: Desk, id_: str, asked: Asked, *, agrees: bool) -> Decision:
    decision = desk.log.get(id_)
    if decision is None:
        ids = [one.id for one in desk.log.newest(5)]
        raise InputError(unknown("decision", id_, ids), "ID")
    if decision.approval != Approval.WAITS:
        raise RefusedError(f"{id_} waits for nobody: {decision.outcome}, {decision.approval}")
    answered = replace(
        decision,
        approval=Approval.APPROVED if agrees else Approval.REJECTED,
        answered_by=asked.by,
        answered_why=asked.why,
        answered_at=asked.now,
    )
    if agrees:
        _check_still(desk, decision)
        answered = _submit(desk, answered)
    desk.log.record(answered)
    return answered


def _check_still(desk: Desk, decision: Decision) -> None:
    """Refuse what was decided about another state of things."""
    plan = desk.running.plans.get(decision.query)
    if plan is None or to_json(plan.root) != decision.running_plan:
        raise RefusedError(f"the job does not run {decision.running} any more: decide again")
    newest = desk.log.gated(decision.query)[-1]
    if newest.id != decision.id:
        raise RefusedError(f"{newest.id} is newer, and about another plan: {newest.chosen}")
    under_way = desk.running.under_way
    if under_way is not None and under_way.query == decision.query:
        raise RefusedError(f"migration {under_way.id} is under way: wait for its end, or abort it")
    if holder(local(desk.job.storage)) is None:
        raise RefusedError("the job does not run")


def _submit(desk: Desk, decision: Decision) -> Decision:
    """Ask the job; the id says what for, so that asking again changes nothing."""
    made = new_id(decision.windows[-1][1], decision.query)
    request = Request(
        f"{made}-{decision.key[:6]}",
        max(decision.at, decision.answered_at),
        query=decision.query,
        plan=decision.chosen_plan,
        base=plan_fingerprint(desk.running.plans[decision.query]),
        strategy=decision.migration,
        at_batch=decision.figures.get("at_batch"),
        saves=max(0.0, decision.gain),
        takes=decision.figures.get("migration_takes", 0.0),
        reason=f"{decision.id}: {decision.reasons[0]}",
        by=decision.answered_by or decision.by,
    )
    append_request(desk.running.store, request)
    return replace(decision, request=request.id)
