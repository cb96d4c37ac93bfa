"""Joins of three streams and more on one key, estimated from gathered windows: DuckDB has counted.

`pytest -s` prints what the product of the pairs makes of it, and the estimate.
"""

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from optimizer.estimate import Estimator
from optimizer.query import Query, Stream
from optimizer.sql import parse, parse_schema
from optimizer.workload import UnitCosts, Workload
from stats.collect import Input, Subject, collect
from stats.store import KEYS, StatsStore, Window
from stats.workloads import observed

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
WINDOWS = [Window(START + i * 10 * SECOND, START + (i + 1) * 10 * SECOND) for i in range(2)]
SCHEMA = "k BIGINT, v DOUBLE, ts TIMESTAMP"
STREAMS = {name: Stream(name, parse_schema(SCHEMA), "ts") for name in "abcd"}
ARROW = pa.schema([
    ("k", pa.int64()), ("v", pa.float64()), ("ts", pa.timestamp("us", "UTC")),
    ("@batch", pa.int64()),
])  # fmt: skip

KEYS_OF = {
    "Zipf 1.2": [rank**-1.2 for rank in range(1, 1001)],
    "uniform": [1.0] * 2_000,
}
SHAPES = {
    "chain": "a.k = b.k AND b.k = c.k AND c.k = d.k",
    "star": "a.k = b.k AND a.k = c.k AND a.k = d.k",
    "all pairs": " AND ".join(f"{x}.k = {y}.k" for x, y in combinations("abcd", 2)),
}
WITHIN = 1.1
"""The estimate is off by this factor at most, whatever the keys are like and however many join."""


def tuples(kind: str, at: int) -> pa.Table:
    """A stream's, faster than the one before it; a tenth without a key."""
    random, count = Random(at), 6_000 + 3_000 * at
    keys = random.choices(range(len(KEYS_OF[kind])), KEYS_OF[kind], k=count)
    return pa.table(
        {
            "k": [None if random.random() < 0.1 else key for key in keys],
            "v": [random.random() for _ in keys],
            "ts": [START + random.randrange(20_000) * 1000 for _ in keys],
            "@batch": [0] * count,
        },
        schema=ARROW,
    )


def query(shape: str, count: int) -> Query:
    names = "abcd"[:count]
    conditions = [c for c in SHAPES[shape].split(" AND ") if {c[0], c[6]} <= set(names)]
    text = f"SELECT a.k FROM {', '.join(names)} WHERE {' AND '.join(conditions)} AND a.v > 0.25"
    return parse(text, STREAMS, 5 * SECOND)


def key(shape: str, count: int) -> str:
    return f"{shape} of {count}"


WAYS = (("chain", 2), ("chain", 3), ("all pairs", 3), ("chain", 4), ("star", 4))
QUERIES = {key(shape, count): query(shape, count) for shape, count in WAYS}


@pytest.fixture(scope="module", params=KEYS_OF)
def gathered(request: Any, spark: SparkSession, tmp_path_factory: Any) -> Any:
    """Streams, and the statistics of their two windows."""
    streams = {name: tuples(request.param, at) for at, name in enumerate("abcd")}
    inputs = {n: Input(STREAMS[n], spark.createDataFrame(rows), {}) for n, rows in streams.items()}
    store = StatsStore.of(tmp_path_factory.mktemp("job"))
    found = collect(spark, Subject(WINDOWS, WINDOWS[0], inputs, QUERIES, []))
    for table, rows in found.items():
        store.replace_all(table, rows)
    return request.param, streams, store


def counted(streams: Mapping[str, pa.Table], of: Query) -> float:
    """The share of all combinations of a window's tuples that match, on average."""
    names = of.aliases
    with duckdb.connect() as connection:
        for name, rows in streams.items():
            connection.register(f"_{name}", rows)
            where = "WHERE v > 0.25" if name == "a" else ""
            connection.execute(
                f"CREATE TABLE {name} AS SELECT *, (epoch_us(ts) - {START}) // {10 * SECOND} AS w "
                f"FROM _{name} {where}"
            )
        joined = " AND ".join(f"{one}.w = a.w AND {one}.k = a.k" for one in names)
        every = " * ".join(f"(SELECT count(*) FROM {one} WHERE w = m)" for one in names)
        text = f"SELECT count(*)::DOUBLE FROM {', '.join(names)} WHERE {joined} AND a.w = m"
        ((mean,),) = connection.execute(
            f"SELECT avg(({text}) / ({every})) FROM range(2) AS windows(m)"
        ).fetchall()
    return float(mean)


def estimated(of: Query, load: Workload) -> float:
    """The same as the optimizer has it: of a tree's join, without rates and selects."""
    estimator = Estimator(of, load)
    factor, mask = 1.0, 1
    for bit in (1 << i for i in range(1, len(of.aliases))):
        factor *= estimator.crossing(mask, bit)
        mask |= bit
    return factor


def without(load: Workload) -> Workload:
    """What was known before, and is of windows that an older version gathered: pairs."""
    return Workload(load.streams, load.joins, load.selects)


@pytest.mark.parametrize("name", QUERIES)
def test_estimates_meet_what_is_counted(gathered: Any, name: str):
    kind, streams, store = gathered
    of = QUERIES[name]
    found = observed(of, store, WINDOWS, name=name, batch=10, costs=UnitCosts()).workload
    true = counted(streams, of)
    pairs, by_keys = (estimated(of, load) / true for load in (without(found), found))
    print(f"\n{kind:22} {name:16} pairs {pairs:8.3f}  keys {by_keys:6.3f} of what is there")
    assert 1 / WITHIN <= by_keys <= WITHIN
    if kind == "Zipf 1.2" and len(of.aliases) > 2:
        assert max(pairs, 1 / pairs) > 2


def test_what_is_kept_of_a_key(gathered: Any):
    _, streams, store = gathered
    rows = [r for r in store.rows(KEYS) if r["query"] == "chain of 3"]
    assert {(r["key"], r["alias"]) for r in rows} == {("a.k = b.k = c.k", a) for a in "abc"}
    with duckdb.connect() as connection:
        for row in rows:
            connection.register("s", streams[row["alias"]])
            where = "v > 0.25" if row["alias"] == "a" else "TRUE"
            inside = f"epoch_us(ts) // {10 * SECOND} = {row['window_start'] // (10 * SECOND)}"
            of = f"FROM s WHERE {where} AND {inside}"
            assert connection.execute(f"SELECT count(*), count(*) - count(k) {of}").fetchall() == [
                (row["rows"], row["nulls"])
            ]
            heavy = {one["value"]: one["rows"] for one in row["heavy"]}
            often = connection.execute(f"SELECT k, count(*) {of} GROUP BY k").fetchall()
            counts = {str(k): n for k, n in often if k is not None}
            assert heavy == {value: counts.get(value, 0) for value in heavy}
            assert row["rest"] == sum(counts.values()) - sum(heavy.values())


def test_windows_of_an_older_version_say_what_pairs_say(gathered: Any, tmp_path: Path):
    _, _, store = gathered
    of, older = QUERIES["chain of 3"], StatsStore.of(tmp_path)
    for table in ("streams", "edges", "selects"):
        older.replace_all(table, {w: store.rows(table, [w]) for w in WINDOWS})
    found, now = (
        observed(of, one, WINDOWS, name="chain of 3", batch=10, costs=UnitCosts()).workload
        for one in (older, store)
    )
    assert found.keys == {}
    assert estimated(of, found) == pytest.approx(estimated(of, without(now)))
