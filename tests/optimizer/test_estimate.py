"""Rates and state sizes, by hand and against simulated streams with the real semantics."""

from collections.abc import Sequence
from itertools import permutations, product
from math import prod, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from optimizer.estimate import Estimate, Estimator, Volumes, bits, type_size
from optimizer.plan import Branch, Join, Leaf, build, parse, walk
from optimizer.query import Query
from optimizer.window import MICROSECONDS, Bounds, volume
from optimizer.workload import Workload, WorkloadError
from tests.optimizer.builders import (
    between,
    cases,
    counts,
    cql,
    every_tree,
    joined,
    total,
    trees,
    where,
    window,
    workload,
)

# --- by hand -------------------------------------------------------------------------------------


def of(query: Query, load: Workload, tree: str) -> Estimate:
    """The estimate of what the topmost join puts out."""
    plan = build(query, parse(f"({tree})"))
    estimates = Estimator(query, load).plan(plan)
    joins = [node for node in walk(plan.root) if isinstance(node, Join)]
    return estimates[joins[-1]]


def state(query: Query, load: Workload, aliases: str, tree: str) -> Estimate:
    """The estimate of the join input over those streams."""
    plan = build(query, parse(tree))
    estimates = Estimator(query, load).plan(plan)
    joins = [node for node in walk(plan.root) if isinstance(node, Join)]
    return estimates[next(p for j in joins for p in j.parts if p.aliases == set(aliases))]


ABC = joined("ABC", [("A", "B"), ("B", "C")], 5)
LOAD = workload({"A": 2, "B": 3, "C": 4}, {("A", "B"): 0.1, ("B", "C"): 0.5})


def test_one_window_by_hand():
    ab = state(ABC, LOAD, "AB", "((A B) C)")
    assert ab.rate == pytest.approx(2 * 2 * 3 * 0.1 * 5)
    assert ab.held == pytest.approx(2 * 3 * 0.1 * 5**2)
    assert of(ABC, LOAD, "A B C").rate == pytest.approx(3 * 2 * 3 * 4 * 0.1 * 0.5 * 5**2)


def test_ranges_by_hand():
    """A waits 5 s, B 7 s: a new A meets B's of the last 7 s, a new B meets A's of the last 5."""
    query = joined("ABC", [("A", "B"), ("B", "C")], cql({"A": 5, "B": 7, "C": 2}))
    ab = state(query, LOAD, "AB", "((A B) C)")
    assert ab.rate == pytest.approx(2 * 3 * 0.1 * (5 + 7))
    assert ab.held == pytest.approx(2 * 5 * 3 * 7 * 0.1)
    triples = 5 * 7 + 5 * 2 + 7 * 2
    assert of(query, LOAD, "A B C").rate == pytest.approx(2 * 3 * 4 * 0.1 * 0.5 * triples)


def test_between_by_hand():
    """B from 2 s before A to 3 s after it: A's wait 3 s for B, B's wait 2 s for A."""
    query = joined("AB", [("A", "B")], between("AB", {("A", "B"): (-2, 3)}))
    load = workload({"A": 2, "B": 3}, {("A", "B"): 0.1})
    assert of(query, load, "A B").rate == pytest.approx(2 * 3 * 0.1 * (3 + 2))
    assert state(query, load, "A", "(A B)").held == pytest.approx(2 * 3)
    assert state(query, load, "B", "(A B)").held == pytest.approx(3 * 2)


def test_what_always_comes_first_is_never_waited_for():
    """B comes 1 to 3 s after A: no A ever finds its B there already."""
    query = joined("AB", [("A", "B")], between("AB", {("A", "B"): (1, 3)}))
    load = workload({"A": 2, "B": 3}, {("A", "B"): 0.1})
    assert of(query, load, "A B").rate == pytest.approx(2 * 3 * 0.1 * 2)
    assert state(query, load, "A", "(A B)").held == pytest.approx(2 * 3)
    assert state(query, load, "B", "(A B)").held == 0


def test_a_join_that_completes_too_late_keeps_nothing():
    """C comes within 5 s of A, B only 10 to 20 s after it: no pair of A and B waits for a C."""
    bounds = between("ABC", {("A", "B"): (10, 20), ("A", "C"): (0, 5)})
    query = joined("ABC", [("A", "B"), ("A", "C")], bounds)
    load = workload({"A": 2, "B": 3, "C": 4}, {("A", "B"): 0.1, ("A", "C"): 0.5})
    assert state(query, load, "AB", "((A B) C)").held == 0
    assert state(query, load, "AC", "((A C) B)").held > 0
    assert of(query, load, "(A B) C").rate == pytest.approx(2 * 3 * 4 * 0.1 * 0.5 * 10 * 5)


@pytest.mark.parametrize("unit", [1, 0.1, 0.001])
def test_fractions_of_seconds_are_exact(unit):
    """A chain of intervals encloses the product of their lengths, whatever the unit."""
    intervals = {("A", "B"): (-unit, 2 * unit), ("B", "C"): (0, 3 * unit), ("C", "D"): (-unit, 0)}
    bounds = between("ABCD", intervals)
    exact = 3 * unit * 3 * unit * unit
    assert volume(bounds.matrix) / MICROSECONDS**3 == pytest.approx(exact, rel=1e-12)


def test_selects_thin_out_wherever_they_are():
    query = joined("ABC", [("A", "B"), ("B", "C")], 5, selects=[where("A.v"), where("A.w")])
    half = Workload(LOAD.streams, LOAD.joins, selects={"A.v > 5": 0.5})
    assert state(query, half, "A", "(A B C)").rate == pytest.approx(2 * 0.5)
    quarter = Workload(LOAD.streams, LOAD.joins, selects={"A": 0.25})
    assert state(query, quarter, "A", "(A B C)").rate == pytest.approx(2 * 0.25)
    both = Workload(LOAD.streams, LOAD.joins, selects={"A": 0.25, "A.v > 5": 0.5})
    assert state(query, both, "A", "(A B C)").rate == pytest.approx(2 * 0.5 * 0.25)
    assert of(query, both, "A B C").rate == pytest.approx(of(ABC, LOAD, "A B C").rate / 8)


def test_widths_by_hand():
    """Four numbers in 100 bytes; what nobody reads any more is dropped."""
    assert state(ABC, LOAD, "A", "(A B C)").width == pytest.approx(75)  # k, v, ts
    assert state(ABC, LOAD, "AB", "((A B) C)").width == pytest.approx(50 + 75)  # A without k
    assert of(ABC, LOAD, "(A B) C").width == pytest.approx(50 + 75 + 75)


def test_groups_by_hand():
    query = joined("AB", [("A", "B")], 5, grouping=counts("A.v", size=60, slide=20))
    load = workload({"A": 2, "B": 3}, {("A", "B"): 0.1}, groups=30)
    plan = build(query, parse("(A B)"))
    found = Estimator(query, load).plan(plan)[plan.root.inputs[0]]
    assert found.rate == pytest.approx(30 / 20)
    assert found.held == pytest.approx(30 * 3)
    assert found.width == 8 * 4  # the key, n, and the window's start and end


def test_combining_cannot_add_tuples():
    query = joined("AB", [("A", "B")], 5, grouping=counts("A.v", total("s", "B.w")))
    for left, expected in ((1.5, 1.5), (99, 3)):
        load = workload({"A": 2, "B": 3}, {("A", "B"): 0.1}, combine={"B": left})
        assert state(query, load, "B", "(A [B])").rate == pytest.approx(expected)


@pytest.mark.parametrize(
    ("type_name", "size"),
    [("INT", 4), ("int", 4), ("BIGINT", 8), ("DECIMAL(10, 2)", 16), ("STRING", 16), ("XML", 8)],
)
def test_type_sizes(type_name, size):
    assert type_size(type_name) == size


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (workload({"A": 1, "B": 1}, {}), "the workload says nothing of stream C"),
        (workload(dict.fromkeys("ABC", 1), {("A", "B"): 0.1}),
         "the workload has no selectivity between B and C"),
        (workload(dict.fromkeys("ABC", 1), {("A", "B"): 1, ("B", "C"): 1, ("A", "C"): 1}),
         "the query has no predicate between A and C"),
        (workload(dict.fromkeys("ABCD", 1), {("A", "B"): 1, ("B", "C"): 1}),
         "the query has no stream D"),
    ],
)  # fmt: skip
def test_workloads_of_other_queries_are_refused(load, message):
    with pytest.raises(WorkloadError) as refused:
        Estimator(ABC, load)
    assert str(refused.value) == message


# --- against simulated streams -------------------------------------------------------------------

SECONDS, BEFORE, RUNS = 40.0, 14.0, 100
"""How long the streams are simulated; from when on they are observed; how often."""

WINDOWS = {
    "one window": window("ABC", 3),
    "ranges": cql({"A": 4, "B": 1, "C": 2}),
    "after one another": between("ABC", {("A", "B"): (0, 2), ("B", "C"): (0, 3)}),
    "around": between("ABC", {("A", "B"): (-1, 2), ("B", "C"): (-2, 1)}),
    "long after": between("ABC", {("A", "B"): (2, 4), ("A", "C"): (1, 6)}),
    "all pairs": between("ABC", {("A", "B"): (-2, 2), ("B", "C"): (-1, 3), ("A", "C"): (-1, 2)}),
}
RATES = {"A": 1.5, "B": 2.5, "C": 2.0}
SELECTIVITIES = {("A", "B"): 0.4, ("B", "C"): 0.7}


class Simulated:
    """One run: Poisson arrivals, and coins for which pairs of tuples match."""

    def __init__(self, bounds: Bounds, random: Generator) -> None:
        self.bounds = bounds
        self.times = {a: random.uniform(0, SECONDS, random.poisson(rate * SECONDS))
                      for a, rate in RATES.items()}  # fmt: skip
        self.coins = {
            (a, b): random.random((len(self.times[a]), len(self.times[b]))) < selectivity
            for (a, b), selectivity in SELECTIVITIES.items()
        }

    def spread(self, values: NDArray[Any], axes: str, aliases: str) -> NDArray[Any]:
        """Along those streams' axes, out of one axis for each stream."""
        shape = [len(self.times[a]) if a in axes else 1 for a in aliases]
        return values.reshape(shape)

    def combinations(self, aliases: str) -> tuple[NDArray[Any], list[NDArray[Any]]]:
        """Which combinations of tuples are results, and the times of their tuples."""
        times = [self.spread(self.times[a], a, aliases) for a in aliases]
        found = np.array(True)
        for (i, a), (j, b) in permutations(enumerate(aliases), 2):
            found = found & (times[i] - times[j] <= self.bounds[a, b] / MICROSECONDS)
            if (a, b) in self.coins:
                found = found & self.spread(self.coins[a, b], a + b, aliases)
        return found, times

    def rate(self, aliases: str, newest: str) -> float:
        """Results that a tuple of one stream completes, per second."""
        found, times = self.combinations(aliases)
        last = np.maximum.reduce(np.broadcast_arrays(*times))
        completes = last == times[aliases.index(newest)]
        return float((found & completes & (last >= BEFORE)).sum() / (SECONDS - BEFORE))

    def alive(self, aliases: str) -> float:
        """Results at the end of which every tuple may still meet a partner to come."""
        found, times = self.combinations(aliases)
        partners = [p for p in RATES if p not in aliases]
        for a, at in zip(aliases, times, strict=True):
            longest = max(self.bounds[p, a] for p in partners) / MICROSECONDS
            found = found & (SECONDS - at <= longest)
        return float(found.sum())


def agrees(observed: Sequence[float], expected: float) -> bool:
    """Whether a mean is within four standard errors of what was expected."""
    error = float(np.std(observed, ddof=1)) / sqrt(len(observed))
    return abs(float(np.mean(observed)) - expected) <= 4 * error + 1e-9


@pytest.mark.parametrize("kind", WINDOWS)
def test_estimates_agree_with_simulated_streams(kind):
    random = default_rng(7)
    runs = [Simulated(WINDOWS[kind], random) for _ in range(RUNS)]
    query = joined("ABC", SELECTIVITIES, WINDOWS[kind])
    load = workload(RATES, SELECTIVITIES)
    estimator = Estimator(query, load)
    for aliases in ("A", "B", "C", "AB", "BC"):
        rest = [Leaf(other) for other in "ABC" if other not in aliases]
        part = parse(f"({' '.join(aliases)})") if len(aliases) > 1 else Leaf(aliases)
        found = state(query, load, aliases, str(Branch((part, *rest))))
        assert agrees([run.alive(aliases) for run in runs], found.held), aliases
    for aliases in ("AB", "BC", "ABC"):
        mask = sum(1 << "ABC".index(a) for a in aliases)
        factor = prod(RATES[a] for a in aliases)
        factor *= prod(s for (a, b), s in SELECTIVITIES.items() if {a, b} <= set(aliases))
        for newest in aliases:
            expected = factor * estimator.volumes.arrival(mask, 1 << "ABC".index(newest))
            observed = [run.rate(aliases, newest) for run in runs]
            assert agrees(observed, expected), (aliases, newest)


def test_the_simulation_would_tell_a_wrong_estimate():
    runs = [Simulated(WINDOWS["ranges"], default_rng(seed)) for seed in range(RUNS)]
    query = joined("ABC", SELECTIVITIES, WINDOWS["ranges"])
    right = of(query, workload(RATES, SELECTIVITIES), "A B C").rate
    observed = [sum(run.rate("ABC", newest) for newest in "ABC") for run in runs]
    assert agrees(observed, right)
    assert not agrees(observed, 1.25 * right)
    assert not agrees(observed, 0.75 * right)


# --- properties ----------------------------------------------------------------------------------


@given(cases(), st.randoms(use_true_random=False), st.data())
def test_the_order_in_which_streams_are_named_does_not_matter(case, random, data):
    query, load = case
    names = list(query.aliases)
    random.shuffle(names)
    streams, bounds = query.streams, query.bounds.restrict(names)
    other = Query(
        tuple((name, streams[name]) for name in names), query.predicates, bounds, query.output
    )
    tree = data.draw(trees(query.aliases))
    ours = Estimator(query, load).plan(build(query, tree))
    theirs = Estimator(other, load).plan(build(other, tree))
    assert by_aliases(ours) == by_aliases(theirs)


def by_aliases(estimates):
    return sorted(
        (type(node).__name__, sorted(node.aliases), *map(figure, (e.rate, e.held, e.width)))
        for node, e in estimates.items()
    )


def figure(value: float) -> float:
    return float(f"{value:.9g}")


@settings(max_examples=40)
@given(cases(3, 5))
def test_all_trees_put_out_the_same_rate(case):
    query, load = case
    estimator = Estimator(query, load)
    flat = build(query, Branch(tuple(map(Leaf, query.aliases))))
    expected = estimator.node(flat.root)
    for tree in every_tree(query.aliases):
        root = estimator.node(build(query, tree).root)
        assert root.rate == pytest.approx(expected.rate)
        assert root.width == pytest.approx(expected.width)


@given(cases())
def test_some_stream_completes_each_result(case):
    query, _ = case
    volumes = Volumes(query.bounds)
    full = (1 << len(query.aliases)) - 1
    parts = [volumes.arrival(full, 1 << i) for i in bits(full)]
    assert volumes.arrival(full, full) == pytest.approx(sum(parts))
    exact = volume(query.bounds.matrix) / MICROSECONDS ** (len(query.aliases) - 1)
    assert sum(parts) == pytest.approx(exact, rel=0.1)


@pytest.mark.parametrize("seconds", list(product((1, 4), (2, 3), (5,))))
def test_volumes_of_ranges_are_exact(seconds):
    """The sum over which stream comes last of the product of the others' windows."""
    bounds = cql(dict(zip("ABC", seconds, strict=True)))
    a, b, c = seconds
    assert volume(bounds.matrix) / MICROSECONDS**2 == pytest.approx(a * b + b * c + a * c)
