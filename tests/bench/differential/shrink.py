"""A failing case made smaller, one cut after another, as long as it still fails."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.bench.differential.case import Case, File, Query

Fails = Callable[[Case], bool]


def shrink(case: Case, fails: Fails, tries: int) -> Case:
    """A case that fails as well, with fewer rows, files, conditions and output columns."""
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
    if case.plan is not None:
        yield replace(case, plan=None)
    for query in _simpler(case.query):
        yield replace(case, query=query)
    for at, file in enumerate(case.files):
        for rows in _fewer(file):
            yield replace(case, files=(*case.files[:at], rows, *case.files[at + 1 :]))


def _simpler(query: Query) -> Iterator[Query]:
    for at in range(len(query.output) if len(query.output) > 1 else 0):
        yield replace(query, output=query.output[:at] + query.output[at + 1 :])
    for at in range(len(query.on)):
        yield replace(query, on=query.on[:at] + query.on[at + 1 :])
    for at in range(len(query.keys)):
        used = any(term == query.keys[at] for _, term in query.output)
        if not used:
            yield replace(query, keys=query.keys[:at] + query.keys[at + 1 :])


def _fewer(file: File) -> Iterator[File]:
    """Half of the rows, or without one of a few; files stay, that batches do not move."""
    rows, middle = file.rows, (len(file.rows) + 1) // 2
    if rows:
        yield replace(file, rows=rows[middle:])
        yield replace(file, rows=rows[:middle] if len(rows) > 1 else ())
    for at in range(len(rows) if 2 < len(rows) <= 4 else 0):
        yield replace(file, rows=rows[:at] + rows[at + 1 :])
