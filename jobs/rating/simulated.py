"""The simulation of a plan for output rates, to stand beside what the model predicts."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from jobs import queueing
from jobs.queueing import Made, Spread
from optimizer.cost.rate.judge import Judge
from optimizer.cost.rate.load import RateLoad
from optimizer.cost.rate.tree import Input, Node
from optimizer.window import MICROSECONDS

PATIENCE = 6
"""How often a horizon is doubled until a run has as many results as were asked for."""


@dataclass(frozen=True)
class Simulated:
    """Some runs: the mean of what was asked for, and how far runs are apart."""

    value: Spread
    runs: tuple[Made, ...]


def simulated(
    judge: Judge,
    plan: Node,
    runs: int,
    seed: int,
    told: Callable[[int, int], None] = lambda _done, _total: None,
) -> Simulated:
    """Runs of one plan, each with a seed of its own."""
    made: list[Made] = []
    horizon = judge.objective.by or 2 * (judge.value(plan) or 0.0)
    for number in range(runs if horizon else 0):
        made.append(_run(judge, plan, horizon, seed + number))
        told(number + 1, runs)
    return Simulated(Spread.of([_value(judge, one) for one in made]), tuple(made))


def _run(judge: Judge, plan: Node, horizon: float, seed: int) -> Made:
    servers = queueing.Servers(judge.servers.value)
    network, windows = operators(plan, judge.load), limits(judge.load)
    for _ in range(PATIENCE):
        made = queueing.simulate(network, horizon, seed, servers, windows)
        if judge.objective.by is not None or _value(judge, made) is not None:
            break
        horizon *= 2
    return made


def _value(judge: Judge, made: Made) -> float | None:
    if judge.objective.by is not None:
        return float(made.by(judge.objective.by))
    return made.to(judge.objective.first or 0.0)


def operators(plan: Node, load: RateLoad) -> queueing.Operator:
    """The same plan for the simulator."""
    found: queueing.Operator
    if isinstance(plan, Input):
        feed = load.streams[plan.alias]
        found = queueing.Source(plan.alias, feed.rate, feed.tuples)
    else:
        crossing = load.between(plan.left.aliases, plan.right.aliases)
        applied = [match for edge, match in crossing if edge not in plan.lifted]
        cost = load.costs.tuple + sum(match.cost for match in applied)
        share = prod(match.selectivity for match in applied)
        left, right = operators(plan.left, load), operators(plan.right, load)
        found = queueing.Join(left, right, share, cost, load.costs.pair)
    for select in plan.selects:
        found = queueing.Filter(found, select.selectivity, select.cost)
    return found


def limits(load: RateLoad) -> queueing.Windows | None:
    """How much newer than another each stream's tuple may be."""
    if load.bounds is None:
        return None
    names = load.bounds.names
    pairs = ((one, other) for one in names for other in names if one != other)
    return {pair: load.bounds[pair] / MICROSECONDS for pair in pairs}
