"""How far a server got that takes tuples in order of arrival."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ROUNDING = 1e-9
"""Of the horizon: a server less behind than this keeps up."""


@dataclass(frozen=True)
class Progress:
    """`tau`, the time whose arrivals are handled by each time; since when they have waited."""

    tau: Floats
    behind: float | None


def done(times: Floats, work: Floats) -> Floats:
    """The work done by each time: the least, over u <= t, of V(u) + t - u."""
    return np.minimum(times + np.minimum.accumulate(work - times), work)


def progress(times: Floats, work: Floats) -> Progress:
    """tau(t): the largest time with V(tau) <= the work done by t."""
    finished = done(times, work)
    late = work - finished > ROUNDING * times[-1]
    if not late.any():
        return Progress(times, None)
    since = float(times[max(int(np.argmax(late)) - 1, 0)])
    slope = 1e-12 * work[-1] / times[-1]  # where nothing arrives, V must rise to be inverted
    tau = np.interp(finished, work + slope * times, times)
    return Progress(np.where(late, np.minimum(tau, times), times), since)
