"""What survives a power cut: files are brought to the disk, and what one has torn is taken back.

A name is as durable as its directory, so both are synced.  Of what was not synced in time, there
may be anything afterwards: nothing, an empty file, or half of one.
"""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from json import JSONDecodeError, loads
from pathlib import Path

from jobs.tables.damage import whole

_AT_ONCE = 8
"""Files synced side by side: the disk brings them home together."""


def sync(paths: Iterable[Path]) -> None:
    """Wait until files that are there, and the directories that name them, are on the disk."""
    if found := {path for path in paths if path.exists()}:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(_sync, found))
            list(pool.map(_sync, {place for path in found for place in _directories(path)}))


def replace(path: Path, text: str) -> None:
    """Write a small file so that there is never half of it, also after a power cut."""
    draft = path.with_suffix(".draft")
    draft.write_text(text, encoding="utf-8")
    sync([draft])
    draft.replace(path)
    sync([path])


def _directories(file: Path) -> Iterator[Path]:
    """Those that may be new: a partition's, its table's, and the one that the table is in."""
    yield from list(file.parents)[:3]


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def unsynced(table: Path) -> list[Path]:
    """The newest parts of a Delta table's log, which may not be on the disk yet."""
    log = table / "_delta_log"
    entries, checkpoints = _numbered(log, ".json"), _numbered(log, ".checkpoint.parquet")
    return [*entries[-_UNSYNCED:], *checkpoints[-1:], log / "_last_checkpoint"]


# --- after a power cut ---------------------------------------------------------------------------


def mend(table: Path, promised: int = -1) -> list[Path]:
    """Take back the newest commits of a Delta table, and its checkpoint, if they are torn.

    Up to the `promised` version all was synced: what is wrong there, somebody has to put right. An
    empty entry is named here, for whoever reads the table takes it for one without rows.
    What is taken back is put aside under another name, in case that is what has happened here.
    """
    log = table / "_delta_log"
    entries, checkpoints = _numbered(log, ".json"), _numbered(log, ".checkpoint.parquet")
    torn = [path for path in checkpoints if not _is_readable(path)]
    if torn:
        torn.append(log / "_last_checkpoint")
    recent = entries[-_UNSYNCED:]
    whole_log = recent == entries and not checkpoints
    first = 0 if whole_log or not recent else int(recent[0].stem)
    for entry in _from_first_torn(recent, first):
        if int(entry.stem) > promised:
            torn.append(entry)
        elif not _is_readable(entry):
            with whole(entry):
                raise ValueError("it is empty or torn")
    for path in torn:
        if path.exists():
            path.rename(path.with_name(f"{path.name}.torn"))
    sync([log] if torn else [])
    return torn


_UNSYNCED = 16
"""So many commits of a table are synced together, at the very most."""


def _numbered(log: Path, kind: str) -> list[Path]:
    """The files of a log that are about a version, the oldest first."""
    found = (path for path in log.glob(f"*{kind}") if path.name.removesuffix(kind).isdigit())
    return sorted(found)


def _from_first_torn(entries: list[Path], first: int) -> list[Path]:
    """What follows a commit that is torn or gone is no part of the table either."""
    for at, entry in enumerate(entries):
        if int(entry.stem) != first + at or not _is_readable(entry):
            return entries[at:]
    return []


def _is_readable(path: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if path.suffix == ".parquet":
            pq.read_metadata(path)
            return True
        lines = path.read_text(encoding="utf-8").splitlines()
        return bool(lines) and all(map(loads, lines))
    except (pa.ArrowInvalid, JSONDecodeError, UnicodeDecodeError):
        return False
