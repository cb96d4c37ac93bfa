"""What the plan library learns from decisions: plans that stayed, or that a job has migrated to."""

from dataclasses import replace
from typing import TYPE_CHECKING

from jobs.deciding.decisions import Decision
from jobs.deciding.library import Entry
from jobs.engine.microbatch import fingerprint
from jobs.status import SECOND
from jobs.tables.phases import Phase

if TYPE_CHECKING:
    from jobs.deciding.reoptimization import Desk

HOUR = 3600 * SECOND


def learn(desk: "Desk", query: str) -> None:
    """Note the plan last migrated to, once it runs; drop it if it never came to that."""
    migrated = desk.log.asked(query)
    if migrated is None:
        return
    phase = next((one.phase for one in desk.records if one.request.id == migrated.request), "")
    entry = _entry(desk, migrated)
    if phase == Phase.DONE:
        _note(desk, entry)
    elif phase == Phase.ABORTED:
        _drop(desk, entry)


def keep(desk: "Desk", decision: Decision) -> None:
    """Note the plan that a decision came to."""
    _note(desk, _entry(desk, decision))


def _note(desk: "Desk", entry: Entry) -> None:
    """Write a plan down, or that it was found again, if that is an hour ago."""
    noted = desk.library.find(entry.query, entry.fingerprint, entry.signature)
    if noted is None or (noted.plan != entry.plan and noted.used < entry.used):
        desk.library.put(entry)
    elif noted.plan == entry.plan and entry.used - noted.used > HOUR:
        desk.library.put(replace(noted, used=entry.used))


def _drop(desk: "Desk", entry: Entry) -> None:
    """Forget a plan, unless it has proved good since."""
    noted = desk.library.find(entry.query, entry.fingerprint, entry.signature)
    if noted is not None and noted.plan == entry.plan and noted.used <= entry.used:
        desk.library.forget(noted)


def _entry(desk: "Desk", decision: Decision) -> Entry:
    return Entry(
        decision.query,
        fingerprint(desk.running.plans[decision.query].query),
        decision.figures["signature"],
        decision.chosen_plan,
        decision.figures["advantage"],
        decision.at,
    )
