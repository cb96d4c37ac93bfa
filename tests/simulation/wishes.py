"""What is asked of a job while it runs: other plans, and second thoughts; and crashes meanwhile."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING

from jobs.engine.hooks import HookError
from jobs.engine.microbatch import Job
from jobs.engine.migrator import mark
from jobs.engine.requests import ABORT, POSTPONE, RELEASE, Request
from optimizer.migration import MIGRATIONS
from optimizer.plan import Plan, PlanError, to_json
from tests.simulation import plans
from tests.simulation.faults import At
from tests.simulation.queries import UNIT

if TYPE_CHECKING:
    from tests.simulation.case import Batch

PACES = (1, 500, 1500, 4000)
"""A batch takes about 3,000: from all slices of a state between two batches to one at a time."""

FAILS = "fails"
"""A command that does."""

POINTS: tuple[At, ...] = (
    "fill:*",
    "fill:* > written to state/*",
    "fill:* > committed to state/*",
    "fill:* > fill:* > committed to state/*",
    "fill:* > decide",
    "drop:*",
    "before dropping *",
    "after dropping *",
    "decide",
    "committed to control/decisions*",
    "* control/migrations*",
    "hook *",
    "proof_*",
)
"""Where a crash could hurt a migration."""


def hook(command: str, about: Mapping[str, str]) -> None:
    """Run a command of the user's."""
    if command == FAILS:
        raise HookError(f"{command} before {about['MIDSTREAM_PHASE']}")


@dataclass
class _Mind:
    """What has been asked so far, and the plans that each query may have had."""

    asked: list[str] = field(default_factory=list)
    known: dict[str, list[Plan]] = field(default_factory=dict)


def wish(r: Random, job: Job, batches: Sequence["Batch"]) -> Iterator["Batch"]:
    """The same batches, with requests before some of them, and some more crashes."""
    mind = _Mind(known={name: [plan] for name, plan in job.plans.items()})
    eager, doubtful, unlucky = r.choice([0.5, 0.9]), r.choice([0, 0, 0.3]), r.choice([0, 0, 0.3])
    for batch in batches:
        wishes = []
        chance = eager
        while r.random() < chance:
            wishes.append(_migration(r, job, mind))
            chance = 0.15
        while mind.asked and r.random() < doubtful:
            wishes.append(_second_thought(r, mind))
        crashes = [*batch.crashes]
        while r.random() < unlucky:
            crashes.insert(0, r.choice(POINTS))
        yield replace(batch, wishes=tuple(wishes), crashes=tuple(crashes))


def _migration(r: Random, job: Job, mind: _Mind) -> Request:
    query = r.choice(sorted(job.plans))
    plan = _plan(r, query, mind)
    request = Request(
        _next(mind),
        len(mind.asked),
        query=query,
        plan=to_json(plan.root),
        base=mark(mind.known[query][-1]) if r.random() < 0.05 else "",
        strategy=r.choice([*sorted(MIGRATIONS), "background"]),
        proof=r.choice([0, 0, 0, 1, 2]),
        hold=r.random() < 0.07,
        at_batch=r.randrange(8) if r.random() < 0.1 else None,
        limit=UNIT * r.randrange(60) if r.random() < 0.1 else None,
        before=r.choice(["works"] * 12 + [FAILS]),
        after=r.choice(["", FAILS]),
    )
    mind.known[query].append(plan)
    return request


def _plan(r: Random, name: str, mind: _Mind) -> Plan:
    """Any plan; one that the query may have had; or, of two queries that are alike, the other's."""
    query = mind.known[name][0].query
    others = [other for other in mind.known if other != name]
    if others and r.random() < 0.5:
        other = mind.known[others[0]][-1]
        names = dict(zip(other.query.aliases, query.aliases, strict=False))
        with suppress(PlanError, KeyError):
            return Plan(query, plans.mirrored(other.root, query, names))
    if r.random() < 0.2:
        return r.choice(mind.known[name])
    return plans.plan(r, query)


def _second_thought(r: Random, mind: _Mind) -> Request:
    """Mostly about what was asked last."""
    migrations = [id_ for id_ in mind.asked if id_.startswith("m")]
    target = r.choice([migrations[-1], migrations[-1], r.choice(migrations)])
    kind = r.choice([ABORT, POSTPONE, RELEASE])
    return Request(_next(mind, "r"), len(mind.asked), kind, target)


def _next(mind: _Mind, kind: str = "m") -> str:
    mind.asked.append(f"{kind}{len(mind.asked)}")
    return mind.asked[-1]
