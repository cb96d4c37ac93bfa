"""Selectivities that never change, change once, and keep changing (Zhu 16.4).

The rule is as simple as his: two batches after a change, the plan that is best from then on is
asked for.
"""

from collections.abc import Sequence
from statistics import median
from typing import Any

from tests.bench.chain import Chain
from tests.bench.migration.fills import foretold
from tests.bench.migration.run import Beat, Setup, Trip, scratch, travel
from tests.bench.migration.silence import PARTNERS

NOTICED = 2
"""Batches from a change to a request."""

SCENARIOS = ("never", "once", "again and again")


def change(chain: Chain, engine: str, lateness: int, strategy: str, every: int) -> dict[str, Any]:
    """All scenarios, with and without migration."""
    changes: dict[str, tuple[int, ...]] = {
        "never": (),
        "once": (every,),
        "again and again": tuple(range(every, 4 * every, every)),
    }
    made = {
        name: scenario(chain, engine, lateness, strategy, 4 * every, at)
        for name, at in changes.items()
    }
    return {"strategy": strategy, "every": every, "scenarios": made}


def scenario(
    chain: Chain, engine: str, lateness: int, strategy: str, count: int, changes: Sequence[int]
) -> dict[str, Any]:
    """With and without migration, for selectivities that are reversed before these batches."""
    partners = PARTNERS[chain.count]
    orders = [chain.values(partners[::-1]), chain.values(partners)]
    best = [chain.ranked(values)[0].plan for values in orders]
    epochs = [sum(batch >= at for at in changes) % 2 for batch in range(count)]
    turns = {at: (best[1 - epochs[at]], best[epochs[at]]) for at in changes}
    wishes = {
        at + NOTICED: foretold(strategy, plans, chain, orders[epochs[at]], engine)
        for at, plans in turns.items()
    }
    with scratch() as directory:
        chain.write(directory / "data", [orders[epoch] for epoch in epochs])
        setup = Setup(chain, engine, directory / "data", count, lateness)
        without = travel(setup, best[0], {})
        trip = travel(setup, best[0], wishes, watch=True)
    begins = (changes[0] + NOTICED) if changes else chain.filling
    return {
        "changes": list(changes),
        "requests": sorted(wishes),
        "cut_overs": [
            event.batch for event in trip.events if event.phase == "done" and event.query
        ],
        "without": _series(without, chain),
        "with": _series(trip, chain),
        "same_results": trip.results == without.results,
        "results": trip.results[0],
        "throughput_gain": _ratio(without, trip, begins, "gap"),
        "cpu_gain": _ratio(without, trip, begins, "cpu"),
        "state_ratio": _rows(trip.beats[begins:]) / _rows(without.beats[begins:]),
        "watching_ms": 1000 * median(trip.watching),
        "watching_share": median(trip.watching) / median(beat.gap for beat in trip.beats),
    }


def _series(trip: Trip, chain: Chain) -> dict[str, list[float]]:
    return {
        "tuples_per_second": [chain.tuples / beat.gap for beat in trip.beats],
        "tuples_per_cpu_second": [chain.tuples / beat.cpu for beat in trip.beats],
        "state_rows": [float(beat.state_rows) for beat in trip.beats],
    }


def _ratio(without: Trip, trip: Trip, begins: int, what: str) -> float:
    one, other = (sum(getattr(b, what) for b in each.beats[begins:]) for each in (without, trip))
    return float(one / other)


def _rows(beats: Sequence[Beat]) -> float:
    return sum(beat.state_rows for beat in beats) / len(beats)
