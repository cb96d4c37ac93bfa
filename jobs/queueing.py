"""A simulator of queues that feed each other: tuples, servers and joins, drawn from a seed.

Every tuple arrives, waits its turn at each server (first come, first served), is worked on for as
long as the server says, and meets each tuple that the other side of a join has handled before it
with the join's probability.  It is for checking models, so it shares no code with any.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, inf
from statistics import fmean, stdev
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST = 30_000_000
"""Tuples that one operator may put out for another, or one stream bring."""


class TooManyError(ValueError):
    """More tuples than there is room for."""


class Servers(StrEnum):
    """Who does the work."""

    EACH = "each"
    """Every operator has a server."""
    ONE = "one"
    """One server takes each arrival with all the work that it causes on its way up."""


@dataclass(frozen=True)
class Source:
    """Arrivals: so many a second, without end or in all; Poisson, or at even distances."""

    name: str
    rate: float
    tuples: float = inf
    even: bool = False


@dataclass(frozen=True)
class Filter:
    """A server that lets a share of its tuples through."""

    below: "Operator"
    share: float
    cost: float = 0.0


@dataclass(frozen=True)
class Join:
    """A server that keeps what it handles: seconds a tuple, and seconds for each pair compared."""

    left: "Operator"
    right: "Operator"
    share: float
    cost: float = 0.0
    pair: float = 0.0


Operator = Source | Filter | Join

Windows = Mapping[tuple[str, str], float]
"""How many seconds a tuple of the first source may be newer than one of the second."""


@dataclass(frozen=True)
class Made:
    """When results came, and how many at once."""

    times: Floats
    counts: Ints
    events: int
    """Tuples that operators have handled."""

    def by(self, seconds: float) -> int:
        """The results by a time."""
        return int(self.counts[: np.searchsorted(self.times, seconds, side="right")].sum())

    def to(self, results: float) -> float | None:
        """When there were so many."""
        total = np.cumsum(self.counts)
        if not total.size or total[-1] < results:
            return None
        return float(self.times[int(np.searchsorted(total, results))])

    def curve(self, times: Floats) -> Floats:
        """The results by some times."""
        total = np.concatenate([[0], np.cumsum(self.counts)])
        found: Floats = total[np.searchsorted(self.times, times, side="right")].astype(float)
        return found


def simulate(
    plan: Operator,
    horizon: float,
    seed: int,
    servers: Servers = Servers.EACH,
    windows: Windows | None = None,
) -> Made:
    """One run, up to a time."""
    return _Run(plan, horizon, np.random.default_rng(seed), servers, windows).made()


@dataclass(frozen=True)
class Spread:
    """The mean over some runs, and their standard deviation; nothing if a run had no value."""

    mean: float | None
    deviation: float | None

    @classmethod
    def of(cls, values: Sequence[float | None]) -> "Spread":
        """Of one value a run."""
        known = [value for value in values if value is not None]
        if not known or len(known) < len(values):
            return cls(None, None)
        return cls(fmean(known), stdev(known) if len(known) > 1 else 0.0)


@dataclass(frozen=True)
class _Tuples:
    """What an operator puts out, in order; `key` is when or, with one server, by which arrival."""

    key: Floats
    stamps: Floats
    """A row for each tuple, a column for each source; without windows, no columns."""
    names: tuple[str, ...] = ()


class _Run:
    def __init__(
        self,
        plan: Operator,
        horizon: float,
        dice: np.random.Generator,
        servers: Servers,
        windows: Windows | None,
    ) -> None:
        self.plan, self.horizon, self.dice = plan, horizon, dice
        self.one, self.windows = servers is Servers.ONE, windows
        self.arrivals = self._arrive()
        self.order = np.sort(np.concatenate(list(self.arrivals.values())))
        self.work = np.zeros(self.order.size)
        self.events = 0

    def made(self) -> Made:
        """All results by the horizon."""
        tuples, counts = self._out(self.plan, last=True)
        times = tuples.key
        if self.one:
            finished = waiting(self.order, self.work)
            times = finished[times.astype(np.int64)]
        kept = (times <= self.horizon) & (counts > 0)
        return Made(times[kept], counts[kept], self.events)

    # --- sources ---------------------------------------------------------------------------------

    def _arrive(self) -> dict[str, Floats]:
        return {source.name: self._times(source) for source in _sources(self.plan)}

    def _times(self, source: Source) -> Floats:
        expected = min(source.rate * self.horizon, source.tuples)
        if expected > MOST:
            raise TooManyError(f"{expected:,.0f} tuples of {source.name} are too many: {MOST:,}")
        if source.even:
            count = min(ceil(source.rate * self.horizon), source.tuples)
            return np.asarray((np.arange(int(count)) + 0.5) / source.rate, dtype=np.float64)
        if source.rate * self.horizon <= 2 * expected:
            count = self.dice.poisson(source.rate * self.horizon)
            times = np.sort(self.dice.random(count)) * self.horizon
            return times[: int(min(count, source.tuples))]
        gaps = self.dice.exponential(1 / source.rate, int(source.tuples))
        later: Floats = np.cumsum(gaps)
        return later[later <= self.horizon]

    def _source(self, source: Source) -> _Tuples:
        times = self.arrivals[source.name]
        key = np.searchsorted(self.order, times).astype(float) if self.one else times
        stamps = times[:, None] if self.windows is not None else np.zeros((times.size, 0))
        return _Tuples(key, stamps, (source.name,))

    # --- operators -------------------------------------------------------------------------------

    def _out(self, plan: Operator, *, last: bool = False) -> tuple[_Tuples, Ints]:
        """Its tuples; of the last operator's, how many each that it handled has made."""
        if isinstance(plan, Source):
            tuples = self._source(plan)
            return tuples, np.ones(tuples.key.size, dtype=np.int64)
        if isinstance(plan, Filter):
            tuples = self._filtered(plan)
            return tuples, np.ones(tuples.key.size, dtype=np.int64)
        left, right = self._out(plan.left)[0], self._out(plan.right)[0]
        if self.windows is None:
            return self._counted(plan, left, right, last=last)
        tuples = self._matched(plan, left, right)
        return tuples, np.ones(tuples.key.size, dtype=np.int64)

    def _filtered(self, plan: Filter) -> _Tuples:
        below, _ = self._out(plan.below)
        key = self._served(below.key, np.full(below.key.size, plan.cost))
        passed = (self.dice.random(key.size) < plan.share) & self._in_time(key)
        return _Tuples(key[passed], below.stamps[passed], below.names)

    def _in_time(self, key: Floats) -> "NDArray[np.bool_]":
        return key >= 0 if self.one else key <= self.horizon

    def _served(self, key: Floats, work: Floats) -> Floats:
        """When each tuple is done; with one server the work is added to its arrival's."""
        self.events += key.size
        if self.one:
            np.add.at(self.work, key.astype(np.int64), work)
            return key
        return waiting(key, work)

    def _counted(
        self, plan: Join, left: _Tuples, right: _Tuples, *, last: bool
    ) -> tuple[_Tuples, Ints]:
        """Without windows all that matters is how many the other side has had."""
        order, is_left = _merged(left.key, right.key)
        before = np.where(is_left, np.cumsum(~is_left), np.cumsum(is_left))
        both = np.concatenate([left.key, right.key])[order]
        key = self._served(both, plan.cost + plan.pair * before)
        counts = self.dice.binomial(before, plan.share)
        within = self._in_time(key)
        key, counts = key[within], counts[within]
        if last:
            return _Tuples(key, np.zeros((key.size, 0))), counts
        if counts.sum() > MOST:
            raise TooManyError(f"{counts.sum():,} tuples between two joins are too many: {MOST:,}")
        key = np.repeat(key, counts)
        return _Tuples(key, np.zeros((key.size, 0)), left.names + right.names), np.ones_like(counts)

    def _matched(self, plan: Join, left: _Tuples, right: _Tuples) -> _Tuples:
        """With windows, which tuples have met."""
        assert self.windows is not None
        order, is_left = _merged(left.key, right.key)
        both = np.concatenate([left.key, right.key])[order]
        forth = _limits(self.windows, left.names, right.names)
        back = _limits(self.windows, right.names, left.names)
        by, one, other, compared = _meet(
            is_left, left.stamps, right.stamps, _newest(left), _newest(right), forth, back,
            plan.share, plan.pair > 0, self.dice,
        )  # fmt: skip
        if by.size > MOST:
            raise TooManyError(f"{by.size:,} tuples of a join are too many: {MOST:,}")
        key = self._served(both, plan.cost + plan.pair * compared)[by]
        within = self._in_time(key)
        stamps = np.concatenate([left.stamps[one], right.stamps[other]], axis=1)
        return _Tuples(key[within], stamps[within], left.names + right.names)


def waiting(arrivals: Floats, work: Floats) -> Floats:
    """When a server is done with each arrival, in order: max(arrival, the one before) + work."""
    total = np.cumsum(work)
    return np.maximum.accumulate(arrivals - (total - work)) + total


def _sources(plan: Operator) -> list[Source]:
    if isinstance(plan, Source):
        return [plan]
    if isinstance(plan, Filter):
        return _sources(plan.below)
    return _sources(plan.left) + _sources(plan.right)


def _merged(left: Floats, right: Floats) -> "tuple[Ints, NDArray[np.bool_]]":
    """Both sides in the order in which they reach the join."""
    order = np.argsort(np.concatenate([left, right]), kind="stable")
    return order, order < left.size


def _limits(windows: Windows, names: Sequence[str], others: Sequence[str]) -> Floats:
    return np.array([[windows[name, other] for other in others] for name in names], dtype=float)


def _newest(tuples: _Tuples) -> Floats:
    """Of each tuple and all before it, the newest time."""
    found: Floats = np.maximum.accumulate(tuples.stamps.max(axis=1, initial=-inf))
    return found


@njit(cache=True)
def _within(one: Any, other: Any, forth: Any, back: Any) -> bool:
    """Whether two tuples are within all windows between them."""
    for i in range(one.size):
        for j in range(other.size):
            apart = one[i] - other[j]
            if apart > forth[i, j] or -apart > back[j, i]:
                return False
    return True


@njit(cache=True)
def _first(one: Any, newest: Any, count: int, forth: Any) -> int:
    """The first of the other side's tuples that is not older than any partner may be."""
    low = -np.inf
    for i in range(one.size):
        for j in range(forth.shape[1]):
            low = max(low, one[i] - forth[i, j])
    return int(np.searchsorted(newest[:count], low))


@njit(cache=True)
def _meet(  # noqa: PLR0913, PLR0917  # one loop, compiled
    is_left: Any, left: Any, right: Any, newest_left: Any, newest_right: Any, forth: Any,
    back: Any, share: float, compare: bool, dice: Any,  # noqa: FBT001
) -> Any:  # fmt: skip
    """Which tuples meet: the position of the later one, and both; pairs compared by position."""
    by = np.empty(1024, np.int64)
    ones, others = by.copy(), by.copy()
    compared = np.zeros(is_left.size)
    used, seen = 0, np.zeros(2, np.int64)
    skip = np.log1p(-share) if share < 1 else 0.0
    for position in range(is_left.size):
        mine = 0 if is_left[position] else 1
        at, count = seen[mine], seen[1 - mine]
        seen[mine] += 1
        if mine == 0:
            first = _first(left[at], newest_right, count, forth)
        else:
            first = _first(right[at], newest_left, count, back)
        if compare:
            for candidate in range(first, count):
                one, other = (at, candidate) if mine == 0 else (candidate, at)
                compared[position] += _within(left[one], right[other], forth, back)
        candidate = first - 1
        while share > 0:
            # To the next pair that matches, if its windows allow it.
            jump = 1.0 if share >= 1 else np.floor(np.log(1 - dice.random()) / skip) + 1
            if jump > count:
                break
            candidate += int(jump)
            if candidate >= count:
                break
            one, other = (at, candidate) if mine == 0 else (candidate, at)
            if not _within(left[one], right[other], forth, back):
                continue
            if used == by.size:
                by = np.append(by, np.empty(used, np.int64))
                ones = np.append(ones, np.empty(used, np.int64))
                others = np.append(others, np.empty(used, np.int64))
            by[used], ones[used], others[used] = position, one, other
            used += 1
    return by[:used], ones[:used], others[:used], compared
