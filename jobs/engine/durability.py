"""What survives a power cut: files are brought to the disk, and what one has torn is taken back.

A name is as durable as its directory, so both are synced.  Of what was not synced in time, there
may be anything afterwards: nothing, an empty file, or half of one.
"""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from json import JSONDecodeError, loads
from pathlib import Path

_AT_ONCE = 8
"""Files synced side by side: the disk brings them home together."""


def sync(paths: Iterable[Path]) -> None:
    """Wait until files that are there, and the directories that name them, are on the disk."""
    files = {path for path in paths if path.exists()}
    if not files:
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(_sync, files))
        list(pool.map(_sync, {place for file in files for place in _directories(file)}))


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


# --- after a power cut ---------------------------------------------------------------------------


def mend(table: Path) -> list[Path]:
    """Take back the newest commit of a Delta table, and its checkpoint, if they are torn.

    Neither was promised to anybody: what has been synced is whole.
    """
    log = table / "_delta_log"
    torn = [path for path in _newest(log) if not _is_readable(path)]
    if any(path.suffix == ".parquet" for path in torn):
        torn.append(log / "_last_checkpoint")
    for path in torn:
        path.unlink(missing_ok=True)
    sync([log / "."] if torn else [])
    return torn


def _newest(log: Path) -> Iterator[Path]:
    """The newest entry of a log and its newest checkpoint."""
    for pattern in ("*.json", "*.checkpoint.parquet"):
        found = sorted(path for path in log.glob(pattern) if path.name.split(".")[0].isdigit())
        yield from found[-1:]


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
