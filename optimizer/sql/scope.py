"""Which stream and column a name means, as Spark resolves it: without regard to case."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from sqlglot import exp

from optimizer.query import RESULT, WINDOW_END, WINDOW_START, ColumnRef, Stream
from optimizer.sql.refuse import check_join, check_table
from optimizer.sql.schema import NAME
from optimizer.sql.text import Text

_WINDOW = {"start": WINDOW_START, "end": WINDOW_END}


@dataclass(frozen=True)
class Input:
    """A stream under its alias, as declared where `node` stands."""

    alias: str
    stream: Stream
    node: exp.Table

    def column(self, name: str) -> ColumnRef | None:
        """Its column of that name in any case, spelled as declared."""
        found = [c.name for c in self.stream.columns if c.name.lower() == name.lower()]
        return ColumnRef(self.alias, found[0]) if found else None


@dataclass(frozen=True)
class Scope:
    """The streams that names may refer to.

    `merged` holds the columns of JOIN USING: the right one is the left one under the same name.
    """

    source: Text
    inputs: tuple[Input, ...]
    grouped: bool = False
    merged: Mapping[ColumnRef, ColumnRef] = field(default_factory=dict)

    def first(self, count: int) -> "Scope":
        """What the ON of a join can see: the streams up to there."""
        return replace(self, inputs=self.inputs[:count])

    @cached_property
    def types(self) -> dict[ColumnRef, str]:
        """The declared type of every column."""
        return {ColumnRef(i.alias, c.name): c.type for i in self.inputs for c in i.stream.columns}

    @cached_property
    def event_times(self) -> dict[ColumnRef, str]:
        """The input of each event-time column."""
        return {ColumnRef(i.alias, i.stream.event_time): i.alias for i in self.inputs}

    def find(self, alias: str) -> Input | None:
        """The input of that alias."""
        return next((i for i in self.inputs if i.alias.lower() == alias.lower()), None)

    def resolve(self, column: exp.Column) -> ColumnRef:
        """What the name means."""
        if column.args.get("db"):
            raise self.source.error(f"{_written(column)}: nested columns are not supported", column)
        if not column.table:
            return self._unqualified(column)
        if column.table.lower() == "window":
            return self._window(column)
        found = self.find(column.table)
        if found is None:
            aliases = ", ".join(i.alias for i in self.inputs)
            message = f"no stream is called {column.table} here: there is {aliases}"
            raise self.source.error(message, column)
        ref = found.column(column.name)
        if ref is None:
            has = ", ".join(c.name for c in found.stream.columns)
            message = f"{found.alias} has no column {column.name}: it has {has}"
            raise self.source.error(message, column)
        return ref

    def _window(self, column: exp.Column) -> ColumnRef:
        if not self.grouped:
            message = f"{_written(column)} exists only where GROUP BY has window(ts, size)"
            raise self.source.error(message, column)
        if column.name.lower() not in _WINDOW:
            message = f"a window has no {column.name}: it has window.start and window.end"
            raise self.source.error(message, column)
        return ColumnRef(RESULT, _WINDOW[column.name.lower()])

    def _unqualified(self, column: exp.Column) -> ColumnRef:
        found = self.candidates(column.name)
        if len(found) == 1:
            return found[0]
        if found:
            where = " and ".join(str(ref) for ref in found)
            message = f"{column.name} is ambiguous: it could be {where}"
        elif column.name.lower() == "window":
            message = "a window has two columns: write window.start or window.end"
        else:
            message = f"no stream here has a column {column.name}"
        raise self.source.error(message, column)

    def candidates(self, name: str) -> list[ColumnRef]:
        """The columns of that name; those that USING made equal count once."""
        every = [ref for i in self.inputs if (ref := i.column(name)) is not None]
        return list(dict.fromkeys(self.merged.get(ref, ref) for ref in every))


def from_clause(source: Text, select: exp.Select, streams: Mapping[str, Stream]) -> Scope:
    """The inputs in the order written."""
    declared = {name.lower(): stream for name, stream in streams.items()}
    tables = [select.args["from_"].this]
    for join in select.args.get("joins") or []:
        check_join(source, join)
        tables.append(join.this)
    inputs = tuple(_input(source, check_table(source, table), declared) for table in tables)
    _check_aliases(source, inputs)
    return Scope(source, inputs)


def _input(source: Text, table: exp.Table, declared: Mapping[str, Stream]) -> Input:
    name = ".".join(part.name for part in table.parts)
    stream = declared.get(name.lower())
    if stream is None:
        known = ", ".join(stream.name for stream in declared.values()) or "none"
        raise source.error(f"no stream is called {name}: there is {known}", table)
    return Input(table.alias or stream.name, stream, table)


def _check_aliases(source: Text, inputs: Iterable[Input]) -> None:
    seen: set[str] = set()
    for one in inputs:
        at = one.node.args.get("alias") or one.node
        if one.alias.lower() in seen:
            message = f"two streams are called {one.alias}: give one of them another alias"
            raise source.error(message, at)
        if not NAME.fullmatch(one.alias) or one.alias.lower() == "window":
            raise source.error(f"a stream cannot be called {one.alias}: choose another alias", at)
        seen.add(one.alias.lower())


def _written(column: exp.Column) -> str:
    return ".".join(part.name for part in column.parts)
