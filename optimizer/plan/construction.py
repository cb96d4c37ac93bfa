"""Plans of queries: what their inputs are, who applies which predicate, which columns are kept.

An invalid plan cannot be built.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from optimizer.plan.notation import Branch, Leaf, Order, PlanError, Tree
from optimizer.plan.operators import (
    Combine,
    Emit,
    GroupBy,
    Join,
    Node,
    Project,
    Select,
    Source,
    Unary,
    walk,
)
from optimizer.query import (
    ColumnRef,
    Grouping,
    Named,
    Predicate,
    Query,
)


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
