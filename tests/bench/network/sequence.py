"""A sequence of queries planned by each strategy, and what that came to."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean, stdev
from time import process_time
from typing import Any

from jobs.network.session import Place, Session
from optimizer.network.load import Demand, Load
from optimizer.network.placement import NETWORK_PLACEMENTS
from tests.bench.network.workloads import enterprise, place, stubs, synthetic

Make = Callable[[Sequence[str], int, int], tuple[Load, list[Demand]]]
WORKLOADS: dict[str, Make] = {"synthetic": synthetic, "enterprise": enterprise}


@dataclass(frozen=True)
class Run:
    """What a strategy came to over a sequence."""

    usage: float
    examined: int
    evaluated: int
    space: int
    joins: int
    filters: int
    reused: int
    seconds: float
    cumulative: tuple[float, ...]

    @property
    def space_share(self) -> float:
        return self.examined / self.space


def run(
    strategy: str, where: Place, load: Load, demands: Iterable[Demand], *, reuse: bool = True
) -> Run:
    """Deploy the queries one after another; without reuse each as if it was the only one."""
    session = begun = replace(Session.begin(where, load, strategy), clock=process_time)
    sums, total, joins = [], 0.0, 0
    for demand in demands:
        session = replace(session, deployed=session.deployed if reuse else begun.deployed)
        session = session.deploy(demand)
        joins += len(session.plans[demand.name][0].nodes) - 1
        total += session.plans[demand.name][0].usage
        sums.append(total)
    plans = [done for done, _ in session.plans.values()]
    return Run(
        total,
        sum(p.effort.examined for p in plans),
        sum(p.effort.evaluated for p in plans),
        sum(p.space for p in plans),
        joins,
        len(session.deployed.filters()),
        sum(len(p.reused) for p in plans),
        fmean(seconds for _, seconds in session.plans.values()),
        tuple(sums),
    )


@cache
def network_of(sites: int, seed: int, max_cs: int) -> Place:
    """A network, made once for all that is measured on it."""
    return place(sites, seed, max_cs)


def all_strategies(
    workload: str, seed: int, queries: int, sites: int = 128, max_cs: int = 32,
    names: Iterable[str] = tuple(NETWORK_PLACEMENTS), **settings: Any,
) -> dict[str, Run]:  # fmt: skip
    """Each strategy over the same sequence on the same network."""
    where = network_of(sites, seed, max_cs)
    load, demands = WORKLOADS[workload](stubs(where), seed, queries, **settings)
    return {name: run(name, where, load, demands) for name in names}


def spread(values: Sequence[float]) -> dict[str, float]:
    """The mean over the seeds, and how far they differ."""
    return {"mean": fmean(values), "spread": stdev(values) if len(values) > 1 else 0.0}
