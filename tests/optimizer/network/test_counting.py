"""Counts that the paper prints."""

from itertools import pairwise

import pytest

from optimizer.network.counting import beta, orders, space, trees
from tests.optimizer.network.nets import all_trees


@pytest.mark.parametrize(
    ("streams", "sites", "printed"), [(5, 64, 3_019_898_880), (5, 128, 48_318_382_080)]
)
def test_lemma_1(streams: int, sites: int, printed: int):
    assert space(streams, sites) == printed


def test_a_query_within_a_cluster_of_57():
    assert space(4, 57) == 3_333_474


def test_beta_of_a_thousand_sites():
    assert beta(4, 1000, 100, 1.5) == pytest.approx(0.0015)


def test_orders_of_joining_are_more_than_trees():
    """180 orders of joining five streams, 105 trees: bushy ones are counted once an order."""
    assert (orders(5), trees(5)) == (180, 105)
    for streams in range(1, 6):
        names = frozenset("ABCDE"[:streams])
        assert trees(streams) == sum(all_joined(tree) for tree in all_trees(names))


def all_joined(tree) -> bool:
    return len(tree) == 1 if isinstance(tree, frozenset) else all(map(all_joined, tree))


def test_a_merge_at_a_time_makes_the_orders():
    """By recursion: any two of k are joined first, then k - 1 are left."""
    assert orders(1) == 1
    for fewer, streams in pairwise(range(1, 8)):
        assert orders(streams) == streams * (streams - 1) // 2 * orders(fewer)
