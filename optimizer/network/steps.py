"""From what runs to what is to run, as data: start, connect, advertise, stop."""

from collections.abc import Iterator
from dataclasses import dataclass

from optimizer.network.deployment import Deployed, Key, Kind, Node, Read


@dataclass(frozen=True)
class Start:
    """Start an operator or a sink at its site."""

    node: Node


@dataclass(frozen=True)
class Connect:
    """Have a node read a stream, filtered and projected where it comes from."""

    node: Node
    read: Read


@dataclass(frozen=True)
class Advertise:
    """Tell what a node holds, from now on."""

    node: Node


@dataclass(frozen=True)
class Stop:
    """Stop what nobody reads any more."""

    node: Node


Step = Start | Connect | Advertise | Stop


def steps(before: Deployed, after: Deployed) -> tuple[Step, ...]:
    """What is new is started before anybody reads it; what is old stops once nobody does."""
    found: list[Step] = []
    for key in _ordered(after):
        node, old = after.nodes[key], before.nodes.get(key)
        if old is None or old.site != node.site:
            found.append(Start(node))
        read = () if old is None or old.site != node.site else old.reads
        found += [Connect(node, one) for one in node.reads if one not in read]
        if old is None or old.content != node.content or old.site != node.site:
            found.append(Advertise(node))
    gone = [node for key, node in before.nodes.items() if key not in after.nodes]
    return (*found, *(Stop(node) for node in reversed(gone)))


def _ordered(deployed: Deployed) -> Iterator[Key]:
    """Every operator and sink, each after what it reads."""
    seen: set[Key] = set()

    def visit(key: Key) -> Iterator[Key]:
        if key in seen or key.kind is Kind.BASE:
            return
        seen.add(key)
        for read in deployed.nodes[key].reads:
            yield from visit(read.source)
        yield key

    for key in deployed.nodes:
        yield from visit(key)
