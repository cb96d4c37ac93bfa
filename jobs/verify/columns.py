"""What columns a query's results must have: their names in order, and the type of each.

A column that is carried along has the type that its stream declares.  One that is computed has the
kind of value that DuckDB computes; its width is not laid down.
"""

from collections.abc import Sequence

import pyarrow as pa

from optimizer.query import HOLE, RESULT, Aggregate, ColumnRef, Expression, Query

_FAMILIES = {
    "BOOLEAN": "BOOLEAN", "TINYINT": "a whole number", "SMALLINT": "a whole number",
    "INTEGER": "a whole number", "INT": "a whole number", "BIGINT": "a whole number",
    "HUGEINT": "a whole number", "FLOAT": "DOUBLE", "DOUBLE": "DOUBLE", "VARCHAR": "STRING",
    "BLOB": "BINARY", "DATE": "DATE", "TIMESTAMP WITH TIME ZONE": "TIMESTAMP",
}  # fmt: skip
_EXACT = {
    pa.bool_(): "BOOLEAN", pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INT",
    pa.int64(): "BIGINT", pa.float32(): "FLOAT", pa.float64(): "DOUBLE", pa.date32(): "DATE",
}  # fmt: skip
_OF_FUNCTION = {"count": "BIGINT", "avg": "DOUBLE"}


def mistyped(query: Query, made: Sequence[str], actual: pa.Schema) -> str:
    """The first column that is not what the query says; `made` is what DuckDB computes."""
    names = [named.name for named in query.output]
    if actual.names != names:
        return f"the columns are {', '.join(actual.names)}; the query has {', '.join(names)}"
    for i, (named, kind) in enumerate(zip(query.output, made, strict=True)):
        wanted, found = (
            declared(query, named.expression) or family(kind),
            _exact(actual.field(i).type),
        )
        if wanted not in (found, family(found)):
            return f"column {named.name} is {found}, and should be {wanted}"
    return ""


def inexact(query: Query, made: Sequence[str]) -> list[int]:
    """The columns that are doubles and computed: those of a stream are the same in every bit."""
    doubles = [i for i, kind in enumerate(made) if kind in ("DOUBLE", "FLOAT")]
    return [i for i in doubles if _origin(query, query.output[i].expression) is None]


def declared(query: Query, expression: Expression) -> str | None:
    """The type that an output must have exactly; none if it is computed."""
    if (origin := _origin(query, expression)) is not None:
        column = query.streams[origin.alias].column(origin.name)
        return None if column is None else column.type
    made = _aggregate(query, expression)
    return None if made is None else _of_aggregate(query, made)


def _of_aggregate(query: Query, made: Aggregate) -> str | None:
    if made.function in ("min", "max") and made.argument is not None:
        return declared(query, made.argument)
    return _OF_FUNCTION.get(made.function)


def _aggregate(query: Query, expression: Expression) -> Aggregate | None:
    if expression.template != HOLE or query.grouping is None:
        return None
    name = expression.columns[0].name
    return next((a for a in query.grouping.aggregates if a.name == name), None)


def _origin(query: Query, expression: Expression) -> ColumnRef | None:
    """The column of an input that an expression only carries along."""
    if expression.template != HOLE:
        return None
    (column,) = expression.columns
    if column.alias != RESULT:
        return column
    keys = query.grouping.keys if query.grouping is not None else ()
    key = next((key for key in keys if key.name == column.name), None)
    return None if key is None else _origin(query, key.expression)


def family(name: str) -> str:
    """What kind of value a type has."""
    return "DECIMAL" if name.startswith("DECIMAL") else _FAMILIES.get(name, name)


def _exact(kind: pa.DataType) -> str:
    types = pa.types
    if types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "STRING"
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return "BINARY"
    return _EXACT.get(kind, str(kind))
