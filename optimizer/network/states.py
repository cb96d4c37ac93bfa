"""What operators keep, and what becomes of it from one deployment to the next.

A join keeps each stream that it reads.  A state is what it holds: wherever it stood, it can move to
where it is needed, and what nobody holds is filled anew by the streams themselves.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count

from optimizer.network.deployment import Deployed, Key, Kind, Node, Read
from optimizer.network.load import Demand, WindowLoad, width
from optimizer.network.sites import Network
from optimizer.network.streams import Content, Part


class Fate(StrEnum):
    """What becomes of a state."""

    KEPT = "kept"
    MOVED = "moved"
    FILLED = "filled"


@dataclass(frozen=True)
class State:
    """What a join at a site is to keep of a stream, and where that is now."""

    content: Content
    site: str
    source: str
    """The site that has it; the same one where it is kept, none where it is filled anew."""
    bytes: float

    @property
    def fate(self) -> Fate:
        """What becomes of it."""
        if not self.source:
            return Fate.FILLED
        return Fate.KEPT if self.source == self.site else Fate.MOVED


def states(
    before: Deployed, after: Deployed, load: WindowLoad, network: Network
) -> tuple[State, ...]:
    """All states that a deployment needs, each once, and from where each is to be had."""
    there = list(dict.fromkeys(_kept(before)))
    return tuple(
        State(content, site, _nearest(there, content, site, network), size(load, content))
        for content, site in dict.fromkeys(_kept(after))
    )


def _kept(deployed: Deployed) -> Iterator[tuple[Content, str]]:
    for node in deployed.operators():
        if len(node.reads) > 1:
            yield from ((read.content, node.site) for read in node.reads)


def _nearest(
    there: list[tuple[Content, str]], content: Content, site: str, network: Network
) -> str:
    sites = [at for held, at in there if at in network.sites and held.covers(content)]
    return min(sites, key=lambda at: network.distance(at, site), default="")


def size(load: WindowLoad, content: Content) -> float:
    """Bytes of all that is alive of a stream."""
    return load.held(content) * width(content)


def renamed(before: Deployed, after: Deployed) -> Deployed:
    """The same, what stays where it is under the name that it has: only the others are started."""
    known = {_role(node): key for key, node in before.nodes.items()}
    fresh = {owner: count(before.fresh(owner)) for owner in {n.owner for n in after.derived()}}
    names: dict[Key, Key] = {}
    for key, node in after.nodes.items():
        same = known.pop(_role(node), None)
        names[key] = same or replace(key, number=next(fresh[key.owner]))
    nodes = {names[key]: _named(node, names) for key, node in after.nodes.items()}
    return Deployed(nodes, after.demands, {query: names[key] for query, key in after.sinks.items()})


def _role(node: Node) -> tuple[object, ...]:
    """What two nodes have in common that are one and the same."""
    if node.key.kind is Kind.OPERATOR:
        return node.key.kind, node.site, node.content
    return node.key.kind, node.site, node.owner


def _named(node: Node, names: Mapping[Key, Key]) -> Node:
    reads = tuple(Read(names[read.source], read.content) for read in node.reads)
    return replace(node, key=names[node.key], reads=reads)


def restated(deployed: Deployed, demands: Mapping[str, Demand]) -> Deployed:
    """What runs, with the columns' bytes and the predicates' shares as they are now known."""
    sizes = {(name, c): size for d in demands.values() for name, kept in d.columns.items()
             for c, size in kept}  # fmt: skip
    shares = {(name, p.name): p for d in demands.values() for name, ps in d.where.items()
              for p in ps}  # fmt: skip

    def part(old: Part) -> Part:
        where = frozenset(shares.get((old.stream, p.name), p) for p in old.where)
        if old.columns is None:
            return replace(old, where=where)
        columns = frozenset((c, sizes.get((old.stream, c), size)) for c, size in old.columns)
        return replace(old, where=where, columns=columns, width=sum(n for _, n in columns))

    def content(old: Content) -> Content:
        return Content(tuple(map(part, old.parts)))

    nodes = {
        key: replace(node, content=content(node.content),
                     reads=tuple(Read(r.source, content(r.content)) for r in node.reads))
        for key, node in deployed.nodes.items()
    }  # fmt: skip
    return Deployed(nodes, {name: demands[name] for name in deployed.demands}, deployed.sinks)
