"""A query's plan as a logical plan to place: what its operators need in either engine.

Selects, joins, group-bys and combined inputs are operators that may run in either place.  Sources
are read by Spark alone; projections only say which columns go on, and cost nothing by themselves.
"""

from collections.abc import Iterator
from dataclasses import replace

from optimizer.cost.dual import Priced, price
from optimizer.cost.fragments import Border, LogicalPlan, Operator
from optimizer.estimate import Estimator
from optimizer.identity import ids
from optimizer.plan import Combine, GroupBy, Join, Node, Plan, Select, Source, Unary, walk
from optimizer.workload import UnitCosts

KINDS: dict[type[Node], str] = {
    Select: "select", Combine: "combine", Join: "join", GroupBy: "group-by",
}  # fmt: skip
"""The operators that have a place, and what each is called."""


def logical_plan(
    plan: Plan, estimator: Estimator, database: UnitCosts, border: Border
) -> LogicalPlan:
    """The operators of a plan, priced by the workload's unit costs and by the database's.

    A statement is paid once for each part of the database, not by each of its operators.
    """
    workload = replace(estimator.workload, unit_costs=replace(database, statement=0.0))
    spark, db = price(plan, estimator), price(plan, estimator.under(workload))
    placed = [node for node in walk(plan.root) if type(node) in KINDS]
    positions = {node: at for at, node in enumerate(placed)}
    names = ids(plan.root)
    operators = [_operator(node, names[node], positions, spark, db) for node in placed]
    return LogicalPlan(tuple(operators), border)


def _operator(
    node: Node, name: str, positions: dict[Node, int], spark: Priced, db: Priced
) -> Operator:
    feeds = list(_feeding(node))
    estimates = spark.estimates
    return Operator(
        name,
        KINDS[type(node)],
        tuple(one.alias if isinstance(one, Source) else positions[one] for one in feeds),
        tuple(estimates[one].rate for one in feeds),
        estimates[node].rate,
        estimates[node].held,
        spark.costs[node].cpu,
        db.costs[node].cpu,
        node.place if isinstance(node, Join | GroupBy) else "",
    )


def _feeding(node: Node) -> Iterator[Node]:
    """The sources and operators that feed it, whatever projections are between."""
    for below in node.inputs:
        one = below
        while type(one) not in KINDS and isinstance(one, Unary):
            one = one.input
        yield one
