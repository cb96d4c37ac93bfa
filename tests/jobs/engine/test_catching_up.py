"""History that is caught up with: any span of time in one batch, in any order."""

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

import pyarrow as pa
import pytest

from jobs.backends.duckdb.backend import DuckBackend
from jobs.engine.ingest import Ingest
from jobs.engine.microbatch import Engine, Job
from jobs.tables.columns import REASON, ROW
from jobs.tables.memory_store import MemoryStore
from jobs.tables.partitions import MOST_FILES
from jobs.tables.progress import Progress
from optimizer.plan import build, parse
from optimizer.window import MICROSECONDS, everywhere
from tests.optimizer.builders import joined

WINDOW = 10
WINDOWS = 100
"""That a history spans."""

Rows = Sequence[tuple[int, int]]
"""Key and second of each."""


def history(seed: int) -> Rows:
    r = Random(seed)
    return [(r.randrange(4), second) for second in range(WINDOW * WINDOWS)]


HISTORY = {"a": history(1), "b": history(2)}


def relation(rows: Rows) -> pa.Table:
    nothing = pa.nulls(len(rows), pa.string())
    return pa.table(
        {
            "k": pa.array([key for key, _ in rows], pa.int64()),
            "v": pa.array([second for _, second in rows], pa.int64()),
            "w": pa.nulls(len(rows), pa.int64()),
            "ts": pa.array([s * MICROSECONDS for _, s in rows], pa.timestamp("us", "UTC")),
            REASON: nothing,
            ROW: nothing,
        }
    )


def carried_out(store: MemoryStore, *batches: Mapping[str, Rows]) -> list[Progress]:
    bounds = everywhere("ab", WINDOW * MICROSECONDS)
    plan = build(joined("ab", [("a", "b")], bounds), parse("(a b)"))
    streams = {one.name: Ingest(one) for one in plan.query.streams.values()}
    clock = WINDOW * WINDOWS * MICROSECONDS
    engine = Engine(Job("j", streams, {"q": plan}), store, DuckBackend(), lambda: clock)
    try:
        return [
            engine.run(number, {name: relation(rows) for name, rows in batch.items()})
            for number, batch in enumerate(batches)
        ]
    finally:
        engine.close()


def pairs(rows: Mapping[str, Rows]) -> Counter[tuple[int, int]]:
    """The times of tuples that meet, by comparing all that have a key."""
    return Counter(
        (a, b)
        for key, a in rows["a"]
        for other, b in rows["b"]
        if key == other and abs(a - b) <= WINDOW
    )


def results(store: MemoryStore) -> Counter[tuple[int, int]]:
    found = store.load("out/q").select([0, 1]).to_pylist()
    return Counter(tuple(row.values()) for row in found)


def states(store: MemoryStore) -> list[str]:
    return [table for table in store.tables() if table.startswith("state/")]


@pytest.mark.parametrize("order", ["oldest first", "newest first", "any"])
def test_all_at_once(order: str):
    """Nothing is late, little is kept, and there are few files."""
    rows = {name: list(known) for name, known in HISTORY.items()}
    for known in rows.values():
        if order == "newest first":
            known.reverse()
        if order == "any":
            Random(3).shuffle(known)
    store = MemoryStore()
    (progress,) = carried_out(store, rows)
    assert results(store) == pairs(HISTORY)
    assert {name: flow.late for name, flow in progress.streams.items()} == {"a": 0, "b": 0}
    for table in states(store):
        assert store.load(table).num_rows == WINDOW + 1
        assert len(store.files(table)) <= MOST_FILES
    assert len(store.files("out/q")) == 1


def test_one_stream_at_once_and_the_other_by_and_by():
    """What is far ahead waits, in few files."""
    store, step = MemoryStore(), WINDOW * WINDOWS // 8
    parts = [HISTORY["b"][at : at + step] for at in range(0, WINDOW * WINDOWS, step)]
    batches = [{"a": HISTORY["a"] if not at else [], "b": part} for at, part in enumerate(parts)]
    made = carried_out(store, *batches)
    assert results(store) == pairs(HISTORY)
    assert not any(flow.late for progress in made for flow in progress.streams.values())
    assert all(len(store.files(table)) <= MOST_FILES * len(parts) for table in states(store))


def test_the_newest_first_one_after_another():
    """By the rule that holds for all rows: what is older than the watermark is late."""
    half = WINDOW * WINDOWS // 2
    newer = {name: rows[half:] for name, rows in HISTORY.items()}
    older = {name: rows[:half] for name, rows in HISTORY.items()}
    store = MemoryStore()
    *_, last = carried_out(store, newer, older)
    assert results(store) == pairs(newer)
    assert {name: flow.late for name, flow in last.streams.items()} == {"a": half, "b": half}
    assert store.load("late/a").num_rows == half
