"""Random plans of a query: any tree, any probe orders, selects at the source or further up."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from optimizer.plan import (
    Branch,
    Combine,
    Emit,
    GroupBy,
    Join,
    Leaf,
    Node,
    Plan,
    Project,
    Select,
    Source,
    Tree,
    applied_by,
    build,
    combine,
    still_needed,
    walk,
)
from optimizer.query import ColumnRef, Predicate, Query

Waiting = tuple[Predicate, ...]
"""Selects that no operator has applied yet."""


@dataclass(frozen=True)
class Habits:
    """How often something is done in a plan."""

    prune: float = 0.8
    """Columns that nobody needs are dropped after an operator."""
    wait: tuple[float, float] = (0.3, 0.5)
    """A select is not applied at its source, nor above a join."""


def plan(r: Random, query: Query) -> Plan:
    """Any plan of it."""
    return _grown(r, query, _tree(r, query, list(query.aliases)), Habits())


def _grown(r: Random, query: Query, tree: Tree, habits: Habits) -> Plan:
    node, waiting = _grow(r, query, tree, habits)
    node = _pruned(query, _selected(node, waiting), ())
    if query.grouping is not None:
        node = GroupBy(node, query.grouping)
    return Plan(query, Emit(node, query.output))


def tidy(r: Random, query: Query) -> Plan:
    """One whose inputs are mostly what any tidy plan makes of them: only the joins differ."""
    return build(query, _tree(r, query, list(query.aliases), combining=0.1))


def rigid(r: Random, query: Query, *, turned: bool, late: bool) -> Plan:
    """One that keeps every column: of queries alike, the states differ by their selects alone."""
    return _grown(r, query, _deep(query, turned=turned), Habits(0, (1, 1) if late else (0, 0)))


def frugal(r: Random, query: Query, *, turned: bool) -> Plan:
    """One that selects at once, and drops every column as soon as nobody reads it any more."""
    return _grown(r, query, _deep(query, turned=turned), Habits(1, (0, 0)))


def inverted(r: Random, query: Query) -> Plan:
    """One whose states are those of the rigid plan from the third input on, and not before."""
    first, second, third, *others = map(Leaf, query.aliases)
    tree: Tree = Branch((first, Branch((second, third))))
    for leaf in others:
        tree = Branch((tree, leaf))
    return _grown(r, query, tree, Habits(0, (0, 0)))


def _deep(query: Query, *, turned: bool) -> Tree:
    """One input after another."""
    first, *others = map(Leaf, query.aliases[::-1] if turned else query.aliases)
    tree: Tree = first
    for leaf in others:
        tree = Branch((tree, leaf))
    return tree


def _tree(r: Random, query: Query, aliases: list[str], combining: float = 0.4) -> Tree:
    if len(aliases) == 1:
        return Leaf(aliases[0], combined=query.grouping is not None and r.random() < combining)
    mixed = r.sample(aliases, len(aliases))
    cuts = sorted(r.sample(range(1, len(mixed)), r.randrange(1, len(mixed))))
    groups = [mixed[i:j] for i, j in zip([0, *cuts], [*cuts, len(mixed)], strict=True)]
    count = len(groups)
    orders = (r.sample([o for o in range(count) if o != i], count - 1) for i in range(count))
    parts = tuple(_tree(r, query, group, combining) for group in groups)
    return Branch(parts, tuple(map(tuple, orders)))


def _grow(r: Random, query: Query, tree: Tree, habits: Habits) -> tuple[Node, Waiting]:
    if isinstance(tree, Leaf):
        return _leaf(r, query, tree, habits)
    return _branch(r, query, tree, habits)


def _leaf(r: Random, query: Query, leaf: Leaf, habits: Habits) -> tuple[Node, Waiting]:
    selects = query.selects(leaf.alias)
    waiting = () if leaf.combined else tuple(p for p in selects if r.random() < habits.wait[0])
    source = Source(leaf.alias, query.streams[leaf.alias])
    node = _selected(source, tuple(p for p in selects if p not in waiting))
    if leaf.combined:
        return combine(query, _pruned(query, node, ())), ()
    return _pruned(query, node, waiting) if r.random() < habits.prune else node, waiting


def _branch(r: Random, query: Query, branch: Branch, habits: Habits) -> tuple[Node, Waiting]:
    grown = [_grow(r, query, part, habits) for part in branch.parts]
    parts = tuple(node for node, _ in grown)
    below = tuple(predicate for _, waiting in grown for predicate in waiting)
    inside = {alias: i for i, part in enumerate(parts) for alias in part.aliases}
    predicates = tuple(
        p
        for p in query.predicates
        if p.aliases <= inside.keys() and len({inside[alias] for alias in p.aliases}) == 2
    )
    aliases = [alias for alias in query.aliases if alias in inside]
    join = Join(parts, predicates, query.bounds.restrict(aliases), branch.orders)
    waiting = tuple(p for p in below if r.random() < habits.wait[1])
    node = _selected(join, tuple(p for p in below if p not in waiting))
    return _pruned(query, node, waiting) if r.random() < habits.prune else node, waiting


def _selected(node: Node, predicates: Waiting) -> Node:
    for predicate in predicates:
        node = Select(node, predicate)
    return node


def _pruned(query: Query, node: Node, waiting: Waiting) -> Node:
    """Only the columns that the operators above, or the selects still waiting, read."""
    read = {column for predicate in waiting for column in predicate.expression.columns}
    needed = still_needed(query, node.aliases, node.columns)
    kept = tuple(sorted({*needed, *(read & set(node.columns))}))
    return node if kept == node.columns else Project(node, kept)


def mirrored(node: Node, query: Query, names: Mapping[str, str]) -> Node:
    """The same operators for a query that is alike under other names."""
    below = [mirrored(part, query, names) for part in node.inputs]
    match node:
        case Source(alias):
            return Source(names[alias], query.streams[names[alias]])
        case Select(_, predicate):
            renamed = predicate.rename(names)
            return Select(below[0], renamed) if renamed in query.predicates else below[0]
        case Project(_, kept):
            return Project(below[0], tuple(sorted(ColumnRef(names[c.alias], c.name) for c in kept)))
        case Combine():
            return combine(query, below[0])
        case Join(_, predicates, _, orders):
            inside = {alias for part in below for alias in part.aliases}
            bounds = query.bounds.restrict([a for a in query.aliases if a in inside])
            return Join(tuple(below), tuple(p.rename(names) for p in predicates), bounds, orders)
        case GroupBy():
            return below[0]
    top = below[0]
    applied = {predicate for part in walk(top) for predicate in applied_by(part)}
    for predicate in query.predicates:
        if predicate not in applied:
            top = Select(top, predicate)
    return Emit(GroupBy(top, query.grouping) if query.grouping else top, query.output)
