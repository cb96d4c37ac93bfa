"""Zhu's formulas against calculations by hand."""

from math import isclose

import pytest

from optimizer.migration.zhu import (
    Inputs,
    Units,
    moving_state,
    parallel_track,
    settled_track,
)

UNITS = Units(compare=1e-7, cursor=1e-5, join=2e-6, insert=5e-7)
AB = Inputs(10, 20, 0.1)


def test_recomputing_a_state():
    """12.1: 10 * 20 * 5^2 = 5,000 pairs at 2e-6, and a tenth of them at 5e-7."""
    assert isclose(AB.recompute(5, UNITS), 0.01 + 0.00025)
    assert isclose(AB.recompute(10, UNITS), 4 * AB.recompute(5, UNITS))


def test_what_comes_out_of_a_join():
    """12.2: 10 tuples of A a second meet 100 of B, 20 of B meet 50 of A; a tenth of the pairs."""
    assert isclose(AB.rate(5), (10 * 100 + 20 * 50) * 0.1)


def test_moving_state():
    """12.3 for Figure 12.1: S_BC and S_BCD are recomputed, the latter from what (12.2) yields.

    3 operators in each plan: 36 comparisons, 6 cursors.  S_BC: 10 * 20 * 25 pairs.  S_BCD joins
    200 tuples of BC a second with 5 of D.
    """
    bc = AB.recompute(5, UNITS)
    bcd = Inputs(AB.rate(5), 5, 0.01).recompute(5, UNITS)
    assert isclose(bcd, 200 * 5 * 25 * (2e-6 + 5e-9))
    assert isclose(moving_state(3, 3, [bc, bcd], UNITS), 3.6e-6 + 6e-5 + 0.01025 + 0.050125)


def test_moving_state_of_unequal_plans():
    """An mjoin is one operator: 4 * 1 * 3 comparisons, 2 cursors, nothing to compute."""
    assert isclose(moving_state(3, 1, [], UNITS), 12e-7 + 2e-5)


@pytest.mark.parametrize(("height", "windows"), [(1, 1), (2, 2), (5, 2)])
def test_parallel_track(height, windows):
    """12.4."""
    assert parallel_track(300, height) == windows * 300


def test_parallel_track_purged_by_the_smallest_timestamp():
    assert settled_track(300, 20) == 320 < parallel_track(300, 2)


def test_an_old_operator_during_a_parallel_track():
    """12.5: for 10 s, 2 * 10 * 20 * 5 = 2,000 pairs a second, 30 tuples in and 30 out."""
    assert isclose(AB.old(5, UNITS), 10 * (2000 * 2e-6 + 60 * 5e-7))


def test_a_new_operator_during_a_parallel_track():
    """12.6: 5 * 30 insertions and 5 * (2 * 2,500) pairs while it fills, then 5 s as the old one."""
    first = 5 * (30 * 5e-7 + 2e-6 * 2 * 2500)
    assert isclose(AB.new(5, UNITS), first + AB.old(5, UNITS) / 2)


def test_the_rate_of_a_new_operator():
    """12.7, as printed: 2 * 10 * 20 * 0.1 integrated over t until W, then the steady rate."""
    assert [AB.new_rate(5, t) for t in (0, 2, 5)] == pytest.approx([0, 80, 500])
    assert isclose(AB.new_rate(5, 5.001), AB.rate(5))
