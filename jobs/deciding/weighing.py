"""Plans under what was seen of a query: which one to take, and how it would have fared.

Values in, values out, but for the time that searches take.
"""

from dataclasses import dataclass, replace
from math import inf
from time import perf_counter
from typing import Any

from jobs.deciding.candidates import (
    LIBRARY,
    RUNNING,
    Option,
    best,
    busiest,
    candidate,
    known,
    pick,
    searched,
)
from jobs.deciding.decisions import Candidate
from jobs.deciding.library import Entry, signature, still_good
from jobs.deciding.objectives import ahead
from jobs.deciding.observations import Glimpse, Seen, intermediate
from jobs.planning_task import Task
from optimizer.cost.dual import Priced, price
from optimizer.cost.feasibility import Objective
from optimizer.cost.throughput import Throughput
from optimizer.drift import Choice, Observation, Policy
from optimizer.estimate import Estimator
from optimizer.migration.matching import States, name
from optimizer.plan import Plan, as_written, from_json
from optimizer.workload import Budget, Workload

LIGHTER = 0.9
"""Where a plan leaves no room in the budget, it has at least to keep so much less than another."""


@dataclass(frozen=True)
class Weighed:
    """What plans there are, which of them to take, and what each window says of that."""

    running: Priced
    candidates: tuple[Candidate, ...]
    taken: Option
    observations: tuple[Observation, ...]
    signature: str
    advantage: float
    """What the query as written costs, by what the plan to take does."""
    hit: Entry | None
    """The entry of the library that spared the searches."""
    budget: Budget
    """As much of it as there is, by what states were measured to hold."""
    near: float
    throughput: Throughput | None = None
    """What plans make of the objective, if it is one of output rates."""

    @property
    def results(self) -> dict[str, Any]:
        """The objective, and what both plans make of it."""
        if self.throughput is None:
            return {}
        measure = self.throughput.objective.measure
        return {
            "objective": self.throughput.objective.spelt,
            f"running_{measure}": self.throughput.value(self.running.total),
            f"chosen_{measure}": self.throughput.value(self.taken.total),
        }

    @property
    def ahead(self) -> str:
        """How much more the plan to take makes, in words; nothing if it makes no more."""
        if self.throughput is None:
            return ""
        return ahead(self.throughput, self.running, self.taken.priced)

    @property
    def same(self) -> bool:
        """Whether the running plan is the one to take."""
        return self.taken.priced.plan == self.running.plan

    def choice(self, work: float) -> Choice:
        """The plan to take, for the verdict; the migration takes so many CPU-seconds."""
        budget, old, new = self.budget, self.running.total, self.taken.total
        plan, running = str(self.taken.priced.plan), str(self.running.plan)
        by_results = self.throughput is not None  # what is too much CPU shows in them
        limits = replace(budget, cpu=inf) if by_results else budget
        least = max(self.near * budget.memory, LIGHTER * old.memory(budget))
        return Choice(
            plan if self.same or plan != running else f"{plan} with other probe orders",
            running,
            new.cpu,
            old.cpu,
            qualified=new.within(limits),
            feasible=by_results or Objective().feasible(self.taken.needs),
            lighter=new.memory(budget) < min(old.memory(budget), least),
            same=self.same,
            work=work,
            why=_short_of(limits, self.taken),
        )


def weigh(
    task: Task, running: Plan, seen: Seen, policy: Policy, own: str, entry: Entry | None = None
) -> Weighed:
    """Compare plans under the workload of all windows, and under that of each.

    A plan of the library that is as good as it was spares the searches.
    """
    tight = replace(task, budget=_tightened(task, running, seen, policy.windows))
    usual = task.price(as_written(task.query)).total.cpu
    options, candidates, hit = _options(tight, running, own, entry, usual)
    taken = pick(options, tight.memo(), policy.near)
    plans = running, taken.priced.plan

    def cheapest(load: Workload) -> float:
        then, search = replace(tight, workload=load), None if hit else own
        return then.memo().effort(best(then, plans, search, policy.near).total)

    observations = tuple(
        _observation(replace(task, workload=one.load), plans, one, seen.settled, cheapest(one.load))
        for one in seen.glimpses
    )
    return Weighed(
        options[0].priced, candidates, taken, observations, signature(task.workload),
        _ratio(usual, taken.total.cpu), hit, tight.budget, policy.near, tight.memo().throughput,
    )  # fmt: skip


def _options(
    task: Task, running: Plan, own: str, entry: Entry | None, usual: float
) -> tuple[list[Option], tuple[Candidate, ...], Entry | None]:
    """The running plan, then that of the library if it is still good, or else what is found."""
    memo, begun = task.memo(), perf_counter()
    stays = known(running, RUNNING, memo)
    if entry is not None:
        noted = known(from_json(task.query, entry.plan), LIBRARY, memo)
        if still_good(entry, _ratio(usual, noted.total.cpu)):
            fits, seconds = noted.total.within(task.budget), perf_counter() - begun
            return [stays, noted], (candidate(noted, 0, seconds, memo, qualified=fits),), entry
    candidates, found = searched(task, own)
    return [stays, *found], tuple(candidates), None


def _ratio(one: float, other: float) -> float:
    return one / other if other else 1.0


def _tightened(task: Task, running: Plan, seen: Seen, windows: int) -> Budget:
    """The budget, if all plans keep as much more than estimated as the running one does."""
    priced = price(running, Estimator(task.query, task.workload))
    estimated = _ratio(priced.total.memory(task.budget), task.budget.memory)
    kept = [_kept(task, priced, glimpse) for glimpse in seen.glimpses[-windows:]]
    measured = min((share for share in kept if share is not None), default=0.0)
    factor = max(1.0, _ratio(measured, estimated))
    return replace(
        task.budget, tuples=task.budget.tuples / factor, bytes=task.budget.bytes / factor
    )


def _short_of(budget: Budget, option: Option) -> str:
    """What the plan to take lacks of the budget."""
    total = option.total
    cpu, memory = total.cpu / budget.cpu, total.memory(budget) / budget.memory
    if max(cpu, memory) <= 1:
        return ""
    needs = f"{cpu:.0%} of the CPU and {memory:.0%} of the memory"
    return f"the best known, {option.priced.plan}, needs {needs} in the budget"


# --- windows -------------------------------------------------------------------------------------


def _observation(
    task: Task, plans: tuple[Plan, Plan], glimpse: Glimpse, settled: frozenset[str], best: float
) -> Observation:
    estimator = Estimator(task.query, task.workload)
    running, chosen = (price(plan, estimator) for plan in plans)
    memo = task.memo()
    cpu, memory = memo.shares(running.total)
    heaviest = busiest(running)
    if memo.throughput is not None:  # more CPU than there is costs results: drift says how many
        cpu = heaviest = 0.0
    batches, states = glimpse.batches, glimpse.states
    return Observation(
        memo.effort(running.total),
        best,
        memo.effort(chosen.total),
        heaviest,
        cpu,
        memory,
        _kept(task, running, glimpse),
        batches.get("backlog"),
        batches.get("lag"),
        batches.get("busy"),
        {
            name(node): float(states[key])
            for key, node in intermediate(running.plan).items()
            if key in settled and key in states
        },
        glimpse.window.seconds,
    )


def _kept(task: Task, running: Priced, glimpse: Glimpse) -> float | None:
    """The share of the memory in the budget that the plan's states took, if all were measured."""
    nodes = States.of(running.plan).nodes
    if not nodes.keys() <= glimpse.states.keys():
        return None
    kept = 0.0
    for key, (node, *_) in nodes.items():
        width = running.estimates[node].width if task.budget.in_bytes else 1.0
        kept += glimpse.states[key] * width
    return kept / task.budget.memory
