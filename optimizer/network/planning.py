"""A query planned by a strategy and deployed: what that adds, and how far it is from the best."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

from optimizer.network.counting import space, trees
from optimizer.network.deployment import (
    Deployed,
    Flow,
    Key,
    Kind,
    Node,
    Read,
    extra,
    widenings,
)
from optimizer.network.offers import Leaf, Tree, joins, leaves
from optimizer.network.placement import NETWORK_PLACEMENTS
from optimizer.network.sites import NoSiteError
from optimizer.network.task import Effort, Placed, Task, everywhere

BY_LEVELS = ("top-down", "bottom-up", "npc")
"""The strategies that depend on the hierarchy."""


@dataclass(frozen=True)
class Reuse:
    """A derived stream that a query reads instead of making its own."""

    node: Node
    relaxed: bool
    price: float


@dataclass(frozen=True)
class Planned:
    """A query's plan, where it runs, what it costs, and what finding it took."""

    name: str
    strategy: str
    task: Task
    after: Deployed
    """All that runs once the query does."""
    nodes: tuple[Node, ...]
    """Its operators, and last its sink."""
    tree: Tree
    reused: tuple[Reuse, ...]
    flows: tuple[Flow, ...]
    usage: float
    """Bytes a second times distance, what makes others' streams wider included."""
    effort: Effort

    @cached_property
    def optimum(self) -> float:
        """The exact least for this query, given what was deployed before."""
        return everywhere(self.task).cost

    @property
    def over_optimum(self) -> float:
        """The share by which it is above the exact least."""
        if self.optimum > 0:
            return self.usage / self.optimum - 1
        return 0.0 if self.usage <= 0 else inf

    @property
    def space(self) -> int:
        """What Lemma 1 counts."""
        return space(len(self.task.question.names), len(self.task.network.names))

    @property
    def trees(self) -> int:
        """The distinct trees."""
        return trees(len(self.task.question.names))

    @property
    def advertisements(self) -> int:
        """One for each new stream."""
        return len(self.nodes)


def place(strategy: str, task: Task) -> Placed:
    """The strategy's plan; the exact one where clusters leave no room but the network does."""
    try:
        return NETWORK_PLACEMENTS[strategy](task)
    except NoSiteError:
        return NETWORK_PLACEMENTS["exhaustive"](task)


def planned(strategy: str, task: Task, placed: Placed) -> Planned:
    """What a placed tree comes to, beside the exact least."""
    before, load, network = task.deployed, task.question.load, task.network
    name = task.question.demand.name
    reused, price, widened = _reused(task, placed.tree)
    nodes = tuple(_nodes(task, placed.tree))
    after = before.with_query(task.question.demand, [*widened.values(), *nodes])
    flows = tuple(after.flows_into(nodes, load, network))
    usage = price + sum(flow.usage for flow in flows)
    return Planned(
        name, strategy, task, after, nodes, placed.tree, reused, flows, usage,
        placed.effort,
    )  # fmt: skip


def best_of(found: Sequence[Planned]) -> Planned:
    """The one with the least usage; the work is that of all."""
    best = min(found, key=lambda one: one.usage)
    for other in found:
        if other is not best:
            best.effort.tried(other.effort.examined, other.effort.evaluated)
            best.effort.messages += other.effort.messages
    return best


def _reused(task: Task, tree: Tree) -> tuple[tuple[Reuse, ...], float, dict[Key, Node]]:
    """What is read of others, what it costs to have it wide enough, and what changes for that."""
    reused, total, widened = [], 0.0, dict[Key, Node]()
    for leaf in leaves(tree):
        key = source(leaf)
        if key.kind is Kind.BASE:
            continue
        changed = widenings(task.deployed, key, task.question.contents[leaf.mask])
        price = extra(task.deployed, changed, task.question.load, task.network)
        reused.append(Reuse(task.deployed.nodes[key], bool(changed), price))
        total += price
        widened |= changed
    return tuple(reused), total, widened


def source(leaf: Leaf) -> Key:
    """What a leaf of a resolved tree reads."""
    assert isinstance(leaf.offer.source, Key)
    return leaf.offer.source


def _nodes(task: Task, tree: Tree) -> list[Node]:
    """The query's operators and its sink."""
    name, contents = task.question.demand.name, task.question.contents
    sites, keys, nodes = task.network.names, dict[int, Key](), list[Node]()

    def read(tree: Tree) -> Read:
        key = source(tree) if isinstance(tree, Leaf) else keys[tree.mask]
        return Read(key, contents[tree.mask])

    first = task.deployed.fresh(name)
    for number, join in enumerate(joins(tree), first):
        keys[join.mask] = key = Key(Kind.OPERATOR, name, number)
        reads = (read(join.left), read(join.right))
        nodes.append(Node(key, contents[join.mask], sites[join.site], reads))
    sink = Key(Kind.SINK, name, first + len(keys))
    nodes.append(Node(sink, task.question.content, sites[task.sink], (read(tree),)))
    return nodes
