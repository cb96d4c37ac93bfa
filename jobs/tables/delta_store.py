"""Delta tables in a directory, committed without a Java machine."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from json import dumps
from pathlib import Path
from urllib.parse import unquote
from uuid import uuid4
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, CommitProperties, RemoveAction, Transaction

from jobs.tables.columns import BATCH, UNTIL
from jobs.tables.damage import whole
from jobs.tables.durability import sync, unsynced
from jobs.tables.names import CONTROL, STATE
from jobs.tables.paths import files_of
from jobs.tables.store import WRITER, DataFile, latest_until


@dataclass
class DeltaStore:
    """Delta tables in a directory, each readable by anything that reads Delta."""

    root: Path
    writer: str = WRITER
    durable: bool = False
    """Whether commits survive a power cut."""
    _open: dict[str, DeltaTable] = field(default_factory=dict)
    _unsynced: deque[Path] = field(default_factory=deque)

    def path(self, table: str) -> Path:
        """Where a table is."""
        return self.root / table

    def location(self, table: str) -> Path | None:
        return self.path(table)

    def schema(self, table: str) -> pa.Schema:
        return pa.schema(self.table(table).schema().to_arrow())

    def table(self, name: str) -> DeltaTable:
        """The table as of its newest version."""
        with whole(self.path(name)):
            if name not in self._open:
                self._open[name] = DeltaTable(self.path(name))
            table = self._open[name]
            table.update_incremental()
            return table

    def create(self, table: str, schema: pa.Schema) -> None:
        if not self.exists(table):
            partition = [UNTIL] if UNTIL in schema.names else None
            self.path(table).parent.mkdir(parents=True, exist_ok=True)
            self._open[table] = DeltaTable.create(
                self.path(table),
                schema,
                mode="ignore",
                partition_by=partition,
                configuration=_properties(table) | (_BRIEF if table.startswith(_OUR_OWN) else {}),
            )
            self._noted(table, -1)

    def exists(self, table: str) -> bool:
        return table in self._open or DeltaTable.is_deltatable(str(self.path(table)))

    def last_batch(self, table: str, writer: str = "") -> int:
        if not self.exists(table):
            return -1
        version = self.table(table).transaction_version(writer or self.writer)
        return -1 if version is None else version

    def version(self, table: str) -> int:
        return self.table(table).version() if self.exists(table) else -1

    def rows_at(self, table: str, version: int) -> int | None:
        try:
            then = DeltaTable(self.path(table), version=version)
        except DeltaError:
            return None  # the log has forgotten it
        actions = pa.table(then.get_add_actions(flatten=True))
        return sum(map(int, actions.column("num_records").to_pylist()))

    def damaged(self, table: str) -> list[str]:
        places = [(self.path(table) / file.path, file.bytes) for file in self.files(table)]
        return [str(path) for path, size in places if not _is_whole(path, size)]

    def where(self, table: str) -> str:
        return str(self.path(table))

    def outside(self, table: str) -> str:
        path = self.path(table)
        return "" if path.is_relative_to(self.root) else str(path)

    def sync(self) -> None:
        paths = []
        while self._unsynced:
            paths.append(self._unsynced.popleft())
        sync(paths)

    def settle(self) -> None:
        if self.durable:
            sync(path for place in self._places() for path in unsynced(place))

    def _places(self) -> list[Path]:
        """Where tables are that this store may write to."""
        return [self.path(table) for table in self.tables()]

    def _noted(self, table: str, since: int) -> int:
        """Have the next `sync` bring to the disk what a log has since a version; the newest one."""
        log = self.path(table) / "_delta_log"
        newest = since
        while (entry := log / f"{newest + 1:020d}.json").exists():
            newest += 1
            if self.durable:
                self._unsynced.extend((entry, entry.with_suffix(".checkpoint.parquet")))
        if self.durable:
            self._unsynced.append(log / "_last_checkpoint")
        return newest

    def _sync_files(self, table: str, files: Sequence[DataFile]) -> None:
        if self.durable:
            sync([self.path(table) / file.path for file in files])

    def put(self, table: str, rows: pa.Table, until: int | None = None, name: str = "") -> DataFile:
        if UNTIL in rows.column_names:
            rows = rows.drop_columns([UNTIL])
        return self._write(table, rows.schema, [rows], until, name)

    def _write(
        self, table: str, schema: pa.Schema, parts: Iterable[pa.Table], until: int | None, name: str
    ) -> DataFile:
        """A file of these parts, each in memory only while it is written."""
        directory = f"{UNTIL}={until}/" if until is not None else ""
        path = f"{directory}{name or uuid4().hex}.parquet"
        target = self.path(table) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        count = 0
        with pq.ParquetWriter(
            target,
            schema,
            compression="snappy",
            use_dictionary=_repetitive(schema),
            column_encoding=dict.fromkeys(_whole_numbers(schema), "DELTA_BINARY_PACKED"),
        ) as writer:
            for rows in parts:
                writer.write_table(rows)
                count += rows.num_rows
        return DataFile(path, count, target.stat().st_size, until)

    def commit(
        self,
        table: str,
        files: Sequence[DataFile],
        batch: int,
        writer: str = "",
        gone: Sequence[DataFile] = (),
    ) -> int:
        delta, part = self.table(table), (writer or self.writer, batch)
        known = delta.transaction_version(part[0])
        if known is None or known < batch:
            self._sync_files(table, files)
            _commit(delta, [_add(f) for f in files], [_remove(f) for f in gone], part)
            return self._noted(table, delta.version())
        return delta.version()

    def discard(self, table: str, files: Sequence[DataFile]) -> None:
        for file in files:
            (self.path(table) / file.path).unlink(missing_ok=True)

    def load(self, table: str) -> pa.Table:
        if table.startswith(CONTROL):
            empty = self.schema(table).empty_table()
            return pa.concat_tables([empty, *map(_read, files_of(self.table(table)))])
        with whole(self.path(table)):
            return self.table(table).to_pyarrow_table()

    def files(self, table: str) -> list[DataFile]:
        actions = pa.table(self.table(table).get_add_actions(flatten=True)).to_pylist()
        return [
            DataFile(
                unquote(a["path"]), a["num_records"], a["size_bytes"], a.get(f"partition.{UNTIL}")
            )
            for a in actions
        ]

    def newest(self, table: str) -> pa.Table:
        return _read(max(files_of(self.table(table))))

    def merge(self, table: str, files: Sequence[DataFile], name: str = "") -> None:
        columns = [field for field in self.schema(table) if field.name != UNTIL]
        schema = pa.schema(columns)
        parts = (
            pq.read_table(self.path(table) / file.path, partitioning=None)
            .select(schema.names)
            .cast(schema)
            for file in files
        )
        merged = self._write(table, schema, parts, latest_until(files), name)
        old = [_remove(file, data_change=False) for file in files]
        delta = self.table(table)
        self._sync_files(table, [merged])
        _commit(delta, [_add(merged, data_change=False)], old)
        self._noted(table, delta.version())

    def drop(self, table: str) -> None:
        from shutil import rmtree

        self._open.pop(table, None)
        rmtree(self.path(table))

    def tables(self) -> list[str]:
        found = self.root.glob("**/_delta_log") if self.root.exists() else []
        return sorted(str(log.parent.relative_to(self.root)) for log in found)


_OUR_OWN = (STATE, CONTROL)
"""Tables that only the engine reads in the long run."""


def _properties(table: str) -> dict[str, str]:
    """A commit reads the log back to its last checkpoint: the nearer that is, the sooner it ends.

    Not all tables have theirs in the same batch, which would take longer than the others.
    """
    return {"delta.checkpointInterval": str(8 + crc32(table.encode()) % 5)}


_BRIEF = {
    "delta.logRetentionDuration": "interval 10 minutes",
    "delta.deletedFileRetentionDuration": "interval 10 minutes",
}
"""Their past is of no use for long, and a checkpoint lists every file that was dropped since."""


def _read(path: str) -> pa.Table:
    """A file's rows, read by the time this returns.

    Arrow's scanner, which everything else uses, may still be busy then, and a program that ends
    just afterwards is aborted (apache/arrow 34314, 39862): a command that looks and is done would.
    """
    with whole(Path(path)), pq.ParquetFile(path) as file:
        return file.read()


def _commit(
    delta: DeltaTable,
    added: list[AddAction],
    removed: list[RemoveAction],
    part: tuple[str, int] | None = None,
) -> None:
    """One version more, with a writer's part if it is one; `delta` stays at the one before."""
    properties = CommitProperties(app_transactions=[Transaction(*part)] if part else None)
    partition = delta.metadata().partition_columns or None
    delta.create_write_transaction(
        [*added, *removed], "append", delta.schema(), partition, commit_properties=properties
    )


def _add(file: DataFile, *, data_change: bool = True) -> AddAction:
    return AddAction(
        path=file.path,
        size=file.bytes,
        partition_values=_partition(file),
        modification_time=_now(),
        data_change=data_change,
        stats=dumps({"numRecords": file.rows}),
    )


def _remove(file: DataFile, *, data_change: bool = True) -> RemoveAction:
    return RemoveAction(file.path, data_change, _now(), file.bytes, _partition(file))


def _partition(file: DataFile) -> dict[str, str | None]:
    return {} if file.until is None else {UNTIL: str(file.until)}


def _now() -> int:
    return int(datetime.now(UTC).timestamp() * 1000)


def _is_whole(path: Path, size: int) -> bool:
    return path.exists() and path.stat().st_size == size


def _repetitive(schema: pa.Schema) -> list[str]:
    """The columns worth a dictionary: numbers and times mostly differ, and building one is slow."""
    return [
        field.name
        for field in schema
        if field.name == BATCH or not (pa.types.is_primitive(field.type))
    ]


def _whole_numbers(schema: pa.Schema) -> list[str]:
    """The columns worth storing as differences: half the bytes, in less time than to compress."""
    return [
        field.name
        for field in schema
        if field.name != BATCH
        and (pa.types.is_integer(field.type) or pa.types.is_timestamp(field.type))
    ]
