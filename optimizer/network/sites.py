"""Sites and what lies between them, as values; distances are computed elsewhere and given here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Matrix: TypeAlias = npt.NDArray[np.float64]
Indices: TypeAlias = npt.NDArray[np.int64]


class NoSiteError(ValueError):
    """No site is left that may take the operators."""


@dataclass(frozen=True)
class Site:
    """A place where operators may run."""

    capacity: float = inf
    """So many operators it takes at most; 0: it is unfit for any."""
    load: float = 0.0
    """What every byte a second that an operator reads here costs, besides its transport."""


@dataclass(frozen=True)
class Link:
    """Two sites that are connected directly."""

    between: tuple[str, str]
    latency: float
    cost: float | None = None
    """What a byte costs; by default as much as its latency."""

    def weight(self, measure: str) -> float:
        """The latency, or the cost."""
        return self.latency if measure == "latency" or self.cost is None else self.cost


@dataclass(frozen=True, eq=False)
class Network:
    """Sites by name, and the shortest distance between any two."""

    sites: Mapping[str, Site]
    distances: Matrix
    """Where there is no path, more than any path is long."""
    before: Indices
    """The last site but one on the shortest path from a row's site to a column's; -9999: none."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """In the order of the rows."""
        return tuple(self.sites)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """A site's row."""
        return {name: row for row, name in enumerate(self.sites)}

    @cached_property
    def loads(self) -> Matrix:
        """What reading a byte a second costs at each site."""
        return np.array([site.load for site in self.sites.values()], dtype=float)

    def distance(self, one: str, other: str) -> float:
        """Of the shortest path."""
        return float(self.distances[self.index[one], self.index[other]])

    def reaches(self, one: str, other: str) -> bool:
        """Whether there is a path."""
        return one == other or bool(self.before[self.index[one], self.index[other]] >= 0)

    def path(self, one: str, other: str) -> list[str]:
        """The sites of the shortest path, both ends included."""
        first, last = self.index[one], self.index[other]
        found = [last]
        while found[-1] != first:
            found.append(int(self.before[first, found[-1]]))
        return [self.names[row] for row in reversed(found)]

    def room(self, used: Mapping[str, int]) -> Matrix:
        """How many operators each site still takes."""
        rooms = [site.capacity - used.get(name, 0) for name, site in self.sites.items()]
        found: Matrix = np.maximum(np.array(rooms, dtype=float), 0.0)
        return found


def rows(numbers: Sequence[int]) -> Indices:
    """Sites as an array of rows."""
    found: Indices = np.array(numbers, dtype=np.int64)
    return found
