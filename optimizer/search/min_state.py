"""`min-state`: a bjtree with small intermediate states, greedy and then improved (Zhu 6.1).

The paper weighs an edge by rate * rate * selectivity, and gives a merged vertex that product as its
rate: a window is missing for each merge, so that pairs and triples could not be compared.  We weigh
by the size of the state, which has it.  Greedy choices are optimal for stars in tuples, where a
merge weighs on all that remain alike, as long as only edges are merged: not with cartesian ones,
and not in bytes.  So greedy trees, with and without cartesian edges, are where we start.  Trees of
few streams are then found exactly, by dynamic programming over subsets, for what a state holds does
not depend on how it was joined; of a larger tree every neighbourhood of a few pieces is.
"""

from collections.abc import Callable, Sequence
from itertools import combinations, compress
from math import inf

from optimizer.estimate import Mask
from optimizer.memo import Memo, Part
from optimizer.moves import combined, joined

Weight = Callable[[tuple[Part, Part]], float]

EXACT = 10
"""Up to so many streams all bjtrees are considered; three times the time for each further one."""

FEW = 6
"""As many where windows differ by pair, and the volume of each set has to be computed."""

MANY, PIECES = 16, (8, 6)
"""As many pieces of a tree of up to so many streams are put together anew, or of a larger one."""

PASSES = 4
"""How often at most."""


def min_state(memo: Memo) -> Part:
    """Propose the bjtree of the smallest states that we know."""
    trees = [merged(memo, memo.stored, cartesian=cartesian) for cartesian in (False, True)]
    trees += improved(memo, trees)
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


# --- smaller than greedy -------------------------------------------------------------------------


def improved(memo: Memo, trees: Sequence[Part]) -> list[Part]:
    """The bjtree of the least memory; of many streams, those trees in their best neighbourhoods."""
    leaves = [memo.leaf(alias) for alias in memo.query.aliases]
    alike = memo.estimator.volumes.windows is not None
    if len(leaves) <= (EXACT if alike else FEW):
        return [least(memo, leaves)]
    return [settled(memo, tree) for tree in trees] if alike else []


def settled(memo: Memo, root: Part) -> Part:
    """The tree after as many passes as make it smaller."""
    for _ in range(PASSES):
        before, root = root, polished(memo, root)
        if memo.out_of_time() or memo.memory(root) >= memo.memory(before):
            break
    return root


def polished(memo: Memo, root: Part) -> Part:
    """The tree with the pieces around each join put together anew, lower joins first."""
    if not root.parts or memo.out_of_time():
        return root
    root = joined(memo, (polished(memo, part) for part in root.parts))
    return min(root, least(memo, _around(memo, root)), key=memo.memory)


def _around(memo: Memo, root: Part) -> list[Part]:
    """What is left of a tree when its largest states are taken apart."""
    pieces, streams = list(root.parts), len(memo.query.aliases)
    most = PIECES[streams > MANY]
    while len(pieces) < most and any(piece.parts for piece in pieces):
        largest = max((p for p in pieces if p.parts), key=lambda piece: memo.state(piece.estimate))
        pieces.remove(largest)
        pieces += largest.parts
    return pieces


def least(memo: Memo, pieces: Sequence[Part]) -> Part:
    """Of all binary trees over those pieces the one whose states are the smallest together."""
    every = (1 << len(pieces)) - 1
    total, split = [0.0] * (every + 1), [0] * (every + 1)
    for mask in range(1, every + 1):
        if mask & (mask - 1):
            below, split[mask] = _cheapest(mask, total)
            total[mask] = below + (memo.stored(_chosen(pieces, mask)) if mask != every else 0.0)

    def tree(mask: Mask) -> Part:
        if not split[mask]:
            return pieces[mask.bit_length() - 1]
        return joined(memo, (tree(split[mask]), tree(mask ^ split[mask])))

    return tree(every)


def _cheapest(mask: Mask, total: Sequence[float]) -> tuple[float, Mask]:
    """Of all ways to split a set in two, the one with the smallest states inside."""
    lowest = mask & -mask
    one = rest = mask ^ lowest
    below, split = inf, rest
    while one:
        states = total[one] + total[mask ^ one]
        if states < below:
            below, split = states, one
        one = (one - 1) & rest
    return below, split


def _chosen(pieces: Sequence[Part], mask: Mask) -> tuple[Part, ...]:
    return tuple(compress(pieces, (mask >> i & 1 for i in range(len(pieces)))))
