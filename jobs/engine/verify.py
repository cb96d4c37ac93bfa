"""Whether a job's results are right: computed again from what it read, by another route.

The input is read again as the checkpoint says it was taken, less what is in the late and rejected
tables; each query becomes one plain join in DuckDB.  Nothing of the engine's own lowering is used.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
from deltalake import DeltaTable
from sqlglot import parse_one

from jobs.engine.executors.filed import quoted
from jobs.engine.feed import Inlet
from jobs.engine.ingest import ROW, WATERMARK
from jobs.engine.layout import JobStore
from jobs.engine.microbatch import result_table
from jobs.engine.progress import Progress
from jobs.engine.store import BATCH
from optimizer.query import RESULT, WINDOW_END, WINDOW_START, ColumnRef, Expression, Query

STRETCHES = 200
"""Into how many pieces of time a query is cut at most."""

TOLERANCE = 1e-9
"""How far apart two equal doubles may be, relatively: adding up in another order moves them."""


@dataclass(frozen=True)
class Verdict:
    """How a query's results compare with what they should be, in rows."""

    query: str
    expected: int
    actual: int
    missing: int
    duplicate: int
    wrong: int

    @property
    def right(self) -> bool:
        """Nothing to complain about."""
        return not (self.missing or self.duplicate or self.wrong)


def verify(
    queries: Mapping[str, Query], streams: list[Inlet], store: JobStore, progress: Progress
) -> Iterator[Verdict]:
    """Compare each query's results up to the last finished batch."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for inlet in streams:
            _read_again(connection, inlet, store, progress.batch)
        for name, query in queries.items():
            statements = _statements(connection, query, progress.emitted.get(name))
            actual = _as_of(store, result_table(name), progress.batch)
            yield _compare(connection, name, list(statements), actual)


# --- the input -----------------------------------------------------------------------------------


def _read_again(
    connection: duckdb.DuckDBPyConnection, inlet: Inlet, store: JobStore, batch: int
) -> None:
    """Make `input_S` of a stream: all that was taken, less what was late or rejected."""
    stream = inlet.stream
    raw, table = f"raw_{stream.name}", f"input_{stream.name}"
    inlet.source.read_again(connection, raw, inlet.taken, batch)
    columns = ", ".join(quoted(column.name) for column in stream.columns)
    _aside(connection, f"rejected_{stream.name}", store.path(f"rejected/{stream.name}"), batch, raw)
    _aside(connection, f"late_{stream.name}", store.path(f"late/{stream.name}"), batch, raw)
    time = f"epoch_us({quoted(stream.event_time)})"
    connection.execute(
        f"CREATE TABLE {quoted(table)} AS "
        f"SELECT {columns} FROM ({_accepted_text(raw, stream.name)}) "
        f"EXCEPT ALL SELECT {columns} FROM {quoted(f'rejected_{stream.name}')} "
        f"WHERE {quoted(ROW)} IS NULL "
        f"EXCEPT ALL SELECT {columns} FROM {quoted(f'late_{stream.name}')} "
        f"WHERE {time} < {quoted(WATERMARK)}"
    )


def _aside(
    connection: duckdb.DuckDBPyConnection, relation: str, path: Path, batch: int, like: str
) -> None:
    """The rows set aside in the batches that count; none if nothing ever was."""
    if DeltaTable.is_deltatable(str(path)):
        rows = DeltaTable(path).to_pyarrow_table()
        connection.register("_rows", rows)
        source = f"SELECT * FROM _rows WHERE {quoted(BATCH)} <= {batch}"
        connection.execute(f"CREATE TABLE {quoted(relation)} AS {source}")
        connection.unregister("_rows")
    else:
        connection.execute(
            f"CREATE TABLE {quoted(relation)} AS "
            f"SELECT *, NULL::BIGINT AS {quoted(WATERMARK)} FROM {quoted(like)} LIMIT 0"
        )


def _accepted_text(raw: str, stream: str) -> str:
    """The raw rows without the lines that were rejected; equal lines are as good as each other."""
    row = quoted(ROW)
    return (
        f"SELECT r.* FROM (SELECT *, row_number() OVER (PARTITION BY {row}) AS _nth "
        f"FROM {quoted(raw)}) AS r LEFT JOIN (SELECT {row}, count(*) AS _times "
        f"FROM {quoted(f'rejected_{stream}')} WHERE {row} IS NOT NULL GROUP BY {row}) AS x "
        f"ON r.{row} = x.{row} WHERE x._times IS NULL OR r._nth > x._times"
    )


# --- the queries ---------------------------------------------------------------------------------


def _statements(
    connection: duckdb.DuckDBPyConnection, query: Query, emitted: int | None
) -> Iterator[str]:
    """The query over all input, one stretch of its first input's event time after another.

    Rows of all times that have a key in common would be more and more the longer a job has run.
    """
    if query.grouping is not None:
        yield _statement(query, emitted)
        return
    (first, stream), *_ = query.inputs
    time = _micros(query.event_times[first])
    table = f"{quoted(f'input_{stream.name}')} AS {quoted(first)}"
    ((low, high),) = connection.execute(f"SELECT min({time}), max({time}) FROM {table}").fetchall()
    if low is None:
        yield _statement(query, emitted)
        return
    step = max(query.bounds.longest, (high - low) // STRETCHES, 1)
    for start in range(low, high + 1, step):
        yield _statement(query, emitted, tuple(_during(query, start, start + step)))


def _during(query: Query, start: int, end: int) -> Iterator[str]:
    """The first input's rows of that stretch, and the others' that may join them."""
    first, *others = query.aliases
    micros = {alias: _micros(column) for alias, column in query.event_times.items()}
    yield f"{micros[first]} >= {start} AND {micros[first]} < {end}"
    for other in others:
        yield f"{micros[other]} >= {start - query.bounds[first, other]}"
        yield f"{micros[other]} < {end + query.bounds[other, first]}"


def _statement(query: Query, emitted: int | None, during: Sequence[str] = ()) -> str:
    """The query over all input at once, with the windows that have been emitted so far."""
    tables = ", ".join(
        f"{quoted(f'input_{stream.name}')} AS {quoted(alias)}" for alias, stream in query.inputs
    )
    conditions = [_duck(predicate.expression) for predicate in query.predicates]
    conditions += [*_bounds(query), *during]
    where = f" WHERE {' AND '.join(f'({c})' for c in conditions)}" if conditions else ""
    columns = ", ".join(f"{_duck(o.expression)} AS {quoted(o.name)}" for o in query.output)
    if query.grouping is None:
        return f"SELECT {columns} FROM {tables}{where}"
    return f"SELECT {columns} FROM ({_grouped(query, tables, where, emitted)})"


def _bounds(query: Query) -> Iterator[str]:
    micros = {alias: _micros(column) for alias, column in query.event_times.items()}
    for newer in query.aliases:
        for older in query.aliases:
            if newer != older:
                yield f"{micros[newer]} - {micros[older]} <= {query.bounds[newer, older]}"


def _grouped(query: Query, tables: str, where: str, emitted: int | None) -> str:
    """Every joined row once for each window that it falls into."""
    grouping = query.grouping
    assert grouping is not None
    size, slide = grouping.size, grouping.slide
    time = _micros(grouping.time)
    windows = f"(SELECT unnest(range({-(-size // slide)})) AS i)"
    start = f"({time} - (({time} % {slide}) + {slide}) % {slide} - _window.i * {slide})"
    bounds = {
        WINDOW_START: f"make_timestamptz({start})",
        WINDOW_END: f"make_timestamptz({start} + {size})",
    }
    made = [f"{_duck(key.expression, bounds)} AS {quoted(key.name)}" for key in grouping.keys]
    for aggregate in grouping.aggregates:
        argument = "*" if aggregate.argument is None else _duck(aggregate.argument, bounds)
        only = ""
        if aggregate.condition is not None:
            only = f" FILTER (WHERE {_duck(aggregate.condition, bounds)})"
        made.append(f"{aggregate.function}({argument}){only} AS {quoted(aggregate.name)}")
    made += [f"{text} AS {quoted(name)}" for name, text in bounds.items()]
    until = "FALSE" if emitted is None else f"{start} + {size} <= {emitted}"
    fits = f"{time} < {start} + {size} AND {until}"
    both = f"{where} AND {fits}" if where else f" WHERE {fits}"
    return f"SELECT {', '.join(made)} FROM {tables}, {windows} AS _window{both} GROUP BY ALL"


def _duck(expression: Expression, bounds: Mapping[str, str] | None = None) -> str:
    """An expression as DuckDB writes it; the bounds of a window are put in afterwards."""
    text = expression.sql(_column)
    duck = parse_one(text, read="spark").sql(dialect="duckdb")
    for name, value in (bounds or {}).items():
        duck = duck.replace(quoted(name), value)
    return duck


def _column(column: ColumnRef) -> str:
    if column.alias == RESULT:
        return f"`{column.name}`"
    return f"`{column.alias}`.`{column.name}`"


def _micros(column: ColumnRef) -> str:
    return f"epoch_us({quoted(column.alias)}.{quoted(column.name)})"


# --- comparing -----------------------------------------------------------------------------------


def _as_of(store: JobStore, result: str, batch: int) -> pa.Table | None:
    """A result table without what an unfinished batch may have added already."""
    path = store.path(result)
    if not DeltaTable.is_deltatable(str(path)):
        return None
    table = DeltaTable(path)
    while (table.transaction_version(store.writer) or 0) > batch:
        table.load_as_version(table.version() - 1)
    return table.to_pyarrow_table()


def _compare(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    statements: Sequence[str],
    actual: pa.Table | None,
) -> Verdict:
    if actual is None:
        connection.execute(f"CREATE OR REPLACE TABLE actual AS FROM ({statements[0]}) LIMIT 0")
    else:
        connection.register("_actual", actual)
        connection.execute("CREATE OR REPLACE TABLE actual AS FROM _actual")
        connection.unregister("_actual")
    connection.execute("CREATE OR REPLACE TABLE expected AS FROM actual LIMIT 0")
    for statement in statements:
        connection.execute(f"INSERT INTO expected BY NAME {statement}").fetchall()
    described = connection.execute("DESCRIBE actual").fetchall()
    doubles = [row[0] for row in described if row[1] in ("DOUBLE", "FLOAT")]
    exact = [row[0] for row in described if row[0] not in doubles]
    connection.execute(
        "CREATE OR REPLACE TABLE apart AS SELECT * EXCLUDE (e, a), sum(e)::BIGINT AS e, "
        "sum(a)::BIGINT AS a FROM (SELECT *, 1 AS e, 0 AS a FROM expected UNION ALL "
        "SELECT *, 0, 1 FROM actual) GROUP BY ALL HAVING sum(e) <> sum(a)"
    )
    counted = connection.execute(_differences(exact, doubles)).fetchall()
    missing, duplicate, wrong = map(int, counted[0])
    return Verdict(
        name, _count(connection, "expected"), _count(connection, "actual"),
        missing, duplicate, wrong,
    )  # fmt: skip


def _differences(exact: list[str], doubles: list[str]) -> str:
    """Count what is apart, having put together what only its doubles keep apart, and hardly."""
    found = "SELECT e, a FROM apart"
    if doubles:
        keys = ", ".join(map(quoted, exact)) or "NULL"
        order = ", ".join(map(quoted, doubles))
        nth = f"row_number() OVER (PARTITION BY {keys} ORDER BY {order}) AS _nth"
        same = [f"x.{quoted(c)} IS NOT DISTINCT FROM y.{quoted(c)}" for c in exact]
        same += [_near(f"x.{quoted(c)}", f"y.{quoted(c)}") for c in doubles]
        found = (
            f"SELECT coalesce(x.e, 0) AS e, coalesce(y.a, 0) AS a "
            f"FROM (SELECT *, {nth} FROM apart WHERE a = 0) AS x FULL JOIN "
            f"(SELECT *, {nth} FROM apart WHERE e = 0) AS y "
            f"ON x._nth = y._nth AND {' AND '.join(same)} "
            "UNION ALL SELECT e, a FROM apart WHERE e > 0 AND a > 0"
        )
    return (
        "SELECT coalesce(sum(greatest(e - a, 0)), 0), "
        "coalesce(sum(CASE WHEN e > 0 THEN greatest(a - e, 0) END), 0), "
        f"coalesce(sum(CASE WHEN e = 0 THEN a END), 0) FROM ({found})"
    )


def _near(one: str, other: str) -> str:
    apart = f"abs({one} - {other}) <= {TOLERANCE} * greatest(abs({one}), abs({other}))"
    return f"({one} IS NOT DISTINCT FROM {other} OR {apart})"


def _count(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    ((counted,),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
    return int(counted)
