"""What is joined: streams of even rate and random keys, as files that hold some seconds each."""

from dataclasses import asdict, dataclass
from functools import cached_property
from json import dumps, loads
from os import utime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

BEGAN = 1_700_000_000_000
"""The first event, in milliseconds; a multiple of the windows of the group-by."""

SCHEMA = "k BIGINT, j BIGINT, v BIGINT, ts TIMESTAMP"

_CHAIN = {"three": "abc", "four": "abcd", "grouped": "ab"}
"""Each shape joins a chain of streams: the first two on k, the next on j, then on k again."""


@dataclass(frozen=True)
class Workload:
    """A query, the window around all its pairs, and how much of what comes in."""

    shape: str
    window: int
    seconds: int
    rate: int
    per_file: int = 10
    """Seconds of data in a file, which is a batch."""
    key_values: int | None = None
    """How many different keys; by default each tuple meets two partners."""

    @classmethod
    def from_json(cls, text: str) -> "Workload":
        """What `json` wrote."""
        return cls(**loads(text))

    @property
    def json(self) -> str:
        """For the process that runs it."""
        return dumps(asdict(self))

    @property
    def little(self) -> "Workload":
        """To warm up with: small batches, so many that Java has compiled what is run often."""
        return Workload(self.shape, 10, 400, 500)

    @property
    def streams(self) -> tuple[str, ...]:
        """Their names, a letter each."""
        return tuple(_CHAIN[self.shape])

    @property
    def tuples(self) -> int:
        """How many come in altogether."""
        return self.seconds * self.rate * len(self.streams)

    @property
    def keys(self) -> int:
        """How many values a key has."""
        return self.key_values or self.window * self.rate

    @cached_property
    def equalities(self) -> list[tuple[str, str, str]]:
        """Left stream, right stream, column."""
        pairs = zip(self.streams, self.streams[1:], strict=False)
        return [(i, j, "jk"[at % 2 == 0]) for at, (i, j) in enumerate(pairs)]

    @property
    def plan(self) -> str:
        """Left-deep, the best order of a chain in which all are alike."""
        first, *rest = self.streams
        for name in rest:
            first = f"({first} {name})"
        return first

    def on(self) -> str:
        """The equalities as SQL."""
        return " AND ".join(f"{i}.{c} = {j}.{c}" for i, j, c in self.equalities)

    def select(self) -> str:
        """Each stream's value and the first event time."""
        return ", ".join([*(f"{s}.v AS {s}v" for s in self.streams), "a.ts AS ats"])

    def sql(self) -> str:
        """The query as a job file has it."""
        source = ", ".join(self.streams)
        if self.shape == "grouped":
            return (
                f"SELECT b.j AS j, window.end AS ends, count(*) AS n, sum(a.v) AS total "
                f"FROM {source} WHERE {self.on()} GROUP BY b.j, window(a.ts, '10 seconds')"
            )
        return f"SELECT {self.select()} FROM {source} WHERE {self.on()}"

    def closed(self) -> int:
        """The end of the windows that every engine has emitted, in milliseconds."""
        return BEGAN + (self.seconds - self.window - 20) * 1000


def write(workload: Workload, directory: Path, kind: str = "parquet") -> None:
    """Files for every stream, the older ones first also by their own times."""
    for at, name in enumerate(workload.streams):
        random = np.random.default_rng(at)
        (directory / name).mkdir(parents=True)
        for number in range(workload.seconds // workload.per_file):
            path = directory / name / f"{number:05}.{kind}"
            _write_file(_rows(workload, number, random), path)
            utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def _rows(workload: Workload, number: int, random: np.random.Generator) -> pa.Table:
    count = workload.rate * workload.per_file
    begin = BEGAN + number * workload.per_file * 1000
    times = begin + np.arange(count) * (workload.per_file * 1000) // count
    return pa.table(
        {
            "k": random.integers(workload.keys, size=count),
            "j": random.integers(100 if workload.shape == "grouped" else workload.keys, size=count),
            "v": random.integers(1000, size=count),
            "ts": pa.array(times * 1000, pa.timestamp("us", "UTC")),
        }
    )


def _write_file(rows: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        pq.write_table(rows, path)
        return
    millis = pa.array(rows.column("ts").cast(pa.int64()).to_numpy() // 1000)
    plain = rows.set_column(rows.column_names.index("ts"), "ms", millis)
    pa_csv.write_csv(plain, path, pa_csv.WriteOptions(include_header=False))
