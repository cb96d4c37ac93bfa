"""What the simulator, or writing it, has found in the engine: each bug once more, by hand."""

from itertools import count

import pyarrow as pa
import pytest
from sqlglot import exp

from jobs.backends.duckdb.backend import DuckBackend
from jobs.engine.ingest import Ingest
from jobs.engine.lower import lower
from jobs.engine.microbatch import Engine, Job
from jobs.engine.states import relation_of
from jobs.tables.delta_store import DeltaStore
from jobs.tables.memory_store import MemoryStore
from jobs.tables.names import PROGRESS
from jobs.tables.requests import POSTPONE, Request, append_request, read_events
from optimizer.identity import identity
from optimizer.plan import Combine, GroupBy, build, parse, to_json, walk
from optimizer.query import RESULT, WINDOW_END, Aggregate, ColumnRef, Expression
from tests.optimizer.builders import between, counts, joined, ref, stream, total, where
from tests.optimizer.migration.by_hand import above, join, leaf, plan
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
    for operator in lower(plans).operators:
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


def test_a_sum_of_integers_is_exact_whatever_the_plan():
    """In 38 digits; SQL's own sum makes a BIGINT of it at the very end."""
    store = MemoryStore()
    grouping = counts("a.k", total("s", "a.v"), size=1, slide=1)
    _engine(store, joined("a", [], grouping=grouping)).run(0, _input(3))
    assert store.load("out/q").schema.field("s").type == pa.decimal128(38, 0)


def test_a_state_that_both_plans_share_is_kept_for_either():
    """The query that runs in parallel may need it for longer than the one that kept it so far."""
    edges = [("a", "b"), ("b", "c")]
    narrow, wide = (
        joined("abc", edges, between("abc", {("a", "b"): (-1, 1), ("b", "c"): (0, longest)}))
        for longest in (1, 9)
    )
    plans = {"narrow": build(narrow, parse("((a b) c)")), "wide": build(wide, parse("(a (b c))"))}
    store = MemoryStore()
    coming = to_json(build(wide, parse("((a b) c)")).root)
    engine = _engine(store, plans=plans)
    times = [("abc", 0), ("abc", 1), ("ab", 9), ("abc", 14), ("c", 17)]
    for number, (names, time) in enumerate(times):
        if number == 2:
            append_request(
                store, Request("m", 0, query="wide", plan=coming, strategy="parallel-track")
            )
        engine.run(number, _at(names, time, of="abc"))
    assert [event.phase for event in read_events(store)][-1] == "done"
    assert store.load("out/wide").num_rows == 10


def test_a_restart_does_not_forget_who_is_to_wait():
    """A migration that was postponed before it began is as good as asked for with `hold`."""
    store = MemoryStore()
    query = joined("abc", [("a", "b"), ("b", "c")])
    plans = {"q": build(query, parse("((a b) c)"))}
    coming = to_json(build(query, parse("(a (b c))")).root)
    append_request(
        store, Request("m", 0, query="q", plan=coming, strategy="moving-state", at_batch=2)
    )
    append_request(store, Request("p", 1, POSTPONE, "m"))
    for number in range(4):
        engine = _engine(store, plans=plans)
        engine.run(number, _at("abc", number))
    assert read_events(store)[-1].phase == "ready"


def test_half_a_removal_is_finished(tmp_path):
    """The process died when a state's log was empty already."""
    (tmp_path / "state/gone/_delta_log").mkdir(parents=True)
    _engine(DeltaStore(tmp_path)).run(0, _input(3))
    assert not (tmp_path / "state/gone").exists()


def test_files_with_other_orders_of_columns_merge():
    """Two queries that share a state may write its columns in different orders."""
    store, rows = MemoryStore(), pa.table({"x": [1], "y": [2]})
    store.create("state/s", rows.schema)
    files = [store.put("state/s", rows.select(names)) for names in (["x", "y"], ["y", "x"])]
    store.commit("state/s", files, 0)
    store.merge("state/s", files)
    assert store.load("state/s").to_pylist() == 2 * [{"x": 1, "y": 2}]


def test_a_state_of_two_queries_is_not_maintained_from_a_part():
    """The first query's (a b) has come to hold a's high tuples only, where it needs no others."""
    edges = [("a", "b"), ("b", "c"), ("c", "d")]
    picky, plain = joined("abcd", edges, selects=[where("a.v")]), joined("abcd", edges)
    a, b, c, d = (leaf(picky, alias) for alias in "abcd")
    high = leaf(picky, "a", where("a.v"))
    before = join(picky, join(picky, join(picky, high, b), c), d)
    after = above(join(picky, join(picky, join(picky, a, b), c), d), where("a.v"))
    other = join(plain, join(plain, a, join(plain, b, c)), d)
    plans = {"picky": plan(picky, before), "plain": plan(plain, other)}
    store = MemoryStore()
    engine = _engine(store, plans=plans)
    coming = to_json(plan(picky, after).root)
    for number, names in enumerate(["ab", "", "c", "d"]):
        if number == 1:
            append_request(
                store, Request("m", 0, query="picky", plan=coming, strategy="moving-state")
            )
        engine.run(number, _at(names, number, of="abcd"))
    assert [event.phase for event in read_events(store)][-1] == "done"
    assert store.load("out/plain").num_rows == 1


def test_a_column_that_was_dropped_once_is_not_selected_on_before_it_is_there_again():
    """The first change brings a.w back, as NULL in older rows; the second selects on it above."""
    query = joined("ab", [("a", "b")], selects=[where("a.w", "= 0")])
    b, low = leaf(query, "b"), where("a.w", "= 0")
    first = join(query, leaf(query, "a", low, keep="a.k a.ts a.v"), b)
    wide = join(query, leaf(query, "a", low), b)
    above_all = above(join(query, leaf(query, "a"), b), low)
    store = MemoryStore()
    engine = _engine(store, plans={"q": plan(query, first)})
    engine.run(0, _at("a", 0, of="ab"))
    for number, top in enumerate([wide, above_all], start=1):
        coming = to_json(plan(query, top).root)
        append_request(
            store, Request(f"m{number}", 0, query="q", plan=coming, strategy="moving-state")
        )
        engine.run(number, _at("", number, of="ab"))
    engine.run(3, _at("b", 3, of="ab"))
    ends = {event.id: event.phase for event in read_events(store)}
    assert ends == {"m1": "done", "m2": "refused"}
    assert store.load("out/q").num_rows == 1


def test_what_is_overdue_when_it_is_written_leaves_the_copy_though_the_process_died():
    """The next process finds it in the table, forgets its file, and computes it once more."""
    store = MemoryStore()

    def die_in_the_last_batch(event: str) -> None:
        if event == "progress" and store.last_batch(PROGRESS) == 1:
            raise Crash(event)

    limits = between("abc", {("a", "b"): (0, 9), ("b", "c"): (-9, -5)})
    plans = {"q": build(joined("abc", [("a", "b"), ("b", "c")], limits), parse("((a b) c)"))}
    first = _engine(store, plans=plans, step=die_in_the_last_batch)
    first.run(0, _at("abc", 0))
    first.run(1, _at("abc", 8))
    last = _at("b", 9, of="abc")
    with pytest.raises(Crash):
        first.run(2, last)
    second = _engine(store, plans=plans)
    second.run(2, last)
    kept = {operator.key: relation_of(operator.key) for operator in second.program.operators}
    copied = {key: second.backend.rows(state).num_rows for key, state in kept.items()}
    assert copied == {key: second.states.rows(key) for key in kept}


def _engine(store, query=None, plans=None, **options):
    plan = build(query, parse("a")) if query else build(joined("ab", [("a", "b")]), parse("(a b)"))
    plans = plans or {"q": plan}
    streams = {s.name: Ingest(s) for one in plans.values() for s in one.query.streams.values()}
    clock = count(100 * SECOND)
    job = Job("j", streams, plans)
    return Engine(job, store, DuckBackend(), clock.__next__, **options)


def _input(rows):
    made = [Row((n, n, n, SECOND + n)) for n in range(rows)]
    return {name: relation(stream(name, "k", "v", "w"), made) for name in "ab"}


def _at(names, time, of=""):
    """A tuple of each of these streams at that second, and none of the others."""
    row = Row((0, time, 0, time * SECOND))
    return {name: _rows([row] if name in names else [], name) for name in of or names}


def _rows(rows, name="a"):
    return relation(stream(name, "k", "v", "w"), rows)
