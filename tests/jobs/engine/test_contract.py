"""Every shape of plan, on both executors, gives what the query means: no row more, none less."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from jobs.backends import SqlBackend
from jobs.backends.duckdb.backend import DuckBackend
from jobs.backends.parquet_input import ParquetInput
from jobs.backends.spark.backend import SparkBackend
from jobs.backends.spark_duckdb.backend import SparkDuckBackend
from jobs.tables.delta_store import DeltaStore
from jobs.tables.memory_store import MemoryStore
from jobs.tables.store import Store
from optimizer.plan import (
    Emit,
    GroupBy,
    Join,
    Plan,
    Select,
    Source,
    build,
    combine,
    parse,
)
from tests.jobs.engine.cases import CASES, Case, trees, within
from tests.jobs.engine.harness import (
    DELIVERIES,
    DISORDERED,
    LATE,
    Delivery,
    bag,
    expected,
    results,
    run,
)


def plans(case: Case, most: int) -> list[Plan]:
    """Plans of so many shapes, those with combined inputs besides."""
    shapes = [*trees(case, most), *map(parse, case.combined)]
    return [build(case.query, shape) for shape in shapes]


def check(case: Case, plan: Plan, store: Store, how: Delivery) -> None:
    wanted = bag(expected(case.query, case.oracle, store, how))
    got = bag(results(store))
    assert got == wanted, (
        f"{plan} {how}: {(wanted - got).total()} missing, {(got - wanted).total()} extra"
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_duckdb(case):
    for at, plan in enumerate(plans(case, most=26)):
        how = DELIVERIES[at % len(DELIVERIES)]
        store = MemoryStore()
        run(plan, store, DuckBackend(), how)
        check(case, plan, store, how)


@pytest.mark.parametrize("how", DELIVERIES, ids=str)
def test_any_delivery_gives_the_same(how):
    case = CASES[6]
    for plan in plans(case, most=2):
        store = MemoryStore()
        run(plan, store, DuckBackend(), how)
        check(case, plan, store, how)
    assert store.exists("late/a") == (how == LATE)


def in_files(directory: Path) -> Callable[[pa.Table], ParquetInput]:
    """Rows as the tasks of Spark take them: two files, of which one may be empty."""

    def convert(rows: pa.Table) -> ParquetInput:
        directory.mkdir(exist_ok=True)
        files = []
        for part in (rows.slice(0, 7), rows.slice(7)):
            path = str(directory / f"{uuid4().hex}.parquet")
            pq.write_table(part, path)
            files.append((path, part.num_rows))
        return ParquetInput(tuple(files), rows.schema)

    return convert


@pytest.mark.parametrize(
    ("engine", "case"),
    list(product(["spark", "spark-duckdb"], CASES)),
    ids=lambda value: getattr(value, "name", value),
)
def test_spark(engine: str, case: Case, spark: SparkSession, tmp_path: Path):
    """Fewer shapes and batches, and the same tables as DuckDB's, down to the types."""
    chosen = plans(case, most=2)[-2:]
    for at, plan in enumerate(chosen):
        how = (Delivery(2), DISORDERED)[at] if len(case.query.inputs) == 3 else Delivery(2)
        store, duck = DeltaStore(tmp_path / str(at)), MemoryStore()
        backend: SqlBackend = SparkBackend(spark)
        convert: Callable[[pa.Table], Any] = spark.createDataFrame
        if engine == "spark-duckdb":
            backend, convert = SparkDuckBackend(spark), in_files(tmp_path / "raw")
        run(plan, store, backend, how, convert=convert)
        backend.close()
        check(case, plan, store, how)
        run(plan, duck, DuckBackend(), how)
        assert tables(store) == tables(duck)


def tables(store: Store) -> dict[str, dict[str, pa.DataType]]:
    """The columns of every table; of decimals the scale, as each engine widens in its own way."""
    return {table: dict(map(_typed, store.schema(table))) for table in store.tables()}


def _typed(field: pa.Field) -> tuple[str, pa.DataType]:
    if pa.types.is_decimal(field.type):
        return field.name, pa.decimal128(38, field.type.scale)
    return field.name, field.type


def test_a_select_above_combined_tuples_counts():
    """No search places it there; a plan given as JSON may."""
    case = Case(
        "late select",
        "SELECT a.k, sum(b.i) AS total, window.end AS ends FROM a, b WHERE a.k = b.k AND a.j > 1"
        " GROUP BY a.k, window(a.ts, '2 seconds')",
        "SELECT a.k, sum(b.i)::BIGINT AS total,"
        " time_bucket(INTERVAL 2 SECOND, a.ts) + INTERVAL 2 SECOND AS ends FROM a, b"
        f" WHERE a.k = b.k AND a.j > 1 AND {within(2, 'a', 'b')}"
        " GROUP BY a.k, ends HAVING epoch_us(ends) + 2000000 <= :closed",
        2,
    )
    query = case.query
    assert query.grouping is not None
    (predicate,) = query.selects("a")
    low = Select(combine(query, Source("a", query.streams["a"])), predicate)
    parts = (low, Source("b", query.streams["b"]))
    between = tuple(p for p in query.predicates if len(p.aliases) == 2)
    join = Join(parts, between, query.bounds, ((1,), (0,)))
    plan = Plan(query, Emit(GroupBy(join, query.grouping), query.output))
    store = MemoryStore()
    run(plan, store, DuckBackend(), DELIVERIES[0])
    check(case, plan, store, DELIVERIES[0])
    assert store.load("out/q").num_rows
