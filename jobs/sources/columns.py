"""Which columns of a file or a table are a stream's, and whether their values are.

`columns: declared` takes what was declared: by name, as Spark resolves names, and of a type all of
whose values the declared one has; other columns are ignored.  `columns: exact` takes nothing else.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from jobs.backends.parquet_input import ROW_NUMBER
from jobs.sources.common import SourceError
from optimizer.query import Column, Stream


@dataclass(frozen=True)
class Match:
    """How the declared columns are called where they were found, and what else is there."""

    names: tuple[str, ...]
    ignored: tuple[str, ...] = ()

    @classmethod
    def of(cls, stream: Stream, found: Sequence[str], where: str, *, exact: bool) -> "Match":
        """By name; complain about the first column that is missing, twice there, or new."""
        names = tuple(
            _found(stream, column, found, where, exact=exact) for column in stream.columns
        )
        ignored = tuple(dict.fromkeys(name for name in found if name not in names))
        if exact and ignored:
            raise SourceError(
                f"{where}: column {ignored[0]} is new; stream {stream.name} declares "
                f"{', '.join(column.name for column in stream.columns)}"
            )
        return cls(names, ignored)


def _found(stream: Stream, column: Column, found: Sequence[str], where: str, *, exact: bool) -> str:
    """Spark asks for no case of letters, and for no second column of a name."""
    same = [n for n in found if n == column.name or (not exact and alike(n, column.name))]
    if not same:
        raise SourceError(
            f"{where}: column {column.name} is missing; stream {stream.name} declares it as "
            f"{column.type}, the data has {', '.join(found) or 'no columns'}"
        )
    if len(same) > 1:
        names = " and ".join(dict.fromkeys(same))
        raise SourceError(
            f"{where}: column {column.name} is there twice"
            + (f", as {names}: rename one" if len(set(same)) > 1 else "")
        )
    return same[0]


def alike(one: str, other: str) -> bool:
    """Whether two names are one to Spark."""
    return one.lower() == other.lower()


def matched(stream: Stream, found: pa.Schema, where: str, *, exact: bool) -> Match:
    """The columns of a schema; complain about the first that is none of the stream's."""
    match = Match.of(stream, found.names, where, exact=exact)
    for column, name in zip(stream.columns, match.names, strict=True):
        kind = _plain(found.field(found.names.index(name)).type)
        if not _is(kind, column.type) and (exact or not _widens(kind, column.type)):
            raise SourceError(
                f"{where}: column {name} is {kind}; "
                f"stream {stream.name} declares it as {column.type}"
            )
    return match


def as_declared(stream: Stream, found: pa.Schema) -> bool:
    """Whether the columns have their declared names and types, and every engine can tell them."""
    names = {name.lower() for name in found.names}
    own = {column.name.lower() for column in stream.columns}
    return (
        len(names) == len(found.names)
        and ROW_NUMBER not in names - own
        and all(
            column.name in found.names and _is(_plain(found.field(column.name).type), column.type)
            for column in stream.columns
        )
    )


def ignoring(stream: str, names: Iterable[str]) -> str:
    """What is said of columns that nobody declared."""
    listed = [name or '""' for name in names]
    what = f"column {listed[0]} is" if len(listed) == 1 else f"columns {', '.join(listed)} are"
    return f"stream {stream}: {what} not declared, and ignored (columns: exact would stop here)"


# --- types ---------------------------------------------------------------------------------------

_ARROW = {
    "BOOLEAN": pa.types.is_boolean,
    "TINYINT": pa.types.is_int8,
    "SMALLINT": pa.types.is_int16,
    "INT": pa.types.is_int32,
    "BIGINT": pa.types.is_int64,
    "FLOAT": pa.types.is_float32,
    "DOUBLE": pa.types.is_float64,
    "DATE": pa.types.is_date32,
    "STRING": lambda t: t in (pa.string(), pa.large_string(), pa.string_view()),
    "BINARY": lambda t: t in (pa.binary(), pa.large_binary(), pa.binary_view()),
    "TIMESTAMP": pa.types.is_timestamp,
}
"""How a column's type looks to Arrow, which reads the schemas of files."""

_BYTE, _SHORT, _INT = {"int8", "uint8"}, {"int16", "uint16"}, {"int32", "uint32"}
_NARROWER = {
    "SMALLINT": _BYTE,
    "INT": _BYTE | _SHORT,
    "BIGINT": _BYTE | _SHORT | _INT,
    "FLOAT": _BYTE | _SHORT | {"halffloat"},
    "DOUBLE": _BYTE | _SHORT | _INT | {"halffloat", "float"},
}
"""What Arrow calls the types of which each has all values."""

_DIGITS = {
    "int8": 3, "uint8": 3, "int16": 5, "uint16": 5, "int32": 10, "uint32": 10, "int64": 19,
    "uint64": 20,
}  # fmt: skip


def _widens(kind: pa.DataType, declared: str) -> bool:
    """Whether every value of a type is one of that which was declared; one of nulls has none."""
    if pa.types.is_null(kind):
        return True
    if declared.startswith("DECIMAL"):
        return _fits_in_decimal(kind, *digits(declared))
    if declared == "BINARY":
        return bool(pa.types.is_fixed_size_binary(kind))
    return str(kind) in _NARROWER.get(declared, ())


def _fits_in_decimal(kind: pa.DataType, precision: int, scale: int) -> bool:
    if pa.types.is_decimal(kind):
        before = kind.precision - kind.scale
        return bool(0 <= kind.scale <= scale and before <= precision - scale)
    return _DIGITS.get(str(kind), 39) <= precision - scale


def _plain(kind: pa.DataType) -> pa.DataType:
    """What a value is, however often Arrow keeps it."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is(kind: pa.DataType, declared: str) -> bool:
    if declared.startswith("DECIMAL"):
        same = pa.types.is_decimal(kind) and (kind.precision, kind.scale) == digits(declared)
        return bool(same)
    return bool(_ARROW[declared](kind))


def digits(decimal: str) -> tuple[int, int]:
    """The precision and the scale of a DECIMAL."""
    precision, scale = decimal.removeprefix("DECIMAL").strip("()").split(",")
    return int(precision), int(scale)
