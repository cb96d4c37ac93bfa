"""min-state against all bjtrees, and where greedy choices are not enough (Zhu 6.1.3)."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from random import Random

import pytest

from optimizer.memo import Memo, Part
from optimizer.search.min_state import least, merged, min_state
from optimizer.workload import Budget
from tests.optimizer.search.cases import Case, case, random_case, star


def bjtrees(memo: Memo, parts: Sequence[Part], *, cartesian: bool = True) -> Iterator[Part]:
    """All binary trees, or those whose every join has a predicate."""
    if len(parts) == 1:
        yield parts[0]
        return
    first, *rest = parts
    for size in range(len(rest)):
        for chosen in combinations(rest, size):
            others = [part for part in rest if part not in chosen]
            for one in bjtrees(memo, [first, *chosen], cartesian=cartesian):
                for other in bjtrees(memo, others, cartesian=cartesian):
                    if cartesian or memo.estimator.connected(one.mask, other.mask):
                        yield memo.join((one, other))


def leaves(memo: Memo) -> list[Part]:
    return [memo.leaf(alias) for alias in memo.query.aliases]


@pytest.mark.parametrize("seed", range(40))
def test_greedy_is_optimal_on_stars_in_tuples(seed):
    """The smallest total state of all trees without cartesian joins; with them it may be less."""
    random = Random(seed)
    memo = star(random.randint(3, 6), random, Budget()).memo()
    smallest = min(map(memo.memory, bjtrees(memo, leaves(memo), cartesian=False)))
    edges_only = memo.memory(merged(memo, memo.stored, cartesian=False))
    assert edges_only == pytest.approx(smallest, rel=1e-9), seed


@pytest.mark.parametrize("budget", [Budget(bytes=1e12), Budget(tuples=1e12)])
@pytest.mark.parametrize("shape", ["star", "any", "any windows"])
@pytest.mark.parametrize("seed", range(10))
def test_few_streams_have_the_smallest_states_of_all_trees(seed, shape, budget):
    random = Random(seed)
    n = random.randint(3, 5 if shape == "any windows" else 6)
    if shape == "star":
        given = star(n, random, budget)
    else:
        given = random_case(n, random, budget=budget, general=shape == "any windows")
    memo = given.memo()
    smallest = min(map(memo.memory, bjtrees(memo, leaves(memo))))
    assert memo.memory(min_state(memo)) == pytest.approx(smallest, rel=1e-9), seed


@pytest.mark.parametrize("seed", range(4))
def test_many_streams_have_nearly_the_smallest(seed):
    """Greedy choices alone are up to 30 times off with 9 streams in a star."""
    memo = star(11, Random(seed), Budget(bytes=1e12)).memo()
    greedy = [merged(memo, memo.stored, cartesian=crossed) for crossed in (False, True)]
    found, smallest = memo.memory(min_state(memo)), memo.memory(least(memo, leaves(memo)))
    assert smallest * (1 - 1e-9) <= found <= 1.6 * smallest, seed
    assert found <= min(map(memo.memory, greedy)), seed


def test_greedy_is_not_always_optimal():
    """As Fig. 6.3: B-C is lightest, but then 100 tuples follow; A-B and C-D take 90 together."""
    given = case({"A": 20, "B": 5, "C": 4, "D": 20}, {"A-B": 0.5, "B-C": 0.5, "C-D": 0.5})
    memo = given.memo()
    greedy, found = merged(memo, memo.stored, cartesian=False), min_state(memo)
    assert str(greedy) == "((A (B C)) D)"
    assert str(found) == "((A B) (C D))"
    streams = 20 + 5 + 4 + 20
    assert memo.memory(greedy) == pytest.approx(streams + 10 + 100)
    assert memo.memory(found) == pytest.approx(streams + 50 + 40)


def test_states_of_different_depth_are_compared_by_size():
    """By rate * rate * selectivity alone, A-B-C (0.8) would look lighter than D-E (0.9)."""
    given = case(
        {"A": 1, "B": 1, "C": 1, "D": 1, "E": 1},
        {"A-B": 0.8, "B-C": 1.0, "C-D": 1.0, "D-E": 0.9},
        10.0,
    )
    tree = merged(given.memo(), given.memo().stored, cartesian=False)
    assert "(D E)" in str(tree)


def test_cartesian_joins_may_have_smaller_states():
    """Fig. 6.2: two slow streams are crossed before they meet the fast one."""
    given = case({"A": 100, "B": 1, "C": 1}, {"A-B": 1.0, "A-C": 1.0})
    assert str(min_state(given.memo())) == "(A (B C))"


def test_what_is_light_depends_on_the_unit():
    """Few wide tuples or many narrow ones."""
    rates = {"A": 10.0, "B": 4.0, "C": 6.0}
    widths = {"A": 10.0, "B": 1000.0, "C": 10.0}
    given = case(rates, {"A-B": 0.5, "A-C": 0.5}, widths=widths)
    by_bytes = Case(given.query, given.workload, Budget(bytes=1e9))
    assert str(min_state(given.memo())) == "((A B) C)"
    assert str(min_state(by_bytes.memo())) == "((A C) B)"
