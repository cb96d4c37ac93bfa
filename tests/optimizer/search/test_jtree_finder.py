"""jtree-finder against brute force: every jtree, every probe order, every choice to combine."""

from itertools import product
from random import Random

import pytest

from optimizer.cost.dual import Cost
from optimizer.memo import Memo
from optimizer.search import search
from optimizer.search.jtree_finder import MOST
from optimizer.workload import Budget, Method
from tests.optimizer.search.cases import Case, all_jtrees, case, names, pareto, random_case


def everything(given: Case):
    """All plans, over all ways to combine inputs first."""
    memo = given.memo()
    ways = [
        (False, True) if alias in memo.combinable else (False,) for alias in given.query.aliases
    ]
    for flags in product(*ways):
        pairs = zip(given.query.aliases, flags, strict=True)
        yield from all_jtrees(memo, [memo.leaf(alias, combined=flag) for alias, flag in pairs])


def with_budget(given: Case, costs: list[Cost], random: Random) -> Case:
    """A budget that some plans meet: between the least and the most that any needs, or none."""
    if random.random() < 0.2:
        return given
    unit = random.choice(("tuples", "bytes"))
    cpu, memory = (
        random.uniform(0.9, 1.0) * min(amounts)
        + random.random() ** 3 * (max(amounts) - min(amounts))
        for amounts in ([c.cpu for c in costs], [getattr(c, unit) for c in costs])
    )
    return Case(given.query, given.workload, Budget(cpu=cpu, **{unit: memory}))


def check(given: Case, random: Random, seed: int) -> None:
    memo = given.memo()
    costs = [memo.total(plan) for plan in everything(given)]
    given = with_budget(given, costs, random)
    found = search("jtree-finder", given.memo())
    qualified = [cost for cost in costs if cost.within(given.budget)]
    assert found.qualified == bool(qualified), seed
    assert found.complete
    if qualified:
        expected = pareto(qualified, given.budget)
        front = pareto([offer.total for offer in found.front], given.budget)
        assert len(front) == len(expected), seed
        for point, other in zip(front, expected, strict=True):
            assert point == pytest.approx(other, rel=1e-9), seed


@pytest.mark.parametrize("method", Method)
@pytest.mark.parametrize("first", range(0, 400, 100))
def test_the_front_is_that_of_brute_force(first, method):
    for seed in range(first, first + 100):
        random = Random(seed)
        n = 5 if seed % 25 == 0 else random.randint(2, 4)
        check(random_case(n, random, method=method), random, seed)


@pytest.mark.parametrize("first", range(0, 90, 30))
def test_also_under_bounds_of_any_kind(first):
    for seed in range(first, first + 30):
        random = Random(seed)
        n = 5 if seed % 45 == 0 else random.randint(2, 4)
        check(random_case(n, random, general=True), random, seed)


@pytest.mark.parametrize("first", range(0, 180, 60))
def test_also_with_group_bys_pushed_down(first):
    for seed in range(first, first + 60):
        random = Random(seed)
        n = random.randint(2, 4)
        given = random_case(n, random, grouped=random.randint(1, min(n, 2)))
        check(given, random, seed)


@pytest.mark.parametrize("seed", range(40))
def test_every_point_is_priced_as_its_plan(seed):
    """The arrays add up to what the cost model says of the plan that is built in the end."""
    random = Random(seed)
    memo = random_case(random.randint(3, 7), random, grouped=random.randint(0, 1)).memo()
    for offer in search("jtree-finder", memo).front:
        assert offer.total.cpu == pytest.approx(offer.priced.total.cpu, rel=1e-9)
        assert offer.total.tuples == pytest.approx(offer.priced.total.tuples, rel=1e-9)
        assert offer.total.bytes == pytest.approx(offer.priced.total.bytes, rel=1e-9)


def test_time_runs_out():
    """The plans that others start from are still there, and the result says that it is not all."""
    looks = iter(range(1000))
    given = random_case(7, Random(1), method=Method.HASH)
    found = search("jtree-finder", given.memo(expired=lambda: next(looks) > 20))
    assert not found.complete
    assert found.qualified
    assert len(found.front) > 1


def test_progress_is_told():
    told = []
    memo = random_case(5, Random(1)).memo(progress=lambda done, total: told.append((done, total)))
    search("jtree-finder", memo)
    assert told[-1] == (31, 31)
    assert told == sorted(told)


def test_too_many_streams():
    found = search("jtree-finder", random_case(MOST + 1, Random(1)).memo())
    assert not found.complete
    assert "too many" in found.reason or found.qualified


def test_nothing_qualifies():
    given = case({"A": 10, "B": 10, "C": 10}, {"A-B": 0.1, "B-C": 0.1}, budget=Budget(1.0, 29.0))
    found = search("jtree-finder", given.memo())
    assert not found.qualified
    assert found.binding == "memory"
    assert "no plan can" in found.reason


def test_a_single_stream():
    for strategy in ("jtree-finder", "two-layer", "min-state", "mjoin-init", "bjtree-init"):
        assert str(search(strategy, case({"A": 1.0}, {}).memo()).chosen.plan) == "A"


def test_a_budget_of_exactly_what_is_needed():
    """Rounding must not turn a plan away."""
    for seed in range(200):
        given = random_case(4, Random(seed))
        mjoin = search("mjoin-ordering", given.memo()).chosen.total
        exact = Memo(given.query, given.workload, Budget(cpu=mjoin.cpu, tuples=mjoin.tuples))
        assert search("jtree-finder", exact).qualified, seed


def test_few_names_are_letters():
    assert names(3) == ["A", "B", "C"]
