"""Moves that lead from one jtree to another: what the searches climb hills with.

Parts are immutable, so a move returns another plan; what it leaves as it was is not priced again.
The inputs of a join stand in the order of the query's text, so that equal joins are priced once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations

from optimizer.estimate import Mask
from optimizer.memo import Memo, Part

Enough = Callable[[Part], bool]
"""Where a climb may end before its end."""


def never(_part: Part) -> bool:
    """Climb to the end."""
    return False


def joined(memo: Memo, parts: Iterable[Part]) -> Part:
    """Their join, or the one part itself."""
    inputs = sorted(parts, key=_position)
    return memo.join(inputs) if len(inputs) > 1 else inputs[0]


def _position(part: Part) -> Mask:
    return part.mask & -part.mask


def inner(root: Part) -> Iterator[tuple[Part, Part]]:
    """Every join whose output is kept as a state, and the join above that keeps it."""
    for part in root.parts:
        if part.parts:
            yield root, part
            yield from inner(part)


def joins(root: Part) -> Iterator[Part]:
    """Every join, the root first."""
    if root.parts:
        yield root
        for part in root.parts:
            yield from joins(part)


def replaced(memo: Memo, root: Part, old: Part, new: Part) -> Part:
    """The plan with one of its pieces exchanged for another of the same inputs."""
    if root is old:
        return new
    return joined(
        memo,
        (replaced(memo, p, old, new) if p.mask & old.mask else p for p in root.parts),
    )


def dissolved(memo: Memo, above: Part, state: Part) -> Part:
    """A join merged into the one above it: a state less, more to recompute (Zhu 6.2)."""
    return joined(memo, (*(part for part in above.parts if part is not state), *state.parts))


def stored(memo: Memo, above: Part, chosen: Sequence[Part]) -> Part:
    """Some of a join's inputs joined apart and kept as a state (Zhu 5.2)."""
    return joined(memo, (*(p for p in above.parts if p not in chosen), joined(memo, chosen)))


def flipped(memo: Memo, root: Part, alias: str) -> Part:
    """The same plan with the group-by pushed down to that input, or pulled up again (Zhu 14)."""
    bit = memo.leaf(alias).mask
    if not root.parts:
        return memo.leaf(alias, combined=not root.combined)
    return joined(memo, (flipped(memo, p, alias) if p.mask & bit else p for p in root.parts))


def combined(memo: Memo, root: Part) -> Part:
    """The plan with the group-by pushed down wherever that eases its scarcer resource: greedily."""
    while not memo.out_of_time():
        ways = [flipped(memo, root, alias) for alias in memo.combinable]
        best = min(ways, key=memo.strain, default=root)
        if memo.strain(best) >= memo.strain(root):
            break
        root = best
    return root


def neighbours(memo: Memo, root: Part) -> Iterator[Part]:
    """Every plan that is one move away: polynomially many."""
    for above, state in inner(root):
        yield replaced(memo, root, above, dissolved(memo, above, state))
    for join in joins(root):
        if len(join.parts) > 2:
            for pair in combinations(join.parts, 2):
                yield replaced(memo, root, join, stored(memo, join, pair))
    yield from moved(memo, root)
    for alias in memo.combinable:
        yield flipped(memo, root, alias)


def moved(memo: Memo, root: Part) -> Iterator[Part]:
    """Every plan with one piece taken out and put in elsewhere, beside a piece or into a join."""
    for piece in pieces(root):
        rest = without(memo, root, piece)
        for target in (rest, *pieces(rest)):
            if not target.mask & piece.mask:
                yield replaced(memo, rest, target, joined(memo, (target, piece)))
                if target.parts:
                    yield replaced(memo, rest, target, joined(memo, (*target.parts, piece)))


def pieces(root: Part) -> Iterator[Part]:
    """Everything below the root."""
    for part in root.parts:
        yield part
        yield from pieces(part)


def without(memo: Memo, root: Part, piece: Part) -> Part:
    """What is left when a piece is taken out; a join of one input is no join any more."""
    return joined(
        memo,
        (
            without(memo, part, piece) if part.mask & piece.mask else part
            for part in root.parts
            if part is not piece
        ),
    )
