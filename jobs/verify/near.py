"""Rows that only computed doubles keep apart, paired one by one: as many as can be the same.

A double may differ by `RELATIVE` of itself, or by `ABSOLUTE` of all that was added up for it,
because adding up in another order moves its last digits; never if it is infinite or no number.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan

from jobs.verify.matching import matched

RELATIVE = 1e-9
ABSOLUTE = 1e-12


@dataclass(frozen=True)
class Row:
    """A row's computed doubles, and what was added up for each in absolute values."""

    values: tuple[float | None, ...]
    reaches: tuple[float, ...] = ()


@dataclass(frozen=True)
class Counts:
    """How many rows are missing, there too often, or wrong."""

    missing: int = 0
    duplicate: int = 0
    wrong: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.missing + other.missing,
            self.duplicate + other.duplicate,
            self.wrong + other.wrong,
        )


def count(expected: Sequence[Row], actual: Sequence[Row], known: Sequence[Row] = ()) -> Counts:
    """How rows differ that have all else in common; `known` are other rows that are expected."""
    paired = matched(partners(expected, actual))
    extra = [row for a, row in enumerate(actual) if a not in paired]
    like = {a for found in partners([*expected, *known], extra) for a in found} if extra else set()
    return Counts(len(expected) - len(paired), len(like), len(extra) - len(like))


def partners(expected: Sequence[Row], actual: Sequence[Row]) -> list[list[int]]:
    """For each expected row the actual ones that may be it."""
    order = sorted(range(len(actual)), key=lambda a: _place(actual[a].values[0]))
    places = [_place(actual[a].values[0]) for a in order]
    return [[a for a in _around(row, order, places) if same(row, actual[a])] for row in expected]


def _around(row: Row, order: Sequence[int], places: Sequence[float]) -> Iterable[int]:
    """Those whose first value lies near enough to be worth a look."""
    place = _place(row.values[0])
    slack = 2 * _slack(place, row.reaches[0]) if isfinite(place) else 0.0
    return order[bisect_left(places, place - slack) : bisect_right(places, place + slack)]


def _place(value: float | None) -> float:
    """Where a value stands in order: nulls first, what is no number last."""
    if value is None:
        return -inf
    return inf if isnan(value) else value


def _slack(value: float, reached: float) -> float:
    return max(RELATIVE * abs(value), ABSOLUTE * reached if isfinite(reached) else 0.0)


def same(row: Row, other: Row) -> bool:
    """Whether a row may be what was expected."""
    return all(map(close, row.values, other.values, row.reaches))


def close(one: float | None, other: float | None, reached: float = 0.0) -> bool:
    """Whether two doubles are the same but for the order in which they were added up."""
    if one is None or other is None:
        return one is other
    if isnan(one) or isnan(other):
        return isnan(one) and isnan(other)
    if not (isfinite(one) and isfinite(other)):
        return one == other
    return abs(one - other) <= max(_slack(one, reached), RELATIVE * abs(other))
