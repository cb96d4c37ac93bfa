"""Names that users may choose, and that meet what an engine calls things by itself."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from jobs.backends import SqlBackend
from jobs.backends.duckdb.backend import DuckBackend
from jobs.backends.spark.backend import SparkBackend
from jobs.backends.spark_duckdb.backend import SparkDuckBackend
from jobs.engine.ingest import Ingest
from jobs.engine.microbatch import Engine, Job
from jobs.tables.columns import REASON, ROW
from jobs.tables.delta_store import DeltaStore
from optimizer.plan import as_written, build
from optimizer.query import Stream
from optimizer.sql import parse, parse_schema
from tests.jobs.engine.test_contract import in_files

HOSTILE = "_until BIGINT, _batch BIGINT, _slot STRING, _reason BIGINT, _row BIGINT, b__c BIGINT"
SCHEMAS = {
    "a": f"{HOSTILE}, k BIGINT, ts TIMESTAMP",
    "a__b": f"{HOSTILE}, c BIGINT, k BIGINT, ts TIMESTAMP",
    "s": "k BIGINT, größe BIGINT, ts TIMESTAMP",
    "s_1": "k BIGINT, ts TIMESTAMP",
    "in_a": "r BIGINT, p0 BIGINT, i BIGINT, w BIGINT, `select` BIGINT, ts TIMESTAMP",
    "total": "oldest BIGINT, newest BIGINT, late BIGINT, stream STRING, fitting TIMESTAMP",
}
EVENT_TIMES = {"total": "fitting"}
STREAMS = {
    name: Stream(name, parse_schema(schema), EVENT_TIMES.get(name, "ts"))
    for name, schema in SCHEMAS.items()
}

QUERIES: dict[str, tuple[str, Sequence[tuple[Any, ...]]]] = {
    "columns that join to one name": (
        "SELECT a.b__c AS x, o.c AS y FROM a JOIN a__b o ON a.k = o.k",
        [(100 + k, 10 * k) for k in (1, 2, 3)],
    ),
    "all columns of ours": (
        "SELECT _until, _batch, _slot, _reason, _row FROM a",
        [(200 + k, 300 + k, f"s{k}", 400 + k, 500 + k) for k in (1, 2, 3)],
    ),
    "kept in a state": (
        "SELECT a._until AS _until, o._batch AS _batch, a._slot AS _slot FROM a JOIN a__b o"
        " ON a._reason = o._reason AND a._row = o._row",
        [(200 + k, 300 + k, f"s{k}") for k in (1, 2, 3)],
    ),
    "a self-join beside a stream": (
        "SELECT x.größe AS a, y.k AS e, z.k AS _nth FROM s x, s y, s_1 z"
        " WHERE x.k = y.k AND z.k = y.k",
        [(k, k, k) for k in (1, 2, 3)],
    ),
    "aliases of statements": (
        "SELECT x.r AS p, x.p0 AS d, y.i AS w, y.w AS i, y.`select` AS `from`"
        " FROM in_a x JOIN in_a y ON x.r = y.r",
        [(k, 10 * k, 20 * k, 30 * k, 40 * k) for k in (1, 2, 3)],
    ),
    "figures of a look": (
        "SELECT oldest, newest, late, stream FROM total",
        [(k, 10 * k, 20 * k, f"t{k}") for k in (1, 2, 3)],
    ),
    "groups": (
        "SELECT b__c AS _slot, max(_slot) AS _until, avg(_row) AS x, sum(_row) AS x__sum,"
        " count(*) AS window_start, window.end AS window_end"
        " FROM a WHERE k < 3 GROUP BY b__c, window(ts, '1 second')",
        [(100 + k, f"s{k}", 500.0 + k, 500 + k, 1, 1) for k in (1, 2)],
    ),
}  # fmt: skip


def _value(column: str, k: int) -> Any:
    """What tuple `k` of three has in a column."""
    known = {"b__c": 100, "_until": 200, "_batch": 300, "_reason": 400, "_row": 500}
    texts = {"_slot": "s", "stream": "t"}
    factors = {"c": 10, "p0": 10, "i": 20, "w": 30, "select": 40, "newest": 10, "late": 20}
    if column in texts:
        return f"{texts[column]}{k}"
    return known[column] + k if column in known else factors.get(column, 1) * k


def _rows(stream: Stream, *, of: range) -> pa.Table:
    types = {"STRING": pa.string(), "TIMESTAMP": pa.timestamp("us", "UTC")}
    values = {column.name: [_value(column.name, k) for k in of] for column in stream.columns}
    values[stream.event_time] = [100_000 * k for k in of]
    columns = {
        column.name: pa.array(values[column.name], types.get(column.type, pa.int64()))
        for column in stream.columns
    }
    nothing = pa.nulls(len(of), pa.string())
    return pa.table(columns | {REASON: nothing, ROW: nothing})


def _run(name: str, store: DeltaStore, backend: SqlBackend, convert: Any) -> Counter[Any]:
    sql, _ = QUERIES[name]
    query = parse(sql, STREAMS, 1_000_000)
    plan = build(query, as_written(query))
    streams = {stream.name: stream for stream in query.streams.values()}
    job = Job("names", {name: Ingest(stream) for name, stream in streams.items()}, {"by-q": plan})
    engine = Engine(job, store, backend, clock=lambda: 10**7)
    for number, part in enumerate((range(1, 2), range(2, 4))):
        engine.run(number, {n: convert(_rows(s, of=part)) for n, s in streams.items()})
    last = {n: _rows(s, of=range(77, 78)) for n, s in streams.items()}
    engine.run(2, {n: convert(rows) for n, rows in last.items()})
    engine.run(3, {n: convert(rows.slice(1)) for n, rows in last.items()})
    engine.close()
    found = store.load("out/by-q")
    names = [output.name for output in query.output]
    plain = [_plain(found.column(name)).to_pylist() for name in names]
    return Counter(row for row in zip(*plain, strict=True) if not _last(row))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def _last(row: tuple[Any, ...]) -> bool:
    """Whether a row is of the tuple that only moves the watermark on."""
    return any(value in (77, 177, 277, "s77", "t77") for value in row)


def _expected(name: str) -> Counter[Any]:
    _, rows = QUERIES[name]
    return Counter((*row[:-1], 1_000_000) if name == "groups" else row for row in rows)


@pytest.mark.parametrize("name", QUERIES)
def test_duckdb(name: str, tmp_path: Path):
    found = _run(name, DeltaStore(tmp_path), DuckBackend(), lambda rows: rows)
    assert found == _expected(name)


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("engine", ["spark", "spark-duckdb"])
def test_spark(engine: str, name: str, spark: SparkSession, tmp_path: Path):
    if engine == "spark":
        found = _run(name, DeltaStore(tmp_path), SparkBackend(spark), spark.createDataFrame)
    else:
        found = _run(
            name, DeltaStore(tmp_path), SparkDuckBackend(spark), in_files(tmp_path / "raw")
        )
    assert found == _expected(name)
