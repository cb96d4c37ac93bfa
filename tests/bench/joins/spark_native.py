"""Spark's own stream-stream joins, and the whole input as one batch join."""

import sys
from json import dumps
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from jobs.spark import session
from jobs.streaming import SETTINGS
from tests.bench.joins.workload import SCHEMA, Workload, write

_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"

_CHECKED = {"spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem"}
"""Spark's RocksDB cannot do without the checksums that a job of ours leaves out."""

KINDS: dict[str, dict[str, str]] = {
    "native-rocksdb": {_PROVIDER: _ROCKS, _CHANGELOG: "false", **_CHECKED},
    "native-changelog": {_PROVIDER: _ROCKS, _CHANGELOG: "true", **_CHECKED},
    "native-memory": {},
    "batch": {},
}


def main(kind: str, workload: Workload, data: Path) -> dict[str, Any]:
    """Warm up with a little, then run all of it."""
    spark = session(kind, **(SETTINGS | KINDS[kind]), **{"spark.sql.shuffle.partitions": 2})
    spark.sparkContext.setLogLevel("ERROR")
    with TemporaryDirectory(dir=data.parent) as warm:
        little = workload.little
        write(little, Path(warm) / "data")
        _run(spark, kind, little, Path(warm))
    with TemporaryDirectory(dir=data.parent) as storage:
        (Path(storage) / "data").symlink_to(data)
        return _run(spark, kind, workload, Path(storage))


def _run(spark: SparkSession, kind: str, workload: Workload, storage: Path) -> dict[str, Any]:
    began = perf_counter()
    sink = str(storage / "out")
    if kind == "batch":
        joined(spark, workload, storage / "data", streaming=False).write.format("delta").save(sink)
    else:
        writer = joined(spark, workload, storage / "data", streaming=True).writeStream
        writer = writer.format("delta").option("checkpointLocation", str(storage / "checkpoint"))
        writer.trigger(availableNow=True).start(sink).awaitTermination()
    seconds = perf_counter() - began
    return {"seconds": seconds, "results": _results(spark, workload, sink)}


def joined(spark: SparkSession, workload: Workload, data: Path, *, streaming: bool) -> DataFrame:
    """The query, left-deep, as Spark wants it."""
    first, *others = workload.streams
    rows = _stream(spark, data, first, streaming=streaming)
    seen = [first]
    for at, name in enumerate(others):
        left, _, column = workload.equalities[at]
        near = [
            f"unix_micros({s}_ts) - unix_micros({name}_ts) BETWEEN -{w} AND {w}"
            if streaming and s != first
            else f"{s}_ts BETWEEN {name}_ts - INTERVAL {workload.window} SECONDS"
            f" AND {name}_ts + INTERVAL {workload.window} SECONDS"
            for s in seen
            for w in [workload.window * 1_000_000]
        ]
        condition = " AND ".join([f"{left}_{column} = {name}_{column}", *near])
        rows = rows.join(_stream(spark, data, name, streaming=streaming), f.expr(condition))
        # Only one event time may go on to the next stateful operator.
        rows = rows.withColumn(f"{name}_ts", f.expr(f"timestamp_micros(unix_micros({name}_ts))"))
        seen.append(name)
    if workload.shape == "grouped":
        grouped = rows.groupBy("b_j", f.window("a_ts", "10 seconds"))
        made = grouped.agg(f.count("*").alias("n"), f.sum("a_v").alias("total"))
        return made.select(f.col("b_j").alias("j"), f.col("window.end").alias("ends"), "n", "total")
    return rows.selectExpr(*(f"{s}_v AS {s}v" for s in seen), "a_ts AS ats")


def _stream(spark: SparkSession, data: Path, name: str, *, streaming: bool) -> DataFrame:
    path = str(data / name)
    if not streaming:
        rows = spark.read.schema(SCHEMA).parquet(path)
    else:
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        rows = reader.option("maxFileAge", "36500d").parquet(path)
    rows = rows.toDF(*(f"{name}_{column}" for column in rows.columns))
    return rows.withWatermark(f"{name}_ts", "0 seconds") if streaming else rows


def _results(spark: SparkSession, workload: Workload, sink: str) -> int:
    if workload.shape != "grouped":
        return int(DeltaTable(sink).to_pyarrow_dataset().count_rows())
    rows = spark.read.format("delta").load(sink)
    closed = rows.where(f"unix_millis(ends) <= {workload.closed()}")
    return int(closed.agg(f.coalesce(f.sum("n"), f.lit(0))).first()[0])  # type: ignore[index]


if __name__ == "__main__":
    made = main(sys.argv[1], Workload.from_json(sys.argv[2]), Path(sys.argv[3]))
    print("RESULT " + dumps(made))
