"""Two resources: CPU-seconds per second and memory (Zhu chapter 4, Zhu-Raghavan section 2).

Cost is additive over the operators of any jtree, whichever method counts the work: an operator pays
for keeping its inputs' states and, for each input, for probing the others in that input's order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from optimizer.cost.feasibility import ROUNDING
from optimizer.estimate import Estimate, Estimator, Mask, bits
from optimizer.plan import Combine, GroupBy, Join, Node, Order, Plan, Select, walk
from optimizer.query import Grouping
from optimizer.workload import Budget, Workload


@dataclass(frozen=True)
class Cost:
    """CPU-seconds per second of input, and the state kept in tuples and in bytes."""

    cpu: float = 0.0
    tuples: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.cpu + other.cpu, self.tuples + other.tuples, self.bytes + other.bytes)

    def memory(self, budget: Budget) -> float:
        """In the unit in which the budget is given."""
        return self.bytes if budget.in_bytes else self.tuples

    def within(self, budget: Budget) -> bool:
        """Whether a plan of this cost is qualified (Definition 2), whatever it was summed from."""
        little = 1 + ROUNDING
        return self.cpu <= budget.cpu * little and self.memory(budget) <= budget.memory * little


@dataclass(frozen=True)
class Priced:
    """A plan with the estimates and costs of its operators."""

    plan: Plan
    estimates: dict[Node, Estimate]
    costs: dict[Node, Cost]
    workload: Workload

    @property
    def total(self) -> Cost:
        """The plan's cost."""
        return sum(self.costs.values(), Cost())

    @property
    def heaviest(self) -> Node:
        """The operator that needs most CPU."""
        return max(self.costs, key=lambda node: self.costs[node].cpu)


def gain(before: float, after: float) -> float:
    """The share of the CPU of one plan that another saves."""
    return 1 - after / before if before > 0 else 0.0


def price(plan: Plan, estimator: Estimator) -> Priced:
    """The cost of every operator of a plan."""
    estimates = estimator.plan(plan)
    costs = {node: _cost(node, estimates, estimator) for node in estimates}
    return Priced(plan, estimates, costs, estimator.workload)


def _cost(node: Node, estimates: dict[Node, Estimate], estimator: Estimator) -> Cost:
    rates = estimator.workload.rates
    match node:
        case Join(parts, orders=orders):
            return join_cost([estimates[part] for part in parts], orders, estimator)
        case Select(below):
            return Cost(estimates[below].rate * rates.enter)
        case Combine(below):
            return Cost(estimates[below].rate * (rates.aggregate + rates.enter))
        case GroupBy(below, grouping):
            return group_cost(estimates[below], grouping, estimator)
    return Cost()


def group_cost(below: Estimate, grouping: Grouping, estimator: Estimator) -> Cost:
    """The cost of a group-by: every tuple enters each window that it falls into."""
    rates = estimator.workload.rates
    state = estimator.group(below, grouping)
    entering = grouping.size / grouping.slide * rates.aggregate + rates.enter
    return Cost(below.rate * entering + rates.statement, state.held, state.held_bytes)


def input_costs(node: Node, estimator: Estimator) -> dict[Node, Cost]:
    """The cost of each of an input's own operators: its selects, and combining its tuples."""
    estimates: dict[Node, Estimate] = {below: estimator.node(below) for below in walk(node)}
    return {below: _cost(below, estimates, estimator) for below in estimates}


def join_cost(parts: Sequence[Estimate], orders: Sequence[Order], estimator: Estimator) -> Cost:
    """The cost of one n-ary join; equations (1) to (5) of Zhu-Raghavan are its smallest cases."""
    if estimator.volumes.windows is not None:
        steps = Steps.of(parts, estimator)
        work = sum(rate * steps.cost(i, orders[i]) for i, rate in enumerate(steps.rates))
        return worked(parts, work, estimator)
    keeps = sum((keep_cost(part, estimator) for part in parts), Cost())
    probes = (
        probe_cost(part, [parts[other] for other in order], estimator)
        for part, order in zip(parts, orders, strict=True)
    )
    return keeps + Cost(sum(probes))


def worked(parts: Sequence[Estimate], work: float, estimator: Estimator) -> Cost:
    """The cost of a join whose probes, but for the scans, take so much work."""
    scans = estimator.workload.rates.scan * (len(parts) - 1) * sum(part.held for part in parts)
    return sum((keep_cost(part, estimator) for part in parts), Cost(work + scans))


def keep_cost(part: Estimate, estimator: Estimator) -> Cost:
    """What it costs to keep an input's state: insertion, expiry, and the memory."""
    rates = estimator.workload.rates
    cpu = rates.statement + part.rate * (rates.keep + rates.keep_byte * part.width)
    return Cost(cpu, part.held, part.held_bytes)


def probe_cost(part: Estimate, order: Sequence[Estimate], estimator: Estimator) -> float:
    """The work of one input's new tuples on their way through the states of the others.

    Where all partners bound an input alike, a state holds as much for whoever probes it; otherwise
    what was joined so far decides how much of it is still within the bounds.
    """
    rates = estimator.workload.rates
    alike = estimator.volumes.windows is not None
    work, flow = 0.0, part.rate
    mask, factor = part.mask, part.factor
    for other in order:
        crossing = estimator.crossing(mask, other.mask)
        factor *= other.factor * crossing
        mask |= other.mask
        if alike:
            matches = flow * other.held * crossing
        else:
            matches = factor * estimator.volumes.arrival(mask, part.mask)
        work += rates.match * matches + rates.pair * flow * other.held
        work += rates.probe * flow + rates.scan * other.held
        flow = matches
    return work


@dataclass(frozen=True)
class Steps:
    """What probing each input of a join costs, and yields, per tuple of the flow.

    The same as `probe_cost`, where windows are alike, but for the scans: once for all orders.
    """

    rates: tuple[float, ...]
    """New tuples per second of each input."""
    sizes: tuple[float, ...]
    tolls: tuple[float, ...]
    """Cost of a probe whatever it yields: pairs compared, and the probe itself."""
    match: float
    partners: tuple[dict[int, float], ...]
    """The selectivity against each other input that a predicate connects."""
    lifts: "_Lifts | None" = None
    """By how much sets of inputs match more often than by their partners, where keys say so."""

    @classmethod
    def of(cls, parts: Sequence[Estimate], estimator: Estimator) -> "Steps":
        """Those of a join of these inputs."""
        rates = estimator.workload.rates
        masks = [part.mask for part in parts]
        return cls(
            tuple(part.rate for part in parts),
            tuple(part.held for part in parts),
            tuple(rates.pair * part.held + rates.probe for part in parts),
            rates.match,
            tuple(estimator.partners(masks)),
            _Lifts(masks, estimator) if estimator.lifts else None,
        )

    def cost(self, start: int, order: Order) -> float:
        """Of sending one tuple of an input that way; exact where windows are CQL's or global.

        Other bounds make T depend on what was joined before; S * f is then an estimate of it.
        """
        joined = 1 << start
        flow, cost = 1.0, 0.0
        for other in order:
            after = flow * self.sizes[other]
            for partner, selectivity in self.partners[other].items():
                if joined >> partner & 1:
                    after *= selectivity
            if self.lifts:
                after *= self.lifts[joined | 1 << other] / self.lifts[joined]
            cost += self.match * after + self.tolls[other] * flow
            flow = after
            joined |= 1 << other
        return cost

    def lifted(self, products: Sequence[float]) -> Sequence[float]:
        """Products over all sets of inputs, of the pairs inside them, with what keys add."""
        if self.lifts is None:
            return products
        return [so_far * self.lifts[inputs] for inputs, so_far in enumerate(products)]


@dataclass(frozen=True)
class _Lifts:
    """Of a join's inputs: a set of them is a bit mask."""

    masks: Sequence[Mask]
    estimator: Estimator

    def __getitem__(self, inputs: int) -> float:
        return self.estimator.lift(*(self.masks[i] for i in bits(inputs)))
