"""What a migration came to, measured: its length, how long nothing came out, what it gained."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobs.deciding.decisions import Decision
from jobs.migrations import Record, Watched
from jobs.specs import Job
from jobs.status import SECOND
from jobs.tables.history import History
from jobs.tables.names import PROGRESS
from jobs.tables.phases import Phase
from jobs.tracking.gain import BATCHES, WARMING, Gain, gain

LENGTHS = {"moving-state": "T_MS", "parallel-track": "T_PT", "background": "T_BG"}
"""What the length of a migration is called, by its strategy."""

STOPS = "moving-state"
"""All of it happens at one boundary: it lasts as long as nothing comes out."""


@dataclass(frozen=True)
class Outcome:
    """Its figures, and what they rest on; of one that was not carried out there are none."""

    figures: Mapping[str, float] = field(default_factory=dict)
    gain: Gain | None = None


def outcome(job: Job, watched: Watched, record: Record, decision: Decision) -> Outcome:
    """What is known of a migration by now."""
    if record.phase != Phase.DONE:
        return Outcome()
    done, began = record.event(Phase.DONE), record.events[0]
    first = next((e for e in record.events if e.phase == Phase.BUILDING), began)
    found = History(watched.store, PROGRESS).between(
        first.batch - BATCHES, done.batch + WARMING + BATCHES - 1
    )
    gained = gain(found, first.batch, done.batch)
    silence = _silence(found, first.batch, done.batch, job.trigger.total_seconds())
    strategy = record.request.strategy
    figures = {
        "migration_seconds": (done.at - record.request.at) / SECOND,
        LENGTHS[strategy]: silence if strategy == STOPS else (done.at - first.at) / SECOND,
        "silence_seconds": silence,
        **(gained.figures(job.query(decision.query), decision) if gained else {}),
    }
    return Outcome(figures, gained)


def settled(watched: Watched, record: Record) -> bool:
    """Whether there is nothing more to measure."""
    if not record.ended:
        return False
    if record.phase != Phase.DONE:
        return True
    looked = record.event(Phase.DONE).batch + WARMING + BATCHES
    return History(watched.store, PROGRESS).last + 1 >= looked


def _silence(batches: Sequence[Mapping[str, Any]], first: int, last: int, usual: float) -> float:
    """For how long no results came, beyond what is usual between two batches."""
    while_migrating = [gap for number, gap in gaps(batches).items() if first <= number <= last]
    return max(0.0, max(while_migrating, default=0.0) - usual)


def gaps(batches: Iterable[Mapping[str, Any]]) -> dict[int, float]:
    """By batch, the seconds from the end of the one before to its own, where both are known."""
    times = {batch["batch"]: batch["finished"] for batch in batches}
    return {
        number: (time - times[number - 1]) / SECOND
        for number, time in times.items()
        if number - 1 in times
    }
