"""What drawn queries are made of: columns, literals and calls, each with its type and its text."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

Value = bool | int | float | Decimal | str | bytes | None
"""Dates are days, timestamps microseconds since 1970; what type a value has, its term says."""


@dataclass(frozen=True)
class Column:
    """A column of one of a query's inputs."""

    alias: str
    name: str
    type: str


@dataclass(frozen=True)
class Literal:
    """A value written out; of an INTERVAL, microseconds."""

    value: Value
    type: str


@dataclass(frozen=True)
class Call:
    """A function or an operator over terms."""

    function: str
    arguments: "tuple[Term, ...]"
    type: str


@dataclass(frozen=True)
class Edge:
    """The start or the end of a group's window."""

    name: str
    type: str = "TIMESTAMP"


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of a group's rows; no argument means `count(*)`."""

    function: str
    argument: "Term | None"
    only: "Term | None"
    type: str


Term = Column | Literal | Call | Edge | Aggregate


def parts(term: Term) -> Iterator[Term]:
    """The term and all within it."""
    yield term
    match term:
        case Call(_, arguments):
            below = arguments
        case Aggregate(_, argument, only):
            below = tuple(part for part in (argument, only) if part is not None)
        case _:
            below = ()
    for part in below:
        yield from parts(part)


def columns(term: Term) -> set[Column]:
    """The columns that it reads."""
    return {part for part in parts(term) if isinstance(part, Column)}


def aliases(term: Term) -> set[str]:
    """The inputs that it reads."""
    return {column.alias for column in columns(term)}


# --- text ----------------------------------------------------------------------------------------


def quoted(name: str) -> str:
    """A name as Spark takes any."""
    return f"`{name}`"


def sql(term: Term) -> str:
    """The term as Spark's SQL."""
    match term:
        case Column(alias, name):
            return f"{quoted(alias)}.{quoted(name)}"
        case Literal(value, kind):
            return literal(value, kind)
        case Edge(name):
            return f"window.{name}"
        case Aggregate(function, argument, only):
            text = f"{function}({'*' if argument is None else sql(argument)})"
            return text if only is None else f"{text} FILTER (WHERE {sql(only)})"
        case Call(function, arguments, kind):
            from tests.bench.differential.functions import FUNCTIONS

            return FUNCTIONS[function].text([sql(a) for a in arguments], kind)


def literal(value: Value, kind: str) -> str:
    """A value written out."""
    match value:
        case None:
            return f"CAST(NULL AS {kind})"
        case bool():
            return str(value).upper()
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
        case float():
            return f"{value:e}" if value >= 0 else f"({value:e})"
        case Decimal():
            return f"{value:f}" if value >= 0 else f"({value:f})"
        case int() if kind == "INTERVAL":
            return interval(value)
        case int() if kind == "DATE":
            return f"DATE '{date(1970, 1, 1) + timedelta(days=value)}'"
        case int() if kind == "TIMESTAMP":
            moment = datetime(1970, 1, 1) + timedelta(microseconds=value)  # noqa: DTZ001
            return f"TIMESTAMP '{moment.isoformat(sep=' ')}'"
        case int():
            return str(value) if value >= 0 else f"({value})"
    raise TypeError(f"{value!r} has no text")


UNITS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
}


def length(micros: int) -> str:
    """A length of time in its largest whole unit: `5 MINUTES`."""
    unit = max((u for u in UNITS if micros % UNITS[u] == 0), key=UNITS.__getitem__)
    return f"{micros // UNITS[unit]} {unit}S"


def interval(micros: int) -> str:
    """An interval, perhaps negative."""
    number, unit = length(abs(micros)).split()
    return f"INTERVAL {'-' if micros < 0 else ''}{number} {unit}"
