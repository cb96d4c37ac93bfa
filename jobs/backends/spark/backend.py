"""Spark: states are read from exactly the files that this backend knows, results written as files.

Spark's jobs have a price of their own, so they are few and large: what a statement computes stays
a lazy view, an operator's rows are computed once by the write that must happen anyway, and whoever
else needs them reads the files back.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType
from sqlglot import exp

from jobs.backends import Parameters, Written
from jobs.backends.parquet_input import StateFiles, location_of
from jobs.tables.columns import BATCH, UNTIL
from jobs.tables.delta_store import DeltaStore
from jobs.tables.partitions import Partitioning, put_partitions
from jobs.tables.paths import LITERAL
from jobs.tables.store import DataFile, Store
from optimizer.sql.meaning import meant

_SETTINGS = {
    # A division by zero is NULL, as in the statements that DuckDB gets.
    "spark.sql.ansi.enabled": "false",
    # Decimals keep their digits, and what needs more than 38 is NULL.
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # The plan says in which order states are probed; how two relations meet is Spark's business.
    "spark.sql.cbo.enabled": "false",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "64m",
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "256m",
    "spark.sql.autoBroadcastJoinThreshold": "64m",
    "spark.sql.join.preferSortMergeJoin": "false",
    # Many small files, and their names known: no listing by jobs, no task for each.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.sql.files.openCostInBytes": "65536",
}

_WRITERS = 4
"""Jobs at once: enough to keep the cores busy while one job begins and another ends."""


class SparkBackend:
    """Runs a batch's statements in a session of its own beside the streaming query's.

    Inputs are read more than once: persist a micro-batch before handing over its parts.
    """

    writes_at_once = True

    def __init__(self, session: SparkSession) -> None:
        self._session = session.newSession()
        for name, value in _SETTINGS.items():
            self._session.conf.set(name, value)
        cores = session.sparkContext.defaultParallelism
        self._session.conf.set("spark.sql.shuffle.partitions", cores)
        self._session.conf.set("spark.sql.files.minPartitionNum", cores)
        self._cores = cores
        self._name = uuid4().hex
        self._pool = ThreadPoolExecutor(_WRITERS, thread_name_prefix="spark-write")
        self._states: dict[str, StateFiles] = {}
        self._stale: set[str] = set()
        self._views: dict[str, DataFrame] = {}
        self._computing: set[str] = set()
        self._written: dict[str, tuple[Path, Future[list[DataFile]]]] = {}

    def put(self, relation: str, rows: DataFrame) -> None:
        shared = f"midstream_{self._name}_{relation}"
        rows.createOrReplaceGlobalTempView(f"`{shared}`")
        self._name_rows(relation, self._session.table(f"global_temp.`{shared}`"))

    def also(self, relation: str, rows: str) -> None:
        self._name_rows(relation, self._frame(rows))

    def run(
        self,
        relation: str,
        statement: exp.Query,
        parameters: Parameters | None = None,
        *,
        whole: bool = False,  # noqa: ARG002
    ) -> None:
        spark = _meant(statement)
        filled = exp.replace_placeholders(spark, **parameters) if parameters else spark
        for table in filled.find_all(exp.Table):
            self._settle(table.name)
        if filled.find(exp.Join, exp.Group):
            self._computing.add(relation)
        self._name_rows(relation, self._session.sql(filled.sql(dialect="spark")))

    def rows(self, relation: str) -> pa.Table:
        return self._frame(relation).toArrow()

    def count(self, relation: str) -> int:
        return self._frame(relation).count()

    def schema(self, relation: str) -> pa.Schema:
        fields = to_arrow_schema(self._frame(relation).schema, timezone="UTC")
        return pa.schema([pa.field(field.name, field.type) for field in fields])

    def write(
        self,
        relation: str,
        store: Store,
        table: str,
        batch: int | None,
        by: Partitioning | None = None,
    ) -> Written:
        location = location_of(store, table)
        rows = self._frame(relation).coalesce(self._cores)
        future = self._pool.submit(_write, rows, location, batch, by)
        if relation in self._computing:
            self._written[relation] = location, future
        return future.result

    def open(self, state: str, store: Store, table: str, before: int) -> None:
        self._states[state] = StateFiles.of(store, table, before)
        self._stale.add(state)

    def append(self, state: str, relation: str, batch: int) -> None:
        pass

    def purge(self, state: str, cutoff: int) -> None:
        self._states[state].purge(cutoff)
        self._stale.add(state)

    def refresh(self, state: str, files: list[DataFile]) -> None:
        self._states[state].refresh(files)
        self._stale.add(state)

    def forget(self, state: str) -> None:
        del self._states[state]
        self._stale.discard(state)
        if self._views.pop(state, None) is not None:
            self._session.catalog.dropTempView(state)

    def release(self) -> None:
        for relation in self._views.keys() - self._states.keys():
            self._session.catalog.dropTempView(relation)
            self._session.catalog.dropGlobalTempView(f"midstream_{self._name}_{relation}")
            del self._views[relation]
        self._computing.clear()
        self._written.clear()

    def close(self) -> None:
        self._pool.shutdown()
        self.release()

    # --- views -----------------------------------------------------------------------------------

    def _frame(self, relation: str) -> DataFrame:
        self._settle(relation)
        return self._views[relation]

    def _name_rows(self, relation: str, rows: DataFrame) -> None:
        rows.createOrReplaceTempView(f"`{relation}`")
        self._views[relation] = rows

    def _settle(self, relation: str) -> None:
        """Make a relation stand for files: a state's, or those that its own write has made."""
        if relation in self._stale:
            known = self._states[relation]
            rows = self._read(known.location, from_arrow_schema(known.schema), known.files)
            if known.before is not None:
                rows = rows.where(col(BATCH) < known.before)
            self._name_rows(relation, rows)
            self._stale.discard(relation)
        elif relation in self._written:
            location, written = self._written.pop(relation)
            fields = [field for field in self._views[relation].schema if field.name != UNTIL]
            self._name_rows(relation, self._read(location, StructType(fields), written.result()))

    def _read(self, location: Path, schema: StructType, files: list[DataFile]) -> DataFrame:
        if not files:
            return self._session.createDataFrame([], schema)
        paths = [str(location / file.path) for file in files]
        return self._session.read.schema(schema).options(**LITERAL).parquet(*paths)


def _write(
    rows: DataFrame, location: Path, batch: int | None, by: Partitioning | None
) -> list[DataFile]:
    """Each task writes its rows through Arrow and says to which files.

    Spark's own writer makes directories and renames for a commit that the store makes anyway, and
    without Hadoop's native library starts a process for each of them.
    """
    written = rows.mapInArrow(partial(_write_part, location, batch, by), _FILES)
    return [DataFile(*row) for row in written.collect()]


_FILES = "path STRING, rows BIGINT, bytes BIGINT, until BIGINT"
_FILES_OF_A_TASK = pa.schema(
    [("path", pa.string()), ("rows", pa.int64()), ("bytes", pa.int64()), ("until", pa.int64())]
)

_MOST = 1_000_000
"""How many rows a task gathers before it writes them."""


def _write_part(
    location: Path,
    batch: int | None,
    by: Partitioning | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Runs in a task."""
    store = DeltaStore(location.parent)
    for rows in gathered(batches):
        if batch is not None:
            number = pa.repeat(pa.scalar(batch, pa.int64()), rows.num_rows)
            rows = rows.append_column(BATCH, number)  # noqa: PLW2901
        files = [asdict(file) for file in put_partitions(store, location.name, rows, by)]
        yield pa.RecordBatch.from_pylist(files, _FILES_OF_A_TASK)


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows of a task in tables that fit into memory."""
    parts: list[pa.RecordBatch] = []
    for batch in batches:
        parts.append(batch)
        if sum(part.num_rows for part in parts) >= _MOST:
            yield pa.Table.from_batches(parts)
            parts = []
    if parts:
        yield pa.Table.from_batches(parts)


@lru_cache(maxsize=256)
def _meant(statement: exp.Query) -> exp.Query:
    """A statement in Spark's words; parameters stay as they are."""
    return meant(statement, "spark").assert_is(exp.Query)
