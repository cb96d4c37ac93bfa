"""Sums at the edges of their types: exact whatever the plan and the batches, or NULL."""

from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from jobs.backends import SqlBackend
from jobs.backends.duckdb.backend import DuckBackend
from jobs.backends.spark.backend import SparkBackend
from jobs.engine.microbatch import Engine
from jobs.tables.columns import REASON, ROW
from jobs.tables.delta_store import DeltaStore
from jobs.tables.memory_store import MemoryStore
from jobs.tables.store import Store
from optimizer.plan import Plan, build, parse
from optimizer.query import Query, Stream
from optimizer.sql import parse as query_of
from optimizer.sql import parse_schema
from tests.jobs.engine.harness import BEGAN, Delivery, job_of, results
from tests.jobs.engine.inline import backend as tasks
from tests.jobs.engine.test_contract import in_files

STREAMS = {
    "a": Stream(
        "a",
        parse_schema(
            "k INT, big BIGINT, wide DECIMAL(38, 18), whole DECIMAL(38, 0), fine DECIMAL(12, 8),"
            " part DECIMAL(38, 38), ts TIMESTAMP"
        ),
        "ts",
    ),
    "b": Stream("b", parse_schema("k INT, ts TIMESTAMP"), "ts"),
}
LARGEST = 2**63 - 1
MOST = Decimal("9" * 38)
UNIT = Decimal("0.000000000000000001")
WIDEST = Decimal("99999999999999999999.999999999999999999")
FINE = Decimal("1234.56789012")
PART = Decimal("0." + "9" * 38)


def minus(value: Decimal, add: Decimal = Decimal(0)) -> Decimal:
    """With all its digits."""
    with localcontext(prec=100):
        return add - value


Row = tuple[int, int | None, Decimal | None, Decimal | None, Decimal | None, Decimal | None]
ROWS: list[Row] = [
    # the sum fits, what is added up on the way does not
    (0, LARGEST, WIDEST, MOST, FINE, PART),
    (0, LARGEST, WIDEST, MOST, FINE, PART),
    (0, -LARGEST, minus(WIDEST), minus(MOST), FINE, minus(PART)),
    (0, -LARGEST - 1, minus(WIDEST, UNIT), minus(MOST, Decimal(1)), FINE, minus(PART)),
    # it does not
    (1, LARGEST, WIDEST, MOST, -FINE, PART),
    (1, 1, UNIT, Decimal(1), -FINE, PART),
    # there is none
    (2, None, None, None, None, None),
]
SINGLE = (
    "SELECT k, sum(big) AS big, sum(wide) AS wide, sum(whole) AS whole, sum(fine) AS fine,"
    " sum(part) AS part, avg(big) AS mean, sum(-fine * 2) AS twice"
    " FROM a GROUP BY k, window(ts, '10 seconds')"
)
JOINED = (
    "SELECT a.k, sum(big) AS big, sum(wide) AS wide, sum(whole) AS whole, sum(fine) AS fine,"
    " sum(part) AS part, avg(big) AS mean, sum(-fine * 2) AS twice"
    " FROM a, b WHERE a.k = b.k GROUP BY a.k, window(a.ts, '10 seconds')"
)
PARTNERS = 3
CASES = [
    (SINGLE, "a", 1),
    (JOINED, "(a b)", PARTNERS),
    (JOINED, "([a] b)", PARTNERS),
    (JOINED, "(a [b])", PARTNERS),
    (JOINED, "([a] [b])", PARTNERS),
]


def summed(values: list[Any], digits: int, most: int) -> Decimal | None:
    """The sum if a decimal of `digits` digits behind its point, or an integer, holds it."""
    known = [value for value in values if value is not None]
    with localcontext(prec=100):
        total = sum(map(Decimal, known), Decimal(0))
        return total if known and -most <= total.scaleb(digits) < most else None


def expected(times: int) -> dict[int, tuple[Any, ...]]:
    made: dict[int, tuple[Any, ...]] = {}
    for key in {row[0] for row in ROWS}:
        big, wide, whole, fine, part = (
            [row[at] for row in ROWS if row[0] == key] * times for at in range(1, 6)
        )
        numbers = [value for value in big if value is not None]
        made[key] = (
            summed(big, 0, 2**63),
            summed(wide, 18, 10**38),
            summed(whole, 0, 10**38),
            summed(fine, 8, 10**38),
            summed(part, 38, 10**38),
            sum(numbers) / len(numbers) if numbers else None,
            summed([value and -value * 2 for value in fine], 8, 10**38),
        )
    return made


def batches(count: int) -> Iterator[dict[str, pa.Table]]:
    """The rows shared out, and one much later that ends the windows."""
    begin = BEGAN // 10_000_000 * 10_000_000
    late = (None,) * 6
    a = [(*row, begin + n) for n, row in enumerate(ROWS)]
    b = [(key, begin + n) for n, key in enumerate([0, 1, 2] * PARTNERS)]
    for batch in range(count):
        last, part = batch == count - 1, slice(batch * 9 // count, (batch + 1) * 9 // count)
        yield {
            "a": raw("a", a[part] + ([(*late, begin + 60_000_000)] if last else [])),
            "b": raw("b", b[part] + ([(None, begin + 60_000_000)] if last else [])),
        }


def raw(name: str, rows: list[tuple[Any, ...]]) -> pa.Table:
    kinds = {"INT": pa.int32(), "BIGINT": pa.int64(), "TIMESTAMP": pa.timestamp("us", "UTC")}
    arrays = []
    for at, column in enumerate(STREAMS[name].columns):
        digits = column.type.removeprefix("DECIMAL(").removesuffix(")").split(", ")
        kind = kinds.get(column.type) or pa.decimal128(int(digits[0]), int(digits[1]))
        arrays.append(pa.array([row[at] for row in rows], kind))
    made = pa.table(arrays, [column.name for column in STREAMS[name].columns])
    nothing = pa.nulls(made.num_rows, pa.string())
    return made.append_column(REASON, nothing).append_column(ROW, nothing)


def carried_out(
    plan: Plan,
    store: Store,
    backend: SqlBackend,
    count: int,
    convert: Callable[[pa.Table], Any] = lambda rows: rows,
) -> dict[int, tuple[Any, ...]]:
    engine = Engine(job_of(plan, Delivery(count)), store, backend, clock=lambda: BEGAN)
    names = {stream.name for stream in plan.query.streams.values()}
    for number, batch in enumerate(batches(count)):
        engine.run(number, {name: convert(rows) for name, rows in batch.items() if name in names})
    rows = results(store).drop_columns("k")
    keys = results(store).column("k").to_pylist()
    order = ["big", "wide", "whole", "fine", "part", "mean", "twice"]
    values = zip(*(rows.column(name).to_pylist() for name in order), strict=True)
    backend.close()
    return dict(zip(keys, values, strict=True))


def planned(sql: str, tree: str) -> Plan:
    query: Query = query_of(sql, STREAMS, 5_000_000)
    return build(query, parse(tree))


@pytest.mark.parametrize(("sql", "tree", "times"), CASES, ids=[case[1] for case in CASES])
@pytest.mark.parametrize("count", [1, 3])
def test_sums_are_exact_or_null(sql, tree, times, count):
    found = carried_out(planned(sql, tree), MemoryStore(), DuckBackend(), count)
    assert found == expected(times)


def test_sums_shared_out_among_tasks(tmp_path: Path):
    found = carried_out(
        planned(JOINED, "([a] b)"),
        DeltaStore(tmp_path / "store"),
        tasks(2),
        3,
        in_files(tmp_path / "raw"),
    )
    assert found == expected(PARTNERS)


@pytest.mark.parametrize(("sql", "tree", "times"), CASES[:3], ids=[case[1] for case in CASES[:3]])
def test_sums_in_spark(sql, tree, times, spark: SparkSession, tmp_path: Path):
    backend = SparkBackend(spark)
    store = DeltaStore(tmp_path)
    found = carried_out(planned(sql, tree), store, backend, 2, spark.createDataFrame)
    assert found == expected(times)
