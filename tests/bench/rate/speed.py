"""CPU time of the searches, of a curve, and of a million simulated events."""

from itertools import combinations
from random import Random
from statistics import median
from time import process_time
from typing import Any

from jobs.queueing import Join, Source, simulate
from optimizer.cost.rate.judge import Judge
from optimizer.cost.rate.load import Feed, Match, RateLoad, UnitCosts
from optimizer.cost.rate.objective import Objective
from optimizer.memo import Memo
from optimizer.search import SEARCHES
from tests.optimizer.cost.rates import five, plan
from tests.optimizer.search.cases import case

TARGETS = {
    ("rate-max", 8): 0.05, ("time-min", 8): 0.05, ("rate-max", 12): 1.0, ("time-min", 12): 1.0,
    ("exact", 5): 1.0, ("exact", 6): 20.0, ("exact", 7): None,
}  # fmt: skip
"""Seconds, by strategy and streams; every stream is joined with every other."""


def speed() -> dict[str, Any]:
    """The median of five queries each."""
    rows = []
    for (name, n), target in TARGETS.items():
        times = [_searched(name, n, seed) for seed in range(5)]
        rows.append(
            {"what": f"{name}, {n} streams", "cpu_seconds": median(times), "slowest": max(times),
             "target": target}
        )  # fmt: skip
    return {"rows": [*rows, _curve(), _simulation()]}


def _searched(name: str, n: int, seed: int) -> float:
    load = clique(n, seed)
    rates = {alias: feed.rate for alias, feed in load.streams.items()}
    given = case(rates, {"-".join(sorted(e)): m.selectivity for e, m in load.joins.items()})
    memo = Memo(given.query, given.workload, judge=Judge(load, Objective(by=30.0)))
    begun = process_time()
    SEARCHES[name](memo)
    return process_time() - begun


def clique(n: int, seed: int) -> RateLoad:
    """Every stream is joined with every other."""
    random = Random(seed)
    feeds = {chr(ord("A") + i): Feed(10 ** random.uniform(1, 2)) for i in range(n)}
    joins = {
        frozenset(pair): Match(random.uniform(0.3, 0.9) ** (8 / n))
        for pair in combinations(feeds, 2)
    }
    return RateLoad(feeds, joins, UnitCosts(move=0.002))


def _curve() -> dict[str, Any]:
    given = five(0.0016)
    judge, node = Judge(given, Objective(by=100.0)), plan("((((A B) C) D) E)", given)
    begun = process_time()
    judge.curve(node, 100.0)
    seconds = process_time() - begun
    return {"what": "a curve of 5 streams", "cpu_seconds": seconds, "slowest": seconds,
            "target": 0.05}  # fmt: skip


def _simulation() -> dict[str, Any]:
    times = []
    windows = {("A", "B"): 5.0, ("B", "A"): 5.0}
    join = Join(Source("A", 25_000), Source("B", 25_000), 1e-6, 1e-6)
    for kept in (None, windows):
        simulate(Join(Source("A", 5), Source("B", 5), 0.5), 1, 1, windows=kept)
        begun = process_time()
        simulate(join, 20, 1, windows=kept)
        times.append(process_time() - begun)
    return {"what": "a million events, without and with windows", "cpu_seconds": min(times),
            "slowest": max(times), "target": 10.0}  # fmt: skip
