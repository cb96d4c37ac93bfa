"""`placement`: how long planning takes beside Ji's tables 2 and 3, and how exact its pruning is."""

import json as json_text
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import isclose
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter, process_time
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from jobs import operators
from jobs.documents import read
from optimizer.cost.feasibility import Objective
from optimizer.cost.fragments import LogicalPlan
from optimizer.placement import Options, Placed, place
from optimizer.placement.federated import federated
from tests.optimizer.placement.trees import drawn_plan

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "placement"

PAPER = {
    "cq1": 9.0, "cq2": 8.8, "cq3": 12.27, "cq4": 11.66, "cq5": 23.8, "cq6": 64.1,
    "cq4-5-way": 977.0, "cq4-8-way": 61_436.0,
}  # fmt: skip
"""Milliseconds of both phases."""


@dataclass(frozen=True)
class Planned:
    """A query of the paper, and what placing it took."""

    query: str
    operators: int
    space: int
    examined: int
    ms: float
    cpu_ms: float
    paper_ms: float
    exhaustive_cpu_ms: float | None
    """Of all placements, up to 15 operators."""


@dataclass(frozen=True)
class Exactness:
    """Random plans, some of whose parts were measured, against all placements."""

    plans: int = 0
    infeasible: int = 0
    missed: int = 0
    """Not the best under definition 1."""
    totals_differ: int = 0
    """Infeasible, as good under definition 1, and of another total."""
    missed_on_cores: int = 0
    """The same for operators that share two cores."""
    missed_by_one_plan: int = 0
    """Likewise, were only one partial plan on Spark kept for each operator."""


def placement(
    *,
    runs: Annotated[int, typer.Option(min=1, help="Of each query; the median counts.")] = 9,
    plans: Annotated[int, typer.Option(min=0, help="Random plans to place.")] = 400,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Time the placement of Ji's queries, and compare its pruning with all placements."""
    queries = [planned(name, runs) for name in PAPER]
    exact = exactness(plans)
    if json:
        command = " ".join(["midstream", "bench", "placement", *sys.argv[3:]])
        figures = {"queries": list(map(asdict, queries)), "random": asdict(exact)}
        typer.echo(json_text.dumps(figures | {"command": command}, indent=2))
        return
    _show(queries, exact)


def _show(queries: list[Planned], exact: Exactness) -> None:
    console = Console()
    columns = ("operators", "placements", "examined", "ms", "CPU", "paper", "exhaustive")
    table = Table("query", box=None)
    for name in columns:
        table.add_column(name, justify="right")
    for one in queries:
        every = "" if one.exhaustive_cpu_ms is None else f"{one.exhaustive_cpu_ms:.1f}"
        times = (f"{ms:,.1f}" for ms in (one.ms, one.cpu_ms, one.paper_ms))
        counts = (f"{count:,}" for count in (one.operators, one.space, one.examined))
        table.add_row(one.query, *counts, *times, every)
    console.print(table)
    for name, count in asdict(exact).items():
        console.print(f"{name.replace('_', ' ')}: {count}")


def planned(name: str, runs: int) -> Planned:
    """A query of the paper; its file is read before."""
    document = read(EXAMPLES / f"{name}.yaml")

    def sized_and_placed() -> Placed:
        return place("federated", operators.of(document), Options())

    found, ms, cpu = _timed(sized_and_placed, runs)
    plan, every = found.plan, None
    if len(plan) <= 15:
        every = _timed(lambda: place("exhaustive", plan, Options()), 1)[2]
    return Planned(
        name, len(plan), plan.space, found.found.examined, ms, cpu, PAPER[name], every
    )  # fmt: skip


def _timed(call: Callable[[], Placed], runs: int) -> tuple[Placed, float, float]:
    """What it returns, and the median milliseconds by the clock and of the CPU."""
    clock, cpu, found = [], [], call()
    for _ in range(runs):
        began, worked = perf_counter(), process_time()
        found = call()
        clock.append(1000 * (perf_counter() - began))
        cpu.append(1000 * (process_time() - worked))
    return found, median(clock), median(cpu)


def exactness(plans: int) -> Exactness:
    """Over plans of the seeds from 0 on."""
    counts: dict[str, int] = {"plans": plans}

    def count(name: str, *, yes: bool) -> None:
        counts[name] = counts.get(name, 0) + yes

    alone, shared = Objective(), Objective(cores=2)
    for seed in range(plans):
        plan = drawn_plan(Random(seed))
        best, found = _key(plan, alone, "exhaustive"), _key(plan, alone, "federated")
        count("infeasible", yes=best[0])
        count("missed", yes=not _alike(best[:2], found[:2]))
        count("totals_differ", yes=best[0] and not _alike(best[2:], found[2:]))
        best = _key(plan, shared, "exhaustive")
        count("missed_on_cores", yes=not _alike(best[:2], _key(plan, shared, "federated")[:2]))
        one = shared.key(plan.price(federated(plan, alone).mask))
        count("missed_by_one_plan", yes=not _alike(best[:2], one[:2]))
    return Exactness(**counts)


def _key(plan: LogicalPlan, objective: Objective, strategy: str) -> tuple[bool, float, float]:
    return objective.key(place(strategy, plan, Options(objective)).cost)


def _alike(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(isclose(a, b, rel_tol=1e-9) for a, b in zip(one, other, strict=True))
