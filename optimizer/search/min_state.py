"""`min-state`: a bjtree with small intermediate states, merged greedily (Zhu 6.1).

The paper weighs an edge by rate * rate * selectivity, and gives a merged vertex that product as its
rate: a window is missing for each merge, so that pairs and triples could not be compared.  We weigh
by the size of the state, which has it.  Greedy choices are optimal for stars, where a merge weighs
on all that remain alike, as long as only edges are merged; cartesian ones are tried as well, but
the tree without them is kept if its states are smaller.
"""

from collections.abc import Callable
from itertools import combinations

from optimizer.memo import Memo, Part
from optimizer.moves import combined

Weight = Callable[[tuple[Part, Part]], float]


def min_state(memo: Memo) -> Part:
    """Propose the bjtree of the smallest states that we know."""
    trees = [merged(memo, memo.stored, cartesian=cartesian) for cartesian in (False, True)]
    for tree in trees:
        memo.offer(tree)
    smallest = combined(memo, min(trees, key=memo.memory))
    memo.offer(smallest)
    return smallest


def merged(memo: Memo, weigh: Weight, *, cartesian: bool) -> Part:
    """Merge the pair of the least weight until one is left; edges first unless `cartesian`."""
    parts = {i: memo.leaf(alias) for i, alias in enumerate(memo.query.aliases)}

    def weight(one: int, other: int) -> tuple[bool, float]:
        pair = parts[one], parts[other]
        connected = cartesian or memo.estimator.connected(pair[0].mask, pair[1].mask)
        return not connected, weigh(pair)

    weights = {pair: weight(*pair) for pair in combinations(parts, 2)}
    while weights:
        one, other = min(weights, key=weights.__getitem__)
        parts[one] = memo.join((parts[one], parts.pop(other)))
        weights = {pair: kept for pair, kept in weights.items() if not {one, other} & {*pair}}
        pairs = ((min(one, third), max(one, third)) for third in parts if third != one)
        weights |= {pair: weight(*pair) for pair in pairs}
    (root,) = parts.values()
    return root
