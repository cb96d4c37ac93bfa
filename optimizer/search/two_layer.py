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
from functools import partial
from itertools import islice, product

from optimizer.memo import Memo, Part
from optimizer.moves import Enough, combined, neighbours

Distance = Callable[[Part], tuple[float, float]]
Climb = Callable[[Memo, Part, Enough], Part]

STARTS = 6
"""From so many of the plans nearest to the budget the last resort starts."""

MOVES = 60_000
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
    for weigh in (upkeep, tuples, size):
        for cartesian in (False, True):
            tree = combined(memo, layers.merged(memo, partial(weigh, memo), cartesian=cartesian))
            memo.offer(tree)
            yield tree


def upkeep(memo: Memo, pair: tuple[Part, Part]) -> float:
    """CPU of making and keeping the state of a pair."""
    rates, output = memo.workload.rates, memo.output(pair)
    return output.rate * (rates.match + rates.keep + rates.keep_byte * output.width)


def tuples(memo: Memo, pair: tuple[Part, Part]) -> float:
    """Its size in tuples."""
    return memo.output(pair).held


def size(memo: Memo, pair: tuple[Part, Part]) -> float:
    """Its size in bytes."""
    return memo.output(pair).held_bytes


def last_resort(memo: Memo) -> None:
    """Descend from the plans nearest to the budget, one move at a time.

    First by the share of the scarcer resource, then by what both are beyond the budget: where one
    comes to rest, the other often still finds a way.
    """
    left = MOVES // len(memo.query.aliases) ** 2
    nearest = sorted(memo.front, key=lambda offer: memo.strain(offer.part))[:STARTS]
    for distance, offer in product((memo.strain, memo.excess), nearest):
        left = descend(memo, offer.part, distance, left)
        if left <= 0 or (memo.best and memo.best.total.within(memo.budget)):
            return


def descend(memo: Memo, plan: Part, distance: Distance, left: int) -> int:
    """Take the best move while it shortens the distance; returns how many may still be tried."""
    while left > 0 and not memo.out_of_time():
        around = list(islice(neighbours(memo, plan), left))
        left -= len(around)
        nearest = min(around, key=distance, default=plan)
        if distance(nearest) >= distance(plan):
            break
        plan = nearest
        memo.offer(plan)
        if memo.qualified(plan):
            break
    return left
