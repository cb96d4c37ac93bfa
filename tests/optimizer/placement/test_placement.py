"""Where operators run: the paper's counts, and every search against all placements."""

from dataclasses import replace
from random import Random

import pytest

from optimizer.cost.feasibility import Objective
from optimizer.cost.fragments import Border, LogicalPlan, Operator
from optimizer.placement import PLACEMENTS, Options, place
from optimizer.placement.exhaustive import TooLargeError
from optimizer.placement.federated import counts, sizes, sub_plans
from tests.optimizer.placement.brute import everything, judged
from tests.optimizer.placement.trees import FREE, TABLE_2, Shape, cq4, drawn_plan

OBJECTIVES = [Objective(), Objective(cores=2), Objective(cores=0.5), Objective(feasibility=False)]


def judgement(placed):
    """The figure that counts under Definition 1."""
    objective, cost = placed.objective, placed.cost
    fine = objective.feasible(cost) or not objective.feasibility
    return fine, pytest.approx(cost.total if fine else objective.strain(cost))


def expected(plan, objective):
    return judged(list(everything(plan)), objective.cores, objective.feasibility)


def found(plan, strategy, objective, **options):
    return place(strategy, plan, Options(objective, **options))


# --- counts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("branches", "operators", "examined", "space"),
    [(2, 6, 11, 64), (5, 15, 312, 32_768), (8, 24, 8_411, 16_777_216)],
)
def test_table_2_comes_out(branches, operators, examined, space):
    placed = found(cq4(TABLE_2[branches]), "federated", Objective())
    assert len(placed.plan) == operators
    assert (placed.found.examined, placed.plan.space) == (examined, space)
    assert placed.found.cut == (tuple(range(operators)),)


def test_without_pruning_all_are_examined():
    placed = found(cq4(TABLE_2[5]), "federated", Objective(), pruning=False)
    assert placed.found.examined == 32_768
    cut = found(cq4(TABLE_2[2]), "federated", Objective(), pruning=False, cut=6)
    assert cut.found.examined == 64


@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_chain_has_one_plan_more_than_operators(count):
    chain = tuple(
        Operator(f"o{i}", "select", (i - 1 if i else "s",), (1.0,), 1.0, 1.0, 0.1, 0.1)
        for i in range(count)
    )
    placed = found(LogicalPlan(chain, FREE), "federated", Objective())
    assert placed.found.examined == count + 1


@pytest.mark.parametrize(
    ("shape", "plans"),
    [
        (((1, 2), (3, 4)), 102),  # 1 + (1 + (1 + 3 * 3)^2)
        ((((1, 2), 3), 4), 95),  # 1 + (1 + (1 + (1 + 3 * 3) * 3) * 3)
    ],
)
def test_other_shapes_have_one_plus_left_times_right(shape, plans):
    assert found(cq4(shape), "federated", Objective()).found.examined == plans


def test_the_printed_bound_is_too_low():
    """f(h)^(1/2^(h-1)) of complete binary trees tends to 2.2585, not to 2."""
    f = 2
    for _ in range(6):
        f = 1 + f * f
    assert f ** (1 / 2**6) == pytest.approx(2.2585, abs=1e-4)


# --- against all placements ----------------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("strategy", ["federated", "exhaustive"])
def test_searches_find_the_best_placement(strategy, objective):
    kinds = set()
    for seed in range(120):
        plan = drawn_plan(Random(seed))
        best = expected(plan, objective)
        kinds.add(best[0])
        assert judgement(found(plan, strategy, objective)) == best, seed
    assert kinds == ({True, False} if objective.feasibility else {True})


def test_one_plan_on_spark_is_not_enough_for_shared_cores():
    """What the front is for: without it some of these plans miss the best."""
    missed = 0
    for seed in range(300):
        plan, shared = drawn_plan(Random(seed), most=7), Objective(cores=2)
        best = expected(plan, shared)
        one = replace(found(plan, "federated", Objective()), objective=shared)
        missed += judgement(one) != best
        assert judgement(found(plan, "federated", shared)) == best, seed
    assert missed > 0


@pytest.mark.parametrize("strategy", ["spark", "db"])
def test_pure_plans_are_one_of_the_placements(strategy):
    plan = drawn_plan(Random(7))
    placed = found(plan, strategy, Objective())
    assert {part.place for part in placed.parts} == {strategy}
    assert placed.found.examined == 1
    cost = placed.cost
    assert any((cost.bottleneck, cost.total) == pytest.approx(one) for one in everything(plan))


def test_the_whole_plan_in_the_database_is_one_part():
    placed = found(drawn_plan(Random(3)), "db", Objective())
    assert len(placed.parts) == 1


# --- ties, and given places ----------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["federated", "exhaustive"])
def test_equals_are_taken_by_their_notation(strategy):
    """Nothing costs anything: Spark stands before the database."""
    same = tuple(
        Operator(name, "select", (below,), (1.0,), 1.0, 1.0, 0.0, 0.0)
        for name, below in (("a", "s"), ("b", 0), ("c", 1))
    )
    assert found(LogicalPlan(same, FREE), strategy, Objective()).notation == "c(b(a(s)))"


@pytest.mark.parametrize("strategy", list(PLACEMENTS))
def test_a_given_place_is_kept(strategy):
    for seed in range(30):
        random = Random(seed)
        plan = drawn_plan(random)
        at, where = random.randrange(len(plan)), random.choice(["spark", "db"])
        operators = list(plan.operators)
        operators[at] = replace(operators[at], only=where)
        fixed = LogicalPlan(tuple(operators), plan.border, plan.measured)
        placed = found(fixed, strategy, Objective())
        assert ("db" if placed.found.mask >> at & 1 else "spark") == where
        if strategy in ("federated", "exhaustive"):
            assert judgement(placed) == expected(fixed, Objective()), seed


# --- cuts ----------------------------------------------------------------------------------------


def test_eight_ways_are_cut_into_two():
    pieces = sub_plans(cq4(TABLE_2[8]), 15)
    assert sorted(map(len, pieces)) == [10, 14]


@pytest.mark.parametrize("cut", [1, 2, 3, 5, 8])
def test_a_cut_plan_is_priced_as_a_whole(cut):
    for seed in range(60):
        plan = drawn_plan(Random(seed))
        placed = found(plan, "federated", Objective(), cut=cut)
        assert sorted(at for piece in placed.found.cut for at in piece) == list(range(len(plan)))
        assert all(len(piece) <= cut for piece in placed.found.cut)
        best = expected(plan, Objective())
        feasible, figure = judgement(placed)
        assert feasible <= best[0]
        if feasible == best[0]:
            assert figure.expected >= best[1] * (1 - 1e-9)
        if cut >= len(plan):
            assert (feasible, figure) == best


def test_parts_that_meet_at_a_cut_are_one_statement():
    """Two statements would cost 0.5 each: only as one is the database the better place."""
    pair = (
        Operator("a", "select", ("s",), (1.0,), 1.0, 1.0, 0.4, 0.0),
        Operator("b", "select", (0,), (1.0,), 1.0, 1.0, 0.4, 0.0),
    )
    plan = LogicalPlan(pair, Border(0.5, 1.0, 0.0, 0.0))
    placed = found(plan, "federated", Objective(), cut=1)
    assert placed.notation == "b(a(s)@db)@db"
    assert [part.utilisation for part in placed.parts] == [0.5]
    assert placed.found.cut == ((0,), (1,))


def test_plans_are_cut_only_where_too_many_partial_plans_would_come():
    """A comb of twelve joins: 3, then 1 + 3 times as many at each."""
    shape: Shape = 1
    for branch in range(2, 14):
        shape = (shape, branch)
    plan = cq4(shape)
    whole = sum(counts(plan, sub_plans(plan, len(plan))))
    assert whole > 200_000
    placed = found(plan, "federated", Objective())
    assert placed.found.partial <= 200_000
    assert placed.found.partial == sum(counts(plan, placed.found.cut))
    assert len(placed.found.cut) > 1
    assert len(max(placed.found.cut, key=len)) <= next(sizes(plan))


def test_too_many_placements_are_refused():
    with pytest.raises(TooLargeError, match="too many to try all"):
        found(cq4(((1, 2), ((((3, 4), 5), 6), (((7, 8), 9), 10)))), "exhaustive", Objective())
