"""The local estimate of 4.2.1: equation 2 at every join, its time a constant, t = t_p / 2.

With windows, a tuple meets those of the window only: t is what a window admits of so many seconds.
"""

from functools import reduce

import numpy as np

from optimizer.cost.rate.load import RateLoad
from optimizer.cost.rate.printed import select_rate
from optimizer.cost.rate.servers import Floats
from optimizer.cost.rate.sets import Masks, Sets
from optimizer.cost.rate.tree import Input, Node
from optimizer.window import MICROSECONDS


def window_time(load: RateLoad, seconds: float) -> float:
    """The pairs within the longest window, a second, of two streams of a tuple a second each."""
    if load.bounds is None:
        return seconds
    longest = max(map(max, load.bounds.matrix)) / MICROSECONDS
    return seconds if seconds <= longest else (2 * longest * seconds - longest**2) / seconds


def input_rate(node: Input, load: RateLoad) -> float:
    """What a stream's selects let through, each by 3.2."""
    arriving = np.array([load.streams[node.alias].rate])
    return float(reduce(select_rate, node.selects, arriving)[0])


class Local:
    """The estimates for a horizon t_p."""

    def __init__(self, sets: Sets, horizon: float) -> None:
        self.sets = sets
        self.time = window_time(sets.load, horizon / 2)

    def joins(self, mask: int, left: Masks, rates: tuple[Floats, Floats]) -> Floats:
        """Equation 2 for every way to join a set, given the rates of both sides."""
        one, other = rates
        share, extra = self.sets.crossing(mask, left)
        costs = self.sets.load.costs
        each, pairs = costs.tuple + extra, costs.pair * self.time
        busy = one * (each + other * pairs) + other * (each + one * pairs)
        return share * one * other * self.time / np.maximum(busy, 1.0)

    def of(self, node: Node) -> float:
        """The estimated rate of a plan."""
        if isinstance(node, Input):
            return input_rate(node, self.sets.load)
        left = np.array([self.sets.mask(node.left.aliases)])
        sides = np.array([self.of(node.left)]), np.array([self.of(node.right)])
        return float(self.joins(self.sets.mask(node.aliases), left, sides)[0])
