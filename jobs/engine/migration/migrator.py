"""Live migration inside the running job: an interpreter of steps that works between two batches.

What a batch needs to know of it is part of that batch's decision, so a replay does the same; one
such decision, with the new plan in it, is the cut-over.  What is built before is thrown away, or
found again, by whoever comes after a crash: a table knows which slices of it are filled.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from json import dumps
from time import perf_counter
from typing import Any

from jobs.backends import SqlBackend
from jobs.engine.lower import Change
from jobs.engine.migration.backfill import Backfiller
from jobs.engine.migration.backfill_budget import BackfillBudget
from jobs.engine.migration.definition import Migration, begin_track, target_plan
from jobs.engine.migration.hooks import HookError, run_hook
from jobs.engine.states import States
from jobs.tables.columns import ALWAYS
from jobs.tables.names import DECISIONS, REQUESTS
from jobs.tables.names import MIGRATIONS as MIGRATIONS_LOG
from jobs.tables.partitions import Widths
from jobs.tables.phases import Phase
from jobs.tables.progress import Progress
from jobs.tables.requests import (
    ABORT,
    MIGRATE,
    POSTPONE,
    RELEASE,
    UNREADABLE,
    Event,
    Request,
    append_events,
    read_events,
    read_requests,
)
from jobs.tables.rows import read
from jobs.tables.store import Store
from optimizer.migration import MIGRATIONS
from optimizer.migration.matching import Context, young
from optimizer.migration.matching import States as Kept
from optimizer.migration.steps import (
    CutOver,
    Fill,
    Keep,
    Parallel,
    Prove,
    Refused,
    Step,
    Track,
    Wait,
    with_proof,
)
from optimizer.plan import Plan
from optimizer.plan import to_json as plan_to_json

ENDED = (Phase.DONE, Phase.ABORTED)
"""Phases that end a migration that had begun."""

_BUILDING = (Keep, Track, Fill)
"""Steps for which there may be time between two batches."""

_BEFORE = (*_BUILDING, Parallel, Wait, Prove)
"""Steps that come before the cut-over."""


@dataclass(frozen=True)
class Turn:
    """What a boundary changes."""

    migration: Migration | None
    plans: Mapping[str, Plan]
    partial: Mapping[str, tuple[str, int]]
    events: tuple[Event, ...]


@dataclass(frozen=True)
class _Boundary:
    """The moment before a batch, and what is known then."""

    number: int
    now: int
    progress: Progress
    plans: Mapping[str, Plan]
    partial: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    @property
    def youngest(self) -> int:
        """The newest event time seen in any stream."""
        times = [flow.newest for flow in self.progress.streams.values() if flow.newest is not None]
        return max(times, default=ALWAYS)


@dataclass
class Migrator:
    """Reads requests, carries out the migration under way, and says what became of each."""

    store: Store
    backend: SqlBackend
    states: States
    widths: Widths
    clock: Callable[[], int]
    hook: Callable[[str, Mapping[str, str]], None] = run_hook
    timer: Callable[[], float] = perf_counter
    interval: float = 0.0
    """Seconds between the beginnings of two batches, if none takes longer."""
    migration: Migration | None = None
    _phases: dict[str, str] = field(default_factory=dict)
    _waiting: list[Request] = field(default_factory=list)
    _known: int = 0
    _ready: bool = False
    _failed: str = ""
    _unread: str = ""
    """Why requests cannot be read, as it has been told."""
    _events: list[Event] = field(default_factory=list)
    _pace: BackfillBudget = field(init=False)
    _filler: Backfiller = field(init=False)

    def __post_init__(self) -> None:
        self._pace = BackfillBudget(self.interval)
        self._filler = Backfiller(
            self.store, self.backend, self.states, self.widths, self._pace, self.timer
        )

    def turn(
        self,
        number: int,
        progress: Progress,
        plans: Mapping[str, Plan],
        partial: Mapping[str, tuple[str, int]],
    ) -> Turn:
        """Do what is to be done before a batch."""
        kept = still_partial(partial, progress.watermark)
        here = _Boundary(number, self.clock(), progress, plans, kept)
        self._events = []
        self._hear(here)
        if self.migration is not None and (why := self._overdue(self.migration, here)):
            self._end(self.migration, Phase.ABORTED, here, why)
        if self.migration is None and not any(event.phase in ENDED for event in self._events):
            self.migration = self._begin(here)
        turn = self._guarded(self.migration, here) if self.migration else None
        turn = turn or Turn(None, plans, kept, ())
        return replace(turn, events=tuple(self._events))

    def _guarded(self, m: Migration, here: _Boundary) -> Turn | None:
        """Whatever goes wrong with a migration is its end, not the job's."""
        try:
            return self._advance(m, here)
        except Exception as error:  # noqa: BLE001
            self.backend.release()
            self._end(m, Phase.ABORTED, here, _told(error))
            return None

    def adopt(self, migration: Migration | None) -> None:
        """Go on from where a decision says that the migration stands."""
        self.migration = migration
        self._failed = ""

    def changes(self, plans: Mapping[str, Plan]) -> dict[str, Change]:
        """What batches do for the plan to come."""
        if (m := self.migration) is None:
            return {}
        query = m.request.query
        change = Change(target_plan(m.request, plans), frozenset(m.tracked), m.since, m.shown)
        return {query: change}

    def figures(self, plans: Mapping[str, Plan], watermark: int | None) -> dict[str, Any] | None:
        """The migration for those who watch."""
        if (m := self.migration) is None:
            return None
        return {
            "id": m.request.id,
            "query": m.request.query,
            "strategy": m.request.strategy,
            "phase": m.phase,
            "step": m.at,
            "steps": len(m.steps),
            "part": self._part(m, plans, watermark),
            "began": m.began,
        }

    def report(self, events: Sequence[Mapping[str, Any]], number: int) -> None:
        """Log what a decision says has happened, and run the commands that wait for an end."""
        made = [read(Event, event, DECISIONS) for event in events]
        if not made or self.store.last_batch(MIGRATIONS_LOG) >= number:
            return
        for event in made:
            try:
                self.hook(event.after, _about(event, event.phase))
            except HookError as error:
                made.append(replace(event, phase=Phase.HOOK, detail=str(error), after=""))
        append_events(self.store, made, number)

    def work(self, progress: Progress, plans: Mapping[str, Plan], took: float) -> None:
        """Rebuild some more, after a batch that took so many seconds."""
        try:
            self._work(progress, plans, took)
        except Exception as error:  # noqa: BLE001  # the next boundary ends the migration
            self.backend.release()
            self._failed = _told(error)

    def _work(self, progress: Progress, plans: Mapping[str, Plan], took: float) -> None:
        if (m := self.migration) is None:
            self._pace.rest(took)
        elif m.early:
            self._pace.before(*_said(m.request, progress), took)
            here = _Boundary(progress.batch + 1, m.began, progress, plans)
            self.migration = self._through(m, here, _BUILDING)
        elif m.slices is not None and self._filler.lacks(m):
            self._pace.after(took)
            self._filler.fill_some(m, plans)

    # --- requests --------------------------------------------------------------------------------

    def _hear(self, here: _Boundary) -> None:
        """Read requests; a table of them that cannot be read, whoever broke it, is no job's end."""
        try:
            self._read(here)
            self._unread = ""
        except Exception as error:  # noqa: BLE001
            if self._unread != (why := _told(error)):
                self._tell(Request(REQUESTS, here.now, UNREADABLE), Phase.REFUSED, here, why)
            self._unread = why

    def _read(self, here: _Boundary) -> None:
        """Answer what has been asked since the last boundary."""
        if not self._ready:
            self._phases = {event.id: event.phase for event in read_events(self.store)}
            self._ready = True
        known = len(self.store.files(REQUESTS)) if self.store.exists(REQUESTS) else 0
        if known == self._known:
            return
        handled = {id_ for id_, phase in self._phases.items() if phase != Phase.WAITING}
        handled |= {request.id for request in self._waiting}
        running = self.migration.request.id if self.migration else ""
        for request in read_requests(self.store):
            if request.id not in handled and request.id != running:
                handled.add(request.id)
                self._answer(request, here)
            elif request.kind in (POSTPONE, RELEASE):
                self._hold(request)
        self._known = known

    def _answer(self, request: Request, here: _Boundary) -> None:
        if request.kind == UNREADABLE:
            self._tell(request, Phase.REFUSED, here, request.reason)
        elif request.kind != MIGRATE:
            self._steer(request, here)
        elif why := self._unfit(request, here):
            self._tell(request, Phase.REFUSED, here, why)
        else:
            for earlier in [r for r in self._waiting if r.query == request.query]:
                self._waiting.remove(earlier)
                self._tell(earlier, Phase.SUPERSEDED, here, f"by {request.id}")
            self._waiting.append(request)
            if self._phases.get(request.id) != Phase.WAITING:
                self._tell(request, Phase.WAITING, here, _until(request))

    def _unfit(self, request: Request, here: _Boundary) -> str | None:
        """Why a request cannot be accepted."""
        if request.plan is None:
            return "the request names no plan"
        if request.query not in here.plans:
            return f"the job has no query {request.query}: {', '.join(here.plans)}"
        if request.strategy not in MIGRATIONS:
            return f"there is no strategy {request.strategy}: {', '.join(MIGRATIONS)}"
        if self.migration and self.migration.request.query == request.query:
            return f"migration {self.migration.request.id} of {request.query} is under way"
        if request.base and request.base != plan_fingerprint(here.plans[request.query]):
            return "the plan has changed since the request was made"
        return None

    def _steer(self, request: Request, here: _Boundary) -> None:
        """Abort, postpone or release: a migration that waits, or the one under way."""
        target, m = request.target, self.migration
        waiting = next((r for r in self._waiting if r.id == target), None)
        if waiting is not None and request.kind == ABORT:
            self._waiting.remove(waiting)
            self._tell(waiting, Phase.CANCELLED, here, request.reason, by=request.id)
        elif waiting is not None:
            self._hold(request)
        elif m is None or m.request.id != target:
            done = self._phases.get(target)
            why = f"{target} is {done} already" if done else f"there is no migration {target}"
            self._tell(request, Phase.REFUSED, here, why)
            return
        elif request.kind == ABORT:
            self._end(m, Phase.ABORTED, here, request.reason, by=request.id)
        else:
            self.migration = replace(m, held=request.kind == POSTPONE)
        self._tell(request, Phase.DONE, here, f"{request.kind} {target}")

    def _hold(self, request: Request) -> None:
        """Postpone or release a migration that waits; another process has to be told once more."""
        for at, waiting in enumerate(self._waiting):
            if waiting.id == request.target:
                self._waiting[at] = replace(waiting, hold=request.kind == POSTPONE)

    def _tell(
        self, request: Request, phase: str, here: _Boundary, detail: str = "", *, by: str = ""
    ) -> None:
        self._phases[request.id] = phase
        self._events.append(
            Event(
                request.id, request.query, phase, here.number, here.now, detail,
                request.strategy if request.kind == MIGRATE else "",
                by, request.after if phase in ENDED else "",
            )
        )  # fmt: skip

    def _end(self, m: Migration, phase: str, here: _Boundary, detail: str, *, by: str = "") -> None:
        """The migration under way is over; what it built and nobody needs is dropped later."""
        self.migration = None
        self._tell(m.request, phase, here, detail, by=by)

    def _overdue(self, m: Migration, here: _Boundary) -> str | None:
        limit = m.request.limit
        if limit is not None and here.now - m.began >= limit:
            return f"not done within {limit / 1e6:g} s"
        if self._failed:
            return self._failed
        found = here.progress.migration or {}
        wrong = found.get("wrong") if found.get("id") == m.request.id else None
        return str(wrong) if wrong else None

    # --- steps -----------------------------------------------------------------------------------

    def _begin(self, here: _Boundary) -> Migration | None:
        """The next request whose time has come, if it can be done."""
        for request in list(self._waiting):
            if request.at_batch is not None and here.number < request.at_batch:
                continue
            self._waiting.remove(request)
            try:
                steps = self._steps(request, here)
            except Exception as why:  # noqa: BLE001  # a plan of anybody's, and of any shape
                self._tell(request, Phase.REFUSED, here, _told(why))
                continue
            self._tell(request, Phase.BUILDING, here)
            self._pace.before(*_said(request, here.progress))
            return Migration(request, steps, here.now, held=request.hold)
        return None

    def _steps(self, request: Request, here: _Boundary) -> tuple[Step, ...]:
        if why := self._unfit(request, here):
            raise Refused(why)
        context = context_of(request.query, here.plans, here.partial)
        new = target_plan(request, here.plans)
        return with_proof(
            MIGRATIONS[request.strategy](here.plans[request.query], new, context), request.proof
        )

    def _advance(self, m: Migration, here: _Boundary) -> Turn:
        """As far as it can go before this batch."""
        phase, has_just_begun = m.phase, m.began == here.now
        if has_just_begun and m.early and self._pace.rests:
            return self._going_on(m, phase, here)  # there is more time after this batch
        m = self._through(m, here, _BEFORE)
        if not isinstance(m.step, CutOver):
            return self._going_on(m, phase, here)
        if m.held:
            filled = [step.state for step in m.steps if isinstance(step, Fill)]
            return self._going_on(replace(m, tracked=_united(m.tracked, filled)), phase, here)
        return self._cut_over(m, here)

    def _through(self, m: Migration, here: _Boundary, kinds: tuple[type, ...]) -> Migration:
        """The next steps of these kinds, as far as it can go."""
        while isinstance(m.step, kinds):
            m, done = self._carry_out(m, here)
            if not done:
                break
            m = replace(m, at=m.at + 1)
        return m

    def _carry_out(self, m: Migration, here: _Boundary) -> tuple[Migration, bool]:
        """A step, and whether it is done."""
        match m.step:
            case Track(states):
                return replace(m, tracked=_united(m.tracked, states)), True
            case Fill():
                return self._filler.build(m, here.number, here.plans)
            case Parallel(states):
                return self._begin_track(m, states, here), True
            case Wait():
                done = self._outlived(m, here.plans, here.progress.watermark)
                return (replace(m, since=None) if done else m), done
            case Prove(batches):
                begun = m if m.shown else replace(m, shown=True, boundary=here.number - 1)
                done = here.number - 1 - begun.boundary >= batches
                return replace(begun, shown=not done), done
        return m, True

    def _begin_track(self, m: Migration, states: Sequence[str], here: _Boundary) -> Migration:
        """Both plans run: the new one from just past the slowest stream on.

        What is there already that is younger is filled.  Where it cannot be, the new plan begins
        past all that such a state might hold.
        """
        query = m.request.query
        context = context_of(query, here.plans, here.partial)
        found = young(here.plans[query], target_plan(m.request, here.plans), context)
        newest = {name: flow.newest for name, flow in here.progress.streams.items()}
        since, fills = begin_track(found, newest, here.progress.watermark)
        lacking = tuple(fill.state for fill in fills if fill.partial)
        tracked = _united(m.tracked, states)
        m = replace(m, boundary=here.number - 1, since=since, tracked=tracked, lacking=lacking)
        self._filler.fill_young(m, fills, here.plans)
        return m

    def _going_on(self, m: Migration, phase: str, here: _Boundary) -> Turn:
        if m.phase != phase:
            self._tell(m.request, m.phase, here)
        return Turn(m, here.plans, here.partial, ())

    def _cut_over(self, m: Migration, here: _Boundary) -> Turn:
        request = m.request
        self.hook(request.before, _about(request, Phase.READY))
        new = target_plan(request, here.plans)
        self._end(m, Phase.DONE, here, f"{here.plans[request.query]} -> {new}")
        kept = Kept.of(new).retention
        whole = {key: (request.query, here.youngest + 1 + kept[key]) for key in m.partial}
        plans = {**here.plans, request.query: new}
        return Turn(None, plans, {**here.partial, **whole}, ())

    def _outlived(self, m: Migration, plans: Mapping[str, Plan], watermark: int | None) -> bool:
        """Whether no tuple older than the migration can find a partner any more."""
        if m.since is None or m.since == ALWAYS + 1:
            return True
        return (
            watermark is not None
            and watermark >= m.since + plans[m.request.query].query.bounds.longest
        )

    def _part(self, m: Migration, plans: Mapping[str, Plan], watermark: int | None) -> float:
        """How much of the step is done."""
        if m.slices:
            return self._filler.filled(m) / len(m.slices)
        if m.since is not None and watermark is not None:
            longest = max(1, plans[m.request.query].query.bounds.longest)
            return min(1.0, max(0.0, 1 - (m.since + longest - watermark) / longest))
        return 0.0


def still_partial(
    partial: Mapping[str, tuple[str, int]], watermark: int | None
) -> dict[str, tuple[str, int]]:
    """Those states whose older rows have not yet outlived their lack of others."""
    return {
        key: (query, until)
        for key, (query, until) in partial.items()
        if watermark is None or watermark < until
    }


def context_of(
    query: str, plans: Mapping[str, Plan], partial: Mapping[str, tuple[str, int]]
) -> Context:
    """What a job keeps besides the states of one query."""
    available: dict[str, int] = {}
    for name, plan in plans.items():
        if name != query:
            for key, kept in Kept.of(plan).retention.items():
                available[key] = max(kept, available.get(key, 0))
    return Context(available, {key: owner for key, (owner, _) in partial.items()}, query)


def plan_fingerprint(plan: Plan) -> str:
    """A fingerprint of a plan, by which a request says what it was made against."""
    text = dumps(plan_to_json(plan.root), sort_keys=True)
    return sha256(text.encode()).hexdigest()[:16]


def _said(request: Request, progress: Progress) -> tuple[float, float]:
    """Seconds of what a batch computes that the new plan is said to save; and that fills take."""
    computed = progress.ms.get("operators", 0.0) + progress.ms.get("results", 0.0)
    whole = computed + progress.ms.get("write", 0.0)
    return request.saves * computed / 1000, request.takes * whole / 1000


def _about(one: Request | Event, phase: str) -> dict[str, str]:
    """What a command is told."""
    return {
        "MIDSTREAM_MIGRATION": one.id,
        "MIDSTREAM_QUERY": one.query,
        "MIDSTREAM_STRATEGY": one.strategy,
        "MIDSTREAM_PHASE": phase,
    }


def _united(known: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*known, *more]))


def _until(request: Request) -> str:
    return f"until batch {request.at_batch}" if request.at_batch is not None else ""


def _told(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
