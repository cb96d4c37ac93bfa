"""What was measured, for a terminal."""

from statistics import median
from typing import Any

from jobs import show


def table(name: str, part: dict[str, Any]) -> None:
    """One part of the benchmark."""
    shown = {"silence": _silence, "window": _growth, "rate": _growth, "time": _time}
    (shown | {"falling": _falling})[name](part)


def _falling(part: dict[str, Any]) -> None:
    old, new = part["plans"]
    show.plain(
        f"{old} -> {new}, the states filled at {part['rate']:,} tuples a second and stream\n"
        "CPU-seconds more than without migrating, and as predicted; seconds until the cut-over"
    )
    rows = [
        (
            f"{point['rate']:,}",
            strategy,
            f"{one['cpu_s']:.2f}",
            f"{one['predicted_cpu_s']:.2f}",
            f"{one['lasts_s']:,.0f}",
            f"{one['predicted_lasts_s']:,.0f}",
            "auto" if strategy == point["auto"] else "",
            "yes" if one["same_results"] else "NO",
        )
        for point in part["points"]
        for strategy, one in point["strategies"].items()
    ]
    columns = ("rate", "strategy", "CPU s", "said", "lasts", "to last", "chosen", "same")
    show.table(columns, rows, right="rate said lasts")


def _silence(part: dict[str, Any]) -> None:
    old, new = part["plans"]
    show.plain(
        f"{old} -> {new}, partners {part['partners']}, {part['results']:,} results\n"
        f"a batch {_often(part['interval_s'])}; "
        f"the new plan is to save {part['predicted_saving']:.0%}, its fills to take "
        f"{part['strategies']['background']['predicted_takes']:.0%} of a batch\n"
        "ms from one commit of results to the next, usual, and the longest and median while it\n"
        "migrates, and the median after, as ratios to it; the same for the CPU time of batches"
    )
    for kind, what in (("", "time"), ("_cpu", "CPU")):
        columns = (what, "usual", "longest", "median", "after")
        rows = [
            (
                strategy,
                f"{one[f'usual{kind}_ms']:,.0f}",
                *(f"{one[f'{w}{kind}_to_usual']:.2f}" for w in ("longest", "median", "after")),
            )
            for strategy, one in part["strategies"].items()
        ]
        show.plain("")
        show.table(columns, rows, right=" ".join(columns[1:]))
    columns = ("", "slices", "batches", "rebuilt", "same")
    rows = [
        (
            strategy,
            str(one["slices"]),
            str(one["batches"]),
            f"{one['rebuilt']:,}",
            "yes" if one["same_results"] else "NO",
        )
        for strategy, one in part["strategies"].items()
    ]
    show.plain("")
    show.table(columns, rows, right="slices batches rebuilt")
    costs, moved = part["calibration"]["costs"], part["moving_state"]
    show.plain(
        f"\nmoving-state fills in {moved['cpu_ms']:.0f} ms of CPU ({moved['ms']:.0f} ms); "
        f"predicted {moved['predicted_cpu_ms']:.0f}: {1000 * costs['fill']:.0f} a fill and "
        f"{costs['second']:.2f} times the estimate, fitted at smaller rates"
    )


def _often(interval: float) -> str:
    return f"every {1000 * interval:,.0f} ms" if interval else "after the other"


def _growth(part: dict[str, Any]) -> None:
    show.heading(f"{' -> '.join(part['trees'])} against the {part['against']}")
    columns = (
        part["against"], "T_MS ms", "Zhu", "ours", "ahead", "T_PT s", "2W (Zhu)",
        "W + lateness",
    )  # fmt: skip
    rows = [
        (
            str(point[part["against"]]),
            f"{point['moving_state_ms']:,.1f}",
            f"{point['zhu_moving_state_ms']:,.1f}",
            f"{point['our_moving_state_ms']:,.1f}",
            f"{point['our_extrapolated_ms']:,.1f}",
            str(point["parallel_track_s"]),
            f"{point['zhu_parallel_track_s']:g}",
            f"{point['our_parallel_track_s']:g}",
        )
        for point in part["points"]
    ]
    show.table(columns, rows)


def _time(part: dict[str, Any]) -> None:
    show.heading(f"Selectivities that change every {part['every']} batches, {part['strategy']}")
    columns = (
        "changes", "without", "with", "gain", "CPU", "rows", "cut-overs", "watching", "same",
    )  # fmt: skip
    rows = [
        (
            name,
            f"{median(one['without']['tuples_per_second']):,.0f}",
            f"{median(one['with']['tuples_per_second']):,.0f}",
            f"{one['throughput_gain']:.2f}",
            f"{one['cpu_gain']:.2f}",
            f"{one['state_ratio']:.2f}",
            ", ".join(map(str, one["cut_overs"])) or "-",
            f"{one['watching_ms']:.2f} ms, {one['watching_share']:.2%}",
            "yes" if one["same_results"] else "NO",
        )
        for name, one in part["scenarios"].items()
    ]
    show.table(columns, rows)
    show.plain(
        "tuples per second, medians; throughput, also by CPU time, and rows of states, with "
        "migration to without, from the first request on"
    )
