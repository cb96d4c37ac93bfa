"""`midstream explain`: what a plan does, what each operator costs, and a picture of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs import show
from jobs.errors import InputError, RefusedError
from jobs.pictures import draw
from jobs.tables.paths import has_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobs.engine.state_layout import StateLayout
    from jobs.planning_task import Task
    from jobs.pricing import Ground
    from jobs.specs import Job
    from optimizer.cost.dual import Priced
    from optimizer.picture.svg import Drawing


def explain(
    file: Annotated[
        Path,
        typer.Argument(metavar="JOB", help="A job file, or a workload file.", show_default=False),
    ],
    *,
    query: Annotated[str | None, typer.Option(help="Which of the job's queries.")] = None,
    plan: Annotated[
        str | None, typer.Option(help="Another plan than the job's, such as '((f b) c)'.")
    ] = None,
    workload: Annotated[
        Path | None,
        typer.Option(help="Rates and selectivities; otherwise as the job's statistics show."),
    ] = None,
    svg: Annotated[Path | None, typer.Option(help="Draw the plan into this file.")] = None,
    json: show.Json = False,
) -> None:
    """Show a query's plan with the estimates and the cost of each operator.

    Of a job that has run it is the plan that runs, under what its statistics show.
    """
    from optimizer.explain import as_json, as_text

    found = _priced(file, query, plan, workload)
    priced, task = found.priced, found.task
    network = _network(found, asked=plan is not None)
    if svg is not None:
        draw(priced, svg, title=task.name, budget=task.budget, below=_panel(network))
    if json:
        by = found.ground.to_json() if found.ground else {"source": found.source}
        plan_as_json = as_json(priced)
        _lay_out(plan_as_json["root"], found)
        show.as_json({"query": task.name, "priced_by": by} | _made(found) | network | plan_as_json)
        return
    show.tree(as_text(priced))
    _show_layout(found)
    if network:
        _show_network(network["network"])
    if said := _makes(found):
        show.note(said)
    if found.ground:
        show.note(f"Priced by {found.ground}.")
    if priced.workload.assumed:
        show.note("Rates and selectivities are assumed: --workload FILE gives others.")
    if found.why:
        show.note(f"The job's statistics are not looked at: {found.why}")
    if svg is not None:
        show.note(f"The picture is in {svg}")


@dataclass(frozen=True)
class _Found:
    """A plan with what it costs, and by what it was priced."""

    task: "Task"
    priced: "Priced"
    ground: "Ground | None" = None
    job: "Job | None" = None
    why: str = ""
    """Why there is nothing to price a job's plans by; empty where nobody looked."""

    @property
    def source(self) -> str:
        return "assumed" if self.priced.workload.assumed else "workload file"


def _layouts(found: _Found) -> "Mapping[str, StateLayout]":
    """How a job's states will lie on the disk, by key."""
    if found.job is None:
        return {}
    from jobs.engine.state_layout import layouts
    from jobs.tables.partitions import Widths

    batch = found.job.trigger.total_seconds()
    return layouts(found.priced, Widths(found.job.widths), batch)


def _lay_out(root: dict[str, Any], found: _Found) -> None:
    """Add to each state how it will lie on the disk."""
    known, todo = _layouts(found), [root]
    for node in todo:
        todo += node.get("inputs", ())
        if "state" in node and node["state"]["key"] in known:
            node["state"]["layout"] = known[node["state"]["key"]].to_json()


def _show_layout(found: _Found) -> None:
    """A line a state, if the plan is a job's."""
    from optimizer.migration.matching import States, name

    nodes, known = States.of(found.priced.plan).nodes, _layouts(found)
    rows = [
        (name(nodes[key][0]), _seconds(one.kept), _seconds(one.width),
         f"{one.batch_files}", f"{one.files:,}")
        for key, one in known.items()
    ]  # fmt: skip
    if rows:
        show.out.print()
        show.table(("state", "kept", "partition", "files/batch", "files"), rows,
                   right="kept partition files/batch files")  # fmt: skip


def _seconds(microseconds: int) -> str:
    return f"{microseconds / 1e6:,.3g} s" if microseconds < 1e10 else f"{microseconds / 1e6:,.0f} s"


def _network(found: _Found, *, asked: bool) -> dict[str, Any]:
    """What the plan takes of the job's network, if its file names one."""
    if found.job is None or found.job.network is None:
        return {}
    from jobs.network.usage import usage

    plan, workload = found.priced.plan, found.priced.workload
    try:
        return {"network": usage(found.job, found.task.name, plan, workload, asked=asked)}
    except InputError as error:
        return {"network": {"error": str(error)}}


def _panel(network: dict[str, Any]) -> "Drawing | None":
    if "error" in network.get("network", {"error": ""}):
        return None
    from jobs.network.usage import drawn
    from optimizer.picture.sites import panel

    return panel(drawn(network["network"]), network["network"]["measure"])


def _show_network(found: dict[str, Any]) -> None:
    from jobs.network.report import figure
    from optimizer.explain import size

    if "error" in found:
        show.note(f"What it takes of the network is not known: {found['error']}")
        return
    where = "as deployed" if found["deployed"] else "its operators at the job's own site"
    show.out.print()
    rows = [
        (one["site"], size(one["bytes_in"]) + "/s", size(one["bytes_out"]) + "/s",
         figure(one["usage"]))
        for one in found["sites"]
    ]  # fmt: skip
    show.table(("site", "in", "out", "usage"), rows, right="in out usage")
    show.note(f"Network: {figure(found['usage'])} bytes/s x {found['measure']}, {where}.")


def _made(found: _Found) -> dict[str, str | float | None]:
    """What the plan makes of the job's objective, if that is one of output rates."""
    made = found.task.memo().throughput
    if made is None:
        return {}
    return {
        "objective": made.objective.spelt,
        made.objective.measure: made.value(found.priced.total),
    }


def _makes(found: _Found) -> str:
    """The same for people."""
    from jobs.deciding.objectives import makes

    made = found.task.memo().throughput
    return "" if made is None else f"It makes {makes(made, found.priced.total)}."


def _priced(file: Path, query: str | None, plan: str | None, workload: Path | None) -> _Found:
    from jobs import specs
    from jobs.documents import read
    from jobs.planning_task import from_file
    from jobs.proposals import Subject

    why, job = "", specs.load(file) if specs.is_job(read(file)) else None
    if workload is None and job is not None and has_run(job.storage):
        try:
            subject = Subject.of(job, query)
        except RefusedError as error:
            why = str(error)
        else:
            priced = subject.priced(subject.plan) if plan is None else subject.named(plan)
            return _Found(subject.task, priced, subject.ground, job)
    task = from_file(file, query, workload)
    priced = task.price(task.start if plan is None else task.plan(plan))
    return _Found(task, priced, job=job, why=why)
