"""Phase one against all binary trees, and queries as plans to place."""

from dataclasses import replace
from itertools import product
from random import Random

import pytest

from optimizer.cost.dual import price
from optimizer.cost.engines import logical_plan
from optimizer.cost.feasibility import Objective, Relation, joined
from optimizer.cost.fragments import Border
from optimizer.estimate import Estimator
from optimizer.memo import Memo
from optimizer.placement.logical import LARGEST, TooManyInputsError, logical
from optimizer.plan import Branch, Leaf, build, parse
from optimizer.workload import Method, UnitCosts
from tests.optimizer.builders import every_bjtree
from tests.optimizer.placement.brute import judged
from tests.optimizer.search.cases import case, random_case

FREE = Border(0.0, 1.0, 0.0, 0.0)


def drawn(seed, **settings):
    """A query whose joins cost so much that some plans keep up and others do not."""
    random = Random(seed)
    given = random_case(4, random, **settings)
    units = UnitCosts(join=10 ** random.uniform(-4.5, -1.5))
    return given.query, replace(given.workload, unit_costs=units)


def needs(query, load, tree):
    """The bottleneck and the total of a plan, operator by operator."""
    costs = [cost.cpu for cost in price(build(query, tree), Estimator(query, load)).costs.values()]
    return max(costs), sum(costs)


def every_tree(query, load):
    """All binary trees, their inputs combined or not."""
    for tree in every_bjtree(query.aliases):
        for chosen in product((False, True), repeat=len(load.combine)):
            combined = {a for a, yes in zip(load.combine, chosen, strict=True) if yes}
            yield _with(tree, combined)


def _with(tree, combined):
    if isinstance(tree, Leaf):
        return Leaf(tree.alias, tree.alias in combined)
    return Branch(tuple(_with(part, combined) for part in tree.parts))


@pytest.mark.parametrize("objective", [Objective(), Objective(cores=1.5)])
@pytest.mark.parametrize("settings", [{}, {"method": Method.PIPELINED}, {"grouped": 1}])
def test_phase_one_finds_the_best_tree(settings, objective):
    feasible = set()
    for seed in range(12):
        query, load = drawn(seed, **settings)
        found = logical(Memo(query, load), objective)
        costs = [needs(query, load, tree) for tree in every_tree(query, load)]
        best = judged(costs, objective.cores)
        fine = objective.feasible(found.cost)
        figure = found.cost.total if fine else objective.strain(found.cost)
        assert (fine, figure) == (best[0], pytest.approx(best[1])), seed
        assert needs(query, load, found.tree) == pytest.approx(
            (found.cost.bottleneck, found.cost.total)
        )
        feasible.add(fine)
    assert feasible == {True, False}


def test_more_inputs_than_can_be_tried():
    many = case({f"s{i}": 1.0 for i in range(LARGEST + 1)}, {})
    with pytest.raises(TooManyInputsError, match="--plan"):
        logical(many.memo(), Objective())


def test_a_query_is_the_operators_of_its_plan():
    """20/s over 15 s is 300; half of B are 10/s and 150; 20 * 0.1 * 150 + 10 * 0.1 * 300."""
    given = case({"A": 20.0, "B": 20.0}, {"A-B": 0.1}, 15.0, selects={"B": 0.5},
                 method=Method.PIPELINED)  # fmt: skip
    load = replace(given.workload, unit_costs=UnitCosts(join=1e-3))
    plan = logical_plan(
        build(given.query, parse("(A B)@db")), Estimator(given.query, load),
        UnitCosts(join=1e-4), FREE,
    )  # fmt: skip
    select, join = plan.operators
    assert (select.name, select.kind, select.inputs, select.rates) == (
        "select:B", "select", ("B",), (20.0,),
    )  # fmt: skip
    assert (join.name, join.inputs, join.only) == ("join:A+B", ("A", 0), "db")
    assert (*join.rates, join.rate, join.size) == pytest.approx((20.0, 10.0, 600.0, 4500.0))
    expected = joined(Relation(20, 300), Relation(10, 150), (0.1, 0.1))
    assert (join.rate, join.size) == pytest.approx((expected.rate, expected.size))
    assert [select.spark, join.spark] == pytest.approx([0.02, 0.03])
    assert [select.db, join.db] == pytest.approx([0.002, 0.003])


def test_a_statement_is_not_paid_by_operators():
    """But once by each part: its cost is the border's."""
    given = case({"A": 1.0, "B": 1.0}, {"A-B": 0.1}, method=Method.BATCH)
    plan = build(given.query, parse("(A B)"))
    estimator = Estimator(given.query, given.workload)
    cheap = logical_plan(plan, estimator, UnitCosts(statement=0.0), FREE)
    dear = logical_plan(plan, estimator, UnitCosts(statement=9.0), FREE)
    assert cheap.operators[0].db == dear.operators[0].db
