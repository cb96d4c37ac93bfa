"""A case: streams and the files that bring their rows, a query, a plan; all of it values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from tests.bench.differential.terms import Column, Term, Value, interval, length, quoted, sql

Row = tuple[Value, ...]
"""A stream's columns in order."""

Limits = Mapping[tuple[str, str], int]
"""How far, at most, the first input's tuples are newer than the second's."""


def closed(
    names: Sequence[str], limits: Mapping[tuple[str, str], float]
) -> dict[tuple[str, str], float]:
    """What limits say of two inputs by way of others, too."""
    known = {(i, j): limits.get((i, j), inf) if i != j else 0 for i in names for j in names}
    for via in names:
        for (i, j), limit in known.items():
            known[i, j] = min(limit, known[i, via] + known[via, j])
    return known


@dataclass(frozen=True)
class Broken:
    """A line of a text file that is no tuple."""

    text: str


@dataclass(frozen=True)
class Stream:
    """A stream, and what its file says of it; times in microseconds."""

    name: str
    columns: tuple[tuple[str, str], ...]
    time: str
    lateness: int
    ahead: int
    format: str
    directory: str
    at_once: int
    """How many files a batch takes at most."""
    options: tuple[tuple[str, str | bool], ...] = ()
    """How its text files are written."""
    mode: str = ""
    """What `columns` says, if anything."""
    parts: tuple[tuple[str, str], ...] = ()
    """Columns that directories tell, and what these call them."""

    @property
    def exact(self) -> bool:
        """Whether files have the declared columns and no others."""
        named = self.format == "parquet" or bool(dict(self.options).get("header"))
        return self.mode == "exact" or (self.mode == "" and not named)

    @property
    def schema(self) -> str:
        """As the job file has it."""
        return ", ".join(f"{name} {kind}" for name, kind in self.columns)

    @property
    def at(self) -> int:
        """Where the event time stands."""
        return [name for name, _ in self.columns].index(self.time)


@dataclass(frozen=True)
class File:
    """A file of a stream: its name, who writes it, and what is in it."""

    stream: str
    name: str
    writer: str
    rows: tuple[Row | Broken, ...]


@dataclass(frozen=True)
class Window:
    """A group's windows, over the event time of an input; in microseconds."""

    alias: str
    size: int
    slide: int


@dataclass(frozen=True)
class Query:
    """A query: conditions and windows as they were drawn, and what it puts out."""

    inputs: tuple[tuple[str, Stream], ...]
    on: tuple[Term, ...]
    """Conditions, all of which must hold."""
    between: Limits
    ranges: Mapping[str, int]
    window: int | None
    output: tuple[tuple[str, Term], ...]
    keys: tuple[Term, ...] = ()
    grouping: Window | None = None
    style: int = 0
    """How joins are written."""

    @property
    def aliases(self) -> list[str]:
        """Of its inputs."""
        return [alias for alias, _ in self.inputs]

    @property
    def limits(self) -> Limits:
        """All that is said of how far apart event times may be."""
        found: dict[tuple[str, str], int] = {}
        pairs = [(i, j) for i in self.aliases for j in self.aliases if i != j]
        said = [(pair, self.window) for pair in pairs if self.window is not None]
        said += [(pair, self.ranges[pair[1]]) for pair in pairs if pair[1] in self.ranges]
        for pair, limit in [*said, *self.between.items()]:
            found[pair] = min(limit, found.get(pair, limit))
        return found

    def time(self, alias: str) -> Column:
        """The event time of an input."""
        return Column(alias, dict(self.inputs)[alias].time, "TIMESTAMP")

    @property
    def sql(self) -> str:
        """The query as a job file has it."""
        select = ", ".join(f"{sql(term)} AS {quoted(name)}" for name, term in self.output)
        conditions = [*map(sql, self.on), *self._between()]
        group = ""
        if self.grouping is not None:
            keys = ", ".join([*map(sql, self.keys), self._window(self.grouping)])
            group = f" GROUP BY {keys}"
        return f"SELECT {select} FROM {self._joined(conditions)}{group}"

    def _joined(self, conditions: list[str]) -> str:
        tables = [self._table(alias) for alias in self.aliases]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        if self.style == 0 or len(tables) == 1:
            return ", ".join(tables) + where
        if self.style == 1 or not conditions:
            return " CROSS JOIN ".join(tables) + where
        *first, last = tables
        return f"{' CROSS JOIN '.join(first)} JOIN {last} ON {' AND '.join(conditions)}"

    def _table(self, alias: str) -> str:
        stream = dict(self.inputs)[alias].name
        within = f" [RANGE {length(self.ranges[alias])}]" if alias in self.ranges else ""
        return f"{quoted(stream)} AS {quoted(alias)}{within}"

    def _between(self) -> list[str]:
        pairs = {tuple(sorted(pair)) for pair in self.between}
        return [self._bounded(newer, older) for newer, older in sorted(pairs)]

    def _bounded(self, one: str, other: str) -> str:
        """How far two event times may be apart, in one of the ways to say so."""
        above, below = self.between[one, other], self.between[other, one]
        left, right = sql(self.time(one)), sql(self.time(other))
        if above == below == 0:
            return f"{left} = {right}"
        match (above + below + self.style) % 4:
            case 0:
                low, high = interval(-below), interval(above)
                return f"{left} BETWEEN {right} + {low} AND {right} + {high}"
            case 1:
                more = f"{left} - {right} <= {interval(above)}"
                return f"{more} AND {right} - {left} <= {interval(below)}"
            case 2:
                more = f"{left} < {right} + {interval(above + 1)}"
                return f"{more} AND {interval(below)} >= {right} - {left}"
        return f"{left} <= {right} + {interval(above)} AND {left} + {interval(below)} >= {right}"

    def _window(self, grouping: Window) -> str:
        size, slide = length(grouping.size), length(grouping.slide)
        lengths = f"'{size}'" if size == slide else f"'{size}', '{slide}'"
        return f"window({sql(self.time(grouping.alias))}, {lengths})"


@dataclass(frozen=True)
class Case:
    """Everything that a run depends on."""

    seed: int
    streams: tuple[Stream, ...]
    files: tuple[File, ...]
    query: Query
    plan: str | None
    width: int
    """Of the partitions of the states of every other stream, in microseconds."""
    tasks: int
    clock: int
    name: str = "q"

    def batches(self, stream: Stream) -> list[tuple[File, ...]]:
        """The files that each batch takes of a stream."""
        files = [file for file in self.files if file.stream == stream.name]
        step = stream.at_once
        return [tuple(files[i : i + step]) for i in range(0, len(files), step)]

    @property
    def count(self) -> int:
        """How many batches there are."""
        return max((len(self.batches(stream)) for stream in self.streams), default=0)
