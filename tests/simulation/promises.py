"""What those who ask for a migration are promised, and whether it was kept."""

from collections import Counter
from collections.abc import Iterator, Mapping
from json import dumps, loads
from typing import Any

from jobs.tables.phases import FINAL
from jobs.tables.progress import latest
from jobs.tables.requests import (
    MIGRATE,
    POSTPONE,
    RELEASE,
    Event,
    Request,
    read_events,
    read_requests,
)
from jobs.tables.store import Store
from optimizer.plan import to_json
from tests.simulation.case import Case
from tests.simulation.wishes import FAILS

WISHED = ("not done within", FAILS)
"""Reasons for an end that somebody has wanted, or caused."""


def broken(case: Case, store: Store) -> Iterator[str]:
    """Each promise that was not kept."""
    decision = latest(store)
    assert decision is not None
    requests = {request.id: request for request in read_requests(store)}
    events = read_events(store)
    ends = Counter(event.id for event in events if event.phase in FINAL)
    running = decision.migration["request"]["id"] if decision.migration else ""
    last = {event.id: event.phase for event in events if event.phase != "hook"}
    for id_ in requests:
        if id_ != running and last.get(id_) != "waiting" and ends[id_] != 1:
            yield f"request {id_} came to {ends[id_]} ends: {last.get(id_)}"
    plans = {name: to_json(plan.root) for name, plan in case.job.plans.items()}
    held = {id_ for id_, request in requests.items() if request.hold}
    for event in events:
        request = requests[event.id]
        if event.phase == "done" and request.kind in (POSTPONE, RELEASE):
            (held.add if request.kind == POSTPONE else held.discard)(request.target)
        elif request.kind == MIGRATE:
            yield from _unwanted(request, event, held)
        if event.phase == "done" and request.plan is not None:
            plans[request.query] = dict(request.plan)
    if not _same(plans, decision.plans):
        yield "the plans that run are not those of the last migrations"


def _unwanted(request: Request, event: Event, held: set[str]) -> Iterator[str]:
    """What became of a migration although nobody wanted it."""
    if event.phase == "aborted" and event.detail and not event.detail.startswith(WISHED):
        yield f"migration {request.id} was aborted: {event.detail}"
    if event.phase == "done":
        if request.id in held:
            yield f"migration {request.id} was to wait"
        if request.before == FAILS:
            yield f"migration {request.id} was done although its command failed"
        if request.at_batch is not None and event.batch < request.at_batch:
            yield f"migration {request.id} was done before batch {request.at_batch}"


def _same(plans: Mapping[str, Any], decided: Mapping[str, Any]) -> bool:
    return bool(loads(dumps(plans)) == loads(dumps(decided)))
