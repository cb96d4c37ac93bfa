"""The functions of docs/sql.md as this bench understands them: their text, type and meaning.

Worked out in plain Python.  What cannot be computed is NULL; so is what has no argument, unless
the function says otherwise.
"""

import math
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cmp_to_key
from typing import Any

from tests.bench.differential.terms import Value

EXACT = Context(prec=200)
"""More digits than any product has."""

SIZES = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
NUMBERS = ("INTEGER", "DECIMAL", "DOUBLE")
KINDS = dict.fromkeys(SIZES, "INTEGER") | {"FLOAT": "DOUBLE", "DOUBLE": "DOUBLE"}

Types = Sequence[str]
Meaning = Callable[..., Value]


def kind_of(type_: str) -> str:
    """INTEGER, DECIMAL, DOUBLE, or what the type is called."""
    return "DECIMAL" if type_.startswith("DECIMAL") else KINDS.get(type_, type_)


def digits(type_: str) -> tuple[int, int]:
    """The precision and scale with which a number goes into a decimal."""
    if type_ in SIZES:
        return {"BIGINT": 20}.get(type_, 10), 0
    precision, scale = type_.removeprefix("DECIMAL").strip("()").split(",")
    return int(precision), int(scale)


def decimal(precision: int, scale: int) -> str | None:
    """The type of so many digits, or of as many as there can be: more are NULL, never rounded."""
    return f"DECIMAL({max(1, min(precision, 38))}, {scale})" if scale <= 38 else None


# --- values and their types ----------------------------------------------------------------------


def fit(value: Value, type_: str) -> Value:
    """The value in that type, or NULL where it does not fit."""
    if value is None:
        return None
    if type_ in SIZES:
        assert isinstance(value, int)
        limit = 2 ** (SIZES[type_] - 1)
        return int(value) if -limit <= value < limit else None
    match kind_of(type_):
        case "DECIMAL":
            precision, scale = digits(type_)
            exact = value if isinstance(value, Decimal) else Decimal(value)  # type: ignore[arg-type]
            rounded = exact.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, EXACT)
            if not rounded:
                return rounded.copy_abs()  # a zero of SQL has no sign
            return rounded if rounded.copy_abs() < Decimal(10) ** (precision - scale) else None
        case "DOUBLE":
            return narrow(double(value)) if type_ == "FLOAT" else double(value)
    return value


def double(value: Value) -> float:
    """A number as DOUBLE."""
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return math.inf


def narrow(value: float) -> float:
    """The nearest FLOAT."""
    try:
        (found,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        return math.copysign(math.inf, value)
    return float(found)


def wide(type_: str) -> str:
    """What Spark computes with instead of narrow types."""
    return {"TINYINT": "INT", "SMALLINT": "INT", "FLOAT": "DOUBLE"}.get(type_, type_)


def common(types: Types) -> str | None:
    """The type to which all of these convert."""
    wides = {wide(one) for one in types}
    kinds = {kind_of(one) for one in wides}
    if len(wides) == 1:
        return wides.pop()
    if kinds == {"DATE", "TIMESTAMP"}:
        return "TIMESTAMP"
    if not kinds <= set(NUMBERS):
        return None
    if "DOUBLE" in kinds:
        return "DOUBLE"
    if "DECIMAL" in kinds:
        scale = max(digits(one)[1] for one in wides)
        whole = max(p - s for p, s in map(digits, wides))
        return decimal(whole + scale, scale) if whole + scale <= 38 else None
    return "BIGINT"


def converted(value: Value, type_: str, to: str) -> Value:
    """A value where its operator needs it in another type."""
    if value is None or type_ == to:
        return value
    if (type_, to) == ("DATE", "TIMESTAMP"):
        assert isinstance(value, int)
        return value * DAY
    return fit(value, to) if kind_of(to) in NUMBERS else value


def compare(one: Any, other: Any) -> int:
    """Less, equal or greater; NaN is equal to itself and greater than all else."""
    floats = isinstance(one, float) and isinstance(other, float)
    if floats and (math.isnan(one) or math.isnan(other)):
        return math.isnan(one) - math.isnan(other)
    if isinstance(one, str):
        one, other = one.encode(), other.encode()
    return int(one > other) - int(one < other)


# --- how functions are declared ------------------------------------------------------------------


@dataclass(frozen=True)
class Function:
    """How it is written, what it takes, the type of its result, and what that is."""

    template: str
    takes: tuple[str, ...]
    type: Callable[[Types], str | None]
    meaning: Meaning
    """Of the values, in the type that they have in common if `alike`."""
    nulls: bool = False
    """Whether NULLs are arguments like any other."""
    alike: bool = False
    typed: bool = False
    """Whether the meaning takes the types of its arguments besides."""

    def text(self, arguments: Sequence[str], type_: str) -> str:
        """As SQL."""
        return self.template.format(*arguments, type=type_, all=", ".join(arguments))

    def value(self, values: Sequence[Value], types: Types, type_: str) -> Value:
        """Its result, in its type."""
        if not self.nulls and any(value is None for value in values):
            return None
        if self.alike:
            to = common(types)
            assert to is not None
            values = [converted(v, t, to) for v, t in zip(values, types, strict=True)]
        found = self.meaning(*values, types) if self.typed else self.meaning(*values)
        return fit(found, type_)


def always(type_: str) -> Callable[[Types], str | None]:
    """One type, whatever it takes."""
    return lambda _: type_


def own(types: Types) -> str | None:
    """The type of its argument, as wide as Spark makes it."""
    return wide(types[0])


def _sum(types: Types) -> str | None:
    if _kind(types) != "DECIMAL" or common(types) is None:
        return common(types)
    found = [digits(one) for one in map(wide, types)]
    scale = max(s for _, s in found)
    return decimal(max(p - s for p, s in found) + scale + 1, scale)


def _product(types: Types) -> str | None:
    to = _kind(types)
    if to != "DECIMAL":
        return common(types)
    (p, s), (q, t) = (digits(one) for one in map(wide, types))
    return decimal(p + q, s + t)


def _remainder(types: Types) -> str | None:
    if _kind(types) != "DECIMAL" or common(types) is None:
        return common(types)
    (p, s), (q, t) = (digits(one) for one in map(wide, types))
    return decimal(min(p - s, q - t) + max(s, t), max(s, t))


def _kind(types: Types) -> str:
    return max((kind_of(one) for one in types), key=NUMBERS.index)


def _rounded(types: Types) -> str | None:
    if kind_of(types[0]) != "DECIMAL":
        return wide(types[0])
    precision, scale = digits(types[0])
    return decimal(precision - scale + 1, 0) if scale else types[0]


def _boolean(types: Types) -> str | None:
    return "BOOLEAN" if common(types) else None


# --- meanings ------------------------------------------------------------------------------------


def _number(exact: Callable[[Any, Any], Any], float_: Callable[[float, float], float]) -> Meaning:
    def meaning(one: Any, other: Any, types: Types) -> Value:
        if _kind(types) == "DOUBLE":
            return float_(double(one), double(other))
        if _kind(types) == "DECIMAL":
            return exact(Decimal(one), Decimal(other))  # type: ignore[no-any-return]
        return exact(one, other)  # type: ignore[no-any-return]

    return meaning


def _multiplied(one: Any, other: Any) -> Any:
    return EXACT.multiply(one, other) if isinstance(one, Decimal) else one * other


def _added(one: Any, other: Any) -> Any:
    return EXACT.add(one, other) if isinstance(one, Decimal) else one + other


def _taken(one: Any, other: Any) -> Any:
    return EXACT.subtract(one, other) if isinstance(one, Decimal) else one - other


def _rest(one: Any, other: Any) -> Any:
    """With the sign of the dividend."""
    if not other:
        return None
    if isinstance(one, Decimal):
        return EXACT.remainder(one, other)
    return int(math.copysign(1, one)) * (abs(one) % abs(other))


def _float_rest(one: float, other: float) -> Any:
    if other == 0:
        return None
    if math.isinf(one) or math.isnan(one) or math.isnan(other):
        return math.nan
    return math.fmod(one, other)


def _divided(one: Any, other: Any) -> Value:
    divisor = double(other)
    return double(one) / divisor if divisor else None


def _whole(rounding: Callable[[Any], int]) -> Meaning:
    def meaning(value: Any) -> Value:
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return rounding(value)

    return meaning


def _round(value: Any) -> Value:
    if isinstance(value, int):
        return value
    if isinstance(value, Decimal):
        return value.quantize(Decimal(1), ROUND_HALF_UP, EXACT)
    if not math.isfinite(value) or abs(value) >= 2**53:
        return float(value)
    found = float(Decimal(repr(value)).quantize(Decimal(1), ROUND_HALF_UP, EXACT))
    return math.copysign(found, value)


def _best(sign: int) -> Meaning:
    def meaning(*values: Value) -> Value:
        known = [value for value in values if value is not None]
        best = sorted(known, key=cmp_to_key(compare))
        return best[-1 if sign > 0 else 0] if best else None

    return meaning


def _first(*values: Value) -> Value:
    return next((value for value in values if value is not None), None)


def _nullif(one: Value, other: Value) -> Value:
    equal = one is not None and other is not None and compare(one, other) == 0
    return None if equal else one


def _case(condition: Value, one: Value, other: Value) -> Value:
    return one if condition is True else other


def _and(*values: Value) -> Value:
    if False in values:
        return False
    return None if None in values else True


def _or(*values: Value) -> Value:
    if True in values:
        return True
    return None if None in values else False


def _in(value: Value, *listed: Value) -> Value:
    if value is None:
        return None
    found = [None if one is None else compare(value, one) == 0 for one in listed]
    return _or(*found)


def _between(value: Value, low: Value, high: Value) -> Value:
    above = None if None in (value, low) else compare(value, low) >= 0
    below = None if None in (value, high) else compare(value, high) <= 0
    return _and(above, below)


def _like(text: Any, pattern: Any) -> bool:
    """`%` is any text, `_` any character: worked out position by position."""
    reached = {0}
    for one in pattern:
        if one == "%":
            reached = set(range(min(reached), len(text) + 1)) if reached else set()
        else:
            reached = {p + 1 for p in reached if p < len(text) and one in ("_", text[p])}
    return len(text) in reached


def _substring(text: Any, start: Any, count: Any) -> Value:
    return str(text[start - 1 : start - 1 + count])


def _right(text: Any, count: Any) -> Value:
    return str(text[max(len(text) - count, 0) :])


def _replace(text: Any, old: Any, new: Any) -> Value:
    return str(text.replace(old, new)) if old else str(text)


def _text(value: Any, types: Types) -> Value:
    match kind_of(types[0]):
        case "BOOLEAN":
            return str(value).lower()
        case "DECIMAL":
            return f"{value:f}"
        case "DATE":
            year, month, day = civil(value)
            return f"{year:04}-{month:02}-{day:02}" if 1 <= year <= 9999 else None
    return str(value)


_NUMERAL = r" *[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)"


def _read_decimal(text: Any) -> Value:
    """The number that a text is, in ASCII's digits, with blanks around it."""
    return Decimal(text.strip(" ")) if re.fullmatch(f"{_NUMERAL} *", text) else None


def _read_double(text: Any) -> Value:
    known = f"{_NUMERAL}([eE][+-]?[0-9]+)? *|(?i: *([+-]?inf(inity)?|nan) *)"
    return float(text.strip(" ")) if re.fullmatch(known, text) else None


# --- the calendar --------------------------------------------------------------------------------

DAY = 86_400_000_000


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day since 1970, in the Gregorian calendar of all times."""
    era, rest = divmod(days + 719_468, 146_097)
    year = (rest - rest // 1460 + rest // 36_524 - rest // 146_096) // 365
    day_of_year = rest - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return era * 400 + year + (month <= 2), month, day


def days(year: int, month: int) -> int:
    """The first day of a month, since 1970."""
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def _date_part(part: int) -> Meaning:
    def meaning(value: Any, types: Types) -> Value:
        return civil(value // DAY if types[0] == "TIMESTAMP" else value)[part]

    return meaning


def _time_part(unit: int, of: int) -> Meaning:
    return lambda micros: micros // unit % of


def _truncated(unit: str) -> Meaning:
    def meaning(micros: Any) -> Value:
        day = micros // DAY
        year, month, _ = civil(day)
        match unit:
            case "SECOND" | "MINUTE" | "HOUR" | "DAY":
                step = {"SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3600 * 10**6}.get(unit, DAY)
                return int(micros // step * step)
            case "WEEK":
                return int((day - (day + 3) % 7) * DAY)
            case "MONTH":
                return days(year, month) * DAY
            case "QUARTER":
                return days(year, (month - 1) // 3 * 3 + 1) * DAY
        return days(year, 1) * DAY

    return meaning


# --- the list ------------------------------------------------------------------------------------

INTEGER, DECIMAL, DOUBLE = NUMBERS
TEXT, TRUTH, TIME, DATE_, BYTES = "STRING", "BOOLEAN", "TIMESTAMP", "DATE", "BINARY"
COUNT, LITERAL, LENGTH = "count", "literal", "length"
"""A small whole number, a text written out, an interval."""


def _arithmetic(kinds: Sequence[str]) -> dict[str, Function]:
    made = {}
    for a in kinds:
        for b in kinds:
            at = f"{a}{b}"
            made[f"+{at}"] = Function(
                "({0} + {1})", (a, b), _sum, _number(_added, float.__add__), typed=True
            )
            made[f"-{at}"] = Function(
                "({0} - {1})", (a, b), _sum, _number(_taken, float.__sub__), typed=True
            )
            made[f"*{at}"] = Function(
                "({0} * {1})", (a, b), _product, _number(_multiplied, float.__mul__), typed=True
            )
            made[f"%{at}"] = Function(
                "({0} % {1})", (a, b), _remainder, _number(_rest, _float_rest), typed=True
            )
            made[f"/{at}"] = Function("({0} / {1})", (a, b), always("DOUBLE"), _divided)
    return made


def _unary() -> dict[str, Function]:
    made = {}
    for kind in NUMBERS:
        made[f"neg{kind}"] = Function("(- {0})", (kind,), own, lambda v: -v)
        made[f"abs{kind}"] = Function("abs({0})", (kind,), own, abs)
        made[f"round{kind}"] = Function("round({0})", (kind,), _rounded, _round)
        for name, rounding in (("floor", math.floor), ("ceil", math.ceil)):
            made[f"{name}{kind}"] = Function(
                f"{name}({{0}})", (kind,), always("BIGINT"), _whole(rounding)
            )
    return made


def _chosen(template: str, takes: tuple[str, ...], meaning: Meaning) -> Function:
    """What is one of its arguments."""
    return Function(template, takes, common, meaning, nulls=True, alike=True)


def _any() -> dict[str, Function]:
    """What takes any kind of values."""
    made: dict[str, Function] = {}
    for kind in (*NUMBERS, TEXT, TRUTH, TIME, DATE_, BYTES):
        three = (kind, kind, kind)
        made |= {
            f"coalesce{kind}": _chosen("coalesce({all})", three, _first),
            f"nvl{kind}": _chosen("nvl({all})", (kind, kind), _first),
            f"greatest{kind}": _chosen("greatest({all})", three, _best(1)),
            f"least{kind}": _chosen("least({all})", (kind, kind), _best(-1)),
            f"nullif{kind}": Function(
                "nullif({all})", (kind, kind), lambda t: own(t) if common(t) == own(t) else None,
                _nullif, nulls=True, alike=True,
            ),
            f"if{kind}": Function(
                "if({0}, {1}, {2})", (TRUTH, kind, kind), lambda t: common(t[1:]), _case, nulls=True
            ),
            f"case{kind}": Function(
                "CASE WHEN {0} THEN {1} ELSE {2} END", (TRUTH, kind, kind),
                lambda t: common(t[1:]), _case, nulls=True,
            ),
            f"null{kind}": Function(
                "({0} IS NULL)", (kind,), always(TRUTH), lambda v: v is None, nulls=True
            ),
            f"notnull{kind}": Function(
                "({0} IS NOT NULL)", (kind,), always(TRUTH), lambda v: v is not None, nulls=True
            ),
            f"in{kind}": Function(
                "({0} IN ({1}, {2}))", three, _boolean, _in, nulls=True, alike=True
            ),
        }  # fmt: skip
    return made


_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "=": lambda c: c == 0, "<>": lambda c: c != 0, "<": lambda c: c < 0, "<=": lambda c: c <= 0,
    ">": lambda c: c > 0, ">=": lambda c: c >= 0,
}  # fmt: skip


def _comparison(holds: Callable[[int], bool]) -> Meaning:
    return lambda one, other: holds(compare(one, other))


def _same(one: Value, other: Value) -> bool:
    if one is None or other is None:
        return one is other
    return compare(one, other) == 0


def _conditions() -> dict[str, Function]:
    pairs = [(k, k) for k in (*NUMBERS, TEXT, TRUTH, TIME, DATE_, BYTES)]
    pairs += [(a, b) for a in NUMBERS for b in NUMBERS if a != b] + [(DATE_, TIME), (TIME, DATE_)]
    made = {}
    for a, b in pairs:
        for sign, holds in _COMPARISONS.items():
            made[f"{sign}{a}{b}"] = Function(
                f"({{0}} {sign} {{1}})", (a, b), _boolean, _comparison(holds), alike=True
            )
        made[f"<=>{a}{b}"] = Function(
            "({0} <=> {1})", (a, b), _boolean, _same, nulls=True, alike=True
        )
        made[f"distinct{a}{b}"] = Function(
            "({0} IS DISTINCT FROM {1})", (a, b), _boolean, lambda x, y: not _same(x, y),
            nulls=True, alike=True,
        )  # fmt: skip
        made[f"between{a}{b}"] = Function(
            "({0} BETWEEN {1} AND {2})", (a, b, a), _boolean, _between, nulls=True, alike=True
        )
    return made


def _cast(to: str, meaning: Meaning, takes: str, *, typed: bool = False) -> Function:
    return Function("CAST({0} AS {type})", (takes,), always(to), meaning, typed=typed)


DECIMALS = ("DECIMAL(5, 2)", "DECIMAL(18, 0)", "DECIMAL(18, 6)", "DECIMAL(38, 10)", "DECIMAL(9, 9)")


def _told(types: Types) -> str | None:
    """A text, of all but a DECIMAL that has no place for a digit before its point."""
    return None if types[0] == "DECIMAL(38, 38)" else "STRING"


def _casts() -> dict[str, Function]:
    made = {}
    for to in SIZES:
        made[f"castint{to}"] = _cast(to, lambda v: v, INTEGER)
        made[f"castbool{to}"] = _cast(to, int, TRUTH)
    for to in DECIMALS:
        made[f"castint{to}"] = _cast(to, lambda v: v, INTEGER)
        made[f"castdec{to}"] = _cast(to, lambda v: v, DECIMAL)
        made[f"casttext{to}"] = _cast(to, _read_decimal, "numeral")
    for kind in NUMBERS:
        made[f"castdouble{kind}"] = _cast("DOUBLE", lambda v: v, kind)
    for kind in (INTEGER, DECIMAL, TRUTH, DATE_):
        made[f"casttext{kind}"] = Function("CAST({0} AS STRING)", (kind,), _told, _text, typed=True)
    made["casttextDOUBLE"] = _cast("DOUBLE", _read_double, "numeral")
    made["castbool"] = _cast("BOOLEAN", bool, INTEGER)
    made["castdate"] = _cast("DATE", lambda v: v // DAY, TIME)
    made["casttime"] = _cast("TIMESTAMP", lambda v: v * DAY, DATE_)
    return made


def _texts() -> dict[str, Function]:
    text, boolean = always("STRING"), always("BOOLEAN")
    return {
        "||": Function("({0} || {1})", (TEXT, TEXT), text, lambda *v: "".join(v)),
        "concat": Function("concat({all})", (TEXT,) * 3, text, lambda *v: "".join(v)),
        "upper": Function("upper({0})", ("ascii",), text, str.upper),
        "lower": Function("lower({0})", ("ascii",), text, str.lower),
        "trim": Function("trim({0})", (TEXT,), text, lambda v: v.strip(" ")),
        "length": Function("length({0})", (TEXT,), always("INT"), len),
        "left": Function("left({0}, {1})", (TEXT, COUNT), text, lambda v, n: v[:n]),
        "right": Function("right({0}, {1})", (TEXT, COUNT), text, _right),
        "substring": Function(
            "substring({0}, {1}, {2})", (TEXT, "place", "place"), text, _substring
        ),
        "replace": Function("replace({all})", (TEXT,) * 3, text, _replace),
        "contains": Function("contains({all})", (TEXT, TEXT), boolean, lambda v, x: x in v),
        "startswith": Function("startswith({all})", (TEXT, TEXT), boolean, str.startswith),
        "endswith": Function("endswith({all})", (TEXT, TEXT), boolean, str.endswith),
        "like": Function("({0} LIKE {1})", (TEXT, "pattern"), boolean, _like),
        "notlike": Function(
            "({0} NOT LIKE {1})", (TEXT, "pattern"), boolean, lambda v, x: not _like(v, x)
        ),
    }


def _times() -> dict[str, Function]:
    made, whole, time = {}, always("INT"), always("TIMESTAMP")
    for part, name in enumerate(("year", "month", "day")):
        for kind in (TIME, DATE_):
            made[f"{name}{kind}"] = Function(
                f"{name}({{0}})", (kind,), whole, _date_part(part), typed=True
            )
    made["hour"] = Function("hour({0})", (TIME,), whole, _time_part(3_600_000_000, 24))
    made["minute"] = Function("minute({0})", (TIME,), whole, _time_part(60_000_000, 60))
    made["second"] = Function("second({0})", (TIME,), whole, _time_part(1_000_000, 60))
    made["unix_micros"] = Function("unix_micros({0})", (TIME,), always("BIGINT"), lambda v: v)
    made["plus"] = Function("({0} + {1})", (TIME, LENGTH), time, lambda v, n: v + n)
    made["minus"] = Function("({0} - {1})", (TIME, LENGTH), time, lambda v, n: v - n)
    for unit in ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"):
        made[f"trunc{unit}"] = Function(
            f"date_trunc('{unit.lower()}', {{0}})", (TIME,), time, _truncated(unit)
        )
    return made


def _logic() -> dict[str, Function]:
    boolean = always("BOOLEAN")
    return {
        "and": Function("({0} AND {1})", (TRUTH, TRUTH), boolean, _and, nulls=True),
        "or": Function("({0} OR {1})", (TRUTH, TRUTH), boolean, _or, nulls=True),
        "not": Function("(NOT {0})", (TRUTH,), boolean, lambda v: not v),
        "true": Function("({0} IS TRUE)", (TRUTH,), boolean, lambda v: v is True, nulls=True),
        "nottrue": Function(
            "({0} IS NOT TRUE)", (TRUTH,), boolean, lambda v: v is not True, nulls=True
        ),
        "false": Function("({0} IS FALSE)", (TRUTH,), boolean, lambda v: v is False, nulls=True),
    }


FUNCTIONS: dict[str, Function] = {
    **_arithmetic(NUMBERS),
    **_unary(),
    **_any(),
    **_conditions(),
    **_casts(),
    **_texts(),
    **_times(),
    **_logic(),
}
