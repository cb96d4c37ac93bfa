"""A query over all that was taken in: one plain join in DuckDB, nothing of the engine's lowering.

Columns are numbered, whatever the query calls them; own relations and columns have an `@` in their
names, which no user can write.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb
from sqlglot import exp, parse_one

from jobs.tables.columns import BATCH
from jobs.verify.intake import quoted, relation
from jobs.verify.raw import TIME
from optimizer.query import (
    RESULT,
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    ColumnRef,
    Expression,
    Query,
)
from optimizer.sql.meaning import DUCKDB, meant

STRETCHES = 200
"""Into how many pieces of time a query is cut at most."""

FARTHEST = 2**61
"""Event times beyond that are computed with in 128 bits."""


@dataclass(frozen=True)
class Scope:
    """Over what a query is computed."""

    query: Query
    until: int | None
    """The end of the last windows that are complete; none if there is none."""
    since: int = 0
    """The first batch whose rows count."""
    first: int = 0
    """The first batch that put out what is wanted."""
    above: int | None = None
    """The end of the last windows that were complete before."""
    wide: bool = False
    """Whether event times may be so large that their differences need 128 bits."""

    def micros(self, alias: str) -> str:
        """An input's event time in microseconds."""
        time = f"{quoted(alias)}.{quoted(TIME)}"
        return f"CAST({time} AS HUGEINT)" if self.wide else time


def column(number: int) -> str:
    """What the n-th column of a result is called here."""
    return quoted(f"@{number}")


def reach(number: int) -> str:
    """The column that says how much was added up, in absolute values, for that one."""
    return quoted(f"@{number}@reach")


def statements(connection: duckdb.DuckDBPyConnection, scope: Scope) -> Iterator[str]:
    """The query, one stretch of its first input's event time after another.

    Rows of all times that have a key in common would be more and more the longer a job has run.
    """
    query = scope.query
    if query.grouping is not None:
        yield _statement(scope)
        return
    (first, stream), *_ = query.inputs
    time = scope.micros(first)
    table = f"{relation('input', stream.name)} AS {quoted(first)}"
    ((low, high),) = connection.execute(f"SELECT min({time}), max({time}) FROM {table}").fetchall()
    if low is None:
        yield _statement(scope)
        return
    step = max(query.bounds.longest, (high - low) // STRETCHES, 1)
    for start in range(low, high + 1, step):
        yield _statement(scope, tuple(_during(scope, start, start + step)))


def _during(scope: Scope, start: int, end: int) -> Iterator[str]:
    """The first input's rows of that stretch, and the others' that may join them."""
    query = scope.query
    first, *others = query.aliases
    yield f"{scope.micros(first)} >= {start} AND {scope.micros(first)} < {end}"
    for other in others:
        yield f"{scope.micros(other)} >= {start - query.bounds[first, other]}"
        yield f"{scope.micros(other)} < {end + query.bounds[other, first]}"


def _statement(scope: Scope, during: Sequence[str] = ()) -> str:
    query = scope.query
    tables = ", ".join(
        f"{relation('input', stream.name)} AS {quoted(alias)}" for alias, stream in query.inputs
    )
    conditions = [_duck(predicate.expression) for predicate in query.predicates]
    conditions += [*_bounds(scope), *during]
    if scope.since:
        conditions += [f"{quoted(a)}.{quoted(BATCH)} >= {scope.since}" for a in query.aliases]
    if scope.first and query.grouping is None:
        batches = ", ".join(f"{quoted(alias)}.{quoted(BATCH)}" for alias in query.aliases)
        conditions.append(f"greatest({batches}) >= {scope.first}")
    where = f" WHERE {' AND '.join(f'({c})' for c in conditions)}" if conditions else ""
    if query.grouping is None:
        made = (f"{_duck(o.expression)} AS {column(i)}" for i, o in enumerate(query.output))
        return f"SELECT {', '.join(made)} FROM {tables}{where}"
    return _grouped(scope, tables, where)


def _bounds(scope: Scope) -> Iterator[str]:
    query = scope.query
    for newer in query.aliases:
        for older in query.aliases:
            if newer != older:
                limit = query.bounds[newer, older]
                yield f"{scope.micros(newer)} - {scope.micros(older)} <= {limit}"


# --- windows -------------------------------------------------------------------------------------


def _grouped(scope: Scope, tables: str, where: str) -> str:
    """Every joined row once for each window that it falls into."""
    query, grouping = scope.query, scope.query.grouping
    assert grouping is not None
    size, slide = grouping.size, grouping.slide
    time = scope.micros(grouping.time.alias)
    windows = f'(SELECT unnest(range({-(-size // slide)})) AS "@i")'
    start = f'({time} - (({time} % {slide}) + {slide}) % {slide} - "@window"."@i" * {slide})'
    bounds = {
        WINDOW_START: f"make_timestamptz(CAST({start} AS BIGINT))",
        WINDOW_END: f"make_timestamptz(CAST({start} + {size} AS BIGINT))",
    }
    names = {name: quoted(f"@made@{i}") for i, name in enumerate(grouping.names)}
    made = [f"{_duck(k.expression, bounds)} AS {names[k.name]}" for k in grouping.keys]
    reaches: dict[str, str] = {}
    for aggregate in grouping.aggregates:
        made.append(f"{_aggregated(aggregate, bounds)} AS {names[aggregate.name]}")
        if aggregate.function in ("sum", "avg"):
            reaches[aggregate.name] = quoted(f"@reach@{len(reaches)}")
            added = _argument(aggregate, bounds)
            made.append(
                f"sum(abs(TRY_CAST({added} AS DOUBLE))){_filter(aggregate, bounds)} "
                f"AS {reaches[aggregate.name]}"
            )
    made += [f"{text} AS {names[name]}" for name, text in bounds.items()]
    until = "FALSE" if scope.until is None else f"{start} + {size} <= {scope.until}"
    above = "" if scope.above is None else f" AND {start} + {size} > {scope.above}"
    fits = f"{time} < {start} + {size} AND {until}{above}"
    both = f"{where} AND {fits}" if where else f" WHERE {fits}"
    grouped = f'SELECT {", ".join(made)} FROM {tables}, {windows} AS "@window"{both} GROUP BY ALL'
    columns = []
    for i, named in enumerate(query.output):
        columns.append(f"{_duck(named.expression, names)} AS {column(i)}")
        own = [reaches[c.name] for c in named.expression.columns if c.name in reaches]
        if own:
            whole = " + ".join(f"coalesce({one}, 0)" for one in own)
            columns.append(f"{whole} AS {reach(i)}")
    return f"SELECT {', '.join(columns)} FROM ({grouped})"


def _argument(aggregate: Aggregate, bounds: Mapping[str, str]) -> str:
    return "*" if aggregate.argument is None else _duck(aggregate.argument, bounds)


def _filter(aggregate: Aggregate, bounds: Mapping[str, str]) -> str:
    if aggregate.condition is None:
        return ""
    return f" FILTER (WHERE {_duck(aggregate.condition, bounds)})"


def _aggregated(aggregate: Aggregate, bounds: Mapping[str, str]) -> str:
    return f"{aggregate.function}({_argument(aggregate, bounds)}){_filter(aggregate, bounds)}"


# --- text ----------------------------------------------------------------------------------------


def _duck(expression: Expression, made: Mapping[str, str] | None = None) -> str:
    """An expression as DuckDB writes it; `made` are the columns of the group-by."""
    holes: list[ColumnRef] = []

    def hole(column: ColumnRef) -> str:
        holes.append(column)
        return f"`@hole{len(holes) - 1}`"

    tree = parse_one(expression.sql(hole), read="spark")
    for node in list(tree.find_all(exp.Column)):
        column = holes[int(node.name.removeprefix("@hole"))]
        text = (made or {})[column.name] if column.alias == RESULT else _own(column)
        replaced = exp.Var(this=text)
        if node is tree:
            tree = replaced
        else:
            node.replace(replaced)
    return meant(tree, DUCKDB).sql(dialect=DUCKDB)


def _own(column: ColumnRef) -> str:
    return f"{quoted(column.alias)}.{quoted(column.name)}"
