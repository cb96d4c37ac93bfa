"""What a job has done and decided: the small tables that make a batch happen exactly once.

`control/decisions` holds what a batch decides before anything is done, so that a replay decides the
same; `control/progress` gets one row when a batch is done, the consistent cut that anything else
reads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from json import dumps
from typing import Any

import pyarrow as pa

from jobs.tables.names import DECISIONS, PROGRESS
from jobs.tables.rows import read, said
from jobs.tables.store import Store

_SCHEMA = pa.schema([("batch", pa.int64()), ("content", pa.string())])


@dataclass(frozen=True)
class BatchDecision:
    """What a batch takes as given, so that a replay of it decides the same."""

    batch: int
    clock: int
    """The time at which it began, in microseconds."""
    plans: Mapping[str, Any] = field(default_factory=dict)
    """For each query, the plan that computes it, as JSON: the commit of another one cuts over."""
    migration: Mapping[str, Any] | None = None
    """Where the migration under way stands."""
    partial: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """States whose older rows hold only what one query needs, until a watermark."""
    events: Sequence[Mapping[str, Any]] = ()
    """What has just become of migrations."""

    @classmethod
    def from_text(cls, content: str) -> "BatchDecision":
        """What a row of the table holds."""
        return read(cls, said(content, DECISIONS), DECISIONS)


@dataclass(frozen=True)
class StreamStats:
    """A stream in a batch."""

    rows: int = 0
    late: int = 0
    rejected: int = 0
    newest: int | None = None
    """The largest event time seen so far, in microseconds."""
    seen: int | None = None
    """When the stream last delivered anything, by the job's clock."""


@dataclass(frozen=True)
class OperatorStats:
    """An operator in a batch."""

    rows: int
    state_rows: int
    state_bytes: int
    ms: float


@dataclass(frozen=True)
class Noted:
    """A table after its last commit by a batch."""

    batch: int
    version: int
    outside: str = ""
    """Where it is, if it does not lie under the storage."""
    rows: int | None = None
    """Of a state; other tables are their readers' too."""


@dataclass(frozen=True)
class BatchResources:
    """What is to be seen around a batch, and the engine cannot know; nothing if nobody looks."""

    cpu: float | None = None
    """CPU-seconds of all the job's processes since the batch before was done."""
    memory: int | None = None
    """Bytes that they hold."""
    backlog: int | None = None
    """Files and versions that wait; nothing where counting them takes long."""
    taken: Mapping[str, Mapping[str, Any] | None] | None = None
    """For each stream, where its source stands: Spark's checkpoint forgets that after a while."""


@dataclass(frozen=True)
class Progress(BatchResources):
    """A batch that is done, and where it leaves the job."""

    batch: int = -1
    watermark: int | None = None
    """The watermark of the next batch, in microseconds; none before every stream has spoken."""
    streams: Mapping[str, StreamStats] = field(default_factory=dict)
    operators: Mapping[str, OperatorStats] = field(default_factory=dict)
    results: Mapping[str, int] = field(default_factory=dict)
    emitted: Mapping[str, int] = field(default_factory=dict)
    """For each query with windows, the end of those that have been emitted."""
    plans: Mapping[str, Any] = field(default_factory=dict)
    """For each query, the plan that computed the batch, as JSON."""
    tables: Mapping[str, "Noted"] = field(default_factory=dict)
    """What tables held when the batch was done: they must not hold less when the job goes on."""
    queries: Mapping[str, str] = field(default_factory=dict)
    """For each query, what it computes: a job cannot go on with another one."""
    ms: Mapping[str, float] = field(default_factory=dict)
    """How long the phases of the batch took."""
    migration: Mapping[str, Any] | None = None
    """The migration under way, in figures for those who watch it."""
    events: Sequence[Mapping[str, Any]] = ()
    """What became of migrations before the batch."""
    finished: int = 0
    """When the batch was done, by the job's clock."""


def record(store: Store, table: str, value: BatchDecision | Progress) -> None:
    """Append a row to a control table, unless its batch is there already."""
    row = pa.table(
        {"batch": [value.batch], "content": [dumps(asdict(value))]}, schema=_SCHEMA
    )  # fmt: skip
    store.create(table, _SCHEMA)
    store.commit(table, [store.put(table, row, name=f"{value.batch:012d}")], value.batch)


def decided(store: Store, batch: int) -> BatchDecision | None:
    """What a batch decided before it was interrupted."""
    if store.last_batch(DECISIONS) < batch:
        return None
    return read(BatchDecision, _content(store, DECISIONS, batch), DECISIONS)


def latest(store: Store) -> BatchDecision | None:
    """The newest decision: of the last batch that is done, or of one that was interrupted."""
    content = _newest(store, DECISIONS)
    return read(BatchDecision, content, DECISIONS) if content else None


def last(store: Store) -> Progress:
    """The newest batch that is done."""
    content = _newest(store, PROGRESS)
    return _progress(content) if content else Progress()


def history(store: Store) -> list[Progress]:
    """All batches done, the oldest first."""
    if not store.exists(PROGRESS):
        return []
    rows = store.load(PROGRESS).sort_by("batch").to_pylist()
    return [_progress(said(row["content"], PROGRESS)) for row in rows]


def _content(store: Store, table: str, batch: int) -> dict[str, Any]:
    content = _newest(store, table)
    if content is None or content["batch"] != batch:
        raise LookupError(f"{table} has no row of batch {batch}")
    return content


def _newest(store: Store, table: str) -> dict[str, Any] | None:
    """The last row, in one look: a job that runs may add another at any time."""
    if store.version(table) < 1:
        return None
    (row,) = store.newest(table).to_pylist()
    return said(row["content"], table)


def _progress(content: dict[str, Any]) -> Progress:
    flows, works = content.get("streams", {}), content.get("operators", {})
    content["streams"] = {name: read(StreamStats, flow, PROGRESS) for name, flow in flows.items()}
    tables = content.get("tables", {}).items()
    content["tables"] = {name: read(Noted, noted, PROGRESS) for name, noted in tables}
    content["operators"] = {key: read(OperatorStats, work, PROGRESS) for key, work in works.items()}
    return read(Progress, content, PROGRESS)
