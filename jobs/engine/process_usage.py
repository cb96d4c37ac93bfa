"""What a job's processes use, as Linux tells it: Spark's work is done by a child process."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")

LOOKS = 30
"""How often known processes are looked at before somebody looks for others: that takes longer."""


@dataclass(frozen=True)
class Usage:
    """What processes have used: CPU-seconds so far, bytes of memory now."""

    cpu: float
    memory: int


def meter() -> Callable[[], Usage]:
    """Measures this process and all below it; a tenth of a millisecond, and now and then a few."""
    known: list[int] = []
    looks = 0

    def measure() -> Usage:
        nonlocal known, looks
        if looks % LOOKS == 0:
            known = [os.getpid(), *below(os.getpid())]
        looks += 1
        used = [usage(pid) for pid in known]
        return Usage(sum(one.cpu for one in used), sum(one.memory for one in used))

    return measure


def usage(pid: int | str) -> Usage:
    """Of a process and of those of its children that have ended; nothing once it is gone."""
    with suppress(FileNotFoundError, ProcessLookupError):
        fields = _stat(pid)
        return Usage(sum(map(int, fields[11:15])) / _TICK, int(fields[21]) * _PAGE)
    return Usage(0.0, 0)


def java() -> list[int]:
    """The Java machines that this process has started."""
    return [pid for pid in below(os.getpid()) if _name(pid) == "java"]


def memory_mb(pid: int | str = "self") -> int:
    """What a process holds now, in MB; nothing once it is gone."""
    return usage(pid).memory // 2**20


def cpu_seconds(pid: int | str = "self") -> float:
    """The CPU time that all threads of a process have taken."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICK


def below(pid: int) -> Iterator[int]:
    """The processes that a process has started, and those that they have."""
    with suppress(FileNotFoundError):  # threads and processes may end while one looks
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in _children(task):
                yield child
                yield from below(child)


def _stat(pid: int | str) -> list[str]:
    """The fields behind the name, which may have blanks in it."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    return text.rpartition(")")[2].split()


def _children(task: Path) -> list[int]:
    with suppress(FileNotFoundError, ProcessLookupError):
        return [int(child) for child in (task / "children").read_text(encoding="utf-8").split()]
    return []


def _name(pid: int) -> str:
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    return ""
