"""How many combinations of tuples are within their windows, some streams being seen further.

The volume of `t_i - t_j <= D_ij, 0 <= t_i <= h_i`, `h_i` being how far stream i has been seen:
exact without windows, for two streams and for CQL's ranges; sampled otherwise, as in `window.py`.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from math import prod

import numpy as np

from optimizer.cost.rate.servers import Floats
from optimizer.window import MICROSECONDS, Bounds

SAMPLES = 512
SAMPLED = 97
"""Times at which volumes are sampled."""
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)

Seen = Mapping[str, Floats]
"""Seconds of each stream's arrivals that have been seen, at each of some times."""


def volume(seen: Seen, bounds: Bounds | None) -> Floats:
    """The combinations, each stream having one tuple a second."""
    names = sorted(seen)
    horizons = [seen[name] for name in names]
    if bounds is None or len(names) == 1:
        return np.asarray(np.prod(horizons, axis=0))
    ahead = [
        [0.0 if i == j else bounds[i, j] / MICROSECONDS for j in names] for i in names
    ]  # seconds that one may be newer than the other
    if len(names) == 2:
        return _pair(horizons[0], horizons[1], ahead[0][1], ahead[1][0])
    windows = [_window(ahead, s) for s in range(len(names))]
    if all(window is not None and window > 0 for window in windows):
        return _ranges(horizons, [window or 0.0 for window in windows])
    return _between(horizons, ahead)


def _window(ahead: Sequence[Sequence[float]], stream: int) -> float | None:
    found = {row[stream] for i, row in enumerate(ahead) if i != stream}
    return found.pop() if len(found) == 1 else None


def _pair(one: Floats, other: Floats, newer: float, older: float) -> Floats:
    """The part of a rectangle between two lines of slope one."""
    below = _above(one, other, -newer)
    return np.maximum(below - _above(one, other, older), 0.0)


def _above(one: Floats, other: Floats, offset: float) -> Floats:
    """The part of the rectangle where the other is newer by more than the offset."""
    corners = (other - offset, other - offset - one, -offset + 0 * one, -offset - one)
    first, second, third, fourth = (np.maximum(corner, 0.0) ** 2 / 2 for corner in corners)
    return first - second - third + fourth


def _ranges(horizons: Sequence[Floats], windows: Sequence[float]) -> Floats:
    """CQL: the sum over which tuple is the newest, the others being within their windows.

    Between the cuts the combinations are a polynomial of the newest's time: integrated exactly.
    """
    seen, width = np.stack(horizons), np.array(windows)[:, None]
    last = np.max(seen, axis=0)
    cuts = np.concatenate([np.zeros((1, last.size)), seen, width + 0 * seen, seen + width])
    cuts = np.sort(np.minimum(cuts, last), axis=0)
    low, half = cuts[:-1, None], np.diff(cuts, axis=0)[:, None] / 2
    nodes, weights = _gauss(len(horizons) // 2 + 1)
    at = low + half * (1 + nodes[:, None])
    total: Floats = (half * weights[:, None] * _newest(at, seen, width)).sum(axis=(0, 1))
    return total


@cache
def _gauss(points: int) -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return nodes, weights


def _newest(at: Floats, seen: Floats, width: Floats) -> Floats:
    """Combinations whose newest tuple is of that time, a second of it."""
    lengths = [
        np.maximum(np.minimum(at, h) - np.maximum(at - w, 0.0), 0.0)
        for h, w in zip(seen, width, strict=True)
    ]
    total = np.zeros_like(at)
    for newest, horizon in enumerate(seen):
        others = [length for s, length in enumerate(lengths) if s != newest]
        total += np.where(at <= horizon, prod(others), 0.0)
    return total


def _between(horizons: Sequence[Floats], ahead: Sequence[Sequence[float]]) -> Floats:
    """Sampled at some of the times; between them it is a line, within the samples' error."""
    count = horizons[0].size
    if count <= SAMPLED:
        return _sampled(horizons, ahead)
    at = np.linspace(0, count - 1, SAMPLED).round().astype(int)
    some = _sampled([horizon[at] for horizon in horizons], ahead)
    return np.asarray(np.interp(np.arange(count), at, some))


def _sampled(horizons: Sequence[Floats], ahead: Sequence[Sequence[float]]) -> Floats:
    """One stream after the other, each within what those placed before leave it."""
    steps = [_radical_inverse(prime) for prime in PRIMES[: len(horizons)]]
    placed: list[tuple[int, Floats]] = []
    weight = np.ones((SAMPLES, 1))
    for point, horizon in enumerate(horizons):
        low, high = np.zeros((SAMPLES, 1)), horizon[None, :] + np.zeros((SAMPLES, 1))
        for other, at in placed:
            low = np.maximum(low, at - ahead[other][point])
            high = np.minimum(high, at + ahead[point][other])
        width = np.maximum(high - low, 0.0)
        weight = weight * width
        placed.append((point, low + width * steps[point][:, None]))
    found: Floats = weight.mean(axis=0)
    return found


def _radical_inverse(base: int) -> Floats:
    numbers = np.arange(1, SAMPLES + 1)
    result, digit = np.zeros(SAMPLES), 1.0
    while numbers.any():
        digit /= base
        result += numbers % base * digit
        numbers = numbers // base
    return result
