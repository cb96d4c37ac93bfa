"""What windows took beside what was predicted for them, by hand; windows that do not tell."""

from pathlib import Path
from typing import Any

import pytest

from optimizer.estimate import Estimator
from optimizer.identity import states
from optimizer.plan import build, parse
from optimizer.workload import Method
from stats.calibrate import by_operator, work
from stats.costs import SHIPPED, UNITS
from stats.predictions import measure, tell
from stats.store import BATCHES, EDGES, ERRORS, OPERATORS, STREAMS, Snapshot, StatsStore, Window
from tests.optimizer import builders

MINUTE = 60_000_000
QUERY = builders.joined("abc", [("a", "b"), ("b", "c")], 10)
PLAN = build(QUERY, parse("((a b) c)"))
KEYS = {"".join(sorted(node.aliases)): key for key, node in states(PLAN.root).items()}
LOAD = builders.workload(
    dict.fromkeys("abc", 10.0), {("a", "b"): 0.1, ("b", "c"): 0.01}, method=Method.BATCH, batch=10.0
)
COSTS = SHIPPED["duckdb"]


@pytest.fixture
def store(tmp_path: Path) -> StatsStore:
    return StatsStore.of(tmp_path)


def fill(store: StatsStore, number: int, *, times: int = 1, **batches: Any) -> Window:
    """A window that is as the workload says; `times` as much is taken in as it has."""
    there = Window(number * MINUTE, (number + 1) * MINUTE)
    streams = [
        {"stream": name, "rows": 600, "rate": 10.0, "width": 100.0, "taken": 600 * times + 7,
         "accepted": 600 * times, "late": 5, "rejected": 2}
        for name in "abc"
    ]  # fmt: skip
    edges = [
        {"query": "q", "one": "a", "other": "b", "selectivity": 0.1},
        {"query": "q", "one": "b", "other": "c", "selectivity": 0.01},
    ]
    rows = {"a": 600, "b": 600, "c": 600, "ab": 12_000}
    work_ = [
        {"operator": KEYS[part], "batches": 6 * times, "rows": rows[part] * times, "ms": ms}
        for part, ms in {"a": 100.0, "b": 100.0, "c": 200.0, "ab": 400.0}.items()
    ]
    whole = {"batches": 6 * times, "ms": 2000.0, "cpu": 1.5, "results": 900} | batches
    tables = {STREAMS: streams, EDGES: edges, OPERATORS: work_, BATCHES: [whole]}
    for table, content in tables.items():
        store.replace(table, there, content)
    return there


def test_a_window_says_how_much_work_took_how_long(store: StatsStore):
    fill(store, 0)
    found = measure(store, fill(store, 1), {"q": PLAN})
    assert found is not None
    assert (found.seconds, found.measurement.cpu, found.measurement.batches) == (60, 1.5, 6)
    amounts = work({"q": PLAN}, {"q": LOAD})
    done = found.measurement.work
    assert {n: done[n] for n in UNITS} == pytest.approx({n: amounts[n] * 60 for n in UNITS})
    assert (done["batch"], done["take"], done["result"]) == (6, 3 * 607, 900)
    assert done["statement"] == pytest.approx(4 * 6)


def test_a_job_that_catches_up_did_more(store: StatsStore):
    fill(store, 0)
    found = measure(store, fill(store, 1, times=3), {"q": PLAN})
    assert found is not None
    assert found.seconds == 180
    assert found.measurement.work["statement"] == pytest.approx(4 * 18)
    assert found.measurement.work["write"] == pytest.approx(3 * 60 * (10 + 10 + 200 + 10))


def test_windows_that_do_not_tell(store: StatsStore):
    first = fill(store, 0)
    assert measure(store, first, {"q": PLAN}) is None  # states were filling
    assert measure(store, fill(store, 1, cpu=None), {"q": PLAN}) is None
    empty = fill(store, 2, batches=0, cpu=None, ms=0.0)
    store.replace(STREAMS, empty, [])
    assert measure(store, empty, {"q": PLAN}) is None


def test_errors_are_kept_by_plan_and_by_operator(store: StatsStore):
    fill(store, 0)
    window = fill(store, 1)
    found = measure(store, window, {"q": PLAN})
    assert found is not None
    tell(store, found, COSTS)
    rows = {row["operator"]: row for row in store.rows(ERRORS, [window])}
    predicted = sum(found.measurement.work[name] * cost for name, cost in COSTS.values.items())
    assert rows[None]["query"] == "q"
    assert rows[None]["predicted"] == pytest.approx(predicted / 60)
    assert rows[None]["measured"] == pytest.approx(1.5 / 60)
    assert rows[None]["error"] == pytest.approx(predicted / 1.5 - 1)
    joined = rows[KEYS["ab"]]
    assert joined["measured"] == pytest.approx(0.2 * 1.5 / 60)  # 400 of 2,000 ms
    assert rows.keys() == {None, *KEYS.values()}


def test_two_queries_share_what_only_the_job_as_a_whole_tells(store: StatsStore):
    fill(store, 0)
    window = fill(store, 1)
    plans = {"q": PLAN, "r": build(QUERY, parse("(a b c)"))}
    for there in (Window(0, MINUTE), window):
        rows = store.rows(EDGES, [there])
        store.replace(EDGES, there, [*rows, *(row | {"query": "r"} for row in rows)])
    found = measure(store, window, plans)
    assert found is not None
    tell(store, found, COSTS)
    whole = [row for row in store.rows(ERRORS, [window]) if row["operator"] is None]
    assert [row["query"] for row in whole] == ["q", "r"]
    assert sum(row["measured"] for row in whole) == pytest.approx(1.5 / 60)
    assert whole[0]["error"] == pytest.approx(whole[1]["error"])
    each = found.loads["q"]
    sizes = [sum(by_operator(p, Estimator(p.query, each)).values()) for p in plans.values()]
    assert sizes[0] > sizes[1]
    assert whole[0]["measured"] > whole[1]["measured"]


def test_a_snapshot_says_what_the_tables_said(store: StatsStore):
    windows = [fill(store, number) for number in range(3)]
    snapshot = Snapshot(store.root)
    for table in (STREAMS, EDGES, OPERATORS, BATCHES):
        assert snapshot.rows(table, windows[1:]) == store.rows(table, windows[1:])
    assert snapshot.windows() == windows
    assert measure(snapshot, windows[1], {"q": PLAN}) == measure(store, windows[1], {"q": PLAN})
    before = snapshot.rows(BATCHES, windows)
    recent = Snapshot(store.root, since=windows[2].start)
    assert recent.rows(BATCHES, windows[2:]) == before[2:]
    fill(store, 1, cpu=9.0)
    fill(store, 2, cpu=9.0)
    assert snapshot.rows(BATCHES, windows) == before
    assert recent.rows(BATCHES, windows[2:]) == before[2:]
    assert [row["cpu"] for row in recent.rows(BATCHES, windows)] == [before[0]["cpu"], 9.0, 9.0]
