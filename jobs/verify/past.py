"""What a job's own tables say of its batches: when each began, where its sources stood, what ran.

Read here without the engine's code: only the names of the tables are shared.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from json import loads
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from deltalake import DeltaTable

from jobs.errors import RefusedError
from jobs.specs import Job
from jobs.tables.definitions import Definition, definitions
from jobs.tables.origin import origin
from jobs.verify.verdict import CannotTellError

Position = Mapping[str, Any]
"""Where a source stands, as Spark writes it down."""


@dataclass(frozen=True)
class Batch:
    """A batch that is done."""

    number: int
    clock: int
    """When it began, in microseconds."""
    watermark: int | None
    """The one that it left to the next."""
    taken: Mapping[str, Position | None]
    """Where each stream's source stood at its end."""
    queries: Mapping[str, str]
    """The fingerprint of each query that it computed."""
    newest: Mapping[str, int | None]
    """The newest event time of each stream so far."""
    seen: Mapping[str, int | None]
    """When each stream last delivered anything."""


@dataclass(frozen=True)
class Stretch:
    """Batches that ran by the same definition, from the first to the last."""

    job: Job
    first: int
    last: int


@dataclass(frozen=True)
class Past:
    """All batches of a job up to one, and the definitions by which they ran."""

    storage: Path
    batches: tuple[Batch, ...]
    stretches: tuple[Stretch, ...]
    started: int
    """When the job first ran, in microseconds."""
    streams: tuple[str, ...]
    """In the order in which Spark numbers their sources."""
    writer: str
    """By which name the storage commits to tables."""
    begin: int = 0
    """The first batch whose input is read again."""
    judged: int = 0
    """The first batch whose results are judged."""

    @property
    def before(self) -> Batch | None:
        """The one before what is read again."""
        return self.batches[self.begin - 1] if self.begin else None

    @property
    def last(self) -> int:
        """The last batch that is done."""
        return self.batches[-1].number

    @property
    def job(self) -> Job:
        """By which the last batch ran."""
        return self.stretches[-1].job

    def since(self, query: str) -> int | None:
        """The first of the batches up to the last that computed what the query is now."""
        first = None
        for batch in reversed(self.batches):
            if batch.queries.get(query) != self.batches[-1].queries.get(query):
                break
            first = batch.number
        return first if query in self.batches[-1].queries else None

    def from_batch(self, first: int, longest: int) -> "Past":
        """The same, of which only what batches from that one on put out is judged.

        Older input is needed as far as it may still find a partner then, or belong to a window
        that was not complete: that is the longest time before the watermark.
        """
        if first == 0:
            return self
        mark = self.batches[first - 1].watermark
        needed = (
            b.number for b in self.batches[:first] if mark is None or _reaches(b, mark - longest)
        )
        return replace(self, judged=first, begin=min(needed, default=first))

    def position(self, stream: str, batch: int) -> Position | None:
        """Where a stream's source stood at the end of a batch."""
        return self.batches[batch].taken.get(stream) if batch >= 0 else None


def past(job: Job) -> Past:
    """What has become of a job so far."""
    storage = Path(job.storage)
    began, done = origin(storage), _rows(storage / "control/progress")
    if began is None or not done:
        raise RefusedError("there is nothing to verify: the job has not finished a batch yet")
    clocks = {number: row["clock"] for number, row in _rows(storage / "control/decisions").items()}
    last = max(done)
    if lost := sorted({*range(last + 1)} - (done.keys() & clocks.keys())):
        raise CannotTellError(f"control/ has no row of batch {lost[0]}: restore the storage")
    return Past(
        storage,
        tuple(_batch(done[number], clocks[number]) for number in range(last + 1)),
        tuple(_stretches(job, definitions(storage), last)),
        began.started,
        tuple(began.streams),
        began.writer,
    )


def _rows(table: Path) -> dict[int, dict[str, Any]]:
    """The rows of a control table by batch."""
    if not DeltaTable.is_deltatable(str(table)):
        return {}
    rows = DeltaTable(table).to_pyarrow_table().to_pylist()
    return {row["batch"]: loads(row["content"]) for row in rows}


def _batch(row: Mapping[str, Any], clock: int) -> Batch:
    if row.get("taken") is None:
        raise CannotTellError(f"control/progress does not say what batch {row['batch']} took")
    flows = row["streams"]
    return Batch(
        row["batch"], clock, row["watermark"], row["taken"], row["queries"],
        {name: flow["newest"] for name, flow in flows.items()},
        {name: flow["seen"] for name, flow in flows.items()},
    )  # fmt: skip


def _reaches(batch: Batch, time: int) -> bool:
    """Whether any stream may have brought that event time, or a newer one, by then."""
    return any(newest is not None and newest >= time for newest in batch.newest.values())


def _stretches(job: Job, noted: list[Definition], last: int) -> Iterator[Stretch]:
    known = [one for one in noted if one.since <= last]
    if not known or known[0].since > 0:
        raise CannotTellError(
            "control/definitions.json does not say by which job file the batches ran: restore it"
        )
    ends = [*(one.since - 1 for one in known[1:]), last]
    for one, end in zip(known, ends, strict=True):
        yield Stretch(one.of(job), one.since, end)


# --- Spark's own log of files --------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """A file that Spark's source has found."""

    path: Path
    number: int
    modified: int
    """When it was last changed, in milliseconds, as Spark saw it."""


def found(past: Past, stream: str) -> dict[int, list[Found]]:
    """The files of a stream by the number of their log entry, which positions refer to."""
    log = past.storage / "checkpoint/sources" / str(past.streams.index(stream))
    entries: dict[int, dict[str, Found]] = {}
    for file in sorted(log.iterdir()) if log.exists() else ():
        if file.name.removesuffix(".compact").isdigit():
            for one in _entries(file):
                entries.setdefault(one.number, {})[str(one.path)] = one
    return {number: list(files.values()) for number, files in entries.items()}


def _entries(log: Path) -> Iterator[Found]:
    _version, *lines = log.read_text(encoding="utf-8").splitlines()
    for entry in map(loads, lines):
        path = Path(unquote(urlsplit(entry["path"]).path))
        yield Found(path, int(entry["batchId"]), int(entry["timestamp"]))
