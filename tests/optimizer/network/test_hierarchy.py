"""Clusters, and the paper's theorems over random networks."""

from itertools import product
from random import Random

import numpy as np
import pytest

from jobs.network.topology import builder, network
from optimizer.network.counting import beta
from optimizer.network.hierarchy import Cluster, Hierarchy, Levels
from optimizer.network.sites import Link, Network, Site
from tests.bench.network.theorems import theorem_1, theorem_3, theorems_2_and_4
from tests.optimizer.network.nets import random_network


def all_sites(hierarchy: Hierarchy) -> list[str]:
    return sorted(name for cluster in hierarchy.levels[0] for name in cluster.names)


def check(hierarchy: Hierarchy, net: Network, max_cs: int) -> None:
    """What 3.1.1 says of every cluster and every coordinator."""
    assert all_sites(hierarchy) == sorted(net.names)
    assert len(hierarchy.levels[-1]) == 1
    for below, above in zip(hierarchy.levels, hierarchy.levels[1:], strict=False):
        promoted = sorted(cluster.coordinator for cluster in below)
        assert promoted == sorted(name for cluster in above for name in cluster.names)
    for level in hierarchy.levels:
        for cluster in level:
            assert len(cluster.names) <= max_cs
            sums = {n: sum(net.distance(n, o) for o in cluster.names) for n in cluster.names}
            assert sums[cluster.coordinator] == pytest.approx(min(sums.values()))


@pytest.mark.parametrize("seed", range(12))
def test_clusters_hold_every_site_once_and_few_enough(seed: int):
    dice = Random(seed)
    net = random_network(dice, dice.randint(1, 60))
    max_cs = dice.randint(2, 9)
    check(builder(net, max_cs, seed).build(), net, max_cs)


def test_sites_at_one_place_are_clustered_all_the_same():
    net = network(
        {f"n{i}": Site() for i in range(9)}, [Link((f"n{i}", "n0"), 0.0) for i in range(1, 9)]
    )
    check(builder(net, 2, 0).build(), net, 2)


@pytest.mark.parametrize("seed", range(6))
def test_sites_join_and_leave(seed: int):
    dice = Random(seed)
    whole = random_network(dice, 24)
    names = whole.names
    some = {name: Site() for name in names[:12]}

    def among(sites: dict[str, Site]) -> Network:
        rows = [whole.index[name] for name in sites]
        near = whole.distances[np.ix_(rows, rows)]
        return Network(sites, near, whole.before[np.ix_(rows, rows)])

    net = among(some)
    found = builder(net, 4, seed).build()
    for name in names[12:]:
        some[name] = Site()
        net = among(some)
        found = builder(net, 4, seed).join(found, name)
        check(found, net, 4)
    while len(some) > 1:
        gone = found.top.coordinator if dice.random() < 0.4 else dice.choice(sorted(some))
        del some[gone]
        net = among(some)
        found = builder(net, 4, seed).leave(found, gone)
        check(found, net, 4)


def test_a_site_walks_down_to_the_nearest_coordinator():
    sites = {name: Site() for name in ("a1", "a2", "b1", "b2", "new")}
    links = [
        Link(("a1", "a2"), 1), Link(("b1", "b2"), 1), Link(("a1", "b1"), 50),
        Link(("new", "b2"), 2),
    ]  # fmt: skip
    net = network(sites, links)
    pairs = (Cluster("a1", ("a1", "a2")), Cluster("b1", ("b1", "b2")))
    joined = builder(net, 3, 0).join(Hierarchy(Cluster("a1", pairs), 3), "new")
    assert sorted(c.names for c in joined.levels[0]) == [("a1", "a2"), ("b1", "b2", "new")]


def test_distances_take_the_shortest_way_and_say_where_there_is_none():
    sites = {name: Site() for name in ("a", "b", "c", "alone")}
    links = [Link(("a", "b"), 0.0), Link(("b", "c"), 2.0), Link(("a", "c"), 5.0)]
    net = network(sites, [*links, Link(("c", "a"), 9.0)])
    assert (net.distance("a", "c"), net.path("a", "c")) == (2.0, ["a", "b", "c"])
    assert (net.reaches("a", "b"), net.reaches("a", "alone")) == (True, False)
    assert network(sites, [Link(("a", "b"), 1.0, 7.0)], "cost").distance("a", "b") == 7.0


def test_largest_distances_are_of_pairs():
    net = random_network(Random(3), 30)
    found = builder(net, 6, 3).build()
    for level, largest in zip(found.levels, Levels(found, net).diameters, strict=True):
        pairs = [net.distance(a, b) for c in level for a, b in product(c.names, repeat=2)]
        assert largest == pytest.approx(max(pairs))


@pytest.mark.parametrize("seed", range(25))
def test_theorem_1_in_both_directions(seed: int):
    assert 0 <= theorem_1(seed) <= 1


@pytest.mark.parametrize("seed", range(25))
def test_theorems_2_and_4(seed: int):
    for used in theorems_2_and_4(seed).values():
        assert 0 < used <= 1


@pytest.mark.parametrize("seed", range(25))
def test_theorem_3_with_the_edges_of_both_trees(seed: int):
    both, printed = theorem_3(seed)
    assert both <= 1
    assert printed >= both


def test_beta_bounds_by_the_largest_cluster():
    assert beta(4, 1000, 100, 1.5) == pytest.approx(1.5 * 0.001)
