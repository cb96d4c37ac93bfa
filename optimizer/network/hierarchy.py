"""Sites in clusters, coordinators in clusters of the next level, until one is left (3.1.1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from optimizer.network.sites import Indices, Matrix, Network, rows

Split = Callable[[Sequence[int], int], list[list[int]]]
"""Groups of near sites, so many that they could hold the most that a cluster may have."""


@dataclass(frozen=True)
class Cluster:
    """Sites, or clusters of the level below; the coordinator stands for all of them above."""

    coordinator: str
    members: tuple["Cluster | str", ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The sites that it is made of at its own level."""
        return tuple(map(name, self.members))


Member: TypeAlias = Cluster | str


def name(member: Member) -> str:
    """The site that stands for a member."""
    return member if isinstance(member, str) else member.coordinator


@dataclass(frozen=True)
class Hierarchy:
    """The cluster of the highest level, and how many members any has at most."""

    top: Cluster
    max_cs: int

    @cached_property
    def levels(self) -> tuple[tuple[Cluster, ...], ...]:
        """The clusters of each level, the lowest first."""
        found: list[tuple[Cluster, ...]] = [(self.top,)]
        while clusters := [m for c in found[0] for m in c.members if isinstance(m, Cluster)]:
            found.insert(0, tuple(clusters))
        return tuple(found)

    @property
    def height(self) -> int:
        """How many levels there are."""
        return len(self.levels)


@dataclass(frozen=True)
class Builder:
    """Makes and mends hierarchies of a network; how sites are split is given."""

    network: Network
    max_cs: int
    split: Split

    def build(self) -> Hierarchy:
        """From nothing."""
        return Hierarchy(self._top(list(self.network.names)), self.max_cs)

    def _top(self, members: Sequence[Member]) -> Cluster:
        while len(clusters := self._clusters(members)) > 1:
            members = clusters
        return clusters[0]

    def _clusters(self, members: Sequence[Member]) -> list[Cluster]:
        """The members in clusters, none of them too large."""
        return [self._cluster([members[i] for i in group]) for group in self._groups(members)]

    def _groups(self, members: Sequence[Member]) -> list[list[int]]:
        sites = [self.network.index[name(member)] for member in members]
        left, done = [list(range(len(members)))], []
        while left:
            group = left.pop()
            if len(group) <= self.max_cs:
                done.append(group)
            else:
                near = self.split([sites[i] for i in group], self.max_cs)
                left += [[group[i] for i in part] for part in near]
        return sorted(done)

    def _cluster(self, members: Sequence[Member]) -> Cluster:
        """The coordinator is the member with the least sum of distances."""
        at = rows([self.network.index[name(member)] for member in members])
        sums = self.network.distances[np.ix_(at, at)].sum(axis=1)
        return Cluster(name(members[int(sums.argmin())]), tuple(members))

    def join(self, hierarchy: Hierarchy, site: str) -> Hierarchy:
        """A site walks down to the nearest cluster; one that is then too large splits (3.1.2)."""
        return Hierarchy(self._top(self._joined(hierarchy.top, site)), self.max_cs)

    def _joined(self, cluster: Cluster, site: str) -> list[Cluster]:
        below = [m for m in cluster.members if isinstance(m, Cluster)]
        if not below:
            return self._clusters([*cluster.members, site])
        nearest = min(below, key=lambda c: self.network.distance(c.coordinator, site))
        kept = [member for member in below if member is not nearest]
        return self._clusters([*kept, *self._joined(nearest, site)])

    def leave(self, hierarchy: Hierarchy, site: str) -> Hierarchy:
        """A site leaves; where it was the coordinator, the next best member takes over."""
        top = self._left(hierarchy.top, site)
        if top is None:
            raise ValueError("the last site leaves")
        while len(top.members) == 1 and isinstance(top.members[0], Cluster):
            top = top.members[0]
        return Hierarchy(top, self.max_cs)

    def _left(self, cluster: Cluster, site: str) -> Cluster | None:
        kept: list[Member] = []
        for member in cluster.members:
            if isinstance(member, Cluster):
                kept += filter(None, [self._left(member, site)])
            elif member != site:
                kept.append(member)
        return self._cluster(kept) if kept else None


@dataclass(frozen=True, eq=False)
class Levels:
    """A hierarchy as arrays of rows; level 1 is the sites themselves."""

    hierarchy: Hierarchy
    network: Network

    @property
    def height(self) -> int:
        """How many levels there are."""
        return self.hierarchy.height

    @cached_property
    def members(self) -> tuple[dict[int, Indices], ...]:
        """By level from 1 and by coordinator, the members of a cluster."""
        index = self.network.index
        return (
            {},
            *(
                {index[c.coordinator]: rows([index[n] for n in c.names]) for c in level}
                for level in self.hierarchy.levels
            ),
        )

    @cached_property
    def stands_for(self) -> tuple[Indices, ...]:
        """By level from 1 to one above the highest, and by site: who stands for it there."""
        found = [np.arange(len(self.network.names))]
        for level in self.members[1:]:
            above = np.full(len(self.network.names), -1)
            for coordinator, members in level.items():
                above[members] = coordinator
            found.append(above[found[-1]])
        return (found[0], *found)

    def estimate(self, level: int) -> Matrix:
        """The distances between sites as that level knows them."""
        at = self.stands_for[level]
        found: Matrix = self.network.distances[np.ix_(at, at)]
        return found

    @cached_property
    def diameters(self) -> tuple[float, ...]:
        """d: the largest distance within a cluster of each level, the lowest first."""
        return tuple(
            max(float(self.network.distances[np.ix_(m, m)].max()) for m in level.values())
            for level in self.members[1:]
        )
