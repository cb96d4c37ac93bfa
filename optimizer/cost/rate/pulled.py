"""Selects pulled up above a join, and expensive predicates of a join left to a select above it.

Of what a join puts out there may be less than of what it is given, so that a slow predicate keeps
up above it that would not below; but then the join handles what the predicate would have dropped.
"""

from collections.abc import Iterator
from dataclasses import replace

from optimizer.cost.rate.load import Filter, RateLoad
from optimizer.cost.rate.tree import Input, Meet, Node, Servers, order


def pulled(node: Node, load: RateLoad, servers: Servers) -> Iterator[Node]:
    """The plans with one expensive predicate one operator further up."""
    if isinstance(node, Input):
        return
    for part in pulled(node.left, load, servers):
        yield replace(node, left=part)
    for part in pulled(node.right, load, servers):
        yield replace(node, right=part)
    yield from _from_below(node, servers)
    yield from _out_of(node, load, servers)


def _from_below(node: Meet, servers: Servers) -> Iterator[Node]:
    for part, select in _expensive(node.left):
        yield replace(node, left=part, selects=order((*node.selects, select), servers))
    for part, select in _expensive(node.right):
        yield replace(node, right=part, selects=order((*node.selects, select), servers))


def _expensive(part: Node) -> Iterator[tuple[Node, Filter]]:
    """Each of its selects that takes time, and what is left without it."""
    for position, select in enumerate(part.selects):
        if select.cost:
            others = part.selects[:position] + part.selects[position + 1 :]
            yield replace(part, selects=others), select


def _out_of(node: Meet, load: RateLoad, servers: Servers) -> Iterator[Node]:
    crossing = load.between(node.left.aliases, node.right.aliases)
    applied = [(edge, match) for edge, match in crossing if edge not in node.lifted]
    if len(applied) < 2:
        return  # what is left would be a cartesian product
    for edge, match in applied:
        if match.cost:
            select = Filter("-".join(sorted(edge)), match.selectivity, match.cost)
            above = order((*node.selects, select), servers)
            yield replace(node, selects=above, lifted=node.lifted | {edge})
