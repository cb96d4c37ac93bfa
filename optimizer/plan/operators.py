"""Operators of plans: immutable, and equal where they compute the same from the same."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from optimizer.plan.notation import Order, PlanError
from optimizer.query import (
    RESULT,
    Aggregate,
    ColumnRef,
    Grouping,
    Named,
    Predicate,
    Stream,
)
from optimizer.window import Bounds


class Node:
    """An operator; `inputs` are the operators that feed it."""

    @property
    def inputs(self) -> "tuple[Node, ...]":
        raise NotImplementedError

    @property
    def columns(self) -> tuple[ColumnRef, ...]:
        """What its rows hold, in canonical order."""
        raise NotImplementedError

    @cached_property
    def aliases(self) -> frozenset[str]:
        """The query's inputs below it."""
        return frozenset[str]().union(*(node.aliases for node in self.inputs))


@dataclass(frozen=True)
class Source(Node):
    """A stream, under the query's name for it."""

    alias: str
    stream: Stream

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @cached_property
    def columns(self) -> tuple[ColumnRef, ...]:
        return tuple(sorted(ColumnRef(self.alias, column.name) for column in self.stream.columns))

    @cached_property
    def aliases(self) -> frozenset[str]:
        return frozenset({self.alias})


@dataclass(frozen=True)
class Unary(Node):
    """An operator with one input."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def columns(self) -> tuple[ColumnRef, ...]:
        return self.input.columns

    def _reads(self, columns: Iterable[ColumnRef]) -> None:
        if missing := set(columns) - set(self.input.columns):
            raise PlanError(
                f"{type(self).__name__.lower()} reads {min(missing)}, which is not there"
            )


@dataclass(frozen=True)
class Select(Unary):
    """Keeps the rows that satisfy a predicate."""

    predicate: Predicate

    def __post_init__(self) -> None:
        if len(self.predicate.aliases) != 1:
            raise PlanError(f"a select is on one stream, not {self.predicate}")
        self._reads(self.predicate.expression.columns)


@dataclass(frozen=True)
class Project(Unary):
    """Keeps some of the columns."""

    kept: tuple[ColumnRef, ...]

    def __post_init__(self) -> None:
        self._reads(self.kept)
        if len(set(self.kept)) != len(self.kept):
            raise PlanError("project keeps a column twice")
        for column in set(self.input.columns) - set(self.kept):
            if column.name.startswith("#"):
                raise PlanError(f"project drops {column}, which the group-by above reads")

    @property
    def columns(self) -> tuple[ColumnRef, ...]:
        return tuple(sorted(self.kept))


WEIGHT = "#weight"
"""The column of a combined input that says how many tuples a row stands for."""


@dataclass(frozen=True)
class Combine(Unary):
    """The group-by pushed below the joins (Zhu 14): equal rows of a batch become one with a weight.

    Rows are equal if they agree on whatever the joins and the windows above still read, event time
    included; what is only aggregated is carried as partial aggregates.
    """

    grouping: Grouping
    pinned: frozenset[ColumnRef]
    """Columns that joins and windows read, so that they stay as they are."""

    def __post_init__(self) -> None:
        if len(self.aliases) != 1 or any(isinstance(node, Combine) for node in walk(self.input)):
            raise PlanError("only a stream's own tuples can be combined, and only once")

    @property
    def alias(self) -> str:
        """The input that is combined."""
        (alias,) = self.aliases
        return alias

    @cached_property
    def partials(self) -> tuple[Aggregate, ...]:
        """The aggregates that this input alone decides."""
        return tuple(
            aggregate
            for aggregate in self.grouping.aggregates
            if aggregate.expressions
            and all(e.aliases == self.aliases for e in aggregate.expressions)
        )

    @cached_property
    def keys(self) -> tuple[ColumnRef, ...]:
        """What rows must agree on."""
        others = [key.expression for key in self.grouping.keys]
        others += [
            expression
            for aggregate in self.grouping.aggregates
            if aggregate not in self.partials
            for expression in aggregate.expressions
        ]
        read_above = {column for expression in others for column in expression.columns}
        aggregated = {c for a in self.partials for e in a.expressions for c in e.columns}
        pinned = read_above | self.pinned
        return tuple(c for c in self.input.columns if c in pinned or c not in aggregated)

    @property
    def columns(self) -> tuple[ColumnRef, ...]:
        partials = (f"#{column}" for a in self.partials for column in a.parts.values())
        made = (ColumnRef(self.alias, name) for name in (WEIGHT, *partials))
        return tuple(sorted((*self.keys, *made)))


@dataclass(frozen=True)
class Join(Node):
    """An n-ary windowed join; `orders[i]` is how new tuples of input i probe the others."""

    parts: tuple[Node, ...]
    predicates: tuple[Predicate, ...]
    bounds: Bounds
    orders: tuple[Order, ...]
    place: str = ""

    def __post_init__(self) -> None:
        if len(self.parts) < 2:
            raise PlanError("a join needs two inputs")
        if sum(len(part.aliases) for part in self.parts) != len(self.aliases):
            raise PlanError("a stream appears on two sides of a join")
        if set(self.bounds.names) != self.aliases:
            raise PlanError("a join's bounds are not about its streams")
        self._check_orders()
        self._check_predicates()

    def _check_orders(self) -> None:
        if len(self.orders) != len(self.parts):
            raise PlanError("a join needs a probe order for each input")
        for position, order in enumerate(self.orders):
            others = [other for other in range(len(self.parts)) if other != position]
            if sorted(order) != others:
                raise PlanError(f"input {position} must probe each of {others} once, not {order}")

    def _check_predicates(self) -> None:
        for predicate in self.predicates:
            if missing := set(predicate.expression.columns) - set(self.columns):
                raise PlanError(f"join reads {min(missing)}, which is not there")
            if sum(bool(predicate.aliases & part.aliases) for part in self.parts) != 2:
                raise PlanError(f"{predicate} does not connect two inputs of the join")

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts

    @cached_property
    def columns(self) -> tuple[ColumnRef, ...]:
        return tuple(sorted(column for part in self.parts for column in part.columns))


@dataclass(frozen=True)
class GroupBy(Unary):
    """Windowed aggregates, emitted for a window once the watermark has passed its end."""

    grouping: Grouping
    place: str = ""

    def __post_init__(self) -> None:
        combined = {a for n in walk(self.input) if isinstance(n, Combine) for a in n.partials}
        expressions = [key.expression for key in self.grouping.keys]
        expressions += [
            e for a in self.grouping.aggregates if a not in combined for e in a.expressions
        ]
        read = {column for e in expressions for column in e.columns if column.alias != RESULT}
        self._reads(read | {self.grouping.time})

    @property
    def columns(self) -> tuple[ColumnRef, ...]:
        return tuple(sorted(ColumnRef(RESULT, name) for name in self.grouping.names))


@dataclass(frozen=True)
class Emit(Unary):
    """The query's result columns."""

    output: tuple[Named, ...]

    def __post_init__(self) -> None:
        self._reads(column for named in self.output for column in named.expression.columns)

    @property
    def columns(self) -> tuple[ColumnRef, ...]:
        return tuple(ColumnRef(RESULT, named.name) for named in self.output)


def walk(node: Node) -> Iterator[Node]:
    """Every operator below, inputs first, the node itself last."""
    for below in node.inputs:
        yield from walk(below)
    yield node
