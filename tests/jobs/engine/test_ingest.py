"""Event times at the edges: each tuple is taken, late or rejected, and in one table."""

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

CLOCK, AHEAD = 1_700_000_000_000_000, 10**9
YEAR_1, YEAR_9999 = -62_135_596_800_000_000, 253_402_300_799_999_999
STREAM = Stream("a", parse_schema("n BIGINT, ts TIMESTAMP"), "ts")

OUT, FUTURE, NONE = "event time out of range", "event time too far in the future", "no event time"
FATES: dict[int | None, str] = {
    -(2**63): OUT,
    -(2**63) + 1: OUT,
    -(2**63) + 2: OUT,
    -(2**62): OUT,
    YEAR_1 - 1: OUT,
    YEAR_1: "late",
    -1: "late",
    0: "late",
    10**6 - 1: "late",
    10**6: "taken",
    CLOCK + AHEAD: "taken",
    CLOCK + AHEAD + 1: FUTURE,
    YEAR_9999: FUTURE,
    YEAR_9999 + 1: OUT,
    2**63 - 2: OUT,
    2**63 - 1: OUT,
    None: NONE,
}
"""The watermark is at a second when they come."""


def _rows(times: list[int | None]) -> pa.Table:
    return pa.table({
        "n": pa.array(range(len(times)), pa.int64()),
        "ts": pa.array(times, pa.timestamp("us", "UTC")),
        REASON: pa.nulls(len(times), pa.string()),
        ROW: pa.nulls(len(times), pa.string()),
    })  # fmt: skip


def _fates(store: DeltaStore, backend: SqlBackend, convert: Any) -> dict[int | None, str]:
    query = parse("SELECT n FROM a", {"a": STREAM})
    job = Job("edges", {"a": Ingest(STREAM, ahead=AHEAD)}, {"q": build(query, as_written(query))})
    engine = Engine(job, store, backend, clock=lambda: CLOCK)
    engine.run(0, {"a": convert(_rows([10**6]))})
    engine.run(1, {"a": convert(_rows(list(FATES)))})
    engine.close()
    rejected = store.load("rejected/a")
    whys = rejected.column(REASON).to_pylist()
    found = list(zip(rejected.column("n").to_pylist(), whys, strict=True))
    for table, fate in (("out/q", "taken"), ("late/a", "late")):
        found += [(n, fate) for n in store.load(table).column("n").to_pylist()]
    assert len(found) == 1 + len(FATES)  # with the tuple of the first batch, of n = 0 as well
    found.remove((0, "taken"))
    times = list(FATES)
    return {times[n]: fate for n, fate in found}


def test_duckdb(tmp_path: Path):
    assert _fates(DeltaStore(tmp_path), DuckBackend(), lambda rows: rows) == FATES


@pytest.mark.parametrize("engine", ["spark", "spark-duckdb"])
def test_spark(engine: str, spark: SparkSession, tmp_path: Path):
    store, files = DeltaStore(tmp_path / "store"), in_files(tmp_path / "raw")

    def frame(rows: pa.Table) -> Any:
        return spark.read.parquet(*(path for path, _ in files(rows).files))

    if engine == "spark":
        assert _fates(store, SparkBackend(spark), frame) == FATES
    else:
        assert _fates(store, SparkDuckBackend(spark), files) == FATES
