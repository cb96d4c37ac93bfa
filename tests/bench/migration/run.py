"""The engine over generated batches, as fast as it can; requests are made before some of them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time, sleep, time_ns

import duckdb

from jobs.engine.ingest import Ingest
from jobs.engine.microbatch import Engine, Job
from jobs.engine.migration.migrator import Migrator, plan_fingerprint
from jobs.engine.process_usage import cpu_seconds, java
from jobs.tables.delta_store import DeltaStore
from jobs.tables.names import result_table
from jobs.tables.progress import Progress
from jobs.tables.requests import ABORT, Event, Request, append_request, read_events
from jobs.tables.store import DataFile
from optimizer.plan import Plan, to_json
from optimizer.window import MICROSECONDS
from tests.bench.chain import Chain
from tests.bench.engines import open_engine

ROOT = Path(__file__).parents[3]
USUAL = 10
"""Batches before a migration whose median is the usual."""


@dataclass(frozen=True)
class Setup:
    """Where batches come from, and what runs them."""

    chain: Chain
    engine: str
    data: Path
    batches: int
    lateness: int = 0
    """Seconds."""
    interval: float = 0.0
    """Seconds from the beginning of a batch to that of the next; as fast as it can without."""


@dataclass(frozen=True)
class Wish:
    """A request to be made before a batch."""

    strategy: str
    plan: Plan
    saves: float = 0.0
    """What share of its work the plan is predicted to save."""
    takes: float = 0.0
    """What share of a batch's work filling states is predicted to take."""


@dataclass(frozen=True)
class Beat:
    """A batch."""

    gap: float
    """Seconds from the commit of the results before to that of this batch's, less the reading."""
    cpu: float
    """CPU-seconds from its beginning to its end, of all threads: what the load leaves alone."""
    results: int
    state_rows: int
    plan: str
    phase: str = ""
    """Of the migration under way."""


@dataclass(frozen=True)
class Filled:
    """A fill, or a slice of one."""

    state: str
    seconds: float
    cpu: float


@dataclass
class Trip:
    """What a run came to."""

    beats: list[Beat] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    fills: list[Filled] = field(default_factory=list)
    rebuilt: int = 0
    """Rows that fills have written."""
    held: dict[str, float] = field(default_factory=dict)
    """Rows of each state before the first request."""
    watching: list[float] = field(default_factory=list)
    """Seconds that looking for requests takes at a boundary, if that was asked for."""
    results: tuple[int, int] = (0, 0)
    """How many, and the sum of their hashes."""

    @property
    def done(self) -> int:
        """The batch that begins with the cut-over."""
        return next(event.batch for event in self.events if event.phase == "done")

    def usual(self, before: int) -> tuple[float, float]:
        """The medians of the batches just before: of the gaps, and of the CPU-seconds."""
        beats = self.beats[max(1, before - USUAL) : before]
        return median(beat.gap for beat in beats), median(beat.cpu for beat in beats)


class _Store(DeltaStore):
    """Counts what fills write."""

    rebuilt = 0

    def commit(
        self,
        table: str,
        files: Sequence[DataFile],
        batch: int,
        writer: str = "",
        gone: Sequence[DataFile] = (),
    ) -> int:
        if writer.startswith("midstream-fill"):
            self.rebuilt += sum(file.rows for file in files)
        return super().commit(table, files, batch, writer, gone)


class _Marks:
    """When the engine came to its steps: the time of fills, and of results' commits."""

    def __init__(self) -> None:
        self.committed = 0.0
        self.fills: list[Filled] = []
        self._filling: tuple[str, float, float] | None = None

    def __call__(self, step: str) -> None:
        now = perf_counter()
        self.settle(now)
        if step == "progress":
            self.committed = now
        elif step.startswith("fill:"):
            self._filling = step.removeprefix("fill:"), now, cpu()

    def settle(self, now: float) -> None:
        """A fill lasts until the next step, or the end of the batch."""
        if self._filling is not None:
            key, began, used = self._filling
            self.fills.append(Filled(key, now - began, cpu() - used))
            self._filling = None


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory on the disk that will be gone."""
    (ROOT / ".bench").mkdir(exist_ok=True)
    with TemporaryDirectory(dir=ROOT / ".bench") as directory:
        yield Path(directory)


def travel(setup: Setup, plan: Plan, wishes: Mapping[int, Wish], *, watch: bool = False) -> Trip:
    """Run all batches; the migrations wished for begin when their batch does.

    To see what watching costs, somebody makes a request about nothing, and each boundary is timed.
    """
    backend, read = open_engine(setup.engine)
    trip, marks = Trip(), _Marks()
    chain = setup.chain
    ingests = {
        name: Ingest(chain.stream(name), setup.lateness * MICROSECONDS) for name in chain.streams
    }
    with TemporaryDirectory(dir=setup.data.parent) as directory:
        store = _Store(Path(directory))
        job = Job("bench", ingests, {"q": plan})
        runs = Engine(job, store, backend, _now, step=marks, writers=2, interval=setup.interval)
        watcher = Migrator(store, backend, runs.states, job.widths, _now)
        if watch:
            append_request(store, Request("nothing", _now(), ABORT, "nothing"))
        rest, due = 0.0, perf_counter()
        for batch in range(setup.batches):
            if batch in wishes:
                trip.held = trip.held or _held(runs)
                append_request(store, _request(batch, wishes[batch], runs.plans["q"]))
            inputs = {name: read(setup.data / f"{name}-{batch}.parquet") for name in chain.streams}
            if setup.interval:
                waited = perf_counter()
                sleep(max(0.0, due - waited))
                rest, due = rest + perf_counter() - waited, max(due, waited) + setup.interval
            began, used = perf_counter(), cpu()
            done = runs.run(batch, inputs)
            ended = perf_counter()
            marks.settle(ended)
            gap = rest + marks.committed - began
            trip.beats.append(_beat(done, gap, cpu() - used, runs.plans["q"]))
            rest = ended - marks.committed
            if watch:
                began = perf_counter()
                watcher.turn(batch + 1, done, runs.plans, {})
                trip.watching.append(perf_counter() - began)
        runs.close()
        trip.events, trip.fills, trip.rebuilt = read_events(store), marks.fills, store.rebuilt
        trip.results = _checksum(store)
    if wrong := [e.detail for e in trip.events if e.phase in {"aborted", "refused"} and e.query]:
        raise RuntimeError("; ".join(wrong))
    return trip


def _now() -> int:
    return time_ns() // 1000


def cpu() -> float:
    """CPU-seconds used so far, of all threads, and of Spark."""
    return process_time() + sum(map(cpu_seconds, java()))


def _beat(done: Progress, gap: float, used: float, plan: Plan) -> Beat:
    return Beat(
        gap,
        used,
        done.results["q"],
        sum(work.state_rows for work in done.operators.values()),
        str(plan),
        str((done.migration or {}).get("phase", "")),
    )


def _held(runs: Engine) -> dict[str, float]:
    return {key: float(runs.states.rows(key)) for key in runs.states.files}


def _request(batch: int, wish: Wish, current: Plan) -> Request:
    return Request(
        f"m{batch}", _now(), query="q", plan=to_json(wish.plan.root),
        base=plan_fingerprint(current), strategy=wish.strategy, saves=wish.saves, takes=wish.takes,
    )  # fmt: skip


def _checksum(store: DeltaStore) -> tuple[int, int]:
    results = store.table(result_table("q")).to_pyarrow_dataset()  # noqa: F841  # DuckDB reads it
    text = "SELECT count(*), coalesce(sum(hash(r)::HUGEINT), 0)::VARCHAR FROM results AS r"
    (found,) = duckdb.connect().execute(text).fetchall()
    return found[0], int(found[1])
