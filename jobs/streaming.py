"""The streaming job: one Spark query over all streams, every micro-batch handed to the engine.

Spark says which rows are batch number B and asks for B again until it is done; the engine makes
asking twice harmless.  So a run may end anywhere, and the next one goes on.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import partial
from json import dumps, loads
from pathlib import Path
from shutil import rmtree
from threading import Lock
from time import monotonic, time_ns
from typing import TYPE_CHECKING, Any

from jobs.backends.duckdb.backend import DuckBackend
from jobs.backends.spark.backend import SparkBackend
from jobs.backends.spark_duckdb.backend import SparkDuckBackend
from jobs.engine.batch_worker import SerialWorker
from jobs.engine.ingest import Ingest
from jobs.engine.inline_compaction import tidy
from jobs.engine.microbatch import Engine
from jobs.engine.microbatch import Job as EngineJob
from jobs.engine.resource_monitor import ResourceMonitor
from jobs.errors import InputError, RefusedError
from jobs.sources.checkpoint import CheckpointOffsets, noted, rewind_unfinished_batch
from jobs.sources.files import FilesSource
from jobs.sources.inputs import (
    InputStream,
    as_arrow,
    as_files,
    as_frames,
    input_streams,
    read_by_spark,
    read_in_place,
    rescued,
    union_of_streams,
)
from jobs.spark import DRIVER_JVM, QUICK_JVM, has_ended, session
from jobs.specs import MICROSECOND, Job
from jobs.streaming_errors import MOMENT, explained
from jobs.tables.damage import note, whole
from jobs.tables.definitions import FILE as DEFINITIONS
from jobs.tables.definitions import definitions, with_definition
from jobs.tables.durability import mend, replace, sync
from jobs.tables.inventory import is_here
from jobs.tables.job_store import JobStore, checkpoint
from jobs.tables.lease import lease
from jobs.tables.names import CONTROL, result_table
from jobs.tables.origin import begun
from jobs.tables.partitions import Widths
from jobs.tables.paths import local
from jobs.tables.progress import Progress, last

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from jobs.backends import SqlBackend

CRASH_AT = "MIDSTREAM_CRASH_AT"
"""Tests name here the step at which this process kills itself: `commit:out/q@3` is in batch 3."""

SETTINGS: dict[str, str | int] = {
    "spark.sql.streaming.numRecentProgressUpdates": 1,
    # Spark's default asks `readlink` and `chmod` ten times for each file of the checkpoint, and
    # a process costs milliseconds; on a local disk, with one writer, a plain rename is as safe.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # Without this there is a checksum beside each file, and a `chmod` for both instead of for one.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # What `united` filters by `false` is not scanned; Spark's reason not to are stateful operators.
    "spark.sql.optimizer.pruneFiltersCanPruneStreamingSubplan": "true",
}
"""Of the session that runs a streaming query."""

_POLL = 0.2
"""Seconds between two looks at the streaming query, at the sources and at the wish to stop."""


BACKENDS: Mapping[str, Callable[["SparkSession"], "SqlBackend"]] = {
    "spark": SparkBackend,
    "spark-duckdb": SparkDuckBackend,
    "duckdb": lambda _: DuckBackend(writers=2),
}
"""Who runs a job's statements, by what its file calls the engine."""


@dataclass(frozen=True)
class Extent:
    """How far to run: for ever, until nothing is left, a number of batches."""

    until_caught_up: bool = False
    batches: int | None = None


_STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that ask to stop, but for those that who started the process wants ignored."""


class _StoppedError(Exception):
    """Raised in a batch that is not to begin any more."""


def run(
    job: Job,
    extent: Extent,
    report: Callable[[Progress], None],
    notice: Callable[[str], None] = lambda _: None,
) -> None:
    """Run a job until it ends, or is told to by SIGTERM or SIGINT; `report` hears of each batch.

    `notice` hears what a person should know of its input, once.
    """
    job.check()
    job.check_runnable()
    storage = local(job.storage)
    with explained(storage), lease(storage), _nothing_to_finish():
        inputs = streams(job)
        if extent.until_caught_up and extent.batches is None:
            _must_end(inputs)
        store = job_store(job)
        mend_tables(store, (*store.tables(), *map(result_table, job.queries)))
        spark = session(f"midstream-{job.job}", **SETTINGS, **_compiler(job, inputs))
        backend = BACKENDS[job.engine](spark)
        steps = _Steps.of(os.environ.get(CRASH_AT, ""))
        look = ResourceMonitor(inputs)
        interval = 0.0 if extent.until_caught_up else job.trigger.total_seconds()
        engine = Engine(
            engine_job(job), store, backend, clock, step=steps, writers=2, look=look,
            interval=interval,
        )  # fmt: skip
        try:
            places = checkpoint(storage), storage / "control"
            _Run(
                spark, engine, inputs, extent, report, steps, *places, interval, job.durable, notice
            ).start(job)
        finally:
            engine.close()


def mend_tables(store: JobStore, tables: Iterable[str]) -> None:
    """Take back what a power cut has torn; control tables first, for they say what is whole."""
    control = {table for table in tables if table.startswith(CONTROL)}
    for table in sorted(control):
        mend(store.path(table))
    noted = last(store).tables
    for table in sorted({*tables} - control):
        known = noted.get(table)
        mend(store.path(table), known.version if known and is_here(store, table, known) else -1)


def _compiler(job: Job, inputs: list[InputStream]) -> dict[str, str]:
    """Where no row comes through Spark, Java's best compiler costs more than it ever gains."""
    if job.engine == "spark" or read_by_spark(inputs):
        return {}
    return {"spark.driver.extraJavaOptions": f"{DRIVER_JVM} {QUICK_JVM}"}


def clock() -> int:
    """The time in microseconds."""
    return time_ns() // 1000


def job_store(job: Job) -> JobStore:
    """The job's tables."""
    sinks = {result_table(query): local(job.sink(query)) for query in job.queries}
    return JobStore(local(job.storage), elsewhere=sinks, durable=job.durable)


def engine_job(job: Job) -> EngineJob:
    """The job as the engine takes it."""
    ingests = {
        name: Ingest(
            job.stream(name),
            spec.lateness // MICROSECOND,
            None if spec.idle_after is None else spec.idle_after // MICROSECOND,
            spec.ahead // MICROSECOND,
        )
        for name, spec in job.streams.items()
    }
    plans = {name: job.plan(name) for name in job.queries}
    return EngineJob(job.job, ingests, plans, Widths(job.widths))


def streams(job: Job) -> list[InputStream]:
    """The job's streams, in the order in which it reads them."""
    storage = local(job.storage)
    known = {name: job.stream(name) for name in job.streams}
    first = begun(storage, known, clock())
    return input_streams(first, known, job.streams, checkpoint(storage), job.trigger)


def _must_end(streams: list[InputStream]) -> None:
    for inlet in streams:
        if inlet.source.endless:
            raise InputError(
                f"stream {inlet.stream.name} never ends, so it cannot be caught up with: "
                "say --batches N as well",
                "--until-caught-up",
            )


@dataclass
class _Steps:
    """What happens at each step of a batch: nothing, unless a test wants this process to die."""

    point: str
    wanted: str
    batch: int = -1

    @classmethod
    def of(cls, text: str) -> "_Steps":
        """Steps that watch for a point such as `commit:out/*@3`; for none if it is empty."""
        point, _, wanted = text.rpartition("@")
        return cls(point, wanted)

    def __call__(self, name: str) -> None:
        if self.wanted == str(self.batch) and fnmatch(name, self.point):
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class _Run:
    """One streaming query from its start to its end."""

    spark: "SparkSession"
    engine: Engine
    streams: list[InputStream]
    extent: Extent
    report: Callable[[Progress], None]
    steps: _Steps
    checkpoint: Path
    notes: Path
    interval: float
    """Seconds from one batch to the next; none if each follows at once."""
    durable: bool
    notice: Callable[[str], None]
    known: bool = False
    described: dict[str, str] = field(default_factory=dict)
    stopping: bool = False
    asked: bool = False
    """Whether somebody wants it to stop."""
    failure: Exception | None = None
    done: int = 0
    busy: Lock = field(default_factory=Lock)
    beside: SerialWorker = field(default_factory=SerialWorker)

    def start(self, job: Job) -> None:
        """Run until the query ends by itself or is stopped."""
        if (self.checkpoint / "metadata").exists():
            self._know_checkpoint()
        rewind_unfinished_batch(self.checkpoint, self.engine.progress.batch)
        self._note_definition(job)
        writer = union_of_streams(self.spark, self.streams).writeStream.foreachBatch(self._batch)
        writer = writer.option("checkpointLocation", str(self.checkpoint)).queryName(job.job)
        if not self.extent.until_caught_up:
            writer = writer.trigger(processingTime=f"{job.trigger // MICROSECOND} microseconds")
        elif any(inlet.source.endless for inlet in self.streams):
            writer = writer.trigger(processingTime="0 seconds")
        else:
            writer = writer.trigger(availableNow=True)
        with self._signals():
            try:
                self._watch(writer.start())
            except Exception:
                if not (self.asked and has_ended(MOMENT)):
                    raise

    def _watch(self, query: "StreamingQuery") -> None:
        try:
            while not query.awaitTermination(_POLL):  # type: ignore[arg-type]  # parts of a second
                for inlet in self.streams:
                    inlet.source.check_presence()
                self.beside.check()
                if self.stopping:
                    break
        except Exception:
            if self.failure is not None:
                raise self.failure from None
            if not self.stopping:
                raise
        finally:
            self.stopping = True
            with self.busy:  # no other batch begins
                pass
            try:
                self.beside.close()  # the one under way ends
            finally:
                if not has_ended():
                    query.stop()

    def _batch(self, rows: "DataFrame", number: int) -> None:
        """Spark's next batch, or one that it asks for again."""
        with self.busy:
            try:
                if self.extent.batches is not None:
                    self.beside.wait()  # it may have been the last
                self._unless_stopping()
                self._know_checkpoint()
                if number > self.engine.progress.batch:
                    self._take(rows, number)
            except _StoppedError:
                raise
            except Exception as error:
                self.failure = error
                raise

    def _unless_stopping(self) -> None:
        if self.stopping:
            raise _StoppedError

    def _take(self, rows: "DataFrame", number: int) -> None:
        """Bring a batch's rows here, and have it carried out once the one before is through.

        That is beside Spark, if nothing of it has to come from there.
        """
        for inlet in self.streams:
            if said := inlet.source.inspect(inlet.taken, number):
                self.notice(said)
        saved = rescued(self.spark, self.streams, number)
        with self._inputs(rows if saved is None else saved, number) as inputs:
            self.beside.wait()
            self._unless_stopping()
            self.beside.begin(partial(self._carry_out, number, inputs))
            if not all(inlet.source.keeps for inlet in self.streams):
                self.beside.wait()

    @contextmanager
    def _inputs(self, rows: "DataFrame", number: int) -> Iterator[Mapping[str, Any]]:
        """What a batch takes, in the form that the backend reads."""
        scratch = self._scratch(number)
        names = read_by_spark(self.streams)
        lie = self._lying(number, scratch)
        match self.engine.backend:
            case _ if not names:
                yield lie
            case DuckBackend():
                yield lie | as_arrow(rows, names)
            case SparkDuckBackend():
                yield lie | as_files(rows, names, scratch)
            case _:
                rows.persist()
                try:
                    yield lie | as_frames(rows, names)
                    self.beside.wait()
                finally:
                    rows.unpersist()

    def _scratch(self, number: int) -> Path:
        """Where files of a batch may lie; the one before may still be reading its own."""
        scratch = self.notes.with_name("scratch")
        for other in scratch.iterdir() if scratch.is_dir() else ():
            if other.name != str(number - 1):
                rmtree(other, ignore_errors=True)
        return scratch / str(number)

    def _lying(self, number: int, scratch: Path) -> dict[str, Any]:
        """What a batch takes from where it lies, in the form that the backend reads."""
        read: Callable[[FilesSource, CheckpointOffsets, int], Any]
        match self.engine.backend:
            case DuckBackend():
                read = FilesSource.rows
            case SparkDuckBackend():
                read = partial(FilesSource.filed, scratch=scratch, spark=self.spark)
            case _:
                read = partial(FilesSource.frame_of, scratch=scratch, spark=self.spark)
        return read_in_place(self.streams, number, read)

    def _carry_out(self, number: int, inputs: Mapping[str, Any]) -> None:
        began = monotonic()
        self.steps.batch = number
        self.steps("taken")
        if self.durable:
            sync(noted(self.checkpoint, number))
        progress = self.engine.run(number, inputs)
        self._describe_states()
        self._tell(progress)
        tidy(self.engine, lambda: monotonic() < began + self.interval / 2)
        self.steps("done")
        self.done += 1
        if self.done == self.extent.batches:
            self.stopping = True

    def _tell(self, progress: Progress) -> None:
        """Report a batch; if nobody reads reports any more, that asks to stop."""
        try:
            self.report(progress)
        except BrokenPipeError:
            self.stopping = self.asked = True

    def _know_checkpoint(self) -> None:
        """Batch numbers mean something only together with the checkpoint that gave them."""
        if self.known:
            return
        found = note(self.checkpoint / "metadata").get("id")
        known = self.notes / "checkpoint.json"
        if self.engine.progress.batch < 0:
            replace(known, dumps(found))
        elif not known.exists() or _text(known) != found:
            raise RefusedError(
                f"{self.checkpoint} is not the checkpoint with which this job's tables were made: "
                "restore both, or start with a new storage"
            )
        self.known = True

    def _note_definition(self, job: Job) -> None:
        """Note by which definition the batches to come run, for those who judge them later."""
        known = definitions(self.notes.parent)
        defined = with_definition(known, job, self.engine.progress.batch + 1)
        replace(self.notes / DEFINITIONS, dumps(defined))

    def _describe_states(self) -> None:
        """Note what each state holds, for those who only know what it is called."""
        contents = {o.key: o.content for o in self.engine.program.operators}
        if contents != self.described:
            replace(self.notes / "states.json", dumps(contents))
            self.described = contents

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Each asks to stop after the batch under way; asked again, the process ends at once."""

        def stop(number: int, _frame: object) -> None:
            self.stopping = self.asked = True
            signal.signal(number, signal.SIG_DFL)

        heard = [s for s in _STOP if signal.getsignal(s) != signal.SIG_IGN]
        before = {s: signal.signal(s, stop) for s in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _text(path: Path) -> Any:
    with whole(path):
        return loads(path.read_text(encoding="utf-8"))


@contextmanager
def _nothing_to_finish() -> Iterator[None]:
    """Until the first batch there is nothing to finish: SIGTERM just ends the process."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
