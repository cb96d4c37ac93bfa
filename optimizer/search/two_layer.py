"""`two-layer`: mjoin and bjtree first, then jtrees between them (Zhu-Raghavan 5, Algorithm 2).

The first layer answers at once if the mjoin or the bjtree is qualified.  Algorithm 2 also ends
there with "no plan" if the mjoin needs too much memory, or the bjtree too much CPU.  The first is
right: every plan keeps what the mjoin keeps.  The second is wrong where a state costs more to
maintain than to recompute, their own (6) and (7): then a plan with fewer states needs less CPU, and
besides the bjtree is only the best that a greedy search knows.  So we end early only at a bound
that holds for every plan: what keeping each stream and making each result cost.

The second layer selects states from the mjoin and removes them from several bjtrees, merged by
different weights.  If none of these qualifies, the plans nearest to the budget are changed one
piece at a time as long as that eases their scarcer resource.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from optimizer.estimate import Estimate
from optimizer.memo import Memo, Part
from optimizer.moves import Enough, combined, neighbours

Climb = Callable[[Memo, Part, Enough], Part]

STARTS = 3
"""From so many of the plans nearest to the budget the last resort starts."""

MOVES = 40_000
"""So many moves over the square of the number of inputs it tries."""


@dataclass(frozen=True)
class Layers:
    """The searches that it is made of."""

    mjoin: Callable[[Memo], Part]
    bjtree: Callable[[Memo], Part]
    merged: Callable[..., Part]
    select: Climb
    remove: Climb


def two_layer(memo: Memo, layers: Layers) -> None:
    """Propose plans until one is qualified, or we know of no other."""
    if memo.hopeless:
        layers.mjoin(memo)
        layers.bjtree(memo)
        return
    if any(map(memo.qualified, proposed(memo, layers))):
        return
    last_resort(memo)


def proposed(memo: Memo, layers: Layers) -> Iterator[Part]:
    """The plans of both layers, each looked for only when those before it do not qualify."""
    yield (mjoin := layers.mjoin(memo))
    yield (bjtree := layers.bjtree(memo))
    yield combined(memo, layers.select(memo, mjoin, memo.qualified))
    yield combined(memo, layers.remove(memo, bjtree, memo.qualified))
    for start in bjtrees(memo, layers):
        yield start
        yield layers.remove(memo, start, memo.qualified)


def bjtrees(memo: Memo, layers: Layers) -> Iterator[Part]:
    """Others to start from: small in tuples, in bytes, and cheap to maintain."""
    keep = memo.workload.rates

    def upkeep(output: Estimate) -> float:
        return output.rate * (keep.match + keep.keep + keep.keep_byte * output.width)

    for weigh in (upkeep, lambda output: output.held, lambda output: output.held_bytes):
        for cartesian in (False, True):
            tree = combined(memo, layers.merged(memo, weigh, cartesian=cartesian))
            memo.offer(tree)
            yield tree


def last_resort(memo: Memo) -> None:
    """Descend from the plans nearest to the budget, one move at a time."""
    left = MOVES // len(memo.query.aliases) ** 2
    for offer in sorted(memo.front, key=lambda offer: memo.strain(offer.part))[:STARTS]:
        plan = offer.part
        while left > 0 and not memo.out_of_time():
            around = list(islice(neighbours(memo, plan), left))
            left -= len(around)
            nearest = min(around, key=memo.strain, default=plan)
            if memo.strain(nearest) >= memo.strain(plan):
                break
            plan = nearest
            memo.offer(plan)
            if memo.qualified(plan):
                return
