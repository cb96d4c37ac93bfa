"""Where a query may read its streams, or sets of them that are joined already, and the price."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from optimizer.network.deployment import Deployed, Key, Kind, Node, price
from optimizer.network.load import Load, Question, volume
from optimizer.network.sites import Network
from optimizer.network.streams import Content


@dataclass(frozen=True)
class Offer:
    """A stream that a query can use at a site, and what that costs besides its transport."""

    mask: int
    site: int
    source: "Key | Tree | Offer"
    """What is advertised, or made by the query's own plan, or the offer that is seen from afar."""
    price: float = 0.0
    """What making an advertised stream wide enough costs."""


@dataclass(frozen=True)
class Leaf:
    """A stream that is read where it is offered."""

    offer: Offer

    @property
    def mask(self) -> int:
        return self.offer.mask

    @property
    def site(self) -> int:
        return self.offer.site


@dataclass(frozen=True)
class Join:
    """An operator at a site."""

    mask: int
    site: int
    left: "Tree"
    right: "Tree"


Tree: TypeAlias = Leaf | Join


def resolved(tree: Tree) -> Tree:
    """With what the query's own plan makes in the place of the offers for it."""
    if isinstance(tree, Join):
        return replace(tree, left=resolved(tree.left), right=resolved(tree.right))
    source = tree.offer.source
    if isinstance(source, Offer):
        return resolved(Leaf(source))
    return tree if isinstance(source, Key) else resolved(source)


def joins(tree: Tree) -> list[Join]:
    """The operators of a tree, each after its inputs."""
    if isinstance(tree, Leaf):
        return []
    return [*joins(tree.left), *joins(tree.right), tree]


def border(tree: Join) -> list[Tree]:
    """The inputs of the operators that stand together at the site of the topmost one."""
    found: list[Tree] = []
    for child in (tree.left, tree.right):
        inside = isinstance(child, Join) and child.site == tree.site
        found += border(child) if inside and isinstance(child, Join) else [child]
    return found


def union(offers: Iterable[Offer]) -> int:
    """All streams that some of these hold."""
    found = 0
    for offer in offers:
        found |= offer.mask
    return found


def leaves(tree: Tree) -> list[Leaf]:
    """The streams that a tree reads."""
    if isinstance(tree, Leaf):
        return [tree]
    return [*leaves(tree.left), *leaves(tree.right)]


def adverts(question: Question, deployed: Deployed, network: Network) -> list[Offer]:
    """All advertised streams that the query can read, as they are or made wider.

    Relaxed ones of a plan hold different base streams, so no two of them share what is above.
    """
    streams = frozenset(question.names)
    prices, found = Prices(deployed, question.load, network), []
    for node in deployed.nodes.values():
        if node.content.streams <= streams:
            mask = question.mask(node.content.streams)
            wanted = question.contents[mask]
            if node.content.windows == wanted.windows or node.key.kind is Kind.BASE:
                site = network.index[node.site]
                found.append(Offer(mask, site, node.key, prices.of(node, wanted)))
    return list(cheapest(found))


def cheapest(found: list[Offer]) -> Iterator[Offer]:
    """Of those that offer the same at one site, the best: the least price, the first of equals."""
    best: dict[tuple[int, int], Offer] = {}
    for advert in found:
        at = advert.mask, advert.site
        if at not in best or advert.price < best[at].price:
            best[at] = advert
    yield from best.values()


@dataclass(frozen=True)
class Prices:
    """What it costs that streams hold more, each asked for once.

    What a node reads holds different base streams, so nothing above it is counted twice.
    """

    deployed: Deployed
    load: Load
    network: Network
    known: dict[tuple[Key, Content], float] = field(default_factory=dict)

    def of(self, node: Node, wanted: Content) -> float:
        """Of a stream that is to hold all that is wanted; nothing where it does already."""
        if node.key.kind is Kind.BASE or node.content.covers(wanted):
            return 0.0
        if (found := self.known.get((node.key, wanted))) is None:
            self.known[node.key, wanted] = found = self._of(node, node.content.widened(wanted))
        return found

    def _of(self, node: Node, wider: Content) -> float:
        total = 0.0
        for read in node.reads:
            source, content = self.deployed.nodes[read.source], wider.of(read.content.streams)
            more = volume(self.load, content) - volume(self.load, read.content)
            total += more * price(self.network, source.site, node) + self.of(source, content)
        return total
