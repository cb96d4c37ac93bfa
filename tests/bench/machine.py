"""What processes have used so far, as Linux tells it: Spark's work is done by a child process."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def java() -> list[int]:
    """The Java machines that this process has started."""
    return [pid for pid in _below(os.getpid()) if _name(pid) == "java"]


def memory_mb(pid: int | str = "self") -> int:
    """What a process holds now, in MB; nothing once it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return 0
    (line,) = [line for line in lines if line.startswith("VmRSS:")] or ["VmRSS: 0 kB"]
    return int(line.split()[1]) // 1024


def cpu_seconds(pid: int | str = "self") -> float:
    """The CPU time that all threads of a process have taken."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _below(pid: int) -> Iterator[int]:
    """Threads and processes may end while one looks."""
    with suppress(FileNotFoundError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in _children(task):
                yield child
                yield from _below(child)


def _children(task: Path) -> list[int]:
    with suppress(FileNotFoundError, ProcessLookupError):
        return [int(child) for child in (task / "children").read_text(encoding="utf-8").split()]
    return []


def _name(pid: int) -> str:
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    return ""
