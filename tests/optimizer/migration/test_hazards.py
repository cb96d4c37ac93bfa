"""What must be refused to a second query: done all the same, it loses results.

The first query's migration leaves a state whose older rows are a part; the second one wants it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from optimizer.migration import MIGRATIONS
from optimizer.migration.matching import match
from optimizer.plan import Node, Plan
from optimizer.query import Named, Query
from optimizer.window import close
from tests.optimizer.builders import column, joined, where
from tests.optimizer.migration.by_hand import above, join, leaf, plan
from tests.optimizer.migration.job import Job
from tests.optimizer.migration.test_brute import batches
from tests.simulation.dice import UNIT, Dice

EDGES = [("a", "b"), ("b", "c")]
HIGH = where("a.v", "> 1")


def units(limits: dict[str, int]):
    return close("abc", {(pair[0], pair[1]): width * UNIT for pair, width in limits.items()})


WINDOW = units(dict.fromkeys(("ab", "ba", "bc", "cb", "ac", "ca"), 12))
PLAIN = joined("abc", EDGES, WINDOW)
PICKY = joined("abc", EDGES, WINDOW, selects=[HIGH])


@dataclass(frozen=True)
class Hazard:
    """Two queries, the plans from which and to which they migrate, the first one first."""

    old: tuple[Plan, Plan]
    new: tuple[Plan, Plan]


def parts(query: Query, *kept: str) -> list[Node]:
    return [leaf(query, alias, keep=keep) for alias, keep in zip("abc", kept, strict=True)]


NARROW = "a.k a.ts a.v"


def stuffed(*, deep: bool) -> Hazard:
    """The first pulls its select up; the second has none."""
    b, c = leaf(PICKY, "b"), leaf(PICKY, "c")
    wide = leaf(PICKY, "a")
    low = leaf(PICKY, "a", HIGH)
    first = (
        plan(PICKY, join(PICKY, low, b, c)),
        plan(PICKY, above(_tree(PICKY, [wide, b, c], deep=deep), HIGH)),
    )
    narrow = parts(PLAIN, NARROW, "", "")
    second = (
        plan(PLAIN, join(PLAIN, *narrow)),
        plan(PLAIN, _tree(PLAIN, [leaf(PLAIN, "a"), *narrow[1:]], deep=deep)),
    )
    return Hazard((first[0], second[0]), (first[1], second[1]))


def _tree(query: Query, nodes: Sequence[Node], *, deep: bool):
    a, b, c = nodes
    return join(query, join(query, a, b), c) if deep else join(query, a, b, c)


def padded() -> Hazard:
    """The first never reads a.w and now keeps it; the second emits it, and now keeps a.v."""
    wordy = replace(PLAIN, output=(*PLAIN.output[1:], Named("w", column("a.w"))))
    first, second = (
        [plan(q, join(q, *parts(q, keep, "", ""))) for keep in (before, "")]
        for q, before in ((PLAIN, NARROW), (wordy, "a.k a.ts a.w"))
    )
    return Hazard((first[0], second[0]), (first[1], second[1]))


def short() -> Hazard:
    """The first keeps a for 10 and (a b) for 12, b's sake; the second needs a's last 2 as well."""
    limits = {"ab": 10, "ba": 10, "ca": 2, "ac": 2}
    tight = replace(PLAIN, bounds=units(limits))
    loose = replace(PLAIN, bounds=units({**limits, "ca": 12, "cb": 12}))
    first, second = (_joined_later(tight, NARROW), _joined_later(loose, ""))
    return Hazard((first[0], second[0]), (first[1], second[1]))


def _joined_later(query: Query, keep: str) -> tuple[Plan, Plan]:
    a, b, c = parts(query, keep, "", "")
    both = above(join(query, a, b), keep="a.ts a.v b.k b.ts b.v")
    return plan(query, join(query, a, b, c)), plan(query, join(query, both, c))


HAZARDS = {
    "a select that only the first has": stuffed(deep=False),
    "a join of what has been selected": stuffed(deep=True),
    "a column that only the second reads": padded(),
    "rows that only the second still needs": short(),
}


@pytest.mark.parametrize("hazard", HAZARDS.values(), ids=HAZARDS)
def test_it_is_refused(hazard):
    job = Job({"q0": hazard.old[0], "q1": hazard.old[1]})
    change(job, "q0", hazard.new[0])
    assert "still holds only what the query q0 needs" in (
        match(hazard.old[1], hazard.new[1], job.context("q1")).refused or ""
    )


@pytest.mark.parametrize("hazard", HAZARDS.values(), ids=HAZARDS)
def test_results_would_be_lost(hazard):
    assert any(goes_wrong(hazard, seed) for seed in range(12))


def goes_wrong(hazard: Hazard, seed: int) -> bool:
    """Whether the second query does, after both have migrated as if no state were a part."""
    job = Job({"q0": hazard.old[0], "q1": hazard.old[1]})
    feed = batches(Dice(seed, UNIT), list(job.streams.values()), 12)
    for _ in range(7):
        job.take(*next(feed))
    for name, new in zip(("q0", "q1"), hazard.new, strict=True):
        change(job, name, new)
    outputs = [job.take(*next(feed)) for _ in range(3)]
    assert all(out["q0"][0] == out["q0"][1] for out in outputs)
    return any(out["q1"][0] != out["q1"][1] for out in outputs)


def change(job: Job, name: str, new: Plan) -> None:
    """Migrate as if no state were a part."""
    context = replace(job.context(name), partial={})
    job.begin(name, new, MIGRATIONS["moving-state"](job.plans[name], new, context))
    while job.change is not None:
        job.step()
