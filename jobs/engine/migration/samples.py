"""How many rows the fills of a migration will make: tried on samples of the states as they are.

A sample of one input's rows goes through the others as the fill's own statement has it, so that
windows, keys that are heavy on both sides and keys that go together count as they do.
"""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod, sqrt

import duckdb

from jobs.backends.duckdb.backend import connect, duck_text
from jobs.backends.parquet_input import quoted
from jobs.engine.migration.rebuild import statement
from jobs.engine.statements import physical, times_of
from jobs.engine.states import relation_of
from jobs.tables.delta_store import DeltaStore
from jobs.tables.names import state_table
from jobs.tables.paths import files_of, read_parquet
from optimizer.identity import identity
from optimizer.migration.cost import Range
from optimizer.migration.matching import Context, Recipe, match, recipe
from optimizer.migration.steps import How
from optimizer.plan import Plan

TRIED, DRAWN, MADE = 64, 2_000, 200_000
"""Rows drawn at first, and then up to so many, as many as make about so many rows."""

KEPT = 20_000
"""Of what was made of a sample, so many rows at most go on to the next fill."""

DEVIATIONS, FEW, UNSEEN = 2.25, 10, 3
"""As for sampled edges: how wide the bound is, and what it is if few rows have found a partner."""

NEWEST = 2**62
"""Rows of all batches count."""


def sampled(old: Plan, new: Plan, context: Context, store: DeltaStore) -> dict[str, Range]:
    """About how many rows each state will have that is filled, and how many at most."""
    found: dict[str, Range] = {}
    with suppress(duckdb.Error, LookupError), connect() as connection:
        connection.execute("SET disabled_optimizers = ''")  # few rows meet many: build on the few
        samples = _Samples(connection, store)
        for fill in match(old, new, context).fills:
            found[fill.state] = samples.fill(fill.state, recipe(old, new, fill))
    return found


@dataclass(frozen=True)
class _Drawn:
    """Of a state, what so many of the rows of some of its inputs are a part of."""

    count: int
    whole: int
    aliases: frozenset[str]
    thinned: float = 1.0
    """The share of what these make that is there."""
    error: float = 0.0
    """The bound of how many rows there are in all, by that number."""

    @property
    def share(self) -> float:
        """Of the rows that there would be."""
        return self.thinned * self.count / self.whole if self.whole else 1.0


@dataclass
class _Samples:
    """States, or samples of those that are not there yet, as relations `full_K`."""

    connection: duckdb.DuckDBPyConnection
    store: DeltaStore
    drawn: dict[str, _Drawn | None] = field(default_factory=dict)
    """None where all rows are there."""

    def fill(self, key: str, made: Recipe) -> Range:
        """What a fill makes."""
        for source in made.keys:
            self._open(source)
            self._show(source, f"FROM {_full(source)}")
        if made.how is How.JOIN and made.keys.count(made.keys[0]) == 1:
            return self._join(key, made)
        self._make(key, made)
        if all(self.drawn[source] is None for source in made.keys):
            self.drawn[key] = None
            rows = float(self._count(_full(key)))
            return Range(rows, rows)
        raise LookupError(key)

    def _open(self, key: str) -> None:
        if key not in self.drawn:
            files = files_of(self.store.table(state_table(key)))
            self.connection.execute(f"CREATE VIEW {_full(key)} AS FROM {read_parquet(files)}")
            self.drawn[key] = None

    def _join(self, key: str, made: Recipe) -> Range:
        """Of the first input's rows, some that are drawn, or were before, meet the others."""
        first = made.keys[0]
        known = self.drawn[first]
        known = self._first(key, made) if known is None else self._thinned(first, known)
        self._make(key, made)
        others = [one for source in made.keys[1:] if (one := self.drawn[source])]
        known = replace(known, thinned=known.thinned * prod(one.share for one in others))
        found = self._range(key, made, known, others)
        error = (found.most - found.likely) / found.likely if found.likely else 0.0
        self.drawn[key] = replace(known, error=error)
        return found

    def _first(self, key: str, made: Recipe) -> _Drawn:
        """Some rows of the first input, more where they make few."""
        first = made.keys[0]
        whole = self._count(_full(first))
        tried = min(whole, TRIED)
        self._draw(first, tried)
        self._make(key, made)
        each = self._count(_full(key)) / max(1, tried)
        count = min(whole, DRAWN, max(TRIED, round(MADE / max(each, 1e-9))))
        self._draw(first, count)
        return _Drawn(count, whole, made.sources[0].aliases)

    def _thinned(self, first: str, known: _Drawn) -> _Drawn:
        """Not all of what was made of a sample, if that is much."""
        rows = self._count(_full(first))
        if rows <= KEPT:
            return known
        self._draw(first, KEPT)
        return replace(known, thinned=known.thinned * KEPT / rows)

    def _range(self, key: str, made: Recipe, drawn: _Drawn, others: list[_Drawn]) -> Range:
        """By how many rows each of those drawn has come to."""
        names = identity(made.target)
        times = ", ".join(
            quoted(physical(names, time))
            for alias, time in times_of(made.target).items()
            if alias in drawn.aliases
        )
        each = f"SELECT count(*)::DOUBLE AS c FROM {_full(key)} GROUP BY {times}"
        summed = f"SELECT count(*), coalesce(sum(c), 0), coalesce(sum(c * c), 0) FROM ({each})"
        ((some, total, squares),) = self.connection.execute(summed).fetchall()
        rows, error = _bound(drawn, some, total, squares)
        spread = sqrt(error**2 + sum((rows * one.error) ** 2 for one in others))
        return Range(rows, rows + spread)

    def _show(self, key: str, rows: str) -> None:
        """What statements find as the state."""
        name = quoted(relation_of(key))
        self.connection.execute(f"DROP VIEW IF EXISTS {name}")
        self.connection.execute(f"CREATE VIEW {name} AS {rows}")

    def _draw(self, key: str, count: int) -> None:
        drawn = quoted(f"drawn_{key}")
        sample = f"USING SAMPLE reservoir({count} ROWS) REPEATABLE (1)"
        self.connection.execute(f"CREATE OR REPLACE TABLE {drawn} AS FROM {_full(key)} {sample}")
        self._show(key, f"FROM {drawn}")

    def _make(self, key: str, made: Recipe) -> None:
        rows = f"SELECT *, 0 AS {quoted('_batch')} FROM ({duck_text(statement(made, NEWEST))})"
        self.connection.execute(f"CREATE OR REPLACE TABLE {_full(key)} AS {rows}")

    def _count(self, relation: str) -> int:
        ((count,),) = self.connection.execute(f"SELECT count(*) FROM {relation}").fetchall()
        return int(count)


def _full(key: str) -> str:
    return quoted(f"full_{key}")


def _bound(drawn: _Drawn, some: int, total: float, squares: float) -> tuple[float, float]:
    """The rows of all by those of the ones drawn, and how far off that may be."""
    n, whole = drawn.count, drawn.whole
    if n == whole:
        return total / drawn.share, 0.0
    variance = max(0.0, squares - total**2 / n) / max(1, n - 1)
    error = DEVIATIONS * whole * sqrt(variance / n * (1 - n / whole)) / drawn.thinned
    if some < FEW:
        error = max(error, UNSEEN * max(1.0, total / max(1, some)) / drawn.share)
    return total / drawn.share, error
