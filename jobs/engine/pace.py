"""How much of a state is rebuilt before and between batches, so that nobody waits for results.

What the next slice takes is judged by the last one: at most as much a row, and no less in all,
since a slice has a price of its own.  What does not fit waits for the next batch, after which a
slice is filled in any case: a migration comes to its end on a busy machine, too.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import median

SHARE = 0.2
"""How much longer than usual results may be away while states are rebuilt in the background: what
batches do for these states already counts."""

TRUST = 0.5
"""How much to count on what a plan is said to save: of what every plan pays alike, none is."""

LOOKS = 5
"""Batches whose median is the usual one."""


@dataclass
class Pace:
    """What batches and slices took lately, in seconds."""

    interval: float = 0.0
    """From the beginning of one batch to that of the next, if none takes longer."""
    _calm: deque[float] = field(default_factory=lambda: deque(maxlen=LOOKS))
    _least: float = 0.0
    _slice: tuple[float, int] | None = None
    """What the last one took, and its rows."""
    _spared: bool = False
    _due: bool = False
    _left: float = 0.0
    _end: float = 0.0
    """What is left if nothing is to be filled afterwards."""

    def rest(self, took: float) -> None:
        """A batch while nothing was under way."""
        self._calm.append(took)
        self._least, self._slice, self._spared = 0.0, None, False

    def before(self, saves: float) -> None:
        """All may be filled at once if the next batch bears that; it is said to save this share."""
        usual = median(self._calm) if self._calm else 0.0
        self._end = SHARE * max(usual, self.interval) + TRUST * saves * usual
        self._left = 0.0 if usual else -inf
        self._due = False

    def after(self, took: float) -> None:
        """Slices may follow a batch that took so long, as the next one probably will."""
        self._least = min(took, self._least or took)
        usual = max(median(self._calm) if self._calm else self._least, self.interval)
        self._left = (1 + SHARE) * usual - took
        self._end = max(self._left, SHARE * usual)
        self._due, self._spared = self._spared, True

    def filled(self, rows: int, took: float) -> None:
        """So many rows were filled as one slice."""
        self._slice = took, rows
        self._left -= took
        self._end -= took
        self._due = self._spared = False

    def next(self, rows: Sequence[int], *, first: bool, last: bool) -> int:
        """How many of the slices still to be filled, which have so many rows, to fill as one now.

        Nothing is known of a state's `first`, so it is tried alone.  After the `last` state's the
        next batch is the new plan's: it does nothing beside that.
        """
        ends = [n for n, count in enumerate(rows, start=1) if count][: 1 if first else None]
        if last and self._slice is not None and self._seconds(sum(rows)) <= self._end:
            return max(ends, default=0)
        fit = (n for n in reversed(ends) if self._seconds(sum(rows[:n])) <= self._left)
        return next(fit, min(ends, default=0) if self._due else 0)

    def _seconds(self, rows: int) -> float:
        """What a slice of so many rows takes at most."""
        if self._slice is None:
            return 0.0
        took, known = self._slice
        return took * max(1.0, rows / max(1, known))
