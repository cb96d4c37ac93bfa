"""Difference bounds and their volumes, against shortest paths, exact formulas and Monte Carlo."""

from itertools import pairwise
from math import inf, isclose, prod

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from optimizer.window import Bounds, WindowError, close, everywhere, ranges, volume

NAMES = ("a", "b", "c", "d", "e")


def limits(low: int, high: int) -> st.SearchStrategy[dict[tuple[str, str], int]]:
    """Limits of some ordered pairs."""
    pairs = [(i, j) for i in NAMES for j in NAMES if i != j]
    return st.dictionaries(st.sampled_from(pairs), st.integers(low, high), max_size=len(pairs))


@st.composite
def closed(draw: st.DrawFn, slack: int = 0) -> Bounds:
    """Bounds that event times exist for: those drawn meet them, with that much slack at least."""
    times = {name: draw(st.integers(-20, 20)) for name in NAMES}
    spare = draw(limits(slack, 40))
    return close(NAMES, {(i, j): times[i] - times[j] + spare.get((i, j), 100) for i, j in _pairs()})


def _pairs() -> list[tuple[str, str]]:
    return [(i, j) for i in NAMES for j in NAMES if i != j]


def shortest_paths(given_limits: dict[tuple[str, str], int]) -> dict[str, dict[str, float]]:
    """`x_i - x_j <= w` is an edge from i to j; a path's length limits its ends' difference."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(NAMES)
    graph.add_weighted_edges_from((i, j, w) for (i, j), w in given_limits.items())
    return dict(nx.all_pairs_bellman_ford_path_length(graph))


# --- closure -------------------------------------------------------------------------------------


@given(limits(0, 20))
def test_closure_is_the_shortest_paths(some):
    expected = shortest_paths(some)
    if any(j not in expected[i] for i, j in _pairs()):
        with pytest.raises(WindowError):
            close(NAMES, some)
        return
    bounds = close(NAMES, some)
    assert all(bounds[i, j] == expected[i][j] for i, j in _pairs())


@given(limits(-6, 30))
def test_negative_cycles_are_named(some):
    every = {pair: some.get(pair, 30) for pair in _pairs()}
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_weighted_edges_from((i, j, w) for (i, j), w in every.items())
    if nx.negative_edge_cycle(graph):
        with pytest.raises(WindowError, match="exclude each other") as caught:
            close(NAMES, every)
        assert set(caught.value.pair) <= set(NAMES)
    else:
        expected = shortest_paths(every)
        bounds = close(NAMES, every)
        assert all(bounds[i, j] == expected[i][j] for i, j in _pairs())


@given(closed())
def test_closure_is_idempotent(bounds):
    assert close(NAMES, {(i, j): bounds[i, j] for i, j in _pairs()}) == bounds


@given(closed())
def test_closure_is_tight(bounds):
    """Every limit is reached by event times that meet all of them."""
    for i, j in _pairs():
        times = {k: bounds[k, j] if k != j else 0 for k in NAMES}
        assert times[i] - times[j] == bounds[i, j]
        assert all(times[p] - times[q] <= bounds[p, q] for p, q in _pairs())


def test_an_unbounded_pair_is_named():
    with pytest.raises(WindowError, match="no window bounds a against b") as caught:
        close(("a", "b"), {("b", "a"): 5})
    assert caught.value.pair == ("a", "b")


def test_windows_that_exclude_each_other_are_named():
    with pytest.raises(WindowError, match="the windows of a and b exclude each other") as caught:
        close(("a", "b"), {("a", "b"): -1, ("b", "a"): 0})
    assert caught.value.pair == ("a", "b")


def test_a_long_cycle_that_excludes_itself_is_named():
    with pytest.raises(WindowError, match="exclude each other"):
        close(("a", "b", "c"), {("a", "b"): 1, ("b", "c"): 1, ("c", "a"): -3})


def test_bounds_must_be_closed():
    with pytest.raises(ValueError, match="must be closed"):
        Bounds(("a", "b", "c"), ((0, 1, 9), (1, 0, 1), (9, 1, 0)))


def test_one_stream_needs_no_window():
    assert close(("a",), {}) == Bounds(("a",), ((0,),))


# --- views ---------------------------------------------------------------------------------------


@given(closed(), st.sets(st.sampled_from(NAMES), min_size=1))
def test_restrict_keeps_what_lies_between(bounds, names):
    some = bounds.restrict(sorted(names))
    assert set(some.names) == names
    assert all(some[i, j] == bounds[i, j] for i in names for j in names if i != j)
    assert some.agree(bounds)


@given(closed(), st.data())
def test_restrict_twice_is_restrict_once(bounds, data):
    outer = data.draw(st.lists(st.sampled_from(NAMES), min_size=2, unique=True))
    inner = data.draw(st.lists(st.sampled_from(outer), min_size=1, unique=True))
    assert bounds.restrict(outer).restrict(inner) == bounds.restrict(inner)


@given(closed(), st.sampled_from(NAMES), st.sets(st.sampled_from(NAMES)))
def test_retention_waits_for_the_last_partner(bounds, name, partners):
    partners -= {name}
    waits = bounds.retention(name, partners)
    assert waits == max([0, *(bounds[partner, name] for partner in partners)])


def test_retention_by_hand():
    bounds = close(("a", "b"), {("a", "b"): -2, ("b", "a"): 7})
    assert bounds.retention("a", ["b"]) == 7
    assert bounds.retention("b", ["a"]) == 0, "a is always older: none is still to come"
    assert bounds.retention("a", []) == 0


def test_a_global_window():
    bounds = everywhere(("a", "b", "c"), 10)
    assert {bounds[i, j] for i in "abc" for j in "abc" if i != j} == {10}


def test_ranges_bound_every_partner():
    assert ranges(("a", "b", "c"), {"a": 5, "c": 1}) == {
        ("b", "a"): 5, ("c", "a"): 5, ("a", "c"): 1, ("b", "c"): 1,
    }  # fmt: skip


# --- volumes -------------------------------------------------------------------------------------


def by_sampling(matrix: tuple[tuple[int, ...], ...], samples: int = 200_000) -> tuple[float, float]:
    """Monte Carlo: points thrown into the box around the first; the volume and its error."""
    random = np.random.default_rng(7)
    widths = [matrix[i][0] + matrix[0][i] for i in range(1, len(matrix))]
    points = [np.zeros(samples)]
    points += [random.uniform(-matrix[0][i], matrix[i][0], samples) for i in range(1, len(matrix))]
    inside = np.ones(samples, dtype=bool)
    for i, one in enumerate(points):
        for j, other in enumerate(points):
            inside &= one - other <= matrix[i][j]
    share = float(inside.mean())
    box = prod(widths)
    return share * box, 4 * box * (share * (1 - share) / samples) ** 0.5


@pytest.mark.parametrize(
    ("matrix", "exact"),
    [
        (((0,),), 1),
        (((0, 5), (5, 0)), 10),
        (((0, 5), (-2, 0)), 3),
        # n streams within W of each other: n W^(n-1)
        (everywhere(NAMES[:3], 2).matrix, 3 * 2**2),
        (everywhere(NAMES[:4], 3).matrix, 4 * 3**3),
        (everywhere(NAMES, 2).matrix, 5 * 2**4),
        # CQL's ranges 2, 3, 5: whichever is the newest, the others lie in their windows
        (close(NAMES[:3], ranges(NAMES[:3], {"a": 2, "b": 3, "c": 5})).matrix, 6 + 10 + 15),
        # a chain of intervals: the product of the widths
        (close("abc", {("a", "b"): 0, ("b", "a"): 4, ("b", "c"): 1, ("c", "b"): 6}).matrix, 28),
        # a star of intervals
        (close("abc", {("a", "b"): 1, ("b", "a"): 1, ("a", "c"): 2, ("c", "a"): 3}).matrix, 10),
        # 0 <= b - a <= 2 and 0 <= c - b <= 2 and c - a <= 3: a square without its corner
        (
            close(
                "abc",
                {("a", "b"): 0, ("b", "a"): 2, ("b", "c"): 0, ("c", "b"): 2, ("c", "a"): 3},
            ).matrix,
            3.5,
        ),
        # no width
        (close("ab", {("a", "b"): 0, ("b", "a"): 0}).matrix, 0),
    ],
)
def test_volume_by_hand(matrix, exact):
    assert isclose(volume(matrix), exact, rel_tol=0.02, abs_tol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_volume_against_monte_carlo(seed):
    random = np.random.default_rng(seed)
    names = NAMES[: random.integers(3, 5)]
    some = {(i, j): int(random.integers(0, 40)) for i in names for j in names if i != j}
    matrix = close(names, some).matrix
    sampled, error = by_sampling(matrix)
    assert abs(volume(matrix) - sampled) <= error + 0.03 * sampled


@given(closed(1))
def test_volume_grows_with_the_windows(bounds):
    wider = close(NAMES, {pair: 2 * bounds[pair] for pair in _pairs()})
    assert isclose(volume(wider.matrix), 16 * volume(bounds.matrix), rel_tol=1e-9)


@given(closed(1), st.permutations(range(len(NAMES))))
def test_volume_knows_no_order(bounds, order):
    shuffled = bounds.restrict([NAMES[i] for i in order])
    assert isclose(volume(shuffled.matrix), volume(bounds.matrix), rel_tol=0.05)


@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 30)), min_size=1, max_size=4))
def test_volume_of_a_chain_is_the_product_of_its_widths(intervals):
    names = NAMES[: len(intervals) + 1]
    some = {}
    for (one, other), (low, width) in zip(pairwise(names), intervals, strict=True):
        some[other, one], some[one, other] = low + width, -low
    matrix = close(names, some).matrix
    assume(all(entry < inf for row in matrix for entry in row))
    assert isclose(volume(matrix), prod(width for _, width in intervals))
