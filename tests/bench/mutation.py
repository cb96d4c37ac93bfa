"""Which planted bugs the simulator finds, and after how many seeds: `midstream bench mutation`."""

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from json import dumps, loads
from pathlib import Path
from typing import Annotated

import pytest
import typer

from jobs import show
from jobs.errors import InputError
from tests.bench.simulate import processes
from tests.simulation.bugs import BUGS
from tests.simulation.bugs.bug import FOUND, Bug

PAGE = Path("docs/simulation.md")
"""The documentation, in a checkout."""

BEGIN, END = "<!-- bugs -->\n", "\n<!-- /bugs -->"
"""What stands around its table."""


@dataclass(frozen=True)
class Search:
    """A bug, and how it was found."""

    name: str
    what: str
    where: str
    after: int | None
    """So many seeds, the first of them being 0; none if none of them has found it."""
    why: str

    @classmethod
    def of(cls, bug: Bug, seed: int | None) -> "Search":
        """A bug, and the first seed that finds it."""
        return cls(bug.name, bug.what, bug.where, None if seed is None else seed + 1, bug.why)


def mutation(
    *,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to try for each.")] = 300,
    only: Annotated[str, typer.Option(help="A part of the names of those to plant.")] = "",
    jobs: Annotated[
        int, typer.Option(min=1, help="How many processes share the work.")
    ] = os.cpu_count() or 1,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep what was found, in the tests and in the docs.")
    ] = False,
    json: show.Json = False,
) -> int:
    """Plant one bug after another in the engine, and say which seed finds it."""
    chosen = [at for at, bug in enumerate(BUGS) if only in bug.name]
    if not chosen:
        raise InputError(f"no bug is called {only}", "--only")
    found = []
    with show.progress("planting") as progress:
        for search in _searches(chosen, seeds, jobs):
            found.append(search)
            progress(len(found), len(chosen))
    if keep:
        _keep(found)
    if json:
        show.as_json([asdict(search) for search in found])
    else:
        show.plain(table(found))
    return 1 if any(search.after is None and not search.why for search in found) else 0


def _keep(searches: list[Search]) -> None:
    """Where tests begin to look, and the table in the documentation."""
    seeds = loads(FOUND.read_text(encoding="utf-8"))
    seeds |= {s.name: s.after - 1 for s in searches if s.after is not None}
    FOUND.write_text(dumps(dict(sorted(seeds.items())), indent=2) + "\n", encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}{table(known())}{END}{after}", encoding="utf-8")


def known() -> list[Search]:
    """What is known of bugs that have been looked for."""
    return [Search.of(bug, bug.seed) for bug in BUGS if bug.seed is not None or bug.why]


def table(searches: list[Search]) -> str:
    """As it stands in the documentation."""
    rows = [f"| {s.what} | {s.where} | {_outcome(s)} |" for s in searches]
    found = sum(search.after is not None for search in searches)
    return "\n".join(
        ["| bug | where | found after n seeds |", "| --- | --- | --- |", *rows, "",
         f"{found} of {len(searches)} found."]
    )  # fmt: skip


def _outcome(search: Search) -> str:
    if search.after is None:
        return f"not found: {search.why}" if search.why else "not found"
    return f"{search.after:,}"


def _searches(chosen: list[int], seeds: int, jobs: int) -> Iterator[Search]:
    look = partial(search, seeds=seeds)
    if jobs == 1 or len(chosen) == 1:
        yield from map(look, chosen)
        return
    with processes(jobs) as pool:
        yield from pool.map(look, chosen)


def search(at: int, seeds: int) -> Search:
    """Plant the bug of that number, and look for it."""
    bug: Bug = BUGS[at]
    with pytest.MonkeyPatch.context() as patch:
        bug.plant(patch)
        first = next((seed for seed in range(seeds) if bug.is_found_by(seed)), None)
    return Search.of(bug, first)
