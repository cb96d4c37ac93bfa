"""Migrations of a running job: silence, length, gain (Zhu 16).

The engine runs alone, without a streaming query around it, over generated batches as fast as it
can; states and output are durable.  Event time advances by ten seconds a batch.
"""

import os
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from jobs import show
from jobs.errors import InputError
from optimizer.migration import MIGRATIONS
from tests.bench.chain import Chain
from tests.bench.engines import check_engine
from tests.bench.migration.change import change
from tests.bench.migration.falling import falling
from tests.bench.migration.figures import draw
from tests.bench.migration.growth import growth, rates, windows
from tests.bench.migration.silence import silence
from tests.bench.migration.tables import table

PARTS = ("silence", "window", "rate", "time", "falling")


def migration(  # noqa: PLR0917  # typer reads options from parameters
    part: Annotated[str, typer.Option(help=f"{', '.join(PARTS)}; several by commas.")] = "silence",
    engine: Annotated[str, typer.Option(help="duckdb, spark or spark-duckdb.")] = "duckdb",
    streams: Annotated[int, typer.Option(min=3, max=4, help="How many are joined.")] = 4,
    rate: Annotated[int, typer.Option(help="Tuples per second and stream.")] = 2_000,
    window: Annotated[int, typer.Option(help="Seconds; that of all parts but window.")] = 30,
    windows_: Annotated[
        str, typer.Option("--windows", help="Part window: seconds, separated by commas.")
    ] = "10,20,30,40,50,60",
    rates_: Annotated[
        str, typer.Option("--rates", help="Part rate: tuples per second, separated by commas.")
    ] = "500,1000,1500,2000,2500,3000",
    lateness: Annotated[int, typer.Option(help="Seconds.")] = 5,
    runs: Annotated[int, typer.Option(min=1, help="Of a fill; the median counts.")] = 3,
    load: Annotated[
        float, typer.Option(min=0.1, max=1, help="Part silence: how busy the running plan is.")
    ] = 1.0,
    strategy: Annotated[str, typer.Option(help="Part time: how to migrate.")] = "background",
    every: Annotated[int, typer.Option(min=6, help="Part time: batches between changes.")] = 10,
    parts: Annotated[
        str, typer.Option(help="Part falling: to which parts of itself the rate falls.")
    ] = "1,3,10,30,100",
    figures: Annotated[
        Path | None, typer.Option(help="Draw the figures into this directory.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Migrate a running job: how long results are missing, how long it lasts, what is gained."""
    check_engine(engine)
    if strategy not in MIGRATIONS:
        raise InputError(f"there is no {strategy!r}: {', '.join(MIGRATIONS)}", "--strategy")
    chain = Chain(streams, window, rate)
    makers: Mapping[str, Callable[[], dict[str, Any]]] = {
        "silence": lambda: silence(chain, engine, lateness, runs, load),
        "window": lambda: growth(
            windows(chain, _numbers(windows_)), engine, lateness, runs, "window"
        ),
        "rate": lambda: growth(rates(chain, _numbers(rates_)), engine, lateness, runs, "rate"),
        "time": lambda: change(chain, engine, lateness, strategy, every),
        "falling": lambda: falling(chain, engine, lateness, _numbers(parts)),
    }
    chosen = part.split(",")
    if unknown := set(chosen) - set(PARTS):
        raise InputError(f"there is no part {min(unknown)!r}: {', '.join(PARTS)}", "--part")
    before = os.getloadavg()[0]
    made = {name: makers[name]() for name in chosen}
    report: dict[str, Any] = {
        "command": " ".join(["midstream bench migration", *sys.argv[3:]]),
        "versions": {name: version(name) for name in ("pyspark", "deltalake", "duckdb")},
        "chain": {"streams": streams, "window": window, "rate": rate, "lateness": lateness},
        "engine": engine,
        "parts": made,
        "load": [before, os.getloadavg()[0]],
    }
    if figures is not None:
        draw(report, figures)
    if json:
        show.as_json(report)
    else:
        _show(report)
    return 0 if all(map(_same, made.values())) else 1


def _numbers(text: str) -> list[int]:
    return [int(one) for one in text.split(",")]


def _same(part: dict[str, Any]) -> bool:
    """Whether every run that migrated put out what the one that did not has put out."""
    outcomes = [*part.get("strategies", {}).values(), *part.get("scenarios", {}).values()]
    for point in part.get("points", ()):
        outcomes += point.get("strategies", {}).values()
    return all(outcome["same_results"] for outcome in outcomes)


def _show(report: dict[str, Any]) -> None:
    for name, part in report["parts"].items():
        table(name, part)
    versions = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    load = " to ".join(f"{load:.1f}" for load in report["load"])
    show.plain(f"\n{report['command']}\n{versions}; the machine's load was {load}")
