"""Plans for output rates: which joins there are, and where and in which order selects stand."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from optimizer.cost.rate.load import Edge, Filter, RateLoad
from optimizer.plan import Branch, Leaf, Tree


class Servers(StrEnum):
    """Who does the work of a plan."""

    EACH = "each"
    """Every operator has a server of its own (the paper's operator per thread)."""

    ONE = "one"
    """One CPU does everything, as in a micro-batch job."""


@dataclass(frozen=True)
class Input:
    """A stream behind its selects, the first one applied first."""

    alias: str
    selects: tuple[Filter, ...] = ()

    @property
    def aliases(self) -> frozenset[str]:
        """The stream."""
        return frozenset((self.alias,))

    def __str__(self) -> str:
        return self.alias


@dataclass(frozen=True)
class Meet:
    """A join, and the selects that were pulled up above it.

    Of `lifted`, the predicates between its inputs that it leaves to a select above.
    """

    left: "Node"
    right: "Node"
    selects: tuple[Filter, ...] = ()
    lifted: frozenset[Edge] = frozenset()

    @property
    def aliases(self) -> frozenset[str]:
        """All streams below."""
        return self.left.aliases | self.right.aliases

    def __str__(self) -> str:
        return f"({self.left} {self.right})"


Node = Input | Meet


def walk(node: Node) -> Iterator[Node]:
    """The inputs and joins, bottom-up."""
    if isinstance(node, Meet):
        yield from walk(node.left)
        yield from walk(node.right)
    yield node


def order(selects: Sequence[Filter], servers: Servers) -> tuple[Filter, ...]:
    """The order of most output.

    Where each has a server of its own, the cheapest first: what follows a slow one never gets more
    than that one lets through.  By rank only where they share the CPU.
    """
    if servers is Servers.EACH:
        return tuple(sorted(selects, key=lambda select: (select.cost, select.selectivity)))
    return tuple(sorted(selects, key=lambda select: (select.rank, select.selectivity)))


def of(tree: Tree, load: RateLoad, servers: Servers) -> Node:
    """A plan's joins with the selects in their best order; joins of more than two are refused."""
    if isinstance(tree, Leaf):
        return Input(tree.alias, order(load.streams[tree.alias].selects, servers))
    if len(tree.parts) != 2:
        raise ValueError(f"{tree} joins {len(tree.parts)} inputs: rates are of binary joins")
    left, right = (of(part, load, servers) for part in tree.parts)
    return Meet(left, right)


def tree_of(node: Node) -> Tree:
    """The joins alone."""
    if isinstance(node, Input):
        return Leaf(node.alias)
    return Branch((tree_of(node.left), tree_of(node.right)))


def with_orders(node: Node, orders: "dict[str, tuple[Filter, ...]]") -> Node:
    """The same joins above inputs with other selects."""
    if isinstance(node, Input):
        return Input(node.alias, orders.get(node.alias, node.selects))
    return replace(node, left=with_orders(node.left, orders), right=with_orders(node.right, orders))
