"""A state in DuckDB's memory: tables of what batches have brought, and a view of them all.

What a batch has computed becomes part of the state as it is, without a copy, and what is overdue
goes by the table: of rows that are deleted DuckDB keeps the place until it tidies up, which takes
longer than a batch does.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from jobs.backends.parquet_input import quoted
from jobs.tables.columns import BATCH, UNTIL

FEW = 8
"""So many tables of one size become one: a statement that reads a state looks at each of them."""

Ask = Callable[[str], list[Any]]
"""Carries a statement out, and brings its rows."""


@dataclass(frozen=True)
class _Segment:
    """The rows of a table that belong to a state."""

    table: str
    columns: str
    oldest: int
    youngest: int
    """Bounds of `@until`."""
    size: int = 0
    """How often it was merged."""
    trimmed: bool = False
    """Whether it has older rows, too, that are overdue."""

    @property
    def rows(self) -> str:
        """Those that are not."""
        alive = f" WHERE {quoted(UNTIL)} >= {self.oldest}" if self.trimmed else ""
        return f"SELECT {self.columns} FROM {quoted(self.table)}{alive}"

    def after(self, cutoff: int) -> "_Segment":
        """What is left of it once all that is no younger is overdue."""
        if self.oldest > cutoff:
            return self
        return replace(self, oldest=cutoff + 1, trimmed=True)


@dataclass
class StateSegments:
    """The tables of one state."""

    state: str
    ask: Ask
    few: int = FEW
    _columns: str = ""
    _segments: list[_Segment] = field(default_factory=list)
    _made: int = 0
    _shown: bool = False
    """Whether the view is of the tables that there are."""

    def load(self, relation: str) -> None:
        """Begin with rows that say which batch brought them."""
        names = [name for name, *_ in self.ask(f"DESCRIBE {quoted(relation)}") if name != BATCH]
        self._columns = ", ".join(map(quoted, names))
        self.ask(f"CREATE TABLE {quoted(self._mould)} AS FROM {quoted(relation)} LIMIT 0")
        self._merge([f"FROM {quoted(relation)}"], 0)

    def add(self, relation: str, batch: int) -> None:
        """Make a table part of the state, as what a batch has brought; it loses its name."""
        name = self._name()
        self.ask(f"ALTER TABLE {quoted(relation)} RENAME TO {quoted(name)}")
        self._keep(name, f"{self._columns}, CAST({int(batch)} AS BIGINT) AS {quoted(BATCH)}", 0)

    @property
    def alike(self) -> list[_Segment]:
        """The tables of a size of which there are most."""
        sizes = Counter(segment.size for segment in self._segments)
        size = max(sizes, key=lambda size: sizes[size], default=0)
        return [segment for segment in self._segments if segment.size == size]

    def merge(self) -> None:
        """Make one table of those of a size if there are many."""
        if len(alike := self.alike) >= self.few:
            self._merge([segment.rows for segment in alike], alike[0].size + 1)
            self._drop(alike)

    def purge(self, cutoff: int) -> None:
        """Give up what is no younger."""
        self._drop([segment for segment in self._segments if segment.youngest <= cutoff])
        self._segments = [segment.after(cutoff) for segment in self._segments]

    def drop(self) -> None:
        """Give up everything."""
        self.ask(f"DROP VIEW IF EXISTS {quoted(self.state)}")
        self._drop(list(self._segments))
        self.ask(f"DROP TABLE {quoted(self._mould)}")

    @property
    def _mould(self) -> str:
        return f"{self.state}_0"

    def _name(self) -> str:
        self._made += 1
        return f"{self.state}_{self._made}"

    def _merge(self, parts: list[str], size: int) -> None:
        name = self._name()
        self.ask(f"CREATE TABLE {quoted(name)} AS {' UNION ALL '.join(parts)}")
        self._keep(name, f"{self._columns}, {quoted(BATCH)}", size)

    def _keep(self, table: str, columns: str, size: int) -> None:
        """A table without rows is none of the state's."""
        self._shown = False
        time = quoted(UNTIL)
        ((oldest, youngest),) = self.ask(f"SELECT min({time}), max({time}) FROM {quoted(table)}")
        if oldest is None:
            self.ask(f"DROP TABLE {quoted(table)}")
        else:
            self._segments.append(_Segment(table, columns, oldest, youngest, size))

    def _drop(self, segments: list[_Segment]) -> None:
        self._shown = False
        for segment in segments:
            self.ask(f"DROP TABLE {quoted(segment.table)}")
            self._segments.remove(segment)

    def show(self) -> None:
        """Let statements read what there is now."""
        if self._shown:
            return
        parts = [segment.rows for segment in self._segments]
        rows = " UNION ALL ".join(parts) or f"FROM {quoted(self._mould)}"
        self.ask(f"CREATE OR REPLACE VIEW {quoted(self.state)} AS {rows}")
        self._shown = True
