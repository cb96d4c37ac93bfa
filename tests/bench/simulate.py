"""The deterministic simulator over a range of seeds: `midstream bench simulate --seeds A..B`."""

import os
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from time import perf_counter
from typing import Annotated

import typer

from jobs import show
from jobs.errors import InputError
from tests.simulation.case import Case, draw
from tests.simulation.report import report
from tests.simulation.run import goes_wrong, run
from tests.simulation.shrink import shrink

CHUNK = 8
"""How many seeds a process gets at a time."""


@dataclass(frozen=True)
class Failure:
    """A seed that failed, and all there is to know of it."""

    seed: int
    report: str


def simulate(
    *,
    seeds: Annotated[str, typer.Option(help="The first and the last seed, as A..B.")] = "0..299",
    jobs: Annotated[
        int, typer.Option(min=1, help="How many processes share the work.")
    ] = os.cpu_count() or 1,
    migrations: Annotated[
        bool, typer.Option("--migrations", help="Change plans while they run, too.")
    ] = False,
    json: show.Json = False,
) -> int:
    """Run random jobs under random crashes, and compare all that comes out with batch SQL."""
    chosen = _range(seeds)
    began = perf_counter()
    failures: list[Failure] = []
    with show.progress("simulating") as progress:
        for done, failure in enumerate(_failures(chosen, jobs, migrations=migrations), start=1):
            failures += [failure] if failure else []
            progress(done, len(chosen))
    figures = {
        "seeds": len(chosen),
        "failed": sorted(failure.seed for failure in failures),
        "schedules_per_minute": round(60 * len(chosen) / (perf_counter() - began)),
    }
    if json:
        show.as_json(figures)
    else:
        for failure in sorted(failures, key=lambda failure: failure.seed):
            show.plain(failure.report)
        show.plain(
            f"{figures['seeds']} seeds, {len(failures)} failed, "
            f"{figures['schedules_per_minute']} schedules a minute"
        )
    return 1 if failures else 0


def _range(text: str) -> range:
    match = re.fullmatch(r"(\d+)\.\.(\d+)", text)
    if match is None or int(match[1]) > int(match[2]):
        raise InputError(f"seeds are given as A..B, such as 0..299, not {text!r}", "--seeds")
    return range(int(match[1]), int(match[2]) + 1)


def _failures(seeds: range, jobs: int, *, migrations: bool) -> Iterator[Failure | None]:
    """What became of each seed, in order."""
    look = partial(check, migrations=migrations)
    if jobs == 1 or len(seeds) <= CHUNK:
        yield from map(look, seeds)
        return
    with processes(jobs) as pool:
        yield from pool.map(look, seeds, chunksize=CHUNK)


@contextmanager
def processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes of their own: DuckDB's threads do not survive a fork."""
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def check(seed: int, tries: int = 60, *, migrations: bool = False) -> Failure | None:
    """Run a seed; if it fails, make it smaller in so many tries, and tell."""
    case = draw(seed, migrations=migrations)
    if not run(case).differences:
        return None
    small = shrink(case, _fails, tries)
    return Failure(seed, report(small, run(small)))


def _fails(case: Case) -> bool:
    return goes_wrong(case)
