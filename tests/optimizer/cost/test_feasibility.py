"""Sizes, utilisation and Definition 1, calculated by hand."""

from itertools import permutations
from math import inf, sqrt

import pytest

from optimizer.cost.feasibility import (
    Objective,
    Relation,
    Utilisation,
    aggregated,
    front,
    joined,
    selected,
    utilisation,
    windowed,
)
from optimizer.cost.fragments import Border, LogicalPlan, Operator

PLUGS = windowed(2000, 300)


def test_a_window_holds_what_came_within_it():
    assert windowed(2000, 300) == Relation(2000, 600_000)


def test_a_select_keeps_its_share():
    assert selected(PLUGS, 0.5) == Relation(1000, 300_000)
    assert selected(PLUGS, 1) == PLUGS


def test_a_join_counts_new_tuples_of_either_side():
    """30 * 0.1 * 500 + 50 * 0.4 * 200 = 1500 + 4000."""
    left, right = Relation(30, 200), Relation(50, 500)
    result = joined(left, right, (0.4, 0.1))
    assert result.rate == pytest.approx(5500)
    assert result.size == pytest.approx(200 * 500 * sqrt(0.04))


def test_an_aggregate_puts_out_its_groups_at_each_slide():
    assert aggregated(1.0, 400) == Relation(400, 400)
    assert aggregated(2000 / 50, 400) == Relation(16_000, 400)


def test_equation_2_counts_aggregates_that_slide_together_twice():
    one = aggregated(1.0, 400)
    assert joined(one, one, (1 / 400, 1 / 400)).rate == pytest.approx(800)


def test_utilisation_is_work_a_second():
    assert utilisation([2000, 400], [1e-4, 5e-4]) == pytest.approx(0.4)


def test_a_plan_has_its_busiest_operator_and_its_total():
    cost = Utilisation.of(0.5) + Utilisation.of(0.75) + Utilisation.of(0.25)
    assert cost == Utilisation(0.75, 1.5)


@pytest.mark.parametrize(
    ("objective", "costs", "best"),
    [
        (Objective(), [(0.9, 2.0), (1.1, 1.2)], 0),  # condition 1: one keeps up
        (Objective(), [(0.9, 2.0), (1.0, 1.9)], 1),  # condition 2: both do
        (Objective(), [(1.5, 1.6), (1.2, 9.0)], 1),  # condition 3: neither does
        (Objective(), [(1.2, 3.0), (1.2, 2.0)], 1),  # a tie
        (Objective(feasibility=False), [(0.9, 2.0), (1.1, 1.2)], 1),
        (Objective(cores=2), [(0.9, 2.5), (1.1, 1.2)], 1),  # 1.25 against 1.1
        (Objective(cores=2), [(0.9, 2.0), (0.5, 2.1)], 0),  # only the first fits
        (Objective(cores=4), [(0.9, 2.5), (1.1, 1.2)], 0),
    ],
)
def test_definition_1(objective, costs, best):
    options = [Utilisation(*cost) for cost in costs]
    for order in permutations(options):
        assert objective.best(order, lambda c: c, lambda c: c.total) == options[best]


def test_exactly_a_second_a_second_keeps_up():
    """Also where rounding makes it a little more: 0.1 + 0.2 + 0.7 is 1.0 or 0.9999..."""
    assert Objective().feasible(Utilisation(1.0, 5.0))
    assert Objective(cores=1).feasible(Utilisation(0.5, 1.0000000000000002))
    assert not Objective().feasible(Utilisation(1.000001, 5.0))


def test_equals_but_for_rounding_are_taken_by_name():
    costs = {"b": Utilisation(0.3, 0.3), "a": Utilisation(0.1 + 0.2, 0.1 + 0.2)}
    assert Objective().best(costs, costs.__getitem__, str) == "a"


def test_the_front_is_what_nothing_beats():
    costs = [(1, 5), (2, 4), (3, 4), (2, 6), (0.5, 9), (1, 5)]
    kept = front([Utilisation(*cost) for cost in costs], lambda cost: cost)
    assert [(one.bottleneck, one.total) for one in kept] == [(0.5, 9), (1, 5), (2, 4)]
    assert front([], lambda cost: cost) == []


def test_infinite_costs_are_compared_too():
    assert Objective().best([inf, 2.0], Utilisation.of, str) == 2.0


# --- parts in the database -----------------------------------------------------------------------


def operator(name, inputs, rates, rate, spark, db):
    return Operator(name, "any", inputs, rates, rate, 1.0, spark, db)


PLAN = LogicalPlan(
    (
        operator("s5", ("plugs",), (2000.0,), 1000.0, 0.2, 0.02),
        operator("a5", (0,), (1000.0,), 400.0, 0.5, 0.1),
        operator("a1", ("plugs",), (2000.0,), 400.0, 0.7, 0.3),
        operator("j", (1, 2), (400.0, 400.0), 10.0, 0.4, 0.05),
    ),
    Border(statement=0.001, executions=5, enter=1e-4, leave=2e-4),
    {0b0011: 0.9},
)


def part(*operators):
    return PLAN.database_part(sum(1 << at for at in operators))


def test_a_part_pays_for_what_goes_in_and_what_comes_back():
    """0.001 * 5 + 1000 * 1e-4 + 0.1 + 400 * 2e-4."""
    one = part(1)
    assert (one.transfer_in, one.statement, one.transfer_out) == pytest.approx((0.1, 0.105, 0.08))
    assert one.utilisation == pytest.approx(0.285)


def test_within_a_part_nothing_is_transferred():
    """In: 1000 and 2000 tuples a second; out: 10.  One statement, three operators."""
    one = part(1, 2, 3)
    expected = (0.3, 0.005 + 0.1 + 0.3 + 0.05, 0.002)
    assert (one.transfer_in, one.statement, one.transfer_out) == pytest.approx(expected)
    assert one.utilisation < part(1).utilisation + part(2).utilisation + part(3).utilisation


def test_what_was_measured_goes_before_the_formula():
    assert part(0, 1).utilisation == 0.9
    assert part(0, 1).statement is None
    assert part(0).utilisation == pytest.approx(0.005 + 0.2 + 0.02 + 0.2)


def test_a_placement_is_its_parts():
    parts = PLAN.parts(0b0111)
    assert [(one.operators, one.place) for one in parts] == [
        ((0, 1), "db"), ((2,), "db"), ((3,), "spark"),
    ]  # fmt: skip
    assert PLAN.price(0b0111).bottleneck == 0.9
    assert PLAN.price(0b0111).total == pytest.approx(0.9 + (0.2 + 0.305 + 0.08) + 0.4)
    assert PLAN.notation(0b0111) == "j(a5(s5(plugs)@db)@db a1(plugs)@db)"


def test_connected_operators_are_one_piece():
    assert PLAN.connected(0b1010)
    assert PLAN.connected(0b1111)
    assert not PLAN.connected(0b0101)
    assert not PLAN.connected(0b0110)


@pytest.mark.parametrize(
    "inputs", [[("s",), ("s",)], [(1,), ("s",)], [("s",), (0,), (0, 1)], [("s",), (0, 0)]]
)
def test_a_plan_is_one_tree(inputs):
    operators = tuple(
        operator(f"o{i}", read, (1.0,) * len(read), 1.0, 0.1, 0.1) for i, read in enumerate(inputs)
    )
    with pytest.raises(ValueError, match=r"must feed exactly one|before its inputs"):
        LogicalPlan(operators, Border(0, 1, 0, 0))
