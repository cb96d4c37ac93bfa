"""What is asked of a job while it runs: other plans, and second thoughts."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from jobs.engine.microbatch import Job
from jobs.engine.requests import ABORT, POSTPONE, RELEASE, Request
from optimizer.migration import MIGRATIONS
from optimizer.plan import to_json
from tests.simulation import plans
from tests.simulation.queries import UNIT

if TYPE_CHECKING:
    from tests.simulation.case import Batch


def wish(r: Random, job: Job, batches: Sequence["Batch"]) -> Iterator["Batch"]:
    """The same batches, with requests before some of them."""
    asked: list[str] = []
    for batch in batches:
        wishes = []
        while r.random() < 0.5:
            again = asked and r.random() < 0.3
            wishes.append(_second_thought(r, asked) if again else _migration(r, job, len(asked)))
            asked.append(wishes[-1].id)
        yield replace(batch, wishes=tuple(wishes))


def _migration(r: Random, job: Job, number: int) -> Request:
    query = r.choice(sorted(job.plans))
    return Request(
        f"m{number}",
        number,
        query=query,
        plan=to_json(plans.plan(r, job.plans[query].query).root),
        strategy=r.choice(sorted(MIGRATIONS)),
        proof=r.choice([0, 0, 1, 2]),
        hold=r.random() < 0.1,
        at_batch=r.choice([None, None, r.randrange(8)]),
        limit=r.choice([None, None, None, UNIT * r.randrange(60)]),
    )


def _second_thought(r: Random, asked: Sequence[str]) -> Request:
    kind = r.choice([ABORT, POSTPONE, RELEASE, RELEASE])
    return Request(f"m{len(asked)}", len(asked), kind, r.choice(asked))
