"""How often heuristics pick what the exact model picks, and how often that wins the simulation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf
from random import Random
from statistics import fmean
from typing import Any

from jobs import show
from jobs.queueing import TooManyError
from jobs.rating.simulated import simulated
from optimizer.cost.rate.judge import Judge
from optimizer.cost.rate.load import Edge, Feed, Match, RateLoad, UnitCosts
from optimizer.cost.rate.objective import Objective
from optimizer.cost.rate.tree import Node
from optimizer.memo import Memo
from optimizer.search import RATES, SEARCHES
from tests.optimizer.search.cases import case

HORIZON = 30.0
ALIKE = 2e-3
"""Results that differ by less are alike: the grid's error."""


@dataclass(frozen=True)
class Choice:
    """What a strategy picked: its results by the model, and simulated."""

    plan: Node
    results: float
    simulated: float | None


def draw(seed: int) -> RateLoad:
    """Three to six streams, rates over two decades; half with an expensive join, half with ends.

    A tuple has half a partner to three on each edge, in all that arrives.
    """
    random = Random(seed)
    names = list("ABCDEF"[: random.randint(3, 6)])
    ends = random.random() < 0.5
    feeds = {name: _feed(random, ends=ends) for name in names}
    edges = {frozenset((names[i], names[random.randrange(i)])) for i in range(1, len(names))}
    edges |= {e for e in map(frozenset, combinations(names, 2)) if random.random() < 0.1}
    joins = {e: Match(_share(e, feeds, random)) for e in sorted(edges, key=sorted)}
    if random.random() < 0.5:
        slow = random.choice(list(joins))
        joins[slow] = Match(joins[slow].selectivity, 10 ** random.uniform(-3, -2))
    return RateLoad(feeds, joins, UnitCosts(move=10 ** random.uniform(-3.5, -2.3)))


def _feed(random: Random, *, ends: bool) -> Feed:
    rate = 10 ** random.uniform(0.7, 2.7)
    return Feed(rate, float(round(rate * random.uniform(3, 40))) if ends else inf)


def _share(edge: Edge, feeds: Mapping[str, Feed], random: Random) -> float:
    most = max(feeds[name].rate * min(HORIZON, feeds[name].end) for name in edge)
    return min(random.uniform(0.5, 3.0) / most, 1.0)


def queries(count: int, runs: int) -> dict[str, Any]:
    """All of them, by strategy."""
    found = []
    with show.progress("random queries") as told:
        for seed in range(count):
            found.append(_compared(draw(seed), runs))
            told(seed + 1, count)
    names = [name for name in RATES if name != "exact"]
    return {
        "queries": count,
        "runs": runs,
        "horizon_seconds": HORIZON,
        "strategies": {name: _summary(name, found) for name in names},
        "exact_is_best_simulated": _best(found),
    }


def _compared(load: RateLoad, runs: int) -> dict[str, Choice]:
    judge = Judge(load, Objective(by=HORIZON))
    picked = {name: plan for name in RATES if (plan := _picked(name, load, judge)) is not None}
    made = {plan: _simulated(judge, plan, runs) for plan in set(picked.values())}
    return {
        name: Choice(plan, judge.value(plan) or 0.0, made[plan]) for name, plan in picked.items()
    }


def _picked(strategy: str, load: RateLoad, judge: Judge) -> Node | None:
    rates = {name: feed.rate for name, feed in load.streams.items()}
    joins = {"-".join(sorted(edge)): m.selectivity for edge, m in load.joins.items()}
    given = case(rates, joins)
    memo = Memo(given.query, given.workload, judge=judge)
    SEARCHES[strategy](memo)
    return memo.rated.plan if memo.rated else None


def _simulated(judge: Judge, plan: Node, runs: int) -> float | None:
    try:
        return simulated(judge, plan, runs, 1).value.mean
    except TooManyError:
        return None


def _summary(name: str, found: Sequence[Mapping[str, Choice]]) -> dict[str, Any]:
    both = [(one[name], one["exact"]) for one in found if name in one]
    losses = [max(0.0, 1 - c.results / best.results) if best.results else 0.0 for c, best in both]
    simulated_losses = [
        1 - c.simulated / best.simulated
        for c, best in both
        if c.simulated is not None and best.simulated
    ]
    return {
        "queries": len(both),
        "same_plan": sum(c.plan == best.plan for c, best in both),
        "as_good": sum(loss <= ALIKE for loss in losses),
        "mean_loss": fmean(losses) if losses else 0.0,
        "worst_loss": max(losses, default=0.0),
        "simulated_mean_loss": fmean(simulated_losses) if simulated_losses else 0.0,
    }


def _best(found: Sequence[Mapping[str, Choice]]) -> dict[str, int]:
    """How often no other strategy's plan has more results in the simulation, by 1 %."""
    known = [one for one in found if all(c.simulated is not None for c in one.values())]
    won = sum(
        all((c.simulated or 0.0) <= 1.01 * (one["exact"].simulated or 0.0) for c in one.values())
        for one in known
    )
    return {"queries": len(known), "won": won}
