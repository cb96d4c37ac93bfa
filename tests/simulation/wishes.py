"""What is asked of a job while it runs: other plans, and second thoughts; and crashes meanwhile."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jobs.engine.microbatch import Job
from jobs.engine.migration.hooks import HookError
from jobs.engine.migration.migrator import plan_fingerprint
from jobs.tables.requests import ABORT, POSTPONE, RELEASE, Request
from optimizer.identity import states
from optimizer.migration import MIGRATIONS
from optimizer.plan import Plan, PlanError, to_json
from optimizer.query import Query
from tests.simulation import plans
from tests.simulation.dice import Dice
from tests.simulation.faults import At

if TYPE_CHECKING:
    from tests.simulation.case import Batch

Think = Callable[[Dice, Query], Plan]
"""A plan of a query."""

Idea = tuple[str, Plan]
"""A query, and the plan that it is to have."""

PACES = (1, 150, 250, 500, 4000)
"""Of the 3,000 that a batch takes, a fill may have a fifth: a state before the next batch, or after
it, in a few slices or more of them, one slice at a time, or one after every other batch."""

INTERVALS = (0, 0, 0, 4000, 9000)
"""Batches follow each other at once, or there is some time, or a lot, between two of them."""

FILLING = ("background", "background", "background", "moving-state", "moving-state")
"""Strategies that take their chances with what the states hold: asked for more often."""

TAKES = (0.0, 1e-9, 0.0, 0.0)
"""What fills are said to take: nobody knows, or so little that they are not tried first."""

FAILS = "fails"
"""A command that does."""

NOT_YET = 0.2
"""How much less is asked for while something waits: what comes after would take its place."""

NARROW = 4
"""How many units of time two tuples need at least to meet now and then."""

POINTS: tuple[At, ...] = (
    "fill:*",
    "fill:* > written to state/*",
    "fill:* > committed to state/*",
    "fill:* > fill:* > committed to state/*",
    "fill:* > fill:* > fill:* > written to state/*",
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

    asked: list[str]
    known: dict[str, list[Plan]]
    think: Think
    """Of another plan."""
    ideas: list[Idea]
    """What comes first."""
    postponed: int = -1
    """The batch before which something would begin that is to wait."""


def is_dull(r: Dice, query: Query, *, sharing: bool) -> bool:
    """Whether little can be told from changing its plans: few states, or nothing that meets."""
    names = query.aliases
    widths = [query.bounds[i, j] + query.bounds[j, i] for i in names for j in names if i != j]
    if min(widths, default=0) < NARROW * r.unit:
        return True
    if sharing:
        return len(names) == 2 or not any(map(query.selects, names))
    return len(names) == 2 and r.random() < 0.7


def ploy(r: Dice, queries: Mapping[str, Query]) -> tuple[dict[str, Plan], list[Idea]]:
    """Plans to begin with, and what to ask for first, so that one query meets another's part.

    The first moves its selects up: it then has states that nobody else may use, and the second,
    which lacks some of the selects, wants them.  Or the second has some of them already, made
    otherwise; or what the first drops comes back before it is selected on.
    """
    (one, first), (other, second) = queries.items()
    turned = r.random() < 0.5
    early, late = (plans.rigid(r, first, turned=turned, late=late) for late in (False, True))
    kinds = ["wanted", "wanted", "dropped", *["shared"] * 2 * (len(first.aliases) > 3)]
    kind = r.choice(kinds)
    if kind == "shared":
        begin = plans.rigid(r, first, turned=False, late=False)
        up = plans.rigid(r, first, turned=False, late=True)
        return {one: begin, other: plans.inverted(r, second)}, [(one, up)]
    if kind == "dropped":
        begin = plans.frugal(r, first, turned=turned)
        return {one: begin, other: plans.tidy(r, second)}, [(one, early), (one, late)]
    return (
        {one: early, other: plans.rigid(r, second, turned=not turned, late=True)},
        [(one, late), (other, plans.rigid(r, second, turned=turned, late=True))],
    )


def wish(
    r: Dice, job: Job, batches: Sequence["Batch"], think: Think, ideas: Sequence[Idea]
) -> Iterator["Batch"]:
    """The same batches, with requests before some of them, and more crashes and restarts then."""
    mind = _Mind([], {name: [first] for name, first in job.plans.items()}, think, [*ideas])
    eager, doubtful, unlucky = r.choice([0.3, 0.7]), r.choice([0, 0, 0.3]), r.choice([0, 0, 0.3])
    restless = r.choice([0, 0.3, 0.6])
    first = r.choice([0, 1, 2, 2, 3])
    for number, batch in enumerate(batches):
        chance = eager if number >= first else 0
        if number < mind.postponed:
            chance *= NOT_YET
        wishes = [*_migrations(r, job, mind, number, chance)]
        while mind.asked and r.random() < doubtful:
            wishes.append(_second_thought(r, mind))
        crashes = [*batch.crashes]
        while r.random() < unlucky:
            crashes.insert(0, r.choice(POINTS))
        shaky = 0.8 if number < mind.postponed else restless if mind.asked else 0
        restart = batch.restart or (number + 1 < len(batches) and r.random() < shaky)
        yield replace(batch, wishes=tuple(wishes), crashes=tuple(crashes), restart=restart)


def _migrations(r: Dice, job: Job, mind: _Mind, number: int, chance: float) -> Iterator[Request]:
    """What is asked for before a batch; some of what is to begin later is postponed at once."""
    if chance and mind.ideas:
        yield from _planned(r, mind)
        chance = 0
    while r.random() < chance:
        wish = _migration(r, job, mind, number)
        yield wish
        chance = 0.15
        if wish.at_batch is not None and r.random() < 0.6:
            mind.postponed = wish.at_batch
            yield Request(_next(mind, "r"), len(mind.asked), POSTPONE, wish.id)


def _planned(r: Dice, mind: _Mind) -> Iterator[Request]:
    """What comes first, all at once and without conditions, so that each meets the one before.

    Of one query, one thing at a time: the next would take its place.
    """
    met: set[str] = set()
    while mind.ideas and mind.ideas[0][0] not in met:
        met.add(mind.ideas[0][0])
        query, plan = mind.ideas.pop(0)
        mind.known[query].append(plan)
        yield Request(
            _next(mind), len(mind.asked), query=query,
            plan=to_json(plan.root), strategy=r.choice(FILLING),
        )  # fmt: skip


def _migration(r: Dice, job: Job, mind: _Mind, number: int) -> Request:
    query = r.choice(sorted(job.plans))
    plan = _plan(r, query, mind)
    request = Request(
        _next(mind),
        len(mind.asked),
        query=query,
        plan=to_json(plan.root),
        base=plan_fingerprint(mind.known[query][-1]) if r.random() < 0.05 else "",
        strategy=r.choice([*sorted(MIGRATIONS), *FILLING]),
        proof=r.choice([0, 0, 0, 1, 2]),
        hold=r.random() < 0.07,
        at_batch=number + r.randrange(4) if r.random() < 0.2 else None,
        limit=r.unit * r.randrange(60) if r.random() < 0.1 else None,
        takes=TAKES[len(mind.asked) % len(TAKES)],
        before=r.choice(["works"] * 12 + [FAILS]),
        after=r.choice(["", FAILS]),
    )
    mind.known[query].append(plan)
    return request


def _plan(r: Dice, name: str, mind: _Mind) -> Plan:
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
    had = states(mind.known[name][-1].root).keys()
    thoughts = [mind.think(r, query) for _ in range(3)]
    return next((plan for plan in thoughts if states(plan.root).keys() - had), thoughts[0])


def _second_thought(r: Dice, mind: _Mind) -> Request:
    """Mostly about what was asked last."""
    migrations = [id_ for id_ in mind.asked if id_.startswith("m")]
    target = r.choice([migrations[-1], migrations[-1], r.choice(migrations)])
    kind = r.choice([ABORT, POSTPONE, RELEASE])
    return Request(_next(mind, "r"), len(mind.asked), kind, target)


def _next(mind: _Mind, kind: str = "m") -> str:
    mind.asked.append(f"{kind}{len(mind.asked)}")
    return mind.asked[-1]
