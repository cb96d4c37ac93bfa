"""`federated`: bottom-up, one partial plan of each operator on Spark (Ji section 7).

What an operator needs on Spark is the same above any partial plan of its inputs, so the best of
these is enough there.  In the database it is not: a part grows, and what it needs does not add up,
so all partial plans that end in the database are kept.  The result is exact under Definition 1: as
feasible as any plan, of the least total if feasible and of the least bottleneck if not; among
infeasible plans the total may not be the least.  Where operators share cores the best partial plan
of an input is not enough, and all go on that none beats in both bottleneck and total.

The search space of a complete binary tree of n operators grows as f(h) = 1 + f(h-1)^2; the printed
bound 2^(2^(h-1)) is too low, as f(h)^(1/2^(h-1)) tends to 2.2585.  So large plans are cut in
post-order into sub-plans; of each the best on Spark and the best in the database go on, and parts
that meet at a cut in the database are one statement again.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import groupby, product
from math import inf
from operator import itemgetter

from optimizer.cost.feasibility import Objective, Utilisation, front
from optimizer.cost.fragments import DB, SPARK, LogicalPlan, Mask, Operator

MOST = 200_000
"""So many partial plans are made at most, before a plan is cut where nobody says how."""

Partial = tuple[Mask, Mask, float, float, float]
"""What is in the database, the part there that is not closed yet, what this part needs so far but
for the statement and the way back, and the bottleneck and the total of all that is closed."""


@dataclass(frozen=True)
class Enumerated:
    """The placement that was chosen, and what it took."""

    mask: Mask
    examined: int
    """Complete plans; where the plan was cut, those of all sub-plans."""
    partial: int
    """Plans of a piece of the tree, the complete ones included."""
    cut: tuple[tuple[int, ...], ...]


class TooManyError(Exception):
    """More partial plans than `MOST`."""


def federated(
    plan: LogicalPlan, objective: Objective, *, pruning: bool = True, cut: int | None = None
) -> Enumerated:
    """Place each operator where the whole plan is best."""
    if cut is not None:
        return _Search(plan, objective, cut, pruning=pruning).run(inf)
    for size in sizes(plan):
        try:
            return _Search(plan, objective, size, pruning=pruning).run(MOST)
        except TooManyError:
            continue
    raise AssertionError("sub-plans of one operator have two partial plans each")


def sizes(plan: LogicalPlan) -> Iterator[int]:
    """How large sub-plans may be, the largest first of which few enough partial plans come."""

    def too_many(size: int) -> bool:
        return sum(counts(plan, sub_plans(plan, size))) > MOST

    size = bisect_left(range(2, len(plan) + 1), x=True, key=too_many) + 1
    while size > 1:
        yield size
        size = size * 3 // 4
    yield 1


def sub_plans(plan: LogicalPlan, most: int) -> tuple[tuple[int, ...], ...]:
    """The plan cut in post-order into connected pieces of no more operators than that."""
    held: list[int] = []
    roots = {len(plan) - 1}
    for one in plan.operators:
        inside = sorted(one.below, key=held.__getitem__)
        while inside and sum(held[below] for below in inside) >= most:
            roots.add(inside.pop())
        held.append(1 + sum(held[below] for below in inside))
    return _pieces(plan, roots)


def _pieces(plan: LogicalPlan, roots: Set[int]) -> tuple[tuple[int, ...], ...]:
    """The operators below each root, down to the next ones."""
    pieces: dict[int, list[int]] = {root: [] for root in sorted(roots)}
    root_of: dict[int, int] = {}
    for at in range(len(plan) - 1, -1, -1):
        root = at if at in roots else root_of[at]
        root_of |= dict.fromkeys(plan.operators[at].below, root)
        pieces[root].append(at)
    return tuple(tuple(sorted(piece)) for piece in pieces.values())


def counts(plan: LogicalPlan, cut: Sequence[Sequence[int]]) -> Iterator[int]:
    """How many partial plans the pruning leaves at each operator."""
    roots = {piece[-1] for piece in cut}
    left: list[int] = []
    for at, one in enumerate(plan.operators):
        ways = 1
        for below in one.below:
            ways *= left[below]
        count = one.allows(SPARK) + one.allows(DB) * ways
        yield count
        left.append(min(count, 2) if at in roots else count)


class _Search:
    def __init__(
        self, plan: LogicalPlan, objective: Objective, size: int, *, pruning: bool
    ) -> None:
        self.plan, self.objective, self.pruning = plan, objective, pruning
        self.cut = sub_plans(plan, size)
        self.begin = plan.border.statement * plan.border.executions
        self.found: list[list[Partial]] = []

    def run(self, most: float) -> Enumerated:
        """All partial plans, operator by operator."""
        roots = {piece[-1] for piece in self.cut}
        made = examined = 0
        for at in range(len(self.plan)):
            partial = [*self.on_spark(at), *self.in_database(at)]
            made += len(partial)
            if made > most:
                raise TooManyError
            if at in roots:
                examined += len(partial)
                partial = self.going_on(at, partial)
            self.found.append(partial)
        (best,) = self.best(len(self.plan) - 1, self.found[-1])
        return Enumerated(best[0], examined, made, self.cut)

    def going_on(self, at: int, partial: list[Partial]) -> list[Partial]:
        """Of a sub-plan, the best for each place of its root."""
        spark = [one for one in partial if not one[1]]
        database = [one for one in partial if one[1]]
        return [one for some in (spark, database) if some for one in self.best(at, some)]

    def on_spark(self, at: int) -> list[Partial]:
        """The partial plans that have this operator on Spark."""
        one = self.plan.operators[at]
        if not one.allows(SPARK):
            return []
        ways = product(*(self.inputs(below) for below in one.below))
        made = [self.above(one, way) for way in ways]
        return self.front(made) if self.pruning and self.objective.shared else made

    def above(self, one: Operator, way: Sequence[Partial]) -> Partial:
        mask, bottleneck, total = 0, one.spark, one.spark
        for below in way:
            mask |= below[0]
            bottleneck = max(bottleneck, below[3])
            total += below[4]
        return mask, 0, 0.0, bottleneck, total

    def inputs(self, at: int) -> list[Partial]:
        """What an operator on Spark may stand on: closed, and only the best unless told not to."""
        if not self.pruning:
            return [self.closed(at, one) for one in self.found[at]]
        if self.objective.shared:
            return self.front([self.closed(at, one) for one in self.found[at]])
        return [self.closed(at, one) for one in self.best(at, self.found[at])]

    def in_database(self, at: int) -> list[Partial]:
        """The partial plans that have this operator in the database."""
        one, enter = self.plan.operators[at], self.plan.border.enter
        if not one.allows(DB):
            return []
        made = [(1 << at, 1 << at, one.db + one.from_streams * enter, 0.0, 0.0)]
        for opened in map(self.opened, one.below):
            made = [
                (p | q, m | n, u + v, max(b, c), s + t)
                for p, m, u, b, s in made
                for q, n, v, c, t in opened
            ]
        return self.by_part(made) if self.pruning and self.objective.shared else made

    def opened(self, at: int) -> list[Partial]:
        """The inputs of a part in the database: what comes from Spark must be taken in."""
        enter = self.plan.operators[at].rate * self.plan.border.enter
        return [one if one[1] else (one[0], 0, enter, *one[3:]) for one in self.found[at]]

    def closed(self, at: int, partial: Partial) -> Partial:
        """With its part in the database complete."""
        mask, part, _, bottleneck, total = partial
        if not part:
            return partial
        needs = self.needs(at, partial)
        return mask, 0, 0.0, max(bottleneck, needs), total + needs

    def needs(self, at: int, partial: Partial) -> float:
        """What a part needs that ends here: as measured, or by the formula."""
        leave = self.plan.operators[at].rate * self.plan.border.leave
        return self.plan.measured.get(partial[1], self.begin + partial[2] + leave)

    def cost(self, at: int, partial: Partial) -> Utilisation:
        _, _, _, bottleneck, total = self.closed(at, partial)
        return Utilisation(bottleneck, total)

    def best(self, at: int, partial: list[Partial]) -> list[Partial]:
        """The best of them, were the plan to end here; none of none."""
        if not partial:
            return []
        order = self.plan.order
        return [
            self.objective.best(
                partial, lambda one: self.cost(at, one), lambda one: order(one[0])
            )
        ]  # fmt: skip

    def front(self, partial: list[Partial]) -> list[Partial]:
        return front(partial, lambda one: Utilisation(one[3], one[4]))

    def by_part(self, partial: list[Partial]) -> list[Partial]:
        """Of those with the same part open, all that none beats in what is closed."""
        ordered = sorted(partial, key=itemgetter(1))
        groups = (list(some) for _, some in groupby(ordered, key=itemgetter(1)))
        return [one for some in groups for one in self.front(some)]
