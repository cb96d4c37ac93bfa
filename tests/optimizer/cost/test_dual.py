"""What plans cost, against the papers' equations and figures and against hand calculations."""

from collections.abc import Iterable, Iterator
from itertools import pairwise, permutations, product
from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.cost.dual import Cost, Priced, price
from optimizer.estimate import Estimator
from optimizer.memo import Memo
from optimizer.plan import Branch, Leaf, Tree, build, parse
from optimizer.query import Query
from optimizer.workload import Budget, Method, UnitCosts, Workload
from tests.optimizer.builders import (
    cases,
    counts,
    every_bjtree,
    every_tree,
    joined,
    names_of,
    random_case,
    random_tree,
    shuffled,
    total,
    trees,
    where,
    workload,
)


def priced(query: Query, load: Workload, tree: Tree | str) -> Priced:
    return price(
        build(query, parse(tree) if isinstance(tree, str) else tree), Estimator(query, load)
    )


# --- Zhu-Raghavan, equations (1) to (5) ----------------------------------------------------------

some = st.floats(0.1, 100)
part = st.floats(0.001, 1)
unit = st.floats(1e-8, 1e-5)


@given(
    rates=st.tuples(some, some, some),
    selectivities=st.tuples(part, part),
    w=st.integers(1, 60),
    costs=st.tuples(unit, unit, unit),
)
def test_equations_of_zhu_raghavan(rates, selectivities, w, costs):
    (a, b, c), (ab, bc), (cj, ci, cd) = rates, selectivities, costs
    query = joined("ABC", [("A", "B"), ("B", "C")], w)
    load = workload(
        {"A": a, "B": b, "C": c}, {("A", "B"): ab, ("B", "C"): bc}, unit_costs=UnitCosts(cj, ci, cd)
    )
    cpu_a = a * (ci + cd) + a * b * ab * w * cj + a * b * ab * c * bc * w**2 * cj
    cpu_b = b * (ci + cd) + b * c * bc * w * cj + b * c * bc * a * ab * w**2 * cj
    cpu_c = c * (ci + cd) + b * c * bc * w * cj + a * b * ab * c * bc * w**2 * cj
    mjoin_by_hand = cpu_a + cpu_b + cpu_c  # (1), summed as it is built
    equation_2 = (  # Fig. 4b: A probes B then C, B probes A then C, C probes B then A
        (a + b + c) * (ci + cd)
        + b * c * bc * w * cj
        + 3 * a * b * c * ab * bc * w**2 * cj
        + 2 * a * b * ab * w * cj
    )
    equation_3 = a * w + b * w + c * w
    equation_4 = (
        (a + b + c) * (ci + cd)
        + 3 * a * b * c * ab * bc * w**2 * cj
        + 2 * a * b * ab * w * (cj + ci + cd)
    )
    equation_5 = equation_3 + a * b * ab * w**2

    from_b_to_a = priced(query, load, mjoin("ABC", ((1, 2), (0, 2), (1, 0))))
    from_b_to_c = priced(query, load, mjoin("ABC", ((1, 2), (2, 0), (1, 0))))
    bjtree = priced(query, load, "((A B) C)")
    assert from_b_to_a.total.cpu == pytest.approx(equation_2)
    assert from_b_to_c.total.cpu == pytest.approx(mjoin_by_hand)
    assert from_b_to_a.total.tuples == pytest.approx(equation_3)
    assert bjtree.total.cpu == pytest.approx(equation_4)
    assert bjtree.total.tuples == pytest.approx(equation_5)


def mjoin(names, orders):
    return Branch(tuple(map(Leaf, names)), orders)


# --- the parameters of Table 8.1 / Table 2, and the figures that they give -----------------------

SETS = {
    1: ("ABC", [20, 20, 20], [0.05, 0.5], 5),
    2: ("ABC", [20, 20, 50], [0.02, 0.5], 15),
    3: ("ABCD", [10, 10, 10, 10], [0.1, 0.15, 0.1], 15),
    4: ("ABCD", [20, 20, 20, 20], [0.02, 0.2, 0.05], 50),
}


def parameters(number: int, method: Method) -> tuple[Query, Workload]:
    names, rates, selectivities, seconds = SETS[number]
    edges = list(pairwise(names))
    joins = dict(zip(edges, selectivities, strict=True))
    load = workload(dict(zip(names, rates, strict=True)), joins, method=method)
    return joined(names, edges, seconds), load


def cheapest(query: Query, load: Workload, trees: Iterable[Tree]) -> Cost:
    """The least CPU of some trees, over all the orders in which they can be probed."""
    estimator = Estimator(query, load)
    plans = (price(build(query, probed), estimator) for tree in trees for probed in ordered(tree))
    return min((plan.total for plan in plans), key=lambda cost: cost.cpu)


def ordered(tree: Tree) -> Iterator[Tree]:
    """A tree with every probe order of its joins."""
    if isinstance(tree, Leaf):
        yield tree
        return
    positions = range(len(tree.parts))
    orders = [list(permutations(o for o in positions if o != i)) for i in positions]
    for parts in product(*map(ordered, tree.parts)):
        for chosen in product(*orders):
            yield Branch(parts, chosen)


FIGURES = [
    # set, method, CPU of the best mjoin and of the best bjtree, their tuples
    (1, Method.NESTED_LOOP, 0.277, 0.075, 300, 800),
    (2, Method.NESTED_LOOP, 5.405, 0.621, 1_350, 3_150),
    (3, Method.HASH, 0.477, 0.447, 600, 5_100),
    (4, Method.HASH, 36.2, 35.2, None, None),
    (4, Method.NESTED_LOOP, 981, 176, None, None),
]


@pytest.mark.parametrize(("number", "method", "mjoin", "bjtree", "low", "high"), FIGURES)
def test_figures_of_the_parameter_sets(number, method, mjoin, bjtree, low, high):
    query, load = parameters(number, method)
    flat = cheapest(query, load, [Branch(tuple(map(Leaf, query.aliases)))])
    deep = cheapest(query, load, every_bjtree(query.aliases))
    assert float(f"{flat.cpu:.{digits(mjoin)}g}") == mjoin
    assert float(f"{deep.cpu:.{digits(bjtree)}g}") == bjtree
    if low is not None:
        assert (round(flat.tuples), round(deep.tuples)) == (low, high)


def digits(figure: float) -> int:
    """The digits that matter in a figure as it is printed above."""
    return len(str(figure).lstrip("0.").replace(".", ""))


@pytest.mark.parametrize("method", [Method.HASH, Method.NESTED_LOOP])
def test_no_plan_of_set_4_fits_one_cpu(method):
    query, load = parameters(4, method)
    assert cheapest(query, load, every_tree(query.aliases)).cpu > 1


def test_keeping_a_state_can_cost_more_than_making_it_again():
    """Against the claim that a bjtree always needs least CPU: their own (6) and (7)."""
    query = joined("ABC", [("A", "B"), ("B", "C")], 10)
    load = workload(
        dict.fromkeys("ABC", 10.0),
        {("A", "B"): 0.1, ("B", "C"): 0.1},
        unit_costs=UnitCosts(join=1e-6, insert=1e-5, delete=1e-5),
    )
    flat = cheapest(query, load, [parse("(A B C)")]).cpu
    deep = cheapest(query, load, every_bjtree("ABC")).cpu
    recomputed = 10 * 10 * 0.1 * 10 * 1e-6
    maintained = 2 * 10 * 10 * 0.1 * 10 * (1e-5 + 1e-5)
    assert deep - flat == pytest.approx(maintained - recomputed)
    assert deep > flat


# --- our engine's own method, by hand ------------------------------------------------------------

COSTS = UnitCosts(statement=0.01, scan=1e-6, probe=2e-6, match=3e-6, write=4e-6, write_byte=5e-8)


def test_batch_method_by_hand():
    """Two streams of 10 and 20 a second, a window of 6 s, a match in 10 pairs, 5 s a batch."""
    query = joined("AB", [("A", "B")], 6)
    load = workload(
        {"A": 10, "B": 20}, {("A", "B"): 0.1}, method=Method.BATCH, unit_costs=COSTS, batch=5
    )
    width = 75.0  # k, v and ts of k, v, w and ts, out of 100 bytes
    statements = 2 * 0.01 / 5
    scans = (60 + 120) * 1e-6 / 5
    probes = (10 + 20) * 2e-6
    matches = 2 * (10 * 120 * 0.1) * 3e-6
    writes = (10 + 20) * (4e-6 + width * 5e-8)
    plan = priced(query, load, "(A B)")
    assert plan.total.cpu == pytest.approx(statements + scans + probes + matches + writes)
    assert plan.total.tuples == pytest.approx(60 + 120)
    assert plan.total.bytes == pytest.approx((60 + 120) * width)


def test_batch_method_counts_every_probe_of_an_mjoin():
    """Three streams of 10 a second: each input runs one statement and scans two states."""
    query = joined("ABC", [("A", "B"), ("B", "C")], 6)
    load = workload(
        dict.fromkeys("ABC", 10.0), {("A", "B"): 0.1, ("B", "C"): 0.2},
        method=Method.BATCH, unit_costs=COSTS, batch=5,
    )  # fmt: skip
    plan = priced(query, load, mjoin("ABC", ((1, 2), (0, 2), (1, 0))))
    pairs_ab, pairs_bc, triples = 10 * 60 * 0.1, 10 * 60 * 0.2, 10 * 60 * 0.1 * 60 * 0.2
    statements = 3 * 0.01 / 5
    scans = 3 * 2 * 60 * 1e-6 / 5
    probes = (3 * 10 + pairs_ab + pairs_ab + pairs_bc) * 2e-6
    matches = (pairs_ab + pairs_ab + pairs_bc + 3 * triples) * 3e-6
    writes = 30 * (4e-6 + 75 * 5e-8)
    assert plan.total.cpu == pytest.approx(statements + scans + probes + matches + writes)


@pytest.mark.parametrize("method", Method)
def test_group_by_by_hand(method):
    """50 groups over 60 s every 10 s: a result of 240 a second is in six windows at once."""
    grouping = counts("A.v", size=60, slide=10)
    query = joined("AB", [("A", "B")], 6, grouping=grouping)
    load = workload(
        {"A": 10, "B": 20}, {("A", "B"): 0.1}, method=method, unit_costs=COSTS, batch=5, groups=50
    )
    plan = priced(query, load, "(A B)")
    group_by = plan.plan.root.inputs[0]
    work = 2e-6 if method is Method.BATCH else 2e-7
    statement = 0.01 / 5 if method is Method.BATCH else 0
    expected = 240 * 2.2e-6 if method is Method.PIPELINED else 240 * 6 * work + statement
    assert plan.costs[group_by].cpu == pytest.approx(expected)
    assert plan.costs[group_by].tuples == pytest.approx(50 * 6)
    assert plan.estimates[group_by].rate == pytest.approx(50 / 10)


def test_combining_an_input_costs_each_of_its_tuples_and_saves_the_rest():
    grouping = counts("A.v", total("s", "B.w"))
    query = joined("AB", [("A", "B")], 6, grouping=grouping)
    load = workload({"A": 10, "B": 20}, {("A", "B"): 0.1}, combine={"B": 5.0})
    plan = priced(query, load, "(A [B])")
    combined = next(n for n in plan.costs if type(n).__name__ == "Combine")
    assert plan.costs[combined].cpu == pytest.approx(20 * 2e-7)
    assert plan.estimates[combined].rate == pytest.approx(5)
    assert plan.estimates[combined].held == pytest.approx(5 * 6)


# --- properties ----------------------------------------------------------------------------------


@given(cases(), st.data(), st.randoms(use_true_random=False))
def test_cost_does_not_depend_on_the_order_of_subtrees(case, data, random):
    query, load = case
    tree = data.draw(trees(query.aliases))
    one, other = priced(query, load, tree), priced(query, load, shuffled(tree, random))
    assert one.total.cpu == pytest.approx(other.total.cpu)
    assert one.total.tuples == pytest.approx(other.total.tuples)
    assert one.total.bytes == pytest.approx(other.total.bytes)


@given(cases(), st.data())
def test_memo_prices_parts_as_plans(case, data):
    query, load = case
    tree = data.draw(trees(query.aliases))
    part = Memo(query, load).part(tree)
    whole = priced(query, load, tree).total
    assert part.cost.cpu == pytest.approx(whole.cpu)
    assert part.cost.tuples == pytest.approx(whole.tuples)
    assert part.cost.bytes == pytest.approx(whole.bytes)


def test_memo_prices_selects_and_combined_inputs_as_plans():
    query = joined("ABC", [("A", "B"), ("B", "C")], 6, selects=[where("A.v"), where("C.w")],
                   grouping=counts("A.v", total("s", "B.w")))  # fmt: skip
    load = Workload.assume(query, combine={"B": 7.0})
    memo = Memo(query, load)
    above = priced(query, load, "((A [B]) C)")
    group_by = above.plan.root.inputs[0]
    part = memo.part(parse("((A [B]) C)"))
    assert (part.cost + above.costs[group_by]).cpu == pytest.approx(above.total.cpu)
    assert memo.total(part).bytes == pytest.approx(above.total.bytes)
    assert memo.offer(part).priced == above


@given(cases(), st.data())
def test_cost_is_the_sum_over_the_operators(case, data):
    query, load = case
    plan = priced(query, load, data.draw(trees(query.aliases)))
    assert plan.total.cpu == pytest.approx(sum(cost.cpu for cost in plan.costs.values()))
    assert plan.costs[plan.heaviest].cpu == max(cost.cpu for cost in plan.costs.values())


def test_costs_add_up():
    assert Cost(1, 2, 3) + Cost(10, 20, 30) == Cost(11, 22, 33)
    assert Cost(1, 2, 3) + Cost() == Cost(1, 2, 3)


@pytest.mark.parametrize(
    ("budget", "qualified"),
    [
        (Budget(), True),
        (Budget(cpu=1, tuples=2), True),
        (Budget(cpu=0.99), False),
        (Budget(tuples=1.99), False),
        (Budget(bytes=3), True),
        (Budget(cpu=inf, bytes=2.99), False),
    ],
)
def test_qualified_means_within_both(budget, qualified):
    assert Cost(1, 2, 3).within(budget) is qualified


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("budget", [Budget(), Budget(bytes=1e6)])
def test_memo_keeps_the_plans_that_none_beats(seed, budget):
    random = Random(seed)
    query, load = random_case(5, random, method=Method.NESTED_LOOP, seconds=2)
    memo = Memo(query, load, budget)
    everything = [memo.offer(memo.part(random_tree(names_of(5), random))) for _ in range(150)]
    points = {(p.total.cpu, p.total.memory(budget)) for p in everything}
    best = sorted(
        (cpu, memory)
        for cpu, memory in points
        if not any(c <= cpu and m <= memory and (c, m) != (cpu, memory) for c, m in points)
    )
    assert [(p.total.cpu, p.total.memory(budget)) for p in memo.front] == best
