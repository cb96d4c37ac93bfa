"""Decisions while rates and selectivities change: what was decided when, and what it was worth."""

import os
import sys
from importlib.metadata import version
from typing import Annotated, Any

import typer

from jobs import show
from jobs.errors import InputError
from optimizer.drift import Policy
from tests.bench.chain import Chain
from tests.bench.drift.engine import step
from tests.bench.drift.scenarios import SCENARIOS
from tests.bench.drift.simulated import Simulation
from tests.bench.drift.speed import speed

PARTS = ("simulated", "engine", "speed")


def drift(  # noqa: PLR0917  # typer reads options from parameters
    part: Annotated[str, typer.Option(help=f"{', '.join(PARTS)}; several by commas.")] = ",".join(
        PARTS
    ),
    windows: Annotated[int, typer.Option(help="Part simulated: of a minute each.")] = 120,
    rate: Annotated[int, typer.Option(help="Tuples per second and stream.")] = 2_000,
    batches: Annotated[int, typer.Option(help="Part engine: in all.")] = 36,
    streams: Annotated[int, typer.Option(help="Part speed: how many are joined.")] = 10,
    runs: Annotated[int, typer.Option(help="Part speed: the median counts.")] = 5,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Decisions under changing streams: when they come, how much work they save, how fast."""
    chosen = part.split(",")
    if unknown := set(chosen) - set(PARTS):
        raise InputError(f"there is no part {min(unknown)!r}: {', '.join(PARTS)}", "--part")
    makers = {
        "simulated": lambda: simulated(windows, rate),
        "engine": lambda: step(Chain(3, 30, rate), batches, batches // 3),
        "speed": lambda: speed(streams, runs),
    }
    before = os.getloadavg()[0]
    made = {name: makers[name]() for name in chosen}
    report = {
        "command": " ".join(["midstream bench drift", *sys.argv[3:]]),
        "versions": {name: version(name) for name in ("deltalake", "duckdb")},
        "parts": made,
        "load": [before, os.getloadavg()[0]],
    }
    if json:
        show.as_json(report)
    else:
        _show(report)
    return 0


def simulated(windows: int, rate: int) -> dict[str, Any]:
    """Every scenario over four streams, by the defaults of a job file."""
    chain = Chain(4, 30, rate)
    return {
        name: Simulation(chain, scenario, windows, Policy()).run()
        for name, scenario in SCENARIOS.items()
    }


def _show(report: dict[str, Any]) -> None:
    show.plain(report["command"])
    tables = {"simulated": _simulated, "engine": _engine, "speed": _speed}
    for name, part in report["parts"].items():
        show.heading(name)
        tables[name](part)
    show.note(f"load {report['load'][0]:.1f} before, {report['load'][1]:.1f} after")


def _simulated(part: dict[str, Any]) -> None:
    show.table(
        ("scenario", "migrations after window", "blocked", "never", "decided", "clairvoyant"),
        [
            (
                name,
                ", ".join(str(one["window"]) for one in found["migrations"]) or "none",
                str(found["outcomes"].get("blocked", 0)),
                *(f"{found[work]:,.1f}" for work in ("never", "work", "clairvoyant")),
            )
            for name, found in part.items()
        ],
        right="blocked never decided clairvoyant",
    )
    show.plain("CPU-seconds in all, migrations included; windows of a minute")


def _engine(part: dict[str, Any]) -> None:
    show.plain(f"selectivities are reversed before batch {part['step']} of {part['batches']}")
    show.table(
        (
            "",
            "cut-over before batch",
            "plan in the end",
            "CPU-s from the step on",
            "CPU-ms a batch",
        ),
        [
            (
                policy,
                ", ".join(map(str, part["cut_overs"][policy])) or "none",
                part["plans"][policy],
                f"{cpu:.2f}",
                f"{1000 * part['cpu_per_batch'][policy]:.0f}",
            )
            for policy, cpu in part["cpu_after_step"].items()
        ],
    )
    same = "the same" if part["same_results"] else "NOT THE SAME"
    show.plain(f"{part['results']:,} results, {same} in all three")
    for one in part["decided"]:
        to = f" to {one['to']}" if one["to"] else ""
        show.plain(f"after batch {one['batch']:>3}: {one['outcome']}{to}: {one['reason']}")


def _speed(part: dict[str, Any]) -> None:
    show.table(
        ("", "seconds", "CPU-seconds"),
        [
            (
                what,
                f"{part[f'{kind}_seconds']:.2f}",
                f"{part[f'{kind}_cpu_seconds']:.2f}",
            )
            for what, kind in (
                ("a decision, in a warm process", "decision"),
                ("midstream reoptimize --dry-run", "command"),
            )
        ],
        right="seconds CPU-seconds",
    )
    show.plain(f"{part['streams']} streams in a row, {part['outcome']}")
