"""A state in memory as tables of batches: what it shows is what a table of it would."""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

from jobs.backends.duckdb.backend import connect
from jobs.backends.duckdb.segments import FEW, StateSegments


class Copy:
    """A state, and the same rows in a list: `v`, `@until` and `@batch`."""

    def __init__(self, *rows: tuple[int, int, int]) -> None:
        self.database = connect()
        self.rows = [*rows]
        self.segments = StateSegments("s", self.ask)
        self._table("loading", 'v, "@until", "@batch"', rows)
        self.segments.load("loading")

    def ask(self, text: str) -> list[Any]:
        return self.database.execute(text).fetchall()

    def _table(self, name: str, columns: str, rows: Sequence[tuple[int, ...]]) -> None:
        types = ", ".join(f"{column} BIGINT" for column in columns.split(", "))
        self.ask(f"CREATE OR REPLACE TABLE {name} ({types})")
        for row in rows:
            self.ask(f"INSERT INTO {name} VALUES {row!r}")

    def add(self, batch: int, *rows: tuple[int, int]) -> None:
        self._table("new", 'v, "@until"', rows)
        self.segments.add("new", batch)
        self.rows += [(*row, batch) for row in rows]

    def purge(self, cutoff: int) -> None:
        self.segments.purge(cutoff)
        self.rows = [row for row in self.rows if row[1] > cutoff]

    def check(self) -> None:
        self.segments.show()
        assert Counter(self.ask('SELECT v, "@until", "@batch" FROM s')) == Counter(self.rows)

    @property
    def tables(self) -> int:
        counted = "SELECT count(*) FROM duckdb_tables() WHERE starts_with(table_name, 's_')"
        ((count,),) = self.ask(counted)
        return int(count)


def test_it_begins_with_what_was_loaded():
    copy = Copy((1, 10, 0), (2, 20, 1))
    copy.check()
    copy.add(2, (3, 30))
    copy.check()


def test_without_rows_it_has_columns():
    copy = Copy()
    copy.add(0)
    copy.check()
    assert copy.tables == 1


def test_what_is_overdue_goes_as_a_table_or_is_hidden():
    copy = Copy()
    copy.add(0, (1, 10), (2, 10))
    copy.add(1, (3, 10), (4, 20))
    copy.purge(10)
    copy.check()
    assert copy.tables == 2


def test_what_comes_after_a_purge_is_shown_however_old():
    copy = Copy()
    copy.add(0, (1, 10), (2, 30))
    copy.purge(20)
    copy.add(1, (3, 10))
    copy.check()
    copy.purge(20)
    copy.check()


def test_many_tables_become_one():
    copy = Copy()
    for batch in range(FEW):
        copy.add(batch, (batch, 10 * (batch + 1)))
    copy.purge(30)
    assert copy.tables == 1 + FEW - 3
    for batch in range(FEW, FEW + 3):
        copy.add(batch, (batch, 10 * (batch + 1)))
    copy.purge(45)
    copy.segments.merge()
    assert copy.tables <= FEW
    copy.check()


def test_a_long_life():
    """Batches of all sizes, late rows, purges now and then: a few tables for each size."""
    r = Random(7)
    copy = Copy((0, 5, -1))
    for batch in range(150):
        rows = [(r.randrange(9), 10 * (batch + r.randrange(-3, 40))) for _ in range(r.randrange(4))]
        copy.add(batch, *rows)
        copy.segments.merge()
        if r.random() < 0.5:
            copy.purge(10 * (batch - 3) + r.randrange(-9, 9))
        if batch % 10 == 0:
            copy.check()
        assert copy.tables <= 1 + 3 * FEW
    copy.check()
    copy.segments.drop()
    assert copy.tables == 0
