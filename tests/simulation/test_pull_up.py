"""A group-by that is pulled up: combined tuples become as many as each stands for."""

from itertools import count

import pytest

from jobs.backends.duckdb.backend import DuckBackend
from jobs.engine.ingest import Ingest
from jobs.engine.microbatch import Engine, Job
from jobs.tables.memory_store import MemoryStore
from jobs.tables.requests import Request, append_request, read_events
from optimizer.migration.matching import States, name
from optimizer.plan import build, parse, to_json
from tests.optimizer.builders import counts, joined, stream, total, window
from tests.simulation.case import Row, relation

SECOND = 1_000_000
GROUPING = counts("a.k", total("t", "a.v"), size=2, slide=1)
QUERY = joined("abc", [("a", "b"), ("b", "c")], window("abc", 3), grouping=GROUPING)


@pytest.mark.parametrize("strategy", ["moving-state", "background", "parallel-track"])
@pytest.mark.parametrize("trees", [("(a [b] c)", "(a (b c))"), ("(a ([b] c))", "((a b) c)")])
def test_results_are_those_of_the_plan_that_stays(strategy, trees):
    old, new = (build(QUERY, parse(tree)) for tree in trees)
    stayed, _ = _run(old)
    moved, engine = _run(old, new, strategy)
    assert stayed
    assert moved == stayed
    assert str(engine.plans["q"]) == str(new)


def test_each_row_is_there_as_often_as_it_came():
    """Three equal tuples of b in a batch are one row of weight 3, and three rows again."""
    old, new = (build(QUERY, parse(tree)) for tree in ("(a [b] c)", "(a b c)"))
    _, engine = _run(old, new, "moving-state", until=4)
    (b,) = (key for key, nodes in States.of(new).nodes.items() if name(nodes[0]) == "b")
    assert engine.states.rows(b) == 4 * len(_batch(0)["b"])


def _batch(at):
    rows = {one: [Row((at % 2, at, 0, at * SECOND))] for one in "ac"}
    return rows | {"b": [Row((at % 2, 7, 0, at * SECOND))] * 3 + [Row((0, at, 0, at * SECOND))]}


def _run(old, new=None, strategy="", until=12):
    store = MemoryStore()
    streams = {s.name: Ingest(s) for s in old.query.streams.values()}
    clock = count(100 * SECOND)
    engine = Engine(Job("j", streams, {"q": old}), store, DuckBackend(), clock.__next__)
    for number in range(until):
        if number == 3 and new:
            plan = to_json(new.root)
            append_request(store, Request("m", 0, query="q", plan=plan, strategy=strategy))
        rows = _batch(number).items()
        engine.run(
            number, {name: relation(stream(name, "k", "v", "w"), some) for name, some in rows}
        )
    assert not new or read_events(store)[-1].phase == "done"
    return sorted(tuple(row.values()) for row in store.load("out/q").to_pylist()), engine


def _rows(one, rows):
    return relation(stream(one, "k", "v", "w"), rows)
