"""What there is to plan: a query, its workload and its budget, from the files that say so."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from jobs import specs, workloads
from jobs.documents import read
from jobs.errors import InputError
from jobs.words import unknown
from optimizer.plan import Branch, Leaf, PlanError, Tree, as_written, build, parse
from optimizer.workload import Budget, Workload

if TYPE_CHECKING:
    from optimizer.cost.dual import Priced
    from optimizer.cost.rate.judge import Judge
    from optimizer.cost.rate.objective import Objective
    from optimizer.memo import Memo, Part, Progress
    from optimizer.query import Query


@dataclass(frozen=True)
class Task:
    """A query to plan, and the plan that it starts with."""

    name: str
    query: "Query"
    workload: Workload
    budget: Budget
    start: Tree
    objective: "Objective | None" = None
    """Of output rates; otherwise the cost decides."""

    def memo(
        self, expired: Callable[[], bool] = lambda: False, progress: "Progress | None" = None
    ) -> "Memo":
        """A fresh judge of its plans, and of when to stop searching."""
        from optimizer.memo import Memo

        return Memo(
            self.query, self.workload, self.budget, expired=expired, progress=progress,
            judge=self._judge, objective=self.objective,
        )  # fmt: skip

    @property
    def _judge(self) -> "Judge | None":
        if self.objective is None:
            return None
        from jobs.rating.windowed import judge

        return judge(self.query, self.workload, self.objective)

    def price(self, tree: Tree) -> "Priced":
        """The plan of that tree, new tuples probing in the best order that we know."""
        from optimizer.cost.dual import price

        memo = self.memo()
        return price(build(self.query, _ordered(tree, memo).tree), memo.estimator)

    def plan(self, text: str, where: str = "--plan") -> Tree:
        """A plan of the query in the short notation, as an option gives it."""
        try:
            tree = parse(text)
            build(self.query, tree)
        except PlanError as error:
            raise InputError(str(error), where) from None
        return tree


def _ordered(tree: Tree, memo: "Memo") -> "Part":
    """The notation says no probe orders: find them, bottom-up."""
    if isinstance(tree, Leaf):
        return memo.leaf(tree.alias, combined=tree.combined)
    part = memo.join([_ordered(below, memo) for below in tree.parts])
    assert isinstance(part.tree, Branch)
    return replace(part, tree=replace(part.tree, place=tree.place))


def from_file(path: Path, query: str | None = None, workload: Path | None = None) -> Task:
    """The task of a job file or, where the file is one, of a workload file."""
    document = read(path)
    if specs.is_job(document):
        return from_job(specs.load(path), query, workload)
    if query is not None:
        raise InputError(f"{path} is a workload file: it has no queries to choose from", "--query")
    if workload is not None:
        raise InputError(f"{path} is a workload file itself", "--workload")
    return from_workload(path)


def from_workload(path: Path) -> Task:
    """The task that a workload file describes alone."""
    made, load, budget = workloads.load(path)
    return Task(path.stem, made, load, budget, as_written(made))


def from_job(job: specs.Job, name: str | None, workload: Path | None = None) -> Task:
    """A query of a job; without a workload, a modest one is assumed."""
    name = _chosen(job, name)
    plan = job.plan(name)
    budget = job.budget.limits
    wanted = job.reoptimize.wanted
    if workload is None:
        return Task(name, plan.query, Workload.assume(plan.query), budget, plan.tree, wanted)
    _, load, stated = workloads.load(workload, plan.query)
    limits = stated if stated != Budget() else budget
    return Task(name, plan.query, load, limits, plan.tree, wanted)


def _chosen(job: specs.Job, name: str | None) -> str:
    if name is not None and name not in job.queries:
        raise InputError(unknown("query", name, job.queries), "--query")
    if name is None and len(job.queries) > 1:
        raise InputError(f"{job.file} has several queries: name one of {', '.join(job.queries)}",
                         "--query")  # fmt: skip
    return name or next(iter(job.queries))
