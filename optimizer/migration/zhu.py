"""What a migration takes by the published model (Zhu 12.3): one window W, nested-loop binary joins.

As printed, with an operator's own two inputs where the print mixes letters.  Two formulas do not
add up as printed and are kept as they are: in (12.6) the join cost of the first W has a factor W
too many, and (12.7) is printed as the integral of the rate that it names.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Units:
    """Seconds that one unit of work takes (Table 12.1)."""

    compare: float
    """T_m: comparing two names of states."""
    cursor: float
    """T_c: sharing a state."""
    join: float
    """T_j: comparing a pair of tuples."""
    insert: float
    """T_s: inserting a tuple into a state, or purging it."""


@dataclass(frozen=True)
class Inputs:
    """A binary join: the rates of its inputs, and its reduction factor."""

    left: float
    right: float
    selectivity: float = 1.0

    def rate(self, window: float) -> float:
        """Tuples per second that come out (12.2)."""
        return 2 * self.left * self.right * window * self.selectivity

    def recompute(self, window: float, units: Units) -> float:
        """The time to compute the state of what comes out (12.1)."""
        per_pair = units.join + units.insert * self.selectivity
        return self.left * self.right * window**2 * per_pair

    def old(self, window: float, units: Units) -> float:
        """The cost of an operator of the old plan during a parallel track of 2W (12.5)."""
        return 2 * window * self._steady(window, units)

    def new(self, window: float, units: Units) -> float:
        """The same of an operator of the new plan, whose states start empty (12.6)."""
        inserted = units.insert * (self.left + self.right)
        growing = self.left * self.right * window**2 / 2
        first = window * (inserted + units.join * 2 * growing)
        return first + window * self._steady(window, units)

    def new_rate(self, window: float, since: float) -> float:
        """What comes out of it so long after it began (12.7)."""
        if since > window:
            return self.rate(window)
        return self.left * self.right * self.selectivity * since**2

    def _steady(self, window: float, units: Units) -> float:
        pairs = 2 * self.left * self.right * window
        return units.join * pairs + 2 * units.insert * (self.left + self.right)


def moving_state(old: int, new: int, recomputed: Iterable[float], units: Units) -> float:
    """T_MS: matching, moving, recomputing, for so many operators in each plan (12.3)."""
    matched = 4 * old * new * units.compare
    moved = 2 * min(old, new) * units.cursor
    return matched + moved + sum(recomputed)


def parallel_track(window: float, height: int) -> float:
    """T_PT, by the height of the old plan's tree (12.4)."""
    return window if height == 1 else 2 * window


def settled_track(window: float, lateness: float) -> float:
    """T_PT where a combined tuple is purged by its smallest timestamp: no second window.

    An old tuple cannot join any more once the watermark has passed its time and W; the watermark
    lags by the lateness.
    """
    return window + lateness
