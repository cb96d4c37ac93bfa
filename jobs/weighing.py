"""Plans under what was seen of a query: which one to take, and how it would have fared.

Values in, values out, but for the time that searches take.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter

from jobs.candidates import (
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
from jobs.commands.task import Task
from jobs.decisions import Candidate
from jobs.library import Entry, signature, still_good
from jobs.observations import Glimpse, Seen, intermediate
from optimizer.cost.dual import Priced, price
from optimizer.drift import Choice, Observation, Policy
from optimizer.estimate import Estimator
from optimizer.migration.matching import States, name
from optimizer.plan import Plan, as_written, from_json

LIGHTER = 0.9
"""A plan that keeps at most so much of what another one does keeps less."""


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

    @property
    def same(self) -> bool:
        """Whether the running plan is the one to take."""
        return self.taken.priced.plan == self.running.plan

    def choice(self, task: Task, work: float) -> Choice:
        """The plan to take, for the verdict; the migration takes so many CPU-seconds."""
        old, new = self.running.total, self.taken.total
        plan, running = str(self.taken.priced.plan), str(self.running.plan)
        return Choice(
            plan if self.same or plan != running else f"{plan} with other probe orders",
            running,
            new.cpu,
            old.cpu,
            qualified=new.within(task.budget),
            feasible=self.taken.heaviest < 1,
            lighter=new.memory(task.budget) <= LIGHTER * old.memory(task.budget),
            same=self.same,
            work=work,
            why=_short_of(task, self.taken),
        )


def weigh(
    task: Task, running: Plan, seen: Seen, policy: Policy, own: str, entry: Entry | None = None
) -> Weighed:
    """Compare plans under the workload of all windows, and under that of each.

    A plan of the library that is as good as it was spares the searches.
    """
    memo = task.memo()
    usual = task.price(as_written(task.query)).total.cpu
    options = [known(running, RUNNING, memo)]
    begun = perf_counter()
    hit = None
    if entry is not None:
        options.append(known(from_json(task.query, entry.plan), LIBRARY, memo))
        hit = entry if still_good(entry, _ratio(usual, options[1].total.cpu)) else None
    if hit is not None:
        seconds = perf_counter() - begun
        fits = options[1].total.within(task.budget)
        candidates = [candidate(options[1], 0, seconds, qualified=fits)]
    else:
        candidates, found = searched(task, own)
        options += found
    taken = pick(options, memo, policy.near)
    old, new = options[0].priced, taken.priced
    strategy = None if hit else own
    return Weighed(
        old,
        tuple(candidates),
        taken,
        tuple(_observations(task, (old.plan, new.plan), seen, strategy, policy.near)),
        signature(task.workload),
        _ratio(usual, taken.total.cpu),
        hit,
    )


def _ratio(one: float, other: float) -> float:
    return one / other if other else 1.0


def _short_of(task: Task, option: Option) -> str:
    """What the plan to take lacks of the budget."""
    memo, total = task.memo(), option.total
    cpu, memory = memo.shares(total)
    if max(cpu, memory) <= 1:
        return ""
    needs = f"{cpu:.0%} of the CPU and {memory:.0%} of the memory"
    return f"the best known, {option.priced.plan}, needs {needs} in the budget"


# --- windows -------------------------------------------------------------------------------------


def _observations(
    task: Task, plans: tuple[Plan, Plan], seen: Seen, own: str | None, near: float
) -> Iterator[Observation]:
    for glimpse in seen.glimpses:
        then = replace(task, workload=glimpse.load)
        cheapest = best(then, plans, own, near).total.cpu
        yield _observation(then, plans, glimpse, seen.settled, cheapest)


def _observation(
    task: Task, plans: tuple[Plan, Plan], glimpse: Glimpse, settled: frozenset[str], best: float
) -> Observation:
    estimator = Estimator(task.query, task.workload)
    running, chosen = (price(plan, estimator) for plan in plans)
    cpu, memory = task.memo().shares(running.total)
    batches, states = glimpse.batches, glimpse.states
    return Observation(
        running.total.cpu,
        best,
        chosen.total.cpu,
        busiest(running),
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
