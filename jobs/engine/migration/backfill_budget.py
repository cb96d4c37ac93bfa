"""How much of a state is rebuilt before and between batches, so that nobody waits for results.

States that are said to take no more than the next batch bears are filled at once.  Otherwise what
the next slice takes is judged by the last one: as much a row, besides the price that a slice has
whatever its rows, as far as two slices of one state have shown it, and that of a table for each
state.  What does not fit waits for the next batch, after which a slice is filled in any case: a
migration comes to its end on a busy machine, too.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import median

from optimizer.migration.cost import READY, SHARE, TRUST

LOOKS = 5
"""Batches whose median is the usual one."""


@dataclass
class BackfillBudget:
    """What batches and slices took lately, in seconds."""

    interval: float = 0.0
    """From the beginning of one batch to that of the next, if none takes longer."""
    _calm: deque[float] = field(default_factory=lambda: deque(maxlen=LOOKS))
    _least: float = 0.0
    _slice: tuple[float, int] | None = None
    """What the last one took, and its rows."""
    _price: float = 0.0
    """What a slice takes besides its rows."""
    _table: float = 0.0
    """What the first slice of a state takes besides, for its table."""
    _spared: bool = False
    _due: bool = False
    _whole: bool = False
    """Whether all is to be filled at once, as long as that keeps to what was said."""
    _fresh: bool = False
    """Whether no batch maintains any of the states yet."""
    _left: float = 0.0
    _end: float = 0.0
    """What is left if nothing is to be filled afterwards."""

    def rest(self, took: float) -> None:
        """A batch while nothing was under way."""
        self._calm.append(took)

    @property
    def rests(self) -> bool:
        """Whether there is usually time between a batch and the next one."""
        return bool(self._calm) and self._idle(median(self._calm)) > 0

    def before(self, saves: float, takes: float = 0.0, took: float | None = None) -> None:
        """Everything may be filled at once if the next batch bears it, said to be so much shorter.

        That is just before a batch, or after one that took so long.  What it all `takes` may be
        known, too.
        """
        usual = median(self._calm) if self._calm else 0.0
        self._left = self._idle(took) if took is not None else 0.0
        self._end = self._left + SHARE * max(usual, self.interval) + TRUST * saves
        self._whole = 0 < takes <= TRUST * self._end
        if not usual:
            self._left, self._whole = -inf, False
        self._least, self._slice, self._price, self._table = 0.0, None, 0.0, 0.0
        self._due, self._spared, self._fresh = False, False, True

    def after(self, took: float) -> None:
        """Slices may follow a batch that took so long, as the next one probably will."""
        self._least = min(took, self._least or took)
        usual = max(median(self._calm) if self._calm else self._least, self.interval)
        self._left = (1 + SHARE) * usual - took
        self._end = max(self._left, SHARE * usual)
        self._due, self._spared, self._fresh, self._whole = self._spared, True, False, False

    def _idle(self, took: float) -> float:
        return max(0.0, READY * self.interval - took)

    def filled(self, rows: int, took: float, *, first: bool, table: float = 0.0) -> None:
        """So many rows were filled as one slice, and some of the time went into a new table."""
        made = took - table, rows
        if self._slice is not None and not first:
            self._price = _price(self._slice, made)
        self._slice, self._table = made, table or self._table
        self._left -= took
        self._end -= took
        self._due = self._spared = False

    def next(self, rows: Sequence[int], *, first: bool, last: bool) -> int:
        """How many of the slices still to be filled, which have so many rows, to fill as one now.

        Little is known of a state's `first`, so it is tried alone, unless all of it would fit if it
        took as much a row as the state before it.  After the `last` state's the next batch is the
        new plan's, and so it is if all are filled before any is maintained.
        """
        ends = [n for n, count in enumerate(rows, start=1) if count]
        if self._whole and self._end > 0:
            return max(ends, default=0)
        if self._slice is not None and (last or self._fresh):
            likely = self._seconds(sum(rows)) + (self._table if first else 0.0)
            if likely <= self._end:
                return max(ends, default=0)
        if first:
            ends = ends[:1]
        fit = (n for n in reversed(ends) if self._seconds(sum(rows[:n])) <= self._left)
        return next(fit, min(ends, default=0) if self._due else 0)

    def _seconds(self, rows: int) -> float:
        """What a slice of so many rows takes at most."""
        if self._slice is None:
            return 0.0
        took, known = self._slice
        price = min(took, self._price)
        return price + (took - price) * max(1.0, rows / max(1, known))


def _price(one: tuple[float, int], other: tuple[float, int]) -> float:
    """What two slices would take without any rows."""
    (less, few), (more, many) = sorted((one, other), key=lambda slice_: slice_[1])
    if few == many:
        return 0.0
    each = max(0.0, (more - less) / (many - few))
    return max(0.0, min(less, more) - each * few)
