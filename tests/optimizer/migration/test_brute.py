"""Random jobs that migrate: what comes out is what all tuples at once would yield."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress

import pytest

from optimizer.migration import MIGRATIONS
from optimizer.migration.steps import Fill, How, Refused
from optimizer.plan import (
    Branch,
    Leaf,
    Plan,
    PlanError,
    Tree,
    build,
)
from optimizer.query import Query, Stream
from tests.optimizer.builders import random_tree
from tests.optimizer.migration.job import Job, Rows
from tests.simulation import plans, queries
from tests.simulation.dice import UNIT, Dice

MOST = {2: 9, 3: 6, 4: 4, 5: 3}
"""How many tuples a stream has in a batch, by the number of inputs."""


def some_plan(r: Dice, query: Query) -> Plan:
    """Any plan, or one as the searches build them, some of its inputs perhaps combined."""
    if r.random() < 0.4:
        return plans.plan(r, query)
    tree = random_tree(query.aliases, r)
    if query.grouping is not None:
        tree = combined(r, tree)
    return build(query, tree)


def combined(r: Dice, tree: Tree) -> Tree:
    if isinstance(tree, Leaf):
        return Leaf(tree.alias, r.random() < 0.3)
    return Branch(tuple(combined(r, part) for part in tree.parts), tree.orders)


def next_plan(r: Dice, name: str, job: Job, asked: Mapping[str, Query]) -> Plan:
    """Some plan; where two queries are alike, often that of the other."""
    query, others = asked[name], [other for other in asked if other != name]
    if others and r.random() < 0.6:
        other = asked[others[0]]
        names = dict(zip(other.aliases, query.aliases, strict=True))
        with suppress(PlanError):
            return Plan(query, plans.mirrored(job.plans[others[0]].root, query, names))
    return some_plan(r, query)


def some_queries(r: Dice) -> tuple[dict[str, Query], list[Stream]]:
    """One query, or two that may share states, of two to four inputs."""
    while True:
        streams = [queries.stream(r, f"s{i}") for i in range(1, r.randrange(1, 4) + 1)]
        asked = [queries.ask(r, streams, "abcd")]
        if r.random() < 0.5:
            asked.append(queries.like(r, asked[0]))
        if len(asked[0].query.aliases) > 1:
            return {f"q{i}": queries.laxer(r, one.query) for i, one in enumerate(asked)}, streams


def batches(r: Dice, streams: list[Stream], most: int) -> Iterator[tuple[Rows, int]]:
    """Tuples no older than the watermark, some far ahead of it; and the watermark after them."""
    watermark = 20 * UNIT
    keys = r.choice([1, 2, 4])
    while True:
        rows = {
            stream.name: [
                tuple(
                    watermark + UNIT * r.randrange(8) + r.choice([0, 0, 0, 1])
                    if column.type == "TIMESTAMP"
                    else None
                    if r.random() < 0.05
                    else r.randrange(keys)
                    for column in stream.columns
                )
                for _ in range(r.randrange(most + 1))
            ]
            for stream in streams
        }
        watermark += UNIT * r.randrange(6)
        yield rows, watermark


def run(seed: int, strategy: str) -> Counter[str]:
    """A job that changes the plans of its queries; what was done, and how often."""
    r = Dice(seed, UNIT)
    told: Counter[str] = Counter()
    asked, streams = some_queries(r)
    job = Job({name: some_plan(r, query) for name, query in asked.items()})
    count = max(len(query.aliases) for query in asked.values())
    feed = batches(r, [s for s in streams if s.name in job.streams], MOST[count])
    told += serve(job, feed, r.randrange(2, 4), seed)
    for _ in range(r.randrange(2, 4)):
        name = r.choice(sorted(asked))
        new = next_plan(r, name, job, asked)
        try:
            steps = MIGRATIONS[strategy](job.plans[name], new, job.context(name))
        except Refused:
            told["refused"] += 1
            continue
        told += Counter(s.how for s in steps if isinstance(s, Fill))
        told["done"] += 1
        told["partial"] += sum(s.partial for s in steps if isinstance(s, Fill))
        job.begin(name, new, steps)
        while job.change is not None:
            if job.step():
                told += serve(job, feed, 1, seed)
        told += serve(job, feed, r.randrange(1, 3), seed)
    return told


def serve(job: Job, feed: Iterator[tuple[Rows, int]], count: int, seed: int) -> Counter[str]:
    """So many batches, each as it must be."""
    rows = 0
    for _ in range(count):
        for name, (made, expected) in job.take(*next(feed)).items():
            assert made == expected, (seed, name, job.batch)
            rows += made.total()
    return Counter(rows=rows)


SEEDS = {"moving-state": 24, "background": 12, "parallel-track": 6}
"""How many jobs each strategy changes; a parallel track takes many batches."""


@pytest.mark.parametrize("strategy", MIGRATIONS)
def test_nothing_is_lost_repeated_or_corrupted(strategy):
    told: Counter[str] = Counter()
    for seed in range(SEEDS[strategy]):
        told += run(seed, strategy)
    assert told["done"] > SEEDS[strategy]
    assert told["rows"] > 20 * told["done"]
    if strategy == "moving-state":
        assert min(told[how] for how in [*How, "partial"]) > 0, told
