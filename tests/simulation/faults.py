"""Where a run is interrupted: every step of the engine and both sides of what its store does."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch

import pyarrow as pa

from jobs.engine.progress import PROGRESS
from jobs.engine.store import File, MemoryStore


class Crash(BaseException):
    """The process is gone: nothing in the engine may catch this."""


At = int | str
"""An event: its number, a pattern of its name, or `A > B`, the first B after the first A."""

THEN = " > "


@dataclass
class Crashes:
    """Counts what happens in an attempt, and ends it at the event that the case says."""

    trace: list[str] = field(default_factory=list)
    _left: int | None = None
    _names: list[str] = field(default_factory=list)

    def plan(self, at: At | None) -> None:
        """Begin an attempt that ends at that event, if there is one; `None` lets it live."""
        self._left = at if isinstance(at, int) else None
        self._names = at.split(THEN) if isinstance(at, str) else []

    def __call__(self, event: str) -> None:
        if self._is_due(event):
            self.trace.append(event)
            raise Crash(event)

    def _is_due(self, event: str) -> bool:
        if self._left is not None:
            self._left -= 1
            return self._left == -1
        if self._names and fnmatch(event, self._names[0]):
            del self._names[0]
            return not self._names
        return False


@dataclass
class FaultyStore(MemoryStore):
    """A store in memory whose caller may die before or after anything it does."""

    event: Callable[[str], None] = lambda _: None
    filled: deque[set[tuple[str, int | None]]] = field(
        default_factory=lambda: deque([set()], maxlen=2)
    )
    """Partitions of states that a fill has written to before the last batch, and after it."""

    def create(self, table: str, schema: pa.Schema) -> None:
        self.event(f"before creating {table}")
        super().create(table, schema)

    def put(self, table: str, rows: pa.Table, until: int | None = None, name: str = "") -> File:
        self.event(f"before writing to {table}")
        return super().put(table, rows, until, name)

    def commit(
        self,
        table: str,
        files: Sequence[File],
        batch: int,
        writer: str = "",
        gone: Sequence[File] = (),
    ) -> None:
        self.event(f"written to {table}, before the commit")
        super().commit(table, files, batch, writer, gone)
        if table == PROGRESS:
            self.filled.append(set())
        elif writer:
            self.filled[-1].update((table, file.until) for file in files)
        self.event(f"committed to {table}, unbeknown to the engine")

    def merge(self, table: str, files: Sequence[File], name: str = "") -> None:
        self.event(f"before merging files of {table}")
        super().merge(table, files, name)
        self.event(f"after merging files of {table}")

    def drop(self, table: str) -> None:
        self.event(f"before dropping {table}")
        super().drop(table)
        self.event(f"after dropping {table}")

    def load(self, table: str) -> pa.Table:
        self.event(f"before loading {table}")
        return super().load(table)
