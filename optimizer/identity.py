"""The canonical identity of a state: what it holds, never where it sits.

Two plans, two queries or two jobs that need the same content share one state.  Content is the
streams, the predicates and bounds applied, and the columns kept; the names that a query gives its
streams do not matter, so they are replaced by canonical ones.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import groupby, permutations, product
from typing import Any

from optimizer.plan import (
    Combine,
    Emit,
    GroupBy,
    Join,
    Node,
    Project,
    Select,
    Source,
    applied_by,
    walk,
)
from optimizer.query import Aggregate, ColumnRef, Expression, Query


@dataclass(frozen=True)
class Identity:
    """A state's key, the content it stands for, and the canonical name of each of its inputs."""

    key: str
    content: str
    names: Mapping[str, str]

    def column(self, column: ColumnRef) -> str:
        """What a column is called inside the state, whichever query asks."""
        return f"{self.names[column.alias]}.{column.name}" if column.alias else column.name


@lru_cache(maxsize=4096)
def identity(node: Node) -> Identity:
    """The identity of what that operator computes; lowering asks for the same one many times."""
    content, names = min(
        ((_content(node, names), names) for names in _namings(node)), key=lambda named: named[0]
    )
    return Identity(sha256(content.encode()).hexdigest()[:16], content, names)


def states(root: Node) -> dict[str, Node]:
    """Every state that a plan keeps, by key: the inputs of its joins, and its group-bys."""
    return {identity(node).key: node for node in stateful(root)}


def stateful(root: Node) -> Iterator[Node]:
    """The operators whose rows a plan keeps, each after what it is made of."""
    for node in walk(root):
        if isinstance(node, Join):
            yield from node.parts
        elif isinstance(node, GroupBy):
            yield node


def retention(query: Query, node: Node) -> int:
    """How long a row may still find partners: after its smallest time, or its window's end."""
    if isinstance(node, GroupBy):
        held, partners = {node.grouping.time.alias}, set(query.aliases)
    else:
        held, partners = set(node.aliases), set(query.aliases) - node.aliases
    return max(query.bounds.retention(alias, partners - {alias}) for alias in held)


_WORDS: Mapping[type[Node], str] = {
    Source: "source", Select: "select", Project: "project", Combine: "combine", Join: "join",
    GroupBy: "group-by", Emit: "emit",
}  # fmt: skip


def ids(root: Node) -> dict[Node, str]:
    """A name for each operator of a plan, such as `select:p` or `join:m+p`.

    It says what the operator does to which inputs of the query: a plan of another shape that has
    the same operator calls it the same.
    """
    found: dict[Node, str] = {}
    for node in walk(root):
        name = f"{_WORDS[type(node)]}:{'+'.join(sorted(node.aliases))}"
        alike = sum(known.partition("#")[0] == name for known in found.values())
        found[node] = f"{name}#{alike + 1}" if alike else name
    return found


def _namings(node: Node) -> Iterator[dict[str, str]]:
    """Ways to name the inputs by their streams: several only where a stream meets itself."""
    sources = sorted((n.stream.name, n.alias) for n in walk(node) if isinstance(n, Source))
    by_stream = [(name, [a for _, a in same]) for name, same in groupby(sources, lambda s: s[0])]
    for arrangement in product(*(permutations(aliases) for _, aliases in by_stream)):
        yield {
            alias: name if len(aliases) == 1 else f"{name}#{position}"
            for (name, _), aliases in zip(by_stream, arrangement, strict=True)
            for position, alias in enumerate(aliases, start=1)
        }


def _content(node: Node, names: Mapping[str, str]) -> str:
    def text(expression: Expression) -> str:
        return str(expression.rename(names))

    joins = [n for n in walk(node) if isinstance(n, Join)]
    grouped = [n for n in walk(node) if isinstance(n, GroupBy)]
    content: dict[str, Any] = {
        "streams": sorted(names.values()),
        "where": sorted(str(p.rename(names)) for n in walk(node) for p in applied_by(n)),
        "within": sorted(
            (names[i], names[j], join.bounds[i, j])
            for join in joins[-1:] for i in join.bounds.names for j in join.bounds.names if i != j
        ),
    }  # fmt: skip
    if grouped:
        grouping = grouped[-1].grouping
        keys = [[key.name, text(key.expression)] for key in grouping.keys]
        aggregates = [
            [a.name, a.function, *(text(e) for e in a.expressions), a.condition is not None]
            for a in grouping.aggregates
        ]
        time = f"{names[grouping.time.alias]}.{grouping.time.name}"
        content["group"] = [sorted(keys), sorted(aggregates), time, grouping.size, grouping.slide]
    else:
        content["columns"] = sorted(f"{names[c.alias]}.{c.name}" for c in node.columns if c.alias)
        content["partials"] = sorted(
            [names[n.alias], a.name, a.function, *_read(a, text)]
            for n in walk(node) if isinstance(n, Combine) for a in n.partials
        )  # fmt: skip
    return json.dumps(content, separators=(",", ":"), sort_keys=True)


def _read(one: Aggregate, text: Callable[[Expression], str]) -> Iterator[str]:
    """What it reads: `count(x > 1)` is not `count(*) FILTER (WHERE x > 1)`."""
    if one.argument is not None:
        yield text(one.argument)
    if one.condition is not None:
        yield f"WHERE {text(one.condition)}"
