"""What the simulator, or writing it, has found in the engine: each bug once more, by hand."""

from itertools import count

import pyarrow as pa
import pytest
from sqlglot import exp

from jobs.engine.executors.duck import DuckExecutor
from jobs.engine.ingest import Ingest
from jobs.engine.lower import lower
from jobs.engine.microbatch import Engine, Job
from jobs.engine.store import MemoryStore
from optimizer.identity import identity
from optimizer.plan import Combine, GroupBy, build, parse, walk
from optimizer.query import RESULT, WINDOW_END, Aggregate, ColumnRef, Expression
from tests.optimizer.builders import between, counts, joined, ref, stream, total
from tests.simulation.case import Row, relation
from tests.simulation.faults import Crash

SECOND = 1_000_000


def test_a_group_by_may_filter_by_its_window():
    ends = Expression("\0 > \0 - INTERVAL '1' SECOND", (ref("a.ts"), ColumnRef(RESULT, WINDOW_END)))
    grouping = counts("a.k", Aggregate("n", "count", condition=ends))
    plan = build(joined("ab", [("a", "b")], grouping=grouping), parse("(a b)"))
    assert any(isinstance(node, GroupBy) for node in walk(plan.root))


def test_a_shared_state_is_computed_from_what_is_there():
    """The query that needs a state for longer may compute it from states of its own."""
    narrow = between("abcd", {("a", "b"): (0, 1), ("b", "c"): (0, 1), ("c", "d"): (0, 1)})
    wide = between("abcd", {("a", "b"): (0, 1), ("b", "c"): (0, 1), ("c", "d"): (0, 9)})
    edges = [("a", "b"), ("b", "c"), ("c", "d")]
    plans = {
        "narrow": build(joined("abcd", edges, narrow), parse("((a b c) d)")),
        "wide": build(joined("abcd", edges, wide), parse("(((a b) c) d)")),
    }
    computed: set[str] = set()
    for operator in lower(plans, SECOND).operators:
        read = {table.name for table in operator.statement.find_all(exp.Table)}
        assert {name for name in read if name.startswith("new_")} <= computed
        computed.add(operator.relation)


def test_a_filter_is_not_an_argument():
    """Two queries of a job must not share what only reads alike."""
    above = Expression("\0 > 1", (ref("a.v"),))
    states = set()
    for aggregate in (
        Aggregate("n", "count", argument=above),
        Aggregate("n", "count", condition=above),
    ):
        query = joined("ab", [("a", "b")], grouping=counts("a.k", aggregate))
        plan = build(query, parse("([a] b)"))
        states |= {identity(node).key for node in walk(plan.root) if isinstance(node, Combine)}
    assert len(states) == 2


def test_what_an_interrupted_batch_wrote_is_counted():
    """Another attempt finds its results committed, and must still say how many there are."""
    store = MemoryStore()

    def die_before_progress(event: str) -> None:
        if event == "progress":
            raise Crash(event)

    with pytest.raises(Crash):
        _engine(store, step=die_before_progress).run(0, _input(3))
    progress = _engine(store).run(0, _input(3))
    assert store.load("out/q").num_rows == progress.results["q"] == 3
    assert {work.rows for work in progress.operators.values()} == {3}


def test_a_sum_of_integers_is_one():
    store = MemoryStore()
    grouping = counts("a.k", total("s", "a.v"), size=1, slide=1)
    _engine(store, joined("a", [], grouping=grouping)).run(0, _input(3))
    assert store.load("out/q").schema.field("s").type == pa.int64()


def _engine(store, query=None, **options):
    plan = build(query, parse("a")) if query else build(joined("ab", [("a", "b")]), parse("(a b)"))
    streams = {one.name: Ingest(one) for one in plan.query.streams.values()}
    clock = count(100 * SECOND)
    return Engine(Job("j", streams, {"q": plan}), store, DuckExecutor(), clock.__next__, **options)


def _input(rows):
    made = [Row((n, n, n, SECOND + n)) for n in range(rows)]
    return {name: relation(stream(name, "k", "v", "w"), made) for name in "ab"}
