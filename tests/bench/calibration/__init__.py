"""`calibration`: what the cost model predicts for plans, and what the engine takes for them.

Costs are fitted to every third plan and tried on the others; then to two of the workloads and
tried on the third.  CPU time of all processes counts, once everything is warm.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from jobs import show
from jobs.errors import InputError
from jobs.words import unknown
from stats.calibrate import fit, median_error
from stats.costs import SHIPPED, Costs, Fit
from tests.bench.calibration.loads import LOADS, Load
from tests.bench.calibration.run import Run, run
from tests.bench.engines import check_engine

ROOT = Path(__file__).parents[3]

APART = 1.2
"""Plans count as different from here on: the dearer by the cheaper, as measured."""


def calibration(
    engine: Annotated[str, typer.Option(help="duckdb, spark or spark-duckdb.")] = "duckdb",
    plans: Annotated[int, typer.Option(min=3, help="How many of each workload.")] = 20,
    workloads: Annotated[str, typer.Option(help="Which, separated by commas.")] = ",".join(LOADS),
    seed: Annotated[int, typer.Option(help="Of the tuples.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Predicted against measured CPU: the order of plans, and the error, of plans held out."""
    check_engine(engine)
    loads = _chosen(workloads)
    runs = _runs(loads, engine, plans, seed)
    fitted = fit([one.measured for one in runs], SHIPPED[engine])
    report = {
        "command": " ".join(["midstream bench calibration", *sys.argv[3:]]),
        "versions": {name: version(name) for name in ("pyspark", "deltalake", "duckdb")},
        "tries": _tries(runs, SHIPPED[engine]),
        "costs": _costs(fitted),
        "plans": [_plan(one, SHIPPED[engine], fitted) for one in runs],
    }
    if json:
        show.as_json(report)
    else:
        _show(report)
    different = {(one.load, one.results) for one in runs}
    return 0 if len(different) == len(loads) else 1


def _chosen(names: str) -> list[Load]:
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in LOADS:
            raise InputError(unknown("workload", name, LOADS), "--workloads")
    return [LOADS[name] for name in wanted]


def _runs(loads: Sequence[Load], engine: str, plans: int, seed: int) -> list[Run]:
    scratch = ROOT / ".bench"
    scratch.mkdir(exist_ok=True)
    found: list[Run] = []
    with TemporaryDirectory(dir=scratch) as directory, show.progress("plans") as report:
        for load in loads:
            for one in run(load, engine, plans, Path(directory), seed):
                found.append(one)
                report(len(found), plans * len(loads))
    return found


# --- figures -------------------------------------------------------------------------------------


def _tries(runs: Sequence[Run], shipped: Costs) -> dict[str, dict[str, Any]]:
    """How good predictions are, by what they rest on."""
    train, held = runs[::3], [one for at, one in enumerate(runs) if at % 3]
    found = {
        "shipped costs, all plans": _judged(runs, shipped),
        "fitted to every third plan, the others": _judged(held, _fitted(train, shipped)),
    }
    for name in dict.fromkeys(one.load for one in runs):
        others = [one for one in runs if one.load != name]
        own = [one for one in runs if one.load == name]
        if others:
            found[f"fitted to the others, {name}"] = _judged(own, _fitted(others, shipped))
    return found


def _fitted(runs: Iterable[Run], shipped: Costs) -> Costs:
    return fit([one.measured for one in runs], shipped).costs


def _judged(runs: Sequence[Run], costs: Costs) -> dict[str, Any]:
    """The median error, and how many pairs of plans stand in the right order."""
    pairs = [
        (one, other)
        for one, other in combinations(runs, 2)
        if one.load == other.load and max(one.cpu, other.cpu) > APART * min(one.cpu, other.cpu)
    ]
    right = sum(
        (one.measured.predicted(costs) > other.measured.predicted(costs)) == (one.cpu > other.cpu)
        for one, other in pairs
    )
    return {
        "plans": len(runs),
        "median_error": median_error([one.measured for one in runs], costs),
        "pairs": len(pairs),
        "right": right,
        "share": right / len(pairs) if pairs else None,
    }


def _costs(fitted: Fit) -> dict[str, dict[str, float]]:
    return {
        name: {"value": cost, "low": fitted.low[name], "high": fitted.high[name]}
        for name, cost in fitted.costs.values.items()
    }


def _plan(one: Run, shipped: Costs, fitted: Fit) -> dict[str, Any]:
    return {
        "workload": one.load,
        "plan": one.plan,
        "cpu": one.cpu,
        "shipped": one.measured.predicted(shipped) / one.seconds,
        "fitted": one.measured.predicted(fitted.costs) / one.seconds,
        "error": one.measured.error(fitted.costs),
        "results": one.results,
    }


def _show(report: Mapping[str, Any]) -> None:
    show.heading("CPU-seconds per second of input")
    show.table(
        ("workload", "plan", "measured", "shipped", "fitted", "error", "results"),
        [
            (
                one["workload"], one["plan"], f"{one['cpu']:.4f}", f"{one['shipped']:.4f}",
                f"{one['fitted']:.4f}", f"{one['error']:+.0%}", f"{one['results']:,}",
            )
            for one in report["plans"]
        ],
        right="measured shipped fitted error results",
    )  # fmt: skip
    show.heading("costs fitted to all plans, seconds")
    show.table(
        ("unit", "cost", "low", "high"),
        [
            (name, *(f"{cost[key]:.2e}" for key in ("value", "low", "high")))
            for name, cost in report["costs"].items()
        ],
        right="cost low high",
    )  # fmt: skip
    show.heading("how good predictions are")
    show.table(
        ("costs, and plans that they are tried on", "plans", "median error", "pairs", "right"),
        [
            (name, f"{one['plans']}", f"{one['median_error']:.1%}", f"{one['pairs']}",
             f"{one['share']:.1%}" if one["pairs"] else "-")
            for name, one in report["tries"].items()
        ],
        right="plans pairs right",
    )  # fmt: skip
    versions = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    show.plain(f"\n{report['command']}\n{versions}")
