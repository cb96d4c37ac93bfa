"""`cardinality`: the traditional model, by which inputs are handled as if all were there at once.

The work of every operator over the whole of its inputs; for streams without an end it has no
answer, as every plan's work is without one, too (Viglas 1 and 5.4).
"""

from typing import TYPE_CHECKING

import numpy as np

from optimizer.cost.rate.sets import MOST, Sets
from optimizer.cost.rate.tree import Input, Servers, order
from optimizer.estimate import bits

if TYPE_CHECKING:
    from optimizer.cost.rate.judge import Judge
    from optimizer.cost.rate.servers import Floats
    from optimizer.cost.rate.tree import Node
    from optimizer.memo import Memo


def cardinality(memo: "Memo") -> None:
    """Propose the plan of the least work, selects by rank."""
    load = memo.judge.load
    if not load.finite:
        endless = next(name for name, feed in load.streams.items() if feed.tuples == np.inf)
        memo.stopped = f"stream {endless} has no end, and no cardinality"
    elif memo.takes(len(load.streams), MOST):
        plan, work, examined = cheapest(Sets(load, Servers.ONE), memo.judge)
        memo.examined += examined
        memo.propose(plan, work)


def cheapest(sets: Sets, judge: "Judge") -> "tuple[Node, float, int]":
    """The plan of the least work, that work in seconds, and how many joins were looked at."""
    sizes, chosen, examined = totals(sets, judge), {}, 0
    work, costs = np.zeros(sets.full + 1), sets.load.costs
    for i, node in enumerate(sets.inputs):
        work[1 << i] = input_work(node, sets.load.streams[node.alias].tuples)
    for mask in sets.joined():
        left = sets.splits(mask)
        one, other = sizes[left], sizes[mask ^ left]
        _, extra = sets.crossing(mask, left)
        handled = (costs.tuple + extra) * (one + other) + costs.pair * one * other
        found = work[left] + work[mask ^ left] + handled
        best = int(np.argmin(found))
        work[mask], chosen[mask] = found[best], int(left[best])
        examined += left.size
    return sets.tree(sets.full, chosen), float(work[sets.full]), examined


def totals(sets: Sets, judge: "Judge") -> "Floats":
    """The tuples that each set will ever have put out."""
    feeds = sets.load.streams.values()
    if sets.load.bounds is None:
        return np.asarray(sets.shares() * sets.products([feed.tuples for feed in feeds]))
    members = ([sets.names[i] for i in bits(mask)] for mask in range(sets.full + 1))
    return np.asarray(sets.shares() * np.array([judge.everything(names) for names in members]))


def input_work(node: Input, tuples: float) -> float:
    """Of a stream's selects over all its tuples."""
    work = 0.0
    for select in order(node.selects, Servers.ONE):
        work, tuples = work + select.cost * tuples, tuples * select.selectivity
    return work


def plan_work(node: "Node", judge: "Judge") -> float:
    """The work of a plan: what the model says of those that others chose."""
    sets = Sets(judge.load, Servers.ONE)
    sizes = totals(sets, judge)

    def below(part: "Node") -> float:
        if isinstance(part, Input):
            return input_work(part, judge.load.streams[part.alias].tuples)
        left, right = (sets.mask(side.aliases) for side in (part.left, part.right))
        _, extra = sets.crossing(left | right, np.array([left]))
        costs = judge.load.costs
        handled = (costs.tuple + float(extra[0])) * (sizes[left] + sizes[right])
        pairs = costs.pair * sizes[left] * sizes[right]
        return below(part.left) + below(part.right) + float(handled + pairs)

    return below(node)
