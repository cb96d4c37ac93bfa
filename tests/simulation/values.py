"""What columns hold: the types that a schema may have, and the values that users have of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal
from functools import cache
from math import inf, isnan, nan
from random import Random

import pyarrow as pa

TIME = "TIMESTAMP"

PLAIN = "BIGINT"
"""What is counted, added and shifted."""

WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
"""Types whose sums are BIGINT."""


@dataclass(frozen=True)
class Kind:
    """A type: what Arrow calls it, and values of it, those first that are drawn most often."""

    arrow: pa.DataType
    values: Sequence[object]
    constant: str
    """One of them in SQL."""


NAMED = {
    "BIGINT": Kind(pa.int64(), (0, 1, 2, 3, 4, 5, 2**63 - 1, -(2**63)), "-1"),
    "INT": Kind(pa.int32(), (0, 1, 2, -1, 2**31 - 1, -(2**31), 3, 4), "CAST(1 AS INT)"),
    "SMALLINT": Kind(pa.int16(), (0, 1, 2, -1, 2**15 - 1, -(2**15), 3, 4), "CAST(1 AS SMALLINT)"),
    "TINYINT": Kind(pa.int8(), (0, 1, 2, -1, 127, -128, 3, 4), "CAST(1 AS TINYINT)"),
    "DOUBLE": Kind(
        pa.float64(), (0.0, nan, inf, -0.0, -inf, 0.5, -0.25, 3.0), "CAST(0.5 AS DOUBLE)"
    ),
    "FLOAT": Kind(
        pa.float32(), (0.0, nan, -0.0, inf, -inf, 0.5, -0.25, 3.0), "CAST(0.5 AS FLOAT)"
    ),
    "BOOLEAN": Kind(pa.bool_(), (True, False), "TRUE"),
    "DATE": Kind(
        pa.date32(),
        (
            date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31),
            date(1, 1, 1), date(1582, 10, 10), date(2000, 1, 1), date(1900, 3, 1),
        ),
        "CAST('1970-01-01' AS DATE)",
    ),
    "STRING": Kind(
        pa.string(), ("a", "", "A", "ä", "a\u0308", "名前 🙂", "it's \"a\\b\n", "NULL"), "'a'"
    ),
    "BINARY": Kind(
        pa.binary(), (b"a", b"", b"\0", b"\xff\xfe", b"a\0b", b"\x80", b"A", b"'"),
        "CAST('a' AS BINARY)",
    ),
}  # fmt: skip


@cache
def kind(name: str) -> Kind:
    """What there is to know of a type."""
    if not name.startswith("DECIMAL"):
        return NAMED[name]
    precision, scale = map(int, name.removeprefix("DECIMAL").strip("()").split(","))
    numbers = (0, 1, -1, 10**precision - 1, 1 - 10**precision, 5, 10 ** (precision // 2), 7)
    exact = Context(prec=40)
    values = [exact.scaleb(Decimal(number), -scale) for number in numbers]
    return Kind(pa.decimal128(precision, scale), values, f"CAST(0 AS {name})")


def some_type(r: Random) -> str:
    """Any type that a column may have, but for times; decimals of any scale."""
    if r.random() < 0.25:
        precision = r.choice([1, 2, 9, 18, 19, 38, 38, r.randrange(1, 39)])
        return f"DECIMAL({precision}, {r.randrange(precision + 1)})"
    return r.choice([*NAMED])


def arrow(name: str) -> pa.DataType:
    """What Arrow calls a column's type."""
    return pa.timestamp("us", "UTC") if name == TIME else kind(name).arrow


def equal(value: object) -> object:
    """The same, but equal to itself."""
    return "NaN" if isinstance(value, float) and isnan(value) else value
