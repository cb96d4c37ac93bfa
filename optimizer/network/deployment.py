"""What is deployed: operators and sinks at sites, and the streams that each reads.

Every base stream, operator and sink is advertised: what it holds may be read by anybody.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import count

from optimizer.network.load import Demand, Load, kept, volume, wanted
from optimizer.network.sites import Network
from optimizer.network.streams import Content, Part, Predicate, filters


class Kind(StrEnum):
    """What a stream comes from."""

    BASE = "base"
    OPERATOR = "operator"
    SINK = "sink"


@dataclass(frozen=True, order=True)
class Key:
    """Names what is advertised."""

    kind: Kind
    owner: str
    """A query, or a base stream."""
    number: int = 0


@dataclass(frozen=True)
class Read:
    """A stream on its way: what of it travels, filtered and projected where it comes from."""

    source: Key
    content: Content


Joined = tuple[frozenset[str], tuple[frozenset[str], ...]]
"""The streams that a join holds, and those of each of its inputs."""


@dataclass(frozen=True)
class Node:
    """A base stream, a join or a sink."""

    key: Key
    content: Content
    """What it advertises."""
    site: str
    reads: tuple[Read, ...] = ()

    @property
    def owner(self) -> str:
        """The query that it was deployed for."""
        return self.key.owner


@dataclass(frozen=True)
class Flow:
    """A stream that travels from one site to another, or is handed over at one."""

    read: Read
    start: str
    end: str
    bytes: float
    usage: float


@dataclass(frozen=True)
class Deployed:
    """All that runs, and which queries it is for."""

    nodes: Mapping[Key, Node] = field(default_factory=dict)
    demands: Mapping[str, Demand] = field(default_factory=dict)
    sinks: Mapping[str, Key] = field(default_factory=dict)
    """Each query's sink; what was one of a query that is gone may still be read by others."""

    def knowing(self, load: Load) -> "Deployed":
        """With the base streams of a load advertised as well."""
        base = {
            (key := Key(Kind.BASE, name)): Node(key, Content((Part(name, s.width),)), s.site)
            for name, s in load.sources.items()
        }
        return replace(self, nodes={**base, **self.nodes})

    def with_query(self, demand: Demand, nodes: Iterable[Node]) -> "Deployed":
        """With a query's operators and its sink, and what they make wider."""
        added = {node.key: node for node in nodes}
        (sink,) = (k for k in added if k.kind is Kind.SINK and k not in self.nodes)
        return Deployed(
            {**self.nodes, **added},
            {**self.demands, demand.name: demand},
            {**self.sinks, demand.name: sink},
        )

    def without(self, query: str) -> "Deployed":
        """Without a query, its sink, and the operators that nobody else reads."""
        demands = {name: d for name, d in self.demands.items() if name != query}
        sinks = {name: key for name, key in self.sinks.items() if name != query}
        read = set(self._below(sinks.values()))
        kept = {k: n for k, n in self.nodes.items() if k.kind is Kind.BASE or k in read}
        return Deployed(kept, demands, sinks)

    def _below(self, sinks: Iterable[Key]) -> Iterator[Key]:
        left, seen = list(sinks), set(sinks)
        while left:
            yield (key := left.pop())
            reads = {read.source for read in self.nodes[key].reads}
            fresh = {source for source in reads - seen if source.kind is not Kind.BASE}
            seen |= fresh
            left += fresh

    def derived(self) -> list[Node]:
        """What is advertised besides the base streams."""
        return [node for key, node in self.nodes.items() if key.kind is not Kind.BASE]

    def operators(self) -> list[Node]:
        """The joins."""
        return [node for key, node in self.nodes.items() if key.kind is Kind.OPERATOR]

    def fresh(self, query: str) -> int:
        """The number of a query's next node; others may still read what it had before."""
        had = [k.number for k in self.nodes if k.owner == query and k.kind is not Kind.BASE]
        return max(had, default=-1) + 1

    def used(self) -> dict[str, int]:
        """How many operators run at each site."""
        found: dict[str, int] = {}
        for node in self.operators():
            found[node.site] = found.get(node.site, 0) + 1
        return found

    def filters(self, nodes: Iterable[Node] | None = None) -> list[tuple[str, str, Predicate]]:
        """The filters of all nodes or some: stream, site, predicate; one for all who read alike."""
        found: dict[tuple[Key, str, Predicate], str] = {}
        for node in self.derived() if nodes is None else nodes:
            for key, wide, narrow in self._narrowed(node):
                for stream, predicate in filters(wide, narrow):
                    found[key, stream, predicate] = self.nodes[key].site
        return [(stream, site, p) for (_, stream, p), site in found.items()]

    def _narrowed(self, node: Node) -> Iterator[tuple[Key, Content, Content]]:
        for read in node.reads:
            yield read.source, self.nodes[read.source].content, read.content
        if (wanted := self.wants(node)) is not None:
            yield node.key, node.content, wanted

    def wants(self, node: Node) -> Content | None:
        """What a sink shows of what it reads; a sink may be asked to read more for others."""
        if self.sinks.get(node.owner) != node.key:
            return None
        demand = self.demands[node.owner]
        parts = (
            replace(
                part,
                where=frozenset(demand.where.get(part.stream, ())),
                width=kept(demand, part.stream, part.width),
                columns=demand.columns.get(part.stream),
            )
            for part in node.content.parts
        )
        return Content(tuple(parts))

    def usage(self, load: Load, network: Network) -> float:
        """Bytes a second times distance, over all that travels."""
        return sum(flow.usage for flow in self.flows(load, network))

    def flows(self, load: Load, network: Network) -> Iterator[Flow]:
        """All that travels."""
        return self.flows_into(self.derived(), load, network)

    def shared_flows(self, load: Load, network: Network) -> list[Flow]:
        """All that travels, if what several read alike at a site comes there once."""
        flows = self.flows(load, network)
        return list({(one.read, one.start, one.end): one for one in flows}.values())

    def flows_into(self, nodes: Iterable[Node], load: Load, network: Network) -> Iterator[Flow]:
        """What these nodes read."""
        for node in nodes:
            for read in node.reads:
                yield flow(self.nodes[read.source].site, node, read, load, network)


def at_site(
    deployed: Deployed, load: Load, demand: Demand, site: str, joins: Iterable[Joined]
) -> Deployed:
    """With a query whose operators all run at one site, each after what it reads.

    What another query makes there already is read, as states of a job are shared.
    """
    content = wanted(load, demand)
    made = {(n.content, n.site): k for k, n in deployed.nodes.items() if k.kind is Kind.OPERATOR}
    keys = {frozenset((name,)): Key(Kind.BASE, name) for name in demand.streams}
    nodes, fresh = list[Node](), count(deployed.fresh(demand.name))
    for streams, inputs in joins:
        part = content.of(streams)
        if (part, site) in made:
            keys[streams] = made[part, site]
            continue
        reads = tuple(Read(keys[below], content.of(below)) for below in inputs)
        keys[streams] = Key(Kind.OPERATOR, demand.name, next(fresh))
        nodes.append(Node(keys[streams], part, site, reads))
    read = (Read(keys[content.streams], content),)
    sink = Node(Key(Kind.SINK, demand.name, next(fresh)), content, demand.sink, read)
    return deployed.with_query(demand, [*nodes, sink])


def flow(start: str, node: Node, read: Read, load: Load, network: Network) -> Flow:
    """What a stream that a node reads takes of the network."""
    carried = volume(load, read.content)
    return Flow(read, start, node.site, carried, carried * price(network, start, node))


def price(network: Network, start: str, node: Node) -> float:
    """What a byte a second from there costs."""
    joined = node.key.kind is Kind.OPERATOR
    return network.distance(start, node.site) + (network.sites[node.site].load if joined else 0.0)


def widenings(deployed: Deployed, key: Key, content: Content) -> dict[Key, Node]:
    """The nodes that change so that one advertises that content, too (telescoping filters).

    Whoever reads them goes on reading what it did: its filter then stands where they stand.
    """
    changed: dict[Key, Node] = {}

    def visit(key: Key, content: Content) -> None:
        node = changed.get(key, deployed.nodes[key])
        if key.kind is Kind.BASE or node.content.covers(content):
            return
        wider = node.content.widened(content)
        reads = tuple(Read(r.source, wider.of(r.content.streams)) for r in node.reads)
        changed[key] = replace(node, content=wider, reads=reads)
        for read in reads:
            visit(read.source, read.content)

    visit(key, content)
    return changed


def extra(deployed: Deployed, changed: Mapping[Key, Node], load: Load, network: Network) -> float:
    """What the wider streams cost more than those that they replace."""
    total = 0.0
    for key, node in changed.items():
        for old, new in zip(deployed.nodes[key].reads, node.reads, strict=True):
            more = volume(load, new.content) - volume(load, old.content)
            total += more * price(network, deployed.nodes[new.source].site, node)
    return total
