"""Every function and operator beside its meaning in plain Python, and values at the edges of types.

The meaning of NULL is NULL, unless an entry says otherwise; an ArithmeticError means NULL, too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal, localcontext
from functools import cmp_to_key
from math import ceil, floor, fmod, inf, isinf, isnan, nan
from re import ASCII, IGNORECASE, fullmatch
from typing import Any

TYPES: dict[str, tuple[str, list[Any]]] = {
    "tiny": ("TINYINT", [0, 1, -1, 7, 127, -128]),
    "int": ("INT", [0, 1, -1, 7, -2, 2**31 - 1, -(2**31)]),
    "big": ("BIGINT", [0, 1, -1, 3, -7, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "short": ("DECIMAL(10, 2)", ["0.00", "0.01", "-0.50", "2.50", "99999999.99", "-99999999.99"]),
    "wide": (
        "DECIMAL(38, 18)",
        ["0", "1", "-1.5", "0.000000000000000001", "99999999999999999999.999999999999999999"],
    ),
    "whole": ("DECIMAL(38, 0)", ["0", "3", "-1", "9007199254740993", "9" * 38, "-" + "9" * 38]),
    "deep": ("DECIMAL(38, 30)", ["0", "1.5", "-99999999." + "9" * 30, "0." + "0" * 29 + "1"]),
    "tail": ("DECIMAL(38, 38)", ["0", "0." + "9" * 38, "-0." + "0" * 37 + "1"]),
    "part": ("DECIMAL(9, 9)", ["0", "0.000000001", "-0.999999999", "0.5"]),
    "double": (
        "DOUBLE",
        [
            0.0,
            -0.0,
            1.5,
            -2.5,
            0.49999999999999994,
            2.0**53,
            9.3e18,
            -(2.0**63),
            2.0**63,
            1e308,
            -1e308,
            5e-324,
            inf,
            -inf,
            nan,
        ],
    ),
    "flag": ("BOOLEAN", [True, False]),
    "text": (
        "STRING",
        [
            *("", " ", "a", "Ab z", "ß", "İ", "ΑΣ ΑΩ", "ﬁ", "é", "e\u0301", "\U0001f600b", "ǆ"),
            *("\t x\n", "\u00a0x\u00a0", "\u3000x", "%_", "a\\b", "it's", "\U00010fff"),
        ],
    ),
    "number": (
        "STRING",
        [
            *(
                "1_000",
                "١٢",
                "\uff11",
                "1d",
                "1f",
                "0x10",
                "inf",
                "Infinity",
                "-INF",
                "+inf",
                "infi",
            ),
            *("nan", "NaN", "-nan", " 1 ", "\t1\n", "1\n", "1e5", "1e", "e5", ".", "1.", ".5"),
            *("+-1", "1 2", "1e5.5", "1e400", "-1e400", "1e-400", "", "1.005", "-1.005", "1;"),
            *("99999999.995", "true", "-0", "-0.0", "007", "+1", "--1", "9" * 400, "\u00a01"),
            "0." + "0" * 400 + "1",
        ],
    ),
    "day": ("DATE", [date(1, 1, 1), date(1582, 10, 10), date(1969, 12, 31), date(9999, 12, 31)]),
    "time": (
        "TIMESTAMP",
        [
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(1582, 10, 14, 23, 59, 59, 999999, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            datetime(1970, 1, 1, tzinfo=UTC),
            datetime(2024, 2, 29, 12, 30, 0, 1, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        ],
    ),
}
"""Names of columns: their types, and values at the edges."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EXACT = Context(prec=200)


class UncomputableError(ArithmeticError):
    """There is no such value."""


@dataclass(frozen=True)
class Meaning:
    """An expression over x and y, the types that these have, and what it means."""

    text: str
    types: tuple[str, ...]
    value: Callable[..., Any]
    nulls: bool = False
    """Whether `value` wants NULLs, too."""


def fits(bits: int) -> Callable[[int], int]:
    """An integer of so many bits."""

    def check(value: int) -> int:
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise UncomputableError
        return value

    return check


def exact(value: Decimal, scale: int, precision: int = 38) -> Decimal:
    """A decimal of that type, with all its digits or rounded half up."""
    made = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, EXACT)
    if abs(made).scaleb(scale, EXACT) >= Decimal(10) ** precision:
        raise UncomputableError
    return made


def number(value: Any) -> Any:
    """As it is compared with a double."""
    return float(value)


def order(one: Any, other: Any) -> int:
    """NaN is equal to itself and larger than everything else."""
    first, second = ((1, 0) if isinstance(v, float) and isnan(v) else (0, v) for v in (one, other))
    return (first > second) - (first < second)


def floored(value: Any, rounding: Callable[[Any], int]) -> int:
    if isinstance(value, float) and (isnan(value) or isinf(value)):
        raise UncomputableError
    return fits(64)(rounding(value))


def rounded(value: float) -> float:
    """Half away from zero."""
    if isnan(value) or isinf(value):
        return value
    return float(Decimal(repr(value)).quantize(Decimal(1), ROUND_HALF_UP, Context(prec=400)))


def remainder(x: Any, y: Any) -> Any:
    """The sign is the dividend's."""
    if y == 0:
        raise UncomputableError
    if isinstance(x, float) or isinstance(y, float):
        return fmod(x, y) if not (isinf(x) or isnan(x)) else nan
    return abs(x) % abs(y) * (1 if x >= 0 else -1)


def divided(x: Any, y: Any) -> float:
    one, other = float(x), float(y)
    if other == 0:
        raise UncomputableError
    try:
        return one / other
    except OverflowError:
        return inf if (one > 0) == (other > 0) else -inf


def read_double(text: str) -> float:
    pattern = r" *([+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)|nan) *"
    if not fullmatch(pattern, text, ASCII | IGNORECASE):
        raise UncomputableError
    return float(text)


def read_decimal(scale: int, precision: int) -> Callable[[str], Decimal]:
    def read(text: str) -> Decimal:
        if not fullmatch(r" *[+-]?(\d+\.?\d*|\.\d+) *", text, ASCII):
            raise UncomputableError
        with localcontext(prec=1000):
            value = Decimal(text.strip())
            return exact(value, scale, precision) if value < 10**50 else exact(Decimal(10) ** 50, 0)

    return read


def plus(x: float, y: float) -> float:
    return x + y


def times(x: float, y: float) -> float:
    return x * y


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def floor_micros(moment: datetime, step: int) -> int:
    return micros(moment) // step * step


def upper(text: str) -> str:
    kept = {"ß": "ẞ", "ﬁ": "ﬁ"}
    return "".join(kept.get(letter) or letter.upper() for letter in text)


def lower(text: str) -> str:
    return "".join({"İ": "i", "Σ": "\u03c3"}.get(letter) or letter.lower() for letter in text)


def plain(value: Decimal) -> str:
    return f"{value or abs(value):f}"


def largest(*values: Any) -> Any:
    known = [value for value in values if value is not None]
    return max(known, key=cmp_to_key(order)) if known else None


def smallest(*values: Any) -> Any:
    known = [value for value in values if value is not None]
    return min(known, key=cmp_to_key(order)) if known else None


INTEGERS = (("tiny", 32), ("int", 32), ("big", 64))
PAIRS = [(one, other, max(a, b)) for one, a in INTEGERS for other, b in INTEGERS]
DAY = 86_400_000_000

MEANINGS: list[Meaning] = [
    # whole numbers
    *(
        Meaning(text, (one, other), lambda x, y, f=f, bits=bits: fits(bits)(f(x, y)))
        for one, other, bits in PAIRS
        for text, f in (
            ("x + y", lambda x, y: x + y),
            ("x - y", lambda x, y: x - y),
            ("x * y", lambda x, y: x * y),
            ("x % y", remainder),
            ("x * 3 - y", lambda x, y, one=one: fits(64 if one == "big" else 32)(x * 3) - y),
        )
    ),
    *(
        Meaning(text, (one,), lambda x, f=f, b=b: fits(b)(f(x)))
        for one, b in INTEGERS
        for text, f in (
            ("-x", lambda x: -x),
            ("abs(x)", abs),
            ("x + 1", lambda x: x + 1),
            ("x * -1", lambda x: -x),
            ("x % -1", lambda x: 0),
            ("x % 3", lambda x: remainder(x, 3)),
            ("round(x)", lambda x: x),
            ("x - -2147483648", lambda x: x + 2**31),
        )
    ),
    *(
        Meaning(text, (one,), lambda x, f=f: f(x))
        for one, _ in INTEGERS
        for text, f in (
            ("x / 0", lambda x: divided(x, 0)),
            ("x % 0", lambda x: remainder(x, 0)),
            ("7 / x", lambda x: divided(7, x)),
            ("floor(x)", lambda x: x),
            ("ceil(x)", lambda x: x),
            ("CAST(x AS TINYINT)", fits(8)),
            ("CAST(x AS INT)", fits(32)),
            ("CAST(x AS BIGINT)", lambda x: x),
            ("CAST(x AS STRING)", str),
            ("CAST(x AS BOOLEAN)", bool),
            ("CAST(x AS DOUBLE)", float),
            ("CAST(x AS DECIMAL(4, 2))", lambda x: exact(Decimal(x), 2, 4)),
            ("CAST(x AS DECIMAL(38, 18))", lambda x: exact(Decimal(x), 18)),
            ("x < 9223372036854775808", lambda x: True),
            ("x > -9223372036854775808", lambda x: x > -(2**63)),
            ("x IN (1, 2.5)", lambda x: x == 1),
            ("nullif(x, 1)", lambda x: None if x == 1 else x),
        )
    ),
    Meaning("2147483647 + 1", (), lambda: None),
    Meaning("-9223372036854775808", (), lambda: -(2**63)),
    Meaning("-9223372036854775808 - 1", (), lambda: None),
    Meaning("99999999999999999999999999999999999999 + 1", (), lambda: None),
    # decimals
    *(
        Meaning(text, (one, other), f)
        for one, other, scale, product in (
            ("short", "short", 2, 4),
            ("short", "wide", 18, 20),
            ("wide", "wide", 18, 36),
            ("whole", "whole", 0, 0),
            ("short", "int", 2, 2),
            ("big", "short", 2, 2),
            ("whole", "big", 0, 0),
            ("part", "tiny", 9, 9),
            ("part", "part", 9, 18),
        )
        for text, f in (
            ("x + y", lambda x, y, s=scale: exact(EXACT.add(Decimal(x), y), s)),
            ("x - y", lambda x, y, s=scale: exact(EXACT.subtract(Decimal(x), y), s)),
            ("x * y", lambda x, y, s=product: exact(EXACT.multiply(Decimal(x), y), s)),
            ("x % y", lambda x, y, s=scale: exact(remainder_of(x, y), s)),
            ("x / y", divided),
            ("x = y", lambda x, y: x == y),
            ("x < y", lambda x, y: x < y),
            ("coalesce(x, y)", lambda x, y: y if x is None else x),
            ("greatest(x, y)", largest),
            (
                "x * y * 2",
                lambda x, y, s=product: exact(2 * exact(EXACT.multiply(Decimal(x), y), s), s),
            ),
        )
        if not (text.startswith("x * y") and product > 38)
    ),
    *(
        Meaning(text, (one,), f)
        for one, scale in (("short", 2), ("wide", 18), ("whole", 0), ("part", 9), ("deep", 30))
        for text, f in (
            ("-x", lambda x: -x),
            ("abs(x)", abs),
            ("x * 2", lambda x, s=scale: exact(2 * x, s)),
            ("x * 1.25", lambda x, s=scale: exact(EXACT.multiply(x, Decimal("1.25")), s + 2)),
            ("x + 1e0", lambda x: float(x) + 1),
            ("round(x)", lambda x: exact(x, 0)),
            ("floor(x)", lambda x: floored(x, lambda v: int(v.to_integral_value(ROUND_FLOOR)))),
            ("ceil(x)", lambda x: floored(x, lambda v: int(v.to_integral_value(ROUND_CEILING)))),
            ("CAST(x AS STRING)", plain),
            ("CAST(x AS DOUBLE)", float),
            ("CAST(x AS DECIMAL(4, 1))", lambda x: exact(x, 1, 4)),
            ("x > 5", lambda x: x > 5),
            ("x % 3", lambda x, s=scale: exact(remainder_of(x, 3), s)),
            ("3 % x", lambda x, s=scale: exact(remainder_of(3, x), s)),
            ("nullif(x, 0)", lambda x: x or None),
            ("x < 10000", lambda x: x < 10000),
        )
    ),
    Meaning("x % 0.5", ("tail",), lambda x: remainder_of(x, Decimal("0.5"))),
    Meaning("x + x", ("tail",), lambda x: exact(x + x, 38)),
    Meaning("-x", ("tail",), lambda x: -x),
    Meaning("CAST(CAST(x AS DECIMAL(38, 37)) AS STRING)", ("tail",), lambda x: plain(exact(x, 37))),
    # doubles
    *(
        Meaning(text, ("double", other), f)
        for other in ("double", "big", "short", "whole")
        for text, f in (
            ("x + y", lambda x, y: plus(x, float(y))),
            ("x - y", lambda x, y: plus(x, -float(y))),
            ("x * y", lambda x, y: times(x, float(y))),
            ("x / y", divided),
            ("x % y", lambda x, y: remainder(x, float(y))),
            ("x = y", lambda x, y: order(x, float(y)) == 0),
            ("x < y", lambda x, y: order(x, float(y)) < 0),
            ("x <= y", lambda x, y: order(x, float(y)) <= 0),
            ("greatest(x, y)", lambda x, y: float(largest(x, float(y)))),
            ("least(x, y)", lambda x, y: float(smallest(x, float(y)))),
        )
    ),
    *(
        Meaning(text, ("double",), f)
        for text, f in (
            ("-x", lambda x: -x),
            ("abs(x)", abs),
            ("round(x)", rounded),
            ("floor(x)", lambda x: floored(x, floor)),
            ("ceil(x)", lambda x: floored(x, ceil)),
            ("x % 0", lambda x: remainder(x, 0)),
            ("x * 1.5", lambda x: x * 1.5),
            ("x IN (0, 1.5)", lambda x: x in {0, 1.5}),
            ("x BETWEEN 0 AND 2", lambda x: 0 <= x <= 2),
        )
    ),
    # what takes any
    Meaning("greatest(x, y)", ("int", "int"), largest, nulls=True),
    Meaning("least(x, y)", ("int", "int"), smallest, nulls=True),
    Meaning("coalesce(x, y)", ("int", "int"), lambda x, y: y if x is None else x, nulls=True),
    Meaning(
        "x <=> y",
        ("double", "double"),
        lambda x, y: x is y if None in (x, y) else order(x, y) == 0,
        nulls=True,
    ),
    Meaning(
        "nullif(x, y)",
        ("double", "big"),
        lambda x, y: x if None in (x, y) or order(x, float(y)) else None,
        nulls=True,
    ),
    Meaning("if(x, 1, 2)", ("flag",), lambda x: 1 if x else 2, nulls=True),
    Meaning(
        "CASE WHEN x > 0 THEN x ELSE 2.5 END",
        ("int",),
        lambda x: exact(Decimal(x), 1) if x is not None and x > 0 else Decimal("2.5"),
        nulls=True,
    ),
    Meaning("CAST(x AS INT)", ("flag",), int),
    Meaning("CAST(x AS STRING)", ("flag",), lambda x: str(x).lower()),
    # text
    *(
        Meaning(text, ("text",), f)
        for text, f in (
            ("upper(x)", upper),
            ("lower(x)", lower),
            ("trim(x)", lambda x: x.strip(" ")),
            ("length(x)", len),
            ("left(x, 1)", lambda x: x[:1]),
            ("right(x, 1)", lambda x: x[-1:]),
            ("right(x, 0)", lambda x: ""),
            ("substring(x, 2, 1)", lambda x: x[1:2]),
            ("replace(x, 'x', 'yy')", lambda x: x.replace("x", "yy")),
            ("replace(x, '', 'yy')", lambda x: x),
            ("contains(x, '')", lambda x: True),
            ("contains(x, 'b')", lambda x: "b" in x),
            ("startswith(x, 'A')", lambda x: x.startswith("A")),
            ("endswith(x, 'z')", lambda x: x.endswith("z")),
            ("x LIKE '_'", lambda x: len(x) == 1),
            ("x LIKE '%b'", lambda x: x.endswith("b")),
            ("x LIKE ''", lambda x: x == ""),
            ("x || 'é'", lambda x: x + "é"),
            ("concat(x, NULL)", lambda x: None),
            ("nullif(x, 'a')", lambda x: None if x == "a" else x),
            ("x = 'it''s'", lambda x: x == "it's"),
        )
    ),
    Meaning("x < y", ("text", "text"), lambda x, y: x.encode() < y.encode()),
    Meaning("greatest(x, y)", ("text", "text"), lambda x, y: max(x, y, key=str.encode)),
    Meaning("CAST(x AS DOUBLE)", ("number",), read_double),
    Meaning("CAST(x AS DECIMAL(10, 2))", ("number",), read_decimal(2, 10)),
    Meaning("CAST(x AS DECIMAL(38, 0))", ("number",), read_decimal(0, 38)),
    # times
    *(
        Meaning(f"{name}(x)", ("time",), lambda x, part=part: getattr(x, part))
        for name, part in (
            ("year", "year"),
            ("month", "month"),
            ("day", "day"),
            ("dayofmonth", "day"),
            ("hour", "hour"),
            ("minute", "minute"),
            ("second", "second"),
        )
    ),
    *(
        Meaning(f"{name}(x)", ("day",), lambda x, part=name: getattr(x, part))
        for name in ("year", "month", "day")
    ),
    *(
        Meaning(
            f"unix_micros(date_trunc('{unit}', x))",
            ("time",),
            lambda x, step=step: floor_micros(x, step),
        )
        for unit, step in (
            ("second", 10**6),
            ("minute", 60 * 10**6),
            ("hour", 3600 * 10**6),
            ("day", DAY),
        )
    ),
    Meaning(
        "unix_micros(date_trunc('week', x))",
        ("time",),
        lambda x: (micros(x) // DAY - (micros(x) // DAY + 3) % 7) * DAY,
    ),
    Meaning("unix_micros(date_trunc('month', x))", ("time",), lambda x: micros_at(x.year, x.month)),
    Meaning(
        "unix_micros(date_trunc('quarter', x))",
        ("time",),
        lambda x: micros_at(x.year, (x.month - 1) // 3 * 3 + 1),
    ),
    Meaning("unix_micros(date_trunc('year', x))", ("time",), lambda x: micros_at(x.year, 1)),
    Meaning("unix_micros(x)", ("time",), micros),
    Meaning("unix_micros(x + INTERVAL 1 DAY)", ("time",), lambda x: micros(x) + DAY),
    Meaning("unix_micros(x - INTERVAL 1 MICROSECOND)", ("time",), lambda x: micros(x) - 1),
    Meaning(
        "unix_micros(x + INTERVAL 3600000 DAYS)",
        ("time",),
        lambda x: fits(64)(micros(x) + 3_600_000 * DAY),
    ),
    Meaning(
        "unix_micros(x" + " + INTERVAL 3600000 DAYS" * 30 + ")",
        ("time",),
        lambda x: fits(64)(micros(x) + 108_000_000 * DAY),
    ),
    Meaning(
        "unix_micros(x" + " - INTERVAL 3600000 DAYS" * 30 + ")",
        ("time",),
        lambda x: fits(64)(micros(x) - 108_000_000 * DAY),
    ),
    Meaning(
        "unix_micros(x) - unix_micros(y)", ("time", "time"), lambda x, y: micros(x) - micros(y)
    ),
    Meaning("x - y < INTERVAL 1 DAY", ("time", "time"), lambda x, y: micros(x) - micros(y) < DAY),
    Meaning("x < y", ("time", "time"), lambda x, y: x < y),
    Meaning("x < y", ("day", "time"), lambda x, y: at(x.year, x.month, x.day) < y),
    Meaning("CAST(x AS DATE)", ("time",), lambda x: x.date()),
    Meaning("CAST(x AS STRING)", ("day",), date.isoformat),
    Meaning(
        "unix_micros(CAST(x AS TIMESTAMP))", ("day",), lambda x: micros_at(x.year, x.month, x.day)
    ),
    Meaning(
        "CAST(CAST(x + INTERVAL 3650000 DAYS AS DATE) AS STRING)",
        ("time",),
        lambda x: "9994-05-13" if x.year == 1 else None,
    ),
]


def at(year: int, month: int, day: int = 1) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


def micros_at(year: int, month: int, day: int = 1) -> int:
    return micros(at(year, month, day))


def remainder_of(x: Any, y: Any) -> Decimal:
    if y == 0:
        raise UncomputableError
    return EXACT.remainder(Decimal(x), Decimal(y))
