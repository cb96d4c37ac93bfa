"""The figures of the benchmark: crossing plans, the crossing against cost, five streams."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jobs.pictures import write
from jobs.rating.picture import picture
from jobs.rating.report import GIVEN, Planned, Report
from jobs.rating.simulated import simulated
from optimizer.cost.rate.judge import Judge
from optimizer.cost.rate.load import RateLoad
from optimizer.cost.rate.objective import Objective
from tests.bench.rate.paper import BOTH, COMPLEX, SETTLED, _last
from tests.optimizer.cost.rates import five, plan, three


def draw(directory: Path, runs: int) -> None:
    """All of them."""
    crossing = _report(three(SETTLED), BOTH, 20.0, runs)
    write(directory / "rate-crossing.svg", picture(crossing, "Figures 7 to 10, 3.76 ms a tuple"))
    texts = [text for name, text in COMPLEX.items() if "otherwise" not in name]
    complex_plans = _report(five(0.0016), texts, 100.0, 3)
    title = "Figures 12 to 15, 1.6 ms a tuple"
    write(directory / "rate-complex.svg", picture(complex_plans, title))
    _against_cost(directory / "rate-cost.svg")


def measured(path: Path, part: Mapping[str, Any]) -> None:
    """What the sink of each job held, as it was counted."""
    figure, axes = _axes()
    for name, job in part["jobs"].items():
        seconds, results = zip(*job["curve"], strict=True)
        dashed = "--" if name in part["decided"] else "-"
        axes.plot(seconds, results, dashed, label=f"{name}: {job['plan']} in the end")
    axes.set(xlabel="seconds", ylabel="results in the sink")
    _save(figure, axes, path)


def _report(given: RateLoad, texts: Sequence[str], seconds: float, runs: int) -> Report:
    judge = Judge(given, Objective(by=seconds))
    planned = []
    for text in texts:
        node = plan(text, given)
        planned.append(
            Planned(GIVEN, node, judge.value(node), None, judge.curve(node, seconds),
                    simulated(judge, node, runs, 1))
        )  # fmt: skip
    return Report(judge, tuple(planned), seconds, 0, 0.0)


def _against_cost(path: Path) -> None:
    figure, axes = _axes()
    for model, label in (("exact", "exact model"), ("printed", "equations 2 and 3 as printed")):
        costs, results = _line(model)
        axes.plot(costs, results, label=label)
    axes.axhline(2_000, color="gray", linestyle=":", label="published")
    axes.set(
        xlabel="move + hash + probe, ms", ylabel="results where the plans cross", ylim=(0, 8e3)
    )
    _save(figure, axes, path)


def _axes() -> tuple[Any, Any]:
    """An empty picture whose file is the same whenever it is drawn."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "midstream"
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(7, 3.6))


def _save(figure: Any, axes: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _line(model: str) -> tuple[list[float], list[float]]:
    from optimizer.cost.rate.judge import Model

    costs, results = [], []
    for milliseconds in (
        np.arange(1.0, 30.1, 0.5) if model == "printed" else np.arange(1, 6.1, 0.125)
    ):
        found: Any = _last(float(milliseconds) / 1_000, Model(model))
        if found is not None:
            costs.append(float(milliseconds))
            results.append(found["results"])
    return costs, results
