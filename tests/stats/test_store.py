"""Statistics as tables: a window is replaced whole, and only good ones are offered to decisions."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from stats.store import BATCHES, COLUMNS, STREAMS, VERDICTS, StatsStore, Window

FIRST, SECOND = Window(60_000_000, 120_000_000), Window(120_000_000, 180_000_000)


@pytest.fixture
def store(tmp_path: Path) -> StatsStore:
    return StatsStore.of(tmp_path)


def _rates(store: StatsStore) -> list[tuple[int, str, float]]:
    rows = store.rows(STREAMS, [FIRST, SECOND])
    return [(row["window_start"], row["stream"], row["rate"]) for row in rows]


def test_a_window_is_replaced_and_the_others_stay(store: StatsStore):
    store.replace(STREAMS, FIRST, [{"stream": "a", "rate": 1.0}, {"stream": "b", "rate": 2.0}])
    store.replace(STREAMS, SECOND, [{"stream": "a", "rate": 3.0}])
    store.replace(STREAMS, FIRST, [{"stream": "a", "rate": 4.0}])
    assert _rates(store) == [(60_000_000, "a", 4.0), (120_000_000, "a", 3.0)]


def test_saying_the_same_again_writes_nothing(store: StatsStore):
    heavy = [{"stream": "a", "value": "k", "heavy": [{"value": "7", "rows": 3}]}]
    store.replace(COLUMNS, FIRST, heavy)
    before = DeltaTable(store.path(COLUMNS)).version()
    store.replace(COLUMNS, FIRST, heavy)
    assert DeltaTable(store.path(COLUMNS)).version() == before


def test_a_window_can_become_empty(store: StatsStore):
    store.replace(STREAMS, FIRST, [{"stream": "a", "rate": 1.0}])
    store.replace(STREAMS, FIRST, [])
    assert _rates(store) == []


def test_what_was_never_written_has_no_rows(store: StatsStore):
    assert (store.windows(), store.good(), store.rows(STREAMS, [FIRST])) == ([], [], [])


def test_only_windows_that_passed_are_good(store: StatsStore):
    for window, good in ((SECOND, True), (FIRST, False)):
        store.replace(BATCHES, window, [{"batches": 1}])
        store.replace(VERDICTS, window, [{"good": good, "reasons": [], "checked": 1, "at": 0}])
    assert store.windows() == [FIRST, SECOND]
    assert store.good() == [SECOND]
