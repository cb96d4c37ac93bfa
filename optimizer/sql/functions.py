"""The scalar functions that mean the same in Spark and in DuckDB, and the kinds of values.

The tests run every one of them in both engines.
"""

from dataclasses import dataclass
from enum import StrEnum

from sqlglot import exp

from optimizer.sql.schema import TYPES


class Kind(StrEnum):
    """What sort of value an expression has; types of one kind compare and mix freely."""

    INTEGER = "INTEGER"
    DECIMAL = "DECIMAL"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    BOOLEAN = "BOOLEAN"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    INTERVAL = "INTERVAL"
    BINARY = "BINARY"
    NULL = "NULL"


NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE)
"""From narrow to wide."""

KINDS = {
    "TINYINT": Kind.INTEGER,
    "SMALLINT": Kind.INTEGER,
    "INT": Kind.INTEGER,
    "BIGINT": Kind.INTEGER,
    "FLOAT": Kind.DOUBLE,
    "DOUBLE": Kind.DOUBLE,
    "STRING": Kind.STRING,
    "BOOLEAN": Kind.BOOLEAN,
    "DATE": Kind.DATE,
    "TIMESTAMP": Kind.TIMESTAMP,
    "BINARY": Kind.BINARY,
    "DECIMAL": Kind.DECIMAL,
}
"""The kinds of the types that columns can have."""

WIDER = {"TINYINT": "INT", "SMALLINT": "INT", "FLOAT": "DOUBLE"}
"""What Spark computes with instead of narrow types; DuckDB would fit literals to them."""

Argument = tuple[Kind, ...]
NUMBER: Argument = NUMBERS
TEXT: Argument = (Kind.STRING,)
TIME: Argument = (Kind.TIMESTAMP,)
DAY: Argument = (Kind.TIMESTAMP, Kind.DATE)
ANY: Argument = tuple(kind for kind in Kind if kind not in {Kind.INTERVAL, Kind.NULL})
COUNT: Argument = ()
"""A whole number written out: the engines differ on negative ones and on position 0."""


@dataclass(frozen=True)
class Scalar:
    """A function: its name, its arguments, and the kind of its result (None: its arguments').

    `cast` is Spark's type of the result where DuckDB's differs.
    """

    name: str
    arguments: tuple[Argument, ...]
    result: Kind | None = None
    cast: str | None = None
    many: bool = False
    """The last argument may be repeated, and all share one type."""


SCALARS: dict[type[exp.Expr], Scalar] = {
    exp.Abs: Scalar("abs", (NUMBER,)),
    exp.Ceil: Scalar("ceil", (NUMBER,), Kind.INTEGER),
    exp.Floor: Scalar("floor", (NUMBER,), Kind.INTEGER),
    exp.Round: Scalar("round", (NUMBER,)),
    exp.Coalesce: Scalar("coalesce", (ANY,), many=True),
    exp.Greatest: Scalar("greatest", (ANY,), many=True),
    exp.Least: Scalar("least", (ANY,), many=True),
    exp.Nullif: Scalar("nullif", (ANY,), many=True),
    exp.Upper: Scalar("upper", (TEXT,), Kind.STRING),
    exp.Lower: Scalar("lower", (TEXT,), Kind.STRING),
    exp.Trim: Scalar("trim", (TEXT,), Kind.STRING),
    exp.Length: Scalar("length", (TEXT,), Kind.INTEGER, cast="INT"),
    exp.Left: Scalar("left", (TEXT, COUNT), Kind.STRING),
    exp.Right: Scalar("right", (TEXT, COUNT), Kind.STRING),
    exp.Substring: Scalar("substring", (TEXT, COUNT, COUNT), Kind.STRING),
    exp.Replace: Scalar("replace", (TEXT, TEXT, TEXT), Kind.STRING),
    exp.Contains: Scalar("contains", (TEXT, TEXT), Kind.BOOLEAN),
    exp.StartsWith: Scalar("startswith", (TEXT, TEXT), Kind.BOOLEAN),
    exp.EndsWith: Scalar("endswith", (TEXT, TEXT), Kind.BOOLEAN),
    exp.Year: Scalar("year", (DAY,), Kind.INTEGER, cast="INT"),
    exp.Month: Scalar("month", (DAY,), Kind.INTEGER, cast="INT"),
    exp.Day: Scalar("day", (DAY,), Kind.INTEGER, cast="INT"),
    exp.DayOfMonth: Scalar("dayofmonth", (DAY,), Kind.INTEGER, cast="INT"),
    exp.Hour: Scalar("hour", (TIME,), Kind.INTEGER, cast="INT"),
    exp.Minute: Scalar("minute", (TIME,), Kind.INTEGER, cast="INT"),
    exp.Second: Scalar("second", (TIME,), Kind.INTEGER, cast="INT"),
    exp.UnixMicros: Scalar("unix_micros", (TIME,), Kind.INTEGER, cast="BIGINT"),
}
"""Besides CASE, if, CAST, concat, date_trunc and the operators."""

TRUNCATIONS = ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
"""What date_trunc cuts off to."""

NONDETERMINISTIC = {
    "current_catalog",
    "current_database",
    "current_date",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_timezone",
    "current_user",
    "getdate",
    "input_file_name",
    "localtimestamp",
    "monotonically_increasing_id",
    "now",
    "rand",
    "randn",
    "random",
    "randstr",
    "session_user",
    "shuffle",
    "spark_partition_id",
    "unix_timestamp",
    "user",
    "uniform",
    "uuid",
}

GENERATORS = {
    "explode",
    "explode_outer",
    "inline",
    "inline_outer",
    "posexplode",
    "posexplode_outer",
    "posexplodeouter",
    "explodeouter",
    "stack",
    "unnest",
    "json_tuple",
}

CASTS: dict[Kind, tuple[Kind, ...]] = {
    Kind.BOOLEAN: (Kind.BOOLEAN, Kind.INTEGER, Kind.STRING),
    Kind.INTEGER: (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE, Kind.STRING, Kind.BOOLEAN),
    Kind.DECIMAL: (Kind.DECIMAL, Kind.DOUBLE, Kind.STRING),
    Kind.DOUBLE: (Kind.DOUBLE,),
    Kind.STRING: (Kind.STRING, Kind.DECIMAL, Kind.DOUBLE),
    Kind.DATE: (Kind.DATE, Kind.TIMESTAMP, Kind.STRING),
    Kind.TIMESTAMP: (Kind.TIMESTAMP, Kind.DATE),
}
"""What a value can be cast to with the same result in both."""


def kind_of(declared: str) -> Kind | None:
    """The kind of a type."""
    name, *_ = declared.upper().split("(")
    return KINDS.get(TYPES.get(name, name))
