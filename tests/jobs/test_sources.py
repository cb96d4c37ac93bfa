"""What each source takes, rejects, complains about, and can read again."""

import json
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from jobs import specs, streaming
from jobs.errors import InputError, RefusedError
from jobs.sources.checkpoint import OffsetRange
from jobs.sources.columns import matched
from jobs.sources.common import SourceError
from jobs.tables.columns import REASON
from jobs.tables.progress import Progress, history
from jobs.verify import raw
from jobs.verify.past import past
from optimizer.query import Column, Stream
from tests.jobs import small
from tests.jobs.test_streaming import differences, run

TWO = {"two": small.QUERIES["two"]}
BASE = {"schema": small.SCHEMA, "event_time": "ts"}
FILES = BASE | {"source": "files", "format": "parquet", "options": {"maxFilesPerTrigger": 1}}


def job(directory: Path, **streams: Any) -> Path:
    return small.job(directory, queries=TWO, streams=streams)


def rejected(directory: Path, stream: str) -> list[tuple[str, str]]:
    rows = DeltaTable(directory / "storage" / "rejected" / stream).to_pyarrow_table().to_pylist()
    return sorted((row["@row"], row["@reason"]) for row in rows)


def read_by_batch(path: Path) -> None:
    """Check that Spark reads again what each batch took, and DuckDB the same of it that fits."""
    spec = specs.load(path)
    done = history(streaming.job_store(spec))
    spark = SparkSession.active()
    for inlet in streaming.streams(spec):
        name = inlet.stream.name
        ends = [None, *((p.taken or {})[name] for p in done)]
        parts = [
            OffsetRange(p.batch, *between) for p, between in zip(done, pairwise(ends), strict=True)
        ]
        rows = inlet.source.again(spark, inlet.taken, parts).toArrow()
        flows = {p.batch: p.streams[name] for p in done}
        taken = Counter(
            {batch: flow.rows + flow.late + flow.rejected for batch, flow in flows.items()}
        )
        assert Counter(rows.column("@batch").to_pylist()) == taken
        assert Counter(inlet.source.count(spark, inlet.taken, parts)) == taken
        columns = ", ".join(f'"{column.name}"' for column in inlet.stream.columns)
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            known = pa.concat_tables(t for part in raw.parts(past(spec), name) for t in part.rows())
            connection.register("known", known)
            connection.register("rows", rows)
            fitting = f'SELECT {columns} FROM rows WHERE "@reason" IS NULL'
            assert connection.execute(f"{fitting} LIMIT 1").fetchall() != []
            other = connection.execute(f"{fitting} EXCEPT ALL SELECT {columns} FROM known")
            assert other.fetchall() == []


# --- Parquet -------------------------------------------------------------------------------------

GOOD = small.rows(10, 1)

BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "a new column": (
        lambda path: pq.write_table(GOOD.append_column("w", [[1] * 50]), path),
        "column w is new; stream a declares k, v, s, ts",
    ),
    "a missing column": (
        lambda path: pq.write_table(GOOD.drop_columns(["s"]), path),
        "column s is missing; stream a declares it as STRING, the data has k, v, ts",
    ),
    "another type": (
        lambda path: pq.write_table(
            GOOD.set_column(0, "k", GOOD.column("k").cast(pa.string())), path
        ),
        "column k is string; stream a declares it as BIGINT",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_parquet_file_that_does_not_fit(spark: SparkSession, tmp_path: Path, name: str):
    """It stops the job before a row of it is used; put right, the job goes on."""
    write, message = BAD[name]
    small.write(tmp_path, range(1))
    path = job(tmp_path, a=FILES | {"path": "a", "columns": "exact"}, b=FILES | {"path": "b"})
    run(path)
    bad = tmp_path / "a" / "0001.parquet"
    write(bad)

    with pytest.raises(SourceError) as error:
        run(path)
    assert message in str(error.value)
    assert str(bad) in str(error.value)
    assert "\n" not in str(error.value)

    pq.write_table(GOOD, bad)
    run(path)
    assert differences(path) == []


def test_an_empty_file_has_no_rows(spark: SparkSession, tmp_path: Path):
    small.write(tmp_path, range(1))
    (tmp_path / "a" / "0001.parquet").touch()
    path = job(tmp_path, a=FILES | {"path": "a"}, b=FILES | {"path": "b"})
    assert len(run(path)) == 2
    assert differences(path) == []


def test_a_directory_that_is_not_there(spark: SparkSession, tmp_path: Path):
    small.write(tmp_path, range(1))
    path = job(tmp_path, a=FILES | {"path": "a"}, b=FILES | {"path": "b"})
    (tmp_path / "a").rename(tmp_path / "x")
    with pytest.raises(SourceError, match=r"the directory .*/a of stream a is not there"):
        run(path)


def test_a_directory_that_disappears(spark: SparkSession, tmp_path: Path):
    small.write(tmp_path, range(1))
    path = job(tmp_path, a=FILES | {"path": "a"}, b=FILES | {"path": "b"})

    def vanish(_: Progress) -> None:
        (tmp_path / "a").rename(tmp_path / "x")

    with pytest.raises(SourceError, match=r"the directory .*/a of stream a is not there"):
        streaming.run(specs.load(path), streaming.Extent(), vanish)

    (tmp_path / "x").rename(tmp_path / "a")
    small.write(tmp_path, range(1, 2))
    run(path)
    assert differences(path) == []


def test_a_file_that_disappears(spark: SparkSession, tmp_path: Path):
    small.write(tmp_path, range(1))
    path = job(tmp_path, a=FILES | {"path": "a"}, b=FILES | {"path": "b"})
    run(path)
    bad = tmp_path / "a" / "0001.parquet"
    pq.write_table(GOOD.drop_columns(["s"]), bad)
    with pytest.raises(SourceError):
        run(path)
    bad.unlink()
    with pytest.raises(SourceError, match=r"0001\.parquet is gone, and batch 1"):
        run(path)


@pytest.mark.parametrize(
    ("declared", "kind", "fits"),
    [
        ("BIGINT", pa.int64(), True),
        ("BIGINT", pa.int32(), False),
        ("STRING", pa.large_string(), True),
        ("TIMESTAMP", pa.timestamp("us", "UTC"), True),
        ("TIMESTAMP", pa.timestamp("ns"), True),
        ("TIMESTAMP", pa.timestamp("ms", "Europe/Berlin"), True),
        ("STRING", pa.dictionary(pa.int8(), pa.string()), True),
        ("TIMESTAMP", pa.string(), False),
        ("DECIMAL(10, 2)", pa.decimal128(10, 2), True),
        ("DECIMAL(10, 2)", pa.decimal128(12, 2), False),
    ],
)
def test_types(declared: str, kind: pa.DataType, fits: bool):
    stream = Stream("s", (Column("x", declared),), "x")
    if fits:
        matched(stream, pa.schema([("x", kind)]), "here", exact=True)
    else:
        with pytest.raises(SourceError, match="here: column x is "):
            matched(stream, pa.schema([("x", kind)]), "here", exact=True)


# --- JSON and CSV --------------------------------------------------------------------------------


def as_text(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"ts": row["ts"].isoformat() if row["ts"] else None}


def test_json(spark: SparkSession, tmp_path: Path):
    small.write(tmp_path, range(1))
    (tmp_path / "j").mkdir()
    good = [json.dumps(as_text(row)) for row in small.rows(10, 0).to_pylist() if row["ts"]]
    time = '"ts": "2023-11-14T22:13:21Z"'
    bad = {
        "not json": "not a JSON object",
        f'{{"k": "one", "v": 1.5, "s": "s1", {time}}}': "k is not BIGINT: one",
        f'{{"k": 1, "w": 2, {time}}}': "unknown field w",
        "[1, 2]": "not a JSON object",
    }
    short = f'{{"k": 1, {time}}}'
    (tmp_path / "j" / "0.json").write_text("\n".join([*good, *bad, "", short]))
    (tmp_path / "j" / "1.json").touch()
    path = job(
        tmp_path, a=BASE | {"source": "files", "path": "j", "format": "json"},
        b=FILES | {"path": "b"},
    )  # fmt: skip

    (first, *_) = run(path)

    assert rejected(tmp_path, "a") == sorted(bad.items())
    assert first.streams["a"].rows == len(good) + 1
    assert differences(path) == []
    read_by_batch(path)


def test_csv(spark: SparkSession, tmp_path: Path):
    small.write(tmp_path, range(1))
    (tmp_path / "v").mkdir()
    rows = [as_text(row) for row in small.rows(10, 0).to_pylist() if row["ts"]]
    good = [",".join("" if x is None else str(x) for x in row.values()) for row in rows]
    bad = {
        "one,1.5,s1,2023-11-14T22:13:21Z": "k is not BIGINT: one",
        "1,2": "2 fields; the header has 4",
        "1,1.5,s1,2023-11-14T22:13:21Z,more": "5 fields; the header has 4",
    }
    (tmp_path / "v" / "0.csv").write_text("\n".join(["k,v,s,ts", *good, *bad]))
    stream = {"source": "files", "path": "v", "format": "csv", "options": {"header": True}}
    path = job(tmp_path, a=BASE | stream, b=FILES | {"path": "b"})

    (first, *_) = run(path)

    assert rejected(tmp_path, "a") == sorted(bad.items())
    assert first.streams["a"].rows == len(good)
    assert differences(path) == []
    read_by_batch(path)

    (tmp_path / "v" / "1.csv").write_text("k,v,x,ts\n")
    with pytest.raises(SourceError, match=r"1\.csv: column s is missing"):
        run(path)


# --- Delta ---------------------------------------------------------------------------------------


def test_delta(spark: SparkSession, tmp_path: Path):
    """Read again up to any batch, also in the middle of a version."""
    small.write(tmp_path, range(1))
    for file in range(3):
        write_deltalake(tmp_path / "d", small.rows(10, file), mode="append")
    delta = BASE | {"source": "delta", "path": "d", "options": {"maxFilesPerTrigger": 1}}
    path = job(tmp_path, a=delta, b=FILES | {"path": "b"})
    run(path, streaming.Extent(batches=2))
    assert differences(path) == []
    run(path)
    for file in range(3, 5):
        spark.createDataFrame(small.rows(10, file)).repartition(2).write.format("delta").mode(
            "append"
        ).save(str(tmp_path / "d"))
    run(path, streaming.Extent(batches=1))
    assert differences(path) == []
    assert sum(p.streams["a"].rows + p.streams["a"].late for p in run(path)) > 50
    assert differences(path) == []
    read_by_batch(path)


def test_a_time_out_of_range_in_delta(spark: SparkSession, tmp_path: Path):
    """It is one rejected row, and the job goes on; a time without a zone is one of UTC."""
    small.write(tmp_path, range(1))
    rows = pa.table({"k": [1, 2], "v": [0.0, 0.0], "s": ["good", "far"]})
    times = pa.array([small.START, 2**63 - 1], pa.timestamp("us"))
    write_deltalake(tmp_path / "d", rows.append_column("ts", times))
    path = job(tmp_path, a=BASE | {"source": "delta", "path": "d"}, b=FILES | {"path": "b"})
    (first, *_) = run(path)
    assert (first.streams["a"].rows, first.streams["a"].newest) == (1, small.START)
    (row,) = DeltaTable(tmp_path / "storage" / "rejected" / "a").to_pyarrow_table().to_pylist()
    assert (row["s"], row["ts"], row[REASON]) == ("far", None, "ts has no value of TIMESTAMP")
    read_by_batch(path)


def test_a_damaged_file_of_a_delta_table(spark: SparkSession, tmp_path: Path):
    """It is one rejected row; those beside it are read, by statistics and `verify` too.

    What the job does not declare is said once, and a table may have it in any case and narrower.
    """
    small.write(tmp_path, range(2))
    wide = small.rows(10, 0).append_column("X", [[1] * small.TUPLES])
    rows = wide.rename_columns(["K", *wide.column_names[1:]])
    rows = rows.set_column(0, "K", rows.column("K").cast(pa.int32()))
    rows = rows.append_column("part", pa.array([i % 2 for i in range(small.TUPLES)]))
    write_deltalake(tmp_path / "d", rows, partition_by=["part"])
    (bad,) = (tmp_path / "d" / "part=1").glob("*.parquet")
    good = bad.read_bytes()
    bad.write_bytes(good[:300] + b"\xff" * 300 + good[600:])
    stream = BASE | {"source": "delta", "path": "d"}
    generator = generated(10, 1)
    path = small.job(
        tmp_path, streams={"a": stream, "b": FILES | {"path": "b"}, "g": generator},
        queries=TWO | {"alone": {"sql": "SELECT k FROM g"}},
    )  # fmt: skip
    said: list[str] = []
    done: list[Progress] = []
    extent = streaming.Extent(until_caught_up=True, batches=3)
    streaming.run(specs.load(path), extent, done.append, said.append)

    assert [line.split(",")[0] for line in said] == ["stream a: columns X"]
    flows = [batch.streams["a"] for batch in done]
    assert (sum(f.rows + f.late for f in flows), sum(f.rejected for f in flows)) == (25, 1)
    ((row, reason),) = rejected(tmp_path, "a")
    assert row == str(bad)
    assert reason.startswith("cannot be read: ")
    assert sum(batch.streams["g"].rows for batch in done) == 30
    assert differences(path) == []
    read_by_batch(path)


def test_delta_of_another_schema(spark: SparkSession, tmp_path: Path):
    small.write(tmp_path, range(1))
    write_deltalake(tmp_path / "d", small.rows(10, 0).drop_columns(["s"]))
    path = job(tmp_path, a=BASE | {"source": "delta", "path": "d"}, b=FILES | {"path": "b"})
    with pytest.raises(SourceError, match="column s is missing"):
        run(path)


# --- generator -----------------------------------------------------------------------------------


def generated(rate: float, seed: int, **more: Any) -> dict[str, Any]:
    generator = {"rate": rate, "keys": {"k": 20, "s": 3}, "seed": seed} | more
    return BASE | {"source": "generator", "generator": generator}


def test_generator(spark: SparkSession, tmp_path: Path):
    """The same tuples from Spark, and again from DuckDB: or the results would not agree."""
    drift = [{"after": "2 seconds", "rate": 200, "keys": {"k": 5}}]
    path = job(tmp_path, a=generated(100, 1, drift=drift), b=generated(30.5, 2))
    batches = run(path, streaming.Extent(until_caught_up=True, batches=4))
    assert [p.streams["a"].rows for p in batches] == [100, 100, 200, 200]
    assert sum(p.streams["b"].rows for p in batches) == 122
    assert differences(path) == []
    read_by_batch(path)


def test_a_generator_never_ends(tmp_path: Path):
    path = job(tmp_path, a=generated(100, 1), b=generated(30, 2))
    with pytest.raises(InputError, match="stream a never ends"):
        run(path)


def test_kafka_is_refused(tmp_path: Path):
    kafka = BASE | {"source": "kafka", "topic": "t", "servers": "localhost:9092"}
    with pytest.raises(RefusedError, match="kafka is not supported yet"):
        run(job(tmp_path, a=kafka, b=FILES | {"path": "b"}))
