"""`files`: what a file more costs a batch that writes it, and a statement that reads it.

A batch writes a state's rows to so many files, parts them before and commits them together; a
statement reads as many rows from so many files.  CPU time counts, of all threads.  What is fitted
says whether files are worth a unit of their own beside a statement's fixed price.
"""

import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from itertools import count
from pathlib import Path
from statistics import median
from time import process_time
from typing import Annotated, Any

import duckdb
import numpy as np
import pyarrow as pa
import typer

from jobs import show
from jobs.tables.columns import UNTIL
from jobs.tables.delta_store import DeltaStore
from jobs.tables.partitions import MOST_FILES, Partitioning, put_partitions
from jobs.tables.paths import read_parquet
from stats.costs import SHIPPED
from tests.bench.unit_costs import Fit, fit

ROWS = (100, 1_000, 10_000)
"""Of a batch."""
READ = (1, 4, 16, 64)
"""Files of a state."""
STATE = 100_000
"""Rows of it."""
LENGTH = 10_000_000
"""Microseconds of a batch, over which its rows are spread."""


def files(
    *,
    repeats: Annotated[int, typer.Option(min=1, help="Of each; the median counts.")] = 15,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Measure what files cost, written and read, beside what is shipped for a statement."""
    with tempfile.TemporaryDirectory() as directory:
        written = [_written(Path(directory), rows, n, repeats) for rows in ROWS for n in _counts()]
        read = [_read(Path(directory), n, repeats) for n in READ]
    report = {
        "written": written,
        "read": read,
        "file_written": asdict(_fit(("commit", "file", "row"), written)),
        "file_read": asdict(_fit(("statement", "file"), read)),
        "statement": {engine: costs.statement for engine, costs in SHIPPED.items()},
        "command": " ".join(["midstream", "bench", "files", *sys.argv[3:]]),
        "versions": {name: version(name) for name in ("duckdb", "deltalake", "pyarrow")},
    }
    show.as_json(report) if json else _show(report)


def _counts() -> range:
    """How many files a batch may write."""
    return range(1, MOST_FILES + 1)


def _written(directory: Path, rows: int, wanted: int, repeats: int) -> dict[str, float]:
    """Parting a batch's rows, writing and committing them: CPU milliseconds."""
    store, table, numbers = DeltaStore(directory), f"state/w{rows}-{wanted}", count()
    data = _rows(rows)
    store.create(table, data.schema.remove(data.schema.get_field_index(UNTIL)).append(
        pa.field(UNTIL, pa.int64())))  # fmt: skip
    by = Partitioning(LENGTH // wanted)
    made = [len(_put(store, table, data, by, next(numbers))) for _ in range(2)][-1]
    took = [_timed(lambda: _put(store, table, data, by, next(numbers))) for _ in range(repeats)]
    return {"row": float(rows), "file": float(made), "commit": 1.0, "ms": 1000 * median(took)}


def _put(
    store: DeltaStore, table: str, data: pa.Table, by: Partitioning, batch: int
) -> Sequence[object]:
    made = put_partitions(store, table, data, by)
    store.commit(table, made, batch)
    return made


def _read(directory: Path, number: int, repeats: int) -> dict[str, float]:
    """Summing a state's rows from so many files: CPU milliseconds."""
    store, table = DeltaStore(directory), f"state/r{number}"
    data = _rows(STATE).drop_columns([UNTIL])
    store.create(table, data.schema)
    share = STATE // number
    store.commit(table, [store.put(table, data.slice(i * share, share)) for i in range(number)], 0)
    paths = [str(store.path(table) / file.path) for file in store.files(table)]
    text = f"SELECT sum(k), sum(v), max(ts) FROM {read_parquet(paths)}"
    with duckdb.connect() as connection:
        connection.execute(text).fetchall()
        took = [_timed(lambda: connection.execute(text).fetchall()) for _ in range(repeats)]
    return {"file": float(number), "statement": 1.0, "ms": 1000 * median(took)}


def _rows(number: int) -> pa.Table:
    random = np.random.default_rng(1)
    until = np.arange(number, dtype=np.int64) * LENGTH // number + 1
    return pa.table(
        {
            "k": random.integers(0, number, number),
            "v": random.integers(0, 1_000_000, number),
            "ts": pa.array(until, pa.timestamp("us", "UTC")),
            UNTIL: until,
        }
    )


def _fit(names: tuple[str, ...], measured: Sequence[dict[str, float]]) -> Fit:
    """Milliseconds a unit."""
    return fit(names, [tuple(m[n] for n in names) for m in measured], [m["ms"] for m in measured])


def _timed(action: Callable[[], object]) -> float:
    began = process_time()
    action()
    return process_time() - began


def _show(report: dict[str, Any]) -> None:
    written = [
        (f"{m['row']:,.0f}", f"{m['file']:.0f}", f"{m['ms']:.2f}") for m in report["written"]
    ]
    show.table(("rows written", "files", "ms"), written, right="files ms")
    read = [(f"{STATE:,}", f"{m['file']:.0f}", f"{m['ms']:.2f}") for m in report["read"]]
    show.table(("rows read", "files", "ms"), read, right="files ms")
    for name in ("file_written", "file_read"):
        costs = ", ".join(f"{unit} {cost:.3g}" for unit, cost in report[name]["costs"].items())
        show.plain(
            f"{name.replace('_', ' ')}: {costs} ms; median error {report[name]['error']:.0%}"
        )
    statements = ", ".join(f"{name} {1000 * s:.3g}" for name, s in report["statement"].items())
    show.plain(f"shipped for a statement, ms: {statements}")
    show.plain(f"{report['command']}; {', '.join(map(' '.join, report['versions'].items()))}")
