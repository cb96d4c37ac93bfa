"""`midstream doctor`: what this machine has, what is missing, and what to do about it."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from jobs import show


def doctor(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[JOB...]", help="Whose storages to look at.", show_default=False),
    ] = None,
    *,
    json: show.Json = False,
) -> int:
    """Check this machine: what is installed, what is missing, what to do."""
    from jobs.doctor import checks

    found = checks(storages=_storages(files or []))
    ok = all(check.ok for check in found)
    if json:
        show.as_json({"ok": ok, "checks": [vars(check) for check in found]})
        return 0 if ok else 1
    rows = [
        (_mark(ok=c.ok), c.name, f"{c.found}\n{c.advice}" if c.advice else c.found) for c in found
    ]
    show.table(("", "", ""), rows)
    if not ok:
        show.heading("Not everything is there: see the advice above.")
    return 0 if ok else 1


def _storages(files: list[Path]) -> list[Path]:
    if not files:
        return []
    from jobs import specs

    storages = [specs.load(file).storage for file in files]
    return [Path(storage) for storage in storages if "://" not in storage]


def _mark(*, ok: bool) -> Text:
    return Text("✓", "green") if ok else Text("✗", "bold red")
