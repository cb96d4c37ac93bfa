"""The one place where plans are compared: searches propose, the memo prices and keeps.

A `Part` is a priced piece of a plan.  Cost is additive, so a part's cost is all that the plans
built on it need to know of its inside; and a plan that another one beats in CPU and in memory is of
no use.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from optimizer.cost.dual import Cost, Priced, join_cost, price
from optimizer.estimate import Estimate, Estimator
from optimizer.ordering import best_orders
from optimizer.plan import Branch, Leaf, Order, Tree, build, combine, input_of, still_needed
from optimizer.query import ColumnRef, Query
from optimizer.workload import Budget, Workload


@dataclass(frozen=True)
class Part:
    """A piece of a plan: its tree, what it puts out, and what it costs all in all."""

    tree: Tree
    estimate: Estimate
    cost: Cost
    columns: tuple[ColumnRef, ...]


class Memo:
    """Prices the plans of one query under one workload, and keeps those that no other one beats."""

    def __init__(self, query: Query, workload: Workload, budget: Budget | None = None) -> None:
        self.query = query
        self.workload = workload
        self.budget = budget or Budget()
        self.estimator = Estimator(query, workload)
        self.examined = 0
        self._offered: list[Priced] = []

    def leaf(self, alias: str, *, combined: bool = False) -> Part:
        """An input, its tuples combined or as they come."""
        node = input_of(self.query, Leaf(alias))
        cost = Cost()
        if combined:
            cost = Cost(self.estimator.node(node).rate * self.workload.rates.aggregate)
            node = combine(self.query, node)
        return Part(Leaf(alias, combined), self.estimator.node(node), cost, node.columns)

    def join(self, parts: Sequence[Part], orders: Sequence[Order] | None = None) -> Part:
        """Their join, probed in the orders given or else in the best that we know."""
        self.examined += 1
        estimates = [part.estimate for part in parts]
        chosen = tuple(orders or best_orders(estimates, self.estimator))
        cost = sum((part.cost for part in parts), join_cost(estimates, chosen, self.estimator))
        columns = self._columns(parts)
        tree = Branch(tuple(part.tree for part in parts), chosen)
        return Part(tree, self.estimator.join(estimates, columns), cost, columns)

    def offer(self, tree: Tree) -> Priced:
        """Propose a whole plan; it is kept unless another one beats it."""
        priced = price(build(self.query, tree), self.estimator)
        if not any(self._beats(other, priced) for other in self._offered):
            self._offered = [p for p in self._offered if not self._beats(priced, p)] + [priced]
        return priced

    @property
    def front(self) -> list[Priced]:
        """The plans that no other one beats in both resources, the least CPU first."""
        return sorted(self._offered, key=lambda priced: priced.total.cpu)

    @property
    def best(self) -> Priced | None:
        """The one with the most head-room in the scarcer resource."""
        return min(self._offered, key=self.strain, default=None)

    def strain(self, priced: Priced) -> tuple[float, float]:
        """The share of the budget that the scarcer resource takes; without a budget, CPU."""
        total, budget = priced.total, self.budget
        shares = (total.cpu / budget.cpu, total.memory(budget) / budget.memory)
        return max(shares), total.cpu

    def binding(self, priced: Priced) -> str:
        """The resource of which the plan takes the larger share of the budget."""
        total, budget = priced.total, self.budget
        over = total.memory(budget) / budget.memory > total.cpu / budget.cpu
        return "memory" if over else "cpu"

    def _beats(self, one: Priced, other: Priced) -> bool:
        a, b = one.total, other.total
        return a.cpu <= b.cpu and a.memory(self.budget) <= b.memory(self.budget)

    def _columns(self, parts: Sequence[Part]) -> tuple[ColumnRef, ...]:
        columns = [column for part in parts for column in part.columns]
        return still_needed(self.query, frozenset(column.alias for column in columns), columns)
