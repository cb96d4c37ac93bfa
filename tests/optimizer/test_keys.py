"""What joins on one key come to: keys and shares by hand, orders and plans by brute force."""

from itertools import combinations, permutations, product
from math import prod
from random import Random

import pytest

from optimizer.cost.dual import Steps, join_cost, price, probe_cost
from optimizer.estimate import Estimator
from optimizer.keys import LEAST, Lift, Shares, keys_of, mixed
from optimizer.memo import Memo
from optimizer.ordering import best_orders
from optimizer.plan import Join, build, parse
from optimizer.query import Query
from optimizer.search import search
from optimizer.workload import Budget, StreamLoad, Workload, WorkloadError
from tests.optimizer import builders
from tests.optimizer.builders import between, cql, every_tree, joined

NAMES = "abcd"
CHAIN = [("a", "b"), ("b", "c"), ("c", "d")]
STAR = [("a", "b"), ("a", "c"), ("a", "d")]
CYCLE = [*CHAIN, ("a", "d")]
VALUES = 6


# --- keys ----------------------------------------------------------------------------------------


def names_of(query: Query) -> list[str]:
    return [key.name for key in keys_of(query)]


@pytest.mark.parametrize("edges", [CHAIN, STAR, CYCLE, [*combinations(NAMES, 2)]])
def test_equal_columns_are_one_key(edges):
    (key,) = keys_of(joined(NAMES, edges))
    assert key.name == "a.k = b.k = c.k = d.k"
    assert key.edges == {frozenset(edge) for edge in edges}


def compared(*equalities: str) -> Query:
    """A query of a, b, c and d whose predicates are so many equalities, such as `a.k b.k`."""
    predicates = tuple(builders.equal(*text.split()) for text in equalities)
    whole = joined(NAMES, [])
    return Query(whole.inputs, predicates, whole.bounds, whole.output)


@pytest.mark.parametrize(
    ("equalities", "expected"),
    [
        (["a.k b.k"], []),  # two inputs: their pair says it
        (["a.k b.k", "b.v c.v"], []),
        (["a.k b.k", "b.k c.v"], ["a.k = b.k = c.v"]),
        (["a.k b.k", "b.k c.k", "c.v d.v"], ["a.k = b.k = c.k"]),
        (["a.k b.k", "c.k d.k"], []),
        (["a.k b.k", "a.v b.v", "b.k c.k", "b.v c.v"], ["a.k, a.v = b.k, b.v = c.k, c.v"]),
        (["a.k b.k", "a.v b.v", "b.k c.k"], []),  # not by as many columns
        (["a.k b.k", "b.k c.k", "c.k a.v"], []),  # a has two sides of it
    ],
)
def test_what_is_a_key(equalities, expected):
    assert names_of(compared(*equalities)) == expected


# --- shares --------------------------------------------------------------------------------------


def test_shares_by_hand():
    shares = Shares(("a", "b", "c"), ((1.0, (0.5, 0.4, 0.2)), (10.0, (0.05, 0.06, 0.08))))
    assert shares.matching("ab") == pytest.approx(0.5 * 0.4 + 10 * 0.05 * 0.06)
    assert shares.matching("abc") == pytest.approx(0.5 * 0.4 * 0.2 + 10 * 0.05 * 0.06 * 0.08)
    lift = Lift(keys_of(joined("abc", [("a", "b"), ("b", "c")]))[0], shares)
    pairs = (0.2 + 0.03) * (0.4 * 0.2 + 10 * 0.06 * 0.08)
    assert lift.of(frozenset("abc")) == pytest.approx((0.04 + 0.0024) / pairs)
    assert lift.of(frozenset("ac")) == lift.of(frozenset("ab")) == 1


def test_windows_count_by_their_weights():
    one = Shares(("a", "b"), ((1.0, (1.0, 1.0)),))
    other = Shares(("b", "a"), ((2.0, (0.5, 0.1)),))
    assert mixed([(one, 1.0), (other, 3.0)]).matching("ab") == pytest.approx(0.25 + 0.75 * 0.1)


def test_heavy_keys_that_never_meet():
    """Pairs meet, all three never: that is little, but nothing is divided by it."""
    shares = Shares(("a", "b", "c"), ((1.0, (1.0, 0.5, 0.0)), (1.0, (0.0, 0.5, 1.0))))
    lift = Lift(keys_of(joined("abc", [("a", "b"), ("b", "c")]))[0], shares)
    assert lift.of(frozenset("abc")) == LEAST


@pytest.mark.parametrize("values", [((1.0, (0.5,)),), ((1.0, (0.5, 1.5)),), ((-1.0, (0.5, 0.5)),)])
def test_shares_that_cannot_be(values):
    with pytest.raises(ValueError, match=r"shares of|within 0\.\.1"):
        Shares(("a", "b"), values)


def test_a_key_of_another_query_is_refused():
    load = Workload(
        {name: StreamLoad(1) for name in NAMES},
        {frozenset(edge): 0.1 for edge in CHAIN},
        keys={"a.x = b.x = c.x": Shares(("a", "b", "c"), ())},
    )
    with pytest.raises(WorkloadError, match=r"joined on a\.x = b\.x = c\.x"):
        load.check(joined(NAMES, CHAIN))


# --- estimates and plans -------------------------------------------------------------------------


def skewed(query: Query, random: Random) -> tuple[Workload, dict[str, list[float]]]:
    """Keys with shares at random, and the pairs' selectivities that follow from them."""
    shares = {}
    for name in query.aliases:
        weights = [random.random() ** 4 for _ in range(VALUES)]
        shares[name] = [weight / sum(weights) for weight in weights]
    (key,) = keys_of(query)
    joins = {
        edge: sum(x * y for x, y in zip(*(shares[alias] for alias in edge), strict=True))
        for edge in query.graph.edges
    }
    columns = [shares[name] for name in query.aliases]
    values = tuple((1.0, row) for row in zip(*columns, strict=True))
    streams = {name: StreamLoad(random.uniform(1, 20)) for name in query.aliases}
    load = Workload(streams, joins, keys={key.name: Shares(query.aliases, values)})
    return load, shares


BOUNDS = {
    "one window": 5.0,
    "ranges": cql({"a": 3, "b": 5, "c": 2, "d": 4}),
    "pairs": between(NAMES, {("a", "b"): (-1, 4), ("b", "c"): (-2, 2), ("c", "d"): (0, 5)}),
}


@pytest.mark.parametrize("edges", [CHAIN, STAR, CYCLE])
@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
def test_every_tree_puts_out_what_all_values_together_do(edges, bounds):
    query = joined(NAMES, edges, bounds)
    load, shares = skewed(query, Random(1))
    estimator = Estimator(query, load)
    same = sum(map(prod, zip(*shares.values(), strict=True)))
    factor = same * prod(stream.rate for stream in load.streams.values())
    for tree in every_tree(NAMES):
        plan = build(query, tree)
        assert estimator.node(plan.root).factor == pytest.approx(factor)


@pytest.mark.parametrize("edges", [CHAIN, STAR, CYCLE])
@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
def test_orders_are_the_best_of_all(edges, bounds):
    query = joined(NAMES, edges, bounds)
    for seed in range(5):
        load, _ = skewed(query, Random(seed))
        estimator = Estimator(query, load)
        parts = [estimator.node(node) for node in _inputs(query)]
        for start, order in enumerate(best_orders(parts, estimator)):
            others = [i for i in range(4) if i != start]
            costs = [
                probe_cost(parts[start], [parts[i] for i in way], estimator)
                for way in permutations(others)
            ]
            mine = probe_cost(parts[start], [parts[i] for i in order], estimator)
            assert mine == pytest.approx(min(costs))


def _inputs(query: Query):
    (join,) = build(query, parse("(a b c d)")).root.inputs
    while len(join.inputs) == 1:
        (join,) = join.inputs
    return join.inputs


def test_steps_cost_what_probes_do():
    query = joined(NAMES, CYCLE)
    load, _ = skewed(query, Random(2))
    estimator = Estimator(query, load)
    for tree in ("(a b c d)", "((a b) c d)", "((a c) (b d))"):
        plan = build(query, parse(tree))
        join = next(node for node in price(plan, estimator).costs if isinstance(node, Join))
        parts = [estimator.node(node) for node in join.inputs]
        steps = Steps.of(parts, estimator)
        for start, order in enumerate(join.orders):
            probed = probe_cost(parts[start], [parts[i] for i in order], estimator)
            assert steps.rates[start] * steps.cost(start, order) == pytest.approx(probed)


@pytest.mark.parametrize("edges", [CHAIN, STAR, CYCLE])
def test_the_search_finds_what_brute_force_does(edges):
    for seed in range(4):
        query = joined(NAMES, edges, cql({"a": 3, "b": 5, "c": 2, "d": 4}))
        load, _ = skewed(query, Random(seed))
        estimator = Estimator(query, load)
        least = min(_cheapest(build(query, tree), estimator) for tree in every_tree(NAMES))
        found = search("jtree-finder", Memo(query, load, Budget()))
        assert found.chosen.total.cpu == pytest.approx(least)


def _cheapest(plan, estimator: Estimator) -> float:
    """The CPU of a tree, each join probed in the best of all orders."""
    total = 0.0
    for node, cost in price(plan, estimator).costs.items():
        if not isinstance(node, Join):
            total += cost.cpu
            continue
        parts = [estimator.node(below) for below in node.inputs]
        ways = [permutations([i for i in range(len(parts)) if i != at]) for at in range(len(parts))]
        total += min(join_cost(parts, orders, estimator).cpu for orders in product(*ways))
    return total
