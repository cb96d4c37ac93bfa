"""What there is to place: the operators of a job's query, of a workload, or of a file of their own.

Where a job says so little, Spark's operators cost what its batches were seen to cost, or what is
shipped for Spark, and the database's what is shipped for DuckDB.  What crosses the border has not
been measured: a tuple is taken to cost what Spark takes for one that comes in from outside.
"""

from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from jobs import operators, show, specs, workloads
from jobs.databases import FragmentFields, measured
from jobs.documents import Document, read
from jobs.errors import InputError, RefusedError
from optimizer.cost.engines import logical_plan
from optimizer.cost.feasibility import Objective, Utilisation
from optimizer.cost.fragments import DB, Border, LogicalPlan, Mask
from optimizer.estimate import Estimator
from optimizer.placement.logical import TooManyInputsError, logical
from optimizer.plan import Branch, Tree, build, leaves
from optimizer.workload import Method, UnitCosts, Workload
from stats.costs import SHIPPED, known

if TYPE_CHECKING:
    from jobs.planning_task import Task


@dataclass(frozen=True)
class Asked:
    """What of a file to place, and by which objective."""

    file: Path
    query: str | None = None
    workload: Path | None = None
    plan: str | None = None
    cores: float | None = None
    feasibility: bool = True

    def objective(self, budget: float) -> Objective:
        """With the CPU of a budget, where nobody says how many cores there are."""
        return Objective(budget if self.cores is None else self.cores, self.feasibility)


@dataclass(frozen=True)
class Engines:
    """What units of work cost in the database, and what its border costs."""

    units: UnitCosts
    border: Border
    fragments: tuple[FragmentFields, ...] = ()
    document: Document | None = None


@dataclass(frozen=True)
class Subject:
    """A logical plan to place, and how phase one came to it."""

    name: str
    plan: LogicalPlan
    objective: Objective
    tree: Tree | None = None
    """How the inputs of a query are joined; none where a file gives the operators."""
    examined: int = 1
    """Joins that phase one priced; one where the plan was given."""
    seconds: float = 0.0
    assumed: bool = False

    @property
    def cost(self) -> Utilisation:
        """What the logical plan needs, all of it on Spark."""
        return self.plan.price(0)

    def notation(self, mask: Mask = 0) -> str:
        """A placement as text; of a query, in the plan notation."""
        if self.tree is None:
            return self.plan.notation(mask)
        database = {one.name for at, one in enumerate(self.plan.operators) if mask >> at & 1}
        return str(_placed(self.tree, database))


def _placed(tree: Tree, database: set[str]) -> Tree:
    if not isinstance(tree, Branch):
        return tree
    name = f"join:{'+'.join(sorted(leaf.alias for leaf in leaves(tree)))}"
    parts = tuple(_placed(part, database) for part in tree.parts)
    return Branch(parts, tree.orders, DB if name in database else "")


def subject(asked: Asked) -> Subject:
    """What a file, and the options beside it, ask to place."""
    document = read(asked.file)
    if operators.is_operators(document):
        return _of_operators(asked, document)
    task, engines = _of_query(asked, document)
    begun = perf_counter()
    objective = asked.objective(task.budget.cpu)
    tree, examined = _phase_one(task, objective, asked.plan)
    estimator = Estimator(task.query, task.workload)
    plan = logical_plan(build(task.query, tree), estimator, engines.units, engines.border)
    if not len(plan):
        raise InputError("has no select, join or group-by to place", str(asked.file))
    if engines.document is not None:
        found = measured(engines.fragments, plan, engines.document)
        plan = replace(plan, measured=found)
    seconds = perf_counter() - begun
    return Subject(
        task.name, plan, objective, tree, examined, seconds, assumed=task.workload.assumed
    )


def _of_operators(asked: Asked, document: Document) -> Subject:
    options = {"--query": asked.query, "--workload": asked.workload, "--plan": asked.plan}
    for option, given in options.items():
        if given is not None:
            raise InputError(f"{asked.file} gives its operators itself", option)
    begun = perf_counter()
    plan = operators.of(document)
    return Subject(
        asked.file.stem, plan, asked.objective(inf), seconds=perf_counter() - begun
    )  # fmt: skip


def _phase_one(task: "Task", objective: Objective, plan: str | None) -> tuple[Tree, int]:
    """The tree that joins the inputs: as told, or the best on Spark."""
    if plan is not None:
        return task.price(task.plan(plan)).plan.tree, 1
    with show.progress("phase one") as told:
        try:
            found = logical(task.memo(progress=told), objective)
        except TooManyInputsError as error:
            raise RefusedError(str(error)) from None
    return found.tree, found.examined


# --- a query, and what its operators cost --------------------------------------------------------


def _of_query(asked: Asked, document: Document) -> "tuple[Task, Engines]":
    from jobs.planning_task import from_file

    if asked.workload is None and specs.is_job(document):
        return _of_job(specs.load(asked.file), asked.query)
    task = from_file(asked.file, asked.query, asked.workload)
    said = document if asked.workload is None else read(asked.workload)
    return task, _said(said, task.workload)


def _said(document: Document, workload: Workload) -> Engines:
    """What a workload file says of the database, or what is shipped for our own method."""
    given = workloads.database(document)
    if given is not None:
        units = given.units(workload.unit_costs)
        return Engines(units, given.border, given.fragments, document)
    if workload.method != Method.BATCH:
        needed = "statement, executions, in, out, join"
        raise InputError(f"missing; needed: what the database costs: {needed}",
                         document.where(("db",)))  # fmt: skip
    return _shipped(SHIPPED["spark"].take, SHIPPED["duckdb"].units, workload.batch)


def _shipped(crossing: float, units: UnitCosts, batch: float) -> Engines:
    return Engines(units, Border(units.statement, 1 / batch, crossing, crossing))


def _of_job(job: specs.Job, query: str | None) -> "tuple[Task, Engines]":
    """By what its statistics show, if it has run; else by a modest load that is assumed."""
    from jobs.planning_task import from_job
    from jobs.tables.paths import has_run, local
    from stats.store import StatsStore

    task, batch = from_job(job, query), job.trigger.total_seconds()
    spark, duckdb = SHIPPED["spark"], SHIPPED["duckdb"]
    if has_run(job.storage):
        store = StatsStore.of(local(job.storage))
        spark, duckdb = known(store, "spark"), known(store, "duckdb")
        task = _observed(job, task)
    load = replace(task.workload, method=Method.BATCH, unit_costs=spark.units, batch=batch)
    return replace(task, workload=load), _shipped(spark.take, duckdb.units, batch)


def _observed(job: specs.Job, task: "Task") -> "Task":
    """The same under what the job's statistics show, unless there is nothing to go by."""
    from jobs.proposals import Subject as Running

    try:
        return Running.of(job, task.name).task
    except RefusedError:
        return task
