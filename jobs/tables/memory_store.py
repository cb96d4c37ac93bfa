"""Tables in memory: like those on a disk, for simulations."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from jobs.tables.columns import UNTIL
from jobs.tables.store import WRITER, DataFile, latest_until


@dataclass
class _MemoryTable:
    schema: pa.Schema
    files: list[DataFile] = field(default_factory=list)
    batches: dict[str, int] = field(default_factory=dict)
    rows: list[int] = field(default_factory=lambda: [0])
    """How many it had at each version."""

    def commit(self, files: list[DataFile]) -> None:
        """One version more."""
        self.files = files
        self.rows.append(sum(file.rows for file in files))


@dataclass
class MemoryStore:
    """The same without a disk, for simulations."""

    writer: str = WRITER
    _tables: dict[str, _MemoryTable] = field(default_factory=dict)
    _data: dict[str, pa.Table] = field(default_factory=dict)
    _made: int = 0

    def create(self, table: str, schema: pa.Schema) -> None:
        self._tables.setdefault(table, _MemoryTable(schema))

    def exists(self, table: str) -> bool:
        return table in self._tables

    def location(self, table: str) -> Path | None:  # noqa: ARG002
        return None

    def schema(self, table: str) -> pa.Schema:
        return self._tables[table].schema

    def last_batch(self, table: str, writer: str = "") -> int:
        known = self._tables[table].batches if table in self._tables else {}
        return known.get(writer or self.writer, -1)

    def version(self, table: str) -> int:
        return len(self._tables[table].rows) - 1 if table in self._tables else -1

    def rows_at(self, table: str, version: int) -> int | None:
        return self._tables[table].rows[version]

    def damaged(self, table: str) -> list[str]:
        return [file.path for file in self._tables[table].files if file.path not in self._data]

    def where(self, table: str) -> str:
        return table

    def outside(self, table: str) -> str:  # noqa: ARG002
        return ""

    def sync(self) -> None:
        pass

    def settle(self) -> None:
        pass

    def put(self, table: str, rows: pa.Table, until: int | None = None, name: str = "") -> DataFile:
        self._made += 1
        path = f"{table}/{name or self._made}"
        self._data[path] = rows.drop_columns([UNTIL]) if UNTIL in rows.column_names else rows
        return DataFile(path, rows.num_rows, rows.nbytes, until)

    def commit(
        self,
        table: str,
        files: Sequence[DataFile],
        batch: int,
        writer: str = "",
        gone: Sequence[DataFile] = (),
    ) -> int:
        if self.last_batch(table, writer) < batch:
            kept = self._tables[table]
            kept.commit([*(file for file in kept.files if file not in gone), *files])
            kept.batches[writer or self.writer] = batch
        return self.version(table)

    def discard(self, table: str, files: Sequence[DataFile]) -> None:  # noqa: ARG002
        for file in files:
            self._data.pop(file.path)

    def load(self, table: str) -> pa.Table:
        return self.read(table, self._tables[table].files)

    def read(self, table: str, files: Sequence[DataFile]) -> pa.Table:
        """The rows of some files."""
        schema = self._tables[table].schema
        parts = [self._with_until(self._data[file.path], file) for file in files]
        return pa.concat_tables([schema.empty_table(), *(p.select(schema.names) for p in parts)])

    @staticmethod
    def _with_until(rows: pa.Table, file: DataFile) -> pa.Table:
        if file.until is None:
            return rows
        return rows.append_column(UNTIL, pa.array([file.until] * rows.num_rows, pa.int64()))

    def files(self, table: str) -> list[DataFile]:
        return list(self._tables[table].files)

    def newest(self, table: str) -> pa.Table:
        return self._data[max(file.path for file in self._tables[table].files)]

    def merge(self, table: str, files: Sequence[DataFile], name: str = "") -> None:
        kept = self._tables[table]
        merged = self.put(table, self.read(table, files), latest_until(files), name)
        kept.commit([file for file in kept.files if file not in files] + [merged])

    def drop(self, table: str) -> None:
        del self._tables[table]

    def tables(self) -> list[str]:
        return sorted(self._tables)
