"""Parallel track ends a window after the slowest stream, however far ahead another one is."""

from collections import Counter
from itertools import count, product
from random import Random

import pytest

from jobs.backends.duckdb.backend import DuckBackend
from jobs.engine.ingest import Ingest
from jobs.engine.microbatch import Engine, Job
from jobs.tables.memory_store import MemoryStore
from jobs.tables.requests import Request, append_request, read_events
from optimizer.plan import build, parse, to_json
from tests.optimizer.builders import counts, joined, stream, total, where, window
from tests.optimizer.migration.by_hand import above, join, leaf, plan
from tests.simulation.case import Row, relation

SECOND, HOUR, WINDOW, ASKED, BATCHES = 1_000_000, 3600, 4, 3, 17
"""Times are in seconds; the request comes before that batch."""

EDGES, BOUNDS = [("a", "b"), ("b", "c")], window("abc", WINDOW)
CHAIN = joined("abc", EDGES, BOUNDS)
LENGTH = WINDOW + 2
"""Batches of a second until the watermark is a window past the slowest stream."""


@pytest.mark.parametrize("ahead", ["a", "b", "c", "ab", "bc"])
def test_a_tuple_an_hour_ahead_does_not_make_it_last_an_hour(ahead):
    times = _times({name: [HOUR] for name in ahead})
    made, lasted = _run(_plan("((a b) c)"), _plan("(a (b c))"), times)
    assert lasted <= LENGTH
    assert made == _expected(times)


@pytest.mark.parametrize("seed", range(6))
def test_streams_that_run_ahead_of_each_other(seed):
    """What is younger than the slowest stream, and there already, is in the new plan's states."""
    r = Random(seed)
    lead = {name: r.randint(0, WINDOW + 2) for name in "abc"}
    times = [
        {name: [at + lead[name] + r.choice((0, 0, 1))] for name in "abc"} for at in range(BATCHES)
    ]
    trees = ["((a b) c)", "(a (b c))", "((a c) b)", "(a b c)"]
    old, new = r.sample(trees, 2)
    made, lasted = _run(_plan(old), _plan(new), times)
    assert lasted <= LENGTH + 1
    assert made == _expected(times)


def test_what_is_combined_already_cannot_be_taken_apart():
    """So the new plan begins past it; a tuple far ahead in another stream changes nothing."""
    query = joined(
        "ab",
        EDGES[:1],
        window("ab", WINDOW),
        grouping=counts("a.k", total("t", "b.v"), size=1, slide=1),
    )
    old, new = (build(query, parse(tree)) for tree in ("(a [b])", "(a b)"))
    _, lasted = _run(old, new, _times({"a": [HOUR]}))
    assert lasted <= LENGTH
    _, lasted = _run(old, new, _times({"b": [WINDOW]}))
    assert LENGTH < lasted <= WINDOW + LENGTH


def test_a_select_that_is_pulled_up():
    """The rows of before have passed it: they are right for this query, and for no other."""
    query = joined("abc", EDGES, BOUNDS, selects=[where("a.v")])
    others = [leaf(query, alias) for alias in "bc"]
    old = plan(query, join(query, leaf(query, "a", where("a.v")), *others))
    new = plan(query, above(join(query, leaf(query, "a"), *others), where("a.v")))
    times = _times({"a": [HOUR, 7, 8]})
    made, lasted = _run(old, new, times)
    assert lasted <= LENGTH
    assert made == Counter(row for row in _expected(times).elements() if row[0] > 5)


def _plan(tree):
    return build(CHAIN, parse(tree))


def _times(more):
    """A tuple a second in each stream; before the request, some of another time."""
    return [
        {name: [at, *(more.get(name, []) if at == ASKED - 1 else [])] for name in "abc"}
        for at in range(BATCHES)
    ]


def _run(old, new, times):
    """How often each combination came out; and how many batches it took to the cut-over."""
    store = MemoryStore()
    streams = {s.name: Ingest(s, ahead=10 * HOUR * SECOND) for s in old.query.streams.values()}
    clock = count(100 * SECOND)
    engine = Engine(Job("j", streams, {"q": old}), store, DuckBackend(), clock.__next__)
    for number, taken in enumerate(times):
        if number == ASKED:
            coming = to_json(new.root)
            append_request(
                store, Request("m", 0, query="q", plan=coming, strategy="parallel-track")
            )
        engine.run(number, {name: _rows(name, taken[name]) for name in streams})
    (done,) = (event.batch for event in read_events(store) if event.phase == "done")
    rows = store.load("out/q").to_pylist()
    return Counter(tuple(row.values()) for row in rows), done - ASKED


def _rows(name, times):
    made = [Row((0, at + 1, at, at * SECOND)) for at in times]
    return relation(stream(name, "k", "v", "w"), made)


def _expected(times):
    """All combinations within the windows, whatever batch brought them."""
    every = [[at for batch in times for at in batch[name]] for name in "abc"]
    return Counter(
        tuple(at + 1 for at in found)
        for found in product(*every)
        if max(found) - min(found) <= WINDOW
    )
