"""The paper's figures, each measured again and beside what was published."""

from collections.abc import Callable, Iterable
from statistics import fmean
from typing import Any

from optimizer.network.counting import beta, space
from tests.bench.network.sequence import Run, all_strategies, network_of, spread

Figure = dict[str, Any]
OURS = ("top-down", "bottom-up", "npc")
PHASED = ("relaxation", "in-network")


def entry(found: Iterable[float], published: float | str | None) -> Figure:
    """A figure over the seeds beside the published one."""
    return spread(list(found)) | {"published": published}


def saved(ours: float, theirs: float) -> float:
    """The share that ours is below theirs."""
    return 1 - ours / theirs


def figure_2(seeds: range, queries: int) -> Figure:
    """Planning and placing together, beside two phased approaches: five streams, 64 sites."""
    names = ("exhaustive", "plan-then-deploy", "relaxation")
    runs = [all_strategies("synthetic", s, queries, 64, 32, names, joins=(4, 4)) for s in seeds]
    return {
        f"saved against {name}": entry(
            (saved(r["exhaustive"].usage, r[name].usage) for r in runs), "> 0.5"
        )
        for name in names[1:]
    }


SIZES = (4, 8, 16, 32, 64)


def figures_6_to_9(seeds: range, queries: int) -> dict[str, Figure]:
    """Search space and usage by the size of clusters."""
    by_size = {
        size: [
            all_strategies("synthetic", s, queries, 128, size, ("top-down", "bottom-up"))
            for s in seeds
        ]
        for size in SIZES
    }

    def ratio(name: str, what: str, one: int, other: int) -> list[float]:
        pairs = zip(by_size[one], by_size[other], strict=True)
        return [getattr(a[name], what) / getattr(b[name], what) for a, b in pairs]

    def by(name: str, what: str) -> Figure:
        return {
            str(size): spread([getattr(run[name], what) for run in runs])
            for size, runs in by_size.items()
        }

    less = [
        saved(run["bottom-up"].examined, run["top-down"].examined)
        for size in (8, 16)
        for run in by_size[size]
    ]
    return {
        "6": {"examined by max_cs": by("bottom-up", "examined"),
              "64 over 16": entry(ratio("bottom-up", "examined", 64, 16), "about 10"),
              "32 over 16": entry(ratio("bottom-up", "examined", 32, 16), "below 1"),
              "below top-down": entry(less, 0.67)},
        "7": {"examined by max_cs": by("top-down", "examined"),
              "64 over 16": entry(ratio("top-down", "examined", 64, 16), "about 10"),
              "32 over 16": entry(ratio("top-down", "examined", 32, 16), "below 1")},
        "8": {"usage by max_cs": by("bottom-up", "usage"),
              "saved by 64 against 8": entry(
                  (1 - r for r in ratio("bottom-up", "usage", 64, 8)), 0.21)},
        "9": {"usage by max_cs": by("top-down", "usage"),
              "64 over 8": entry(ratio("top-down", "usage", 64, 8), "close to 1")},
    }  # fmt: skip


def figures_10_and_11(seeds: range, queries: int) -> dict[str, Figure]:
    """npc beside the other two, in clusters of 16."""
    runs = [all_strategies("synthetic", s, queries, 128, 16, OURS) for s in seeds]
    above = [r["npc"].usage / r["top-down"].usage - 1 for r in runs]
    fewer = [saved(r["npc"].examined, r["top-down"].examined) for r in runs]
    return {
        "10": {"npc over top-down": entry(above, 0.01),
               "bottom-up over top-down": spread(
                   [r["bottom-up"].usage / r["top-down"].usage - 1 for r in runs])},
        "11": {"npc examines fewer than top-down": entry(fewer, 0.14)},
    }  # fmt: skip


PUBLISHED: dict[str, dict[str, dict[str, float]]] = {
    "synthetic": {
        "over the optimum": {"top-down": 0.10, "bottom-up": 0.34, "npc": 0.18},
        "saved against in-network": {"top-down": 0.40, "bottom-up": 0.27},
        "saved against relaxation": {"top-down": 0.59, "bottom-up": 0.49},
    },
    "enterprise": {
        "over the optimum": {"top-down": 0.05, "bottom-up": 0.36, "npc": 0.06},
        "saved against in-network": {"top-down": 0.42, "bottom-up": 0.25, "npc": 0.41},
        "saved against relaxation": {"top-down": 0.96, "bottom-up": 0.93, "npc": 0.95},
    },
}
FEWER_JOINS = {"top-down": 0.81, "bottom-up": 0.73, "npc": 0.48}


def comparison(workload: str, runs: list[dict[str, Run]]) -> dict[str, Figure]:
    """Figure 12, or 13 and 14: usage and joins beside the phased approaches."""
    published = PUBLISHED[workload]

    def by_name(of: Callable[[dict[str, Run], str], float], label: str) -> Figure:
        names = [*OURS, "landmarks"]
        return {n: entry((of(r, n) for r in runs), published[label].get(n)) for n in names}

    costs: Figure = {
        "over the optimum": by_name(
            lambda r, n: r[n].usage / r["exhaustive"].usage - 1, "over the optimum"
        )
    }
    for other in PHASED:
        label = f"saved against {other}"
        costs[label] = by_name(lambda r, n, o=other: saved(r[n].usage, r[o].usage), label)  # type: ignore[misc]
    if workload == "synthetic":
        return {"12": costs}
    joins = {
        n: entry((saved(r[n].joins, fmean(r[p].joins for p in PHASED)) for r in runs), fewer)
        for n, fewer in FEWER_JOINS.items()
    }
    filters = {n: spread([r[n].filters for r in runs]) for n in (*OURS, *PHASED)}
    return {"13": costs, "14": {"fewer joins": joins, "filters": filters}}


def figure_15(seeds: range, queries: int) -> Figure:
    """Plans examined a query of four streams, by the size of the network."""
    found: Figure = {}
    for sites in (128, 256, 512, 1024):
        names = ("top-down", "bottom-up")
        runs = [all_strategies("synthetic", s, queries, sites, 32, names, joins=(3, 3))
                for s in list(seeds)[:3]]  # fmt: skip
        where = network_of(sites, seeds[0], 32)
        whole = space(4, len(where.sites))
        found[str(sites)] = {
            **{n: spread([r[n].examined / queries for r in runs]) for n in names},
            "exhaustive": whole,
            "bound": beta(4, len(where.sites), 32, where.levels.height) * whole,
            "bottom-up below top-down": entry(
                (saved(r["bottom-up"].examined, r["top-down"].examined) for r in runs), 0.45
            ),
        }
    return found


def figure_16(seeds: range, queries: int) -> Figure:
    """Seconds to plan: 32 sites, eight streams, one to three joins."""
    runs = [
        all_strategies("synthetic", s, queries, 32, 8, OURS, joins=(1, 3), streams=8) for s in seeds
    ]
    less = [saved(r["bottom-up"].seconds, r["top-down"].seconds) for r in runs]
    seconds = {n: spread([r[n].seconds for r in runs]) for n in OURS}
    return {"seconds": seconds, "bottom-up takes less": entry(less, 0.70)}
