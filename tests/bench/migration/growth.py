"""How long migrations last as windows or rates grow, beside the published models (Zhu 16.2).

Selectivities are the same everywhere, so that a tuple finds more partners as there are more tuples
to meet.  Zhu's unit costs are fitted on the first point; ours, which tell what every fill takes
apart from its work, on every other point, and again on the first half of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from optimizer.migration import zhu
from optimizer.plan import Plan, build, parse
from tests.bench.chain import Chain, Values
from tests.bench.migration.fills import Move, calibrate, move
from tests.bench.migration.run import Setup, Wish, scratch, travel

PARTNERS = {3: (0.8, 0.3), 4: (0.8, 0.4, 0.16)}
"""At the first point; their ratios are those of Zhu's first set of experiments (Table 16.1)."""

TREES = {3: ("((a b) c)", "(a (b c))"), 4: ("(((a b) c) d)", "(a ((b c) d))")}
"""His plans (Figure 10.1)."""

FINE = 2
"""Seconds of a batch in a parallel track: its length is known as exactly as that."""

_UNITS = zhu.Units(compare=0.0, cursor=0.0, join=2.2e-6, insert=2.0e-7)


@dataclass(frozen=True)
class Point:
    """A setting, and what was measured in it."""

    chain: Chain
    move: Move
    track: int
    """Event time, in seconds, from the beginning of a parallel track to its cut-over."""


def growth(
    chains: Iterable[Chain], engine: str, lateness: int, runs: int, against: str
) -> dict[str, Any]:
    """Both strategies in every setting."""
    settings = list(chains)
    values = settings[0].values(PARTNERS[settings[0].count])
    points = [_measured(chain, values, engine, lateness, runs) for chain in settings]
    fitted = calibrate(point.move for point in points[::2])
    ahead = calibrate(point.move for point in points[: (len(points) + 1) // 2])
    first = points[0]
    scale = first.move.cpu / _moving(first.chain, values)
    return {
        "against": against,
        "trees": list(TREES[first.chain.count]),
        "points": [
            {
                "window": point.chain.window,
                "rate": point.chain.rate,
                "moving_state_ms": 1000 * point.move.cpu,
                "moving_state_wall_ms": 1000 * point.move.seconds,
                "zhu_moving_state_ms": 1000 * scale * _moving(point.chain, values),
                "our_moving_state_ms": 1000 * point.move.predicted(fitted),
                "our_extrapolated_ms": 1000 * point.move.predicted(ahead),
                "parallel_track_s": point.track,
                "zhu_parallel_track_s": zhu.parallel_track(point.chain.window, 3),
                "our_parallel_track_s": zhu.settled_track(point.chain.window, lateness),
            }
            for point in points
        ],
    }


def windows(chain: Chain, lengths: Iterable[int]) -> list[Chain]:
    """The same load, other windows."""
    return [replace(chain, window=length) for length in lengths]


def rates(chain: Chain, per_second: Iterable[int]) -> list[Chain]:
    """The same window, other rates."""
    return [replace(chain, rate=rate) for rate in per_second]


def _measured(chain: Chain, values: Values, engine: str, lateness: int, runs: int) -> Point:
    old, new = (build(chain.query, parse(tree)) for tree in TREES[chain.count])
    return Point(
        chain,
        move(chain, values, (old, new), engine, runs),
        _tracked(chain, values, (old, new), engine, lateness),
    )


def _tracked(
    chain: Chain, values: Values, plans: tuple[Plan, Plan], engine: str, lateness: int
) -> int:
    """A parallel track's length does not depend on how many tuples there are: a tenth will do."""
    few = replace(chain, rate=max(1, chain.rate // 10), batch=FINE)
    begins = few.filling + 1
    count = begins + -(-(few.window + lateness) // few.batch) + 2
    with scratch() as directory:
        few.write(directory / "data", [values] * count)
        setup = Setup(few, engine, directory / "data", count, lateness)
        trip = travel(setup, plans[0], {begins: Wish("parallel-track", plans[1])})
    return (trip.done - begins) * few.batch


def _moving(chain: Chain, values: Values) -> float:
    """T_MS of his model (12.1 to 12.3): the new plan's states from below."""
    seconds = []
    rate = float(chain.rate)
    for key in chain.keys[1:]:
        inputs = zhu.Inputs(rate, chain.rate, 1 / values[key])
        seconds.append(inputs.recompute(chain.window, _UNITS))
        rate = inputs.rate(chain.window)
    joins = chain.count - 1
    return zhu.moving_state(joins, joins, seconds, _UNITS)
