"""Every set of streams as a number, and what the searches need of each, in arrays."""

from collections.abc import Iterator
from functools import cached_property
from math import log, prod

import numpy as np
from numpy.typing import NDArray

from optimizer.cost.rate.load import Edge, RateLoad
from optimizer.cost.rate.servers import Floats
from optimizer.cost.rate.tree import Input, Meet, Node, Servers, order
from optimizer.estimate import bits

Masks = NDArray[np.int64]
MOST = 16
"""Streams; with more, the time outgrows patience."""


class Sets:
    """The sets of a load's streams: bit i stands for the i-th."""

    def __init__(self, load: RateLoad, servers: Servers = Servers.EACH) -> None:
        self.load = load
        self.names = tuple(load.streams)
        self.full = (1 << len(self.names)) - 1
        self.inputs = [
            Input(name, order(feed.selects, servers)) for name, feed in load.streams.items()
        ]

    @cached_property
    def joins(self) -> dict[int, tuple[float, float]]:
        """Share and cost of the predicates, by the two streams that each joins."""
        return {self.mask(e): (m.selectivity, m.cost) for e, m in self.load.joins.items()}

    def mask(self, names: Edge) -> int:
        """The set of those streams."""
        return sum(1 << self.names.index(name) for name in names)

    @cached_property
    def connected(self) -> NDArray[np.bool_]:
        """Which sets predicates connect; all of them where they do not connect the query."""
        found = np.zeros(self.full + 1, dtype=np.bool_)
        for mask in range(1, self.full + 1):
            found[mask] = self._reached(mask) == mask
        return found if found[self.full] else np.ones_like(found)

    def _reached(self, mask: int) -> int:
        reached = front = mask & -mask
        while front:
            near = 0
            for i in bits(front):
                near |= self._near[i]
            front = near & mask & ~reached
            reached |= front
        return reached

    @cached_property
    def _near(self) -> list[int]:
        found = [0] * len(self.names)
        for edge in self.joins:
            one, other = bits(edge)
            found[one] |= 1 << other
            found[other] |= 1 << one
        return found

    @cached_property
    def _inside(self) -> tuple[Floats, Floats, Floats]:
        """By set, of the predicates inside: the log of their share, those of share 0, the cost."""
        everything = np.arange(self.full + 1)
        logs, zeros, costs = (np.zeros(self.full + 1) for _ in range(3))
        for edge, (share, cost) in self.joins.items():
            inside = (everything & edge) == edge
            logs[inside] += log(share) if share else 0.0
            zeros[inside] += share == 0
            costs[inside] += cost
        return logs, zeros, costs

    def crossing(self, mask: int, left: Masks) -> tuple[Floats, Floats]:
        """Share and cost of the predicates between parts of a set and the rest of it."""
        logs, zeros, costs = (kind[mask] - kind[left] - kind[mask ^ left] for kind in self._inside)
        return np.where(zeros > 0.5, 0.0, np.exp(logs)), np.maximum(costs, 0.0)

    def splits(self, mask: int) -> Masks:
        """The left sides of all joins that make a set: its first stream is on the left."""
        first, *others = bits(mask)
        left = np.array([1 << first], dtype=np.int64)
        for i in others:
            left = np.concatenate([left, left | 1 << i])
        left = left[left != mask]
        found: Masks = left[self.connected[left] & self.connected[mask ^ left]]
        return found

    def joined(self) -> Iterator[int]:
        """The connected sets of two streams and more, the smaller ones first."""
        sizes = sorted(range(1, self.full + 1), key=int.bit_count)
        return (mask for mask in sizes if mask.bit_count() > 1 and self.connected[mask])

    def shares(self) -> Floats:
        """By set, the share of its combinations that are results."""
        logs, zeros, _ = self._inside
        found = np.where(zeros > 0.5, 0.0, np.exp(logs))
        for i, name in enumerate(self.names):
            found[np.arange(self.full + 1) >> i & 1 == 1] *= self.load.streams[name].selectivity
        return found

    def products(self, of: list[float]) -> Floats:
        """By set, the product of a figure of its streams."""
        everything = range(self.full + 1)
        return np.array([prod(of[i] for i in bits(mask)) for mask in everything])

    def tree(self, mask: int, chosen: dict[int, int]) -> Node:
        """The joins by the left side chosen for each set."""
        if mask.bit_count() == 1:
            return self.inputs[mask.bit_length() - 1]
        left = chosen[mask]
        return Meet(self.tree(left, chosen), self.tree(mask ^ left, chosen))
