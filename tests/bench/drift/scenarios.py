"""How rates and selectivities change, window by window; what is observed of them is noisy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from optimizer.workload import StreamLoad, Workload
from tests.bench.chain import Chain

Course = Callable[[int], float]
"""How far a window is from the first workload to the other: 0 to 1."""

EVERY = 60
"""Seconds of a window."""

PARTNERS = (4.0, 1.0, 0.1)
"""A tuple's partners on each key at first; in the end it is the other way round."""

GROWTH = {"d": 2.0}
"""By what rates are multiplied on the way."""


@dataclass(frozen=True)
class Scenario:
    """A course, how much windows differ from it by chance, and what is right to do."""

    course: Course
    noise: float = 0.05
    most: int = 0
    """Migrations that somebody in his right mind would do at most."""
    least: int = 0


def _step(window: int) -> float:
    return float(window >= 40)


def _ramp(window: int) -> float:
    return round(min(1.0, max(0.0, (window - 20) / 60)), 1)


def _burst(window: int) -> float:
    return float(window in (40, 41))


def _turns(length: int) -> Course:
    return lambda window: float(window // length % 2)


SCENARIOS: Mapping[str, Scenario] = {
    "none": Scenario(lambda _: 0.0, noise=0.0),
    "noise": Scenario(lambda _: 0.0, noise=0.25),
    "step": Scenario(_step, most=1, least=1),
    "slow ramp": Scenario(_ramp, most=2, least=1),
    "single burst": Scenario(_burst),
    "oscillation, 2 min": Scenario(_turns(2)),
    "oscillation, 8 min": Scenario(_turns(8), most=4),
    "oscillation, 30 min": Scenario(_turns(30), most=3, least=3),
}


def true(chain: Chain, share: float) -> Workload:
    """The workload so far on its way, each figure in proportion to its ends."""
    first, last = (
        chain.workload(chain.values(PARTNERS)),
        chain.workload(chain.values(PARTNERS[::-1])),
    )
    streams = {
        name: StreamLoad(load.rate * GROWTH.get(name, 1.0) ** share, load.width)
        for name, load in first.streams.items()
    }
    joins = {
        edge: one ** (1 - share) * last.joins[edge] ** share for edge, one in first.joins.items()
    }
    return replace(first, streams=streams, joins=joins)


def seen(load: Workload, noise: float, random: np.random.Generator) -> Workload:
    """What statistics say of it."""

    def off() -> float:
        return float(np.exp(random.normal(0.0, noise)))

    streams = {n: StreamLoad(one.rate * off(), one.width) for n, one in load.streams.items()}
    joins = {edge: min(1.0, share * off()) for edge, share in load.joins.items()}
    return replace(load, streams=streams, joins=joins)
