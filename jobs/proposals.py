"""What a migration would do, before anyone asks the job for it: the dry run, and what to check.

Read from the job's tables, without Spark.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from shutil import disk_usage
from typing import Any

from jobs.documents import read
from jobs.engine.microbatch import fingerprint
from jobs.engine.migration.definition import begin_track, completed
from jobs.engine.migration.migrator import context_of, plan_fingerprint, still_partial
from jobs.engine.migration.samples import sampled
from jobs.errors import InputError, RefusedError
from jobs.planning_task import Task, from_job
from jobs.pricing import Ground, ground
from jobs.specs import MICROSECOND, Job
from jobs.status import recent
from jobs.tables.job_store import JobStore
from jobs.tables.lease import holder
from jobs.tables.names import DECISIONS, state_table
from jobs.tables.paths import local
from jobs.tables.phases import Phase
from jobs.tables.progress import BatchDecision, latest
from jobs.tables.requests import MIGRATE, Request, read_events, read_requests
from jobs.tables.rows import read as read_row
from jobs.tables.store import DataFile
from jobs.words import unknown
from optimizer.cost.dual import Priced, gain, price
from optimizer.cost.feasibility import Objective, Utilisation
from optimizer.estimate import Estimator
from optimizer.explain import cpu_text, size
from optimizer.migration import AUTO, MIGRATIONS, Option, auto
from optimizer.migration.cost import Beginning, Figures
from optimizer.migration.matching import Context, States, check, young
from optimizer.migration.preview import Preview, preview
from optimizer.migration.steps import Refused, Step, to_json, with_proof
from optimizer.plan import Plan, PlanError, from_json
from optimizer.plan import to_json as plan_to_json
from optimizer.workload import Budget


@dataclass(frozen=True)
class Running:
    """A job as its tables show it."""

    job: Job
    store: JobStore
    batches: Sequence[Mapping[str, Any]]
    """The progress of the last ones, the newest first."""
    plans: Mapping[str, Plan]
    decision: BatchDecision | None

    @classmethod
    def of(cls, job: Job) -> "Running":
        """The job, if it has ever run."""
        storage = local(job.storage)
        store, batches = JobStore(storage), recent(storage)
        if not batches:
            raise RefusedError(
                f"job {job.job} has not finished a batch yet: the plan to start with is the job "
                "file's business"
            )
        decision = latest(store)
        plans = (decision.plans if decision else None) or batches[0]["plans"]
        known = {name: _plan(job, name, plans[name], batches[0]) for name in job.queries
                 if name in plans}  # fmt: skip
        return cls(job, store, batches, known, decision)

    @property
    def partial(self) -> dict[str, tuple[str, int]]:
        """States whose older rows hold only what one query needs."""
        found = self.decision.partial if self.decision else {}
        return still_partial(found, self.batches[0]["watermark"])

    @property
    def under_way(self) -> Request | None:
        """What the job is carrying out."""
        migration = self.decision.migration if self.decision else None
        return read_row(Request, migration["request"], DECISIONS) if migration else None

    @property
    def rows(self) -> dict[str, float]:
        """How many rows each state holds."""
        return {key: work["state_rows"] for key, work in self.batches[0]["operators"].items()}

    def begins(self, old: Plan, new: Plan, context: Context) -> Beginning:
        """What a parallel track would fill first, and how many rows of each state are so young."""
        last = self.batches[0]
        newest = {name: one["newest"] for name, one in last["streams"].items()}
        since, fills = begin_track(young(old, new, context), newest, last["watermark"])
        if not fills:
            return Beginning()
        states = States.of(old).nodes
        rows = {
            key: float(sum(f.rows for f in self.store.files(state_table(key)) if _later(f, since)))
            for key, nodes in states.items()
            if completed(nodes[0], newest) >= since
        }
        return Beginning(tuple(fills), dict.fromkeys(states, 0.0) | rows)

    def waiting(self, query: str) -> list[Request]:
        """Migrations of a query that have been asked for and have not begun."""
        begun = {event.id for event in read_events(self.store) if event.phase != Phase.WAITING}
        return [
            request
            for request in read_requests(self.store)
            if request.kind == MIGRATE and request.query == query and request.id not in begun
        ]


def _plan(job: Job, name: str, plan: Mapping[str, Any], last: Mapping[str, Any]) -> Plan:
    query = job.query(name)
    if last["queries"].get(name, fingerprint(query)) != fingerprint(query):
        raise RefusedError(f"query {name} is not the one that this storage has results of")
    return from_json(query, plan)


# --- the proposal --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Check:
    """One thing to look at beforehand."""

    ok: bool
    text: str
    fatal: bool = False


@dataclass(frozen=True)
class Proposal:
    """A migration that could be asked for, and all that is known of it beforehand."""

    request: Request
    old: Priced
    new: Priced
    steps: tuple[Step, ...]
    reason: str
    preview: Preview
    batch: float
    """Seconds between two batches."""
    checks: tuple[Check, ...]
    ground: Ground | None
    compared: tuple[Option, ...] = ()
    """The strategies that were weighed against each other, the one chosen first."""

    @property
    def refusal(self) -> str:
        """Why the job would not do it; nothing if it would."""
        return "; ".join(check.text for check in self.checks if check.fatal and not check.ok)

    def to_json(self) -> dict[str, Any]:
        """As programs read it."""
        return {
            "query": self.request.query,
            "from": str(self.old.plan),
            "to": str(self.new.plan),
            "strategy": self.request.strategy,
            "reason": self.reason,
            "compared": [option.to_json() for option in self.compared],
            **self.preview.to_json(),
            "cpu": {"from": self.old.total.cpu, "to": self.new.total.cpu},
            "priced_by": self.ground.to_json() if self.ground else {"source": "workload file"},
            "steps": [to_json(step) for step in self.steps],
            "checks": [vars(check) for check in self.checks],
        }


@dataclass(frozen=True)
class Subject:
    """The query of a running job whose plan is to change, and how its plans are priced."""

    running: Running
    task: Task
    ground: Ground | None
    """By what they are priced; none where a workload file says so."""

    @classmethod
    def of(cls, job: Job, query: str | None, workload: Path | None = None) -> "Subject":
        """A query of a job; without a workload, the one that its statistics show."""
        running = Running.of(job)
        task = from_job(job, query, workload)
        if task.name not in running.plans:
            raise RefusedError(f"the job has not run query {task.name} yet")
        if workload is not None:
            return cls(running, task, None)
        found = ground(job, task, running.plans[task.name], running.store, running.batches)
        return cls(running, replace(task, workload=found.workload), found)

    @property
    def plan(self) -> Plan:
        """The one that runs."""
        return self.running.plans[self.task.name]

    def priced(self, plan: Plan) -> Priced:
        """What a plan costs under the workload."""
        return price(plan, Estimator(self.task.query, self.task.workload))

    def named(self, text: str) -> Priced:
        """A plan in the short notation: the one that runs, or with the best probe orders."""
        tree = self.task.plan(text)
        return self.priced(self.plan) if str(tree) == str(self.plan) else self.task.price(tree)

    def past(self, plan: Mapping[str, Any], where: str) -> Priced:
        """A plan of the query that was written down."""
        try:
            return self.priced(from_json(self.task.query, plan))
        except PlanError as error:
            raise InputError(str(error), where) from None

    def propose(self, wish: Request, new: Priced) -> Proposal:
        """Fill in what the wish leaves open, and say what would happen."""
        old, name = self.priced(self.plan), self.task.name
        if wish.strategy not in (*MIGRATIONS, AUTO):
            names = (AUTO, *MIGRATIONS)
            raise InputError(unknown("strategy", wish.strategy, names), "--strategy")
        lateness = max(_micros(spec.lateness) for spec in self.running.job.streams.values())
        interval = self.running.job.trigger.total_seconds()
        figures = Figures(self.task.workload, self.running.rows, lateness, interval)
        context = context_of(name, self.running.plans, self.running.partial)
        made = sampled(old.plan, new.plan, context, self.running.store)
        figures = replace(figures, made=made)
        strategy, reason = wish.strategy, ""
        compared: tuple[Option, ...] = ()
        try:
            check(old.plan, new.plan)
            begins = self.running.begins(old.plan, new.plan, context)
            figures = replace(figures, begins=begins)
            if strategy == AUTO:
                choice = auto(old.plan, new.plan, context, figures)
                strategy, steps, reason = choice.strategy, choice.steps, choice.reason
                compared = (choice.chosen, *choice.others)
            else:
                steps = MIGRATIONS[strategy](old.plan, new.plan, context)
        except Refused as why:
            raise RefusedError(str(why)) from None
        steps = with_proof(steps, wish.proof)
        shown = preview(steps, old.plan, new.plan, figures)
        request = replace(
            wish, query=name, strategy=strategy,
            plan=plan_to_json(new.plan.root), base=plan_fingerprint(old.plan),
            saves=max(0.0, gain(old.total.cpu, new.total.cpu)), takes=shown.effort.takes,
        )  # fmt: skip
        checks = tuple(self._checks(request, new, shown))
        batch = self.task.workload.batch
        return Proposal(
            request, old, new, steps, reason, shown, batch, checks, self.ground, compared
        )

    def _checks(self, request: Request, new: Priced, shown: Preview) -> Iterator[Check]:
        running = self.running
        held = holder(Path(running.job.storage))
        yield Check(
            held is not None,
            f"the job runs: {held}" if held else "the job does not run: its next run will do it",
        )
        yield _alone(running.under_way, request)
        for other in running.waiting(request.query):
            yield Check(ok=False, text=f"{other.id} has not begun, this one replaces it")
        yield self._budget(new)
        yield self._disk(new, shown)

    def _budget(self, new: Priced) -> Check:
        """Whether the plan is qualified, and feasible."""
        budget, total = self.task.budget, new.total
        heaviest = max((cost.cpu for cost in new.costs.values()), default=0.0)
        if not Objective().feasible(Utilisation.of(heaviest)):
            text = f"an operator of the new plan needs {cpu_text(heaviest)}: it would fall behind"
            return Check(ok=False, text=text)
        if not total.within(budget):
            why = self.task.memo().binding(total)
            return Check(ok=False, text=f"the new plan is not within the budget: {why}")
        known = "is within the budget" if budget != Budget() else "keeps up, and there is no budget"
        return Check(ok=True, text=f"the new plan {known}: {cpu_text(total.cpu)}")

    def _disk(self, new: Priced, shown: Preview) -> Check:
        nodes, estimator = States.of(new.plan).nodes, Estimator(self.task.query, self.task.workload)
        needed = sum(s.most * estimator.node(nodes[s.key][0]).width for s in shown.rebuilt)
        free = disk_usage(self.running.job.storage).free
        text = f"{size(needed)} at most for the new states, {size(free)} free on the disk"
        return Check(ok=needed < free, text=text, fatal=True)


def _alone(under_way: Request | None, request: Request) -> Check:
    if under_way is None:
        return Check(ok=True, text="no other migration is under way")
    text = f"migration {under_way.id} of {under_way.query} is under way"
    if under_way.query == request.query:
        return Check(ok=False, text=f"{text}: wait for its end, or abort it", fatal=True)
    return Check(ok=False, text=f"{text}: this one waits for its end")


def _later(file: DataFile, since: int) -> bool:
    """Whether it may hold rows that are as young as that."""
    return file.until is None or file.until > since


def _micros(length: timedelta) -> int:
    return length // MICROSECOND


# --- plans as people give them -------------------------------------------------------------------


def wanted(text: str, subject: Subject) -> Priced:
    """The plan of an argument: the short notation, or a file of `explain` or `optimize --json`."""
    found = _from_file(Path(text)) if _is_file(text) else text
    if isinstance(found, str):
        tree = subject.task.plan(found, "PLAN")
        if str(tree) == str(subject.plan):
            raise RefusedError(f"the job runs this plan already: {tree}")
        return subject.task.price(tree)
    return subject.past(found, "PLAN")


def _is_file(text: str) -> bool:
    return text.endswith(".json") or (text[:1] not in ("(", "[") and Path(text).is_file())


def _from_file(path: Path) -> str | Mapping[str, Any]:
    """A plan as JSON, or as text where that is all there is."""
    data = read(path).data
    if isinstance(data, Mapping) and "root" not in data and isinstance(data.get("plan"), str):
        return str(data["plan"])
    if not isinstance(data, Mapping):
        raise InputError("is not one plan: write it with `midstream explain --json`", str(path))
    return data
