"""The tree that is best by the sizes of intermediate results, whatever the network is like."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optimizer.network.exact import halves, submasks
from optimizer.network.load import Question
from optimizer.network.offers import Offer
from optimizer.network.sites import Matrix
from optimizer.network.task import Task

Splits = dict[int, tuple[int, int]]
"""By set of streams, the two sets that it is joined of."""


def smallest(question: Question) -> Splits:
    """The tree with the least bytes a second between its joins."""
    cost: dict[int, float] = {}
    chosen: Splits = {}
    for mask in submasks(question.everything):
        if mask.bit_count() == 1:
            cost[mask] = 0.0
            continue
        chosen[mask] = min(halves(mask), key=lambda two: cost[two[0]] + cost[two[1]])
        left, right = chosen[mask]
        cost[mask] = cost[left] + cost[right] + question.volumes[mask]
    return {mask: chosen[mask] for mask in reached(chosen, question.everything)}


def reached(chosen: Splits, mask: int) -> Iterator[int]:
    """The joins of the tree, each after its inputs."""
    if mask in chosen:
        left, right = chosen[mask]
        yield from reached(chosen, left)
        yield from reached(chosen, right)
        yield mask


@dataclass(frozen=True)
class Fixed:
    """A tree as a phased algorithm deploys it: what is advertised is read, the rest is joined."""

    splits: Splits
    read: dict[int, Offer]

    @property
    def joins(self) -> list[int]:
        """What is to be placed, each after its inputs."""
        return list(self.splits)

    def inputs(self, mask: int) -> tuple[int, int]:
        """What a join reads."""
        return self.splits[mask]


def phased(task: Task) -> Fixed:
    """The smallest tree, every part that is advertised as it is wanted read from the nearest."""
    splits = smallest(task.question)
    kept: Splits = {}
    read: dict[int, Offer] = {}

    def visit(mask: int) -> None:
        if (offer := nearest(task, mask)) is not None:
            read[mask] = offer
            return
        for part in splits[mask]:
            visit(part)
        kept[mask] = splits[mask]

    visit(task.question.everything)
    return Fixed(kept, read)


def nearest(task: Task, mask: int) -> Offer | None:
    """The advertised stream that needs no change, and is nearest to the sink."""
    fit = [offer for offer in task.adverts if offer.mask == mask and offer.price == 0]
    return min(fit, key=lambda o: float(task.network.distances[o.site, task.sink]), default=None)


def springs(task: Task, fixed: Fixed) -> dict[int, Matrix]:
    """Where each operator comes to rest, drawn by the streams that it reads and writes."""
    at = task.coordinates()
    volumes = task.question.volumes
    place: dict[int, Matrix] = {mask: at[offer.site] for mask, offer in fixed.read.items()}
    start: Matrix = np.mean([*place.values(), at[task.sink]], axis=0)
    for mask in fixed.joins:
        place[mask] = start
    reader = {part: mask for mask in fixed.joins for part in fixed.inputs(mask)}
    for _ in range(ROUNDS):
        moved = 0.0
        for mask in fixed.joins:
            ends = [(volumes[part], place[part]) for part in fixed.inputs(mask)]
            ends.append((volumes[mask], place[reader[mask]] if mask in reader else at[task.sink]))
            rest = _balance(ends, place[mask])
            moved = max(moved, float(np.abs(rest - place[mask]).max()))
            place[mask] = rest
        if moved <= STILL:
            break
    return {mask: place[mask] for mask in fixed.joins}


ROUNDS = 4000
"""So many rounds at most, as many as the coordinates take."""

STILL = 1e-6
"""By how little everything moves in a round that is the last."""


def _balance(ends: list[tuple[float, Matrix]], where: Matrix) -> Matrix:
    total = sum(rate for rate, _ in ends)
    if total <= 0:
        return where
    found: Matrix = sum((rate * at for rate, at in ends), np.zeros_like(where)) / total
    return found
