"""Why figures differ from the published ones: one thing changed at a time, the rest as it was."""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from jobs.network.session import Place
from tests.bench.network.figures import OURS, PHASED, Figure, entry, saved
from tests.bench.network.sequence import WORKLOADS, Run, network_of, run
from tests.bench.network.workloads import stubs


def without_reuse(workload: str, seeds: range, runs: Sequence[dict[str, Run]], queries: int) -> Any:
    """Nothing to reuse, for the baselines alone or for all: figures 12 to 14."""
    alone = [_alone(workload, seed, queries) for seed in seeds]
    pairs = list(zip(runs, alone, strict=True))
    found: Figure = {
        "for the baselines": {
            "fewer joins": _by_name(lambda n: [saved(r[n].joins, _joins(a)) for r, a in pairs])
        }
    }
    for other in PHASED:
        found["for the baselines"][f"saved against {other}"] = _by_name(
            lambda n, o=other: [saved(r[n].usage, a[o].usage) for r, a in pairs]  # type: ignore[misc]
        )
    found["for all"] = {
        "over the optimum": _by_name(
            lambda n: [a[n].usage / a["exhaustive"].usage - 1 for a in alone]
        )
    }
    return found


def _by_name(of: Callable[[str], list[float]]) -> Figure:
    return {name: entry(of(name), None) for name in OURS}


def _alone(workload: str, seed: int, queries: int) -> dict[str, Run]:
    """Each query as if it was the only one."""
    where = network_of(128, seed, 32)
    load, demands = WORKLOADS[workload](stubs(where), seed, queries)
    names = ("exhaustive", *OURS, *PHASED)
    return {name: run(name, where, load, demands, reuse=False) for name in names}


def _joins(alone: dict[str, Run]) -> float:
    return fmean(alone[name].joins for name in PHASED)


NEAR = (8, 16, 32, 128)
"""Stub sites, next to one another, among which streams come in and results go out."""


def near(seeds: range, queries: int) -> Figure:
    """Bottom-up beside top-down where sources and sinks are together: figures 6, 8, 15 and 16."""
    return {f"{sites} sites": _near([_runs(s, queries, sites) for s in seeds]) for sites in NEAR}


def _near(runs: Sequence[dict[str, Run]]) -> Figure:
    pairs = [(one["bottom-up"], one["top-down"]) for one in runs]
    sizes = [saved(one["64"].usage, one["8"].usage) for one in runs]
    return {
        "bottom-up examines less": entry([saved(b.examined, t.examined) for b, t in pairs], 0.67),
        "bottom-up takes less time": entry([saved(b.seconds, t.seconds) for b, t in pairs], 0.70),
        "bottom-up uses more": entry([b.usage / t.usage - 1 for b, t in pairs], None),
        "max_cs 64 saves it against 8": entry(sizes, 0.21),
    }


def _runs(seed: int, queries: int, sites: int) -> dict[str, Run]:
    """Both in clusters of 16, and bottom-up in smaller and larger ones."""
    found = {}
    settings = (("top-down", 16), ("bottom-up", 16), ("bottom-up", 8), ("bottom-up", 64))
    for strategy, max_cs in settings:
        where = network_of(128, seed, max_cs)
        load, demands = WORKLOADS["synthetic"](neighbours(where, seed, sites), seed, queries)
        name = strategy if max_cs == 16 else str(max_cs)
        found[name] = run(strategy, where, load, demands)
    return found


def neighbours(where: Place, seed: int, sites: int) -> list[str]:
    """So many stub sites, the nearest to one of them."""
    names = stubs(where)
    centre = where.network.index[names[seed % len(names)]]
    rows = [where.network.index[name] for name in names]
    order = np.argsort(where.network.distances[centre][rows], kind="stable")
    return [names[int(at)] for at in order[:sites]]
