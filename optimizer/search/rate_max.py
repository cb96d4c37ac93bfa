"""`rate-max`: the joins of the highest estimated rate, bottom-up (Viglas 4.2.1).

Dynamic programming over bushy trees: of each set of streams, the join with the largest local
estimate, which is then the rate of an input of the next.  For the first results, the time t_p that
the estimate needs is not known: that of the plan found is tried next.
"""

from typing import TYPE_CHECKING

import numpy as np

from optimizer.cost.rate.local import Local, input_rate
from optimizer.cost.rate.sets import MOST, Sets

if TYPE_CHECKING:
    from optimizer.cost.rate.tree import Node
    from optimizer.memo import Memo

ROUNDS = 3


def rate_max(memo: "Memo") -> None:
    """Propose the plan of the largest estimate, for the time that the objective names."""
    judge = memo.judge
    if not memo.takes(len(judge.load.streams), MOST):
        return
    sets, objective = Sets(judge.load, judge.servers), judge.objective
    horizon = objective.by or judge.soonest(objective.first or 0.0)
    before = None
    for _ in range(1 if objective.by else ROUNDS):
        plan, rate, examined = highest(sets, horizon)
        memo.examined += examined
        if plan == before:
            return
        found, before = memo.propose(plan, rate), plan
        if not found.value:
            return
        horizon = found.value


def highest(sets: Sets, horizon: float) -> "tuple[Node, float, int]":
    """The plan of the highest estimate, that estimate, and how many joins were looked at."""
    local = Local(sets, horizon)
    rates, chosen, examined = np.zeros(sets.full + 1), {}, 0
    for i, node in enumerate(sets.inputs):
        rates[1 << i] = input_rate(node, sets.load)
    for mask in sets.joined():
        left = sets.splits(mask)
        found = local.joins(mask, left, (rates[left], rates[mask ^ left]))
        best = int(np.argmax(found))
        rates[mask], chosen[mask] = found[best], int(left[best])
        examined += left.size
    return sets.tree(sets.full, chosen), float(rates[sets.full]), examined
