"""`durability`: what it costs that a batch survives a power cut.

Two engines carry out the same batches in turn, one of them with `durable: false`: so both see the
same machine.  What a sync takes is the disk's own: name a directory on the one that matters.
"""

import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, time_ns
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from jobs import show
from jobs.backends.duckdb.backend import DuckBackend
from jobs.engine.ingest import Ingest
from jobs.engine.microbatch import Engine, Job
from jobs.tables.columns import REASON, ROW
from jobs.tables.job_store import JobStore
from jobs.tables.origin import begun
from optimizer.plan import as_written, build
from optimizer.query import Stream
from optimizer.sql import parse, parse_schema

WARM_UP = 5
SECOND = 1_000_000

STREAMS = {
    name: Stream(name, parse_schema("k BIGINT, v DOUBLE, ts TIMESTAMP"), "ts") for name in "abc"
}
SQL = "SELECT a.k, a.v, b.v AS w, c.v AS x FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k"


def durability(
    *,
    rows: Annotated[int, typer.Option(min=1, help="Of each stream in a batch.")] = 20_000,
    batches: Annotated[int, typer.Option(min=1, help="To measure, after a few.")] = 40,
    directory: Annotated[Path | None, typer.Option(help="On the disk to measure.")] = None,
    json: show.Json = False,
) -> None:
    """Milliseconds a batch of a join of three streams, with syncs and without."""
    with TemporaryDirectory(prefix="midstream-durability-", dir=directory) as place:
        took = _measure(Path(place), rows, batches)
    figures = {name: round(median(times[WARM_UP:]) * 1000, 1) for name, times in took.items()}
    report = {
        "rows": rows,
        "batches": batches,
        "ms_a_batch": figures,
        "ratio": round(figures["durable"] / figures["not durable"], 2),
        "versions": {name: version(name) for name in ("deltalake", "duckdb")},
        "command": " ".join(["midstream bench durability", *sys.argv[3:]]),
    }
    if json:
        show.as_json(report)
    else:
        show.table(
            ("", "ms a batch"), [(name, f"{ms:.1f}") for name, ms in figures.items()], right="ms"
        )
        show.plain(f"{report['ratio']:.2f} times\n{report['command']}")


def _measure(place: Path, rows: int, batches: int) -> dict[str, list[float]]:
    engines = {
        name: _engine(place / name, durable=name == "durable")
        for name in ("durable", "not durable")
    }
    took: dict[str, list[float]] = {name: [] for name in engines}
    for batch in range(WARM_UP + batches):
        inputs = {name: _rows(batch, rows, seed) for seed, name in enumerate(STREAMS)}
        for name, engine in sorted(engines.items(), reverse=batch % 2 == 0):
            began = perf_counter()
            engine.run(batch, inputs)
            took[name].append(perf_counter() - began)
    for engine in engines.values():
        engine.close()
    return took


def _engine(storage: Path, *, durable: bool) -> Engine:
    begun(storage, STREAMS, now=0)
    query = parse(SQL, STREAMS, 5 * SECOND)
    ingests = {name: Ingest(stream, ahead=10**15) for name, stream in STREAMS.items()}
    job = Job("durability", ingests, {"q": build(query, as_written(query))})
    store = JobStore(storage, durable=durable)
    return Engine(job, store, DuckBackend(writers=2), lambda: time_ns() // 1000, writers=2)


def _rows(batch: int, count: int, seed: int) -> pa.Table:
    """A second of tuples, each of whose keys about one tuple of the others has."""
    r = np.random.default_rng((batch, seed))
    columns: Mapping[str, Any] = {
        "k": r.integers(0, 5 * count, count),
        "v": r.random(count),
        "ts": pa.array(batch * SECOND + r.integers(0, SECOND, count)).cast(
            pa.timestamp("us", "UTC")
        ),
    }
    nothing = pa.nulls(count, pa.string())
    return pa.table({**columns, REASON: nothing, ROW: nothing})
