"""Where a query may read its streams, or sets of them that are joined already, and the price."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from optimizer.network.deployment import Deployed, Key, Kind, Node, extra, widenings
from optimizer.network.load import Load, Question
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
    found = []
    for node in deployed.nodes.values():
        if node.content.streams <= streams:
            mask = question.mask(node.content.streams)
            wanted = question.contents[mask]
            if node.content.windows == wanted.windows or node.key.kind is Kind.BASE:
                site = network.index[node.site]
                price = relaxed_price(node, wanted, deployed, question.load, network)
                found.append(Offer(mask, site, node.key, price))
    return list(cheapest(found))


def cheapest(found: list[Offer]) -> Iterator[Offer]:
    """Of those that offer the same at one site, the best: the least price, the first of equals."""
    best: dict[tuple[int, int], Offer] = {}
    for advert in found:
        at = advert.mask, advert.site
        if at not in best or advert.price < best[at].price:
            best[at] = advert
    yield from best.values()


def relaxed_price(
    node: Node, wanted: Content, deployed: Deployed, load: Load, network: Network
) -> float:
    """What it costs that a stream holds all that is wanted; nothing where it does already."""
    if node.key.kind is Kind.BASE or node.content.covers(wanted):
        return 0.0
    return extra(deployed, widenings(deployed, node.key, wanted), load, network)
