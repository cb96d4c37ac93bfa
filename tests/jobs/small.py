"""A small job over Parquet files, for tests that run it whole."""

import random
from collections.abc import Mapping
from os import utime
from pathlib import Path
from time import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

START = 1_700_000_000_000_000
STREAMS = ("a", "b", "c")
TUPLES = 50
"""In a file."""
SCHEMA = "k BIGINT, v DOUBLE, s STRING, ts TIMESTAMP"
ARROW = pa.schema(
    [("k", pa.int64()), ("v", pa.float64()), ("s", pa.string()), ("ts", pa.timestamp("us", "UTC"))]
)

QUERIES: Mapping[str, Any] = {
    "three": {
        "sql": "SELECT a.k, a.v + b.v AS v, c.s FROM a [RANGE 3 SECONDS]"
        " JOIN b [RANGE 3 SECONDS] ON a.k = b.k JOIN c [RANGE 3 SECONDS] ON b.k = c.k"
        " WHERE a.v > 0.1",
        "plan": "(a b c)",
    },
    "two": {
        "sql": "SELECT a.k, b.s FROM a [RANGE 3 SECONDS] JOIN b [RANGE 3 SECONDS] ON a.k = b.k"
    },
    "counted": {
        "sql": "SELECT a.k, count(*) AS n, avg(b.v) AS m, window.end AS at"
        " FROM a [RANGE 3 SECONDS] JOIN b [RANGE 3 SECONDS] ON a.k = b.k"
        " GROUP BY a.k, window(a.ts, '4 seconds', '2 seconds')"
    },
}


def rows(seed: int, file: int, count: int = TUPLES) -> pa.Table:
    """Five seconds of tuples; some without a key, without a time, or half a minute late."""
    r = random.Random(f"{seed}/{file}")
    times = [
        START + file * 5_000_000 + r.randrange(5_000_000) - (r.random() < 0.03) * 30_000_000
        for _ in range(count)
    ]
    return pa.table(
        {
            "k": [r.randrange(10) if r.random() < 0.98 else None for _ in range(count)],
            "v": [r.random() for _ in range(count)],
            "s": [f"s{r.randrange(5)}" for _ in range(count)],
            "ts": [time if r.random() < 0.99 else None for time in times],
        },
        schema=ARROW,
    )


def write(directory: Path, files: range, seed: int = 1) -> None:
    """Files for each stream, whole as soon as they are there."""
    for number, stream in enumerate(STREAMS):
        (directory / stream).mkdir(parents=True, exist_ok=True)
        for file in files:
            draft = directory / f"{stream}-{file}.draft"
            pq.write_table(rows(seed * 10 + number, file), draft)
            later = time() + file / 100  # Spark reads files of one millisecond in any order
            utime(draft, (later, later))
            draft.rename(directory / stream / f"{file:04d}.parquet")


def job(directory: Path, **changes: Any) -> Path:
    """A job file beside its data; `changes` are fields in place of the usual ones."""
    stream = {
        "source": "files", "format": "parquet", "options": {"maxFilesPerTrigger": 1},
        "schema": SCHEMA, "event_time": "ts", "lateness": "1 second",
    }  # fmt: skip
    content = {
        "job": "small",
        "engine": "duckdb",
        "storage": "storage",
        "trigger": "200 milliseconds",
        "streams": {name: stream | {"path": name} for name in STREAMS},
        "queries": dict(QUERIES),
    }
    path = directory / f"{changes.get('storage', 'job')}.yaml"
    path.write_text(yaml.safe_dump(content | changes, sort_keys=False))
    return path
