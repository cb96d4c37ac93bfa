"""The one place where plans are compared: searches propose, the memo prices and keeps.

A `Part` is a priced piece of a plan.  Cost is additive, so a part's cost is all that the plans
built on it need to know of its inside; and a plan that another one beats in CPU and in memory is of
no use.  A whole plan is built and checked only when somebody looks at it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from optimizer.cost.dual import Cost, Priced, group_cost, input_costs, join_cost, keep_cost, price
from optimizer.estimate import Estimate, Estimator, Mask, bits
from optimizer.ordering import best_join
from optimizer.plan import Branch, Leaf, Order, Plan, Tree, build, input_of
from optimizer.query import ColumnRef, Query
from optimizer.workload import Budget, Workload

if TYPE_CHECKING:
    from optimizer.cost.rate.judge import Judge
    from optimizer.cost.rate.objective import Objective
    from optimizer.cost.rate.tree import Node
    from optimizer.cost.throughput import Throughput

Expired = Callable[[], bool]
"""Whether the time that a search was given is over."""

Progress = Callable[[int, int], None]
"""Told how much of its work a long search has done, of how much."""


@dataclass(frozen=True, eq=False)
class Part:
    """A piece of a plan: its tree, what it puts out, and what it costs all in all."""

    tree: Tree
    estimate: Estimate
    cost: Cost
    parts: "tuple[Part, ...]" = ()
    combined: Mask = 0
    """The inputs inside whose tuples are combined before they are joined."""

    @property
    def mask(self) -> Mask:
        """The inputs that it joins."""
        return self.estimate.mask

    @property
    def orders(self) -> tuple[Order, ...]:
        """How each of its parts probes the others."""
        return self.tree.orders if isinstance(self.tree, Branch) else ()

    def __str__(self) -> str:
        return str(self.tree)


@dataclass(frozen=True, eq=False)
class Offer:
    """A whole plan that was proposed: its cost is known, its operators are built on demand."""

    part: Part
    total: Cost
    estimator: Estimator = field(repr=False)

    @cached_property
    def plan(self) -> Plan:
        """With all its operators, checked."""
        return build(self.estimator.query, self.part.tree)

    @cached_property
    def priced(self) -> Priced:
        """The plan with the estimates and costs of its operators."""
        return price(self.plan, self.estimator)

    def __str__(self) -> str:
        return str(self.part)


@dataclass(frozen=True)
class Rated:
    """A plan that was proposed for an objective of output rates, and what it came to."""

    plan: "Node"
    value: float | None
    """Results by the time, or seconds to so many; nothing if it never makes them."""
    estimate: float | None
    """What the strategy that proposed it expected, in its own measure."""


@dataclass(frozen=True)
class _Operator:
    orders: tuple[Order, ...]
    cost: Cost
    estimate: Estimate


class Memo:
    """Prices the plans of one query under one workload, and keeps those that no other one beats."""

    def __init__(  # noqa: PLR0913  # settings, each by its name
        self,
        query: Query,
        workload: Workload,
        budget: Budget | None = None,
        *,
        expired: Expired = lambda: False,
        progress: Progress | None = None,
        judge: "Judge | None" = None,
        objective: "Objective | None" = None,
    ) -> None:
        self.query = query
        self.workload = workload
        self.budget = budget or Budget()
        self.estimator = Estimator(query, workload)
        self.progress = progress or _unheard
        self.examined = 0
        """Operators and plans that were priced."""
        self.stopped = ""
        """Why the search did not come to its own end, if it did not."""
        self._expired = expired
        self.rated: Rated | None = None
        """The best of what was proposed for an objective of output rates."""
        self._judge = judge
        self._objective = objective
        self._offered: list[Offer] = []
        self._leaves: dict[Leaf, Part] = {}
        self._operators: dict[tuple[tuple[Mask, Mask], ...], _Operator] = {}
        self._widths: dict[tuple[Mask, Mask], float] = {}

    # --- pricing ---------------------------------------------------------------------------------

    @cached_property
    def combinable(self) -> tuple[str, ...]:
        """The inputs that a group-by can be pushed down to, as the workload knows (Zhu 14)."""
        if self.query.grouping is None:
            return ()
        return tuple(alias for alias in self.query.aliases if alias in self.workload.combine)

    def leaf(self, alias: str, *, combined: bool = False) -> Part:
        """An input, its tuples combined or as they come."""
        leaf = Leaf(alias, combined)
        if leaf not in self._leaves:
            node = input_of(self.query, leaf)
            estimate = self.estimator.node(node)
            cost = sum(input_costs(node, self.estimator).values(), Cost())
            part = Part(leaf, estimate, cost, combined=estimate.mask if combined else 0)
            self._leaves[leaf] = part
        return self._leaves[leaf]

    def join(self, parts: Sequence[Part], orders: Sequence[Order] | None = None) -> Part:
        """Their join, probed in the orders given or else in the best that we know."""
        parts = tuple(parts)
        operator = self._operator(parts, None if orders is None else tuple(orders))
        cost = sum((part.cost for part in parts), operator.cost)
        tree = Branch(tuple(part.tree for part in parts), operator.orders)
        combined = _union(part.combined for part in parts)
        return Part(tree, operator.estimate, cost, parts, combined)

    def output(self, parts: Sequence[Part]) -> Estimate:
        """What their join would put out."""
        width = self.width(
            _union(part.mask for part in parts), _union(part.combined for part in parts)
        )
        return self.estimator.joined([part.estimate for part in parts], width)

    def stored(self, parts: Sequence[Part]) -> float:
        """The size of their join's output, were it kept as a state, in the budget's unit."""
        if self.budget.in_bytes:
            return self.output(parts).held_bytes
        return self.estimator.joined([part.estimate for part in parts], 0.0).held

    def part(self, tree: Tree) -> Part:
        """The price of a tree, probed as it says."""
        if isinstance(tree, Leaf):
            return self.leaf(tree.alias, combined=tree.combined)
        return self.join([self.part(below) for below in tree.parts], tree.orders)

    def total(self, part: Part) -> Cost:
        """The cost of the whole plan whose joins these are, its group-by included."""
        return part.cost + self.top(part.estimate)

    def top(self, results: Estimate) -> Cost:
        """The cost of what is above the joins: the group-by, if the query has one."""
        if self.query.grouping is None:
            return Cost()
        return group_cost(results, self.query.grouping, self.estimator)

    @cached_property
    def bound(self) -> Cost:
        """What every plan costs at least: keeping each input, and making each result (Zhu 4.3)."""
        pushed = [self.leaf(a, combined=a in self.combinable) for a in self.query.aliases]
        results = self.output(pushed)
        if len(pushed) == 1:
            return self.top(results)
        made = self.top(results) + Cost(results.rate * self.workload.rates.match)
        return sum(map(self._least, self.query.aliases), made)

    def _least(self, alias: str) -> Cost:
        """Of keeping an input, combined or not, whichever is less of each resource."""
        leaves = [self.leaf(alias)]
        leaves += [self.leaf(alias, combined=True)] if alias in self.combinable else []
        ways = [leaf.cost + keep_cost(leaf.estimate, self.estimator) for leaf in leaves]
        return Cost(
            min(way.cpu for way in ways),
            min(way.tuples for way in ways),
            min(way.bytes for way in ways),
        )

    def width(self, mask: Mask, combined: Mask) -> float:
        """The bytes of a tuple that joins these inputs, without columns nobody reads any more."""
        if (mask, combined) not in self._widths:
            self._widths[mask, combined] = sum(
                width
                for i in bits(mask)
                for width, readers in self._columns(i, combined=bool(combined >> i & 1))
                if readers & ~mask
            )
        return self._widths[mask, combined]

    def _operator(self, parts: tuple[Part, ...], orders: tuple[Order, ...] | None) -> _Operator:
        key = tuple((part.mask, part.combined) for part in parts)
        known = self._operators.get(key)
        if known is not None and (orders is None or orders == known.orders):
            return known
        operator = self._priced(parts, orders)
        if orders is None:
            self._operators[key] = operator
        return operator

    def _priced(self, parts: tuple[Part, ...], orders: tuple[Order, ...] | None) -> _Operator:
        self.examined += 1
        estimates = [part.estimate for part in parts]
        if orders is None:
            orders, cost = best_join(estimates, self.estimator)
        else:
            cost = join_cost(estimates, orders, self.estimator)
        return _Operator(orders, cost, self.output(parts))

    @cached_property
    def _readers(self) -> dict[ColumnRef, Mask]:
        """The inputs that must be missing for a column to be read above; -1: it always is."""
        bit = {alias: 1 << i for i, alias in enumerate(self.query.aliases)}
        readers = dict.fromkeys(self.query.needed(frozenset(self.query.aliases)), -1)
        for predicate in self.query.predicates:
            others = _union(bit[alias] for alias in predicate.aliases)
            for column in predicate.expression.columns:
                readers[column] = readers.get(column, 0) | others
        return readers

    def _columns(self, position: int, *, combined: bool) -> list[tuple[float, Mask]]:
        """The width of each column of an input, and who reads it; what is aggregated stays."""
        if (position, combined) not in self._read:
            leaf = Leaf(self.query.aliases[position], combined)
            self._read[position, combined] = [
                (self.estimator.column_width(column), self._readers.get(column, -1))
                for column in input_of(self.query, leaf).columns
            ]
        return self._read[position, combined]

    @cached_property
    def _read(self) -> dict[tuple[int, bool], list[tuple[float, Mask]]]:
        return {}

    # --- judging ---------------------------------------------------------------------------------

    def offer(self, part: Part) -> Offer:
        """Propose a whole plan; it is kept unless another one beats it."""
        offer = Offer(part, self.total(part), self.estimator)
        if not any(self._beats(other, offer) for other in self._offered):
            self._offered = [p for p in self._offered if not self._beats(offer, p)] + [offer]
        return offer

    @property
    def judge(self) -> "Judge":
        """Of output rates: there is one where plans have such an objective."""
        if self._judge is None:
            raise LookupError("this search needs an objective of output rates")
        return self._judge

    def propose(self, plan: "Node", estimate: float | None = None) -> Rated:
        """Propose a whole plan for output rates; the best one is kept."""
        from optimizer.cost.rate.tree import tree_of

        found = Rated(plan, self.judge.value(plan), estimate)
        score = self.judge.objective.score
        if self.rated is None or score(found.value) > score(self.rated.value):
            self.rated = found
            self.offer(self.part(tree_of(plan)))
        return found

    def forget(self) -> None:
        """Drop what was proposed: something complete takes its place."""
        self._offered.clear()

    def qualified(self, part: Part) -> bool:
        """Whether the whole plan of these joins is within the budget (Definition 2)."""
        return self.total(part).within(self.budget)

    def fits(self, parts: Sequence[Part]) -> bool:
        """Whether a plan that joins these on top is within the memory there is: without orders."""
        kept = sum(part.cost.memory(self.budget) + self.state(part.estimate) for part in parts)
        return kept + self._top_memory <= self.budget.memory

    @cached_property
    def _top_memory(self) -> float:
        return self.top(self.leaf(self.query.aliases[0]).estimate).memory(self.budget)

    def memory(self, part: Part) -> float:
        """What the whole plan of these joins keeps, in the budget's unit."""
        return self.total(part).memory(self.budget)

    def state(self, estimate: Estimate) -> float:
        """The size of an output, were it kept as a state, in the budget's unit."""
        return estimate.held_bytes if self.budget.in_bytes else estimate.held

    def strain(self, part: Part) -> tuple[float, float]:
        """The share of the budget that the scarcer resource takes, and the CPU for ties."""
        return self._strain(self.total(part))

    def excess(self, part: Part) -> tuple[float, float]:
        """How far beyond the budget both resources are together, and the CPU for ties."""
        total = self.total(part)
        return sum(max(0.0, share - 1.0) for share in self.shares(total)), total.cpu

    @property
    def front(self) -> list[Offer]:
        """The plans that no other one beats in both resources, the least CPU first."""
        return sorted(self._offered, key=lambda offer: offer.total.cpu)

    @property
    def best(self) -> Offer | None:
        """The one with the most head-room in the scarcer resource; with an objective, by that."""
        order = self.worse if self.throughput else self._strain
        return min(self._offered, key=lambda offer: order(offer.total), default=None)

    @cached_property
    def throughput(self) -> "Throughput | None":
        """What plans make of an objective, if there is one."""
        from optimizer.cost.throughput import Throughput

        if self._objective is None:
            return None
        results = self.output([self.leaf(alias) for alias in self.query.aliases])
        return Throughput(self._objective, results.rate, self.budget)

    def worse(self, total: Cost) -> tuple[float, ...]:
        """The least first: whether memory is too short, then by the objective."""
        assert self.throughput is not None
        return float(self.shares(total)[1] > 1), *self.throughput.order(total)

    def effort(self, total: Cost) -> float:
        """What plans are compared by over time: CPU, or slowness where results are wanted."""
        return total.cpu if self.throughput is None else self.throughput.slowness(total)

    def binding(self, total: Cost) -> str:
        """The resource of which a plan takes the larger share of the budget."""
        cpu, memory = self.shares(total)
        return "memory" if memory > cpu else "cpu"

    def shares(self, total: Cost) -> tuple[float, float]:
        """How much of the CPU and of the memory in the budget a plan takes."""
        return total.cpu / self.budget.cpu, total.memory(self.budget) / self.budget.memory

    def takes(self, streams: int, most: int) -> bool:
        """Whether a search of up to so many streams can begin; if not, that is why it stopped."""
        if streams > most:
            self.stopped = f"{streams} streams are too many, it takes up to {most}"
        return streams <= most

    def out_of_time(self) -> bool:
        """Whether a search must come to its end now; it is then not complete."""
        if not self.stopped and self._expired():
            self.stopped = "the time was over"
        return bool(self.stopped)

    @cached_property
    def hopeless(self) -> bool:
        """Whether the budget is below what every plan needs, by more than rounding."""
        bound = self.bound
        little = Cost(*(0.999_999_999 * part for part in (bound.cpu, bound.tuples, bound.bytes)))
        return not little.within(self.budget)

    def _strain(self, total: Cost) -> tuple[float, float]:
        return max(self.shares(total)), total.cpu

    def _beats(self, one: Offer, other: Offer) -> bool:
        a, b = one.total, other.total
        return a.cpu <= b.cpu and a.memory(self.budget) <= b.memory(self.budget)


def _unheard(_done: int, _total: int) -> None:
    pass


def _union(masks: Iterable[Mask]) -> Mask:
    union = 0
    for mask in masks:
        union |= mask
    return union
