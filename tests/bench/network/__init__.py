"""Planning and placing over a network: the paper's figures, measured again."""

import sys
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from jobs import show
from jobs.errors import InputError
from jobs.words import unknown
from optimizer.network.placement import NETWORK_PLACEMENTS


def network(
    *,
    workload: Annotated[str, typer.Option(help="synthetic or enterprise.")] = "synthetic",
    queries: Annotated[
        int, typer.Option(min=1, help="Of a sequence; the paper's enterprise workload has 300.")
    ] = 100,
    seeds: Annotated[str, typer.Option(help="Networks and workloads, as A..B.")] = "0..10",
    figures: Annotated[bool, typer.Option(help="Measure every figure, not 12 to 14 alone.")] = True,
    causes: Annotated[
        bool, typer.Option("--causes", help="Measure why figures differ from the published ones.")
    ] = False,
    theorems: Annotated[int, typer.Option(min=0, help="Random networks for the theorems.")] = 0,
    plots: Annotated[Path | None, typer.Option(help="Draw them into this directory.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Usage, search space, joins and time of every strategy, beside what was published."""
    from tests.bench.network.sequence import WORKLOADS

    if workload not in WORKLOADS:
        raise InputError(unknown("workload", workload, WORKLOADS), "--workload")
    report = _report(workload, queries, _range(seeds), every=figures, causes=causes)
    if theorems:
        report["theorems"] = used(theorems)
    if plots is not None:
        from tests.bench.network.plots import draw

        draw(report, plots)
    if json:
        show.as_json(report)
    else:
        _show(report)
    return 0


def _range(text: str) -> range:
    first, _, last = text.partition("..")
    if not (first.isdecimal() and last.isdecimal() and int(first) < int(last)):
        raise InputError(f"found {text!r}; allowed: two numbers such as 0..10", "--seeds")
    return range(int(first), int(last))


def _report(
    workload: str, queries: int, seeds: range, *, every: bool, causes: bool
) -> dict[str, Any]:
    from tests.bench.network import causes as why
    from tests.bench.network import figures as known
    from tests.bench.network.sequence import all_strategies

    with show.progress(f"{workload}, {queries} queries") as told:
        runs = []
        for done, seed in enumerate(seeds):
            told(done, len(seeds))
            runs.append(all_strategies(workload, seed, queries))
    found = dict(known.comparison(workload, runs))
    if every and workload == "synthetic":
        with show.progress("figures 2 and 6 to 16"):
            found["2"] = known.figure_2(seeds, queries)
            found |= known.figures_6_to_9(seeds, queries)
            found |= known.figures_10_and_11(seeds, queries)
            found["15"] = known.figure_15(seeds, queries)
            found["16"] = known.figure_16(seeds, min(queries, 25))
    changed = {}
    if causes:
        with show.progress("causes"):
            changed["nothing to reuse"] = why.without_reuse(workload, seeds, runs, queries)
            if workload == "synthetic":
                changed["sources and sinks together"] = why.near(seeds, min(queries, 25))
    return {
        "command": " ".join(["midstream bench network", *sys.argv[3:]]),
        "workload": workload,
        "queries": queries,
        "seeds": len(seeds),
        "strategies": [_strategy(name, runs) for name in NETWORK_PLACEMENTS],
        "figures": dict(sorted(found.items(), key=lambda one: int(one[0]))),
        "causes": changed,
    }


def _strategy(name: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    from tests.bench.network.sequence import spread

    mine = [run[name] for run in runs]
    over = [run[name].usage / run["exhaustive"].usage - 1 for run in runs]
    return {
        "strategy": name,
        "usage": fmean(one.usage for one in mine),
        "over_optimum": fmean(over),
        "over_optimum_spread": spread(over)["spread"],
        "space_share": fmean(one.space_share for one in mine),
        "evaluated": fmean(one.evaluated for one in mine),
        "joins": fmean(one.joins for one in mine),
        "filters": fmean(one.filters for one in mine),
        "reused": fmean(one.reused for one in mine),
        "seconds": fmean(one.seconds for one in mine),
    }


def used(networks: int) -> dict[str, Any]:
    """The share of each theorem's bound that is used; one that is broken ends the run."""
    from tests.bench.network.sequence import spread
    from tests.bench.network.theorems import theorem_1, theorem_3, theorems_2_and_4

    first, both, printed, counts = [], [], [], []
    with show.progress("theorems") as told:
        for seed in range(networks):
            told(seed, networks)
            first.append(theorem_1(seed))
            counts.append(theorems_2_and_4(seed))
            pair = theorem_3(seed)
            both.append(pair[0])
            printed.append(pair[1])
    named = {
        "1, both directions": first,
        "2": [one["top-down"] for one in counts],
        "3, both trees": both,
        "3 as printed": printed,
        "4": [one["bottom-up"] for one in counts],
    }
    return {"networks": networks} | {
        name: spread(shares) | {"most": max(shares)} for name, shares in named.items()
    }


def _show(report: dict[str, Any]) -> None:
    show.heading(
        f"{report['workload']}: {report['queries']} queries, 132 sites, clusters of 32, "
        f"{report['seeds']} seeds"
    )
    columns = ("strategy", "usage", "over", "+/-", "space", "joins", "filters", "reused", "ms")
    rows = [
        (one["strategy"], f"{one['usage']:,.4g}", f"{one['over_optimum']:.1%}",
         f"{one['over_optimum_spread']:.1%}", f"{one['space_share']:.1e}", f"{one['joins']:.0f}",
         f"{one['filters']:.0f}", f"{one['reused']:.0f}", f"{1000 * one['seconds']:.1f}")
        for one in report["strategies"]
    ]  # fmt: skip
    show.table(columns, rows, right=" ".join(columns[1:]))
    titles = {f"Figure {name}": figure for name, figure in report["figures"].items()}
    for title, figure in (titles | report["causes"]).items():
        show.heading(title)
        show.table(("what", "here", "+/-", "published"), list(_lines(figure)), right="here +/-")
    if "theorems" in report:
        shares = report["theorems"]
        show.heading(f"Share of each bound used, {shares['networks']:,} random networks")
        lines = [
            (name, f"{one['mean']:.1%}", f"{one['most']:.1%}")
            for name, one in shares.items()
            if isinstance(one, dict)
        ]
        show.table(("theorem", "mean", "most"), lines, right="mean most")
    show.plain(report["command"])


def _lines(figure: dict[str, Any], above: str = "") -> Any:
    for name, value in figure.items():
        label = f"{above}, {name}" if above else name
        if isinstance(value, dict) and "mean" in value:
            published = value.get("published")
            shown = "" if published is None else str(published)
            yield label, f"{value['mean']:,.3g}", f"{value['spread']:,.2g}", shown
        elif isinstance(value, dict):
            yield from _lines(value, label)
        else:
            yield label, f"{value:,.3g}", "", ""
