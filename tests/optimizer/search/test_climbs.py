"""state-selection, state-removal and two-layer: what they choose, and why."""

from itertools import pairwise
from random import Random

import pytest

from optimizer.memo import Memo, Part
from optimizer.moves import Enough, combined, dissolved, flipped, inner, joins, neighbours, replaced
from optimizer.search import search
from optimizer.search.min_state import min_state
from optimizer.search.mjoin_ordering import mjoin_ordering
from optimizer.search.state_removal import ratio, state_removal
from optimizer.search.state_selection import candidates, state_selection
from optimizer.workload import Budget, Method
from tests.optimizer.search.cases import Case, case, names, random_case

SET_2 = {"A": 20.0, "B": 20.0, "C": 50.0}
"""The second set of Table 8.1: the bjtree is qualified and the mjoin is not."""


def set_2(budget: Budget) -> Case:
    joins = {"A-B": 0.02, "B-C": 0.5}
    return case(SET_2, joins, 15.0, budget=budget, method=Method.NESTED_LOOP)


@pytest.mark.parametrize("strategy", ["mjoin-init", "bjtree-init", "two-layer", "jtree-finder"])
def test_set_2_of_the_papers(strategy):
    found = search(strategy, set_2(Budget(cpu=1.0)).memo())
    assert found.qualified
    assert str(found.chosen.plan) == "((A B) C)"
    assert found.chosen.total.cpu == pytest.approx(0.621, abs=5e-4)
    assert found.chosen.total.tuples == pytest.approx(3150)


def test_the_frequent_and_small_comes_first():
    memo = set_2(Budget()).memo()
    first, *_ = candidates(memo, mjoin_ordering(memo))
    assert {str(part) for part in first} == {"A", "B"}


def test_a_state_that_does_not_fit_is_skipped():
    """Its smaller neighbour is stored instead of giving up, as Algorithm 3 would."""
    for seed in range(100):
        given = random_case(6, Random(seed), method=Method.NESTED_LOOP)
        mjoin = mjoin_ordering(given.memo())
        memory = given.memo().memory(mjoin) * 1.2
        memo = Memo(given.query, given.workload, Budget(tuples=memory))
        plan = state_selection(memo, mjoin_ordering(memo))
        assert memo.memory(plan) <= memory, seed


def noting(steps: list[Part]) -> Enough:
    """Never enough, but every step is kept."""

    def enough(plan: Part) -> bool:
        steps.append(plan)
        return False

    return enough


@pytest.mark.parametrize("seed", range(60))
def test_every_selected_state_lowers_the_cpu(seed):
    memo = random_case(6, Random(seed)).memo()
    steps: list[Part] = []
    state_selection(memo, mjoin_ordering(memo), noting(steps))
    assert all(b.cost.cpu < a.cost.cpu for a, b in pairwise(steps))


@pytest.mark.parametrize("seed", range(60))
def test_removal_ends_at_the_mjoin(seed):
    """Each step removes one state, the one of the best quality."""
    memo = random_case(6, Random(seed)).memo()
    steps: list[Part] = []
    end = state_removal(memo, min_state(memo), noting(steps))
    assert [len(list(inner(plan))) for plan in steps] == [4, 3, 2, 1, 0]
    assert end.cost.cpu == pytest.approx(mjoin_ordering(memo).cost.cpu)
    for before, after in pairwise(steps):
        ways = [
            (
                ratio(memo, above, state),
                replaced(memo, before, above, dissolved(memo, above, state)),
            )
            for above, state in inner(before)
        ]
        assert str(min(ways, key=lambda way: way[0])[1]) == str(after), seed


def test_a_state_that_costs_more_than_it_saves_is_removed_first():
    """Zhu-Raghavan (6), (7): the bjtree needs more CPU than the mjoin here, under every method."""
    given = case({"A": 10, "B": 10, "C": 0.01}, {"A-B": 1.0, "B-C": 0.0001}, 1.0)
    memo = given.memo()
    tree = memo.join((memo.join((memo.leaf("A"), memo.leaf("B"))), memo.leaf("C")))
    (above, state), *_ = inner(tree)
    assert ratio(memo, above, state) < 0


def test_no_plan_is_not_claimed_where_only_the_bjtrees_need_too_much_cpu():
    """Algorithm 2 returns "no plan" if the bjtree is over the CPU, although a jtree is not."""
    wrong = 0
    for seed in range(150):
        given = random_case(5, Random(seed), method=Method.HASH)
        bjtree = given.memo().total(min_state(given.memo()))
        tighter = Case(given.query, given.workload, Budget(cpu=bjtree.cpu * 0.999))
        if search("jtree-finder", tighter.memo()).qualified:
            assert search("two-layer", tighter.memo()).qualified, seed
            wrong += 1
    assert wrong > 5


@pytest.mark.parametrize("method", Method)
def test_two_layer_seldom_misses_a_plan(method):
    """Budgets between what the mjoin and the bjtree need, where plans are hardest to find."""
    qualified, missed = 0, []
    for seed in range(80):
        random = Random(seed)
        given = between(random_case(random.randint(4, 7), random, method=method), random)
        if search("jtree-finder", given.memo()).qualified:
            qualified += 1
            if not search("two-layer", given.memo()).qualified:
                missed.append(seed)
    assert qualified > 20
    assert len(missed) <= 1, missed


def between(given: Case, random: Random) -> Case:
    """A budget between what mjoin and bjtree need, in both resources."""
    memo = given.memo()
    ends = [memo.total(plan(memo)) for plan in (mjoin_ordering, min_state)]
    (cpu, more_cpu), (tuples, more_tuples) = (
        sorted(amounts) for amounts in ([e.cpu for e in ends], [e.tuples for e in ends])
    )
    return Case(given.query, given.workload, Budget(
        cpu=cpu + random.random() * (more_cpu - cpu),
        tuples=tuples + random.random() * (more_tuples - tuples),
    ))  # fmt: skip


def test_the_bound_holds_for_every_plan():
    for seed in range(60):
        random = Random(seed)
        given = random_case(4, random, grouped=random.randint(0, 2), general=seed % 10 == 0)
        memo = given.memo()
        for strategy in ("mjoin-ordering", "min-state", "jtree-finder"):
            for offer in search(strategy, given.memo()).front:
                assert offer.total.cpu >= memo.bound.cpu * (1 - 1e-9), seed
                assert offer.total.tuples >= memo.bound.tuples * (1 - 1e-9), seed
                assert offer.total.bytes >= memo.bound.bytes * (1 - 1e-9), seed


def test_a_group_by_is_pushed_down_where_it_eases():
    """Ten thousand readings a second become ten; the join then probes with a thousandth of them."""
    given = case(
        {"A": 10, "B": 10_000}, {"A-B": 0.01}, grouped=True, combine={"B": 10.0},
        budget=Budget(cpu=0.01, tuples=1000),
    )  # fmt: skip
    for strategy in ("mjoin-ordering", "min-state", "two-layer", "jtree-finder"):
        found = search(strategy, given.memo())
        assert str(found.chosen.plan) == "(A [B])", strategy
        assert found.qualified, strategy


def test_a_group_by_is_left_on_top_where_nothing_is_combined():
    given = case(
        {"A": 10, "B": 100}, {"A-B": 0.01}, grouped=True, combine={"B": 100.0},
        budget=Budget(cpu=1.0),
    )  # fmt: skip
    for strategy in ("mjoin-ordering", "two-layer", "jtree-finder"):
        assert str(search(strategy, given.memo()).chosen.plan) == "(A B)", strategy


@pytest.mark.parametrize("seed", range(30))
def test_moves_keep_every_stream(seed):
    random = Random(seed)
    memo = random_case(5, random, grouped=2).memo()
    plan = combined(memo, min_state(memo))
    everything = (1 << 5) - 1
    around = list(neighbours(memo, plan))
    assert len(around) > 10
    for other in around:
        assert other.mask == everything
        assert all(len(join.parts) > 1 for join in joins(other))
    alias = memo.combinable[0]
    assert str(flipped(memo, flipped(memo, plan, alias), alias)) == str(plan)


def test_names():
    assert len(set(names(50))) == 50
