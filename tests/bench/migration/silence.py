"""How long results are missing, by strategy; and what was predicted."""

from dataclasses import asdict, replace
from statistics import median
from typing import Any

from optimizer.migration import MIGRATIONS
from optimizer.plan import Plan
from tests.bench.chain import Chain
from tests.bench.migration.fills import MOVING, calibrate, foretold, move, predict, told
from tests.bench.migration.run import USUAL, Setup, Trip, scratch, travel

PARTNERS = {3: (5.0, 0.2), 4: (5.0, 1.0, 0.2)}
"""How many tuples of a window a tuple meets on each key; the plan that runs is for the reverse."""

SMALLER = (4, 2)
"""Estimates are calibrated at these fractions of the rate."""


def plans(chain: Chain) -> tuple[Plan, Plan]:
    """The best one for the reverse of how tuples meet, and the best one."""
    partners = PARTNERS[chain.count]
    old, new = (chain.ranked(chain.values(p))[0].plan for p in (partners[::-1], partners))
    return old, new


def silence(chain: Chain, engine: str, lateness: int, runs: int, load: float) -> dict[str, Any]:
    """Every strategy over the same batches, and none."""
    values, both = chain.values(PARTNERS[chain.count]), plans(chain)
    wishes = {name: foretold(name, both, chain, values, engine) for name in MIGRATIONS}
    smaller = [replace(chain, rate=max(1, chain.rate // part)) for part in SMALLER]
    fitted = calibrate(
        move(one, one.values(PARTNERS[one.count]), plans(one), engine, runs) for one in smaller
    )
    moved = move(chain, values, both, engine, runs)
    begins = chain.filling + USUAL
    count = begins + 3 * (-(-(chain.window + lateness) // chain.batch) + 1)
    strategies: dict[str, Any] = {}
    with scratch() as directory:
        chain.write(directory / "data", [values] * count)
        setup = Setup(chain, engine, directory / "data", count, lateness)
        calm = travel(setup, both[0], {})
        if load < 1:
            setup = replace(setup, interval=calm.usual(begins)[0] / load)
            calm = travel(setup, both[0], {})
        strategies["none"] = _calm(calm, begins)
        for name in MIGRATIONS:
            trip = travel(setup, both[0], {begins: wishes[name]})
            said = predict(name, both, told(chain, values, engine), trip.held, lateness)
            strategies[name] = _outcome(trip, begins, chain) | {
                "same_results": trip.results == calm.results,
                "predicted_lasts_s": said.lasts,
                "predicted_takes": wishes[name].takes,
            }
    return {
        "plans": [str(plan) for plan in both],
        "partners": list(PARTNERS[chain.count]),
        "results": calm.results[0],
        "calibration": asdict(fitted),
        "moving_state": {
            "ms": 1000 * moved.seconds,
            "cpu_ms": 1000 * moved.cpu,
            "predicted_cpu_ms": 1000 * moved.predicted(fitted),
        },
        "begins": begins,
        "interval_s": setup.interval,
        "predicted_saving": wishes[MOVING].saves,
        "strategies": strategies,
    }


def _outcome(trip: Trip, begins: int, chain: Chain) -> dict[str, Any]:
    """Of the batches from the first one that a migration touches to the first one of the new plan.

    Moving states is over before the first of them; the others are slower while it goes on.
    """
    return _beats(trip, begins, trip.done + 1) | {
        "fills_ms": 1000 * sum(one.seconds for one in trip.fills),
        "fills_cpu_ms": 1000 * sum(one.cpu for one in trip.fills),
        "slices": len(trip.fills),
        "longest_slice_cpu_ms": 1000 * max((one.cpu for one in trip.fills), default=0.0),
        "batches": trip.done - begins,
        "event_seconds": (trip.done - begins) * chain.batch,
        "rebuilt": trip.rebuilt,
    }


def _calm(trip: Trip, begins: int) -> dict[str, Any]:
    """The same of the plan that stays: how much longer a batch takes now and then anyway."""
    still = {"slices": 0, "batches": 0, "rebuilt": 0, "same_results": True}
    return _beats(trip, begins, (begins + len(trip.beats)) // 2) | still


def _beats(trip: Trip, begins: int, ends: int) -> dict[str, Any]:
    """Batches of a migration, and those after it, beside the usual one."""
    usual, used = trip.usual(begins)
    during, after = trip.beats[begins:ends], trip.beats[ends:]
    return {
        "usual_ms": 1000 * usual,
        "longest_to_usual": max(beat.gap for beat in during) / usual,
        "median_to_usual": median(beat.gap for beat in during) / usual,
        "after_to_usual": median(beat.gap for beat in after) / usual,
        "usual_cpu_ms": 1000 * used,
        "longest_cpu_to_usual": max(beat.cpu for beat in during) / used,
        "median_cpu_to_usual": median(beat.cpu for beat in during) / used,
        "after_cpu_to_usual": median(beat.cpu for beat in after) / used,
        "gaps_ms": [1000 * beat.gap for beat in trip.beats],
        "cpu_ms": [1000 * beat.cpu for beat in trip.beats],
    }
