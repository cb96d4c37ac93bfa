"""Output rates: figures of the paper, heuristics on random queries, the contract, the engine."""

import os
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from jobs import show
from jobs.errors import InputError
from tests.bench.chain import Chain
from tests.bench.rate import contract, figures, measured, paper, queries, speed
from tests.bench.rate.tables import TABLES

PARTS = ("figure-1", "crossing", "complex", "queries", "contract", "measured", "speed")


def rate(  # noqa: PLR0917  # typer reads options from parameters
    part: Annotated[str, typer.Option(help=f"{', '.join(PARTS)}; several by commas.")] = ",".join(
        PARTS
    ),
    count: Annotated[int, typer.Option(help="Part queries: random queries.")] = 200,
    plans: Annotated[int, typer.Option(help="Part contract: random plans.")] = 100,
    runs: Annotated[
        int, typer.Option(help="Simulated runs of a plan; in queries, a quarter.")
    ] = 20,
    rate: Annotated[int, typer.Option(help="Part measured: tuples/s of each stream.")] = 2_000,
    batches: Annotated[int, typer.Option(help="Part measured: of 10 s, in all.")] = 36,
    svg: Annotated[Path | None, typer.Option(help="Draw figures into this directory.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Output rates: the paper's figures, heuristics on random queries, the contract, the engine."""
    chosen = part.split(",")
    if unknown := set(chosen) - set(PARTS):
        raise InputError(f"there is no part {min(unknown)!r}: {', '.join(PARTS)}", "--part")
    makers = {
        "figure-1": paper.figure_1,
        "crossing": lambda: paper.crossing(runs),
        "complex": paper.complex_plans,
        "queries": lambda: queries.queries(count, max(runs // 4, 1)),
        "contract": lambda: contract.contract(plans, runs),
        "measured": lambda: measured.measured(Chain(3, 30, rate), batches),
        "speed": speed.speed,
    }
    report: dict[str, Any] = {
        "command": " ".join(["midstream bench rate", *sys.argv[3:]]),
        "versions": {name: version(name) for name in ("midstream", "duckdb", "numba", "numpy")},
        "parts": {name: makers[name]() for name in chosen},
        "load": os.getloadavg()[0],
    }
    if svg is not None:
        _draw(svg, report["parts"], runs)
    if json:
        show.as_json(report)
    else:
        show.plain(report["command"])
        for name, found in report["parts"].items():
            show.heading(name)
            TABLES[name](found)
    return 0


def _draw(directory: Path, parts: Mapping[str, Any], runs: int) -> None:
    """The figures of the paper; those measured where that part was asked for."""
    figures.draw(directory, runs)
    if "measured" in parts:
        figures.measured(directory / "rate-measured.svg", parts["measured"])
