"""Who may write to a job's storage: one process at a time, and nobody once it has ended.

The operating system gives up a lock when its holder ends, however it ends.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from io import TextIOWrapper
from json import JSONDecodeError, dumps, loads
from pathlib import Path
from time import sleep

from jobs.errors import RefusedError

_PATIENCE = 5
"""How often to ask again: someone who only looks holds the lock for a moment."""


@dataclass(frozen=True)
class Holder:
    """A process that runs a job."""

    pid: int
    since: str

    def __str__(self) -> str:
        return f"process {self.pid}, since {self.since}"


def private(directory: Path) -> None:
    """Make a directory, and what is missing above it, into which nobody else may look."""
    if not directory.is_dir():
        private(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)


class HeldError(RefusedError):
    """Another process runs the job."""


@contextmanager
def lease(storage: Path) -> Iterator[None]:
    """Hold a storage, or say who does."""
    private(storage)
    with _file(storage).open("a+", encoding="utf-8") as file:
        for _ in range(_PATIENCE):
            if _lock(file, fcntl.LOCK_EX):
                break
            sleep(0.1)
        else:
            raise HeldError(f"the job is running already: {_holder(_file(storage))}")
        file.truncate(0)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        file.write(dumps({"pid": os.getpid(), "since": since}))
        file.flush()
        yield


def holder(storage: Path) -> Holder | None:
    """Who holds a storage now, without getting into anyone's way."""
    path = _file(storage)
    if not path.exists():
        return None
    with path.open(encoding="utf-8") as file:
        return None if _lock(file, fcntl.LOCK_SH) else _holder(path)


def _file(storage: Path) -> Path:
    return storage / "lease.json"


def _lock(file: TextIOWrapper, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(path: Path) -> Holder:
    try:
        content = loads(path.read_text(encoding="utf-8"))
        return Holder(content["pid"], content["since"])
    except (JSONDecodeError, UnicodeDecodeError, LookupError, TypeError):
        return Holder(0, "just now")
