"""What expressions mean: on Spark and on DuckDB what plain Python says, at the edges of types."""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from itertools import groupby, product
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from jobs.backends.spark.backend import _SETTINGS
from optimizer.query import Stream
from optimizer.sql import parse, parse_schema
from optimizer.sql.cases import LOWER, UPPER
from optimizer.sql.functions import SCALARS, TRUNCATIONS
from optimizer.sql.meaning import written
from optimizer.sql.text import DIALECT
from tests.optimizer.sql.meanings import EXACT, MEANINGS, TYPES, Meaning

GROUPS = {
    types: list(meanings)
    for types, meanings in groupby(sorted(MEANINGS, key=lambda m: m.types), key=lambda m: m.types)
}


@pytest.fixture(scope="module")
def engines(spark: SparkSession) -> "Engines":
    return Engines(spark)


class Engines:
    """Both, set as the executors set them."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark.newSession()
        for name, value in _SETTINGS.items():
            self.spark.conf.set(name, value)
        self.duck = duckdb.connect()
        self.duck.execute("SET TimeZone = 'UTC'")

    def computed(
        self, types: Sequence[str], rows: list[tuple[Any, ...]], texts: Sequence[str]
    ) -> dict[str, list[tuple[Any, ...]]]:
        """The rows of an engine, in the order of the rows given."""
        schema = [
            "n INT",
            *(f"{name} {TYPES[one][0]}" for name, one in zip("xy", types, strict=False)),
        ]
        numbered = [(n, *row) for n, row in enumerate(rows)]
        frame = self.spark.createDataFrame(numbered, ", ".join(schema)).coalesce(1)
        frame.createOrReplaceTempView("rows")
        self.duck.register("rows", arrow(types, numbered))
        in_duck = ", ".join(written(text, "duckdb") for text in texts)
        in_spark = ", ".join(written(text, DIALECT) for text in texts)
        return {
            "duckdb": self.duck.execute(f"SELECT {in_duck} FROM rows ORDER BY n").fetchall(),
            "spark": list(map(tuple, self.spark.sql(f"SELECT {in_spark} FROM rows").collect())),
        }


def arrow(types: Sequence[str], rows: list[tuple[Any, ...]]) -> pa.Table:
    known = {
        "TINYINT": pa.int8(), "INT": pa.int32(), "BIGINT": pa.int64(), "DOUBLE": pa.float64(),
        "BOOLEAN": pa.bool_(), "STRING": pa.string(), "DATE": pa.date32(),
        "TIMESTAMP": pa.timestamp("us", "UTC"),
    }  # fmt: skip
    columns = {"n": pa.array([row[0] for row in rows], pa.int32())}
    for at, one in enumerate(types):
        declared = TYPES[one][0]
        kind = known.get(declared)
        if kind is None:
            precision, scale = declared.removeprefix("DECIMAL(").removesuffix(")").split(", ")
            kind = pa.decimal128(int(precision), int(scale))
        columns["xy"[at]] = pa.array([row[at + 1] for row in rows], kind)
    return pa.table(columns)


def values(one: str) -> list[Any]:
    declared, listed = TYPES[one]
    if not declared.startswith("DECIMAL"):
        return [None, *listed]
    unit = Decimal(1).scaleb(-int(declared.split(", ")[1].removesuffix(")")))
    return [None, *(Decimal(value).quantize(unit, context=EXACT) for value in listed)]


def expected(meaning: Meaning, row: tuple[Any, ...]) -> Any:
    if None in row and not meaning.nulls and "coalesce" not in meaning.text:
        if "greatest" not in meaning.text and "least" not in meaning.text:
            return None
        known = [float(v) if "double" in meaning.types else v for v in row if v is not None]
        return known[0] if known else None
    with localcontext(EXACT):
        try:
            return meaning.value(*row)
        except ArithmeticError:
            return None


def same(value: Any) -> str:
    """Zeros have no sign that shows, times no zone that counts, decimals no zeros behind."""
    match value:
        case bool() | None | str():
            return repr(value)
        case datetime():
            return repr(value.replace(tzinfo=UTC))
        case float():
            return repr(value + 0.0)
        case Decimal():
            return f"{value:f}" if value else f"{abs(value):f}"
        case _:
            return repr(value)


@pytest.mark.parametrize("types", GROUPS, ids=" ".join)
def test_both_engines_compute_what_it_means(types, engines):
    meanings = GROUPS[types]
    columns = ", ".join(f"{name} {TYPES[one][0]}" for name, one in zip("xy", types, strict=False))
    schema = parse_schema(f"{columns}, ts TIMESTAMP" if columns else "ts TIMESTAMP")
    streams = {"t": Stream("t", schema, "ts")}
    rows = list(product(*map(values, types)))
    texts = []
    for meaning in meanings:
        (output,) = parse(f"SELECT {meaning.text} AS v FROM t", streams).output
        texts.append(output.expression.sql(lambda column: column.name))
    wanted = [[same(expected(meaning, row)) for row in rows] for meaning in meanings]
    different = []
    for engine, found in engines.computed(types, rows, texts).items():
        for meaning, column, want in zip(meanings, zip(*found, strict=True), wanted, strict=True):
            for row, got, value in zip(rows, map(same, column), want, strict=True):
                if got != value and not alike(got, value):
                    different.append(f"{engine}: {meaning.text} of {row}: {got}, not {value}")
    assert not different, "\n".join(different[:40])


def alike(got: str, value: str) -> bool:
    """Decimals of another scale."""
    try:
        return "'" not in got and Decimal(got) == Decimal(value) and "." in got + value
    except ArithmeticError:
        return False


def test_every_function_has_a_meaning():
    texts = " ".join(meaning.text for meaning in MEANINGS)
    assert [scalar.name for scalar in SCALARS.values() if f"{scalar.name}(" not in texts] == []
    assert [unit for unit in TRUNCATIONS if f"'{unit.lower()}'" not in texts] == []


def test_every_letter_has_one_other_case(engines):
    """Those that one engine knows and the other does not are left as they are."""
    codes = [code for code in range(1, 0x110000) if not 0xD800 <= code <= 0xDFFF]
    words = ["".join(map(chr, codes[at : at + 64])) for at in range(0, len(codes), 64)]
    letters = UPPER.given + LOWER.given
    rows = [(text,) for text in (*words, *letters, "ΟΔΟΣ", "Straße", "DİYARBAKIR")]
    found = engines.computed(("text",), rows, ["upper(x)", "lower(x)"])
    assert found["spark"] == found["duckdb"]
    assert found["duckdb"][-3:] == [
        ("ΟΔΟΣ", "\u03bf\u03b4\u03bf\u03c3"),
        ("STRAẞE", "straße"),
        ("DİYARBAKIR", "diyarbakir"),
    ]
