"""What a plan for output rates works on: arrivals that may end, selects, joins, unit costs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from math import inf, prod

from optimizer.window import Bounds

Edge = frozenset[str]
"""Two streams that a predicate joins."""


@dataclass(frozen=True)
class Filter:
    """A predicate that one operator applies: the share that passes, seconds for each tuple."""

    name: str
    selectivity: float
    cost: float = 0.0
    of: str = ""
    """The stream that it is about, if it is about one."""

    @property
    def rank(self) -> float:
        """Hellerstein's: the least first is the least work where all share a CPU."""
        if not self.cost:
            return -inf
        return (self.selectivity - 1) / self.cost


@dataclass(frozen=True)
class Feed:
    """A stream: tuples per second, how many there are in all, and its selects as written."""

    rate: float
    tuples: float = inf
    selects: tuple[Filter, ...] = ()

    @property
    def end(self) -> float:
        """Seconds after which nothing arrives any more."""
        return self.tuples / self.rate if self.rate else 0.0

    @property
    def selectivity(self) -> float:
        """Of all its selects together."""
        return prod(select.selectivity for select in self.selects)


@dataclass(frozen=True)
class Match:
    """The predicate between two streams: the share of pairs, seconds more for each input."""

    selectivity: float
    cost: float = 0.0


@dataclass(frozen=True)
class UnitCosts:
    """Seconds that handling takes (Table 2), and the join algorithm (Table 3)."""

    move: float = 0.0
    comp: float = 0.0
    hash: float = 0.0
    probe: float = 0.0
    nested: bool = False

    @property
    def tuple(self) -> float:
        """Of an input of a join, without what grows with the other side."""
        return self.move if self.nested else self.move + self.hash + self.probe

    @property
    def pair(self) -> float:
        """Of a pair that is compared."""
        return self.comp if self.nested else 0.0


@dataclass(frozen=True)
class RateLoad:
    """Streams and joins; without bounds, tuples are kept for ever."""

    streams: Mapping[str, Feed]
    joins: Mapping[Edge, Match] = field(default_factory=dict)
    costs: UnitCosts = field(default_factory=UnitCosts)
    bounds: Bounds | None = None

    @property
    def finite(self) -> bool:
        """Whether all streams end."""
        return all(feed.tuples < inf for feed in self.streams.values())

    def between(self, one: Iterable[str], other: Iterable[str]) -> list[tuple[Edge, Match]]:
        """The predicates that join two sets of streams."""
        others = set(other)
        pairs = (frozenset((a, b)) for a in one for b in others)
        return sorted(
            ((edge, self.joins[edge]) for edge in pairs if edge in self.joins),
            key=lambda found: sorted(found[0]),
        )

    def share(self, aliases: Iterable[str]) -> float:
        """The share of all combinations of these streams' tuples that are results."""
        names = list(aliases)
        pairs = (frozenset(pair) for pair in combinations(names, 2))
        joined = prod(self.joins[edge].selectivity for edge in pairs if edge in self.joins)
        return joined * prod(self.streams[name].selectivity for name in names)
