"""Small files become fewer between two batches, so that a job of weeks is as quick as a new one.

Every batch adds files to each table.  A commit takes longer the more files its table has, and a
join that reads a state opens each of them.  What is merged holds the same rows, in one commit:
killed anywhere, a job finds either the old files or the new one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

from jobs.engine.microbatch import Engine
from jobs.tables.names import DECISIONS, PROGRESS
from jobs.tables.partitions import SMALL
from jobs.tables.store import DataFile, Store


@dataclass(frozen=True)
class Limits:
    """How many small files may lie about."""

    files: int = 16
    """Alike, of a partition of a state; so many times that as `overdue` says without time."""
    overdue: int = 4
    small: int = SMALL
    """Rows; files with fewer are merged with any others of their partition."""
    replaced: int = 64
    """Batches for which files that are no part of a state any more stay, for those who read it."""
    batches: int = 256
    """How often the control tables are looked at."""
    recent: int = 16
    """Of a control table, the newest: whoever wants the last few batches reads only these."""


def tidy(engine: Engine, time_left: Callable[[], bool], limits: Limits | None = None) -> None:
    """After a batch, merge files, as long as there is time; without, what is overdue."""
    limits = limits or Limits()
    if (engine.progress.batch + 1) % limits.batches == 0:
        for table in (DECISIONS, PROGRESS):
            _shorten(engine.store, table, limits)
    engine.sweep(limits.replaced)
    for _ in engine.program.operators:
        spare = time_left()
        most = limits.files * (1 if spare else limits.overdue)
        if not engine.compact(most, closed=spare, small=limits.small):
            break


def _shorten(store: Store, table: str, limits: Limits) -> None:
    """Merge files of a control table that have about as many rows; the last name stays the last."""
    tiers: dict[int, list[DataFile]] = {}
    for file in sorted(store.files(table), key=lambda file: file.path)[: -limits.recent]:
        tiers.setdefault(_tier(file.rows, limits.batches), []).append(file)
    for files in tiers.values():
        if len(files) > limits.batches // 2:
            store.merge(table, files, name=f"{PurePath(files[-1].path).stem}-")


def _tier(rows: int, size: int) -> int:
    """How often a file has been merged from so many: no row is written again and again."""
    tier = 0
    while rows >= size:
        rows //= size
        tier += 1
    return tier
