"""The size of clusters that is chosen, and when several hierarchies are compared."""

from itertools import combinations

from jobs.network.session import Place, Session
from jobs.network.topology import acceptable, hierarchies, looseness, network
from optimizer.network.load import Demand, Source, WindowLoad
from optimizer.network.sites import Link, Site
from tests.bench.network.workloads import place


def test_the_largest_size_that_is_acceptable():
    """2 x 180 x 32^4 = 3.8e8 is below 10^9, and 180 x 64^4 = 3.0e9 is not."""
    assert acceptable(32, 2)
    assert not acceptable(64, 1)
    assert place(128, 1, None).levels.hierarchy.max_cs == 32


def test_near_sites_in_far_groups_need_one_hierarchy():
    net = place(128, 1, 8).network
    (tight,) = hierarchies(net, 8, 1)
    assert looseness(net, tight) < 0.5
    assert len(hierarchies(net, 8, 1)) == 1


def test_loose_clusters_are_compared_with_others():
    """Sites that are all as far apart as any others belong to no cluster more than to another."""
    sites = {f"n{i}": Site() for i in range(70)}
    net = network(sites, [Link(two, 1.0) for two in combinations(sites, 2)])
    assert [one.max_cs for one in hierarchies(net, None, 0)] == [32, 16, 8]
    links = [Link(two, 1.0) for two in combinations(sites, 2)]
    load = WindowLoad({"A": Source(1, 1, "n1"), "B": Source(1, 1, "n2")}, 1.0)
    one = Session.begin(Place.of(sites, links), load, "top-down")
    done, _ = one.deploy(Demand("q", ("A", "B"), "n3")).plans["q"]
    assert done.usage == done.optimum
