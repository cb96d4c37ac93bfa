"""What people see of the demonstration while it runs; in a file or a pipe, its news alone."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from jobs import show
from jobs.demonstration.look import Look

LINES = 14
"""Of news on the screen; all of it is printed when the view ends."""


@dataclass
class View:
    """The screen."""

    began: float = field(default_factory=monotonic)
    told: list[Text] = field(default_factory=list)
    quiet: bool = False
    """Whether a program reads what is printed."""
    _live: Live | None = None

    @contextmanager
    def open(self) -> Iterator["View"]:
        """Show what is handed to `update` until the end."""
        if self.quiet or not show.out.is_terminal:
            yield self
            return
        with Live(console=show.out, auto_refresh=False, transient=True) as self._live:
            yield self
        self._live = None
        for line in self.told:
            show.out.print(line, soft_wrap=True)

    def tell(self, what: str) -> None:
        """One more line of news."""
        seconds = int(monotonic() - self.began)
        line = Text.assemble((f"{seconds // 60}:{seconds % 60:02d}  ", "dim"), what)
        self.told.append(line)
        if self._live is None and not self.quiet:
            show.out.print(line, soft_wrap=True)

    def update(self, now: Look) -> None:
        """Draw the moment."""
        if self._live is not None:
            recent = deque(self.told, LINES)
            self._live.update(Group(*_job(now), Text(), *recent), refresh=True)


def _job(now: Look) -> Iterator[RenderableType]:
    if now.job is None:
        yield Text("the job starts", "dim")
        return
    found = now.job
    grid = Table.grid(padding=(0, 2))
    grid.add_row(Text("job", "dim"), Text(found["job"], "bold"), _batch(found))
    for query, plan in found["plans"].items():
        grid.add_row(Text("plan", "dim"), query, Text(plan, "bold cyan"))
    rates = ", ".join(f"{name} {rate or 0:,.0f}/s" for name, rate in found["rates"].items())
    grid.add_row(Text("streams", "dim"), "", rates)
    grid.add_row(Text("windows", "dim"), "", _windows(now))
    if found["migration"]:
        part = found["migration"]["part"] or 0
        moving = f"{found['migration']['phase']}, {100 * part:.0f} % of the step"
        grid.add_row(Text("migration", "dim"), "", Text(moving, "bold yellow"))
    yield grid


def _batch(found: Any) -> str:
    rows = sum(state["rows"] for state in found["states"])
    return f"batch {found['batch']}, {found['ms']:,.0f} ms, {rows:,} rows in state"


def _windows(now: Look) -> Text:
    """A mark for each window that has been validated."""
    marks = [("■", "green" if good else "red") for _, good in sorted((now.windows or {}).items())]
    return Text.assemble(*marks[-40:]) if marks else Text("none gathered yet", "dim")
