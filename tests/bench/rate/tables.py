"""The parts of the report as people read them."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from jobs import show

Part = Mapping[str, Any]


def _figure_1(part: Part) -> None:
    show.table(
        ("order", "results/s", "simulated", "backlog grows by"),
        [
            (
                " then ".join(one["order"]),
                f"{one['results_per_second']:.2f}",
                f"{one['simulated_per_second']:.2f}",
                f"{one['backlog_per_second']:.0f} tuples/s",
            )
            for one in part["orders"]
        ],
        right="results/s simulated",
    )


def _crossing(part: Part) -> None:
    show.table(
        ("handling", "exact", "printed"),
        [
            (f"{p['handling_ms']:.2f} ms", *(_at(p[model]) for model in ("exact", "printed")))
            for p in part["points"]
        ],
        right="handling exact printed",
    )
    results = [one["results"] for one in part["simulated"]]
    seconds = [one["seconds"] for one in part["simulated"]]
    show.plain(
        f"simulated at 3.76 ms, {len(results)} pairs of runs: {min(results):,} to {max(results):,} "
        f"results (mean {fmean(results):,.0f}), after {fmean(seconds):.1f} s; published: 2,000"
    )


def _at(point: Part | None) -> str:
    return f"{point['results']:,.0f} at {point['seconds']:.1f} s" if point else "never"


def _complex(part: Part) -> None:
    for given in part["handling"]:
        show.plain(f"handling {given['handling_ms']:g} ms")
        show.table(
            ("plan", "by 50 s", "last", "handling", "published: rate", "traditional"),
            [
                (
                    f"{name}\n{one['plan']}",
                    f"{one['results_by_50_s']:,.0f}",
                    f"{one['last_result_seconds']:,.0f} s",
                    f"{one['cardinality_seconds']:,.0f} s",
                    _published(part, name, "rate_based"),
                    _published(part, name, "traditional"),
                )
                for name, one in given["plans"].items()
            ],
        )


def _published(part: Part, name: str, which: str) -> str:
    known = part["published"].get(name)
    return f"{known[which]:,.0f}" if known else ""


def _queries(part: Part) -> None:
    show.table(
        ("strategy", "queries", "same plan", "as good", "mean loss", "worst loss", "simulated"),
        [
            (
                name,
                str(one["queries"]),
                str(one["same_plan"]),
                str(one["as_good"]),
                f"{one['mean_loss']:.1%}",
                f"{one['worst_loss']:.0%}",
                f"{one['simulated_mean_loss']:.1%}",
            )
            for name, one in part["strategies"].items()
        ],
        right="queries",
    )
    best = part["exact_is_best_simulated"]
    show.plain(
        f"exact's plan is the best simulated, or within 1 % of it: {best['won']} of "
        f"{best['queries']}; {part['runs']} runs each, results by {part['horizon_seconds']:g} s"
    )


def _contract(part: Part) -> None:
    show.plain(
        f"{part['plans']} plans, {part['runs']} runs each: the mean is {part['mean_error']:.1%} "
        f"from the model on average, {part['worst_error']:.1%} at worst; "
        f"{part['beyond_5_percent']} beyond 5 %"
    )


def _measured(part: Part) -> None:
    show.plain(
        f"selectivities are reversed before batch {part['changed_before']} of {part['batches']}; "
        f"each job has {part['core']:.1%} of a core"
    )
    show.table(
        ("job", "plan in the end", "cut-over", "before", "after", "end"),
        [
            (
                name,
                one["plan"],
                f"before batch {one['cut_overs'][0]}" if one["cut_overs"] else "none",
                f"{one['rate_before']:,.0f}",
                f"{one['rate_after']:,.0f}",
                f"{one['seconds']:,.0f} s",
            )
            for name, one in part["jobs"].items()
        ],
        right="before after end",
    )
    show.plain("before, after: results per second; end: when all of the input was handled")
    names = list(part["jobs"])
    show.table(
        ("by", *names),
        [
            (f"{one['seconds']:,.0f} s", *(f"{one['results'][name]:,}" for name in names))
            for one in part["results_by"]
        ],
        right=" ".join(["by", *names]),
    )
    same = "the same" if part["same_results"] else "NOT THE SAME"
    show.plain(f"{part['jobs']['first']['results']:,} results in the end, {same} in all four")
    for name, decisions in part["decided"].items():
        _decisions(name, decisions)


def _decisions(name: str, decisions: Sequence[Part]) -> None:
    """Those that come to something else than the one before."""
    before = ""
    for one in decisions:
        to = f" to {one['to']}" if one["to"] else ""
        if one["outcome"] != before:
            show.plain(f"{name}, after batch {one['batch']}: {one['outcome']}{to}: {one['reason']}")
        before = one["outcome"]


def _speed(part: Part) -> None:
    show.table(
        ("", "CPU ms", "slowest", "target"),
        [
            (
                row["what"],
                f"{1000 * row['cpu_seconds']:,.1f}",
                f"{1000 * row['slowest']:,.1f}",
                f"{1000 * row['target']:,.0f}" if row["target"] else "",
            )
            for row in part["rows"]
        ],
        right="slowest target",
    )


TABLES: Mapping[str, Callable[[Part], None]] = {
    "figure-1": _figure_1,
    "crossing": _crossing,
    "complex": _complex,
    "queries": _queries,
    "contract": _contract,
    "measured": _measured,
    "speed": _speed,
}
