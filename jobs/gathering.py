"""What statistics are made of: a job's tables and the input that it read, window by window.

Of the past only as much is read as the windows need: the batches that may have taken in tuples of
them, and those that belong to them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jobs.errors import RefusedError
from jobs.sources.checkpoint import OffsetRange, Position
from jobs.sources.inputs import InputStream
from jobs.specs import MICROSECOND, Job
from jobs.status import moment
from jobs.streaming import job_store, streams
from jobs.tables.columns import ALWAYS, BATCH, REASON
from jobs.tables.history import History
from jobs.tables.names import DECISIONS, PROGRESS
from jobs.tables.paths import local
from jobs.tables.progress import StreamStats
from jobs.tables.rows import read
from optimizer.query import Stream
from stats.collect import Input, Subject, collect
from stats.store import GATHERED, StatsStore, Window
from stats.windows import (
    Batch,
    Counted,
    Worked,
    at,
    complete,
    holds,
    home,
    portions,
    stretches,
    within,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MANY = 64
"""Windows whose batches are held in memory together."""

ROWS = 12_000_000
"""Tuples that are counted together."""


@dataclass(frozen=True)
class Range:
    """Which windows are wanted: those of a stretch of time, that are not there yet or all."""

    since: int | None = None
    until: int | None = None
    again: bool = False


class Gathering:
    """A job's windows: which are complete, which have been gathered, and how to gather more."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.stats = StatsStore.of(local(job.storage))
        self.size = job.statistics.window // MICROSECOND
        self._store = job_store(job)
        self._done = History(self._store, PROGRESS)
        self._begun = History(self._store, DECISIONS)
        if self._done.last < 0:
            raise RefusedError(f"job {job.job} has not finished a batch yet")

    @cached_property
    def complete(self) -> list[Window]:
        """The windows after which no batch that begins can change anything, and worth keeping."""
        first = self._done.first(lambda batch: batch["watermark"] is not None)
        if first >= self._begun.last:
            return []
        (begins,) = self._done.between(first, first)
        last = min(self._begun.last - 1, self._done.last)
        (reached,) = self._done.between(last, last)
        found = complete(begins["watermark"], reached["watermark"], self.size)
        kept = self.job.statistics.keep // MICROSECOND
        return within(found, found[-1].end - kept, None) if found else []

    @cached_property
    def _first(self) -> Window:
        first = self._done.first(lambda batch: batch["watermark"] is not None)
        (begins,) = self._done.between(first, first)
        return at(begins["watermark"], self.size)

    def wanted(self, span: Range) -> list[Window]:
        """The complete windows of a range; without those that are there already."""
        there = set() if span.again else set(self.stats.windows())
        found = within(self.complete, span.since, span.until)
        return [window for window in found if window not in there]

    def why(self, span: Range) -> str:
        """Why no window is wanted."""
        if not self.complete:
            return (
                "no window is complete yet; one is when a batch begins whose watermark is past it"
            )
        if not within(self.complete, span.since, span.until):
            first, last = moment(self.complete[0].start), moment(self.complete[-1].end)
            return f"the complete windows are from {first} to {last}"
        return "every complete window is there (--again gathers them anew)"

    def gather(
        self, spark: "SparkSession", windows: Sequence[Window], told: Callable[[int, int], None]
    ) -> None:
        """Gather windows, those that are there already as well; `told` hears how many are done."""
        done = 0
        told(done, len(windows))
        inlets = streams(self.job)
        for stretch in stretches(windows, MANY):
            batches = self._batches(inlets, stretch)
            for portion in portions(stretch, self._rows(batches), ROWS):
                self._gather(spark, inlets, portion, batches)
                done += len(portion)
                told(done, len(windows))

    # --- batches ---------------------------------------------------------------------------------

    def _batches(self, inlets: Sequence[InputStream], windows: Sequence[Window]) -> "list[_Taken]":
        """The batches that may hold tuples of windows, or belong to them."""
        start, end = windows[0].start, windows[-1].end
        names = [inlet.stream.name for inlet in inlets]
        firsts = [self._done.first(lambda b, n=name: _newest(b, n) >= start) for name in names]  # type: ignore[misc]
        belongs = self._done.first(lambda batch: _mark(batch) >= start) + 1
        first = 0 if windows[0] == self._first else min(*firsts, belongs)
        last = min(self._done.first(lambda batch: _mark(batch) >= end), self._done.last)
        rows = self._done.between(max(0, first - 1), last)
        clocks = {row["batch"]: row["clock"] for row in self._begun.between(first, last)}
        before: Mapping[str, Any] | None = rows.pop(0) if first > 0 else None
        found = []
        for row in rows:
            found.append(_Taken.of(inlets, before, row, clocks[row["batch"]]))
            before = row
        return found

    def _rows(self, batches: "Sequence[_Taken]") -> dict[Window, int]:
        """About how many tuples windows have."""
        found: dict[Window, int] = {}
        for taken in batches:
            place = home(taken.batch, self._first, self.size)
            rows = sum(counted.accepted for counted in taken.batch.streams.values())
            found[place] = found.get(place, 0) + rows
        return found

    # --- input -----------------------------------------------------------------------------------

    def _gather(
        self,
        spark: "SparkSession",
        inlets: Sequence[InputStream],
        windows: Sequence[Window],
        batches: "Sequence[_Taken]",
    ) -> None:
        inputs = {
            inlet.stream.name: self._input(spark, inlet, windows, batches) for inlet in inlets
        }
        queries = {name: self.job.query(name) for name in self.job.queries}
        figures = [taken.batch for taken in batches]
        found = collect(spark, Subject(windows, self._first, inputs, queries, figures))
        for table in GATHERED:  # the last of them says that a window is there
            self.stats.replace_all(table, found[table])

    def _input(
        self,
        spark: "SparkSession",
        inlet: InputStream,
        windows: Sequence[Window],
        batches: "Sequence[_Taken]",
    ) -> Input:
        """A stream's tuples that were accepted, as the job decided then."""
        name = inlet.stream.name
        wanted = [
            number
            for number, taken in enumerate(batches)
            if holds(taken.batch, name, windows)
            or home(taken.batch, self._first, self.size) in windows
        ]
        some = batches[min(wanted) : max(wanted) + 1] if wanted else []
        parts = [taken.part(name) for taken in some]
        raw = inlet.source.again(spark, inlet.taken, parts)
        return Input(
            inlet.stream,
            self._accepted(raw, inlet.stream, some),
            inlet.source.count(spark, inlet.taken, parts),
        )

    def _accepted(
        self, raw: "DataFrame", stream: Stream, batches: "Sequence[_Taken]"
    ) -> "DataFrame":
        """All of them mostly, which the batches say: then tuples are not looked at one by one."""
        if not any(taken.batch.aside(stream.name) for taken in batches):
            return raw
        ahead = self.job.streams[stream.name].ahead // MICROSECOND
        limits = [(t.batch.number, t.earliest, t.clock + ahead) for t in batches]
        decided = raw.sparkSession.createDataFrame(
            limits, f"`{BATCH}` BIGINT, `@from` BIGINT, `@to` BIGINT"
        )
        time = f"unix_micros(`{stream.event_time}`)"
        return raw.join(decided.hint("broadcast"), BATCH).where(
            f"`{REASON}` IS NULL AND {time} BETWEEN `@from` AND `@to`"
        )


@dataclass(frozen=True)
class _Taken:
    """A batch, when it began, and what it took of each stream."""

    batch: Batch
    clock: int
    parts: Mapping[str, OffsetRange]

    @classmethod
    def of(
        cls,
        inlets: Sequence[InputStream],
        before: Mapping[str, Any] | None,
        row: Mapping[str, Any],
        clock: int,
    ) -> "_Taken":
        """What a row of the progress says, and the one before."""
        number = row["batch"]
        parts = {
            inlet.stream.name: OffsetRange(number, _position(inlet, before), _position(inlet, row))
            for inlet in inlets
        }
        return cls(_batch(before, row), clock, parts)

    @property
    def earliest(self) -> int:
        """What is older came too late."""
        return ALWAYS if self.batch.watermark is None else self.batch.watermark

    def part(self, stream: str) -> OffsetRange:
        return self.parts[stream]


def _position(inlet: InputStream, row: Mapping[str, Any] | None) -> Position | None:
    """Where a source stood after a batch."""
    if row is None:
        return None
    if row.get("taken") is not None:
        found: Position | None = row["taken"][inlet.stream.name]
        return found
    if not inlet.taken.knows(row["batch"]):
        raise RefusedError(
            f"what batch {row['batch']} took cannot be read again: Spark has forgotten it, and "
            "the job did not note it yet; ask for later windows with --from"
        )
    return inlet.taken.position(row["batch"])


def _batch(before: Mapping[str, Any] | None, row: Mapping[str, Any]) -> Batch:
    """A row of the progress as statistics see it."""
    emitted = (before or {}).get("emitted", {})
    return Batch(
        number=row["batch"],
        watermark=before["watermark"] if before else None,
        after=row["watermark"],
        finished=row["finished"],
        since=before["finished"] if before else None,
        ms=sum(row.get("ms", {}).values()),
        cpu=row.get("cpu"),
        memory=row.get("memory"),
        backlog=row.get("backlog"),
        streams={
            name: Counted(flow.rows, flow.late, flow.rejected, flow.newest)
            for name, counted in row.get("streams", {}).items()
            for flow in [read(StreamStats, counted, PROGRESS, later=True)]
        },
        operators={
            key: read(Worked, work, PROGRESS, later=True)
            for key, work in row.get("operators", {}).items()
        },
        results=row.get("results", {}),
        emitted={
            q: (emitted[q], until) for q, until in row.get("emitted", {}).items() if q in emitted
        },
    )


def _mark(row: Mapping[str, Any]) -> int:
    """The watermark that a batch leaves."""
    return ALWAYS if row["watermark"] is None else int(row["watermark"])


def _newest(row: Mapping[str, Any], stream: str) -> int:
    """The largest event time that a batch leaves."""
    newest = row["streams"].get(stream, {}).get("newest")
    return ALWAYS if newest is None else int(newest)
