"""Volumes that no formula gives, by low-discrepancy samples: in arrays, for searches need many."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SAMPLES = 512


def sampled(matrix: Sequence[Sequence[float]]) -> float:
    """The mean over samples of the product of the intervals left to each point, one by one."""
    n = len(matrix)
    order = sorted(range(n), key=lambda i: (sum(matrix[i]), sum(r[i] for r in matrix)))
    limits = np.array(matrix, dtype=np.float64)[np.ix_(order, order)]
    steps, placed, weight = _steps(n), np.zeros((n, SAMPLES)), np.ones(SAMPLES)
    for at in range(1, n):
        low = (placed[:at] - limits[:at, at, None]).max(axis=0)
        width = (placed[:at] + limits[at, :at, None]).min(axis=0) - low
        weight *= width
        placed[at] = low + width * steps[at - 1]
    return float(weight.mean())


@lru_cache(maxsize=32)
def _steps(count: int) -> Floats:
    """For each point but the first where in its interval each sample puts it (van der Corput)."""
    return np.array([_radical_inverses(base) for base in _primes(count - 1)])


def _radical_inverses(base: int) -> Floats:
    numbers, found, digit = np.arange(1, SAMPLES + 1), np.zeros(SAMPLES), 1.0
    while numbers.any():
        digit /= base
        numbers, rest = np.divmod(numbers, base)
        found += rest * digit
    return found


def _primes(count: int) -> list[int]:
    found: list[int] = []
    candidate = 2
    while len(found) < count:
        if all(candidate % prime for prime in found):
            found.append(candidate)
        candidate += 1
    return found
