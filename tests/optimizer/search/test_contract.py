"""What every strategy promises, and the golden plan of each."""

from random import Random

import pytest

from optimizer.plan import leaves, parse
from optimizer.search import COSTS, search, search_all
from optimizer.search.jtree_finder import MOST
from optimizer.workload import Budget
from tests.optimizer.search.cases import Case, random_case
from tests.optimizer.search.golden import file, render


def given_by(seed: int, n: int) -> Case:
    random = Random(seed)
    general = n < 6 and random.random() < 0.2
    given = random_case(n, random, general=general, grouped=random.choice((0, 0, 1, 2)))
    mjoin = search("mjoin-ordering", given.memo()).chosen.total
    budget = Budget(
        cpu=max(mjoin.cpu * random.uniform(0.3, 1.2), 1e-12),
        tuples=mjoin.tuples * random.uniform(0.95, 3),
    )
    return Case(given.query, given.workload, budget)


@pytest.mark.parametrize("strategy", COSTS)
@pytest.mark.parametrize("first", range(0, 36, 12))
def test_every_strategy(strategy, first):
    for seed in range(first, first + 12):
        given = given_by(seed, 2 + seed % 6)
        found, best = search(strategy, given.memo()), search("jtree-finder", given.memo())
        covers_every_stream_once(found, given, seed)
        round_trips(found, seed)
        never_beats(found, best, given, seed)
        again = search(strategy, given.memo())
        assert (str(again.chosen.plan), again.chosen.total) == (
            str(found.chosen.plan), found.chosen.total), seed  # fmt: skip
        assert found.qualified == found.chosen.total.within(given.budget), seed
        assert found.reason.startswith("qualified" if found.qualified else "not qualified"), seed
        assert found.binding in {"cpu", "memory"}


def covers_every_stream_once(found, given, seed):
    for offer in found.front:
        named = [leaf.alias for leaf in leaves(offer.plan.tree)]
        assert sorted(named) == sorted(given.query.aliases), seed


def round_trips(found, seed):
    for offer in found.front:
        assert str(parse(str(offer))) == str(offer) == str(offer.plan), seed


def never_beats(found, best, given, seed):
    """No plan is beyond jtree-finder's front, and none qualifies where it finds none."""
    assert best.qualified or not found.qualified, seed
    for offer in found.front:
        if offer.total.within(given.budget):
            cpu, memory = offer.total.cpu, offer.total.memory(given.budget)
            assert any(
                o.total.cpu <= cpu * (1 + 1e-9)
                and o.total.memory(given.budget) <= memory * (1 + 1e-9)
                for o in best.front
            ), seed


@pytest.mark.parametrize("strategy", COSTS)
@pytest.mark.parametrize("n", [20, 35])
def test_many_streams(strategy, n):
    given = given_by(n, n)
    found = search(strategy, given.memo())
    covers_every_stream_once(found, given, n)
    assert found.complete == (strategy != "jtree-finder" or n <= MOST)
    assert found.chosen.total.cpu == pytest.approx(min(
        offer.total.cpu for offer in found.front if str(offer) == str(found.chosen.plan)
    ))  # fmt: skip


@pytest.mark.parametrize("strategy", COSTS)
def test_time_is_over_at_once(strategy):
    """There is a plan nevertheless."""
    found = search(strategy, given_by(1, 6).memo(expired=lambda: True))
    assert str(found.chosen.plan)


@pytest.mark.parametrize("seed", range(30))
def test_the_memo_prices_as_the_cost_model_does(seed):
    """Also joins of so many inputs that they are not ordered exactly."""
    given = given_by(seed, 4 + seed % 12)
    for strategy in ("mjoin-init", "bjtree-init", "state-removal"):
        for offer in search(strategy, given.memo()).front:
            total, priced = offer.total, offer.priced.total
            assert total.cpu == pytest.approx(priced.cpu, rel=1e-9), seed
            assert total.tuples == pytest.approx(priced.tuples, rel=1e-9), seed
            assert total.bytes == pytest.approx(priced.bytes, rel=1e-9), seed


def test_all_are_run_side_by_side():
    found = search_all(given_by(3, 5).memo)
    assert [one.strategy for one in found] == list(COSTS)


@pytest.mark.parametrize("strategy", COSTS)
def test_golden(strategy):
    """Changed on purpose?  `make plans` writes it again."""
    assert render(strategy) == file(strategy).read_text()
