"""A simulated job: windows are made up, decisions are the real ones, work is the cost model's.

Beside it the same job that never migrates, and one whose owner knew all windows beforehand.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from statistics import mean
from typing import Any

import numpy as np

from jobs.deciding.candidates import best
from jobs.deciding.observations import Glimpse, Seen
from jobs.deciding.weighing import weigh
from jobs.planning_task import Task
from jobs.pricing import Ground, Prices
from optimizer.drift import Outcome, Policy, Standing, judge
from optimizer.migration import auto
from optimizer.migration.cost import Figures
from optimizer.migration.matching import Context
from optimizer.plan import Plan, as_written
from optimizer.workload import Budget, StreamLoad, Workload
from stats.store import Window
from tests.bench.chain import Chain
from tests.bench.drift.scenarios import EVERY, Scenario, seen, true

STRATEGY = "two-layer"


@dataclass
class Simulation:
    """A scenario over so many windows."""

    chain: Chain
    scenario: Scenario
    windows: int
    policy: Policy
    seed: int = 1

    @cached_property
    def loads(self) -> list[Workload]:
        """What really comes in."""
        return [true(self.chain, self.scenario.course(n)) for n in range(self.windows)]

    @cached_property
    def glimpses(self) -> list[Glimpse]:
        """What is observed of it."""
        random = np.random.default_rng(self.seed)
        return [
            Glimpse(_window(n), seen(load, self.scenario.noise, random), {}, {})
            for n, load in enumerate(self.loads)
        ]

    def task(self, load: Workload) -> Task:
        """The query under a workload, without a budget."""
        return Task("q", self.chain.query, load, Budget(), as_written(self.chain.query))

    @cached_property
    def start(self) -> Plan:
        """The best plan for the first window."""
        return self.ideal(self.loads[0])

    def ideal(self, load: Workload) -> Plan:
        """The best plan that a search knows."""
        return best(self.task(load), (), STRATEGY, self.policy.near).priced.plan

    def work(self, plan: Plan, load: Workload) -> float:
        """CPU-seconds of a window."""
        return EVERY * self.chain.cpu(plan, load)

    def run(self) -> dict[str, Any]:
        """Decide after every window; what was decided when, and the work of it all."""
        migrated, outcomes, total = [], [], 0.0
        plan, before, ended = self.start, None, list[int]()
        for number, load in enumerate(self.loads):
            total += self.work(plan, load)
            now = EVERY * (number + 1)
            sight = self._sight(number)
            assert sight.ground is not None
            seen_then = sight.ground.workload
            task = self.task(seen_then)
            weighed = weigh(task, plan, sight, self.policy, STRATEGY)
            new = weighed.taken.priced.plan
            effort = 0.0 if weighed.same else moving(plan, new, seen_then)
            standing = self._standing(now, ended, returns=new == before)
            verdict = judge(weighed.observations, weighed.choice(effort), self.policy, standing)
            outcomes.append(str(verdict.outcome))
            if verdict.outcome == Outcome.MIGRATE:
                migrated.append(
                    {"window": number, "from": str(plan), "to": str(new), "why": verdict.reasons[0]}
                )
                total += moving(plan, new, load)
                plan, before, ended = new, plan, [*ended, now]
        never = sum(self.work(self.start, load) for load in self.loads)
        return {
            "migrations": migrated,
            "outcomes": {name: outcomes.count(name) for name in sorted(set(outcomes))},
            "work": total,
            "never": never,
            "clairvoyant": self.clairvoyant(),
        }

    def _sight(self, number: int) -> Seen:
        """The last windows, and the workload of those that make a trend, smoothed."""
        lately = self.glimpses[max(0, number - self.policy.windows) : number + 1]
        whole = smoothed([one.load for one in lately[-self.policy.windows :]])
        prices = Prices("duckdb", whole.unit_costs, fitted=False)
        return Seen(tuple(lately), Ground(whole, prices))

    def _standing(self, now: int, ended: list[int], *, returns: bool) -> Standing:
        if not ended:
            return Standing()
        turns = sum(end > now - self.policy.horizon for end in ended)
        return Standing(now - ended[-1], returns, turns)

    def clairvoyant(self) -> float:
        """The least work of any course through the plans that are best at some time."""
        shares = [self.scenario.course(number) for number in range(self.windows)]
        loads = {share: true(self.chain, share) for share in shares}
        plans = list(dict.fromkeys([self.start, *map(self.ideal, loads.values())]))
        every = range(len(plans))
        works = {s: [self.work(plan, load) for plan in plans] for s, load in loads.items()}
        moves = {
            s: [[moving(one, other, load) for other in plans] for one in plans]
            for s, load in loads.items()
        }
        costs = [0.0] + [inf] * (len(plans) - 1)
        for share in shares:
            costs = [
                works[share][j] + min(costs[i] + moves[share][i][j] for i in every) for j in every
            ]
        return min(costs)


def smoothed(loads: Sequence[Workload]) -> Workload:
    """The mean of each figure."""
    last = loads[-1]
    return replace(
        last,
        streams={
            name: StreamLoad(mean(load.streams[name].rate for load in loads), one.width)
            for name, one in last.streams.items()
        },
        joins={edge: mean(load.joins[edge] for load in loads) for edge in last.joins},
    )


def moving(old: Plan, new: Plan, load: Workload) -> float:
    """CPU-seconds that a migration takes."""
    return 0.0 if old == new else auto(old, new, Context(), Figures(load)).effort.work


def _window(number: int) -> Window:
    return Window(number * EVERY * 1_000_000, (number + 1) * EVERY * 1_000_000)
