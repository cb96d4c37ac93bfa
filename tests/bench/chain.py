"""Streams in a row, each joined with the next on a key of their own: what to run plans over.

How many values a key has says how many partners a tuple finds on it, and so which join order is
best.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jobs.tables.columns import REASON, ROW
from optimizer.cost.dual import price
from optimizer.estimate import Estimator
from optimizer.memo import Memo, Offer, Part
from optimizer.plan import Plan
from optimizer.query import Column, Query, Stream
from optimizer.sql import parse
from optimizer.window import MICROSECONDS
from optimizer.workload import Method, StreamLoad, Workload

BEGAN = 1_700_000_000 * MICROSECONDS

Values = Mapping[str, int]
"""How many values each key has."""


@dataclass(frozen=True)
class Chain:
    """Which streams, and how much comes in of each: tuples per second, seconds a batch."""

    count: int
    window: int
    """Seconds that two tuples of a result may be apart."""
    rate: int
    batch: int = 10

    @cached_property
    def streams(self) -> dict[str, str]:
        """The keys that each has; two streams join on the one that they share."""
        keys = "uvwxyz"[-self.count + 1 :]
        return dict(
            zip("abcdefg", [keys[0], *map("".join, pairwise(keys)), keys[-1]], strict=False)
        )

    @property
    def keys(self) -> list[str]:
        """In the order of the streams."""
        return sorted(set("".join(self.streams.values())))

    @property
    def tuples(self) -> int:
        """How many a batch has, of all streams together."""
        return self.count * self.rate * self.batch

    @property
    def filling(self) -> int:
        """How many batches pass until the windows are full."""
        return -(-self.window // self.batch)

    def values(self, partners: Sequence[float]) -> dict[str, int]:
        """For each key, how many values give a tuple so many partners in a window."""
        whole = self.rate * self.window
        return {k: max(1, round(whole / p)) for k, p in zip(self.keys, partners, strict=True)}

    def stream(self, name: str) -> Stream:
        """Its columns."""
        columns = [Column(key, "BIGINT") for key in (*self.streams[name], "v")]
        return Stream(name, (*columns, Column("ts", "TIMESTAMP")), "ts")

    @property
    def sql(self) -> str:
        """All of them joined."""
        equal = [
            " = ".join(f"{name}.{key}" for name, keys in self.streams.items() if key in keys)
            for key in self.keys
        ]
        values = ", ".join(f"{name}.v AS {name}v" for name in self.streams)
        sql = f"SELECT {values}, a.ts AS ats FROM {', '.join(self.streams)}"
        return f"{sql} WHERE {' AND '.join(equal)}"

    @cached_property
    def query(self) -> Query:
        """Each pair at most a window apart."""
        streams = {name: self.stream(name) for name in self.streams}
        return parse(self.sql, streams, self.window * MICROSECONDS)

    def workload(self, values: Values) -> Workload:
        """What the cost model is told."""
        return Workload(
            {n: StreamLoad(self.rate, 8.0 * (len(k) + 2)) for n, k in self.streams.items()},
            {
                frozenset(one for one, keys in self.streams.items() if key in keys): 1 / count
                for key, count in values.items()
            },
            method=Method.BATCH,
            batch=self.batch,
        )

    def cpu(self, plan: Plan, load: Workload) -> float:
        """CPU-seconds per second of a plan."""
        return price(plan, Estimator(self.query, load)).total.cpu

    def ranked(self, values: Values) -> list[Offer]:
        """Every binary tree of joins that has a predicate for each, the cheapest first."""
        memo = Memo(self.query, self.workload(values))
        offers = (memo.offer(part) for part in _trees(memo, self.query.aliases))
        return sorted(offers, key=lambda offer: offer.total.cpu)

    def write(self, directory: Path, batches: Sequence[Values]) -> None:
        """A file for each stream and batch, whose keys have so many values."""
        directory.mkdir()
        for at, (name, keys) in enumerate(self.streams.items()):
            random = np.random.default_rng(at)
            for batch, values in enumerate(batches):
                rows = self._rows(random, batch, {key: values[key] for key in keys})
                pq.write_table(rows, directory / f"{name}-{batch}.parquet")

    def _rows(self, random: np.random.Generator, batch: int, values: Values) -> pa.Table:
        count = self.rate * self.batch
        length = self.batch * MICROSECONDS
        times = BEGAN + batch * length + np.arange(count) * length // count
        columns = {key: random.integers(many, size=count) for key, many in values.items()}
        columns["v"] = random.integers(1000, size=count)
        rows = pa.table(columns | {"ts": pa.array(times, pa.timestamp("us", "UTC"))})
        for unused in (REASON, ROW):
            rows = rows.append_column(unused, pa.nulls(count, pa.string()))
        return rows


def _trees(memo: Memo, aliases: Sequence[str]) -> Iterator[Part]:
    if len(aliases) == 1:
        yield memo.leaf(aliases[0])
        return
    first, *others = aliases
    for count in range(len(others)):
        for chosen in combinations(others, count):
            left = [first, *chosen]
            right = [alias for alias in aliases if alias not in left]
            for one in _trees(memo, left):
                for other in _trees(memo, right):
                    if memo.estimator.connected(one.mask, other.mask):
                        yield memo.join((one, other))
