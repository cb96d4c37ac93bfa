"""What runs the statements of a batch.  Nothing above this interface knows which engine it is."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pyarrow as pa
from sqlglot import exp

from jobs.tables.partitions import Partitioning
from jobs.tables.store import DataFile, Store

Parameters = Mapping[str, int]

Written = Callable[[], list[DataFile]]
"""Waits for files to be written."""


class SqlBackend(Protocol):
    """Statements over named relations, and a copy of every state that can be read by name."""

    @property
    def writes_at_once(self) -> bool:
        """Whether writing goes on by itself; else it is put off until somebody waits for it."""

    def put(self, relation: str, rows: Any) -> None:
        """Name the rows of a batch's input, in whatever form this backend gets them."""

    def also(self, relation: str, rows: str) -> None:
        """Give the rows of an input another name as well."""

    def run(
        self,
        relation: str,
        statement: exp.Query,
        parameters: Parameters | None = None,
        *,
        whole: bool = False,
    ) -> None:
        """Compute a statement once and name its rows.

        `whole`: what it makes of parts of its input is not, put together, what it makes of all.
        """

    def rows(self, relation: str) -> pa.Table:
        """Bring a small relation here."""

    def count(self, relation: str) -> int:
        """How many rows a relation has that a batch has computed."""

    def schema(self, relation: str) -> pa.Schema:
        """The columns of a relation, as its table should have them."""

    def write(
        self,
        relation: str,
        store: Store,
        table: str,
        batch: int | None,
        by: Partitioning | None = None,
    ) -> Written:
        """Begin to write a relation to files of a table, each row with the batch if it is given.

        The writing may go on while other statements run; what is returned waits for its end.  The
        files of what is overdue are of no use afterwards, and need not be there.
        """

    def open(self, state: str, store: Store, table: str, before: int) -> None:
        """Make what a table holds of the batches before that one readable by the state's name.

        Its rows say in `@batch` which batch brought them.
        """

    def append(self, state: str, relation: str, batch: int) -> None:
        """Make a relation that has been written part of the readable copy, if it is one.

        It may have no name of its own any more.
        """

    def purge(self, state: str, cutoff: int) -> None:
        """Forget the partitions that hold nothing younger: their table is about to drop them."""

    def refresh(self, state: str, files: list[DataFile]) -> None:
        """Learn which files hold the rows of a state now."""

    def forget(self, state: str) -> None:
        """Give up the readable copy of a state."""

    def release(self) -> None:
        """Forget the relations of a batch; states stay."""

    def close(self) -> None:
        """Give back what this backend holds."""
