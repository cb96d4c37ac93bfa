"""Rows in Parquet files as DuckDB reads them: all of them, or one task's share.

A share is a range of the rows as the files hold them, one file after another: shares are equally
large, no row is in two of them, and a task opens no more files than it needs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from jobs.tables.columns import BATCH, UNTIL
from jobs.tables.paths import read_parquet
from jobs.tables.store import DataFile, Store

ROW_NUMBER = "file_row_number"
"""What DuckDB calls the number of a row in its file."""


@dataclass(frozen=True)
class Share:
    """The part of all rows that one of so many tasks takes."""

    task: int
    of: int

    def range(self, rows: int) -> tuple[int, int]:
        """Where it begins and where it ends."""
        return rows * self.task // self.of, rows * (self.task + 1) // self.of


@dataclass(frozen=True)
class ParquetInput:
    """Rows in files: how many each has, and what is read of them."""

    files: tuple[tuple[str, int], ...]
    schema: pa.Schema
    columns: str = "*"
    wanted: tuple[str, ...] = ()
    """The columns to read, where files may have more."""
    before: int | None = None
    """Where an interrupted batch has left rows: the batch before which rows count."""

    @classmethod
    def of(
        cls, location: Path, files: Iterable[DataFile], schema: pa.Schema, before: int | None = None
    ) -> "ParquetInput":
        """What a table's files hold."""
        found = tuple((str(location / file.path), file.rows) for file in files)
        return cls(found, schema, before=before)

    def define(self, connection: duckdb.DuckDBPyConnection, name: str, share: Share | None) -> None:
        """Let a connection read them by that name."""
        parts = list(self._parts(share))
        if not parts:
            connection.register(name, self.schema.empty_table())
            return
        condition = f" WHERE {quoted(BATCH)} < {self.before}" if self.before is not None else ""
        rows = " UNION ALL BY NAME ".join(f"FROM {part}" for part in parts)
        connection.execute(
            f"CREATE TEMP VIEW {quoted(name)} AS SELECT {self.columns} FROM ({rows}){condition}"
        )

    def _parts(self, share: Share | None) -> Iterator[str]:
        """Whole files in one go, those of which a share ends in the middle by themselves.

        Where a column has the name by which DuckDB numbers rows, files are never cut.
        """
        first, last = share.range(sum(rows for _, rows in self.files)) if share else (0, None)
        uncut = any(name.lower() == ROW_NUMBER for name in self.schema.names)
        wanted = ", ".join(map(quoted, self.wanted)) or "*"
        without = "" if self.wanted else f" EXCLUDE ({ROW_NUMBER})"
        whole, end = [], 0
        for path, rows in self.files:
            begin, end = end, end + rows
            if begin >= first and (last is None or (begin if uncut else end - 1) < last):
                whole.append(path)
            elif last is not None and begin < last and end > first and not uncut:
                low, high = max(first - begin, 0), min(last - begin, rows)
                yield (
                    f"(SELECT {wanted}{without} FROM "
                    f"{read_parquet([path], f', {ROW_NUMBER} = true')} "
                    f"WHERE {ROW_NUMBER} >= {low} AND {ROW_NUMBER} < {high})"
                )
        if whole:
            yield f"(SELECT {wanted} FROM {read_parquet(whole)})"


@dataclass
class StateFiles:
    """The files that hold what an operator computed before a batch."""

    location: Path
    schema: pa.Schema
    files: list[DataFile]
    before: int | None
    """Where an interrupted batch has left rows: the batch before which rows count."""

    @classmethod
    def of(cls, store: Store, table: str, before: int) -> "StateFiles":
        """What a table holds of the batches before that one."""
        schema = pa.schema([column for column in store.schema(table) if column.name != UNTIL])
        interrupted = before if store.last_batch(table) >= before else None
        return cls(location_of(store, table), schema, store.files(table), interrupted)

    def purge(self, cutoff: int) -> None:
        """Forget the partitions that hold nothing younger."""
        self.files = [file for file in self.files if file.until is None or file.until > cutoff]

    def refresh(self, files: list[DataFile]) -> None:
        """These hold the rows, and none that do not count, once a batch is done."""
        self.files, self.before = list(files), None


def quoted(name: str) -> str:
    """A name, as DuckDB wants it."""
    return '"' + name.replace('"', '""') + '"'


def location_of(store: Store, table: str) -> Path:
    """Where Spark's tasks read and write the files of a table."""
    location = store.location(table)
    if location is None:
        raise TypeError("Spark reads and writes files: it needs a store that keeps them")
    return location
