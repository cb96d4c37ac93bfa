"""Plan searches: each proposes plans to a memo, which prices them and keeps the best.

A strategy is one file and one line of `SEARCHES`.  Those that are made of others are put together
here, so that no file knows another.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite

from optimizer.cost.dual import Priced
from optimizer.memo import Memo, Offer
from optimizer.search.as_written import as_written
from optimizer.search.cardinality import cardinality
from optimizer.search.exact import exact
from optimizer.search.jtree_finder import jtree_finder
from optimizer.search.min_state import merged, min_state
from optimizer.search.mjoin_ordering import mjoin_ordering
from optimizer.search.rate_max import rate_max
from optimizer.search.state_removal import state_removal
from optimizer.search.state_selection import state_selection
from optimizer.search.time_min import time_min
from optimizer.search.two_layer import Layers, two_layer

Search = Callable[[Memo], object]

LAYERS = Layers(mjoin_ordering, min_state, merged, state_selection, state_removal)


def mjoin_init(memo: Memo) -> None:
    """`mjoin-ordering`, then `state-selection` until the plan is qualified (Zhu 5)."""
    state_selection(memo, mjoin_ordering(memo), memo.qualified)


def bjtree_init(memo: Memo) -> None:
    """`min-state`, then `state-removal` until the plan is qualified (Zhu 6)."""
    state_removal(memo, min_state(memo), memo.qualified)


SEARCHES: Mapping[str, Search] = {
    "as-written": as_written,
    "mjoin-ordering": mjoin_ordering,
    "min-state": min_state,
    "state-selection": lambda memo: state_selection(memo, mjoin_ordering(memo)),
    "state-removal": lambda memo: state_removal(memo, min_state(memo)),
    "mjoin-init": mjoin_init,
    "bjtree-init": bjtree_init,
    "two-layer": lambda memo: two_layer(memo, LAYERS),
    "jtree-finder": lambda memo: jtree_finder(memo, (mjoin_init, bjtree_init)),
    "rate-max": rate_max,
    "time-min": time_min,
    "exact": lambda memo: exact(memo, (rate_max, time_min)),
    "cardinality": cardinality,
}

RATES = ("rate-max", "time-min", "exact", "cardinality")
"""Those that need an objective of output rates in the memo."""

ENDLESS = ("rate-max", "time-min", "exact")
"""Those of them for streams without an end."""

COSTS = tuple(name for name in SEARCHES if name not in RATES)
"""Those that do without."""

ALL = "all"
"""Stands for every strategy, side by side."""


@dataclass(frozen=True)
class Found:
    """What a search came back with, and why it is or is not good enough."""

    strategy: str
    chosen: Priced
    qualified: bool
    binding: str
    """The resource of which the chosen plan takes the larger share: cpu or memory."""
    front: tuple[Offer, ...]
    """What no other plan that was proposed beats in both resources, the least CPU first."""
    examined: int
    """Joins and plans that were priced."""
    complete: bool
    """Whether the search came to its own end, not to that of its time."""
    reason: str
    """Why the chosen plan is or is not qualified, in words."""


def search(strategy: str, memo: Memo) -> Found:
    """Run one strategy."""
    SEARCHES[strategy](memo)
    best = memo.best
    if best is None:
        raise LookupError(f"{strategy} proposed no plan")
    return Found(
        strategy,
        best.priced,
        best.total.within(memo.budget),
        memo.binding(best.total),
        tuple(memo.front),
        memo.examined,
        not memo.stopped,
        _reason(best, memo),
    )


def search_all(fresh: Callable[[], Memo]) -> tuple[Found, ...]:
    """Run those that need no objective, each with a memo of its own, to be put side by side."""
    return tuple(search(strategy, fresh()) for strategy in COSTS)


def _reason(best: Offer, memo: Memo) -> str:
    if not (isfinite(memo.budget.cpu) or isfinite(memo.budget.memory)):
        return "qualified: nothing limits it"
    cpu, memory = memo.shares(best.total)
    shares = [f"{share:.0%} of the {name}" for share, name in ((cpu, "CPU"), (memory, "memory"))]
    limited = [
        text
        for text, limit in zip(shares, (memo.budget.cpu, memo.budget.memory), strict=True)
        if isfinite(limit)
    ]
    takes = f"the plan takes {' and '.join(limited)}"
    if best.total.within(memo.budget):
        return f"qualified: {takes}"
    if memo.hopeless:
        return f"not qualified: {takes}; no plan can, keeping the streams alone is too much"
    return f"not qualified: {takes}; {memo.stopped or 'no plan was found that is'}"
