"""Bugs of states: their retention, their tables, and the copies that executors read."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from jobs.backends.duckdb import backend
from jobs.backends.duckdb.backend import DuckBackend
from jobs.backends.duckdb.segments import StateSegments, _Segment
from jobs.engine import lower, microbatch, statements
from jobs.engine.microbatch import Engine
from jobs.engine.migration import rebuild
from jobs.engine.states import States
from jobs.tables import inventory, memory_store, partitions
from jobs.tables.columns import UNTIL
from jobs.tables.memory_store import MemoryStore
from jobs.tables.partitions import Partitioning
from jobs.tables.store import WRITER, DataFile
from tests.simulation.faults import FaultyStore


def _retained(patch: pytest.MonkeyPatch, change: Callable[[int], int]) -> None:
    lowered = lower.lower

    def forgetful(*arguments: Any) -> lower.Program:
        program = lowered(*arguments)
        operators = (replace(o, retention=change(o.retention)) for o in program.operators)
        return replace(program, operators=tuple(operators))

    patch.setattr(microbatch, "lower", forgetful)


def purged_too_early(patch: pytest.MonkeyPatch) -> None:
    """Rows are kept for half of the time."""
    _retained(patch, lambda kept: kept // 2)


def retention_is_a_microsecond_short(patch: pytest.MonkeyPatch) -> None:
    """Rows are kept a microsecond less than they may find partners."""
    _retained(patch, lambda kept: kept - 1)


def purged_a_microsecond_early(patch: pytest.MonkeyPatch) -> None:
    """A partition goes when its last rows may just find partners."""
    real = States.purge

    def purge(self: States, key: str, cutoff: int, **options: Any) -> None:
        real(self, key, cutoff + 1, **options)

    patch.setattr(States, "purge", purge)


def never_purged(patch: pytest.MonkeyPatch) -> None:
    """States grow for ever."""
    patch.setattr(States, "purge", lambda *_, **__: None)


def rows_are_younger_than_they_say(patch: pytest.MonkeyPatch) -> None:
    """A row is overdue by its own time, and not just after it."""
    real = statements.with_until

    def early(rows: str, time: str) -> str:
        return real(rows, f"{time} - 1")

    patch.setattr(lower, "with_until", early)
    patch.setattr(rebuild, "with_until", early)


def a_partition_ends_where_it_begins(patch: pytest.MonkeyPatch) -> None:
    """A file is as old as the first cell of its rows."""
    real = partitions.parted

    def early(rows: Any, by: Partitioning) -> Any:
        for _, own in real(rows, by):
            yield int(own.column(UNTIL).to_numpy().min()), own

    patch.setattr(partitions, "parted", early)


def what_is_just_needed_is_not_written(patch: pytest.MonkeyPatch) -> None:
    """Rows are left out of a file that the next batch may just need."""
    real = partitions.parted

    def early(rows: Any, by: Partitioning) -> Any:
        cutoff = None if by.cutoff is None else by.cutoff + 1
        for until, own in real(rows, replace(by, cutoff=cutoff)):
            yield (by.cutoff if until == cutoff else until), own

    patch.setattr(partitions, "parted", early)


def any_time_decides(patch: pytest.MonkeyPatch) -> None:
    """A joined row is kept by its first input's time, not by its oldest."""
    real = statements.least
    patch.setattr(lower, "least", lambda columns: real(columns[:1]))


# --- executors -----------------------------------------------------------------------------------


def _opens(patch: pytest.MonkeyPatch, more: int) -> None:
    real = DuckBackend.open

    def opened(self: DuckBackend, state: str, kept: Any, table: str, before: int) -> None:
        real(self, state, kept, table, before + more)

    patch.setattr(DuckBackend, "open", opened)


def a_batch_sees_itself(patch: pytest.MonkeyPatch) -> None:
    """States are read up to the current batch, not strictly before it."""
    _opens(patch, 1)


def a_restart_forgets_the_last_batch(patch: pytest.MonkeyPatch) -> None:
    """What the last batch brought is not read again."""
    _opens(patch, -1)


def tables_go_too_early(patch: pytest.MonkeyPatch) -> None:
    """A table of the copy is dropped once any of its rows is overdue."""
    real = StateSegments.purge

    def purge(self: StateSegments, cutoff: int) -> None:
        self._segments = [
            replace(s, youngest=cutoff) if s.oldest <= cutoff else s for s in self._segments
        ]
        real(self, cutoff)

    patch.setattr(StateSegments, "purge", purge)


def what_is_overdue_is_read(patch: pytest.MonkeyPatch) -> None:
    """The copy shows the rows of a table that are overdue."""
    patch.setattr(_Segment, "after", lambda self, _: self)


def a_merge_of_the_copy_forgets_a_table(patch: pytest.MonkeyPatch) -> None:
    """The rows of one batch are gone when many tables become one."""

    def merge(self: StateSegments) -> None:
        if len(alike := self.alike) >= self.few:
            self._merge([segment.rows for segment in alike[1:]], alike[0].size + 1)
            self._drop(alike)

    patch.setattr(StateSegments, "merge", merge)


def rows_say_a_later_batch(patch: pytest.MonkeyPatch) -> None:
    """What a batch brings says that the next one brought it."""
    real = DuckBackend._write

    def write(
        self: Any, rows: Any, kept: Any, table: str, batch: int | None, by: Any
    ) -> list[DataFile]:
        return real(self, rows, kept, table, None if batch is None else batch + 1, by)

    patch.setattr(DuckBackend, "_write", write)


def a_partition_is_not_written(patch: pytest.MonkeyPatch) -> None:
    """Of several partitions, the last is not in the table."""
    real = partitions.put_partitions

    def put(*arguments: Any, **options: Any) -> list[DataFile]:
        files = real(*arguments, **options)
        return files[:-1] if len(files) > 1 else files

    patch.setattr(backend, "put_partitions", put)


# --- stores --------------------------------------------------------------------------------------


def writes_are_repeated(patch: pytest.MonkeyPatch) -> None:
    """A table does not know which batches it has."""
    known = MemoryStore.last_batch
    patch.setattr(
        MemoryStore,
        "last_batch",
        lambda store, table, *writer: (
            known(store, table, *writer) if table.startswith("control/") else -1
        ),
    )


def what_is_written_is_there(patch: pytest.MonkeyPatch) -> None:
    """A file is part of its table before any commit."""
    put = MemoryStore.put

    def seen(self: MemoryStore, table: str, *rest: Any, **options: Any) -> DataFile:
        file = put(self, table, *rest, **options)
        self._tables[table].files.append(file)
        return file

    patch.setattr(MemoryStore, "put", seen)


def what_is_dropped_stays(patch: pytest.MonkeyPatch) -> None:
    """A commit does not remove what it says is gone."""
    commit = MemoryStore.commit

    def kept(self: MemoryStore, *given: Any, gone: Sequence[DataFile] = (), **options: Any) -> None:
        commit(self, *given[:4], **options)

    patch.setattr(MemoryStore, "commit", kept)


def a_merged_file_stays(patch: pytest.MonkeyPatch) -> None:
    """Rows of a merged file are there twice."""
    real = MemoryStore.merge

    def merge(store: MemoryStore, table: str, files: Sequence[DataFile], name: str = "") -> None:
        real(store, table, files, name)
        store._tables[table].files.append(files[0])

    patch.setattr(MemoryStore, "merge", merge)


def a_merge_loses_a_file(patch: pytest.MonkeyPatch) -> None:
    """Of the files that are merged, one is not in the new one."""
    read = MemoryStore.read
    real = MemoryStore.merge

    def merge(store: MemoryStore, table: str, files: Sequence[DataFile], name: str = "") -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(MemoryStore, "read", lambda s, t, f: read(s, t, f[1:]))
            real(store, table, files, name)

    patch.setattr(MemoryStore, "merge", merge)


def a_merged_file_goes_with_its_oldest(patch: pytest.MonkeyPatch) -> None:
    """A merged file is given up when the oldest of those that it was is overdue."""
    patch.setattr(
        memory_store, "latest_until", lambda files: min(file.until or 0 for file in files)
    )


# --- what a storage must hold --------------------------------------------------------------------


def lost_tables_are_not_noticed(patch: pytest.MonkeyPatch) -> None:
    """A job goes on whatever has become of its tables."""
    patch.setattr(microbatch, "check", lambda *_: None)


def lost_rows_are_not_noticed(patch: pytest.MonkeyPatch) -> None:
    """Of a state, only its version is looked at."""
    patch.setattr(inventory, "_check_state", lambda *_: None)


def an_old_storage_is_not_noticed(patch: pytest.MonkeyPatch) -> None:
    """A job goes on beside results that are newer than it knows."""
    patch.setattr(inventory, "_check_newest", lambda *_: None)


def all_writers_are_one(patch: pytest.MonkeyPatch) -> None:
    """What another job has written under a number counts as written."""
    known, commit = MemoryStore.last_batch, MemoryStore.commit

    def last_batch(self: MemoryStore, table: str, writer: str = "") -> int:
        return known(self, table, writer or WRITER)

    def committed(
        self: MemoryStore, table: str, files: Any, batch: int, writer: str = "", gone: Any = ()
    ) -> int:
        return commit(self, table, files, batch, writer or WRITER, gone)

    patch.setattr(MemoryStore, "last_batch", last_batch)
    patch.setattr(MemoryStore, "commit", committed)


def _syncs(patch: pytest.MonkeyPatch, method: str) -> None:
    """Have a part of a batch bring nothing to the disk."""
    real = getattr(Engine, method)

    def hasty(self: Engine, *arguments: Any) -> Any:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(type(self.store), "sync", lambda _: None)
            return real(self, *arguments)

    patch.setattr(Engine, method, hasty)


def progress_comes_before_its_tables(patch: pytest.MonkeyPatch) -> None:
    """A batch is done on the disk, and what it wrote is not there yet."""
    _syncs(patch, "_settle")


def what_was_committed_and_not_synced_stays_so(patch: pytest.MonkeyPatch) -> None:
    """A process goes on from what a killed one had committed, which a power cut may take back."""
    patch.setattr(FaultyStore, "settle", lambda _: None)


def tables_come_before_their_decision(patch: pytest.MonkeyPatch) -> None:
    """What a batch wrote is on the disk, and what it has decided is not."""
    _syncs(patch, "_note")
