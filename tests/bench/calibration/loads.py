"""What calibration is measured on: queries of several shapes over streams of several speeds."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from jobs.tables.columns import REASON, ROW
from optimizer.memo import Memo, Offer, Part
from optimizer.plan import Leaf, Tree
from optimizer.query import Column, Query, Stream
from optimizer.sql import parse
from optimizer.window import MICROSECONDS
from optimizer.workload import Method, StreamLoad, UnitCosts, Workload
from tests.bench.chain import BEGAN
from tests.optimizer.builders import every_tree


@dataclass(frozen=True)
class Load:
    """A query, each join on a key of its own, and how much comes in."""

    name: str
    rates: Mapping[str, int]
    partners: Mapping[str, float]
    """For each pair joined, the partners that a tuple of the slower finds in a window."""
    window: int
    batch: int
    batches: int
    """How many are measured, once the windows are full."""

    @property
    def filling(self) -> int:
        """How many batches pass until the windows are full."""
        return -(-self.window // self.batch)

    @property
    def rate(self) -> int:
        """Tuples per second of all streams together."""
        return sum(self.rates.values())

    @cached_property
    def values(self) -> dict[str, int]:
        """How many values each key has."""
        return {
            pair: max(1, round(max(self.rates[name] for name in pair) * self.window / found))
            for pair, found in self.partners.items()
        }

    def stream(self, name: str) -> Stream:
        """Its keys, a payload, its time."""
        columns = [Column(pair, "BIGINT") for pair in self.values if name in pair]
        columns += [Column("v", "BIGINT"), Column("ts", "TIMESTAMP")]
        return Stream(name, tuple(columns), "ts")

    @cached_property
    def query(self) -> Query:
        """All of them joined, each pair at most a window apart."""
        equal = " AND ".join(f"{pair[0]}.{pair} = {pair[1]}.{pair}" for pair in self.values)
        values = ", ".join(f"{name}.v AS {name}v" for name in self.rates)
        sql = f"SELECT {values} FROM {', '.join(self.rates)} WHERE {equal}"
        streams = {name: self.stream(name) for name in self.rates}
        return parse(sql, streams, self.window * MICROSECONDS)

    def workload(self, costs: UnitCosts) -> Workload:
        """What the cost model is told."""
        streams = {
            name: StreamLoad(rate, 8.0 * len(self.stream(name).columns))
            for name, rate in self.rates.items()
        }
        joins = {frozenset(pair): 1 / count for pair, count in self.values.items()}
        return Workload(
            streams, joins, method=Method.BATCH, unit_costs=costs, batch=float(self.batch)
        )

    def plans(self, count: int) -> list[Offer]:
        """So many of all mixtures of joins without products, from the cheapest to the dearest."""
        memo = Memo(self.query, self.workload(UnitCosts()))
        trees = (tree for tree in every_tree(list(self.rates)) if _connected(memo, tree))
        offers = sorted((memo.offer(_ordered(memo, tree)) for tree in trees), key=_cpu)
        chosen = sorted({round(i * (len(offers) - 1) / (count - 1)) for i in range(count)})
        return [offers[position] for position in chosen]

    def batch_of(self, name: str, number: int, seed: int) -> pa.Table:
        """The tuples of a stream in a batch."""
        random = np.random.default_rng((seed, number, ord(name)))
        length, count = self.batch * MICROSECONDS, self.rates[name] * self.batch
        times = BEGAN + number * length + np.arange(count) * length // count
        keys = {
            p: random.integers(many, size=count) for p, many in self.values.items() if name in p
        }
        keys["v"] = random.integers(1000, size=count)
        rows = pa.table(keys | {"ts": pa.array(times, pa.timestamp("us", "UTC"))})
        for unused in (REASON, ROW):
            rows = rows.append_column(unused, pa.nulls(count, pa.string()))
        return rows


def _cpu(offer: Offer) -> float:
    return offer.total.cpu


def _ordered(memo: Memo, tree: Tree) -> Part:
    if isinstance(tree, Leaf):
        return memo.leaf(tree.alias)
    return memo.join([_ordered(memo, part) for part in tree.parts])


def _connected(memo: Memo, tree: Tree) -> bool:
    """Whether no join of it, nor a part of one, is a product."""
    if isinstance(tree, Leaf):
        return True
    masks = [_ordered(memo, part).mask for part in tree.parts]
    reached, rest = masks[0], masks[1:]
    while found := [mask for mask in rest if memo.estimator.connected(reached, mask)]:
        reached |= sum(found)
        rest = [mask for mask in rest if mask not in found]
    return not rest and all(_connected(memo, part) for part in tree.parts)


_ALL = (
    Load(
        "chain",
        dict.fromkeys("abcde", 3_000),
        {"ab": 8.0, "bc": 2.0, "cd": 0.5, "de": 0.1},
        window=20, batch=10, batches=3,
    ),
    Load(
        "star",
        {"a": 8_000, "b": 400, "c": 800, "d": 1_500, "e": 4_000},
        {"ab": 0.02, "ac": 0.5, "ad": 5.0, "ae": 3.0},
        window=20, batch=10, batches=3,
    ),
    Load(
        "small",
        {"a": 300, "b": 900, "c": 600, "d": 150},
        {"ab": 2.0, "bc": 1.0, "cd": 0.5, "ad": 4.0},
        window=4, batch=1, batches=6,
    ),
)  # fmt: skip

LOADS: Mapping[str, Load] = {load.name: load for load in _ALL}
"""A chain of five streams, a star around a fast one, and a cycle in which little comes in."""
