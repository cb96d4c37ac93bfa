"""How much is rebuilt between two batches: which slices as one, and after which batches none."""

from types import SimpleNamespace
from typing import Any

import pytest

from jobs.engine.migration.backfill import Backfiller
from jobs.engine.migration.migrator import Migrator
from jobs.tables.columns import ALWAYS
from jobs.tables.partitions import Widths
from jobs.tables.store import DataFile
from optimizer.migration.steps import CutOver, Fill, How, Track

WHOLE, ROWS = 5, 1000
"""Partitions of the source, and how many rows each has."""

BUCKET = 10

NOTHING: Any = None


class _Slices(Backfiller):
    """Notes which slices are filled as one; each fill has a price, and each of its rows."""

    price = 0.045
    row = 0.0
    now = 0.0
    done: list[int]

    def filled(self, m):
        return sum(self.done)

    def _fill_slices(self, m, plans, at, until):
        assert at == sum(self.done)
        self.done.append(until - at)
        self.now += self.price + self.row * (until - at) * ROWS
        return 0.0


class _Migrator(Migrator):
    """One amid the filling of a state."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.slices = _Slices(NOTHING, NOTHING, self.states, Widths(), self._pace, NOTHING)
        self.slices.timer = lambda: self.slices.now
        self._filler = self.slices

    @property
    def done(self) -> list[int]:
        return self.slices.done

    def begin(self, *later: Any) -> None:
        fill = Fill("s", How.JOIN, ("a", "b"))
        ends = tuple(BUCKET * (at + 1) for at in range(WHOLE))
        filling: Any = SimpleNamespace(
            slices=ends, source=1, steps=(fill, *later), step=fill, at=0, held=False, early=False
        )
        self.migration = filling
        self.slices.done = []


def started() -> _Migrator:
    files = {"b": [DataFile("", ROWS, 0, BUCKET * (at + 1)) for at in range(WHOLE)]}
    states: Any = SimpleNamespace(files=files, cutoff=lambda _: ALWAYS)
    return _Migrator(NOTHING, NOTHING, states, Widths(), lambda: 0)


@pytest.fixture
def migrator():
    made = started()
    for took in (1.0, 9.0, 1.0):
        made.work(NOTHING, {}, took)
    return made


def test_of_a_new_state_a_partition_is_tried_and_the_rest_as_time_allows(migrator):
    migrator.begin(Track(("t",)), CutOver())
    migrator.work(NOTHING, {}, 1.0)
    assert migrator.done == [1, 3, 1]


def test_what_is_dear_by_the_row_is_not_filled_as_one(migrator):
    migrator.slices.price, migrator.slices.row = 0.0, 0.15 / ROWS
    migrator.begin(Track(("t",)), CutOver())
    for _ in range(3):
        migrator.work(NOTHING, {}, 1.0)
    assert migrator.done == [1, 1, 1]


def test_a_slow_batch_is_spared_but_not_two_in_a_row(migrator):
    migrator.begin(Track(("t",)), CutOver())
    migrator.work(NOTHING, {}, 1.3)
    assert migrator.done == []
    migrator.work(NOTHING, {}, 1.3)
    assert migrator.done == [1]
    migrator.work(NOTHING, {}, 1.18)
    assert migrator.done == [1]
    migrator.work(NOTHING, {}, 1.3)
    assert migrator.done == [1, 1]


def test_the_last_state_is_finished_in_a_share_of_its_own(migrator):
    migrator.slices.price = 0.015
    migrator.begin(Track(("t",)), CutOver())
    migrator.work(NOTHING, {}, 1.19)
    assert migrator.done == [1]
    migrator.begin(CutOver())
    migrator.work(NOTHING, {}, 1.19)
    assert migrator.done == [WHOLE]


def test_what_is_purged_is_not_filled(migrator):
    migrator.states.files["b"] = migrator.states.files["b"][-2:]
    migrator.states.cutoff = lambda _: (WHOLE - 2) * BUCKET
    migrator.begin(Track(("t",)), CutOver())
    for _ in range(3):
        migrator.work(NOTHING, {}, 1.0)
    assert sum(migrator.done) == WHOLE
    assert len(migrator.done) <= 2


def test_files_that_are_overdue_already_are_in_no_slice(migrator):
    """A state that was filled a moment ago may have some."""
    migrator.states.cutoff = lambda _: BUCKET
    spans = list(migrator.slices._spans("b"))
    assert [span.end for span in spans] == [BUCKET * (at + 1) for at in range(1, WHOLE)]
    assert all(span.share(0, BUCKET * WHOLE) == ROWS for span in spans)


def test_without_a_usual_batch_the_shortest_counts():
    migrator = started()
    migrator.slices.price = 0.09
    migrator.begin(Track(("t",)), CutOver())
    migrator.work(NOTHING, {}, 1.0)
    assert migrator.done == [1, 1]
