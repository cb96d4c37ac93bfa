"""Distances by scipy, clusters by scikit-learn, and coordinates from springs."""

import warnings
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

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


AUTO = (8, 16, 32, 64)
"""Sizes of clusters to choose from."""

SPACE = 5
"""Streams of the query whose search space decides (4.2)."""

ACCEPTABLE = 2e8
"""So many plans a query may stand for, at most (Theorem 4)."""


def hierarchy(net: Network, max_cs: int | None, seed: int) -> Hierarchy:
    """The hierarchy of that size of clusters, or of the size that the guidelines of 4.2 ask for."""
    if max_cs is not None:
        return builder(net, max_cs, seed).build()
    from optimizer.network.counting import orders

    found = [builder(net, size, seed).build() for size in AUTO]
    fit = [
        one for one in found if one.height * orders(SPACE) * one.max_cs ** (SPACE - 1) <= ACCEPTABLE
    ]
    return fit[-1] if fit else found[0]


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
