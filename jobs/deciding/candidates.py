"""Which plans a query could have, what each search came to, and which of them to take.

Searches stop at the first plan within the budget, and better ones may exist: so the job's own
strategy is joined by the two quick climbs from either end of what plans there are.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from time import perf_counter

from jobs.deciding.decisions import Candidate
from jobs.planning_task import Task
from optimizer.cost.dual import Cost, Priced, price
from optimizer.cost.feasibility import Objective, Utilisation
from optimizer.memo import Memo, Offer
from optimizer.plan import Plan
from optimizer.search import SEARCHES, Found, search

QUICK = ("state-selection", "state-removal")
"""From the mjoin and from the bjtree, to the end: milliseconds also for many streams."""

RUNNING, LIBRARY = "running", "library"
"""Stand for the strategy where a plan was known already."""


@dataclass(frozen=True)
class Option:
    """A plan that could be taken, and how it was found."""

    made: Offer | Priced
    strategy: str

    @property
    def total(self) -> Cost:
        """What it costs."""
        return self.made.total

    @property
    def priced(self) -> Priced:
        """With all its operators."""
        return self.made.priced if isinstance(self.made, Offer) else self.made

    @property
    def needs(self) -> Utilisation:
        """As definition 1 compares it; a bottleneck is no more than all operators together."""
        total = self.total.cpu
        return Utilisation(busiest(self.priced) if total >= 1 else total, total)


def busiest(plan: Priced) -> float:
    """CPU-seconds a second of the operator that needs most."""
    return plan.costs[plan.heaviest].cpu


def strategies(own: str) -> tuple[str, ...]:
    """The searches to put side by side: the job's own one first."""
    return tuple(dict.fromkeys((own, *QUICK)))


def known(plan: Plan, strategy: str, memo: Memo) -> Option:
    """A plan that nobody had to look for."""
    return Option(price(plan, memo.estimator), strategy)


def searched(task: Task, own: str) -> tuple[list[Candidate], list[Option]]:
    """What each search comes to, and all plans that none of the others beats in it."""
    candidates, options = [], []
    for strategy in strategies(own):
        begun = perf_counter()
        memo = task.memo()
        found = search(strategy, memo)
        candidates.append(_candidate(found, perf_counter() - begun, memo))
        options += [Option(offer, strategy) for offer in found.front]
    return candidates, options


def _candidate(found: Found, seconds: float, memo: Memo) -> Candidate:
    option = Option(found.chosen, found.strategy)
    return candidate(option, found.examined, seconds, memo, qualified=found.qualified)


def candidate(
    option: Option, examined: int, seconds: float, memo: Memo, *, qualified: bool
) -> Candidate:
    """An option as a decision keeps it."""
    total = option.total
    return Candidate(
        option.strategy, str(option.priced.plan), total.cpu, total.tuples, total.bytes,
        qualified, examined, seconds, **measured(memo, total),
    )  # fmt: skip


def measured(memo: Memo, total: Cost) -> dict[str, float | None]:
    """What a plan makes of the objective, by its measure; nothing without one."""
    found = memo.throughput
    return {} if found is None else {found.objective.measure: found.value(total)}


def pick(options: Sequence[Option], memo: Memo, near: float) -> Option:
    """The one of least CPU among those with room in the budget; else the one with most room.

    A plan that nearly fills the budget would soon have to go again.  Whether a plan keeps up, and
    which of those that do not is the better one, definition 1 says (Ji); operators share the
    budget's CPU.  Of several alike the first is taken.  With an objective of output rates it is the
    plan of most results, of those with room for their states.
    """
    if memo.throughput is not None:
        fits = [one for one in options if memo.shares(one.total)[1] <= near]
        return min(fits or options, key=lambda one: memo.worse(one.total))
    objective = Objective(memo.budget.cpu)
    roomy = [one for one in options if max(memo.shares(one.total)) <= near]
    keep_up = [one for one in options if objective.feasible(one.needs)]
    if keep_up and not roomy:
        return min(keep_up, key=lambda one: max(memo.shares(one.total)))
    ranked = list(enumerate(roomy or options))
    return objective.best(ranked, lambda one: one[1].needs, itemgetter(0))[1]


def best(task: Task, plans: Iterable[Plan], own: str | None, near: float) -> Option:
    """The plan to take under a workload, of those known and, with a strategy, of a search."""
    memo = task.memo()
    options = [known(plan, RUNNING, memo) for plan in plans]
    if own is not None:
        for strategy in strategies(own):
            SEARCHES[strategy](memo)
        options += [Option(offer, own) for offer in memo.front]
    return pick(options, memo, near)
