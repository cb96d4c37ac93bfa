"""Feasibility: how much arrives at each operator, and which plan keeps up (Ji sections 4 and 5).

Sizes are driven by the sources: what the arrivals of one second make an operator put out, whenever
it does so.  An operator keeps up if its work on them takes no longer than that second; a plan keeps
up if its busiest operator does.  Equation (2) counts each side of a join's new tuples against all
of the other: two aggregates that slide together put out 2 l g by it, where l g come out.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import TypeVar

T = TypeVar("T")

ROUNDING = 1e-12
"""Sums of the same numbers in another order differ by less."""


# --- sizes ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Relation:
    """What an operator reads or puts out."""

    rate: float
    """Tuples that one second of arrivals makes: the source-driven size."""
    size: float
    """Tuples in it at any time."""


def windowed(rate: float, seconds: float) -> Relation:
    """A stream under a window."""
    return Relation(rate, rate * seconds)


def selected(below: Relation, selectivity: float) -> Relation:
    """A select's, equation (1); of selectivity 1, a project's."""
    return Relation(selectivity * below.rate, selectivity * below.size)


def joined(left: Relation, right: Relation, selectivities: tuple[float, float]) -> Relation:
    """A join's, equation (2); its selectivities are relative to the left and to the right."""
    of_left, of_right = selectivities
    rate = left.rate * of_right * right.size + right.rate * of_left * left.size
    return Relation(rate, left.size * right.size * sqrt(of_left * of_right))


def aggregated(slides: float, groups: float) -> Relation:
    """A windowed aggregate's, equation (3): all its groups at each of its slides a second."""
    return Relation(slides * groups, groups)


def utilisation(rates: Sequence[float], costs: Sequence[float]) -> float:
    """Seconds a second that an operator works on its inputs, equation (4)."""
    return sum(rate * cost for rate, cost in zip(rates, costs, strict=True))


# --- costs ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Utilisation:
    """What a plan needs a second: its busiest operator, and all of them, equations (5) and (6)."""

    bottleneck: float = 0.0
    total: float = 0.0

    @classmethod
    def of(cls, work: float) -> "Utilisation":
        """That of one operator."""
        return cls(work, work)

    def __add__(self, other: "Utilisation") -> "Utilisation":
        return Utilisation(max(self.bottleneck, other.bottleneck), self.total + other.total)


@dataclass(frozen=True)
class Objective:
    """Definition 1, the one comparison of plans: keep up, and then with the least work.

    A feasible plan is better than one that is not; of feasible ones the smaller total is better, of
    the others the smaller bottleneck.  The paper gives each operator a CPU of its own.  Where they
    share `cores`, these are a bottleneck as well: all of them together must not need more.
    """

    cores: float = inf
    feasibility: bool = True
    """Without it the smallest total is the best, whether it keeps up or not (section 8.4)."""

    @property
    def shared(self) -> bool:
        """Whether operators compete for cores: the best part is then not the best of every plan."""
        return self.cores < inf

    def strain(self, cost: Utilisation) -> float:
        """How many seconds a second's arrivals keep the scarcest resource busy."""
        return max(cost.bottleneck, cost.total / self.cores)

    def feasible(self, cost: Utilisation) -> bool:
        """Whether it keeps up."""
        return self.strain(cost) <= 1 + ROUNDING

    def key(self, cost: Utilisation) -> tuple[bool, float, float]:
        """Smaller is better."""
        strain = self.strain(cost)
        if not self.feasibility or strain <= 1 + ROUNDING:
            return False, cost.total, cost.total
        return True, strain, cost.total

    def best(
        self, options: Iterable[T], cost: Callable[[T], Utilisation], name: Callable[[T], str | int]
    ) -> T:
        """The best of them; of equals, whatever they were summed from, the first by name."""
        left = [(self.key(cost(option)), option) for option in options]
        for figure in range(3):
            least = min(key[figure] for key, _ in left)
            left = [one for one in left if one[0][figure] <= least * (1 + ROUNDING)]
        alike = [option for _, option in left]
        return alike[0] if len(alike) == 1 else min(alike, key=name)


def front(options: Iterable[T], cost: Callable[[T], Utilisation]) -> list[T]:
    """Those that no other one beats in bottleneck and total; the least bottleneck first."""
    kept: list[T] = []
    least = inf
    for option in sorted(options, key=lambda one: (cost(one).bottleneck, cost(one).total)):
        if cost(option).total < least:
            kept.append(option)
            least = cost(option).total
    return kept
