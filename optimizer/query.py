"""Continuous select-project-join(-group-by) queries over windowed streams, as immutable values.

A query that exists is valid: every column is known, every pair of streams is bounded.
Expressions are kept as canonical SQL text with a hole for each column, so that they can be renamed,
compared and rendered without a parser.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from optimizer.window import Bounds

HOLE = "\0"
"""Stands for a column in an expression's template."""

RESULT = ""
"""The alias of what a group-by computes: its keys, its aggregates, its window's start and end."""

WINDOW_START = "window.start"
WINDOW_END = "window.end"
"""No user can write a dot into a name, nor `@`: our own columns never meet one of theirs."""


class QueryError(ValueError):
    """A query that cannot be built, and why."""


@dataclass(frozen=True, order=True)
class Column:
    """A column of a stream, with its SQL type."""

    name: str
    type: str


@dataclass(frozen=True)
class Stream:
    """An unbounded source with a schema and an event-time column."""

    name: str
    columns: tuple[Column, ...]
    event_time: str

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if repeated := _repeated(names):
            raise QueryError(f"stream {self.name} has two columns named {repeated}")
        if self.event_time not in names:
            raise QueryError(
                f"stream {self.name} has no column {self.event_time} to tell event time"
            )

    def column(self, name: str) -> Column | None:
        """The column of that name."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, order=True)
class ColumnRef:
    """A column of one of the query's inputs."""

    alias: str
    name: str

    def __str__(self) -> str:
        return f"{self.alias}.{self.name}" if self.alias else self.name


@dataclass(frozen=True)
class Expression:
    """SQL text with a hole for each column it reads, in the order of `columns`."""

    template: str
    columns: tuple[ColumnRef, ...]

    def __post_init__(self) -> None:
        if self.template.count(HOLE) != len(self.columns):
            raise QueryError(f"an expression of {len(self.columns)} columns has other holes")

    @classmethod
    def of(cls, column: ColumnRef) -> "Expression":
        """The expression that is just that column."""
        return cls(HOLE, (column,))

    def sql(self, render: Callable[[ColumnRef], str] = str) -> str:
        """The text, each column as `render` writes it."""
        first, *rest = self.template.split(HOLE)
        filled = (render(c) + text for c, text in zip(self.columns, rest, strict=True))
        return first + "".join(filled)

    def rename(self, aliases: Mapping[str, str]) -> "Expression":
        """The same over other aliases."""
        renamed = tuple(ColumnRef(aliases.get(c.alias, c.alias), c.name) for c in self.columns)
        return Expression(self.template, renamed)

    @cached_property
    def aliases(self) -> frozenset[str]:
        """The inputs it reads."""
        return frozenset(column.alias for column in self.columns)

    def __str__(self) -> str:
        return self.sql()


@dataclass(frozen=True)
class Predicate:
    """A condition on one input (a select) or between two (a join).

    `sides` are the two expressions of an equality between two inputs, so that joins can hash.
    """

    expression: Expression
    sides: tuple[Expression, Expression] | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.aliases) <= 2:
            raise QueryError(f"a predicate must read one or two streams: {self.expression}")
        if self.sides is not None:
            left, right = self.sides
            if len(left.aliases) != 1 or len(right.aliases) != 1 or left.aliases == right.aliases:
                raise QueryError(f"not an equality between two streams: {self.expression}")

    @classmethod
    def equality(cls, left: Expression, right: Expression) -> "Predicate":
        """`left = right`, the smaller side first."""
        first, second = sorted((left, right), key=str)
        template = f"{first.template} = {second.template}"
        return cls(Expression(template, first.columns + second.columns), (first, second))

    @property
    def aliases(self) -> frozenset[str]:
        """The inputs it reads."""
        return self.expression.aliases

    def side(self, alias: str) -> Expression:
        """What an equality compares of an input."""
        assert self.sides is not None
        left, right = self.sides
        return left if left.aliases == {alias} else right

    def rename(self, aliases: Mapping[str, str]) -> "Predicate":
        """The same over other aliases, in canonical form again."""
        if self.sides is not None:
            return Predicate.equality(self.sides[0].rename(aliases), self.sides[1].rename(aliases))
        return Predicate(self.expression.rename(aliases))

    def __str__(self) -> str:
        return str(self.expression)


@dataclass(frozen=True)
class Named:
    """An expression and the name of the column that it makes."""

    name: str
    expression: Expression

    def __str__(self) -> str:
        return f"{self.expression} AS {self.name}"


AGGREGATES = {
    "count": ("count",),
    "sum": ("sum",),
    "min": ("min",),
    "max": ("max",),
    "avg": ("sum", "count"),
}
"""Each aggregate function, with the distributive ones from which it is put together."""


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of a group-by; no argument means `count(*)`, `condition` is its FILTER."""

    name: str
    function: str
    argument: Expression | None = None
    condition: Expression | None = None

    def __post_init__(self) -> None:
        if self.function not in AGGREGATES:
            raise QueryError(f"{self.function} is not one of {', '.join(AGGREGATES)}")
        if self.argument is None and self.function != "count":
            raise QueryError(f"{self.function} needs an argument")

    @property
    def parts(self) -> dict[str, str]:
        """The partial aggregates that make it up: the function of each, and its column."""
        return {function: f"{self.name}@{function}" for function in AGGREGATES[self.function]}

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What it reads."""
        return tuple(e for e in (self.argument, self.condition) if e is not None)

    def __str__(self) -> str:
        condition = f" FILTER (WHERE {self.condition})" if self.condition else ""
        return f"{self.function}({self.argument or '*'}){condition} AS {self.name}"


@dataclass(frozen=True)
class Grouping:
    """GROUP BY keys and window(time, size, slide), in microseconds; windows start at the epoch."""

    keys: tuple[Named, ...]
    aggregates: tuple[Aggregate, ...]
    time: ColumnRef
    size: int
    slide: int

    def __post_init__(self) -> None:
        if repeated := _repeated(self.names):
            raise QueryError(f"two columns of the group-by are named {repeated}")
        if not 0 < self.slide <= self.size:
            raise QueryError("a window's slide must be positive and at most its size")

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it makes."""
        keys = (key.name for key in self.keys)
        aggregates = (aggregate.name for aggregate in self.aggregates)
        return (*keys, *aggregates, WINDOW_START, WINDOW_END)

    @cached_property
    def columns(self) -> frozenset[ColumnRef]:
        """The columns of the inputs that it reads."""
        read = [named.expression for named in self.keys]
        read += [e for aggregate in self.aggregates for e in aggregate.expressions]
        inputs = {column for e in read for column in e.columns if column.alias != RESULT}
        return frozenset(inputs | {self.time})


@dataclass(frozen=True)
class Query:
    """A continuous query: `inputs` maps each alias, in the order written, to its stream."""

    inputs: tuple[tuple[str, Stream], ...]
    predicates: tuple[Predicate, ...]
    bounds: Bounds
    output: tuple[Named, ...]
    grouping: Grouping | None = None

    def __post_init__(self) -> None:
        if not self.inputs or not self.output:
            raise QueryError("a query needs at least one stream and one output column")
        if repeated := _repeated(self.aliases):
            raise QueryError(f"two streams are called {repeated}")
        if repeated := _repeated([named.name for named in self.output]):
            raise QueryError(f"two output columns are named {repeated}")
        if set(self.bounds.names) != set(self.aliases):
            raise QueryError("the bounds are not about the query's streams")
        self._check_columns()

    def _check_columns(self) -> None:
        known = {ColumnRef(a, column.name) for a, s in self.inputs for column in s.columns}
        read = {column for p in self.predicates for column in p.expression.columns}
        results = {column for named in self.output for column in named.expression.columns}
        if self.grouping is None:
            read |= results
        else:
            read |= self.grouping.columns
            made = {ColumnRef(RESULT, name) for name in self.grouping.names}
            if unknown := results - made:
                raise QueryError(f"{min(unknown)} is neither grouped by nor aggregated")
            if self.grouping.time not in self.event_times.values():
                raise QueryError(f"window() must be over an event time, not {self.grouping.time}")
        if unknown := read - known:
            raise QueryError(f"no column {min(unknown)}")

    @property
    def aliases(self) -> tuple[str, ...]:
        """The names of its inputs."""
        return tuple(alias for alias, _ in self.inputs)

    @cached_property
    def streams(self) -> dict[str, Stream]:
        """The stream behind each alias."""
        return dict(self.inputs)

    @cached_property
    def event_times(self) -> dict[str, ColumnRef]:
        """The event-time column of each input."""
        return {alias: ColumnRef(alias, stream.event_time) for alias, stream in self.inputs}

    def selects(self, alias: str) -> tuple[Predicate, ...]:
        """The predicates on that input alone."""
        return tuple(p for p in self.predicates if p.aliases == {alias})

    @cached_property
    def graph(self) -> "JoinGraph":
        """Which inputs have a predicate in common."""
        return JoinGraph.of(self)

    def between(self, left: Iterable[str], right: Iterable[str]) -> tuple[Predicate, ...]:
        """The join predicates that connect two disjoint sets of inputs."""
        one, other = frozenset(left), frozenset(right)
        return tuple(
            p for p in self.predicates if p.aliases & one and p.aliases & other
            if p.aliases <= one | other
        )  # fmt: skip

    def needed(self, aliases: frozenset[str]) -> frozenset[ColumnRef]:
        """The columns of those inputs that anything outside them reads, and their event times."""
        read: set[ColumnRef] = {self.event_times[alias] for alias in aliases}
        for predicate in self.predicates:
            if not predicate.aliases <= aliases:
                read |= set(predicate.expression.columns)
        if self.grouping is not None:
            read |= self.grouping.columns
        else:
            read |= {column for named in self.output for column in named.expression.columns}
        return frozenset(column for column in read if column.alias in aliases)


@dataclass(frozen=True)
class JoinGraph:
    """Inputs as vertices; an edge where predicates connect two of them (Zhu-Raghavan 2.1)."""

    vertices: tuple[str, ...]
    edges: Mapping[frozenset[str], tuple[Predicate, ...]]

    @classmethod
    def of(cls, query: Query) -> "JoinGraph":
        """The query's."""
        edges: dict[frozenset[str], tuple[Predicate, ...]] = {}
        for predicate in query.predicates:
            if len(predicate.aliases) == 2:
                edges[predicate.aliases] = (*edges.get(predicate.aliases, ()), predicate)
        return cls(query.aliases, edges)

    def neighbours(self, vertex: str) -> frozenset[str]:
        """The inputs that share a predicate with this one."""
        return frozenset(v for edge in self.edges if vertex in edge for v in edge if v != vertex)

    @cached_property
    def components(self) -> tuple[frozenset[str], ...]:
        """The connected parts; more than one means that something must be crossed."""
        parts: list[frozenset[str]] = [frozenset({vertex}) for vertex in self.vertices]
        for edge in self.edges:
            touched = [part for part in parts if part & edge]
            parts = [part for part in parts if not part & edge]
            parts.append(frozenset().union(*touched))
        return tuple(parts)

    @property
    def acyclic(self) -> bool:
        """No cycle of predicates."""
        return len(self.edges) == len(self.vertices) - len(self.components)

    @property
    def star(self) -> bool:
        """Every edge meets in one centre."""
        return bool(self.edges) and bool(frozenset.intersection(*self.edges))


def _repeated(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
