"""Plans put together operator by operator, and steps as people would tell them."""

from collections.abc import Sequence

from optimizer.identity import identity
from optimizer.migration.matching import States, name
from optimizer.migration.steps import (
    CutOver,
    Drop,
    Fill,
    Keep,
    Parallel,
    Prove,
    Step,
    Track,
    Wait,
)
from optimizer.plan import Emit, Join, Node, Plan, Project, Select, Source
from optimizer.query import Predicate, Query
from tests.optimizer.builders import ref


def leaf(query: Query, alias: str, *selects: Predicate, keep: str = "") -> Node:
    """A stream, selected, and of its columns those named."""
    node: Node = Source(alias, query.streams[alias])
    return above(node, *selects, keep=keep)


def above(node: Node, *selects: Predicate, keep: str = "") -> Node:
    for select in selects:
        node = Select(node, select)
    if keep:
        node = Project(node, tuple(sorted(ref(column) for column in keep.split())))
    return node


def join(query: Query, *parts: Node) -> Node:
    """A join of those, by all predicates between them."""
    inside = {alias: i for i, part in enumerate(parts) for alias in part.aliases}
    predicates = tuple(
        p
        for p in query.predicates
        if p.aliases <= inside.keys() and len({inside[a] for a in p.aliases}) == 2
    )
    count = len(parts)
    orders = tuple(tuple(o for o in range(count) if o != i) for i in range(count))
    bounds = query.bounds.restrict([alias for alias in query.aliases if alias in inside])
    return Join(parts, predicates, bounds, orders)


def plan(query: Query, top: Node) -> Plan:
    return Plan(query, Emit(top, query.output))


def key(node: Node) -> str:
    return identity(node).key


def told(steps: Sequence[Step], old: Plan, new: Plan) -> list[str]:
    """The steps, states by name."""
    names = {k: name(nodes[0]) for p in (old, new) for k, nodes in States.of(p).nodes.items()}
    return [_told(step, names) for step in steps]


def _told(step: Step, names: dict[str, str]) -> str:
    match step:
        case Keep(state):
            return f"keep {names[state]}"
        case Fill(state, how, sources, partial):
            some = "in part " if partial else ""
            return f"{how} {names[state]} {some}from {', '.join(names[s] for s in sources)}"
        case Track(states):
            return f"track {', '.join(names[s] for s in states)}"
        case Parallel(states):
            return f"both plans, new in {', '.join(names[s] for s in states) or 'nothing'}"
        case Wait():
            return "wait"
        case Prove(batches):
            return f"prove for {batches}"
        case CutOver():
            return "cut over"
        case Drop(state):
            return f"drop {names[state]}"
