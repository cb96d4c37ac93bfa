"""What a migration came to, measured: its length, how long nothing came out, what it gained."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from jobs.deciding.decisions import Decision
from jobs.engine.history import History
from jobs.engine.progress import PROGRESS
from jobs.migrations import Record, Watched
from jobs.specs import Job
from jobs.status import SECOND

BATCHES = 10
"""So many before and after it are compared."""

LENGTHS = {"moving-state": "T_MS", "parallel-track": "T_PT", "background": "T_BG"}
"""What the length of a migration is called, by its strategy."""

STOPS = "moving-state"
"""All of it happens at one boundary: it lasts as long as nothing comes out."""


def outcome(job: Job, watched: Watched, record: Record, decision: Decision) -> dict[str, float]:
    """Its figures; of one that was not carried out there are none."""
    if record.phase != "done":
        return {}
    done, began = record.event("done"), record.events[0]
    first = next((e for e in record.events if e.phase == "building"), began)
    found = History(watched.store, PROGRESS).between(
        first.batch - BATCHES, done.batch + BATCHES - 1
    )
    before = [batch for batch in found if batch["batch"] < first.batch]
    after = [batch for batch in found if batch["batch"] >= done.batch]
    silence = _silence(found, first.batch, done.batch, job.trigger.total_seconds())
    strategy = record.request.strategy
    return {
        "migration_seconds": (done.at - record.request.at) / SECOND,
        LENGTHS[strategy]: silence if strategy == STOPS else (done.at - first.at) / SECOND,
        "silence_seconds": silence,
        **_gain(before, after, decision),
    }


def settled(watched: Watched, record: Record) -> bool:
    """Whether there is nothing more to measure."""
    if not record.ended:
        return False
    if record.phase != "done":
        return True
    return History(watched.store, PROGRESS).last >= record.event("done").batch + BATCHES - 1


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


def _gain(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], decision: Decision
) -> dict[str, float]:
    """What a tuple costs before and after: rates may have changed meanwhile, plans did."""
    old, new = _cost(before), _cost(after)
    if old is None or new is None:
        return {}
    gain, predicted = 1 - new / old, decision.gain
    return {
        "measured_ms_per_1000_before": 1000 * old,
        "measured_ms_per_1000_after": 1000 * new,
        "measured_gain": gain,
        "prediction_error": predicted - gain,
    }


def _cost(batches: Sequence[Mapping[str, Any]]) -> float | None:
    """Milliseconds of the joins' work for each tuple taken in, on average."""
    found = [
        sum(work["ms"] for work in batch["operators"].values()) / rows
        for batch in batches
        if (rows := sum(flow["rows"] for flow in batch["streams"].values()))
    ]
    return fmean(found) if found else None
