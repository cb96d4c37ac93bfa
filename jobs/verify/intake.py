"""Which tuples counted: the documented rule, applied again to all that was taken.

A tuple without event time, of another time than the years 1 to 9999, or too far in the future for
when its batch began, is rejected; one older than the watermark that the batches before it had left
is late.  The watermark follows from the tuples themselves.  What the job set aside is compared with
that, and believed in nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
from deltalake import DeltaTable

from jobs.specs import MICROSECOND
from jobs.tables.columns import BATCH, REASON, ROW
from jobs.verify.fields import FIRST, LAST
from jobs.verify.past import Past
from jobs.verify.raw import FITS, LINE, TIME, parts, schema
from jobs.verify.verdict import CannotTellError
from optimizer.query import Stream

WATERMARK, FATE, LATEST = "@watermark", "@fate", "@latest"
TAKEN, LATE, REJECTED = "taken", "late", "rejected"


def quoted(name: str) -> str:
    """A name as it stands in a statement."""
    return '"' + name.replace('"', '""') + '"'


def relation(kind: str, stream: str) -> str:
    """The table of a stream's rows."""
    return quoted(f"{kind}@{stream}")


@dataclass(frozen=True)
class Intake:
    """What became of the tuples of all streams."""

    taken: Mapping[str, "Again"]
    watermark: int | None
    """The last one."""
    complaints: tuple[tuple[str, str], ...]
    """By stream, rows set aside that should not be, and rows that should be and are not."""
    doubts: tuple[str, ...]
    """What may make the input another than it is read here."""

    def describe(self, streams: Iterable[str]) -> str:
        """Where the input of some streams was read again."""
        found = []
        for name in dict.fromkeys(streams):
            one = self.taken[name]
            found.append(
                f"{name} {one.rows:,} rows" + (f" in {one.files:,} files" if one.files else "")
            )
        return ", ".join(found)


@dataclass(frozen=True)
class Again:
    """What was read again of a stream."""

    rows: int
    files: int
    changed: tuple[Path, ...]
    """Files that are not any more what they were when batches took them."""


def take_in(connection: duckdb.DuckDBPyConnection, past: Past) -> Intake:
    """Make `input@S` of every stream: its rows that counted, with batch and time."""
    taken = {name: _load(connection, past, name) for name in past.streams}
    doubts = [
        f"{len(one.changed):,} of the files of stream {name} changed after batches took them, "
        f"such as {one.changed[0]}"
        for name, one in taken.items()
        if one.changed
    ]
    mark = _judge(connection, past, believed=bool(doubts))
    complaints = [
        (name, text) for name in past.streams for text in _compared(connection, past, name)
    ]
    return Intake(taken, mark, tuple(complaints), tuple(doubts))


def _load(connection: duckdb.DuckDBPyConnection, past: Past, name: str) -> Again:
    stream = past.job.stream(name)
    empty = schema(stream).empty_table()
    connection.register("@rows", empty)
    connection.execute(f'CREATE TABLE {relation("raw", name)} AS FROM "@rows"')
    connection.unregister("@rows")
    rows, files, changed = 0, 0, list[Path]()
    for part in parts(past, name):
        for some in part.rows():
            _insert(connection, name, some, empty.schema)
            rows += some.num_rows
        files, changed = files + part.sources, [*changed, *part.changed]
    for kind, extra in ((LATE, {}), (REJECTED, _TEXTS)):
        _aside(connection, past, kind, stream, extra)
    return Again(rows, files, tuple(changed))


def _insert(
    connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table, wanted: pa.Schema
) -> None:
    if rows.schema != wanted:
        raise CannotTellError(f"the schema of stream {name} changed while the job was stopped")
    connection.register("@rows", rows)
    connection.execute(f'INSERT INTO {relation("raw", name)} FROM "@rows"').fetchall()
    connection.unregister("@rows")


_TEXTS = {REASON: pa.string(), ROW: pa.string()}


def _aside(
    connection: duckdb.DuckDBPyConnection,
    past: Past,
    kind: str,
    stream: Stream,
    extra: Mapping[str, pa.DataType],
) -> None:
    """What the job's own table of rows set aside says."""
    path, name = past.storage / kind / stream.name, relation(kind, stream.name)
    kept = [column.name for column in stream.columns]
    columns = ", ".join(map(quoted, [*kept, *extra, BATCH]))
    if DeltaTable.is_deltatable(str(path)):
        connection.register("@rows", _table(path))
        where = f'FROM "@rows" WHERE {quoted(BATCH)} BETWEEN {past.begin} AND {past.last}'
        connection.execute(f"CREATE TABLE {name} AS SELECT {columns} {where}").fetchall()
    else:
        fields = [schema(stream).field(column) for column in kept]
        added = [pa.field(column, type_) for column, type_ in extra.items()]
        empty = pa.schema([*fields, *added, pa.field(BATCH, pa.int64())]).empty_table()
        connection.register("@rows", empty)
        connection.execute(f'CREATE TABLE {name} AS SELECT {columns} FROM "@rows"').fetchall()
    connection.unregister("@rows")


def _table(path: Path) -> pa.Table:
    return DeltaTable(path).to_pyarrow_table()


# --- the rule ------------------------------------------------------------------------------------


def _judge(connection: duckdb.DuckDBPyConnection, past: Past, *, believed: bool) -> int | None:
    """Say of every row what should have become of it, and keep those that counted."""
    for name in past.streams:
        _begin(connection, past, name)
    marks = (
        [batch.watermark for batch in past.batches] if believed else watermarks(connection, past)
    )
    before = [None, *marks[:-1]]
    rows = pa.table({
        BATCH: pa.array([batch.number for batch in past.batches], pa.int64()),
        WATERMARK: pa.array(before, pa.int64()),
    })  # fmt: skip
    connection.register("@rows", rows)
    connection.execute('CREATE TABLE "@marks" AS FROM "@rows"')
    connection.unregister("@rows")
    for name in past.streams:
        time, mark = quoted(TIME), quoted(WATERMARK)
        connection.execute(
            f"CREATE TABLE {relation('judged', name)} AS SELECT r.*, m.{mark}, "
            f"CASE WHEN NOT {quoted(FITS)} OR {time} IS NULL OR {time} > {quoted(LATEST)} "
            f"OR {time} < {FIRST} THEN '{REJECTED}' "
            f"WHEN {time} < m.{mark} THEN '{LATE}' ELSE '{TAKEN}' END "
            f"AS {quoted(FATE)} FROM {relation('begun', name)} AS r "
            f'JOIN "@marks" AS m USING ({quoted(BATCH)})'
        ).fetchall()
        columns = ", ".join(quoted(c.name) for c in past.job.stream(name).columns)
        connection.execute(
            f"CREATE TABLE {relation('input', name)} AS SELECT {columns}, {quoted(BATCH)}, {time} "
            f"FROM {relation('judged', name)} WHERE {quoted(FATE)} = '{TAKEN}'"
        ).fetchall()
        connection.execute(f"DROP TABLE {relation('begun', name)}")
    return marks[-1]


def _begin(connection: duckdb.DuckDBPyConnection, past: Past, name: str) -> None:
    """The rows, each with the latest event time that its batch took."""
    latest = [
        (
            batch.number,
            min(batch.clock + stretch.job.streams[name].ahead // MICROSECOND, LAST),
        )
        for stretch in past.stretches
        for batch in past.batches[stretch.first : stretch.last + 1]
    ]
    rows = pa.table({
        BATCH: pa.array([number for number, _ in latest], pa.int64()),
        LATEST: pa.array([time for _, time in latest], pa.int64()),
    })  # fmt: skip
    connection.register("@rows", rows)
    connection.execute(
        f"CREATE TABLE {relation('begun', name)} AS FROM {relation('raw', name)} "
        f'JOIN "@rows" USING ({quoted(BATCH)})'
    ).fetchall()
    connection.unregister("@rows")
    connection.execute(f"DROP TABLE {relation('raw', name)}")


def watermarks(connection: duckdb.DuckDBPyConnection, past: Past) -> list[int | None]:
    """The watermark that each batch left: no stream that still speaks has tuples before it."""
    news = {name: _news(connection, name) for name in past.streams}
    before, clock = past.before, past.batches[0].clock
    newest = {name: before.newest.get(name) if before else None for name in past.streams}
    seen = {name: (before and before.seen.get(name)) or clock for name in past.streams}
    mark = before.watermark if before else None
    found = [batch.watermark for batch in past.batches[: past.begin]]
    for stretch in past.stretches:
        for batch in past.batches[max(stretch.first, past.begin) : stretch.last + 1]:
            for name in past.streams:
                if batch.number in news[name]:
                    seen[name] = batch.clock
                    newest[name] = _later(newest[name], news[name][batch.number])
            reached = [
                None if (time := newest[name]) is None else time - spec.lateness // MICROSECOND
                for name, spec in stretch.job.streams.items()
                if spec.idle_after is None
                or batch.clock - seen[name] < spec.idle_after // MICROSECOND
            ]
            if reached and None not in reached:
                mark = _later(mark, min(time for time in reached if time is not None))
            found.append(mark)
    return found


def _later(one: int | None, other: int | None) -> int | None:
    known = [time for time in (one, other) if time is not None]
    return max(known, default=None)


def _news(connection: duckdb.DuckDBPyConnection, name: str) -> dict[int, int | None]:
    """The newest event time of each batch that brought anything, if it has one that counts."""
    time = quoted(TIME)
    rows = connection.execute(
        f"SELECT {quoted(BATCH)}, max(CASE WHEN {quoted(FITS)} AND {time} <= {quoted(LATEST)} "
        f"AND {time} >= {FIRST} THEN {time} END) FROM {relation('begun', name)} GROUP BY 1"
    ).fetchall()
    return dict(rows)


# --- what was set aside --------------------------------------------------------------------------


def _compared(connection: duckdb.DuckDBPyConnection, past: Past, name: str) -> list[str]:
    """How the tables of rows set aside differ from what should be in them."""
    columns = [quoted(c.name) for c in past.job.stream(name).columns]
    judged, batch = relation("judged", name), quoted(BATCH)
    plain = ", ".join([*columns, batch])
    line = f"trim({quoted(LINE)})"
    sides = {
        LATE: (
            f"SELECT {plain} FROM {judged} WHERE {quoted(FATE)} = '{LATE}'",
            f"SELECT {plain} FROM {relation(LATE, name)}",
        ),
        f"{REJECTED} ": (
            f"SELECT {plain} FROM {judged} WHERE {quoted(FATE)} = '{REJECTED}' AND {quoted(FITS)}",
            f"SELECT {plain} FROM {relation(REJECTED, name)} WHERE {quoted(ROW)} IS NULL",
        ),
        REJECTED: (
            f"SELECT {line}, {batch} FROM {judged} WHERE NOT {quoted(FITS)}",
            f"SELECT trim({quoted(ROW)}), {batch} FROM {relation(REJECTED, name)} "
            f"WHERE {quoted(ROW)} IS NOT NULL",
        ),
    }
    found = []
    for kind, (should, does) in sides.items():
        table = f"{kind.strip()}/{name}"
        for one, other, words in (
            (does, should, f"rows of {table} should not be there"),
            (should, does, f"rows should be in {table} and are not"),
        ):
            ((count,),) = connection.execute(
                f"SELECT count(*) FROM (({one}) EXCEPT ALL ({other}))"
            ).fetchall()
            if count:
                found.append(f"{count:,} {words}")
    return found
