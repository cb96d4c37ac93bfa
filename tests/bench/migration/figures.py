"""Figures of what was measured (Zhu 16.1 to 16.13)."""

from pathlib import Path
from typing import Any

LOOKS = {
    "moving-state": ("tab:orange", "o"),
    "background": ("tab:green", "^"),
    "parallel-track": ("tab:blue", "s"),
}


def draw(report: dict[str, Any], directory: Path) -> None:
    """A file for each part."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "midstream"
    directory.mkdir(parents=True, exist_ok=True)
    makers = {"silence": _silence, "window": _growth, "rate": _growth, "time": _time}
    for name, part in report["parts"].items():
        if name in makers:
            makers[name](part, directory / f"migration-{name}.svg")


def _silence(part: dict[str, Any], path: Path) -> None:
    """Each batch in units of the usual one, from a few before the request on."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    figure, axes = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
    begins = part["begins"]
    first = begins - 5
    for name, (colour, marker) in LOOKS.items():
        one = part["strategies"][name]
        ratios = [used / one["usual_cpu_ms"] for used in one["cpu_ms"][first:]]
        batches = range(first - begins, len(one["cpu_ms"]) - begins)
        axes.plot(batches, ratios, colour, marker=marker, markersize=4, linewidth=1, label=name)
        axes.axvline(one["batches"] - 0.5, color=colour, linestyle=":", linewidth=1)
    axes.axhline(1.2, color="grey", linewidth=0.6)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(
        xlabel="batches since the request (dotted: cut-over)",
        ylabel="CPU time of a batch, usual = 1",
        ylim=(0, None),
    )
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    _save(figure, path)


def _growth(part: dict[str, Any], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, (moving, track) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    points = part["points"]
    against = part["against"]
    at = [point[against] for point in points]
    _lines(moving, at, points, "moving_state_ms")
    _lines(track, at, points, "parallel_track_s")
    label = "window W, seconds" if against == "window" else "tuples per second and stream"
    moving.set(
        xlabel=label, ylabel="T_MS, ms of CPU", ylim=(0, 2.5 * points[-1]["moving_state_ms"])
    )
    track.set(xlabel=label, ylabel="T_PT, seconds of event time", ylim=(0, None))
    for axes in (moving, track):
        axes.grid(alpha=0.3)
    handles, labels = moving.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    _save(figure, path)


def _lines(axes: Any, at: list[float], points: list[dict[str, Any]], what: str) -> None:
    looks = {
        what: ("tab:orange", "-", "measured"),
        f"our_{what}": ("tab:green", "--", "our model"),
        f"zhu_{what}": ("tab:gray", ":", "Zhu's model"),
    }
    for key, (colour, style, label) in looks.items():
        axes.plot(
            at, [point[key] for point in points], style, color=colour, marker=".", label=label
        )


def _time(part: dict[str, Any], path: Path) -> None:
    import matplotlib.pyplot as plt

    scenarios = part["scenarios"]
    figure, panels = plt.subplots(
        2, len(scenarios), figsize=(3.6 * len(scenarios), 5.2), layout="constrained",
        sharex=True, sharey="row",
    )  # fmt: skip
    rows = (("tuples_per_cpu_second", "tuples per CPU-second"), ("state_rows", "rows of states"))
    for column, (name, one) in enumerate(scenarios.items()):
        panels[0][column].set_title(f"changes: {name}", fontsize=10)
        for row, (what, label) in enumerate(rows):
            axes = panels[row][column]
            for run, colour in (("without", "tab:gray"), ("with", "tab:green")):
                axes.plot(one[run][what], color=colour, linewidth=1.2, label=f"{run} migration")
            for batch in one["changes"]:
                axes.axvline(batch, color="tab:red", linestyle=":", linewidth=1)
            for batch in one["cut_overs"]:
                axes.axvline(batch, color="tab:green", linestyle=":", linewidth=1)
            axes.grid(alpha=0.3)
            if column == 0:
                axes.set_ylabel(label)
        panels[1][column].set_xlabel("batch (dotted: change, cut-over)")
    for first in panels[:, 0]:
        first.set_ylim(bottom=0)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
