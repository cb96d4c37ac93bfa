"""Placements: where each operator of a logical plan runs, on Spark or in the database (Ji).

A strategy is one file and one line of `PLACEMENTS`.  What is made of two of them is put together
here, so that no file knows another.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from optimizer.cost.feasibility import Objective, Utilisation
from optimizer.cost.fragments import LogicalPlan, Mask, Part
from optimizer.placement.db import db
from optimizer.placement.exhaustive import exhaustive
from optimizer.placement.federated import Enumerated, federated
from optimizer.placement.spark import spark

ALL = "all"
"""Stands for every strategy, side by side."""


@dataclass(frozen=True)
class Options:
    """How to search, and what for."""

    objective: Objective = field(default_factory=Objective)
    pruning: bool = True
    cut: int | None = None
    """At most so many operators in a sub-plan; by default only very large plans are cut."""
    progress: Callable[[int, int], None] = field(default=lambda _done, _total: None)


def _exhaustive(plan: LogicalPlan, options: Options) -> Enumerated:
    mask, examined = exhaustive(plan, options.objective, options.progress)
    return Enumerated(mask, examined, 0, _whole(plan))


def _federated(plan: LogicalPlan, options: Options) -> Enumerated:
    """Without pruning, all placements are left."""
    if not options.pruning and options.cut is None:
        return _exhaustive(plan, options)
    return federated(plan, options.objective, pruning=options.pruning, cut=options.cut)


def _one(mask: Mask, plan: LogicalPlan) -> Enumerated:
    return Enumerated(mask, 1, 0, _whole(plan))


def _whole(plan: LogicalPlan) -> tuple[tuple[int, ...], ...]:
    return (tuple(range(len(plan))),)


Placement = Callable[[LogicalPlan, Options], Enumerated]

PLACEMENTS: Mapping[str, Placement] = {
    "federated": _federated,
    "exhaustive": _exhaustive,
    "spark": lambda plan, _: _one(spark(plan), plan),
    "db": lambda plan, _: _one(db(plan), plan),
}


@dataclass(frozen=True)
class Placed:
    """A plan with a place for each of its operators, and what it needs."""

    strategy: str
    plan: LogicalPlan
    found: Enumerated
    objective: Objective

    @cached_property
    def parts(self) -> list[Part]:
        """Its physical operators."""
        return self.plan.parts(self.found.mask)

    @cached_property
    def cost(self) -> Utilisation:
        """Its bottleneck and its total."""
        return self.plan.price(self.found.mask)

    @property
    def feasible(self) -> bool:
        """Whether it keeps up, whatever it was chosen by."""
        return self.objective.feasible(self.cost)

    @property
    def busiest(self) -> Part:
        """Its bottleneck."""
        return max(self.parts, key=lambda part: part.utilisation)

    @property
    def notation(self) -> str:
        """As text, `@db` behind what runs in the database."""
        return self.plan.notation(self.found.mask)


def place(strategy: str, plan: LogicalPlan, options: Options) -> Placed:
    """Run one strategy."""
    return Placed(strategy, plan, PLACEMENTS[strategy](plan, options), options.objective)
