"""Rates that have fallen while the states are still those of busier times (Zhu 16.4, 23.15).

Filling states from what is there then takes what the busy time left; running both plans for a
window takes what comes now.  Where they cross, and whether `auto` knows it.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from optimizer.migration import MIGRATIONS, auto
from optimizer.migration.cost import Figures
from optimizer.migration.matching import Context
from optimizer.plan import Plan
from optimizer.window import MICROSECONDS
from tests.bench.chain import Chain, Values
from tests.bench.migration.fills import foretold, told
from tests.bench.migration.run import Setup, Trip, scratch, travel
from tests.bench.migration.silence import PARTNERS, plans


def falling(chain: Chain, engine: str, lateness: int, parts: Sequence[int]) -> dict[str, Any]:
    """Every strategy after the rate has fallen to one of so many parts of what it was."""
    values, both = chain.values(PARTNERS[chain.count]), plans(chain)
    points = [_point(chain, values, both, engine, lateness, part) for part in parts]
    return {"plans": [str(plan) for plan in both], "rate": chain.rate, "points": points}


def _point(
    chain: Chain, values: Values, both: tuple[Plan, Plan], engine: str, lateness: int, part: int
) -> dict[str, Any]:
    slow = replace(chain, rate=max(1, chain.rate // part))
    fell = chain.filling + 2
    begins = fell + 1
    count = begins + 3 * (-(-(chain.window + lateness) // chain.batch) + 1)
    with scratch() as directory:
        _write(directory, chain, slow, values, fell, count)
        setup = Setup(chain, engine, directory / "data", count, lateness)
        calm = travel(setup, both[0], {})
        trips = {
            name: travel(setup, both[0], {begins: foretold(name, both, slow, values, engine)})
            for name in MIGRATIONS
        }
    held = trips["parallel-track"].held
    figures = Figures(told(slow, values, engine), held, lateness * MICROSECONDS)
    choice = auto(*both, Context(), figures)
    said = {one.strategy: one.effort for one in (choice.chosen, *choice.others)}
    strategies = {
        name: {
            "cpu_s": _more(trip, calm, begins),
            "predicted_cpu_s": said[name].work,
            "lasts_s": (trip.done - begins) * chain.batch,
            "predicted_lasts_s": said[name].lasts,
            "same_results": trip.results == calm.results,
        }
        for name, trip in trips.items()
    }
    return {"rate": slow.rate, "auto": choice.strategy, "strategies": strategies}


def _write(
    directory: Path, busy: Chain, slow: Chain, values: Values, fell: int, count: int
) -> None:
    """The batches of the busy time, then the others."""
    busy.write(directory / "data", [values] * fell)
    slow.write(directory / "slow", [values] * count)
    for name in busy.streams:
        for batch in range(fell, count):
            file = f"{name}-{batch}.parquet"
            (directory / "slow" / file).rename(directory / "data" / file)


def _more(trip: Trip, calm: Trip, begins: int) -> float:
    """CPU-seconds beyond those of the plan that stays, up to the first batch of the new plan."""
    ends = trip.done + 1
    one, other = (sum(beat.cpu for beat in t.beats[begins:ends]) for t in (trip, calm))
    return one - other
