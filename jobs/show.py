"""What people see in a terminal, and what programs read instead of it."""

import json as json_text
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from jobs.errors import InputError, MidstreamError

_UNSHOWN = re.compile(r"[^\n\t -~\u00a0-\u2029\u202f-\u2065\u206a-\ud7ff\ue000-\U0010ffff]")
"""What a terminal obeys instead of showing it, what turns a line round, and half a character."""


class Terminal(Console):
    """Shows text that others have written, such as reasons and paths, and never obeys it."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """What is shown, bit by bit."""
        for one in super().render(renderable, options):
            yield one if one.control else Segment(_UNSHOWN.sub("\ufffd", one.text), one.style)

    def on_broken_pipe(self) -> None:
        """Who read this does so no more: an error like any other."""
        raise  # noqa: PLE0704  # called where it is handled


def silence() -> None:
    """Have what is still written to standard output go nowhere: nobody reads it any more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


out = Terminal(highlight=False)
"""What was asked for."""
err = Terminal(stderr=True, highlight=False)
"""Everything else: errors, progress, where files went."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
"""The option that every command has."""


def as_json(data: Any) -> None:
    """One JSON document, and nothing else, on standard output."""
    try:
        text = json_text.dumps(data, indent=2, allow_nan=False)
    except ValueError:
        raise InputError("figures are beyond any number: lower rates, widths or windows") from None
    typer.echo(text)


def is_asked() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty() and out.is_terminal


def error(problem: MidstreamError, *, json: bool) -> None:
    """What is wrong, where, and what to do."""
    if json:
        as_json(problem.as_json)
        return
    for one in problem.problems:
        line = Text.assemble(("midstream: ", "bold red"), str(one))
        err.print(line, soft_wrap=True)
        if one.detail:
            err.print(Text(one.detail), soft_wrap=True)


def heading(text: str) -> None:
    """A line that begins something new."""
    out.print()
    out.print(Text(text, "bold"))


def plain(text: str) -> None:
    """Text as it is, lines longer than the terminal included."""
    out.print(Text(text.rstrip("\n")), soft_wrap=True)


def tree(text: str) -> None:
    """A plan; on a terminal, lines are cut at its edge rather than wrapped."""
    for line in text.rstrip("\n").split("\n"):
        style = "bold" if line.endswith("heaviest") else ""
        if out.is_terminal:
            out.print(Text(line, style), no_wrap=True, overflow="ellipsis")
        else:
            out.print(Text(line), soft_wrap=True)


def note(text: str) -> None:
    """Something that matters less."""
    out.print(Text(text, "dim"), soft_wrap=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]], *, right: str = "") -> None:
    """A table without lines; the columns named in `right` hold figures, the others may wrap."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    figures = right.split()
    for name in columns:
        if name in figures:
            shown.add_column(name, justify="right", no_wrap=True)
        else:
            shown.add_column(name, overflow="fold")
    for row in rows:
        shown.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    out.print(shown)


@contextmanager
def progress(text: str) -> Iterator[Callable[[int, int], None]]:
    """A sign of life while something takes long, and how far it is; nothing where no one looks."""
    if not err.is_terminal:
        yield lambda _done, _total: None
        return
    with err.status(Text(text), spinner="dots") as status:
        yield lambda done, total: status.update(Text(f"{text}: {done:,} of {total:,}"))
