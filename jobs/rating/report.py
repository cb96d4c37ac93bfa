"""Plans for output rates side by side: what each makes, where they cross, which one to take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np

from jobs.rating.simulated import Simulated
from optimizer.cost.rate.judge import POINTS, Crossing, Curve, Judge, crossings
from optimizer.cost.rate.load import Filter
from optimizer.cost.rate.tree import Input, Node, walk

GIVEN = "given"
"""The strategy of a plan that a person named."""

AHEAD = 4.0
"""Curves go on until the slowest plan is there, unless it takes so many times the fastest's."""


@dataclass(frozen=True)
class Planned:
    """A plan, who proposed it, and what it came to."""

    strategy: str
    plan: Node
    value: float | None
    estimate: float | None
    curve: Curve | None = None
    simulated: Simulated | None = None


@dataclass(frozen=True)
class Report:
    """The answer for one objective."""

    judge: Judge
    plans: tuple[Planned, ...]
    horizon: float
    examined: int
    seconds: float
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Strategies that had no answer, and why."""

    @property
    def chosen(self) -> Planned | None:
        """The best one, the first of several alike; nothing if no plan ever gets there."""
        score = self.judge.objective.score
        able = [one for one in self.plans if one.value is not None]
        return max(able, key=lambda one: score(one.value), default=None)

    @property
    def crossings(self) -> list[Crossing]:
        """Of all pairs of plans."""
        return crossings([one.curve for one in self.plans if one.curve], self.horizon)

    def to_json(self) -> dict[str, Any]:
        """As programs read it."""
        chosen = self.chosen
        return {
            "objective": self.judge.objective.to_json(),
            "model": self.judge.model.value,
            "servers": self.judge.servers.value,
            "plans": [self._plan(one) for one in self.plans],
            "chosen": str(chosen.plan) if chosen else None,
            "crossings": [
                {"plans": list(c.plans), "seconds": c.seconds, "results": c.results}
                for c in self.crossings
            ],
            "left_out": dict(self.left_out),
            "examined": self.examined,
            "seconds": self.seconds,
        }

    def _plan(self, one: Planned) -> dict[str, Any]:
        found: dict[str, Any] = {
            "plan": str(one.plan),
            "strategy": one.strategy,
            self.judge.objective.measure: one.value,
            "estimate": one.estimate if isfinite(one.estimate or 0.0) else None,
            "saturated": [{"operator": late.operator, "from": late.since} for late in _late(one)],
            "selects": selects(one.plan),
            "curve": points(one.curve, self.horizon),
        }
        if one.simulated is not None:
            found["simulated"] = self._simulated(one.simulated)
        return found

    def _simulated(self, runs: Simulated) -> dict[str, Any]:
        return {
            self.judge.objective.measure: runs.value.mean,
            "runs": len(runs.runs),
            "spread": runs.value.deviation,
        }


def _late(one: Planned) -> Sequence[Any]:
    return one.curve.late if one.curve else ()


def points(curve: Curve | None, horizon: float) -> list[list[float]]:
    """The curve at even distances."""
    if curve is None:
        return []
    times = np.linspace(0.0, horizon, POINTS)
    return [[float(t), float(r)] for t, r in zip(times, curve.at(times), strict=True)]


def selects(plan: Node) -> dict[str, list[dict[str, Any]]]:
    """The selects of each stream in their order, and above what join they were pulled.

    A predicate of two streams that a join leaves to a select above stands under its own name.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for node in walk(plan):
        above = {} if isinstance(node, Input) else {"above": str(node)}
        for select in node.selects:
            owner = node.alias if isinstance(node, Input) else select.of or select.name
            found.setdefault(owner, []).append({**_select(select), **above})
    return found


def _select(select: Filter) -> dict[str, Any]:
    return {"name": select.name, "selectivity": select.selectivity, "cost": select.cost}
