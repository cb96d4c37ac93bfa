"""Tables that the engine writes: nobody sees a file until one commit makes it part of its table.

A commit carries the batch that it belongs to, and a table that already has a batch skips it: this
is what makes a replayed batch harmless.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

WRITER = "midstream"
"""The writer whose parts are a job's batches, unless its storage has an identity of its own."""


@dataclass(frozen=True)
class DataFile:
    """A data file, written but not yet part of its table."""

    path: str
    rows: int
    bytes: int
    until: int | None = None


class Store(Protocol):
    """Where tables are kept.

    A power cut may take back a commit until `sync` has returned, but never half of one: the files
    that it adds are on the disk before it is made.
    """

    writer: str
    """Whose parts the job's batches are: tables that several write to keep them apart."""

    def create(self, table: str, schema: pa.Schema) -> None:
        """Make an empty table, unless it exists; a column `@until` becomes its partition column."""

    def exists(self, table: str) -> bool:
        """Whether there is such a table."""

    def location(self, table: str) -> Path | None:
        """The directory where a backend may write files of a table; none if there is no disk."""

    def schema(self, table: str) -> pa.Schema:
        """The columns of a table."""

    def last_batch(self, table: str, writer: str = "") -> int:
        """The newest batch committed to a table, or the newest part of another writer's; or -1."""

    def version(self, table: str) -> int:
        """How many commits a table has had, or -1 if there is none."""

    def rows_at(self, table: str, version: int) -> int | None:
        """How many rows a table had at a version, if that can still be told."""

    def damaged(self, table: str) -> list[str]:
        """The files of a table that are gone, or not as long as they were once."""

    def where(self, table: str) -> str:
        """Where a table is, for people."""

    def outside(self, table: str) -> str:
        """Where a table is that does not lie among the others; empty for those that do."""

    def sync(self) -> None:
        """Bring all commits made so far to the disk."""

    def settle(self) -> None:
        """Bring to the disk what a process that was killed may have committed and not synced.

        Whoever goes on takes it for done, and a power cut must not take it back later.
        """

    def put(self, table: str, rows: pa.Table, until: int | None = None, name: str = "") -> DataFile:
        """Write rows to a file of their own, invisible until it is committed."""

    def commit(
        self,
        table: str,
        files: Sequence[DataFile],
        batch: int,
        writer: str = "",
        gone: Sequence[DataFile] = (),
    ) -> int:
        """Make the files part of the table and drop others, all at once; the version it has then.

        Nothing happens if it has that batch; who else writes to it counts its own parts.
        """

    def discard(self, table: str, files: Sequence[DataFile]) -> None:
        """Remove files that are no part of a table, and never will be."""

    def load(self, table: str) -> pa.Table:
        """All rows."""

    def newest(self, table: str) -> pa.Table:
        """The rows of the file whose name sorts last."""

    def files(self, table: str) -> list[DataFile]:
        """The files that make up a table."""

    def merge(self, table: str, files: Sequence[DataFile], name: str = "") -> None:
        """Put the rows of files into one; who reads the files before can go on."""

    def drop(self, table: str) -> None:
        """Remove a table with everything in it."""

    def tables(self) -> list[str]:
        """The names of all tables."""


def latest_until(files: Sequence[DataFile]) -> int | None:
    """The bound of the rows of several files."""
    return max((file.until for file in files if file.until is not None), default=None)
