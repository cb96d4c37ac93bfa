"""Time bounds among the conditions: `b.ts <= a.ts + INTERVAL 5 MINUTES` limits b.ts - a.ts."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from optimizer.query import ColumnRef
from optimizer.sql import canonical

Limits = dict[tuple[str, str], int]
"""`ts_i - ts_j <= limits[i, j]`, in microseconds."""


_SUMS = (exp.Add, exp.Sub, exp.SafeAdd, exp.SafeSubtract)


@dataclass
class _Sum:
    """Event times, each so many times, plus a length of time."""

    times: Counter[str] = field(default_factory=Counter)
    length: int = 0

    def add(self, other: "_Sum", sign: int) -> "_Sum":
        times = Counter(self.times)
        for alias, count in other.times.items():
            times[alias] += sign * count
        return _Sum(times, self.length + sign * other.length)


def time_limits(condition: exp.Expr, event_times: Mapping[ColumnRef, str]) -> Limits | bool | None:
    """The limits that a comparison of two inputs' event times sets; None if it is something else.

    True or False where the event times cancel out and only the lengths are left to compare.
    """
    if not isinstance(condition, exp.LT | exp.LTE | exp.EQ):
        return None
    left, right = _sum(condition.this, event_times), _sum(condition.expression, event_times)
    if left is None or right is None or not (left.times or right.times):
        return None
    difference = left.add(right, -1)
    times = {alias: count for alias, count in difference.times.items() if count}
    if not times:
        return _holds(condition, difference.length)
    if sorted(times.values()) != [-1, 1]:
        return None
    newer, older = sorted(times, key=lambda alias: -times[alias])
    limit = -difference.length
    if isinstance(condition, exp.LT):
        return {(newer, older): limit - 1}
    if isinstance(condition, exp.LTE):
        return {(newer, older): limit}
    return {(newer, older): limit, (older, newer): -limit}


def _holds(condition: exp.Expr, difference: int) -> bool:
    if isinstance(condition, exp.LT):
        return difference < 0
    return difference <= 0 if isinstance(condition, exp.LTE) else difference == 0


def _sum(tree: exp.Expr, event_times: Mapping[ColumnRef, str]) -> _Sum | None:
    if isinstance(tree, exp.Column):
        alias = event_times.get(canonical.ref(tree))
        return None if alias is None else _Sum(Counter([alias]))
    if isinstance(tree, exp.Interval):
        return _Sum(length=canonical.length(tree))
    if isinstance(tree, _SUMS):
        left, right = _sum(tree.this, event_times), _sum(tree.expression, event_times)
        if left is not None and right is not None:
            return left.add(right, 1 if isinstance(tree, exp.Add | exp.SafeAdd) else -1)
    return None


def tighten(limits: Limits, more: Mapping[tuple[str, str], int]) -> None:
    """Keep the smaller limit of each pair."""
    for pair, limit in more.items():
        limits[pair] = min(limit, limits.get(pair, limit))
