"""Searches for output rates: beside every plan there is, errors of the print, golden choices."""

from itertools import pairwise, permutations, product
from math import inf, sqrt
from random import Random

import numpy as np
import pytest

from optimizer.cost.rate.judge import Judge, Model
from optimizer.cost.rate.load import Feed, Filter, Match, RateLoad, UnitCosts
from optimizer.cost.rate.objective import Objective
from optimizer.cost.rate.sets import Sets
from optimizer.cost.rate.tree import Input, Meet, Servers
from optimizer.memo import Memo
from optimizer.search import RATES, SEARCHES
from optimizer.search.cardinality import plan_work
from optimizer.search.time_min import asked, soonest
from optimizer.window import MICROSECONDS, everywhere
from tests.optimizer.cost.rates import five, load, plan, three
from tests.optimizer.search.cases import case


def memo_of(given: RateLoad, objective: Objective, servers: Servers = Servers.EACH) -> Memo:
    rates = {name: feed.rate for name, feed in given.streams.items()}
    joins = {"-".join(sorted(edge)): match.selectivity for edge, match in given.joins.items()}
    return case(rates, joins).memo(judge=Judge(given, objective, servers))


def found(strategy: str, given: RateLoad, objective: Objective, servers=Servers.EACH):
    memo = memo_of(given, objective, servers)
    SEARCHES[strategy](memo)
    return memo.rated


def random_load(seed: int, *, finite: bool = False, window: bool = False) -> RateLoad:
    random = Random(seed)
    names = "ABCDE"[: random.randint(2, 4)]
    feeds = {}
    for name in names:
        rate = 10 ** random.uniform(1, 3)
        selects = (Filter("s", random.random(), 0.02), Filter("t", random.random(), 0.005))
        tuples = rate * random.uniform(2, 40) if finite else inf
        feeds[name] = Feed(rate, tuples, random.choice(((), (), selects)))
    edges = {frozenset((names[i], names[random.randrange(i)])) for i in range(1, len(names))}
    edges |= {frozenset(random.sample(names, 2)) for _ in range(random.choice((0, 2)))}
    joins = {
        e: Match(10 ** random.uniform(-4, -2), random.choice((0, 0, 0.01)))
        for e in sorted(edges, key=sorted)
    }
    bounds = everywhere(names, 5 * MICROSECONDS) if window else None
    return RateLoad(feeds, joins, UnitCosts(move=random.choice((0.0, 1e-4, 2e-3))), bounds)


def every_plan(given: RateLoad, names=None):
    """All trees without cartesian products, with all orders of the selects."""
    names = sorted(given.streams) if names is None else names
    if len(names) == 1:
        for selects in permutations(given.streams[names[0]].selects):
            yield Input(names[0], selects)
        return
    first, *others = names
    for chosen in product((True, False), repeat=len(others)):
        left = [first, *(n for n, c in zip(others, chosen, strict=True) if c)]
        right = [n for n in others if n not in left]
        if not right or not given.between(left, right):
            continue
        for one in every_plan(given, left):
            for other in every_plan(given, right):
                yield Meet(one, other)


@pytest.mark.parametrize("servers", Servers)
@pytest.mark.parametrize("seed", range(8))
def test_exact_is_the_best_of_all(seed, servers):
    given = random_load(seed, finite=seed % 2 == 1, window=seed == 2)
    for objective in (Objective(by=15.0), Objective(first=40.0)):
        judge = Judge(given, objective, servers)
        best = max(judge.score(one) for one in every_plan(given))
        rated = found("exact", given, objective, servers)
        if best == -inf:
            assert rated.value is None
        else:
            assert objective.score(rated.value) >= best - 2e-3 * abs(best), rated.plan


@pytest.mark.parametrize("seed", [0, 3, 6])
def test_exact_is_the_best_of_all_as_printed(seed):
    given = random_load(seed)
    judge = Judge(given, Objective(by=15.0), Servers.EACH, Model.PRINTED)
    memo = memo_of(given, Objective(by=15.0))
    memo = Memo(memo.query, memo.workload, judge=judge)
    SEARCHES["exact"](memo)
    best = max(judge.score(one) for one in every_plan(given))
    assert memo.rated is not None
    assert memo.rated.value == pytest.approx(best, rel=2e-3) or (memo.rated.value or 0) > best


@pytest.mark.parametrize("strategy", RATES)
@pytest.mark.parametrize("seed", range(8))
def test_no_search_beats_exact_and_every_stream_is_there_once(strategy, seed):
    given = random_load(seed, finite=True)
    for objective in (Objective(by=15.0), Objective(first=40.0)):
        rated, best = found(strategy, given, objective), found("exact", given, objective)
        text = str(rated.plan)
        assert sorted(text.replace("(", "").replace(")", "").split()) == sorted(given.streams)
        if best.value is None:
            assert rated.value is None
        else:
            most = objective.score(best.value) + 1e-6 * best.value
            assert objective.score(rated.value) <= most


def test_rate_max_is_the_local_estimate_of_every_tree():
    """Equation 2 with t = t_p / 2, written out: the search has the tree where it is largest."""
    given = three(0.00376)
    rated = found("rate-max", given, Objective(by=20.0))

    def join(share, one, other, handling):
        return share * one * other * 10 / max(1.0, (one + other) * handling)

    a_b = join(5e-3, join(2e-3, 50, 500, 0.00376), 100, 0.00876)
    a_c = join(2e-3, join(5e-3, 50, 100, 0.00876), 500, 0.00376)
    assert rated.estimate == pytest.approx(max(a_b, a_c))
    assert str(rated.plan) == ("((A B) C)" if a_b > a_c else "((A C) B)")


def test_time_min_asks_the_root_of_the_share_of_each_side():
    """Print leaves the join's own selectivity out: sqrt(s f f) |A|."""
    streams = {"A": Feed(10, 100), "B": Feed(10, 200), "C": Feed(10, 400)}
    given = load(streams, {"A-B": 0.1, "B-C": 0.05})
    total = 0.1 * 0.05 * 100 * 200 * 400
    judge = Judge(given, Objective(first=total / 4))
    wanted = asked(Sets(given), judge, total / 4)
    a, bc = 0b001, 0b110
    assert wanted[1, a] == pytest.approx(sqrt(0.25) * 100)
    assert wanted[1, bc] == pytest.approx(sqrt(0.25) * 0.05 * 200 * 400)
    assert 0.1 * wanted[1, a] * wanted[1, bc] == pytest.approx(total / 4)


def test_time_min_keeps_the_smaller_cost():
    """As printed, it keeps a tree where C_i > C_j."""
    given = three(0.00376)
    judge, sets = Judge(given, Objective(first=5_000.0)), Sets(given)
    plan_, seconds, _ = soonest(sets, judge, 5_000.0, 20.0)

    def cost(text):
        """The latest of its joins' n / r, from the estimates."""
        from optimizer.cost.rate.local import Local

        top = plan(text, given)
        wanted, local = asked(sets, judge, 5_000.0), Local(sets, 20.0)
        assert isinstance(top, Meet)
        inner = top.left
        return max(
            wanted[0, sets.full] / local.of(top),
            wanted[1, sets.mask(inner.aliases)] / local.of(inner),
        )

    costs = {text: cost(text) for text in ("((A B) C)", "((A C) B)")}
    assert seconds == pytest.approx(min(costs.values()))
    assert str(plan_) == min(costs, key=costs.__getitem__)


def test_cardinality_by_hand():
    """Table 6: the inputs that joins handle; the first reading of Fast Leaves ties."""
    given = five(0.0016)
    judge = Judge(given, Objective(first=5e7))
    a, b, c, d, e = 5_000, 10_000, 20_000, 50_000, 100_000
    ac, de, bd = 5e-3 * a * c, 1e-5 * d * e, 1e-4 * b * d
    bde = 1e-4 * 1e-5 * b * d * e
    expensive = 0.0066 * (a + c)
    fast = expensive + 0.0016 * (d + e + b + de + ac + bde)
    even = expensive + 0.0016 * (b + d + bd + e + ac + bde)
    works = {
        t: plan_work(plan(t, given), judge) for t in ("((A C) (B (D E)))", "((A C) ((B D) E))")
    }
    assert list(works.values()) == [pytest.approx(fast), pytest.approx(even)]
    assert fast == pytest.approx(even, rel=1e-9)
    rated = found("cardinality", given, Objective(first=5e7))
    assert rated.estimate <= fast * (1 + 1e-9)


def test_cardinality_without_an_end():
    endless = load({"A": 10, "B": Feed(10, 5)}, {"A-B": 0.1})
    memo = memo_of(endless, Objective(by=5.0))
    SEARCHES["cardinality"](memo)
    assert memo.rated is None
    assert memo.stopped == "stream A has no end, and no cardinality"


def test_exact_pulls_an_expensive_select_up():
    slow = Filter("slow", 0.5, 0.02)
    given = load({"A": Feed(500, inf, (slow,)), "B": 500}, {"A-B": 2e-5}, move=1e-5)
    rated = found("exact", given, Objective(by=20.0))
    assert rated.plan.selects == (slow,)


def test_a_search_without_an_objective():
    with pytest.raises(LookupError, match="objective"):
        SEARCHES["rate-max"](case({"A": 1, "B": 1}, {"A-B": 0.1}).memo())


def test_too_many_streams():
    names = [f"s{i}" for i in range(18)]
    edges = {"-".join(pair): 0.1 for pair in pairwise(names)}
    given = load(dict.fromkeys(names, Feed(1, 10)), edges)
    for strategy in RATES:
        memo = memo_of(given, Objective(by=5.0))
        SEARCHES[strategy](memo)
        assert "too many" in memo.stopped


def test_streams_that_nothing_connects():
    given = load({"A": 10, "B": 20, "C": 30}, {"A-B": 0.1})
    for strategy in ("rate-max", "time-min", "exact"):
        rated = found(strategy, given, Objective(by=5.0))
        assert rated.value == pytest.approx(0.1 * 50 * 100 * 150)


GOLDEN = {
    ("rate-max", "by"): "((A C) ((B D) E))",
    ("time-min", "by"): "((A C) ((B D) E))",
    ("exact", "by"): "((A ((B D) E)) C)",
    ("cardinality", "by"): "((A C) (B (D E)))",
}


@pytest.mark.parametrize("strategy", RATES)
def test_golden(strategy):
    rated = found(strategy, five(0.0016), Objective(by=50.0))
    assert str(rated.plan) == GOLDEN[strategy, "by"]
    assert np.isfinite(rated.value)
