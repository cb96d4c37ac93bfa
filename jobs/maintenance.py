"""Housekeeping of a job's tables, safe while the job runs: no row of it changes, and none is lost.

The job merges its own states and control tables between batches; what it replaced, or left behind
when it was killed, stays on the disk until it is removed here.  Results, late and rejected rows and
statistics are merged here as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import time_ns

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from jobs.deciding.decisions import DecisionLog
from jobs.deciding.library import PlanLibrary
from jobs.engine.microbatch import fingerprint
from jobs.specs import MICROSECOND, Job
from jobs.tables.damage import whole
from jobs.tables.names import result_table
from jobs.tables.paths import local
from stats.store import TABLES, TIME, StatsStore, load

OWN = ("state", "control")
"""Merged by the job itself."""

UNFINISHED_HOURS = 24
"""A file of the job's own tables that no commit knows is given up; a batch takes less long."""

MANY = 8
"""Files from which on merging is worth it."""


@dataclass(frozen=True)
class Tidied:
    """What was done to a table, or would be."""

    table: str
    files: int
    """How many it had."""
    merged: int = 0
    """How many of them are in fewer now."""
    forgotten: int = 0
    """Rows that were older than they are kept."""
    removed: int = 0
    """Files on the disk that no reader needs any more."""
    busy: str = ""
    """Why it has to wait for the next time."""


@dataclass(frozen=True)
class Place:
    """A table of a job's, and what may be done to it."""

    name: str
    path: Path
    merge: bool = True
    cutoff: int | None = None
    """Rows of windows that ended before are forgotten; in microseconds."""


def places(job: Job, now: int) -> Iterator[Place]:
    """All tables of a job that are there."""
    storage = local(job.storage)
    oldest = now - job.statistics.keep // MICROSECOND
    stats = StatsStore.of(storage).root
    known = {
        local(job.sink(query)): Place(result_table(query), local(job.sink(query)))
        for query in job.queries
    }
    for log in sorted(storage.glob("**/_delta_log")):
        path = log.parent
        name = str(path.relative_to(storage))
        cutoff = oldest if path.parent == stats and path.name in TABLES else None
        known.setdefault(path, Place(name, path, name.split("/", maxsplit=1)[0] not in OWN, cutoff))
    yield from (place for place in known.values() if DeltaTable.is_deltatable(str(place.path)))


def tidy(place: Place, *, dry_run: bool) -> Tidied:
    """One table: forget, merge, remove."""
    with whole(place.path):
        table = DeltaTable(place.path)
    files = len(table.file_uris())
    try:
        forgotten = _forget(table, place, dry_run=dry_run)
        merged = _merge(table, place, dry_run=dry_run)
        kept = UNFINISHED_HOURS if place.name.startswith(OWN) else None
        removed = len(table.vacuum(kept, dry_run, enforce_retention_duration=not kept, full=True))
        if not dry_run:
            table.cleanup_metadata()
    except CommitFailedError as error:
        return Tidied(place.name, files, busy=str(error).partition("\n")[0])
    return Tidied(place.name, files, merged, forgotten, removed)


def _forget(table: DeltaTable, place: Place, *, dry_run: bool) -> int:
    """Drop the rows of windows that ended too long ago."""
    if place.cutoff is None:
        return 0
    moment = f"arrow_cast({place.cutoff}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
    if dry_run:
        ends = load(table, pa.schema([("window_end", TIME)])).column(0)
        return sum(end.value < place.cutoff for end in ends)
    dropped: int = table.delete(f"window_end < {moment}")["num_deleted_rows"] or 0
    return dropped


def _merge(table: DeltaTable, place: Place, *, dry_run: bool) -> int:
    """Put small files into fewer, once there are many."""
    files = len(table.file_uris())
    if not place.merge or files < MANY:
        return 0
    if dry_run:
        return files
    return int(table.optimize.compact()["numFilesRemoved"])


def forget_plans(job: Job, *, dry_run: bool) -> int:
    """Take plans of queries that are no more, or mean something else now, out of the library."""
    log = DecisionLog.of(local(job.storage))
    keep = job.statistics.keep // MICROSECOND
    library = PlanLibrary(log.root, keep)
    means = {name: fingerprint(job.query(name)) for name in job.queries}
    with log.alone():
        gone = [
            entry
            for entry in library.entries()
            if means.get(entry.query) != entry.fingerprint or entry.used < _now() - keep
        ]
        for entry in gone if not dry_run else ():
            library.forget(entry)
    return len(gone)


def maintain(job: Job, *, dry_run: bool) -> tuple[list[Tidied], int]:
    """Everything; what was done to each table, and how many plans the library has lost."""
    found = [tidy(place, dry_run=dry_run) for place in places(job, _now())]
    return found, forget_plans(job, dry_run=dry_run)


def _now() -> int:
    return time_ns() // 1000
