"""Two multisets of rows, compared by position: in DuckDB what is equal, by hand what is left.

Values are equal as SQL has it, nulls and NaN to themselves, -0.0 to 0.0.  Computed doubles may
differ as `near` says.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb

from jobs.verify.expected import column, reach
from jobs.verify.near import ABSOLUTE, RELATIVE, Counts, Row, count

GROUP = 1000
"""Up to how many rows that share all exact values are matched with all others of them."""


@dataclass(frozen=True)
class Shape:
    """How many columns rows have, which of them are computed doubles, and which add up."""

    width: int
    near: tuple[int, ...] = ()
    reaches: tuple[int, ...] = ()

    @property
    def columns(self) -> list[str]:
        """All, as they are called."""
        return [column(i) for i in range(self.width)]

    @property
    def exact(self) -> list[str]:
        """Those that must be the same."""
        return [column(i) for i in range(self.width) if i not in self.near]


def compare(connection: duckdb.DuckDBPyConnection, shape: Shape) -> Counts:
    """How the tables `@expected` and `@actual` differ."""
    _apart(connection, shape)
    return _nearly(connection, shape) if shape.near else _exactly(connection)


def _apart(connection: duckdb.DuckDBPyConnection, shape: Shape) -> None:
    """Make `@apart`: what the sides have not equally often."""
    columns, reaches = shape.columns, [reach(i) for i in shape.reaches]
    greatest = [f"max({one}) AS {one}" for one in reaches]
    nothing = [f"CAST(NULL AS DOUBLE) AS {one}" for one in reaches]
    connection.execute(
        f'CREATE OR REPLACE TABLE "@apart" AS SELECT {", ".join([*columns, *greatest])}, '
        'CAST(sum("@e") AS BIGINT) AS "@e", CAST(sum("@a") AS BIGINT) AS "@a" FROM ('
        f'SELECT {", ".join([*columns, *reaches])}, 1 AS "@e", 0 AS "@a" FROM "@expected" '
        f'UNION ALL SELECT {", ".join([*columns, *nothing])}, 0, 1 FROM "@actual") '
        f'GROUP BY {", ".join(columns)} HAVING sum("@e") <> sum("@a")'
    ).fetchall()


def _exactly(connection: duckdb.DuckDBPyConnection) -> Counts:
    (found,) = connection.execute(
        'SELECT coalesce(sum(greatest("@e" - "@a", 0)), 0), '
        'coalesce(sum(CASE WHEN "@e" > 0 THEN greatest("@a" - "@e", 0) END), 0), '
        'coalesce(sum(CASE WHEN "@e" = 0 THEN "@a" END), 0) FROM "@apart"'
    ).fetchall()
    return Counts(*map(int, found))


# --- nearly the same -----------------------------------------------------------------------------


def _nearly(connection: duckdb.DuckDBPyConnection, shape: Shape) -> Counts:
    _pair(connection, shape)
    _group(connection, shape)
    ((missing,),) = connection.execute(
        'SELECT coalesce(sum("@e" - "@a"), 0) FROM "@left" WHERE "@group" IS NULL'
    ).fetchall()
    return sum(_by_group(connection, shape), Counts(missing=int(missing)))


def _pair(connection: duckdb.DuckDBPyConnection, shape: Shape) -> None:
    """Make `@left`: what is apart, but for the n-th rows of a group that are nearly the same."""
    keys = ", ".join(shape.exact) or "NULL"
    order = ", ".join(column(i) for i in shape.near)
    nth = f'row_number() OVER (PARTITION BY {keys} ORDER BY {order}) AS "@nth"'
    same = [_same("x", "y", shape.exact), *(_near(i, i in shape.reaches) for i in shape.near)]
    sides = (
        f'(SELECT *, {nth} FROM "@apart" WHERE "@e" = 1 AND "@a" = 0) AS x',
        f'(SELECT *, {nth} FROM "@apart" WHERE "@a" = 1 AND "@e" = 0) AS y',
    )
    on = f'x."@nth" = y."@nth" AND {" AND ".join(same)}'
    connection.execute(
        'CREATE OR REPLACE TABLE "@left" AS '
        'SELECT * FROM "@apart" WHERE "@e" + "@a" > 1 UNION ALL '
        f'SELECT * EXCLUDE ("@nth") FROM {sides[0]} ANTI JOIN {sides[1]} ON {on} UNION ALL '
        f'SELECT * EXCLUDE ("@nth") FROM {sides[1]} ANTI JOIN {sides[0]} ON {on}'
    ).fetchall()


def _same(one: str, other: str, columns: Sequence[str]) -> str:
    return " AND ".join(f"{one}.{c} IS NOT DISTINCT FROM {other}.{c}" for c in columns) or "TRUE"


def _near(i: int, adds: bool) -> str:  # noqa: FBT001
    x, y = f"x.{column(i)}", f"y.{column(i)}"
    bound = f"{RELATIVE} * greatest(abs({x}), abs({y}))"
    if adds:
        added = f"coalesce(CASE WHEN isfinite(x.{reach(i)}) THEN x.{reach(i)} END, 0)"
        bound = f"greatest({bound}, {ABSOLUTE} * {added})"
    apart = f"isfinite({x}) AND isfinite({y}) AND abs({x} - {y}) <= {bound}"
    return f"coalesce({x} IS NOT DISTINCT FROM {y} OR ({apart}), FALSE)"


def _group(connection: duckdb.DuckDBPyConnection, shape: Shape) -> None:
    """Number the groups in which an actual row is left, and say how many rows they have."""
    keys = ", ".join(shape.exact)
    chosen = f"SELECT DISTINCT {keys}" if keys else "SELECT DISTINCT 0"
    connection.execute(
        'CREATE OR REPLACE TABLE "@groups" AS SELECT *, row_number() OVER () AS "@group" '
        f'FROM ({chosen} FROM "@left" WHERE "@a" > "@e")'
    ).fetchall()
    for table in ("@expected", "@actual", "@left"):
        connection.execute(
            f'CREATE OR REPLACE TABLE "{table}@" AS SELECT t.*, g."@group" FROM "{table}" AS t '
            f'LEFT JOIN "@groups" AS g ON {_same("t", "g", shape.exact)}'
            + ("" if table == "@left" else ' WHERE g."@group" IS NOT NULL')
        ).fetchall()
    connection.execute('CREATE OR REPLACE TABLE "@left" AS FROM "@left@"').fetchall()


def _by_group(connection: duckdb.DuckDBPyConnection, shape: Shape) -> "list[Counts]":
    """The counts of each group: of all its rows if they are few, else of what is left of them."""
    sizes = dict(
        connection.execute(
            'SELECT "@group", count(*) FROM (SELECT "@group" FROM "@expected@" UNION ALL '
            'SELECT "@group" FROM "@actual@") GROUP BY 1'
        ).fetchall()
    )
    large = sorted(group for group, size in sizes.items() if size > GROUP)
    few = f'"@group" NOT IN ({", ".join(map(str, large))})' if large else "TRUE"
    many = f'"@group" IN ({", ".join(map(str, large))})' if large else "FALSE"
    expected = _rows(connection, shape, f'"@expected@" WHERE {few}', "1")
    actual = _rows(connection, shape, f'"@actual@" WHERE {few}', "1", own=False)
    known: dict[int, list[Row]] = {}
    if large:
        left = f'"@left" WHERE {many}'
        expected |= _rows(connection, shape, left, 'greatest("@e" - "@a", 0)')
        actual |= _rows(connection, shape, left, 'greatest("@a" - "@e", 0)', own=False)
        known = _rows(connection, shape, f'"@expected@" WHERE {many}', "1")
    return [count(expected.get(g, []), actual.get(g, []), known.get(g, [])) for g in sizes]


def _rows(
    connection: duckdb.DuckDBPyConnection,
    shape: Shape,
    source: str,
    times: str,
    *,
    own: bool = True,
) -> dict[int, list[Row]]:
    """Rows by group, each as often as it is there."""
    doubles = [column(i) for i in shape.near]
    reaches = [reach(i) if own and i in shape.reaches else "0.0" for i in shape.near]
    found: Mapping[int, list[Row]] = defaultdict(list)
    width = len(doubles)
    rows = connection.execute(
        f'SELECT "@group", {times}, {", ".join([*doubles, *reaches])} FROM {source}'
    ).fetchall()
    for group, often, *values in rows:
        row = Row(tuple(values[:width]), tuple(value or 0.0 for value in values[width:]))
        found[group].extend([row] * often)
    return dict(found)
