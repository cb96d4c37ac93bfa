"""The best tree and placement by dynamic programming over (set of streams, site).

For one query and given advertisements this is exact: what a set of streams costs at a site does not
depend on what is done with it, and everything that a query's filters leave travels filtered.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from itertools import count
from math import inf

import numpy as np

from optimizer.network.offers import Join, Leaf, Offer, Tree, joins
from optimizer.network.sites import Indices, Matrix, NoSiteError, rows

Forbidden = frozenset[tuple[int, int]]
"""Sets of streams, and the candidates at which these are not to be joined."""


@dataclass(frozen=True, eq=False)
class Ground:
    """Where operators may stand, and what lies between the sites."""

    distances: Matrix
    candidates: Indices
    room: Matrix
    """How many operators each candidate still takes."""
    loads: Matrix
    """What reading costs at each candidate."""

    @classmethod
    def of(
        cls, distances: Matrix, candidates: Sequence[int], room: Matrix, loads: Matrix
    ) -> "Ground":
        """Those of the candidates that still take an operator."""
        at = rows(candidates)
        at = at[room[at] >= 1]
        return cls(distances, at, room[at], loads[at])

    @cached_property
    def between(self) -> Matrix:
        """From a candidate's row to a candidate's column."""
        found: Matrix = np.ascontiguousarray(
            self.distances[np.ix_(self.candidates, self.candidates)]
        )
        return found


@dataclass(frozen=True)
class Found:
    """A tree with its placement, what it costs by the given distances, and the work that took."""

    tree: Tree
    cost: float
    evaluated: int


@dataclass(eq=False)
class Table:
    """What each set of streams costs where it is made, and where it has arrived.

    A whole tree is given by `splits`; otherwise every split of every set is looked at.
    """

    ground: Ground
    volumes: Sequence[float]
    mask: int
    offers: Sequence[Offer]
    forbidden: Forbidden = frozenset()
    splits: dict[int, tuple[int, int]] | None = None
    evaluated: int = 0
    made: dict[int, Matrix] = field(default_factory=dict)
    arrived: dict[int, Matrix] = field(default_factory=dict)
    _split: dict[int, tuple[list[tuple[int, int]], Indices]] = field(default_factory=dict)
    _read: dict[int, list[Offer]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for offer in self.offers:
            self._read.setdefault(offer.mask, []).append(offer)
        for mask in self._masks():
            self._make(mask)
            if mask != self.mask:
                self._carry(mask)

    def _masks(self) -> Iterable[int]:
        if self.splits is not None:
            return sorted({m for two in self.splits.values() for m in two} | {self.mask})
        return submasks(self.mask)

    def _make(self, mask: int) -> None:
        pairs = [
            (left, right)
            for left, right in self._pairs(mask)
            if left in self.arrived and right in self.arrived
        ]
        if not pairs or not len(self.ground.candidates):
            return
        costs = np.stack([self.arrived[left] + self.arrived[right] for left, right in pairs])
        read = np.array([self.volumes[left] + self.volumes[right] for left, right in pairs])
        costs += read[:, None] * self.ground.loads
        for forbidden, candidate in self.forbidden:
            if forbidden == mask:
                costs[:, candidate] = inf
        chosen = costs.argmin(axis=0)
        self.evaluated += costs.size
        self.made[mask] = costs[chosen, np.arange(costs.shape[1])]
        self._split[mask] = pairs, chosen

    def _pairs(self, mask: int) -> Iterable[tuple[int, int]]:
        if self.splits is not None:
            return [self.splits[mask]] if mask in self.splits else []
        return halves(mask)

    def _carry(self, mask: int) -> None:
        """Bring it from wherever it is made or offered to every candidate."""
        volume, between = self.volumes[mask], self.ground.between
        options = []
        if mask in self.made:
            options.append((between * volume + self.made[mask]).min(axis=1))
            self.evaluated += between.size
        if read := self._read.get(mask):
            options.append(self._from_offers(read, volume).min(axis=0))
            self.evaluated += len(read) * len(self.ground.candidates)
        if options:
            self.arrived[mask] = np.minimum.reduce(options)

    def _from_offers(self, read: Sequence[Offer], volume: float) -> Matrix:
        prices = np.array([offer.price for offer in read])
        sites = rows([offer.site for offer in read])
        found: Matrix = (
            self.ground.distances[np.ix_(sites, self.ground.candidates)] * volume + prices[:, None]
        )
        return found

    def covered(self) -> list[int]:
        """The sets of streams that can be made of what is offered."""
        return sorted({*self.made, *self._read})

    def cost(self, mask: int, target: int) -> float:
        """What it costs to have a set of streams at a site."""
        return self._best(mask, self.ground.distances[:, target])[0]

    def tree(self, mask: int, target: int) -> Tree:
        """The best tree that brings it there."""
        return self._tree(mask, self.ground.distances[:, target])

    def _best(self, mask: int, distances: Matrix) -> tuple[float, Offer | int]:
        """The cheapest way, an offer before a join that costs the same."""
        volume = self.volumes[mask]
        best: tuple[float, Offer | int] = inf, -1
        for offer in self._read.get(mask, ()):
            if (cost := offer.price + volume * float(distances[offer.site])) < best[0]:
                best = cost, offer
        if mask in self.made and len(self.made[mask]):
            costs = self.made[mask] + volume * distances[self.ground.candidates]
            if (least := float(costs.min())) < best[0]:
                best = least, int(costs.argmin())
        return best

    def _tree(self, mask: int, distances: Matrix) -> Tree:
        _, way = self._best(mask, distances)
        if isinstance(way, Offer):
            return Leaf(way)
        if way < 0:
            raise NoSiteError("no site is left that may take the operators")
        pairs, chosen = self._split[mask]
        site = int(self.ground.candidates[way])
        onward = self.ground.distances[:, site]
        left, right = pairs[chosen[way]]
        return Join(mask, site, self._tree(left, onward), self._tree(right, onward))


@dataclass(frozen=True)
class Slots:
    """What is decided about sites that have too few places: who may have one, and who may not."""

    kept: Forbidden = frozenset()
    denied: Forbidden = frozenset()

    def forbidden(self, table: Table) -> Forbidden:
        """Where all places are kept, nobody else gets one."""
        found = set(self.denied)
        for candidate in {candidate for _, candidate in self.kept}:
            if sum(at == candidate for _, at in self.kept) >= table.ground.room[candidate]:
                every = {(mask, candidate) for mask in submasks(table.mask)}
                found |= every - self.kept
        return frozenset(found)


def best(table: Table, target: int) -> Found:
    """The best tree that respects how many operators each candidate takes.

    Where a site gets too many, one of them either keeps a place there or stands elsewhere: both
    cases are looked at, the cheapest of all first.
    """
    if table.ground.room.sum() < table.mask.bit_count() - 1 and table.ground.room.sum() < fewest(
        table
    ):
        raise NoSiteError("no site is left that may take the operators")
    order = [(table.cost(table.mask, target), 0, Slots(), table)]
    ticket, evaluated = count(1), 0
    while order:
        cost, _, slots, one = heappop(order)
        tree = one.tree(one.mask, target)
        evaluated += one.evaluated
        if (crowd := crowded(tree, one.ground)) is None:
            return Found(tree, cost, evaluated)
        operator = next(each for each in crowd if each not in slots.kept)
        for other in (
            Slots(slots.kept, slots.denied | {operator}),
            Slots(slots.kept | {operator}, slots.denied),
        ):
            again = Table(
                one.ground, one.volumes, one.mask, one.offers, other.forbidden(one), one.splits
            )
            if (price := again.cost(one.mask, target)) < inf:
                heappush(order, (price, next(ticket), other, again))
    raise NoSiteError("no site is left that may take the operators")


def fewest(table: Table) -> float:
    """So many operators at least join what is offered."""
    need: dict[int, float] = dict.fromkeys((offer.mask for offer in table.offers), 0.0)
    for mask in submasks(table.mask):
        options = [need.get(a, inf) + need.get(b, inf) + 1 for a, b in halves(mask)]
        need[mask] = min([need.get(mask, inf), *options])
    return need[table.mask]


def crowded(tree: Tree, ground: Ground) -> list[tuple[int, int]] | None:
    """The operators of a site that gets more than it takes."""
    if not len(ground.room) or ground.room.min() >= tree.mask.bit_count() - 1:
        return None
    by_site: dict[int, list[int]] = {}
    for join in joins(tree):
        by_site.setdefault(join.site, []).append(join.mask)
    for candidate, (site, room) in enumerate(zip(ground.candidates, ground.room, strict=True)):
        if len(masks := by_site.get(int(site), [])) > room:
            return [(mask, candidate) for mask in masks]
    return None


def submasks(mask: int) -> list[int]:
    """All sets within a set, the small numbers first, so that each comes after its own."""
    found, sub = [], mask
    while sub:
        found.append(sub)
        sub = (sub - 1) & mask
    return found[::-1]


def halves(mask: int) -> Iterator[tuple[int, int]]:
    """Every way to split a set in two."""
    low = mask & -mask
    sub = rest = mask ^ low
    while sub:
        sub = (sub - 1) & rest
        yield sub | low, rest ^ sub
