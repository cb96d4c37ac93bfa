"""Small random networks and queries, and every tree and placement of them, one by one."""

from collections.abc import Iterator
from functools import cache
from itertools import combinations, product
from random import Random
from typing import Any

import numpy as np

from jobs.network.topology import builder, coordinates, network
from optimizer.network.deployment import Deployed
from optimizer.network.hierarchy import Levels
from optimizer.network.load import Demand, Question, Source, WindowLoad
from optimizer.network.sites import Link, Network, Site
from optimizer.network.streams import Predicate
from optimizer.network.task import Task


def random_network(dice: Random, size: int, sites: dict[str, Site] | None = None) -> Network:
    """Connected, with about two links a site."""
    names = [f"n{i}" for i in range(size)]
    pairs = [(names[i], names[dice.randrange(i)]) for i in range(1, size)]
    pairs += [(a, b) for a, b in (dice.sample(names, 2) for _ in range(size if size > 1 else 0))]
    links = [Link((a, b), dice.uniform(1, 10)) for a, b in pairs]
    return network(sites or {name: Site() for name in names}, links)


def random_load(dice: Random, net: Network, streams: int, chance: float = 0.8) -> WindowLoad:
    names = [f"S{i}" for i in range(streams)]
    sources = {
        name: Source(dice.uniform(1, 10), dice.uniform(20, 100), dice.choice(net.names))
        for name in names
    }
    joins = {
        frozenset(two): dice.uniform(0.001, 0.05)
        for two in combinations(names, 2)
        if dice.random() < chance
    }
    return WindowLoad(sources, 10, joins)


def random_demand(
    dice: Random, net: Network, load: WindowLoad, name: str, k: int, filtered: float = 0.3
) -> Demand:
    streams = tuple(dice.sample(sorted(load.sources), k))
    where = {
        stream: (Predicate.of(f"x < {(limit := dice.choice([2, 5, 8]))}", limit / 10),)
        for stream in streams
        if dice.random() < filtered
    }
    widths = {s: load.sources[s].width * 0.5 for s in streams if dice.random() < filtered}
    return Demand(name, streams, dice.choice(net.names), where, widths)


def task_of(
    net: Network, load: WindowLoad, demand: Demand, deployed: Deployed | None = None,
    max_cs: int = 4, seed: int = 0,
) -> Task:  # fmt: skip
    levels = Levels(builder(net, max_cs, seed).build(), net)
    known = (deployed or Deployed()).knowing(load)
    return Task(
        Question(load, demand), known, levels, cache(lambda: coordinates(net.distances, seed, 200))
    )


def all_trees(streams: frozenset[str]) -> Iterator[Any]:
    """A stream set, or a pair of trees; every set may also be read whole."""
    yield streams
    first, *others = sorted(streams)
    for size in range(len(others)):
        for more in combinations(others, size):
            left = frozenset([first, *more])
            yield from product(all_trees(left), all_trees(streams - left))


def streams_of(tree) -> frozenset[str]:
    return tree if isinstance(tree, frozenset) else streams_of(tree[0]) | streams_of(tree[1])


def least(task: Task) -> Any:
    """The least usage over all trees, all placements, and all ways to read what is advertised.

    Written out: every operator at every site, every leaf from every advert; no table is shared.
    """
    question, d = task.question, task.network.distances
    room = task.room
    best = np.inf
    volumes = {frozenset(question.members(m)): v for m, v in enumerate(question.volumes) if m}
    read: dict[frozenset[str], list[float]] = {}
    for offer in task.adverts:
        streams = frozenset(question.members(offer.mask))
        costs = offer.price + volumes[streams] * d[offer.site]
        read[streams] = [min(two) for two in zip(read.get(streams, costs), costs, strict=True)]
    between = d.tolist()
    for tree in all_trees(frozenset(question.names)):
        inner: list[Any] = []
        _joins(tree, inner)
        if not all(leaf in read for leaf in _leaves(tree)):
            continue
        for sites in product(range(len(d)), repeat=len(inner)):
            if any(sites.count(s) > room[s] for s in sites):
                continue
            at = {id(join): site for join, site in zip(inner, sites, strict=True)}
            best = min(best, _priced(tree, task.sink, at, read, volumes, between))
    return best


def _joins(tree, found: list[Any]) -> None:
    if not isinstance(tree, frozenset):
        _joins(tree[0], found)
        _joins(tree[1], found)
        found.append(tree)


def _leaves(tree) -> list[frozenset[str]]:
    return [tree] if isinstance(tree, frozenset) else _leaves(tree[0]) + _leaves(tree[1])


def _priced(tree, to: int, at, read, volumes, d) -> Any:
    if isinstance(tree, frozenset):
        return read[tree][to]
    site = at[id(tree)]
    here = sum(_priced(child, site, at, read, volumes, d) for child in tree)
    return here + volumes[streams_of(tree)] * d[site][to]
