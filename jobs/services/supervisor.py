"""Keeps the components running: starts again what dies, ends all of them, leaves none behind.

A process of its own, which `midstream up` starts and `midstream down` ends.  Whatever a component
leaves behind when it dies becomes a child of this process, and is ended.  Should this process
itself be killed, the kernel tells the components to end.
"""

import ctypes
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Container, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from jobs.services.components import Component, components, migrate_database
from jobs.services.home import Home
from jobs.tables.lease import lease

TICK = 0.2
"""Seconds between two looks."""
PATIENCE = 12.0
"""Seconds that a component has to end by itself."""
MANNERS = 3.0
"""Seconds that what a component has left behind has."""
STEADY = 60.0
"""Seconds after which a component that had died counts as well again."""
LONGEST = 60.0
"""Seconds to wait at most before something that keeps dying is started again."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


@dataclass
class Child:
    """A component, and the process that is it just now."""

    component: Component
    process: subprocess.Popen[bytes] | None = None
    since: float = 0.0
    """When it was started, or died."""
    restarts: int = 0
    failures: int = 0
    """How often in a row it has died soon after its start."""
    last: str = ""
    """How it ended last time."""

    @property
    def due(self) -> bool:
        """Whether it is to be started now."""
        over = monotonic() >= self.since + self.pause
        return self.process is None and over and self.component.awaited

    @property
    def pause(self) -> float:
        """Longer each time, so that what cannot start does not keep the machine busy."""
        return 0.0 if self.failures == 0 else min(LONGEST, 2.0 ** (self.failures - 1))

    def start(self, log: Path) -> None:
        """Start it, in a session of its own."""
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                self.component.command, env=dict(self.component.environment),
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_parent,  # noqa: PLW1509  # this process has one thread
            )  # fmt: skip
        self.since = monotonic()

    def died(self, status: int) -> None:
        """Note how, and when to try again."""
        code = os.waitstatus_to_exitcode(status)
        self.last = f"exit code {code}" if code >= 0 else f"{signal.Signals(-code).name}"
        self.failures = 1 if monotonic() - self.since > STEADY else self.failures + 1
        self.process, self.since = None, monotonic()
        self.restarts += 1

    def to_json(self) -> dict[str, Any]:
        """As `up --status` reads it."""
        return {
            "name": self.component.name,
            "pid": self.process.pid if self.process else None,
            "restarts": self.restarts,
            "last": self.last,
        }


def _end_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


@dataclass
class Supervisor:
    """All components, from the first start to the last end."""

    home: Home
    children: list[Child]
    stopping: bool = False
    _noted: list[dict[str, Any]] = field(default_factory=list)
    _left: dict[int, float] = field(default_factory=dict)
    """Processes whose component has died, and since when that is known."""

    def run(self) -> None:
        """Keep them running until told to stop."""
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        try:
            while not self.stopping:
                self._start()
                sleep(TICK)
                self._bury()
                self._note()
        finally:
            self._end()

    def _stop(self, _number: int, _frame: object) -> None:
        self.stopping = True

    def _start(self) -> None:
        for child in self.children:
            if child.due:
                child.start(self.home.log(child.component.name))
                say(f"{child.component.name} started: process {_pid(child)}")

    def _bury(self) -> None:
        """Take note of who has died, and end what they have left behind."""
        known = {_pid(child): child for child in self.children if child.process}
        for pid, status in _dead():
            if child := known.pop(pid, None):
                child.died(status)
                say(f"{child.component.name} ended ({child.last}), again in {child.pause:.0f} s")
        self._clear(known)

    def _clear(self, known: Container[int]) -> None:
        """End what nobody looks after any more: asked at first, then without asking."""
        now, left = monotonic(), [pid for pid in below(os.getpid(), deep=False) if pid not in known]
        self._left = {pid: self._left.get(pid, now) for pid in left}
        for pid, since in self._left.items():
            asked = now - since < MANNERS
            kill([pid, *below(pid)], signal.SIGTERM if asked else signal.SIGKILL)

    def _note(self) -> None:
        found = [child.to_json() for child in self.children]
        if found != self._noted:
            self.home.note(found)
            self._noted = found

    def _end(self) -> None:
        """Ask all of them, and end those who do not listen."""
        say("ending")
        names = {_pid(child): child.component.name for child in self.children if child.process}
        kill(list(names), signal.SIGTERM)
        until = monotonic() + PATIENCE
        while left := below(os.getpid()):
            if monotonic() > until:
                kill(left, signal.SIGKILL)
            for pid, _ in _dead():
                say(f"{names.get(pid, 'what was left behind')} ended: process {pid}")
            self._clear(names)
            sleep(TICK / 4)
        self.home.note([])
        say("ended")


def _pid(child: Child) -> int:
    assert child.process is not None
    return child.process.pid


def _dead() -> Iterator[tuple[int, int]]:
    """Those who have ended since the last look, whether this process started them or not."""
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            yield found


def below(pid: int, *, deep: bool = True) -> list[int]:
    """The children of a process and, if that is wanted, theirs."""
    with suppress(OSError):
        lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
        children = [int(child) for text in lists for child in text.split()]
        return children + [p for child in children if deep for p in below(child)]
    return []


def kill(pids: Sequence[int], number: signal.Signals) -> None:
    """Send a signal to those who are still there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def say(text: str) -> None:
    """A line of the supervisor's log."""
    sys.stdout.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {text}\n")
    sys.stdout.flush()


def prepare(home: Home) -> None:
    """Airflow's database as its version wants it, and so that its processes do not wait in line."""
    mark = home.airflow / "migrated"
    if not mark.exists() or mark.read_text() != version("apache-airflow"):
        _migrate(home)
        mark.write_text(version("apache-airflow"))
    write_ahead(home.database)


def _migrate(home: Home) -> None:
    say("making Airflow's database")
    step = migrate_database(home)
    with home.log(step.name).open("ab") as output:
        subprocess.run(
            step.command, env=dict(step.environment), stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, check=True, preexec_fn=_end_with_parent,
        )  # fmt: skip


def write_ahead(database: Path) -> None:
    """Whoever reads keeps nobody from writing from now on: SQLite remembers it in the file."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")


def main(root: Path) -> None:
    """Supervise what the settings of a home say."""
    home = Home(root)
    with lease(home.root):
        home.note([])
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        prepare(home)
        Supervisor(home, [Child(component) for component in components(home)]).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
