"""What plans make of a load by each time: the one place where output rates are compared.

The grid is denser towards the start, holds the ends of the streams, and is doubled until results
change by less than 0.1 %.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import inf, isfinite, prod

import numpy as np

from optimizer.cost.rate import printed
from optimizer.cost.rate.exact import Exact, Late
from optimizer.cost.rate.load import RateLoad
from optimizer.cost.rate.objective import Objective
from optimizer.cost.rate.servers import Floats
from optimizer.cost.rate.tree import Node, Servers
from optimizer.cost.rate.volumes import volume
from optimizer.window import MICROSECONDS

COARSE, FINEST = 257, 2**16
ACCURACY = 1e-3
"""Of the results: less is the grid's error.  It refines until they change by a fifth of it."""
WHOLE = 1 - 1e-9
"""A number of results is reached but for rounding."""
LONGEST = 1e15
"""Seconds; what takes longer never comes."""
POINTS = 101
"""Of a curve."""


class Model(StrEnum):
    """How results are predicted."""

    EXACT = "exact"
    """Servers that take tuples in order of arrival."""

    PRINTED = "printed"
    """Equations 2 and 3 of the paper, for inputs without an end."""


@dataclass(frozen=True)
class Curve:
    """The results of a plan by each time, and the operators that cannot keep up."""

    times: Floats
    made: Floats
    late: tuple[Late, ...] = ()

    def at(self, times: Floats | float) -> Floats:
        """The results by some times."""
        return np.asarray(np.interp(times, self.times, self.made))

    def reaches(self, results: float) -> float | None:
        """When there are so many."""
        wanted = results * WHOLE
        if self.made[-1] < wanted:
            return None
        last = int(np.argmax(self.made >= wanted))
        low, high = self.made[last - 1], self.made[last]
        share = (wanted - low) / (high - low) if last and high > low else 1.0
        begun = self.times[max(last - 1, 0)]
        return float(begun + share * (self.times[last] - begun))


@dataclass(frozen=True)
class Judge:
    """Judges the plans of one load for one objective."""

    load: RateLoad
    objective: Objective
    servers: Servers = Servers.EACH
    model: Model = Model.EXACT

    def grid(self, horizon: float, points: int) -> Floats:
        """Times from zero on, the ends of the streams among them."""
        ends = (feed.end for feed in self.load.streams.values())
        kinks = [end for end in ends if 0 < end < horizon]
        times = horizon * np.linspace(0.0, 1.0, points) ** 2
        return _rising(np.concatenate([times, kinks]))

    def once(self, plan: Node, times: Floats) -> Curve:
        """The curve on a grid."""
        with np.errstate(all="ignore"):  # what is beyond any number is refused where it is shown
            if self.model is Model.PRINTED:
                late = printed.saturated(plan, times, self.load)
                made = printed.outputs(plan, times, self.load)
                return Curve(times, made, tuple(Late(*one) for one in late))
            flow = Exact(self.load, times, self.servers).run(plan)
            return Curve(times, flow.made, flow.late)

    def curve(self, plan: Node, horizon: float) -> Curve:
        """The curve up to a time, on a grid that is fine enough."""
        points, found = COARSE, self.once(plan, self.grid(horizon, COARSE))
        while points < FINEST:
            points = 2 * points - 1
            finer = self.once(plan, self.grid(horizon, points))
            if self._agree(found, finer, horizon):
                return finer
            found = finer
        return found

    def _agree(self, one: Curve, other: Curve, horizon: float) -> bool:
        looks = horizon * np.linspace(0.05, 1.0, 20)
        a, b = one.at(looks), other.at(looks)
        return not bool(np.any(np.abs(a - b) > ACCURACY / 5 * np.abs(b)))

    # --- the two objectives ----------------------------------------------------------------------

    def value(self, plan: Node) -> float | None:
        """Results by the time, or seconds to the first so many; nothing if they never come."""
        if self.objective.by is not None:
            return float(self.curve(plan, self.objective.by).made[-1])
        return self.seconds_to(plan, self.objective.first or 0.0)

    def score(self, plan: Node) -> float:
        """More is better."""
        return self.objective.score(self.value(plan))

    def seconds_to(self, plan: Node, results: float) -> float | None:
        """When a plan has made so many; nothing if it never has."""
        if self.limit < results * WHOLE:
            return None
        horizon = self.soonest(results)
        while (found := self._reached(plan, results, horizon, COARSE)) is None:
            horizon *= 2
            if horizon > LONGEST:
                return None
        return self._refined(plan, results, found)

    def _refined(self, plan: Node, results: float, found: float) -> float:
        points, horizon = COARSE, 1.25 * found
        while points < FINEST:
            points = 2 * points - 1
            finer = self._reached(plan, results, horizon, points)
            if finer is None:
                horizon *= 1.25
            elif abs(finer - found) <= ACCURACY / 5 * finer:
                return finer
            found = finer or found
        return found

    def _reached(self, plan: Node, results: float, horizon: float, points: int) -> float | None:
        return self.once(plan, self.grid(horizon, points)).reaches(results)

    # --- without limits on the CPU ---------------------------------------------------------------

    def arrived(self, horizon: float) -> float:
        """The results of what has arrived by then."""
        return self.seen(dict.fromkeys(self.load.streams, horizon))

    def seen(self, until: Mapping[str, float]) -> float:
        """The results of each stream's arrivals up to a time of its own."""
        return self._results({n: min(at, self.load.streams[n].end) for n, at in until.items()})

    def soonest(self, results: float) -> float:
        """When so many could be there if every operator were fast; all plans are alike in it."""
        low, high = 0.0, 1e-6
        while self.arrived(high) < results * WHOLE and high < LONGEST:
            low, high = high, 2 * high
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if self.arrived(middle) >= results * WHOLE else (middle, high)
        return high

    def everything(self, names: Iterable[str]) -> float:
        """The combinations of all tuples that these streams will ever have, within windows."""
        feeds = {name: self.load.streams[name] for name in names}
        return self._combinations({name: feed.end for name, feed in feeds.items()})

    @cached_property
    def limit(self) -> float:
        """The results that there will ever be: without end, unless a stream ends or is empty."""
        endless = self._endless
        if self.load.share(self.load.streams) == 0 or any(
            f.rate == 0 for f in self.load.streams.values()
        ):
            return 0.0
        if not isfinite(endless):
            longest = 1.0 if self.load.bounds is None else self._longest + 1
            return inf if self.arrived(3 * longest) > 0 else 0.0
        return self._results({n: min(endless, f.end) for n, f in self.load.streams.items()})

    @property
    def _endless(self) -> float:
        """The time after which nothing joins any more, if there is one."""
        ends = [feed.end for feed in self.load.streams.values()]
        if self.load.bounds is None or self.model is Model.PRINTED:
            return inf if self.model is Model.PRINTED and min(ends) > 0 else max(ends)
        return min(ends) + self._longest

    @property
    def _longest(self) -> float:
        assert self.load.bounds is not None
        return max(map(max, self.load.bounds.matrix)) / MICROSECONDS

    def _results(self, until: Mapping[str, float]) -> float:
        return self.load.share(until) * self._combinations(until)

    def _combinations(self, until: Mapping[str, float]) -> float:
        if not until:
            return 1.0
        rates = prod(self.load.streams[name].rate for name in until)
        seen = {name: np.array([seconds]) for name, seconds in until.items()}
        with np.errstate(all="ignore"):
            return rates * float(volume(seen, self.load.bounds)[0])


def _rising(times: Floats) -> Floats:
    """Each time once, in order; numpy's `unique` loads masked arrays, which takes 40 ms."""
    ordered = np.sort(times)
    return ordered[np.diff(ordered, prepend=-np.inf) > 0]


@dataclass(frozen=True)
class Crossing:
    """Where one plan passes another and stays ahead."""

    plans: tuple[int, int]
    seconds: float
    results: float


def crossings(curves: Sequence[Curve], horizon: float) -> list[Crossing]:
    """Of all pairs of plans, in order of time."""
    times = _rising(np.concatenate([curve.times for curve in curves]))
    times = times[times <= horizon]
    made = [curve.at(times) for curve in curves]
    pairs = ((i, j) for j in range(len(made)) for i in range(j))
    found = [one for i, j in pairs for one in _crossed(times, made[i], made[j], (i, j))]
    return sorted(found, key=lambda one: (one.seconds, one.plans))


def _crossed(times: Floats, one: Floats, other: Floats, pair: tuple[int, int]) -> list[Crossing]:
    """Where the sign of the difference changes, as far as it is more than the grid's error."""
    apart = other - one
    sure = np.flatnonzero(np.abs(apart) > ACCURACY * np.maximum(one, other))
    signs = np.sign(apart[sure])
    found = []
    for at in np.flatnonzero(signs[1:] != signs[:-1]):
        low, high = int(sure[at]), int(sure[at + 1])
        seconds = _zero(times[low : high + 1], apart[low : high + 1])
        found.append(Crossing(pair, seconds, float(np.interp(seconds, times, one))))
    return found


def _zero(times: Floats, apart: Floats) -> float:
    """Where a difference that ends with the other sign first changes it for good."""
    after = int(np.flatnonzero(np.sign(apart) == np.sign(apart[0]))[-1])
    low, high = apart[after], apart[after + 1]
    return float(times[after] + (times[after + 1] - times[after]) * low / (low - high))
