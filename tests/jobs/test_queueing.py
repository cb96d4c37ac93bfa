"""The simulator by itself, and beside the model that it checks."""

from time import process_time

import numpy as np
import pytest

from jobs.queueing import (
    Filter,
    Join,
    Made,
    Servers,
    Source,
    Spread,
    TooManyError,
    simulate,
    waiting,
)
from jobs.rating.simulated import simulated
from tests.optimizer.cost.rates import draw


@pytest.mark.parametrize("seed", range(20))
def test_the_mean_of_20_runs_is_what_the_exact_model_says(seed):
    drawn = draw(seed)
    found = simulated(drawn.judge, drawn.plan, 20, 1)
    assert found.value.mean == pytest.approx(drawn.judge.value(drawn.plan), rel=0.05)


def test_a_server_takes_one_after_the_other():
    arrivals, work = np.array([1.0, 1.5, 6.0]), np.array([2.0, 1.0, 0.5])
    assert waiting(arrivals, work) == pytest.approx([3.0, 4.0, 6.5])


def by_hand(left, right, cost):
    """One join with all pairs matching: each later tuple, when it is done, meets all before."""
    events, free, seen, made = (
        sorted([(t, 0) for t in left] + [(t, 1) for t in right]),
        0.0,
        [0, 0],
        [],
    )
    for at, side in events:
        free = max(at, free) + cost
        made += [free] * seen[1 - side]
        seen[side] += 1
    return made


@pytest.mark.parametrize("servers", Servers)
def test_even_arrivals_and_every_pair(servers):
    plan = Join(Source("A", 3, even=True), Source("B", 7, even=True), 1.0, cost=0.11)
    left, right = [(i + 0.5) / 3 for i in range(30)], [(i + 0.5) / 7 for i in range(70)]
    expected = [t for t in by_hand(left, right, 0.11) if t <= 10]
    made = simulate(plan, 10, 0, servers)
    assert made.by(10) == len(expected)
    assert made.to(100) == pytest.approx(expected[99])


def test_windows_draw_the_same_pairs_as_a_double_loop():
    plan = Join(Source("A", 40, even=True), Source("B", 25, even=True), 1.0)
    windows = {("A", "B"): 0.5, ("B", "A"): 1.25}
    left, right = (np.arange(400) + 0.5) / 40, (np.arange(250) + 0.5) / 25
    apart = left[:, None] - right[None, :]
    expected = int(((apart <= 0.5) & (-apart <= 1.25)).sum())
    for servers in Servers:
        assert simulate(plan, 10, 0, servers, windows).by(10) == expected


def test_a_window_between_three():
    plan = Join(Join(Source("A", 9, even=True), Source("B", 7, even=True), 1.0),
                Source("C", 8, even=True), 1.0)  # fmt: skip
    windows = {(a, b): 0.6 for a in "ABC" for b in "ABC" if a != b}
    a, b, c = ((np.arange(5 * r) + 0.5) / r for r in (9, 7, 8))
    stacked = np.array(np.meshgrid(a, b, c)).reshape(3, -1)
    expected = int((stacked.max(axis=0) - stacked.min(axis=0) <= 0.6).sum())
    assert simulate(plan, 5, 0, Servers.EACH, windows).by(5) == expected


def test_a_seed_is_repeatable():
    plan = Filter(Source("A", 100), 0.3, 0.001)
    one, same, other = (simulate(plan, 20, seed) for seed in (1, 1, 2))
    assert one.times.tolist() == same.times.tolist()
    assert one.times.tolist() != other.times.tolist()
    assert one.by(20) == pytest.approx(600, rel=0.2)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_shares_at_their_ends(share):
    plan = Join(Source("A", 10, 50), Source("B", 10, 40), share)
    windows = {("A", "B"): 100.0, ("B", "A"): 100.0}
    for given in (None, windows):
        assert simulate(plan, 30, 1, Servers.EACH, given).by(30) == share * 50 * 40


def test_nothing_arrives():
    assert simulate(Join(Source("A", 0), Source("B", 5), 0.5), 10, 1).by(10) == 0
    assert simulate(Source("A", 5, 0), 10, 1).to(1) is None
    assert Spread.of([]) == Spread.of([1.0, None]) == Spread(None, None)
    assert Spread.of([3.0]) == Spread(3.0, 0.0)
    assert Made(np.array([1.0]), np.array([2]), 1).curve(np.array([0.5, 1.0])).tolist() == [0, 2]


def test_too_many():
    with pytest.raises(TooManyError, match="too many"):
        simulate(Source("A", 1e9), 10, 1)


def test_a_million_events_take_little():
    """Far less than the 10 s that they may take: no clock decides, CPU time is only printed."""
    begun = process_time()
    made = simulate(Join(Source("A", 25_000), Source("B", 25_000), 1e-6, 1e-5), 20, 1)
    assert made.events == pytest.approx(1_000_000, rel=0.01)
    print(f"{process_time() - begun:.2f} s")
