"""Plots of what `midstream bench network` measured."""

from pathlib import Path
from typing import Any

COLOURS = {
    "exhaustive": "#1e293b", "top-down": "#0e8a9c", "bottom-up": "#6471c9", "npc": "#9447bd",
    "landmarks": "#1b9a4b", "plan-then-deploy": "#b45309", "relaxation": "#dc2647",
    "in-network": "#e2700f",
}  # fmt: skip


def draw(report: dict[str, Any], directory: Path) -> None:
    """The strategies side by side, and where it was measured the size of clusters."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "midstream"
    directory.mkdir(parents=True, exist_ok=True)
    _strategies(report, directory / f"network-{report['workload']}.svg")
    if "6" in report["figures"]:
        _clusters(report["figures"], directory / "network-clusters.svg")


def _strategies(report: dict[str, Any], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, (usage, work) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    rows = report["strategies"][::-1]
    names = [one["strategy"] for one in rows]
    colours = [COLOURS.get(name, "#64748b") for name in names]
    usage.barh(names, [100 * one["over_optimum"] for one in rows], color=colours,
               xerr=[100 * one["over_optimum_spread"] for one in rows],
               error_kw={"ecolor": "#94a3b8", "lw": 1})  # fmt: skip
    usage.set_xlabel("usage above the sequence of exact plans, %")
    usage.set_xscale("symlog", linthresh=10)
    usage.set_xlim(left=0)
    work.barh(names, [one["evaluated"] / report["queries"] for one in rows], color=colours)
    work.set_xscale("log")
    work.set_xlabel("costs compared a query")
    work.set_yticklabels([])
    figure.suptitle(f"{report['workload']}: {report['queries']} queries, {report['seeds']} seeds")
    _save(figure, path)


def _clusters(figures: dict[str, Any], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, (plans, usage) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for name, searched, paid in (("bottom-up", "6", "8"), ("top-down", "7", "9")):
        for axes, number, what in (
            (plans, searched, "examined by max_cs"), (usage, paid, "usage by max_cs"),
        ):  # fmt: skip
            points = figures[number][what]
            sizes = [int(size) for size in points]
            axes.plot(sizes, [p["mean"] for p in points.values()], "o-", label=name,
                      color=COLOURS[name])  # fmt: skip
            axes.set_xscale("log", base=2)
            axes.set_xticks(sizes, [str(size) for size in sizes])
            axes.set_xlabel("most sites of a cluster")
    plans.set_yscale("log")
    plans.set_ylabel("plans examined")
    usage.set_ylabel("usage")
    usage.set_ylim(bottom=0)
    plans.legend(frameon=False)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
