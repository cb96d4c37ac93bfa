"""Probe orders: exact against all permutations, IK against all orders that a tree allows."""

from itertools import permutations, product
from random import Random

import pytest

from optimizer.cost.dual import Steps, join_cost, probe_cost
from optimizer.estimate import Estimate, Estimator
from optimizer.lattice import beam, exact
from optimizer.ordering import (
    EXACT,
    FEW,
    PAIRED,
    best_orders,
    exact_orders,
    ik_orders,
    spanning_tree,
)
from optimizer.workload import Method
from tests.optimizer.search.cases import Case, case, names, random_case


def inputs(given: Case) -> tuple[list[Estimate], Estimator]:
    memo = given.memo()
    return [memo.leaf(alias).estimate for alias in given.query.aliases], memo.estimator


def work(start, order, parts, estimator):
    return probe_cost(parts[start], [parts[other] for other in order], estimator)


def compatible(start, order, tree):
    """Every input behind its parent, in the tree rooted at the start."""
    reached = {start}
    for other in order:
        if not reached & set(tree[other]):
            return False
        reached.add(other)
    return True


@pytest.mark.parametrize("method", Method)
@pytest.mark.parametrize("seed", range(60))
def test_ik_is_optimal_on_trees(seed, method):
    random = Random(seed)
    n = random.randint(2, 6 if seed % 10 else 7)
    parts, estimator = inputs(random_case(n, random, cyclic=False, method=method))
    steps = Steps.of(parts, estimator)
    tree = spanning_tree(steps, cartesian=False)
    for start, order in enumerate(ik_orders(tree, steps)):
        others = [other for other in range(n) if other != start]
        least = min(
            work(start, other, parts, estimator)
            for other in permutations(others)
            if compatible(start, other, tree)
        )
        assert compatible(start, order, tree)
        assert work(start, order, parts, estimator) == pytest.approx(least, rel=1e-9), seed


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_exact_orders_are_the_best_of_all(seed, general):
    random = Random(seed)
    n = random.randint(2, 5 if general else 6)
    parts, estimator = inputs(random_case(n, random, general=general))
    for start, order in enumerate(exact_orders(parts, estimator)):
        others = [other for other in range(n) if other != start]
        least = min(work(start, other, parts, estimator) for other in permutations(others))
        assert work(start, order, parts, estimator) == pytest.approx(least, rel=1e-9), seed


@pytest.mark.parametrize("seed", range(40))
def test_steps_cost_what_the_cost_model_says(seed):
    """But for scans, which cost the same in every order."""
    random = Random(seed)
    n = random.randint(2, 12)
    parts, estimator = inputs(random_case(n, random))
    steps = Steps.of(parts, estimator)
    for start in range(n):
        order = tuple(random.sample([other for other in range(n) if other != start], n - 1))
        scans = sum(estimator.workload.rates.scan * parts[other].held for other in order)
        cost = parts[start].rate * steps.cost(start, order) + scans
        assert cost == pytest.approx(work(start, order, parts, estimator), rel=1e-9), seed


@pytest.mark.parametrize("seed", range(24))
def test_arrays_find_what_lists_find(seed):
    """The dynamic programming for few inputs is tried against all permutations above."""
    random = Random(seed)
    parts, estimator = inputs(random_case(random.randint(3, FEW), random))
    steps = Steps.of(parts, estimator)
    orders = zip(exact(steps), exact_orders(parts, estimator), strict=True)
    for start, (found, best) in enumerate(orders):
        assert work(start, found, parts, estimator) == pytest.approx(
            work(start, best, parts, estimator), rel=1e-9
        ), seed


@pytest.mark.parametrize("seed", range(6))
def test_twelve_inputs_are_ordered_exactly(seed):
    """No probe that comes earlier or later would be cheaper, nor two that change places."""
    parts, estimator = inputs(random_case(EXACT, Random(seed)))
    steps = Steps.of(parts, estimator)
    for start, order in enumerate(best_orders(parts, estimator)):
        least = steps.cost(start, order)
        around = (moved(order, i, j) for i, j in product(range(EXACT - 1), repeat=2))
        assert least <= min(steps.cost(start, other) for other in around) * (1 + 1e-9), seed


def moved(order, old, new):
    rest = [*order[:old], *order[old + 1 :]]
    return (*rest[:new], order[old], *rest[new:])


@pytest.mark.parametrize("seed", range(12))
def test_more_inputs_are_ordered_nearly_as_well_as_exactly(seed):
    """IK alone is up to 4.8 times off there."""
    parts, estimator = inputs(random_case(EXACT + 1 + seed % 2, Random(seed)))
    quick, best = (
        join_cost(parts, orders, estimator).cpu
        for orders in (best_orders(parts, estimator), exact_orders(parts, estimator))
    )
    assert best * (1 - 1e-9) <= quick <= 1.05 * best, seed


def test_windows_that_differ_by_pair_are_ordered_exactly():
    """No probe that comes earlier or later would be cheaper."""
    parts, estimator = inputs(random_case(PAIRED, Random(1), general=True))

    def cost(start, order):
        return probe_cost(parts[start], [parts[other] for other in order], estimator)

    for start, order in enumerate(best_orders(parts, estimator)):
        around = (moved(order, i, j) for i, j in product(range(PAIRED - 1), repeat=2))
        assert cost(start, order) <= min(cost(start, other) for other in around) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_more_of_them_are_ordered_nearly_as_well(seed):
    """What steps say of them alone is up to 1.9 times off there."""
    parts, estimator = inputs(random_case(PAIRED + 1, Random(seed), general=True))
    quick, best = (
        join_cost(parts, orders, estimator).cpu
        for orders in (best_orders(parts, estimator), exact_orders(parts, estimator))
    )
    assert best * (1 - 1e-9) <= quick <= 1.05 * best


@pytest.mark.parametrize("seed", range(6))
def test_a_beam_passes_through_each_set_once(seed):
    """On cases as wide as the beam and no wider it is exact: nothing is lost to repetitions."""
    steps = Steps.of(*inputs(random_case(4, Random(seed))))
    for start, (found, best) in enumerate(zip(beam(steps), exact(steps), strict=True)):
        assert steps.cost(start, found) == pytest.approx(steps.cost(start, best), rel=1e-9)


@pytest.mark.parametrize("rate", [0.0, 1e-300, 1e300])
def test_rates_of_any_size(rate):
    """Overflow is no error, and every input is probed once."""
    aliases = names(EXACT + 2)
    rates = dict.fromkeys(aliases, rate) | {aliases[3]: 0.0}
    parts, estimator = inputs(case(rates, {}, 5.0))
    for count in (EXACT, EXACT + 2):
        for start, order in enumerate(best_orders(parts[:count], estimator)):
            assert sorted((start, *order)) == list(range(count))


def test_a_cartesian_step_may_be_cheaper():
    """Fig. 5.3 with W = 5: B->C->A makes 550 intermediate and final tuples, B->A->C 750."""
    given = case({"A": 50, "B": 2, "C": 5}, {"A-B": 0.5, "A-C": 0.08}, 5.0)
    parts, estimator = inputs(given)
    each = given.workload.unit_costs.join
    assert work(1, (0, 2), parts, estimator) / each == pytest.approx(750)
    assert work(1, (2, 0), parts, estimator) / each == pytest.approx(550)
    assert exact_orders(parts, estimator)[1] == (2, 0)
    steps = Steps.of(parts, estimator)
    assert ik_orders(spanning_tree(steps, cartesian=False), steps)[1] == (0, 2)
    assert ik_orders(spanning_tree(steps, cartesian=True), steps)[1] == (2, 0)


@pytest.mark.parametrize("n", [1, 2])
def test_few_inputs(n):
    given = case(dict.fromkeys(names(n), 3.0), {"A-B": 0.5} if n == 2 else {})
    parts, estimator = inputs(given)
    assert len(best_orders(parts, estimator)) == n
