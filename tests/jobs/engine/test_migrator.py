"""How much is rebuilt between two batches."""

from types import SimpleNamespace
from typing import Any

from jobs.engine.migrator import Migrator


class _Slices(Migrator):
    """Counts slices; each takes 0.09 s."""

    filled = 0
    now = 0.0

    def _filled(self, m):
        return self.filled

    def _fill_slice(self, m, plans, at):
        self.filled += 1
        self.now += 0.09


def test_a_batch_that_is_slow_already_leaves_time_for_one_slice_only():
    nothing: Any = None
    migrator = _Slices(nothing, nothing, nothing, 0, lambda: 0)
    migrator.timer = lambda: migrator.now
    migrator.work({}, 1.0)
    filling: Any = SimpleNamespace(slices=tuple(range(9)))
    migrator.migration = filling
    migrator.work({}, 1.0)
    assert migrator.filled == 2
    migrator.work({}, 1.15)
    migrator.work({}, 1.5)
    assert migrator.filled == 4
