"""What people and schedules ask of a running job: rows of a control table that anyone may append.

The job reads them between two batches, and says in `control/migrations` what became of each.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from json import dumps
from typing import Annotated, Any

import pyarrow as pa
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from jobs.tables.names import MIGRATIONS, REQUESTS
from jobs.tables.rows import read, said
from jobs.tables.store import Store

_REQUESTS = pa.schema([("id", pa.string()), ("at", pa.int64()), ("content", pa.string())])
_EVENTS = pa.schema([("batch", pa.int64()), ("content", pa.string())])

MIGRATE, ABORT, POSTPONE, RELEASE = "migrate", "abort", "postpone", "release"
UNREADABLE = "unreadable"
"""The kind of a row that says nothing, or nothing that this version knows: it is refused."""


@dataclass(frozen=True)
class Request:
    """A wish; `target` is the migration that all kinds but `migrate` are about."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    id: str
    at: int
    """When it was made, in microseconds."""
    kind: Annotated[str, Field(pattern="^(migrate|abort|postpone|release)$")] = MIGRATE
    target: str = ""
    query: str = ""
    plan: Mapping[str, Any] | None = None
    base: str = ""
    """The fingerprint of the plan that it was made against."""
    strategy: str = "auto"
    proof: int = 0
    """For how many batches the new plan must agree before the cut-over."""
    hold: bool = False
    """Whether the cut-over waits until it is released."""
    at_batch: int | None = None
    limit: int | None = None
    """After how many microseconds the migration gives up by itself."""
    saves: float = 0.0
    """What share of a batch's work the new plan is said to save, from 0 to 1."""
    takes: float = 0.0
    """What share of a batch's work filling states is said to take; 0 if nobody knows."""
    before: str = ""
    """A command to run before the cut-over; if it fails, there is none."""
    after: str = ""
    reason: str = ""
    by: str = ""


@dataclass(frozen=True)
class Event:
    """What became of a migration."""

    id: str
    query: str
    phase: str
    batch: int
    """The batch before which it happened."""
    at: int
    detail: str = ""
    strategy: str = ""
    by: str = ""
    """The request, if another one, that it answers."""
    after: str = ""
    """A command to run once this is certain."""


def append_request(store: Store, request: Request) -> None:
    """Append a request; asking again with the same id changes nothing."""
    row = pa.table(
        {"id": [request.id], "at": [request.at], "content": [dumps(asdict(request))]},
        schema=_REQUESTS,
    )
    store.create(REQUESTS, _REQUESTS)
    store.commit(REQUESTS, [store.put(REQUESTS, row)], 0, writer=f"request-{request.id}")
    store.sync()


def read_requests(store: Store) -> list[Request]:
    """All requests, the oldest first, whatever anybody has written there."""
    if not store.exists(REQUESTS):
        return []
    rows = store.load(REQUESTS).sort_by([("at", "ascending"), ("id", "ascending")]).to_pylist()
    return [_request(row["id"] or "", row["at"] or 0, row["content"] or "") for row in rows]


def _request(id_: str, at: int, content: str) -> Request:
    """What a row asks for; what cannot be read is a request of its own kind, for this reason."""
    try:
        request = _READER.validate_json(content)
    except ValidationError as error:
        return Request(id_ or "without an id", at, UNREADABLE, reason=_wrong(error))
    if request.id != id_:
        return Request(id_, at, UNREADABLE, reason=f"its id is {request.id!r} elsewhere in its row")
    return request


def _wrong(error: ValidationError) -> str:
    """What is wrong with a row, field by field."""
    found = error.errors(include_url=False, include_input=False)
    words = (": ".join([*map(str, one["loc"]), one["msg"]]) for one in found)
    return "it cannot be read by this version: " + "; ".join(words)


_READER = TypeAdapter(Request)


def append_events(store: Store, events: list[Event], batch: int) -> None:
    """Append what happened before a batch, once."""
    if not events:
        return
    contents = [dumps(asdict(event)) for event in events]
    rows = pa.table({"batch": [batch] * len(events), "content": contents}, schema=_EVENTS)
    store.create(MIGRATIONS, _EVENTS)
    store.commit(MIGRATIONS, [store.put(MIGRATIONS, rows)], batch)


def read_events(store: Store) -> list[Event]:
    """All that happened, in its order."""
    if not store.exists(MIGRATIONS):
        return []
    rows = sorted(store.load(MIGRATIONS).to_pylist(), key=lambda row: row["batch"])
    events = (said(row["content"], MIGRATIONS) for row in rows)
    return [read(Event, event, MIGRATIONS, later=True) for event in events]
