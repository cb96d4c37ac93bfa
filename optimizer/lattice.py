"""Probe orders of many inputs, in arrays: all sets of inputs at once, or the best few of each size.

Under CQL's windows what reaches a set of inputs, and what it costs to go on from there, does not
depend on the order so far: a probe order is a path through the lattice of sets.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from optimizer.cost.dual import Steps
from optimizer.plan import Order

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WIDTH = 8
"""Sets of each size that a beam goes on from."""

CAP = 1e300
"""No step counts for more, so that what overflows can still be told from what is impossible."""


def exact(steps: Steps) -> tuple[Order, ...]:
    """For each input the cheapest of all orders."""
    sizes = np.array(steps.lifted(_products(steps.sizes, steps.partners).tolist()))
    following = _following(sizes, steps)
    return tuple(_follow(start, following) for start in range(len(steps.sizes)))


def _products(terms: Sequence[float], partners: Sequence[dict[int, float]]) -> Floats:
    """Of the terms of each set, and of the selectivities inside it."""
    products = np.ones(1)
    for newest, term in enumerate(terms):
        crossing = np.array([term])
        for other in range(newest):
            selectivity = partners[newest].get(other, 1.0)
            crossing = np.concatenate((crossing, crossing * selectivity))
        with np.errstate(all="ignore"):
            products = np.concatenate((products, products * crossing))
    return products


@lru_cache(maxsize=8)
def _levels(n: int) -> tuple[tuple[Ints, Ints], ...]:
    """Sets that lack one input, two, and so on; and each with each input besides."""
    sets = np.arange(1 << n)
    sizes = np.bitwise_count(sets)
    levels = (sets[sizes == size] for size in range(n - 1, 0, -1))
    return tuple((level, level[:, None] | 1 << np.arange(n)) for level in levels)


def _following(flows: Floats, steps: Steps) -> Ints:
    """For each set of inputs, the one to probe next; `flows` is what has reached each set."""
    still, following = np.zeros(len(flows)), np.zeros(len(flows), dtype=np.int64)
    for level, after in _levels(len(steps.sizes)):
        costs = _step(flows[level, None], flows[after], steps) + still[after]
        costs[after == level[:, None]] = np.inf
        following[level] = costs.argmin(axis=1)
        still[level] = costs.min(axis=1)
    return following


def _step(flow: Floats, after: Floats, steps: Steps) -> Floats:
    """What it takes to make this of that."""
    with np.errstate(all="ignore"):
        work: Floats = steps.match * after + flow * np.array(steps.tolls)
        return np.minimum(np.nan_to_num(work, nan=CAP), CAP)


def _follow(start: int, following: Ints) -> Order:
    reached, order = 1 << start, []
    while reached != len(following) - 1:
        order.append(int(following[reached]))
        reached |= 1 << order[-1]
    return tuple(order)


# --- a beam --------------------------------------------------------------------------------------


def beam(steps: Steps) -> tuple[Order, ...]:
    """For each input a good order: of each size, the sets go on that are cheapest to leave.

    What a set has cost so far says little without what flows out of it, for that is what all
    further steps multiply: both count.
    """
    n = len(steps.sizes)
    selectivities, starts = _matrix(steps), np.arange(n)
    joined = np.eye(n, dtype=bool)[:, None]
    yields = (selectivities * np.array(steps.sizes))[:, None]
    cost, flow = np.zeros((n, 1)), np.ones((n, 1))
    orders = np.zeros((n, 1, 0), dtype=np.int64)
    worth = steps.match + max(steps.tolls)
    for _ in range(n - 1):
        with np.errstate(all="ignore"):
            after = flow[:, :, None] * yields
            leaving = np.minimum(np.nan_to_num(worth * after, nan=CAP), CAP)
        costs = cost[:, :, None] + _step(flow[:, :, None], after, steps)
        costs[joined] = np.inf
        ways = _best(costs + leaving, joined)
        beams, probed = np.divmod(ways, n)
        rows = starts[:, None]
        cost, flow = costs[rows, beams, probed], after[rows, beams, probed]
        joined = joined[rows, beams] | np.eye(n, dtype=bool)[probed]
        yields = yields[rows, beams] * selectivities[probed]
        orders = np.concatenate((orders[rows, beams], probed[:, :, None]), axis=2)
    chosen = orders[starts, cost.argmin(axis=1)]
    return tuple(tuple(map(int, order)) for order in chosen)


def _matrix(steps: Steps) -> Floats:
    found = np.ones((len(steps.sizes), len(steps.sizes)))
    for one, partners in enumerate(steps.partners):
        for other, selectivity in partners.items():
            found[one, other] = selectivity
    return found


def _best(scores: Floats, joined: NDArray[np.bool_]) -> Ints:
    """For each start the best few ways to go on, each set that they lead to once."""
    n = scores.shape[2]
    flat = scores.reshape(n, -1)
    most = min(2 * WIDTH, flat.shape[1])
    ways = np.argpartition(flat, most - 1, axis=1)[:, :most]
    ways = np.take_along_axis(ways, np.take_along_axis(flat, ways, 1).argsort(axis=1), 1)
    beams, probed = np.divmod(ways, n)
    names = np.cumprod(np.full(n, 6364136223846793005, dtype=np.uint64))
    sets = (joined @ names)[np.arange(n)[:, None], beams] + names[probed]
    again = (sets[:, :, None] == sets[:, None, :]) & np.tri(most, k=-1, dtype=bool)
    ways = np.take_along_axis(ways, again.any(axis=2).argsort(axis=1, kind="stable"), 1)
    return ways[:, :WIDTH]
