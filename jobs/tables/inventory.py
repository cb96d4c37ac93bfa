"""What a storage must hold when a job goes on: all that its last batch left there, and no more.

A table that was deleted, put back from an older copy, or written by another copy of the storage
would cost results without a word: batches would count as written already, or states lack rows.
"""

from collections.abc import Iterable, Mapping

import pyarrow as pa

from jobs.errors import RefusedError
from jobs.tables.names import STATE
from jobs.tables.progress import Noted, Progress
from jobs.tables.store import Store


class InventoryError(RefusedError):
    """A table holds less than the job has noted, or more."""


def check(store: Store, progress: Progress, needed: Iterable[str]) -> None:
    """Refuse to go on with tables that are not those of the last batch."""
    needed = set(needed)
    for table in sorted(needed | set(store.tables())):
        _check_newest(store, table, progress.batch)
    for table, noted in sorted(progress.tables.items()):
        if table in needed and is_here(store, table, noted):
            _check_table(store, table, noted)


def is_here(store: Store, table: str, noted: Noted) -> bool:
    """Whether the job file still means the same place; results may go elsewhere from now on."""
    return store.outside(table) == noted.outside


def _check_newest(store: Store, table: str, done: int) -> None:
    newest = store.last_batch(table)
    if newest > done + 1:
        raise InventoryError(
            f"{store.where(table)} has batch {newest} already, and the storage says that batch "
            f"{done} was the last: the storage is older than this table, or another copy of it "
            "writes there; restore both as of one time, or give the job a new storage"
        )


def _check_table(store: Store, table: str, noted: Noted) -> None:
    where, version = store.where(table), store.version(table)
    if version < 0:
        raise _lost(where, f"is gone; it was at version {noted.version}")
    if version < noted.version or store.last_batch(table) < noted.batch:
        raise _lost(
            where, f"is older than the job: version {version}, where {noted.version} was written"
        )
    if table.startswith(STATE):
        _check_state(store, table, noted)


def _check_state(store: Store, table: str, noted: Noted) -> None:
    rows = store.rows_at(table, noted.version)
    if rows is not None and rows != noted.rows:
        raise _lost(store.where(table), f"has {rows:,} rows, where {noted.rows:,} were written")
    if damaged := store.damaged(table):
        first, *more = sorted(damaged)
        others = f" and {len(more)} more files" if more else ""
        raise _lost(store.where(table), f"has lost or damaged files: {first}{others}")


def check_sink(store: Store, table: str, made: pa.Schema) -> None:
    """Refuse to add results to a table of others that has other columns."""
    there, results = _columns(store.schema(table)), _columns(made)
    if there != results:
        raise InventoryError(
            f"{store.where(table)} is there already, with the columns {_listed(there)}; "
            f"these results have {_listed(results)}: give the query another sink"
        )


def _columns(schema: pa.Schema) -> dict[str, str]:
    """The type of each column; of decimals the scale, as each engine widens in its own way."""
    return {
        field.name: f"decimal of scale {field.type.scale}"
        if pa.types.is_decimal(field.type)
        else str(field.type)
        for field in schema
    }


def _listed(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def _lost(where: str, what: str) -> InventoryError:
    return InventoryError(
        f"{where} {what}: restore it, together with the whole storage as of one time, or give the "
        "job a new storage"
    )
