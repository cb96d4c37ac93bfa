"""From every shape of plan to every other, by every strategy that does it: nobody can tell.

One run makes one migration after another over the same tuples, until each pair has had its turn.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from jobs.backends import SqlBackend
from jobs.backends.duckdb.backend import DuckBackend
from jobs.backends.spark.backend import SparkBackend
from jobs.engine.microbatch import Engine
from jobs.tables.delta_store import DeltaStore
from jobs.tables.memory_store import MemoryStore
from jobs.tables.requests import Request, append_request, read_events
from jobs.tables.store import Store
from optimizer.identity import states
from optimizer.migration import MIGRATIONS
from optimizer.migration.matching import Context
from optimizer.migration.steps import Refused
from optimizer.plan import Plan, build, parse, to_json
from tests.jobs.engine.cases import CASES, Case
from tests.jobs.engine.harness import (
    BEGAN,
    SPAN,
    Delivery,
    bag,
    deliver,
    expected,
    job_of,
    results,
    tuples,
)
from tests.jobs.engine.inline import backend
from tests.jobs.engine.test_contract import in_files, plans

Way = tuple[Plan, str]
"""Where to go, and how."""


@dataclass(frozen=True)
class Input:
    """So many times as many tuples as usual, and how they arrive."""

    times: int
    how: Delivery


LONG = Input(5, Delivery(14, disorder=1.5, lateness=0.75))
"""Some tuples are late, and a state lives for a few batches."""

SHORT = Input(1, Delivery(6, disorder=1, lateness=1))

SHAPES = 4
"""How many shapes of plans of a query are tried, combined ones besides."""

CHANGING = [case.name for case in CASES if len(plans(case, SHAPES)) > 1]
DEAR = "five, theta among them"
BY_NAME = {case.name: case for case in CASES}


def migrate(
    start: Plan,
    ways: Iterator[Way],
    store: Store,
    runs: SqlBackend,
    given: Input,
    convert: Callable[[pa.Table], Any] = lambda rows: rows,
) -> int:
    """Carry out all batches, setting off again whenever the plan is there; how often it was."""
    clock, arrived, asked, target = BEGAN + SPAN * given.times, 0, 0, start
    engine = Engine(job_of(start, given.how), store, runs, lambda: clock, timer=lambda: 0)
    streams = tuples(start.query, times=given.times)
    for number, batch in enumerate(deliver(streams, given.how)):
        if number and arrived == asked and (way := next(ways, None)):
            target, strategy = way
            append_request(store, _request(asked, target, strategy))
            asked += 1
        engine.run(number, {name: convert(rows) for name, rows in batch.items()})
        arrived = asked if engine.plans["q"] == target else arrived
    runs.close()
    assert not [event for event in read_events(store) if event.phase in ("refused", "aborted")]
    if arrived == asked:
        kept = {f"state/{key}" for key in states(engine.plans["q"].root)}
        assert {table for table in store.tables() if table.startswith("state/")} <= kept
    return arrived


def _request(number: int, plan: Plan, strategy: str) -> Request:
    return Request(f"m{number}", number, query="q", plan=to_json(plan.root), strategy=strategy)


def pairs(shapes: Sequence[Plan], strategy: str) -> Iterator[tuple[int, int]]:
    """The ordered pairs between which a strategy migrates."""
    for old, new in permutations(range(len(shapes)), 2):
        try:
            MIGRATIONS[strategy](shapes[old], shapes[new], Context())
        except Refused:
            continue
        yield old, new


def tour(shapes: Sequence[Plan], todo: list[tuple[int, int]], strategy: str) -> Iterator[Way]:
    """From pair to pair, as long as there are any; whoever asks on has arrived."""
    here = todo[0][0]
    while todo:
        new = next((new for old, new in todo if old == here), None)
        if new is None:
            yield shapes[todo[0][0]], "parallel-track"
            here = todo[0][0]
        else:
            yield shapes[new], strategy
            todo.remove((here, new))
            here = new


@cache
def unmigrated(case: Case, given: Input) -> Store:
    """What comes out if the plan stays as it is, which is what the oracle says."""
    store, (plan, *_) = MemoryStore(), plans(case, 1)
    migrate(plan, iter(()), store, DuckBackend(), given)
    found = bag(results(store))
    assert found
    assert found == bag(expected(case.query, case.oracle, store, given.how, given.times))
    return store


def check(case: Case, strategy: str, most: int) -> int:
    """All pairs of so many shapes; how many there were."""
    shapes = plans(case, most)
    todo = list(pairs(shapes, strategy))
    count = len(todo)
    while todo:
        store, left = MemoryStore(), len(todo)
        way = f"{strategy}, {count - left} of {count} pairs done"
        migrate(shapes[todo[0][0]], tour(shapes, todo, strategy), store, DuckBackend(), LONG)
        _same(store, unmigrated(case, LONG), way)
        assert len(todo) < left, way
    return count


def _same(store: Store, other: Store, what: str) -> None:
    got, wanted = bag(results(store)), bag(results(other))
    assert got == wanted, (
        f"{what}: {(wanted - got).total()} missing, {(got - wanted).total()} extra"
    )


@pytest.mark.parametrize("strategy", MIGRATIONS)
@pytest.mark.parametrize("name", CHANGING)
def test_from_every_plan_to_every_other(name, strategy):
    assert check(BY_NAME[name], strategy, SHAPES - (name == DEAR))


@pytest.mark.parametrize(
    ("name", "start", "ways"),
    [
        ("three, one key", "((a b) c)", [("(a (b c))", "moving-state")]),
        ("five, theta among them", "(((a b) c) (d e))", [("(a b (c (d e)))", "background")]),
        ("three joined, sliding", "((a b) c)", [("(a (b c))", "moving-state")]),
        ("three joined, sliding", "((a b) c)", [("([a] b [c])", "parallel-track")]),
        ("a join, tumbling", "(a b)", [("([a] b)", "background")]),
        ("a join, tumbling", "([a] b)", [("(a b)", "parallel-track")]),
    ],
)  # fmt: skip
def test_spark(name, start, ways, spark: SparkSession, tmp_path: Path):
    case, store = BY_NAME[name], DeltaStore(tmp_path)

    def built(tree: str) -> Plan:
        return build(case.query, parse(tree))

    route = iter([(built(tree), strategy) for tree, strategy in ways])
    runs = SparkBackend(spark)
    arrived = migrate(built(start), route, store, runs, SHORT, convert=spark.createDataFrame)
    assert arrived == len(ways)
    _same(store, unmigrated(case, SHORT), name)


@pytest.mark.parametrize("strategy", MIGRATIONS)
@pytest.mark.parametrize("name", ["three, one key", "three joined, sliding", "a join, tumbling"])
def test_on_the_default_engine(name: str, strategy: str, tmp_path: Path):
    """Of each strategy, as many migrations as fit into a short run, in two tasks at a time."""
    case, store = BY_NAME[name], DeltaStore(tmp_path)
    shapes = plans(case, SHAPES)
    todo = list(pairs(shapes, strategy))
    route, start = tour(shapes, todo, strategy), shapes[todo[0][0]]
    convert = in_files(tmp_path / "raw")
    assert migrate(start, route, store, backend(2), SHORT, convert=convert)
    _same(store, unmigrated(case, SHORT), f"{name} by {strategy}")
