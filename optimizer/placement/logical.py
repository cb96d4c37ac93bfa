"""Phase one: the logical plan, by dynamic programming over subsets of the inputs (Ji section 6).

Trees are bushy, cartesian products are considered, and an input that a group-by can be pushed down
to is joined as it comes or combined.  What a join needs is the same above any plan of its inputs,
so the best plan of each subset is enough; where operators share cores, its front is.  (In case 1.2
of the proof it is Condition 2 that makes the extended plan optimal; Condition 1 is printed.)
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from optimizer.cost.dual import Cost, input_costs, join_cost
from optimizer.cost.feasibility import Objective, Utilisation, front
from optimizer.estimate import Estimate, Mask
from optimizer.memo import Memo, Part
from optimizer.plan import Branch, Leaf, Tree, input_of

LARGEST = 12
"""Of so many inputs all trees are considered, in seconds; each further one takes three times it."""

BINARY = ((1,), (0,))
"""The only probe orders that a join of two inputs can have."""

Piece = tuple[Mask, Mask]
"""The inputs of a subset, and which of them are combined."""


class TooManyInputsError(ValueError):
    """A query of more inputs than can be ordered by trying all trees."""


@dataclass(frozen=True, eq=False)
class Tried:
    """A tree of a piece, and what its operators need on Spark."""

    tree: Tree
    cost: Utilisation


@dataclass(frozen=True)
class Logical:
    """The tree that was chosen, and how many joins were priced for it."""

    tree: Tree
    cost: Utilisation
    examined: int


class _Table:
    """The best trees of each piece."""

    def __init__(self, memo: Memo, objective: Objective) -> None:
        self.memo, self.objective = memo, objective
        self.estimates: dict[Piece, Estimate] = {}
        self.trees: dict[Piece, list[Tried]] = {}
        self.pieces: dict[Mask, list[Piece]] = defaultdict(list)
        self.examined = 0

    def leaf(self, part: Part) -> None:
        """An input, as it comes or combined."""
        assert isinstance(part.tree, Leaf)
        node, estimator = input_of(self.memo.query, part.tree), self.memo.estimator
        work = map(_work, input_costs(node, estimator).values())
        piece = self.known(part.mask, part.combined, lambda: part.estimate)
        self.trees[piece].append(Tried(part.tree, sum(work, Utilisation())))

    def join(self, one: Piece, other: Piece) -> None:
        """Every tree that joins one of either piece."""
        parts, estimator = [self.estimates[one], self.estimates[other]], self.memo.estimator
        cost = _work(join_cost(parts, BINARY, estimator))
        self.examined += 1
        mask, combined = one[0] | other[0], one[1] | other[1]
        width = self.memo.width(mask, combined)
        piece = self.known(mask, combined, lambda: estimator.joined(parts, width))
        trees = self.trees[piece]
        trees += [
            Tried(Branch((left.tree, right.tree), BINARY), left.cost + right.cost + cost)
            for left, right in product(self.trees[one], self.trees[other])
        ]
        self.trees[piece] = self.kept(trees)

    def known(self, mask: Mask, combined: Mask, estimate: Callable[[], Estimate]) -> Piece:
        """A piece, what it puts out being the same whatever its tree."""
        piece = mask, combined
        if piece not in self.estimates:
            self.pieces[mask].append(piece)
            self.estimates[piece] = estimate()
            self.trees[piece] = []
        return piece

    def kept(self, trees: list[Tried]) -> list[Tried]:
        if self.objective.shared:
            return front(trees, lambda one: one.cost)
        return [self.objective.best(trees, lambda one: one.cost, lambda one: str(one.tree))]


def _work(cost: Cost) -> Utilisation:
    return Utilisation.of(cost.cpu)


def splits(mask: Mask) -> Iterator[tuple[Mask, Mask]]:
    """Each way to split a set in two, once; the first input of all in the first."""
    half = (mask - 1) & mask
    while half:
        if half & mask & -mask:
            yield half, mask ^ half
        half = (half - 1) & mask


def logical(memo: Memo, objective: Objective) -> Logical:
    """The best tree under Definition 1, priced with Spark's unit costs."""
    aliases = memo.query.aliases
    if len(aliases) > LARGEST:
        raise TooManyInputsError(
            f"{len(aliases)} inputs have too many join orders to try all, {LARGEST} are the most: "
            "give the plan with --plan"
        )
    table = _Table(memo, objective)
    for alias in aliases:
        table.leaf(memo.leaf(alias))
        if alias in memo.combinable:
            table.leaf(memo.leaf(alias, combined=True))
    every = (1 << len(aliases)) - 1
    for mask in range(1, every + 1):
        memo.progress(mask, every)
        for one, other in splits(mask):
            for pair in product(table.pieces[one], table.pieces[other]):
                table.join(*pair)
    return _whole(table, every)


def _whole(table: _Table, every: Mask) -> Logical:
    """The best of all trees, what is above the joins included."""
    complete = [
        Tried(one.tree, one.cost + _work(table.memo.top(table.estimates[piece])))
        for piece in table.pieces[every]
        for one in table.trees[piece]
    ]
    best = table.objective.best(complete, lambda one: one.cost, lambda one: str(one.tree))
    return Logical(best.tree, best.cost, table.examined)
