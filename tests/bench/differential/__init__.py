"""Random jobs beside a reference in plain Python: `midstream bench differential --seeds A..B`."""

import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from multiprocessing import get_context
from typing import Annotated

import typer

from jobs import show
from jobs.errors import InputError
from tests.bench.differential.check import SHARES, Outcome, check, zone

CHUNK = 5
"""How many seeds a process gets at a time."""


def differential(
    *,
    seeds: Annotated[str, typer.Option(help="The first and the last seed, as A..B.")] = "0..199",
    jobs: Annotated[
        int, typer.Option(min=1, help="How many processes share the work.")
    ] = os.cpu_count() or 1,
    engines: Annotated[
        str, typer.Option(help=f"Who computes, of {','.join(SHARES)}.")
    ] = "duckdb,spark-duckdb,verify",
    whole: Annotated[
        bool, typer.Option("--whole", help="Every seed on every engine, not on its turn alone.")
    ] = False,
    json: show.Json = False,
) -> int:
    """Run random jobs over random files, and compare all that comes out with plain Python."""
    chosen, who = _range(seeds), _engines(engines)
    began = time.perf_counter()
    outcomes: list[Outcome] = []
    with show.progress("comparing") as progress:
        for outcome in _outcomes(chosen, who, jobs, whole=whole):
            outcomes.append(outcome)
            progress(len(outcomes), len(chosen))
    figures = _figures(outcomes, round(time.perf_counter() - began, 1))
    if json:
        show.as_json(figures)
    else:
        _tell(outcomes, figures)
    return 1 if figures["failed"] else 0


def _range(text: str) -> range:
    match = re.fullmatch(r"(\d+)\.\.(\d+)", text)
    if match is None or int(match[1]) > int(match[2]):
        raise InputError(f"seeds are given as A..B, such as 0..199, not {text!r}", "--seeds")
    return range(int(match[1]), int(match[2]) + 1)


def _engines(text: str) -> tuple[str, ...]:
    """Those named, in the order in which one needs what another leaves."""
    named = set(text.split(","))
    if unknown := sorted(named - SHARES.keys()):
        raise InputError(f"there is no engine {unknown[0]!r}: {', '.join(SHARES)}", "--engines")
    if "verify" in named and "spark-duckdb" not in named:
        raise InputError("verify judges what spark-duckdb has left: name both", "--engines")
    return tuple(engine for engine in SHARES if engine in named)


def _outcomes(seeds: range, engines: Sequence[str], jobs: int, *, whole: bool) -> Iterator[Outcome]:
    """What became of each seed, one zone after another."""
    look = partial(check, engines=engines, whole=whole)
    for name, group in groupby(sorted(seeds, key=lambda seed: (zone(seed), seed)), key=zone):
        with _pool(jobs, name) as pool:
            yield from pool.map(look, group, chunksize=CHUNK)


@contextmanager
def _pool(jobs: int, name: str) -> Iterator[ProcessPoolExecutor]:
    """Processes in that zone; they are new, for a process learns its zone when it starts."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = name
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
        os.environ.pop("TZ")
        os.environ.update({} if before is None else {"TZ": before})


def _figures(outcomes: Sequence[Outcome], seconds: float) -> dict[str, object]:
    had = Counter(engine for outcome in outcomes for engine in outcome.engines)
    return {
        "seeds": len(outcomes),
        "failed": sorted(outcome.seed for outcome in outcomes if outcome.wrong),
        "refused": sorted(outcome.seed for outcome in outcomes if outcome.refused),
        "engines": {engine: had[engine] for engine in SHARES if had[engine]},
        "with_results": sum(outcome.results > 0 for outcome in outcomes),
        "results": sum(outcome.results for outcome in outcomes),
        "seconds": seconds,
    }


def _tell(outcomes: Sequence[Outcome], figures: dict[str, object]) -> None:
    for outcome in sorted(outcomes, key=lambda outcome: outcome.seed):
        if outcome.report:
            show.plain(outcome.report)
        if outcome.refused:
            show.plain(f"seed {outcome.seed} was refused: {outcome.refused}")
    failed = sum(bool(outcome.wrong) for outcome in outcomes)
    refused = sum(bool(outcome.refused) for outcome in outcomes)
    had = Counter(engine for outcome in outcomes for engine in outcome.engines)
    shares = ", ".join(f"{engine} {had[engine]:,}" for engine in SHARES if had[engine])
    show.plain(
        f"{len(outcomes)} seeds, {failed} failed, {refused} refused; seeds seen by {shares}; "
        f"{figures['with_results']} with results, {figures['results']:,} rows of them; "
        f"{figures['seconds']} s"
    )
