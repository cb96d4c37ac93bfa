"""The states of a running job: their tables, their files, and the backend's readable copies."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from jobs.backends import SqlBackend
from jobs.tables.columns import ALWAYS, BATCH
from jobs.tables.names import STATE, state_table
from jobs.tables.partitions import mergeable
from jobs.tables.store import DataFile, Store


@dataclass
class States:
    """What is known of each state, by the key of its identity."""

    store: Store
    backend: SqlBackend
    step: Callable[[str], None]
    files: dict[str, list[DataFile]] = field(default_factory=dict)
    _cutoffs: dict[str, int] = field(default_factory=dict)
    _overdue: dict[str, list[DataFile]] = field(default_factory=dict)
    _replaced: deque[tuple[int, str, list[DataFile]]] = field(default_factory=deque)
    """Files that are no part of a table any more, and the batch since which they are none."""

    def open(self, key: str, before: int) -> None:
        """Read what the table holds of the batches before that one, if there is such a table."""
        if self.store.exists(table := state_table(key)):
            self.backend.open(relation_of(key), self.store, table, before)
            self.files[key] = self.store.files(table)

    def create(self, key: str, relation: str, before: int) -> None:
        """Make an empty table for rows like those of a relation."""
        schema = self.backend.schema(relation).append(pa.field(BATCH, pa.int64()))
        self.store.create(state_table(key), schema)
        self.open(key, before)

    def add(self, key: str, relation: str, files: list[DataFile], batch: int) -> None:
        """What has been computed and written is part of the state from now on."""
        self.backend.append(relation_of(key), relation, batch)
        self.files[key].extend(files)
        self.backend.refresh(relation_of(key), self.files[key])

    def purge(self, key: str, cutoff: int) -> None:
        """Forget the rows that are no younger than the cutoff, and the files without any others.

        The table has these until its next commit, so that they take none of their own.
        """
        self._cutoffs[key] = max(cutoff, self._cutoffs.get(key, ALWAYS))
        self._sort(key, [*self._overdue.get(key, ()), *self.files[key]])

    def cutoff(self, key: str) -> int:
        """No row of a state that is needed is older."""
        return self._cutoffs.get(key, ALWAYS)

    def overdue(self, table: str) -> list[DataFile]:
        """What a table still holds though nobody needs it: whoever asks drops it."""
        return self._overdue.pop(table.removeprefix(STATE), [])

    def _sort(self, key: str, files: list[DataFile]) -> None:
        """Into those that may still be needed and those that are overdue, the copy's rows too."""
        cutoff = self.cutoff(key)
        self.backend.purge(relation_of(key), cutoff)

        def overdue(file: DataFile) -> bool:
            return file.until is not None and file.until <= cutoff

        self.files[key] = [file for file in files if not overdue(file)]
        self._overdue[key] = [file for file in files if overdue(file)]

    def replaced(self, batch: int, table: str, files: list[DataFile]) -> None:
        """Remember files that a commit has made no part of a table any more."""
        if files and table.startswith(STATE):
            self._replaced.append((batch, table, files))

    def sweep(self, batch: int) -> None:
        """Remove the files that were replaced by that batch or before."""
        while self._replaced and self._replaced[0][0] <= batch:
            _, table, files = self._replaced.popleft()
            if table.removeprefix(STATE) in self.files:
                self.step(f"sweep:{table}")
                self.store.discard(table, files)

    def compact(
        self, key: str, width: int, most: int, closed: int | None, small: int, batch: int
    ) -> bool:
        """Merge files of a partition that has more than so many alike; whether there were any."""
        table = state_table(key)
        chosen = mergeable(self.files[key], width, most, closed, small)
        if not chosen:
            return False
        self.step(f"compact:{table}")
        self.store.merge(table, chosen)
        self.replaced(batch, table, chosen)
        self._sort(key, self.store.files(table))
        self.backend.refresh(relation_of(key), self.files[key])
        return True

    def drop(self, key: str) -> None:
        """Remove a state with everything in it, also what half a removal left of one."""
        if state_table(key) in self.store.tables():
            self._remove(key)

    def keep_only(self, keys: Iterable[str]) -> None:
        """Remove the states that nobody needs any more."""
        kept = {state_table(key) for key in keys}
        for table in self.store.tables():
            if table.startswith(STATE) and table not in kept:
                self._remove(table.removeprefix(STATE))

    def _remove(self, key: str) -> None:
        if self.files.pop(key, None) is not None:
            self.backend.forget(relation_of(key))
            self._cutoffs.pop(key, None)
            self._overdue.pop(key, None)
        self.step(f"drop:{state_table(key)}")
        self.store.drop(state_table(key))

    def rows(self, key: str) -> int:
        """How many rows a state has."""
        return sum(file.rows for file in self.files.get(key, []))


def relation_of(key: str) -> str:
    """What statements call it."""
    return f"state_{key}"
