"""How often values come up in a stream, window by window: one pass that all statistics share.

The tuples themselves are read once.  What is kept of them is how many there are in each second,
and for each value that a join compares how many have it: in all, and of those that pass selects.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from optimizer.query import Expression, Predicate, Query, Stream
from stats.store import Window

Values = tuple[str, ...]
"""Expressions over a stream's columns, as SQL."""

Selects = tuple[str, ...]
"""Conditions on a stream's columns, as SQL; all of them hold, and none excludes nothing."""

BATCH = "_batch"
"""The column that says which batch took a tuple in."""

_FIXED = {
    "BOOLEAN": 1, "TINYINT": 1, "SMALLINT": 2, "INT": 4, "BIGINT": 8, "FLOAT": 4, "DOUBLE": 8,
    "DATE": 4, "TIMESTAMP": 8,
}  # fmt: skip
"""The bytes of a value; those of others depend on it, and decimals have 16."""


def sql(expression: Expression) -> str:
    """An expression over one input, as it stands in a statement over its stream."""
    return expression.sql(lambda column: quote(column.name))


def selects(query: Query, alias: str) -> Selects:
    """What an input's tuples must satisfy before they are joined."""
    return tuple(sql(predicate.expression) for predicate in query.selects(alias))


def quote(name: str) -> str:
    """A name as it stands in a statement."""
    return "`" + name.replace("`", "``") + "`"


def conjunction(conditions: Selects) -> str:
    """Conditions that all hold."""
    return " AND ".join(f"({condition})" for condition in conditions) or "TRUE"


def micros(stream: Stream) -> str:
    """A tuple's event time."""
    return f"unix_micros({quote(stream.event_time)})"


def during(rows: DataFrame, stream: Stream, windows: Sequence[Window]) -> DataFrame:
    """The tuples with an event time in windows that follow each other."""
    time = quote(stream.event_time)
    first, last = windows[0].start, windows[-1].end
    return rows.where(f"{time} >= timestamp_micros({first}) AND {time} < timestamp_micros({last})")


def window_start(stream: Stream, windows: Sequence[Window]) -> str:
    """The start of a tuple's window."""
    time, size = micros(stream), windows[0].end - windows[0].start
    return f"{time} - pmod({time}, {size})"


@dataclass(frozen=True)
class Counts:
    """How often each combination of values comes up in a window, and how often in each second."""

    frame: DataFrame
    columns: tuple[str, ...]
    values: Values
    selects: tuple[Selects, ...]

    @classmethod
    def of(
        cls,
        rows: DataFrame,
        stream: Stream,
        windows: Sequence[Window],
        sets: Iterable[Values],
        filters: Iterable[Selects],
    ) -> "Counts":
        """Count a stream's tuples by each set of values, and those that pass each filter."""
        kept, passing = sorted(set(sets)), tuple(sorted(set(filters) - {()}))
        values = tuple(sorted({value for one in kept for value in one}))
        names = {value: f"v{i}" for i, value in enumerate(values)}
        columns = ("w", "second", *names.values())
        start = window_start(stream, windows)
        prepared = during(rows, stream, windows).selectExpr(
            f"{start} AS w",
            f"({micros(stream)} - ({start})) DIV 1000000 AS second",
            f"{_width(stream)} AS width",
            *(f"{value} AS {name}" for value, name in names.items()),
            *(f"{conjunction(one)} AS s{i}" for i, one in enumerate(passing)),
        )
        grouped = [("w", "second"), *(("w", *(names[value] for value in one)) for one in kept)]
        listed = ", ".join(f"({', '.join(one)})" for one in grouped)
        passed = "".join(f", count_if(s{i}) AS s{i}" for i in range(len(passing)))
        frame = _session(rows).sql(
            f"SELECT {', '.join(columns)}, grouping_id() AS g, count(*) AS n, "
            f"CAST(sum(width) AS BIGINT) AS width{passed} FROM {{prepared}} "
            f"GROUP BY {', '.join(columns)} GROUPING SETS ({listed})",
            prepared=prepared,
        )
        return cls(frame.persist(), columns, values, passing)

    def by(self, values: Values, passing: Selects = ()) -> DataFrame:
        """`w`, `x0`, `x1`, ... and `n`: how many tuples of a window have these values."""
        columns = [f"{self.name(value)} AS x{i}" for i, value in enumerate(values)]
        found = self.frame.where(f"g = {self.number(values)}")
        return found.selectExpr("w", *columns, f"{self.passed(passing)} AS n").where("n > 0")

    @property
    def seconds(self) -> DataFrame:
        """`w`, `second`, `n`, `width` and how many pass."""
        return self.frame.where(f"g = {self._number('w', 'second')}")

    def passed(self, passing: Selects) -> str:
        """The column that says how many pass."""
        return f"s{self.selects.index(passing)}" if passing else "n"

    def name(self, value: str) -> str:
        """The column of a value."""
        return f"v{self.values.index(value)}"

    def number(self, values: Values) -> int:
        """What `g` is where tuples are counted by these values."""
        return self._number("w", *map(self.name, values))

    def _number(self, *columns: str) -> int:
        return int("".join("0" if column in columns else "1" for column in self.columns), 2)


def sides(predicate: Predicate, alias: str) -> Expression:
    """The side of an equality that an input has."""
    assert predicate.sides is not None
    left, right = predicate.sides
    return left if left.aliases == {alias} else right


def _width(stream: Stream) -> str:
    """The bytes of a tuple."""
    fixed = sum(
        _FIXED.get(column.type, 16) for column in stream.columns if not _varies(column.type)
    )
    varying = [c.name for c in stream.columns if _varies(c.type)]
    return " + ".join(
        [str(fixed), *(f"coalesce(octet_length({quote(name)}), 0)" for name in varying)]
    )


def _varies(kind: str) -> bool:
    return kind in ("STRING", "BINARY")


def _session(frame: DataFrame) -> SparkSession:
    return frame.sparkSession
