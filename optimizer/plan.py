"""Plans: immutable trees of operators that compute a query, any mix of binary and multi-way joins.

An invalid plan cannot be built, and equal subtrees are equal.  The short notation `((f b) c)` and
the tree it stands for (`Leaf`, `Branch`) say how the inputs are joined; `build` fills in the rest.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from optimizer.query import (
    RESULT,
    Aggregate,
    ColumnRef,
    Grouping,
    Named,
    Predicate,
    Query,
    Stream,
)
from optimizer.window import Bounds

Order = tuple[int, ...]
"""The positions of the other inputs, as a new tuple of one input probes them."""


PLACES = ("spark", "db")
"""Where an operator may be placed: in the job's engine, as without a place, or in the database."""

DEEPEST = 100
"""How many joins may stand inside each other."""


class PlanError(ValueError):
    """A plan that does not compute its query, and why."""


# --- operators -----------------------------------------------------------------------------------


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


# --- the tree of names ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Leaf:
    """An input; `combined` if equal tuples of it are combined before they are joined."""

    alias: str
    combined: bool = False

    def __str__(self) -> str:
        return f"[{self.alias}]" if self.combined else self.alias


@dataclass(frozen=True)
class Branch:
    """A join of what its parts compute; without orders, each input probes the others as written."""

    parts: "tuple[Tree, ...]"
    orders: tuple[Order, ...] = ()
    place: str = ""

    def __post_init__(self) -> None:
        if not self.orders:
            n = len(self.parts)
            orders = tuple(tuple(o for o in range(n) if o != i) for i in range(n))
            object.__setattr__(self, "orders", orders)

    def __str__(self) -> str:
        place = f"@{self.place}" if self.place else ""
        return f"({' '.join(map(str, self.parts))}){place}"


Tree = Leaf | Branch

_TOKEN = re.compile(r"\s*(\(|\)(?:@\w+)?|\[\w+\]|\w+)")


def parse(text: str) -> Tree:
    """The tree that a notation such as `((f b) c d)` stands for."""
    open_parts: list[list[Tree]] = [[]]
    position, end = 0, len(text.rstrip())
    while position < end:
        token = _TOKEN.match(text, position)
        if token is None:
            at = len(text) - len(text[position:].lstrip())
            raise PlanError(f"unexpected {text[at]!r} at {at + 1} in {_short(text)}")
        position = token.end()
        _take(token[1], open_parts, text)
    if len(open_parts) != 1:
        raise PlanError(f"a parenthesis is not closed in {_short(text)}")
    if len(open_parts[0]) != 1:
        raise PlanError(f"{_short(text)} is not one plan: put parentheses around it")
    return open_parts[0][0]


def _take(symbol: str, open_parts: list[list[Tree]], text: str) -> None:
    if symbol == "(":
        if len(open_parts) > DEEPEST:
            raise PlanError(f"more than {DEEPEST} parentheses inside each other in {_short(text)}")
        open_parts.append([])
    elif symbol.startswith(")"):
        if len(open_parts) == 1:
            raise PlanError(f"a parenthesis too many in {_short(text)}")
        parts = open_parts.pop()
        if len(parts) < 2:
            raise PlanError(f"a join needs two inputs in {_short(text)}")
        open_parts[-1].append(Branch(tuple(parts), place=_place(symbol[2:])))
    else:
        open_parts[-1].append(Leaf(symbol.strip("[]"), combined=symbol.startswith("[")))


def _place(name: str) -> str:
    """Where an operator is carried out; without a name, by the job's engine."""
    if name and name not in PLACES:
        raise PlanError(f"there is no place {_short(name)}; allowed: {', '.join(PLACES)}")
    return name


def _short(text: str) -> str:
    return repr(text if len(text) <= 200 else f"{text[:197]}...")


def leaves(tree: Tree) -> Iterator[Leaf]:
    """The inputs, from left to right."""
    if isinstance(tree, Leaf):
        yield tree
    else:
        for part in tree.parts:
            yield from leaves(part)


# --- plans ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """A query and the operators that compute it, every predicate applied exactly once."""

    query: Query
    root: Node

    def __post_init__(self) -> None:
        sources = sorted(node.alias for node in walk(self.root) if isinstance(node, Source))
        if sources != sorted(self.query.aliases):
            raise PlanError(
                f"the plan reads {_list(sources)}, the query {_list(self.query.aliases)}"
            )
        applied = [str(predicate) for node in walk(self.root) for predicate in applied_by(node)]
        if sorted(applied) != sorted(map(str, self.query.predicates)):
            raise PlanError("the plan does not apply each predicate of the query once")
        self._check_result()
        for node in walk(self.root):
            self._check_node(node)

    def _check_result(self) -> None:
        """The query's group-by, if it has one, and its columns on top of everything else."""
        match self.root:
            case Emit(GroupBy(_, grouping), output):
                made: tuple[Grouping | None, tuple[Named, ...]] = grouping, output
            case Emit(_, output):
                made = None, output
            case _:
                raise PlanError("a plan must end in what it emits")
        if made != (self.query.grouping, self.query.output):
            raise PlanError("the plan does not emit the query's result")
        if sum(isinstance(node, GroupBy | Emit) for node in walk(self.root)) > 2 - (not made[0]):
            raise PlanError("a group-by or a result cannot be joined again")

    def _check_node(self, node: Node) -> None:
        """Whether an operator knows the query's streams, windows and event times as they are."""
        match node:
            case Source(alias, stream) if stream != self.query.streams[alias]:
                raise PlanError(f"{alias} is {self.query.streams[alias].name}, not {stream.name}")
            case Combine() if node != combine(self.query, node.input):
                raise PlanError(f"{node.alias} is not combined as the query needs it")
            case Join(bounds=bounds):
                if not bounds.agree(self.query.bounds):
                    raise PlanError("a join's windows are not the query's")
                times = {self.query.event_times[alias] for alias in node.aliases}
                if missing := times - set(node.columns):
                    raise PlanError(f"a join needs the event time {min(missing)}")

    @cached_property
    def tree(self) -> Tree:
        """How its inputs are joined."""
        return tree_of(self.root)

    def __str__(self) -> str:
        return str(self.tree)


def applied_by(node: Node) -> tuple[Predicate, ...]:
    """The predicates that this operator itself applies."""
    if isinstance(node, Select):
        return (node.predicate,)
    return node.predicates if isinstance(node, Join) else ()


def tree_of(node: Node) -> Tree:
    """The tree of names that an operator's joins form."""
    match node:
        case Source(alias):
            return Leaf(alias)
        case Combine(below):
            return replace(_leaf(tree_of(below)), combined=True)
        case Join(parts, orders=orders, place=place):
            return Branch(tuple(map(tree_of, parts)), orders, place)
        case Unary(below):
            return tree_of(below)
    raise PlanError(f"unknown operator {type(node).__name__}")


def _leaf(tree: Tree) -> Leaf:
    if not isinstance(tree, Leaf):
        raise PlanError("only a stream's own tuples can be combined")
    return tree


def as_written(query: Query) -> Tree:
    """The left-deep tree in the order of the query's text."""
    first, *others = map(Leaf, query.aliases)
    tree: Tree = first
    for leaf in others:
        tree = Branch((tree, leaf))
    return tree


def build(query: Query, tree: Tree) -> Plan:
    """The plan of that tree: selects at the sources, columns dropped once nobody reads them."""
    root = _joined(query, tree)
    if missing := [alias for alias in query.aliases if alias not in root.aliases]:
        raise PlanError(f"{tree} leaves out {_list(missing)}")
    if query.grouping is not None:
        root = GroupBy(root, query.grouping)
    return Plan(query, Emit(root, query.output))


def _joined(query: Query, tree: Tree) -> Node:
    if isinstance(tree, Leaf):
        return input_of(query, tree)
    parts = tuple(_joined(query, part) for part in tree.parts)
    return join_of(query, parts, tree.orders, tree.place)


def join_of(
    query: Query, parts: tuple[Node, ...], orders: tuple[Order, ...] = (), place: str = ""
) -> Node:
    """What a join of these computes, by all predicates between them."""
    tree = Branch(tuple(map(tree_of, parts)), orders, place)
    aliases = [alias for alias in query.aliases if any(alias in part.aliases for part in parts)]
    inside = {alias: position for position, part in enumerate(parts) for alias in part.aliases}
    if len(inside) != sum(len(part.aliases) for part in parts):
        raise PlanError(f"a stream appears twice in {tree}")
    predicates = tuple(
        predicate
        for predicate in query.predicates
        if predicate.aliases <= inside.keys() and len({inside[a] for a in predicate.aliases}) == 2
    )
    bounds = query.bounds.restrict(aliases)
    return _pruned(query, Join(parts, predicates, bounds, tree.orders, place))


def input_of(query: Query, leaf: Leaf) -> Node:
    """What a stream feeds into the joins: selected, projected, perhaps combined."""
    if leaf.alias not in query.streams:
        raise PlanError(f"the query has no stream {leaf.alias}; it has {_list(query.aliases)}")
    node: Node = Source(leaf.alias, query.streams[leaf.alias])
    for predicate in query.selects(leaf.alias):
        node = Select(node, predicate)
    node = _pruned(query, node)
    return combine(query, node) if leaf.combined else node


def _pruned(query: Query, node: Node) -> Node:
    kept = still_needed(query, node.aliases, node.columns)
    return node if kept == node.columns else Project(node, kept)


def still_needed(
    query: Query, aliases: frozenset[str], columns: Iterable[ColumnRef]
) -> tuple[ColumnRef, ...]:
    """The columns of what these inputs compute that anything above still reads."""
    needed = query.needed(aliases)
    return tuple(sorted(c for c in columns if c in needed or c.name.startswith("#")))


def combine(query: Query, node: Node) -> Combine:
    """The group-by pushed down to that input."""
    if query.grouping is None:
        raise PlanError("only a query with a group-by can combine its inputs")
    joined = {c for p in query.predicates if len(p.aliases) == 2 for c in p.expression.columns}
    return Combine(node, query.grouping, frozenset(joined | set(query.event_times.values())))


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"


# --- JSON ----------------------------------------------------------------------------------------

T = TypeVar("T")


def to_json(node: Node) -> dict[str, Any]:
    """The operator as plain data; predicates and outputs are named by their text."""
    inputs = [to_json(below) for below in node.inputs]
    match node:
        case Source(alias, stream):
            return {"op": "source", "alias": alias, "stream": stream.name}
        case Select(_, predicate):
            return {"op": "select", "predicate": str(predicate), "inputs": inputs}
        case Project(_, kept):
            return {"op": "project", "columns": [str(column) for column in kept], "inputs": inputs}
        case Combine():
            keys = [str(column) for column in node.keys]
            return {"op": "combine", "keys": keys, "inputs": inputs}
        case Join(_, predicates, _, orders, place):
            return {
                "op": "join",
                "predicates": [str(predicate) for predicate in predicates],
                "orders": [list(order) for order in orders],
                "place": place,
                "inputs": inputs,
            }
        case GroupBy(_, grouping, place):
            keys = [str(key) for key in grouping.keys]
            aggregates = [str(aggregate) for aggregate in grouping.aggregates]
            return {"op": "group-by", "keys": keys, "aggregates": aggregates, "place": place,
                    "size": grouping.size, "slide": grouping.slide, "inputs": inputs}  # fmt: skip
        case Emit(_, output):
            return {"op": "emit", "columns": [str(named) for named in output], "inputs": inputs}
    raise PlanError(f"unknown operator {type(node).__name__}")


def from_json(query: Query, data: Mapping[str, Any]) -> Plan:
    """The plan of that query which `to_json` or `explain` wrote, and a person may have edited."""
    return Plan(query, _node(query, data.get("root", data)))


def _node(query: Query, data: Any) -> Node:
    op = _field(data, "op", str)
    inputs = tuple(_node(query, below) for below in _field(data, "inputs", list, []))
    match op, inputs:
        case "source", ():
            return _source(query, data)
        case "select", (below,):
            return Select(below, _predicate(query, _field(data, "predicate", str)))
        case "project", (below,):
            names = {str(column): column for column in below.columns}
            columns = _field(data, "columns", list)
            return Project(below, tuple(_known(names, name, "column") for name in columns))
        case "combine", (below,):
            return combine(query, below)
        case "join", (_, _, *_):
            return _join(query, data, inputs)
        case "group-by", (below,) if query.grouping is not None:
            return GroupBy(below, query.grouping, _place_of(data))
        case "emit", (below,):
            return Emit(below, query.output)
    raise PlanError(f"not a plan of this query: {op!r} over {len(inputs)} inputs")


def _source(query: Query, data: Mapping[str, Any]) -> Source:
    alias = _field(data, "alias", str)
    stream = _known(query.streams, alias, "stream")
    if (name := _field(data, "stream", str, stream.name)) != stream.name:
        raise PlanError(f"{alias} is {stream.name}, not {name}")
    return Source(alias, stream)


def _join(query: Query, data: Mapping[str, Any], parts: tuple[Node, ...]) -> Join:
    predicates = tuple(_predicate(query, text) for text in _field(data, "predicates", list))
    orders = _field(data, "orders", list)
    if not all(isinstance(o, list) and all(type(i) is int for i in o) for o in orders):
        raise PlanError(f"the orders of a join must be lists of positions, not {orders}")
    inside = [alias for alias in query.aliases if any(alias in part.aliases for part in parts)]
    bounds = query.bounds.restrict(inside)
    place = _place_of(data)
    return Join(parts, predicates, bounds, tuple(map(tuple, orders)), place)


def _place_of(data: Mapping[str, Any]) -> str:
    """Where it is carried out; `explain` writes what it is without a place, too."""
    place = _place(_field(data, "place", str, ""))
    return "" if place == PLACES[0] else place


def _predicate(query: Query, text: Any) -> Predicate:
    return _known({str(predicate): predicate for predicate in query.predicates}, text, "predicate")


def _known(names: Mapping[str, T], name: Any, kind: str) -> T:
    if not isinstance(name, str) or name not in names:
        raise PlanError(f"the plan speaks of {kind} {name}, which is not there")
    return names[name]


def _field(data: Any, name: str, kind: type[T], default: T | None = None) -> T:
    """A field of an operator, of the kind that it must be."""
    if not isinstance(data, Mapping):
        raise PlanError(f"an operator must be an object with its `op`, not {data!r}")
    value = data.get(name, default)
    if not isinstance(value, kind):
        raise PlanError(f"{data.get('op', 'an operator')} needs {name} as a {kind.__name__}")
    return value
