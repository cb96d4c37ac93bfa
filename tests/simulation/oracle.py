"""What must come out: the watermark's rule row by row, and each query as one batch join.

Nothing here is the engine's: rows are sorted in plain Python, queries are put into plain DuckDB SQL
from the query itself and from its windows as they were written.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product

import duckdb
import pyarrow as pa

from jobs.engine.ingest import Ingest
from optimizer.plan import Node, applied_by, walk
from optimizer.query import RESULT, WINDOW_END, WINDOW_START, Aggregate, ColumnRef, Grouping, Query
from tests.simulation.case import Case, Row, relation
from tests.simulation.queries import Limits
from tests.simulation.values import WHOLE, equal

Bag = Counter[tuple[object, ...]]
"""Rows as a multiset."""

# --- what is taken in ----------------------------------------------------------------------------


YEAR_1, YEAR_9999 = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and the last microsecond that an event time may have."""


@dataclass
class Account:
    """Where every row of a stream belongs."""

    accepted: list[Row] = field(default_factory=list)
    late: Bag = field(default_factory=Counter)
    rejected: Bag = field(default_factory=Counter)
    newest: int | None = None
    seen: int | None = None

    def take(self, ingest: Ingest, rows: Sequence[Row], clock: int, watermark: int | None) -> None:
        """Sort the rows of one batch, which began at that time with that watermark."""
        time_at = [c.name for c in ingest.stream.columns].index(ingest.stream.event_time)
        if rows or self.seen is None:
            self.seen = clock
        for row in rows:
            time = row.values[time_at]
            if row.reason is not None:
                self.rejected[(*row.known, row.reason, row.reason)] += 1
            elif time is None:
                self.rejected[(*row.known, "no event time", None)] += 1
            elif not YEAR_1 <= time <= YEAR_9999:
                self.rejected[(*row.known, "event time out of range", None)] += 1
            elif time > clock + ingest.ahead:
                why = "event time too far in the future"
                self.rejected[(*row.known, why, None)] += 1
            else:
                self.newest = time if self.newest is None else max(time, self.newest)
                if watermark is not None and time < watermark:
                    self.late[(*row.known, watermark)] += 1
                else:
                    self.accepted.append(row)


@dataclass
class Accounts:
    """All streams, and the watermark after every batch."""

    streams: dict[str, Account]
    watermarks: list[int | None]

    @property
    def watermark(self) -> int | None:
        """Where the last batch leaves it."""
        return self.watermarks[-1]


def accounts(case: Case, clocks: Sequence[int]) -> Accounts:
    """Sort all rows, each batch having begun at the time given."""
    ingests = case.job.streams
    made = Accounts({name: Account() for name in ingests}, [])
    watermark = None
    for batch, clock in zip(case.batches, clocks, strict=True):
        for name, ingest in ingests.items():
            made.streams[name].take(ingest, batch.rows[name], clock, watermark)
        watermark = _watermark(ingests, made.streams, clock, watermark)
        made.watermarks.append(watermark)
    return made


def _watermark(
    ingests: Mapping[str, Ingest], streams: Mapping[str, Account], clock: int, before: int | None
) -> int | None:
    """The least that any stream promises, those not counted that are silent for too long."""
    promises = []
    for name, ingest in ingests.items():
        newest, seen = streams[name].newest, streams[name].seen
        if ingest.idle_after is not None and seen is not None and clock - seen >= ingest.idle_after:
            continue
        if newest is None:
            return before
        promises.append(newest - ingest.lateness)
    if not promises:
        return before
    return min(promises) if before is None else max(before, min(promises))


# --- what is computed ----------------------------------------------------------------------------


def results(case: Case, name: str, made: Accounts) -> pa.Table:
    """All that a query puts out until the last batch's watermark."""
    text = sql(case.job.plans[name].query, case.limits[name], made.watermark)
    return _database(case, made).sql(text).to_arrow_table()


def schemas(case: Case) -> dict[str, pa.Schema]:
    """The columns of each query's results."""
    nothing = Accounts({name: Account() for name in case.job.streams}, [None])
    return {name: results(case, name, nothing).schema for name in case.job.plans}


def sql(query: Query, limits: Limits, watermark: int | None) -> str:
    """A query as one DuckDB statement over whole streams."""
    sources = ", ".join(f'"{stream.name}" AS "{alias}"' for alias, stream in query.inputs)
    conditions = [f"({predicate.expression.sql(_quoted)})" for predicate in query.predicates]
    where = " AND ".join([*conditions, *_within(query, limits, query.aliases)]) or "TRUE"
    if query.grouping is None:
        columns = ", ".join(f'{o.expression.sql(_quoted)} AS "{o.name}"' for o in query.output)
        return f"SELECT {columns} FROM {sources} WHERE {where}"
    grouped = _grouped(query, query.grouping, sources, where)
    outputs = ", ".join(f'{o.expression.sql(_quoted)} AS "{o.name}"' for o in query.output)
    closed = (
        "FALSE" if watermark is None else f'epoch_us("{WINDOW_END}") + {wait(query)} <= {watermark}'
    )
    return f"SELECT {outputs} FROM ({grouped}) WHERE {closed}"


def content(case: Case, name: str, node: Node, accepted: Accounts) -> pa.Table:
    """All rows that an operator of joined tuples has ever made, under the names of its columns."""
    query = case.job.plans[name].query
    inputs = [(alias, stream.name) for alias, stream in query.inputs if alias in node.aliases]
    columns = ", ".join(f'{_quoted(column)} AS "{column}"' for column in node.columns)
    sources = ", ".join(f'"{stream}" AS "{alias}"' for alias, stream in inputs)
    conditions = [
        f"({p.expression.sql(_quoted)})" for below in walk(node) for p in applied_by(below)
    ]
    conditions += _within(query, _closed(case.limits[name], query.aliases), node.aliases)
    where = " AND ".join(conditions) or "TRUE"
    text = f"SELECT {columns} FROM {sources} WHERE {where}"
    return _database(case, accepted).sql(text).to_arrow_table()


def wait(query: Query) -> int:
    """How much newer than the tuple that decides the window any of its partners may be."""
    assert query.grouping is not None
    alias = query.grouping.time.alias
    return max([0, *(query.bounds[other, alias] for other in query.aliases if other != alias)])


def _within(query: Query, limits: Limits, aliases: Collection[str]) -> list[str]:
    return [
        f"epoch_us({_quoted(query.event_times[newer])})"
        f" - epoch_us({_quoted(query.event_times[older])}) <= {limit}"
        for (newer, older), limit in limits.items()
        if newer in aliases and older in aliases
    ]


def _closed(limits: Limits, aliases: Sequence[str]) -> Limits:
    """What the limits say of two inputs by way of others, too."""
    known = dict(limits)
    for via, newer, older in product(aliases, repeat=3):
        if len({via, newer, older}) == 3 and {(newer, via), (via, older)} <= known.keys():
            around = known[newer, via] + known[via, older]
            known[newer, older] = min(around, known.get((newer, older), around))
    return known


def _grouped(query: Query, grouping: Grouping, sources: str, where: str) -> str:
    """Every joined row in each of its windows: those that start at a slide and hold its time."""
    time, size, slide = f"epoch_us({_quoted(grouping.time)})", grouping.size, grouping.slide
    first = f"{time} - (({time} % {slide}) + {slide}) % {slide}"
    start = f'({first} - "@i"."@n" * {slide})'
    inside = f"{start} <= {time} AND {time} < {start} + {size}"
    scope = {WINDOW_START: f"make_timestamp({start}) AT TIME ZONE 'UTC'",
             WINDOW_END: f"make_timestamp({start} + {size}) AT TIME ZONE 'UTC'"}  # fmt: skip

    def column(ref: ColumnRef) -> str:
        return f"({scope[ref.name]})" if ref.alias == RESULT else _quoted(ref)

    made = [f'{key.expression.sql(column)} AS "{key.name}"' for key in grouping.keys]
    made += [f'{_aggregate(query, one, column)} AS "{one.name}"' for one in grouping.aggregates]
    made += [f'{text} AS "{name}"' for name, text in scope.items()]
    count = size // slide + 1
    keys = ", ".join([*(key.expression.sql(column) for key in grouping.keys), start])
    return (
        f'SELECT {", ".join(made)} FROM {sources}, range({count}) AS "@i"("@n") '
        f"WHERE {where} AND {inside} GROUP BY {keys}"
    )


def _aggregate(query: Query, one: Aggregate, column: Callable[[ColumnRef], str]) -> str:
    argument = one.argument.sql(column) if one.argument else "*"
    text = f"{one.function}({argument})"
    if one.condition is not None:
        text += f" FILTER (WHERE {one.condition.sql(column)})"
    return f"TRY_CAST({text} AS BIGINT)" if _is_whole(query, one) else text


def _is_whole(query: Query, one: Aggregate) -> bool:
    """Whether it adds up integers, for which DuckDB has a wider type than other engines."""
    if one.function != "sum" or one.argument is None:
        return False
    types = (query.streams[c.alias].column(c.name) for c in one.argument.columns)
    return all(column is not None and column.type in WHOLE for column in types)


def _quoted(column: ColumnRef) -> str:
    """A column's name, whatever it is."""
    return f'"{column.alias}"."{column.name}"' if column.alias else f'"{column.name}"'


def _database(case: Case, accepted: Accounts) -> duckdb.DuckDBPyConnection:
    """All accepted input, a table a stream."""
    connection = _connection()
    for stream, ingest in case.job.streams.items():
        connection.register(stream, relation(ingest.stream, accepted.streams[stream].accepted))
    return connection


_TRIED = {"add": "+", "subtract": "-", "multiply": "*", "mod": "%"}
"""What canonical text calls arithmetic that may have no result."""


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    for name, operator in _TRIED.items():
        connection.execute(f"CREATE MACRO try_{name}(x, y) AS TRY(x {operator} y)")
    return connection


# --- multisets -----------------------------------------------------------------------------------


def bag(rows: pa.Table, names: Sequence[str]) -> Bag:
    """Rows as a multiset of tuples, times in microseconds."""
    columns = in_micros(rows.select(names)).columns
    return Counter(zip(*map(_comparable, columns), strict=True))


def _comparable(column: pa.ChunkedArray) -> list[object]:
    """A column's values, of which each is equal to itself."""
    values: list[object] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [equal(value) for value in values]
    return values


def in_micros(rows: pa.Table) -> pa.Table:
    """Times as numbers, which compare and add quickly."""
    for at, column in enumerate(rows.schema):
        if pa.types.is_timestamp(column.type):
            rows = rows.set_column(at, column.name, rows.column(at).cast(pa.int64()))
    return rows
