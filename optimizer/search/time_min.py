"""`time-min`: the joins that reach the results asked of each the soonest, top-down (Viglas 4.2.2).

Of a wanted share s of all results, a join asks sqrt(s) of all that each side will ever put out:
n_A = sqrt(s) |A|.  (As printed, sqrt(s f f) |A|, the join's own selectivity is left out of what the
other side brings.)  Streams without an end count as far as they have come when the results could be
there, so that both sides need the same time.  A plan's cost is the latest of its joins' n / r, and
the smaller cost is kept: the printed `min` keeps the larger.
"""

from typing import TYPE_CHECKING

import numpy as np

from optimizer.cost.rate.local import Local, input_rate
from optimizer.cost.rate.servers import Floats
from optimizer.cost.rate.sets import MOST, Masks, Sets

if TYPE_CHECKING:
    from optimizer.cost.rate.judge import Judge
    from optimizer.cost.rate.tree import Node
    from optimizer.memo import Memo

ROUNDS = 2


def time_min(memo: "Memo") -> None:
    """Propose the plan whose slowest join is done first, for the results that are wanted."""
    judge = memo.judge
    if not memo.takes(len(judge.load.streams), MOST):
        return
    sets, objective = Sets(judge.load, judge.servers), judge.objective
    results = objective.first or judge.arrived(objective.by or 0.0)
    horizon = objective.by or judge.soonest(results)
    before = None
    for _ in range(ROUNDS):
        plan, seconds, examined = soonest(sets, judge, results, horizon)
        memo.examined += examined
        if plan == before:
            return
        found, before = memo.propose(plan, seconds), plan
        if not found.value:
            return
        results, horizon = (found.value, horizon) if objective.by else (results, found.value)


def soonest(
    sets: Sets, judge: "Judge", results: float, horizon: float
) -> "tuple[Node, float, int]":
    """The plan of the least time, that time, and how many joins were looked at.

    Down a plan, of every side the root of the share above is asked: so all that is wanted of a set
    depends on its depth, and the tables hold a row for each.
    """
    local, depths = Local(sets, horizon), len(sets.names)
    wanted = asked(sets, judge, results)
    rates, times = (np.zeros((depths, sets.full + 1)) for _ in range(2))
    chosen: dict[tuple[int, int], int] = {}
    for i, node in enumerate(sets.inputs):
        rates[:, 1 << i] = input_rate(node, sets.load)
    examined = 0
    for mask in sets.joined():
        left, levels = sets.splits(mask), depths - mask.bit_count() + 1
        below = slice(1, levels + 1)
        sides = rates[below, left], rates[below, mask ^ left]
        reached = local.joins(mask, left, sides)
        own = np.divide(wanted[:levels, mask, None], reached, where=reached > 0,
                        out=np.full_like(reached, np.inf))  # fmt: skip
        latest = np.maximum(own, np.maximum(times[below, left], times[below, mask ^ left]))
        best, rows = _first_least(latest, reached), np.arange(levels)
        times[:levels, mask], rates[:levels, mask] = latest[rows, best], reached[rows, best]
        chosen |= {(mask, int(depth)): int(left[best[depth]]) for depth in rows}
        examined += left.size
    return _tree(sets, sets.full, 0, chosen), float(times[0, sets.full]), examined


def _first_least(latest: Floats, reached: Floats) -> Masks:
    """The least time; of those, the highest rate."""
    least = latest.min(axis=1, keepdims=True)
    return np.asarray(np.argmax(np.where(latest <= least, reached, -1.0), axis=1))


def asked(sets: Sets, judge: "Judge", results: float) -> Floats:
    """What is wanted of each set at each depth: s^(1 / 2^depth) of all that it puts out."""
    load = sets.load
    horizon = np.inf if load.finite else judge.soonest(results)
    sizes = [feed.rate * min(horizon, feed.end) for feed in load.streams.values()]
    everything = sets.shares() * sets.products(sizes)
    total = everything[sets.full]
    share = min(results / total, 1.0) if total else 1.0
    roots = share ** (0.5 ** np.arange(len(sets.names)))
    found: Floats = roots[:, None] * everything
    return found


def _tree(sets: Sets, mask: int, depth: int, chosen: dict[tuple[int, int], int]) -> "Node":
    from optimizer.cost.rate.tree import Meet

    if mask.bit_count() == 1:
        return sets.inputs[mask.bit_length() - 1]
    left = chosen[mask, depth]
    one, other = (_tree(sets, side, depth + 1, chosen) for side in (left, mask ^ left))
    return Meet(one, other)
