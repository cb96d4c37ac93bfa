"""Where a run is interrupted: every step of the engine and both sides of what its store does.

And what becomes of its tables then: a power cut takes back what was not brought to the disk, and
somebody may lose a table, or put back an older one.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from random import Random

import pyarrow as pa

from jobs.tables.memory_store import MemoryStore, _MemoryTable
from jobs.tables.names import PROGRESS, STATE
from jobs.tables.store import DataFile


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


Past = list[_MemoryTable | None]
"""What a table was before each of its last changes; none if there was no such table."""

LOSSES = ("gone", "older", "damaged", "replaced")
"""What may become of a table while no job runs."""

PAST = "newer than its storage"
"""What a table of results is if all others are put back as they were some time ago."""


@dataclass
class FaultyStore(MemoryStore):
    """A store in memory whose caller may die before or after anything it does.

    What has changed since the last `sync` is on no disk: a power cut takes back as many of a
    table's last changes as chance will have it, whatever becomes of other tables.
    """

    event: Callable[[str], None] = lambda _: None
    filled: deque[set[tuple[str, int | None]]] = field(
        default_factory=lambda: deque([set()], maxlen=2)
    )
    """Partitions of states that a fill has written to before the last batch, and after it."""
    _unsynced: dict[str, Past] = field(default_factory=dict)

    def create(self, table: str, schema: pa.Schema) -> None:
        self.event(f"before creating {table}")
        if not self.exists(table):
            self._remember(table)
        super().create(table, schema)

    def put(self, table: str, rows: pa.Table, until: int | None = None, name: str = "") -> DataFile:
        self.event(f"before writing to {table}")
        return super().put(table, rows, until, name)

    def commit(
        self,
        table: str,
        files: Sequence[DataFile],
        batch: int,
        writer: str = "",
        gone: Sequence[DataFile] = (),
    ) -> int:
        self.event(f"written to {table}, before the commit")
        self._remember(table)
        version = super().commit(table, files, batch, writer, gone)
        if table == PROGRESS:
            self.filled.append(set())
        elif writer:
            self.filled[-1].update((table, file.until) for file in files)
        self.event(f"committed to {table}, unbeknown to the engine")
        return version

    def sync(self) -> None:
        self.event("before a sync")
        super().sync()
        self._unsynced.clear()

    def settle(self) -> None:
        self._unsynced.clear()

    def merge(self, table: str, files: Sequence[DataFile], name: str = "") -> None:
        self.event(f"before merging files of {table}")
        self._remember(table)
        super().merge(table, files, name)
        self.event(f"after merging files of {table}")

    def drop(self, table: str) -> None:
        self.event(f"before dropping {table}")
        self._remember(table)
        super().drop(table)
        self.event(f"after dropping {table}")

    def load(self, table: str) -> pa.Table:
        self.event(f"before loading {table}")
        return super().load(table)

    # --- what befalls it -------------------------------------------------------------------------

    def cut_power(self, r: Random) -> None:
        """Take back some of what has changed since the last `sync`: any number, table by table."""
        for table, past in self._unsynced.items():
            survived = r.randrange(len(past) + 1)
            if survived < len(past):
                self._set(table, past[survived])
        self._unsynced.clear()

    def saved(self) -> Mapping[str, _MemoryTable]:
        """All tables as they are."""
        return {table: _copy(kept) for table, kept in self._tables.items()}

    def restore(self, saved: Mapping[str, _MemoryTable]) -> None:
        """Have all tables as they were."""
        self._tables = {table: _copy(kept) for table, kept in saved.items()}

    def lose(self, table: str, how: str, version: int) -> None:
        """Have something happen to a table that was at that version after the last batch."""
        kept = self._tables[table]
        if how == "gone":
            del self._tables[table]
        elif how == "older":
            kept.rows = kept.rows[:version]
        elif how == "damaged":
            kept.files = [replace(kept.files[0], path="nowhere"), *kept.files[1:]]
        else:
            kept.files, kept.rows = [], [0] * len(kept.rows)

    def may_lose(self, table: str, how: str, version: int) -> bool:
        """Whether that can happen to a table such that somebody has to notice."""
        kept = self._tables[table]
        if how in ("damaged", "replaced"):
            return table.startswith(STATE) and bool(kept.files) and kept.rows[version] > 0
        return how == "gone" or version > 0

    def _remember(self, table: str) -> None:
        kept = self._tables.get(table)
        self._unsynced.setdefault(table, []).append(kept and _copy(kept))

    def _set(self, table: str, kept: _MemoryTable | None) -> None:
        if kept is None:
            self._tables.pop(table, None)
        else:
            self._tables[table] = kept


def _copy(table: _MemoryTable) -> _MemoryTable:
    return replace(table, files=[*table.files], batches={**table.batches}, rows=[*table.rows])
