"""What is said of deployments and hierarchies, in the form that scripts rely on."""

from collections.abc import Iterable
from typing import Any

from jobs.network.session import Session
from optimizer.network.deployment import Deployed, Flow, Key, Kind, Node
from optimizer.network.hierarchy import Hierarchy, Levels
from optimizer.network.load import WindowLoad, volume
from optimizer.network.planning import Planned
from optimizer.network.states import State
from optimizer.network.steps import Connect, Step
from optimizer.network.streams import Content


def hierarchy(levels: Levels) -> dict[str, Any]:
    """The clusters of every level, the lowest first."""
    found: Hierarchy = levels.hierarchy
    return {
        "levels": [
            [{"coordinator": c.coordinator, "members": list(c.names)} for c in level]
            for level in found.levels
        ],
        "d": list(levels.diameters),
        "height": found.height,
        "max_cs": found.max_cs,
    }


def session(one: Session, setup: float, happened: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """All that a strategy did, and what runs now."""
    place, running = one.place, one.deployed.demands
    return {
        "strategy": one.strategy,
        "sites": len(place.sites),
        "max_cs": place.levels.hierarchy.max_cs,
        "height": place.levels.height,
        "setup_seconds": setup,
        "queries": [
            query(done, seconds) | {"deployed": name in running}
            for name, (done, seconds) in one.plans.items()
        ],
        "events": list(happened),
        "deployed": list(running),
        "total_usage": one.usage,
        "total_optimum": sum(one.optima.values()),
        "joins_deployed": len(one.deployed.operators()),
        "filters_deployed": len(one.deployed.filters()),
    }


def query(done: Planned, seconds: float) -> dict[str, Any]:
    """A query's plan, where it runs, and what that takes."""
    operators = [n for n in done.nodes if n.key.kind is Kind.OPERATOR]
    return {
        "name": done.name,
        "plan": plan(done.after, done.nodes[-1].key),
        "sink": done.nodes[-1].site,
        "operators": [operator(done, node) for node in operators],
        "filters": [
            {"stream": stream, "site": site, "predicate": predicate.text}
            for stream, site, predicate in done.after.filters(done.nodes)
        ],
        "flows": [flow(done, each) for each in done.flows if shown(done, each)],
        "reused": [
            {
                "streams": sorted(r.node.content.streams),
                "site": r.node.site,
                "query": r.node.owner,
                "relaxed": r.relaxed,
                "price": r.price,
            }
            for r in done.reused
        ],
        "usage": done.usage,
        "optimum": done.optimum,
        "over_optimum": done.over_optimum if done.optimum > 0 or done.usage <= 0 else None,
        "examined": done.effort.examined,
        "evaluated": done.effort.evaluated,
        "space": done.space,
        "trees": done.trees,
        "messages": done.effort.messages + done.advertisements,
        "levels": len(done.effort.levels),
        "steps": done.effort.steps,
        "seconds": seconds,
    }


def plan(deployed: Deployed, key: Key) -> str:
    """The tree of joins, those of others that are read included."""
    node = deployed.nodes[key]
    if key.kind is Kind.BASE:
        return key.owner
    below = [plan(deployed, read.source) for read in node.reads]
    return below[0] if key.kind is Kind.SINK else f"({' '.join(below)})"


def operator(done: Planned, node: Node) -> dict[str, Any]:
    """A join at its site."""
    return {
        "streams": sorted(node.content.streams),
        "inputs": [sorted(read.content.streams) for read in node.reads],
        "site": node.site,
        "where": where(node.content),
        "bytes_per_s": volume(done.task.question.load, node.content),
    }


def where(content: Content) -> list[dict[str, str]]:
    """The predicates that a stream's tuples meet."""
    return [
        {"stream": part.stream, "predicate": predicate.text}
        for part in content.parts
        for predicate in sorted(part.where, key=lambda p: p.name)
    ]


def shown(done: Planned, one: Flow) -> bool:
    """Whether a stream travels, or is handed over between queries at one site."""
    source = one.read.source
    return one.start != one.end or (source.kind is not Kind.BASE and source.owner != done.name)


def flow(done: Planned, one: Flow) -> dict[str, Any]:
    """A stream on its way."""
    return {
        "streams": sorted(one.read.content.streams),
        "from": one.start,
        "to": one.end,
        "path": done.task.network.path(one.start, one.end),
        "bytes_per_s": one.bytes,
        "usage": one.usage,
    }


def step(one: Step, deployed: Deployed, load: WindowLoad) -> dict[str, Any]:
    """What is to be done to come from one deployment to the next."""
    node, word = one.node, type(one).__name__.lower()
    said = {
        "do": word,
        "kind": str(node.key.kind),
        "query": node.owner,
        "streams": sorted(node.content.streams),
        "site": node.site,
    }
    if not isinstance(one, Connect):
        return said
    source = deployed.nodes[one.read.source]
    return said | {
        "reads": sorted(one.read.content.streams),
        "from": source.site,
        "where": where(one.read.content),
        "bytes_per_s": volume(load, one.read.content),
    }


def state(one: State) -> dict[str, Any]:
    """What a join keeps, and where that comes from."""
    return {
        "streams": sorted(one.content.streams),
        "where": where(one.content),
        "site": one.site,
        "from": one.source or None,
        "fate": str(one.fate),
        "bytes": one.bytes,
    }
