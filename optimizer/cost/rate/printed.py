"""The model as printed: equations 2 and 3, nested over a plan whose inputs never end.

Equation 2 is the mean rate since the start, and equation 3 integrates it as if it were the rate at
each time: of the results of k streams it counts one in k (see `exact.py`).
"""

import numpy as np

from optimizer.cost.rate.load import Filter, RateLoad
from optimizer.cost.rate.servers import Floats
from optimizer.cost.rate.tree import Input, Meet, Node

NODES, WEIGHTS = np.polynomial.legendre.leggauss(5)


def select_rate(rate: Floats, select: Filter) -> Floats:
    """Section 3.2: f r, or f / C once a tuple takes longer than the next one needs to come."""
    slow = 1 / select.cost if select.cost else np.inf
    return select.selectivity * np.minimum(rate, slow)


def busy(left: Floats, right: Floats, times: Floats, load: RateLoad, extra: float) -> Floats:
    """r_l C_l + r_r C_r, by Table 3: what a nested loop compares grows with time."""
    costs = load.costs
    each = costs.tuple + extra
    return left * (each + right * times * costs.pair) + right * (each + left * times * costs.pair)


def rate(node: Node, times: Floats, load: RateLoad) -> Floats:
    """The rate of a plan's output at each time, by equation 2 at every join."""
    if isinstance(node, Input):
        found = np.full_like(times, load.streams[node.alias].rate)
    else:
        found = _joined(node, times, load)
    for select in node.selects:
        found = select_rate(found, select)
    return found


def _joined(node: Meet, times: Floats, load: RateLoad) -> Floats:
    left, right = rate(node.left, times, load), rate(node.right, times, load)
    share, extra = 1.0, 0.0
    for edge, match in load.between(node.left.aliases, node.right.aliases):
        if edge not in node.lifted:
            share, extra = share * match.selectivity, extra + match.cost
    return share * left * right * times / np.maximum(busy(left, right, times, load, extra), 1.0)


def outputs(node: Node, times: Floats, load: RateLoad) -> Floats:
    """Equation 3: the integral of that rate from zero to each time, by parts of the grid."""
    low, half = times[:-1], np.diff(times) / 2
    at = low + half * (1 + NODES[:, None])
    rates = rate(node, at.ravel(), load).reshape(at.shape)
    return np.concatenate([[0.0], np.cumsum(half * (WEIGHTS @ rates))])


def saturated(node: Node, times: Floats, load: RateLoad) -> list[tuple[str, float]]:
    """The joins and selects that are given more than they can handle, and from when on."""
    found = [] if isinstance(node, Input) else saturated(node.left, times, load)
    found += [] if isinstance(node, Input) else saturated(node.right, times, load)
    if isinstance(node, Meet):
        inputs = rate(node.left, times, load), rate(node.right, times, load)
        crossing = load.between(node.left.aliases, node.right.aliases)
        extra = sum(match.cost for edge, match in crossing if edge not in node.lifted)
        found += _first(str(node), busy(*inputs, times, load, extra), times)
        arriving = _bare(node, times, load)
    else:
        arriving = np.full_like(times, load.streams[node.alias].rate)
    for select in node.selects:
        found += _first(f"{node}: {select.name}", arriving * select.cost, times)
        arriving = select_rate(arriving, select)
    return found


def _bare(node: Meet, times: Floats, load: RateLoad) -> Floats:
    return _joined(node, times, load)


def _first(label: str, use: Floats, times: Floats) -> list[tuple[str, float]]:
    late = np.flatnonzero(use > 1 + 1e-9)
    return [(label, float(times[max(int(late[0]) - 1, 0)]))] if late.size else []
