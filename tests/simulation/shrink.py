"""A failing case made smaller, one cut after another, as long as it still fails."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.simulation.case import Batch, Case

Fails = Callable[[Case], bool]


def shrink(case: Case, fails: Fails, tries: int) -> Case:
    """A case that fails as well, with fewer queries, faults, batches and rows."""
    left = tries
    smaller: Case | None = case
    while smaller is not None:
        case, smaller = smaller, None
        for candidate in _cuts(case):
            if left == 0:
                return case
            left -= 1
            if fails(candidate):
                smaller = candidate
                break
    return case


def _cuts(case: Case) -> Iterator[Case]:
    """Smaller cases, those that cut most first."""
    for name in case.job.plans if len(case.job.plans) > 1 else ():
        plans = {other: plan for other, plan in case.job.plans.items() if other != name}
        batches = tuple(
            replace(b, wishes=tuple(w for w in b.wishes if w.query != name)) for b in case.batches
        )
        yield replace(case, job=replace(case.job, plans=plans), batches=batches)
    if any(batch.wishes for batch in case.batches):
        yield replace(case, batches=tuple(replace(b, wishes=()) for b in case.batches))
    calm = tuple(
        replace(b, crashes=(), restart=False, again=False, loss="", guests=False)
        for b in case.batches
    )
    if calm != case.batches:
        yield replace(case, batches=calm)
    for number, batch in enumerate(case.batches):
        if number < len(case.batches) - 1:
            yield _with(case, number, _merged(batch, case.batches[number + 1]), 2)
        for calmer in _calmer(batch):
            yield _with(case, number, calmer)
        for fewer in _fewer(batch):
            yield _with(case, number, fewer)


def _calm(batch: Batch) -> Batch:
    return replace(batch, crashes=(), restart=False, again=False, loss="", guests=False)


def _with(case: Case, number: int, batch: Batch, instead_of: int = 1) -> Case:
    batches = (*case.batches[:number], batch, *case.batches[number + instead_of :])
    return replace(case, batches=batches)


def _merged(batch: Batch, after: Batch) -> Batch:
    rows = {name: (*rows, *after.rows[name]) for name, rows in batch.rows.items()}
    wishes = (*batch.wishes, *after.wishes)
    return replace(after, rows=rows, pause=batch.pause + after.pause, wishes=wishes)


def _calmer(batch: Batch) -> Iterator[Batch]:
    for position in range(len(batch.crashes)):
        crashes = (*batch.crashes[:position], *batch.crashes[position + 1 :])
        yield replace(batch, crashes=crashes)
    for position in range(len(batch.wishes)):
        wishes = (*batch.wishes[:position], *batch.wishes[position + 1 :])
        yield replace(batch, wishes=wishes)
    if batch.restart or batch.again:
        yield replace(batch, restart=False, again=False)
    if batch.loss or batch.guests:
        yield replace(batch, loss="", guests=False)


def _fewer(batch: Batch) -> Iterator[Batch]:
    for name, rows in batch.rows.items():
        middle = (len(rows) + 1) // 2
        for kept in (rows[:middle], rows[middle:]):
            if len(kept) < len(rows):
                yield replace(batch, rows={**batch.rows, name: kept})
