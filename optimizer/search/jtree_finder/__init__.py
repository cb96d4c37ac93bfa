"""`jtree-finder`: every partition of every subset of the streams (Zhu 7, Zhu-Raghavan 3).

The papers keep all plans of a subset; cost being additive, its Pareto front is enough, and the
front of the whole set then holds every plan that can be worth choosing.  A sub-plan that cannot be
completed within the budget is dropped, what the other streams cost at least being counted too, and
a subset without any sub-plan left is never used again.  (Zhu keeps a sub-plan if either resource is
below its threshold; both must be.)  That no subset of some size has a plan left does not end the
search: the mjoin needs none of them.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from optimizer.memo import Memo, Part
from optimizer.ordering import exact_orders
from optimizer.search.jtree_finder.tables import tables

if TYPE_CHECKING:
    from optimizer.search.jtree_finder.kernel import Fronts

MOST = 16
"""Streams; with more, the time outgrows patience long before the tables outgrow memory."""

SLICE = 200_000
"""Partitions to examine between two looks at the clock."""

Start = Callable[[Memo], object]


def jtree_finder(memo: Memo, starts: Sequence[Start]) -> None:
    """Propose the front of all qualified plans, or what the starts find if time runs out first."""
    for start in starts:
        start(memo)
    n = len(memo.query.aliases)
    memo.takes(n, MOST)
    if n == 1 or memo.hopeless or memo.out_of_time():
        return
    plans = list(_front_of_all(memo))
    if plans and not memo.stopped:
        memo.forget()
    for plan in plans:
        memo.offer(plan)


def _front_of_all(memo: Memo) -> Iterator[Part]:
    """Each choice of inputs to combine before they are joined is a search of its own."""
    variants = list(_variants(memo.combinable))
    for position, combined in enumerate(variants):
        yield from _front(memo, combined, position, len(variants))


def _variants(aliases: Sequence[str]) -> Iterator[frozenset[str]]:
    for size in range(len(aliases) + 1):
        yield from map(frozenset, combinations(aliases, size))


def _front(memo: Memo, combined: frozenset[str], variant: int, variants: int) -> list[Part]:
    from optimizer.search.jtree_finder.kernel import Fronts

    leaves = [memo.leaf(alias, combined=alias in combined) for alias in memo.query.aliases]
    given = tables(memo, leaves)
    if given is None:
        return []
    fronts = Fronts(given)
    subsets = sorted(range(1, given.full + 1), key=lambda mask: (mask.bit_count(), mask))
    for done, mask in enumerate(subsets):
        if mask.bit_count() > 1:
            for examined in fronts.grow(mask, SLICE):
                memo.examined += examined
                if memo.out_of_time():
                    return []
        memo.progress(variant * len(subsets) + done + 1, variants * len(subsets))
    points = range(fronts.count(given.full))
    return [_rebuilt(memo, leaves, fronts, given.full, point) for point in points]


def _rebuilt(memo: Memo, leaves: Sequence[Part], fronts: "Fronts", mask: int, point: int) -> Part:
    """The plan behind a point of a subset's front."""
    if mask.bit_count() == 1:
        return leaves[mask.bit_length() - 1]
    blocks = fronts.blocks(mask, point)
    parts = [_rebuilt(memo, leaves, fronts, block, pick) for block, pick in blocks]
    return memo.join(parts, exact_orders([part.estimate for part in parts], memo.estimator))
