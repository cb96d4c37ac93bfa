"""`state-selection`: from the mjoin, store the states that save most for their size (Zhu 5.2).

The candidates are the pairs of inputs that stand next to each other in some probe order: the more
orders, the more often the pair is computed; the smaller its state, the cheaper it is to keep.  A
pair is stored if that lowers the CPU, and merged with the joins below it where that saves both
resources (Fig. 5.6); memory it always saves.  The paper gives up as soon as the chosen state does
not fit into memory; a smaller one may still fit, so we go on to the next candidate instead.
"""

from collections import Counter
from collections.abc import Iterator

from optimizer.memo import Memo, Part
from optimizer.moves import Enough, dissolved, joined, never


def state_selection(memo: Memo, start: Part, enough: Enough = never) -> Part:
    """Propose every step from the mjoin, until enough is reached or none is beneficial."""
    root = start
    while not enough(root) and not memo.out_of_time():
        better = next(beneficial(memo, root), None)
        if better is None:
            break
        root = better
        memo.offer(root)
    return root


def beneficial(memo: Memo, root: Part) -> Iterator[Part]:
    """The plans with one more state that need less CPU and fit, the most promising first."""
    for pair in candidates(memo, root):
        others = (part for part in root.parts if part not in pair)
        parts = (*others, simplest(memo, pair))
        if memo.fits(parts):
            plan = joined(memo, parts)
            if plan.cost.cpu < root.cost.cpu:
                yield plan


def candidates(memo: Memo, root: Part) -> list[tuple[Part, Part]]:
    """Pairs of the root's inputs by frequency over weight, the largest first (Fig. 5.4)."""
    if len(root.parts) < 3:
        return []
    frequency: Counter[tuple[int, int]] = Counter()
    for start, order in enumerate(root.orders):
        sequence = (start, *order)
        steps = zip(sequence, order, strict=False)
        frequency.update((min(step), max(step)) for step in steps)

    def promise(pair: tuple[int, int]) -> tuple[float, tuple[int, int]]:
        one, other = pair
        weight = memo.stored((root.parts[one], root.parts[other]))
        return (-frequency[pair] / weight if weight else float("-inf")), pair

    return [(root.parts[i], root.parts[j]) for i, j in sorted(frequency, key=promise)]


def simplest(memo: Memo, pair: tuple[Part, Part]) -> Part:
    """The join of a pair, merged with the joins below it where that saves both resources."""
    join = joined(memo, pair)
    for state in pair:
        if state.parts:
            flatter = dissolved(memo, join, state)
            if flatter.cost.cpu < join.cost.cpu:
                join = flatter
    return join
