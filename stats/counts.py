"""How often values come up in a stream, window by window: counted once for all statistics.

What is kept of the tuples is how many there are in each second, and for each value that a join
compares how many have it: in all, and of those that pass selects.  Each is counted by a pass of its
own, which reads only the columns that it needs: grouping sets would copy every tuple for each of
them, and what they count lies where no join can use it without moving it again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, GroupedData
from pyspark.sql.functions import expr

from optimizer.query import Expression, Query, Stream
from stats.store import Window

Values = tuple[str, ...]
"""Expressions over a stream's columns, as SQL."""

Selects = tuple[str, ...]
"""Conditions on a stream's columns, as SQL; all of them hold, and none excludes nothing."""

BATCH = "@batch"
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
    """The start of a tuple's window.

    In doubles, which are exact until 2255: of whole numbers Spark checks each difference by a call.
    """
    size = windows[0].end - windows[0].start
    return f"CAST(floor({micros(stream)} / {size}D) * {size}D AS BIGINT)"


@dataclass(frozen=True)
class Counts:
    """How often each combination of values comes up in a window, and how many tuples a second."""

    seconds: DataFrame
    """`w`, `second`, `n`, `width` and how many pass."""
    frames: Mapping[Values, DataFrame]
    """`w`, `x0`, `x1`, ..., `n` and how many pass: kept, for several statistics look at them."""
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
        passing = tuple(sorted(set(filters) - {()}))
        inside, start = during(rows, stream, windows), window_start(stream, windows)
        passed = [f"count_if({conjunction(one)}) AS s{i}" for i, one in enumerate(passing)]
        figures = [expr(figure) for figure in ("count(*) AS n", *passed)]

        def by(*groups: str) -> GroupedData:
            return inside.groupBy(expr(f"{start} AS w"), *map(expr, groups))

        size = windows[0].end - windows[0].start
        second = f"pmod({micros(stream)}, {size}) DIV 1000000 AS second"
        width = expr(f"CAST(sum({_width(stream)}) AS BIGINT) AS width")
        frames = {
            values: by(*(f"{value} AS x{i}" for i, value in enumerate(values))).agg(*figures)
            for values in sorted(set(sets))
        }
        kept = {values: frame.persist() for values, frame in frames.items()}
        return cls(by(second).agg(*figures, width), kept, passing)

    def by(self, values: Values, passing: Selects = ()) -> DataFrame:
        """`w`, `x0`, `x1`, ... and `n`: how many tuples of a window have these values."""
        columns = [f"x{i}" for i in range(len(values))]
        found = self.frames[values].selectExpr("w", *columns, f"{self.passed(passing)} AS n")
        return found.where("n > 0")

    def passed(self, passing: Selects) -> str:
        """The column that says how many pass."""
        return f"s{self.selects.index(passing)}" if passing else "n"

    def forget(self) -> None:
        """Let go of what is kept."""
        for frame in self.frames.values():
            frame.unpersist()


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
