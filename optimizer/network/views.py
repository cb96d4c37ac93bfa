"""Views of a query planned within clusters, level by level (3.2)."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optimizer.network.exact import Ground, Table, best
from optimizer.network.offers import Leaf, Offer, Tree, border, joins, resolved, union
from optimizer.network.sites import Matrix
from optimizer.network.task import Effort, Task


@dataclass(eq=False)
class Clusters:
    """Plans views within clusters, level by level; operators placed count against the room."""

    task: Task
    effort: Effort = field(default_factory=Effort)

    def __post_init__(self) -> None:
        self.room = self.task.room.copy()

    def inside(self, level: int, coordinator: int) -> Any:
        """By site, whether it lies below that cluster."""
        return self.task.levels.stands_for[level + 1] == coordinator

    def table(self, level: int, coordinator: int, mask: int, inputs: list[Offer]) -> Table:
        """What the streams of a view cost within a cluster.

        What comes from outside stands at the coordinator.
        """
        levels, network = self.task.levels, self.task.network
        inside, at = self.inside(level, coordinator), levels.stands_for[level]
        local = self._local(mask, inputs, inside)
        seen = [
            Offer(o.mask, int(at[o.site]) if inside[o.site] else coordinator, o, o.price)
            for o in [*inputs, *local]
        ]
        members = levels.members[level][coordinator]
        ground = Ground.of(network.distances, list(members), self._rooms(level), network.loads)
        return Table(ground, self.task.question.volumes, mask, self._nearest(seen))

    def _local(self, mask: int, inputs: list[Offer], inside: Any) -> list[Offer]:
        """What is advertised below; widened only where a new operator could be made instead.

        A view that is an input is one stream from here on: nothing is read that is a part of it.
        """
        fit = [
            o
            for o in self.task.adverts
            if inside[o.site]
            and o.mask & ~mask == 0
            and not any(i.mask & o.mask and i.mask & ~o.mask for i in inputs)
        ]
        there = union([*inputs, *(offer for offer in fit if offer.price == 0)])
        return [offer for offer in fit if offer.price == 0 or offer.mask & ~there == 0]

    def _nearest(self, seen: list[Offer]) -> list[Offer]:
        """Of all that look alike from here, the one that costs least to bring here."""
        volumes, distances = self.task.question.volumes, self.task.network.distances
        found: dict[tuple[int, int], tuple[float, Offer]] = {}
        for offer in seen:
            assert isinstance(offer.source, Offer)
            cost = offer.price + volumes[offer.mask] * distances[offer.source.site, offer.site]
            at = offer.mask, offer.site
            if at not in found or cost < found[at][0]:
                found[at] = cost, offer
        return [offer for _, offer in found.values()]

    def _rooms(self, level: int) -> Matrix:
        """How many operators the sites below each member still take together."""
        if level == 1:
            return self.room
        at, size = self.task.levels.stands_for[level], len(self.room)
        found: Matrix = np.bincount(at, weights=self.room, minlength=size).astype(float)
        return found

    def target(self, level: int, coordinator: int, site: int) -> int:
        """Where a site stands as a cluster sees it."""
        inside = self.inside(level, coordinator)
        return int(self.task.levels.stands_for[level][site]) if inside[site] else coordinator

    def descend(
        self, level: int, coordinator: int, mask: int, inputs: list[Offer], goal: int
    ) -> Tree:
        """Plan a view in a cluster, then what each member got of it in the member's own cluster."""
        table = self.table(level, coordinator, mask, inputs)
        found = best(table, self.target(level, coordinator, goal))
        within = [o for o in inputs if o.mask & ~mask == 0]
        count = len(within) + (mask & ~union(within)).bit_count()
        sites = len(self.task.levels.members[level][coordinator])
        name = self.task.network.names[coordinator]
        self.effort.step(count, sites, found.evaluated, level=level, coordinator=name)
        self.effort.levels.add(level)
        return self._passed_down(level, found.tree, goal)

    def _passed_down(self, level: int, tree: Tree, goal: int) -> Tree:
        if isinstance(tree, Leaf):
            return resolved(tree)
        if level == 1:
            return self._settled(tree)
        self.effort.messages += 1
        inputs = [self._input(level, one, tree.site) for one in border(tree)]
        return self.descend(level - 1, tree.site, tree.mask, inputs, goal)

    def _input(self, level: int, one: Tree, goal: int) -> Offer:
        made = self._passed_down(level, one, goal)
        return Offer(
            made.mask, made.site, made, made.offer.price if isinstance(made, Leaf) else 0.0
        )

    def _settled(self, tree: Tree) -> Tree:
        for join in joins(tree):
            self.room[join.site] -= 1
        return resolved(tree)
