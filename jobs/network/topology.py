"""Distances by scipy, clusters by scikit-learn, and coordinates from springs."""

import warnings
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from optimizer.network.counting import orders
from optimizer.network.hierarchy import Builder, Hierarchy
from optimizer.network.sites import Indices, Link, Matrix, Network, Site

BEYOND = 1e3
"""Where there is no path, the distance is so many times as long as all of the longest."""

COORDINATES = 3
ROUNDS = 4000
"""Coordinates of the space of `relaxation`, and the rounds that they take to settle."""


def network(sites: Mapping[str, Site], links: Sequence[Link], measure: str = "latency") -> Network:
    """The network with all its shortest paths."""
    index = {name: row for row, name in enumerate(sites)}
    least: dict[tuple[int, int], float] = {}
    for link in links:
        one, other = sorted(index[name] for name in link.between)
        weight = link.weight(measure)
        least[one, other] = min(weight, least.get((one, other), weight))
    distances, before = _shortest(least, len(sites))
    far = BEYOND * (1.0 + float(distances[np.isfinite(distances)].max(initial=0.0)))
    return Network(sites, np.where(np.isfinite(distances), distances, far), before)


def _shortest(least: Mapping[tuple[int, int], float], size: int) -> tuple[Matrix, Indices]:
    """All pairs; a sparse matrix keeps links of length zero that are named."""
    ends = np.array(list(least), dtype=np.int32).reshape(-1, 2)
    weights = np.array(list(least.values()), dtype=float)
    graph = coo_array((weights, (ends[:, 0], ends[:, 1])), shape=(size, size)).tocsr()
    distances, before = dijkstra(graph, directed=False, return_predecessors=True)
    return distances, before


def warm() -> None:
    """Load the library that clusters, so that nobody's clock counts it."""
    import sklearn.cluster  # noqa: F401


def builder(net: Network, max_cs: int, seed: int) -> Builder:
    """Makes hierarchies of that network."""
    return Builder(net, max_cs, partial(k_means, net.distances, seed))


def k_means(distances: Matrix, seed: int, sites: Sequence[int], max_cs: int) -> list[list[int]]:
    """Groups of the given sites, by their rows of the matrix of distances; at least two.

    One thread is enough for so few rows: several only wait for one another.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    rows = distances[np.ix_(sites, sites)]
    wanted = -(-len(sites) // max_cs)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = KMeans(wanted, n_init=4, random_state=seed).fit_predict(rows)
    groups = [np.flatnonzero(found == label).tolist() for label in range(wanted)]
    groups = [group for group in groups if group]
    if len(groups) > 1:
        return groups
    order = list(range(len(sites)))
    return [order[start : start + max_cs] for start in range(0, len(order), max_cs)]


AUTO = (64, 32, 16, 8)
"""Sizes of clusters to choose from, the largest that is acceptable first."""

SPACE = 5
"""Streams of the query whose search space decides (4.2)."""

ACCEPTABLE = 1e9
"""So many plans a query may stand for, at most (Theorem 4)."""

LOOSE = 0.5
"""Sites that are more than half as far from their own coordinator as from the next are loose."""


def hierarchies(net: Network, max_cs: int | None, seed: int) -> list[Hierarchy]:
    """The hierarchy of that size of clusters, or of the size that the guidelines of 4.2 ask for.

    Where the clusters of the latter are loose, others stand beside it (end of 3.1.2).
    """
    if max_cs is not None:
        return [builder(net, max_cs, seed).build()]
    sizes = [size for size in AUTO if acceptable(min(size, len(net.names)), 1)] or [AUTO[-1]]
    found = [builder(net, sizes[0], seed).build()]
    for size in sizes[1:]:
        if acceptable(found[0].max_cs, found[0].height):
            break
        found = [builder(net, size, seed).build()]
    if found[0].height > 1 and looseness(net, found[0]) > LOOSE:
        found += [builder(net, size, seed).build() for size in sizes if size < found[0].max_cs]
    return found


def acceptable(largest: int, height: int) -> bool:
    """Whether a query over five streams has a search space that can be gone through."""
    return bool(height * orders(SPACE) * largest ** (SPACE - 1) <= ACCEPTABLE)


def looseness(net: Network, found: Hierarchy) -> float:
    """How far sites are from their own coordinator, as a share of the way to the next nearest."""
    heads = [net.index[cluster.coordinator] for cluster in found.levels[0]]
    shares = []
    for cluster in found.levels[0]:
        rows = [net.index[name] for name in cluster.names]
        own = net.index[cluster.coordinator]
        others = [head for head in heads if head != own]
        nearest = net.distances[np.ix_(rows, others)].min(axis=1)
        shares += list(net.distances[rows, own] / np.where(nearest > 0, nearest, 1.0))
    return float(np.mean(shares))


def coordinates(distances: Matrix, seed: int, rounds: int = ROUNDS) -> Matrix:
    """Sites in a space where they are about as far apart as on the network (springs of Vivaldi).

    In each round every site meets one other, drawn at random, and moves on their spring.
    """
    dice = np.random.default_rng(seed)
    size = len(distances)
    if size < 2:
        return np.zeros((size, COORDINATES))
    every = np.arange(size)
    scale = float(distances.max()) or 1.0
    at = dice.normal(scale=scale / 10, size=(size, COORDINATES))
    for turn in range(rounds):
        other = (every + dice.integers(1, size, size)) % size
        apart = at - at[other]
        length = np.sqrt((apart**2).sum(axis=1))
        way = apart / np.where(length > 0, length, 1.0)[:, None]
        step = 0.25 * (1 - turn / rounds) + 0.01
        at = at + step * (distances[every, other] - length)[:, None] * way
    return at
