"""The statistics of a job as Delta tables, one row a window and subject, beside its own tables.

Windows are by event time, and everything about one is replaced by one commit a table: gathering it
again changes nothing.  What could not be observed is null, and so is what an earlier version did
not write: its tables get the columns that they lack with the first row that has them.  Columns
that only a later version knows are left alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError

from stats.errors import StatsError

TIME = pa.timestamp("us", "UTC")

WINDOW = (("window_start", TIME), ("window_end", TIME))


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([*WINDOW, *columns.items()])


STREAMS, COLUMNS, EDGES, SELECTS = "streams", "columns", "edges", "selects"
GROUPS, COMBINED, OPERATORS, BATCHES = "groups", "combined", "operators", "batches"
KEYS = "keys"
VERDICTS, VALIDATIONS, ERRORS = "verdicts", "validations", "errors"

GATHERED: Mapping[str, pa.Schema] = {
    STREAMS: _schema(
        stream=pa.string(),
        rows=pa.int64(),  # accepted, with an event time in the window
        rate=pa.float64(),  # of those, a second
        burstiness=pa.float64(),  # variance by mean of the rows in each second; 1 is Poisson's
        width=pa.float64(),  # bytes a tuple
        taken=pa.int64(),  # what the source itself has for the window's batches
        accepted=pa.int64(),  # of those, as the job counted
        late=pa.int64(),
        rejected=pa.int64(),
        least=pa.int64(),  # rows in the window that batches are known to have accepted
        most=pa.int64(),  # rows of all batches that may have accepted any of the window
    ),
    COLUMNS: _schema(
        stream=pa.string(),
        value=pa.string(),  # a side of a join's equality: a column, or an expression over columns
        rows=pa.int64(),
        nulls=pa.int64(),
        distinct=pa.int64(),
        heavy=pa.list_(pa.struct([("value", pa.string()), ("rows", pa.int64())])),  # most first
    ),
    EDGES: _schema(
        query=pa.string(),
        one=pa.string(),  # the aliases of two inputs that have predicates in common, in order
        other=pa.string(),
        pairs=pa.float64(),  # of tuples in the window that could match
        matches=pa.float64(),  # of those, how many do; an estimate where sampled
        selectivity=pa.float64(),
        error=pa.float64(),  # half of its 95 % interval; 0 where exact
        method=pa.string(),  # exact or sampled
    ),
    KEYS: _schema(
        query=pa.string(),
        key=pa.string(),  # what three inputs or more are joined on, such as a.k = b.k = c.k
        alias=pa.string(),
        rows=pa.int64(),  # that pass the input's selects
        nulls=pa.int64(),
        heavy=pa.list_(pa.struct([("value", pa.string()), ("rows", pa.int64())])),  # for each input
        rest=pa.int64(),  # rows with another value
        others=pa.float64(),  # how many other values there are, if all came up alike
    ),
    SELECTS: _schema(
        query=pa.string(),
        alias=pa.string(),
        predicate=pa.string(),  # as `str(predicate)` writes it
        rows=pa.int64(),
        passed=pa.int64(),
        selectivity=pa.float64(),
    ),
    GROUPS: _schema(
        query=pa.string(),
        groups=pa.float64(),  # of a window of the query, on average; null if none was put out
    ),
    COMBINED: _schema(query=pa.string(), alias=pa.string(), rate=pa.float64()),  # left, a second
    OPERATORS: _schema(
        operator=pa.string(),  # the key of its content
        batches=pa.int64(),
        rows=pa.int64(),  # put out
        state_rows=pa.int64(),  # after the window's last batch
        state_bytes=pa.int64(),
        ms=pa.float64(),
    ),
    BATCHES: _schema(
        batches=pa.int64(),
        ms=pa.float64(),
        cpu=pa.float64(),  # seconds, of all the job's processes
        memory=pa.int64(),  # bytes, of all the job's processes, at most
        state_rows=pa.int64(),
        state_bytes=pa.int64(),
        lag=pa.float64(),  # seconds from the watermark to the clock, after the last batch
        backlog=pa.int64(),  # files or versions that wait, after the last batch
        busy=pa.float64(),  # the share of the time between batches that they took
        results=pa.int64(),
    ),
}
"""What is gathered of every window; a window is there when `batches` has it."""

TABLES: Mapping[str, pa.Schema] = {
    **GATHERED,
    VERDICTS: _schema(
        good=pa.bool_(),
        reasons=pa.list_(pa.string()),  # why it is not to be believed
        checked=pa.int64(),  # expectations
        at=TIME,
        fingerprint=pa.string(),  # of what was judged: gathered anew, it is judged anew
    ),
    VALIDATIONS: _schema(
        table=pa.string(),
        rule=pa.string(),
        expectation=pa.string(),  # as Great Expectations calls it
        passed=pa.bool_(),
        observed=pa.string(),
        reason=pa.string(),  # null where it passed
    ),
    ERRORS: _schema(
        query=pa.string(),
        operator=pa.string(),  # null for the whole plan
        predicted=pa.float64(),  # CPU-seconds a second
        measured=pa.float64(),
        error=pa.float64(),  # predicted by measured, less one
    ),
}


@dataclass(frozen=True)
class Window:
    """A stretch of event time, its end not part of it; in microseconds."""

    start: int
    end: int

    @property
    def seconds(self) -> float:
        """How long it is."""
        return (self.end - self.start) / 1_000_000


@dataclass(frozen=True)
class StatsStore:
    """A job's statistics, under its storage."""

    root: Path

    @classmethod
    def of(cls, storage: Path) -> "StatsStore":
        """Where a job that keeps to that directory has them."""
        return cls(storage / "stats")

    def path(self, table: str) -> Path:
        """Where a table is, for whoever reads Delta."""
        return self.root / table

    def replace(self, table: str, window: Window, rows: Iterable[Mapping[str, Any]]) -> None:
        """Have the table say this of the window, and nothing else; times come as microseconds."""
        self.replace_all(table, {window: rows})

    def replace_all(self, table: str, rows: Mapping[Window, Iterable[Mapping[str, Any]]]) -> None:
        """The same of several windows, in one commit."""
        schema = TABLES[table]
        whole = [
            {"window_start": window.start, "window_end": window.end} | dict(row)
            for window, some in sorted(rows.items(), key=lambda item: item[0].start)
            for row in some
        ]
        content = pa.Table.from_pylist(whole, schema=schema)
        path = self.path(table)
        if not DeltaTable.is_deltatable(str(path)):
            path.parent.mkdir(parents=True, exist_ok=True)
            DeltaTable.create(path, schema, mode="ignore")
        if self._load(table, list(rows)).equals(content):
            return
        starts = ", ".join(_literal(window.start) for window in rows)
        with readable(path):
            _check(path, strange(DeltaTable(path), schema))
            write_deltalake(
                path, content, mode="overwrite", schema_mode="merge",
                predicate=f"window_start IN ({starts})",
            )  # fmt: skip

    def read(self, table: str, window: Window | None = None) -> pa.Table:
        """All rows, or those of a window; none where nothing was ever written."""
        return self._load(table, None if window is None else [window])

    def rows(self, table: str, windows: Sequence[Window] | None = None) -> list[dict[str, Any]]:
        """The rows of all windows or of some, the oldest first, their times in microseconds."""
        found = self._load(table, windows)
        for name in ("window_start", "window_end"):
            micros = found.column(name).cast(pa.int64())
            found = found.set_column(found.schema.get_field_index(name), name, micros)
        rows: list[dict[str, Any]] = found.to_pylist()
        return rows

    def windows(self) -> list[Window]:
        """The windows that have been gathered, the oldest first."""
        return _windows(self._load(BATCHES, schema=pa.schema(WINDOW)))

    def good(self) -> list[Window]:
        """Those of them that passed validation, the oldest first: what decisions may use."""
        verdicts = self.read(VERDICTS)
        return _windows(verdicts.filter(verdicts.column("good")))

    def _load(
        self, table: str, windows: Sequence[Window] | None = None, schema: pa.Schema | None = None
    ) -> pa.Table:
        """Only the files that may have them are opened, and only those columns read."""
        wanted = schema or TABLES[table]
        starts = None if windows is None else _starts(windows)
        with readable(self.path(table)):
            try:
                stored = DeltaTable(self.path(table))
            except TableNotFoundError:
                return wanted.empty_table()
            _check(self.path(table), strange(stored, wanted))
            found = load(stored, wanted, _between(stored, starts))
        if starts is not None:
            found = found.filter(pc.is_in(found.column("window_start"), starts))
        return found.sort_by("window_start")


@dataclass(frozen=True)
class Snapshot(StatsStore):
    """The statistics as they are now, each table read once however many windows are looked at.

    Of windows before `since`, which are looked at more seldom, nothing is kept in memory.
    """

    since: int | None = None

    @cached_property
    def _tables(self) -> dict[str, dict[int, list[dict[str, Any]]]]:
        return {}

    @cached_property
    def _windows(self) -> list[Window]:
        return super().windows()

    @cached_property
    def _good(self) -> list[Window]:
        return super().good()

    def windows(self) -> list[Window]:
        return self._windows

    def good(self) -> list[Window]:
        return self._good

    def rows(self, table: str, windows: Sequence[Window] | None = None) -> list[dict[str, Any]]:
        wanted = self._windows if windows is None else windows
        if not all(map(self._kept, wanted)):
            return super().rows(table, wanted)
        if table not in self._tables:
            known: dict[int, list[dict[str, Any]]] = {}
            for row in super().rows(table, [*filter(self._kept, self._windows)]):
                known.setdefault(row["window_start"], []).append(row)
            self._tables[table] = known
        starts = sorted(window.start for window in wanted)
        return [row for start in starts for row in self._tables[table].get(start, ())]

    def _kept(self, window: Window) -> bool:
        return self.since is None or window.start >= self.since


def strange(table: DeltaTable, wanted: pa.Schema) -> list[str]:
    """The columns that have another type than they should, each with the one it has."""
    types = {one.name: one.type.type for one in Schema.from_arrow(wanted).fields}
    return [
        f"{one.name} ({one.type.type})"
        for one in table.schema().fields
        if one.type.type != types.get(one.name, one.type.type)
    ]


def _check(path: Path, strange: Sequence[str]) -> None:
    """Refuse columns of another type: their figures may mean something else."""
    if strange:
        raise unusable(path, f"not of the types that they should be: {', '.join(strange)}")


def unusable(path: Path, why: str) -> StatsError:
    """That a table cannot be read or written."""
    return StatsError(
        f"{path} cannot be used ({why}): it is damaged, or another version of midstream wrote it; "
        "move it away, and gather again with `midstream stats collect --again`"
    )


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Say in a line what is the matter with a table that cannot be read or written."""
    try:
        yield
    except (DeltaError, pa.ArrowException, OSError) as error:
        raise unusable(path, str(error).partition("\n")[0]) from None


def load(
    table: DeltaTable, wanted: pa.Schema | None = None, files: Sequence[str] | None = None
) -> pa.Table:
    """A table's rows with the columns wanted, or with its own, read by the time this returns.

    Arrow's scanner may still be busy then, and a program that ends just afterwards is aborted
    (apache/arrow 34314, 39862): a command that looks and is done would.
    """
    schema = pa.schema(table.schema().to_arrow()) if wanted is None else wanted
    parts = []
    for path in _files(table) if files is None else files:
        with pq.ParquetFile(path) as file:
            parts.append(_as(file.read(schema.names), schema))
    return pa.concat_tables([schema.empty_table(), *parts])


def _as(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with those columns; what a file lacks is null."""
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.schema.names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _files(table: DeltaTable) -> list[str]:
    """The paths of a table's files, which it has as addresses."""
    return [unquote(uri) for uri in table.file_uris()]


def _between(table: DeltaTable, starts: pa.Array | None) -> list[str]:
    """The files that may have a window of those."""
    paths = sorted(_files(table))
    if starts is None or not paths:
        return paths
    actions = pa.table(table.get_add_actions(flatten=True))
    first, last = pc.min(starts), pc.max(starts)
    within = pc.and_(
        pc.less_equal(actions.column("min.window_start"), last),
        pc.greater_equal(actions.column("max.window_start"), first),
    )
    names = set(actions.filter(within).column("path").to_pylist())
    return [path for path in paths if path.rpartition("/")[2] in names]


def _starts(windows: Sequence[Window]) -> pa.Array:
    return pa.array([window.start for window in windows], pa.int64()).cast(TIME)


def _literal(time: int) -> str:
    return f"arrow_cast({time}, 'Timestamp(Microsecond, Some(\"UTC\"))')"


def _windows(table: pa.Table) -> list[Window]:
    starts, ends = (table.column(name).cast(pa.int64()) for name, _ in WINDOW)
    pairs = zip(starts.to_pylist(), ends.to_pylist(), strict=True)
    return [Window(start, end) for start, end in sorted(set(pairs))]
