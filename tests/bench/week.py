"""`week`: a job that runs for a week, and whether it is as small and as quick at its end.

The clock is injected, the tables are real.  What the engine does between two batches is part of the
job, not of a batch's time.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from jobs import show
from jobs.backends.duckdb.backend import DuckBackend
from jobs.engine.ingest import Ingest
from jobs.engine.inline_compaction import tidy
from jobs.engine.microbatch import Engine, Job
from jobs.engine.states import relation_of
from jobs.tables.columns import REASON, ROW
from jobs.tables.job_store import JobStore
from jobs.tables.names import STATE
from jobs.tables.origin import begun
from jobs.tables.partitions import SMALL
from optimizer.plan import as_written, build
from optimizer.query import Stream
from optimizer.sql import parse, parse_schema

SECOND = 1_000_000
DAY = 86_400
STREAMS = {
    name: Stream(name, parse_schema("k BIGINT, v DOUBLE, ts TIMESTAMP"), "ts") for name in "ab"
}
SQL = "SELECT a.k, a.v, b.v AS w FROM a JOIN b ON a.k = b.k"
KEYS = 2_000


@dataclass(frozen=True)
class Sample:
    """What there is of a job's own tables after a batch."""

    hour: int
    ms: float
    rows: int
    overdue: float
    """The part of these that nobody needs any more."""
    live: int
    """Files that make up the states."""
    small: int
    """Those with few rows that are not the only ones of their partition."""
    files: int
    """On the disk, with logs and control tables; results, which are their readers', apart."""
    bytes: int


def week(
    *,
    days: Annotated[int, typer.Option(min=1, help="How long the job runs.")] = 7,
    rate: Annotated[float, typer.Option(help="Rows a second of each of two streams.")] = 10.0,
    window: Annotated[int, typer.Option(min=1, help="Of the join, in seconds.")] = 3_600,
    trigger: Annotated[int, typer.Option(min=1, help="Seconds a batch.")] = 60,
    json: show.Json = False,
) -> None:
    """Files, bytes and milliseconds a batch of a join that runs for days."""
    with TemporaryDirectory(prefix="midstream-week-") as place:
        job = _Week(Path(place), rate, window, trigger)
        samples = list(job.run(days * DAY // trigger))
    report = {
        "rate": rate,
        "window": window,
        "trigger": trigger,
        "days": [asdict(day) for day in _by_day(samples)],
        "command": " ".join(["midstream bench week", *sys.argv[3:]]),
    }
    if json:
        show.as_json(report)
        return
    show.table(
        ("after", "ms-a-batch", "rows", "overdue", "live", "small", "files", "MB"),
        [
            (f"{d.hour} h", f"{d.ms:.1f}", f"{d.rows:,}", f"{d.overdue:.1%}", f"{d.live}",
             f"{d.small}", f"{d.files:,}", f"{d.bytes / 1e6:.1f}")
            for d in _by_day(samples)
        ],
        right="ms-a-batch rows overdue live small files MB",
    )  # fmt: skip
    show.plain(str(report["command"]))


@dataclass
class _Week:
    root: Path
    rate: float
    window: int
    trigger: int
    now: int = 0

    def run(self, batches: int) -> Iterator[Sample]:
        """A sample an hour."""
        engine, every = self._engine(), max(1, 3_600 // self.trigger)
        with show.progress("running") as progress:
            times = []
            for batch in range(batches):
                self.now = (batch + 1) * self.trigger * SECOND
                inputs = {name: self._rows(batch, seed) for seed, name in enumerate(STREAMS)}
                began = perf_counter()
                engine.run(batch, inputs)
                times.append((perf_counter() - began) * 1000)
                tidy(engine, lambda: True)
                if (batch + 1) % every == 0:
                    yield self._sample(engine, median(times))
                    times = []
                    progress(batch + 1, batches)
        engine.close()

    def _engine(self) -> Engine:
        begun(self.root, STREAMS, now=0)
        query = parse(SQL, STREAMS, self.window * SECOND)
        ingests = {name: Ingest(stream, ahead=10**15) for name, stream in STREAMS.items()}
        job = Job("week", ingests, {"q": build(query, as_written(query))})
        store = JobStore(self.root, durable=False)
        return Engine(job, store, DuckBackend(writers=2), lambda: self.now, writers=2)

    def _rows(self, batch: int, seed: int) -> pa.Table:
        r = np.random.default_rng((batch, seed))
        count = r.poisson(self.rate * self.trigger)
        times = batch * self.trigger * SECOND + r.integers(0, self.trigger * SECOND, count)
        columns: Mapping[str, Any] = {
            "k": r.integers(0, KEYS, count),
            "v": r.random(count),
            "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
        }
        nothing = pa.nulls(count, pa.string())
        return pa.table({**columns, REASON: nothing, ROW: nothing})

    def _sample(self, engine: Engine, ms: float) -> Sample:
        partitions = [
            [file.rows for file in group]
            for key in engine.states.files
            for _, group in groupby(
                sorted(engine.store.files(f"{STATE}{key}"), key=lambda file: file.until or 0),
                key=lambda file: file.until,
            )
        ]
        rows = sum(map(sum, partitions))
        needed = sum(engine.backend.count(relation_of(key)) for key in engine.states.files)
        found = [
            path for kind in ("state", "control") for path in (self.root / kind).glob("**/*")
            if path.is_file()
        ]  # fmt: skip
        return Sample(
            hour=self.now // SECOND // 3_600,
            ms=ms,
            rows=rows,
            overdue=1 - needed / rows if rows else 0.0,
            live=sum(map(len, partitions)),
            small=sum(sum(rows < SMALL for rows in one) for one in partitions if len(one) > 1),
            files=len(found),
            bytes=sum(path.stat().st_size for path in found),
        )


def _by_day(samples: list[Sample]) -> list[Sample]:
    """The last sample of each day, with the day's usual batch."""
    days = [list(day) for _, day in groupby(samples, key=lambda sample: (sample.hour - 1) // 24)]
    return [
        Sample(**(asdict(day[-1]) | {"ms": round(median(one.ms for one in day), 1)}))
        for day in days
    ]
