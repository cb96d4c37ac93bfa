"""Migrations as a job's control tables tell of them, and what can be asked about one.

Read and written by anyone, without Spark; the job answers between two batches.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from getpass import getuser
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from jobs.documents import check, read
from jobs.errors import InputError, RefusedError
from jobs.status import SECOND, KnownJob, moment, notation, recent
from jobs.tables.job_store import JobStore
from jobs.tables.lease import holder
from jobs.tables.names import DECISIONS
from jobs.tables.paths import local
from jobs.tables.phases import FINAL, Phase
from jobs.tables.progress import BatchDecision, latest
from jobs.tables.requests import MIGRATE, UNREADABLE, Event, Request, read_events, read_requests
from jobs.words import unknown

PHASES: Mapping[str, str] = {
    Phase.REQUESTED: "the job has not read it yet: it does so before its next batch",
    Phase.WAITING: "accepted, not begun",
    Phase.BUILDING: "new states are filled, the old plan serves",
    Phase.TRACKING: "both plans run until no older tuple can join any more",
    Phase.PROVING: "the new plan shadows the old one, their results are compared",
    Phase.READY: "everything is there, the cut-over is held until it is released",
    Phase.DONE: "the new plan runs",
    Phase.ABORTED: "the old plan runs, as before",
    Phase.REFUSED: "the old plan runs, nothing was begun",
    Phase.SUPERSEDED: "a newer request took its place",
    Phase.CANCELLED: "withdrawn before it began",
}
"""Where a migration stands, and what that means."""

WORK = ("fill", "wait", "prove")
"""The steps that take time."""


@dataclass(frozen=True)
class Record:
    """A migration that was asked for, what became of it, and what else was asked about it."""

    request: Request
    events: tuple[Event, ...]
    steered: tuple[tuple[Request, Event | None], ...]

    @property
    def phase(self) -> str:
        """Where it stands."""
        return next((e.phase for e in reversed(self.events) if e.phase in PHASES), Phase.REQUESTED)

    def event(self, phase: str) -> Event:
        """When it came to a phase."""
        return next(event for event in self.events if event.phase == phase)

    @property
    def ended(self) -> bool:
        """Whether nothing more happens."""
        return self.phase in FINAL

    @property
    def begun(self) -> bool:
        """Whether it is being carried out."""
        return not self.ended and self.phase not in (Phase.REQUESTED, Phase.WAITING)


def records(store: JobStore) -> list[Record]:
    """All migrations, the oldest first."""
    events = read_events(store)
    answers = {event.id: event for event in events}
    requests = read_requests(store)
    return [
        Record(
            one,
            tuple(event for event in events if event.id == one.id),
            tuple((r, answers.get(r.id)) for r in requests if r.target == one.id),
        )
        for one in requests
        if one.kind in (MIGRATE, UNREADABLE)
    ]


def pick(found: Sequence[Record], id_: str | None) -> Record:
    """The one of that id; without, the one under way, or else the newest."""
    if not found:
        raise RefusedError("nothing has been migrated yet: `midstream migrate` asks for it")
    if id_ is None:
        begun = [record for record in found if record.begun]
        return (begun or list(found))[-1]
    named = [record for record in found if record.request.id == id_]
    if not named:
        ids = [record.request.id for record in found]
        raise InputError(unknown("migration", id_, ids[-5:]), "ID")
    return named[0]


def new_id(now: int, what: str) -> str:
    """An id that sorts by time: `261118-165733-042-paid`."""
    made = datetime.fromtimestamp(now / SECOND, UTC)
    return f"{made:%y%m%d-%H%M%S}-{made.microsecond // 1000:03d}-{what}"


USER = "MIDSTREAM_USER"
"""Who asks, where a program asks for a person."""


def user() -> str:
    """Who asks."""
    if named := os.environ.get(USER):
        return named
    try:
        return getuser()
    except (KeyError, OSError):
        return ""


def plan_before(store: JobStore, record: Record) -> Mapping[str, Any] | None:
    """The plan that runs, or ran until the migration ended; none if there is no trace of it."""
    query = record.request.query
    if not record.ended:
        decision = latest(store)
        return decision.plans.get(query) if decision else None
    over = record.event(record.phase)
    batch = over.batch - (over.phase == Phase.DONE)
    decisions = store.load(DECISIONS)
    found = decisions.filter(pc.equal(decisions.column("batch"), batch)).to_pylist()
    plans = BatchDecision.from_text(found[-1]["content"]).plans if found else {}
    plan: Mapping[str, Any] | None = plans.get(query)
    return plan


# --- status --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Watched:
    """A job whose migrations are looked at."""

    storage: Path
    store: JobStore
    _before: dict[tuple[str, str], Mapping[str, Any] | None] = field(default_factory=dict)
    """The plan before a migration in its phase: looked up once, however often it is looked at."""

    @classmethod
    def of(cls, file: Path) -> "Watched":
        """The job of a file, of which no more is read than where it keeps its tables."""
        storage = local(check(KnownJob, read(file)).storage)
        return cls(storage, JobStore(storage))

    @property
    def running(self) -> bool:
        """Whether a process runs it now."""
        return holder(self.storage) is not None

    def find(self, id_: str | None) -> Record:
        """A migration as it stands now."""
        return pick(records(self.store), id_)

    def status(self, id_: str | None) -> dict[str, Any]:
        """All that is known of a migration."""
        record = self.find(id_)
        request = record.request
        return {
            "id": request.id,
            "query": request.query,
            "phase": record.phase,
            "means": PHASES[record.phase],
            "ended": record.ended,
            **self._plans(record),
            "strategy": request.strategy,
            "asked": moment(request.at),
            "by": request.by,
            "reason": request.reason,
            "proof": request.proof,
            "at_batch": request.at_batch,
            "limit_seconds": None if request.limit is None else request.limit / SECOND,
            "running": self.running,
            **self._progress(record),
            "events": [_event(event) for event in record.events],
            "requests": [_steered(*one) for one in record.steered],
        }

    def _plans(self, record: Record) -> dict[str, str | None]:
        """From which plan to which."""
        known = record.request.id, record.phase
        if known not in self._before:
            self._before[known] = plan_before(self.store, record)
        before, new = self._before[known], record.request.plan
        return {
            "from": notation(before) if before else None,
            "to": _wished(new) if new else None,
        }

    def _progress(self, record: Record) -> dict[str, Any]:
        """How far it is, and how long the rest takes at the pace of the last batches."""
        nothing = {"held": None, "step": None, "steps": None, "progress": None, "eta_seconds": None}
        decision = latest(self.store)
        now = decision.migration if decision else None
        if now is None or not record.begun or now["request"]["id"] != record.request.id:
            return nothing
        points = [
            (batch["finished"] / SECOND, share(now, batch["migration"], batch["batch"]))
            for batch in recent(self.storage)
            if (batch.get("migration") or {}).get("id") == record.request.id
        ]
        done = points[0][1] if points else 0.0
        return {
            "held": now["held"],
            "step": now["at"] + 1,
            "steps": len(now["steps"]),
            "progress": round(done, 3),
            "eta_seconds": remaining(points)
            if self.running and record.phase != Phase.READY
            else None,
        }


def _wished(plan: Mapping[str, Any]) -> str:
    """The notation of a plan that anybody may have written down."""
    try:
        return notation(plan.get("root", plan))
    except (LookupError, TypeError, AttributeError, RecursionError):
        return "what is no plan"


def share(migration: Mapping[str, Any], figures: Mapping[str, Any], batch: int) -> float:
    """How much of the work is done, as of a batch; each step that takes time counts alike."""
    steps, at = migration["steps"], figures["step"]
    work = [step["step"] in WORK for step in steps]
    part = figures["part"]
    if steps[at]["step"] == "prove" and migration["boundary"] >= 0:
        part = min(1.0, max(0.0, (batch - migration["boundary"]) / steps[at]["batches"]))
    done: float = sum(work[:at]) + part * work[at]
    return done / sum(work) if any(work) else 1.0


def remaining(points: Sequence[tuple[float, float]]) -> float | None:
    """Seconds until all is done, from times and shares, the newest first."""
    if len(points) < 2:
        return None
    (last, done), (first, before) = points[0], points[-1]
    if last <= first or done <= before:
        return None
    return round((1 - done) * (last - first) / (done - before), 1)


def _event(event: Event) -> dict[str, Any]:
    return {
        "phase": event.phase,
        "batch": event.batch,
        "at": moment(event.at),
        "detail": event.detail,
        "by": event.by,
    }


def _steered(request: Request, answer: Event | None) -> dict[str, Any]:
    return {
        "id": request.id,
        "kind": request.kind,
        "asked": moment(request.at),
        "by": request.by,
        "reason": request.reason,
        "answer": answer and answer.phase,
        "detail": answer.detail if answer else "",
    }
