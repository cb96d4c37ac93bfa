"""`midstream explain`: what a plan does, what each operator costs, and a picture of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs import show
from jobs.errors import MidstreamError

if TYPE_CHECKING:
    from optimizer.cost.dual import Priced
    from optimizer.workload import Budget


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
        typer.Option(help="Rates and selectivities; otherwise modest ones are assumed."),
    ] = None,
    svg: Annotated[Path | None, typer.Option(help="Draw the plan into this file.")] = None,
    json: show.Json = False,
) -> None:
    """Show a query's plan with the estimates and the cost of each operator."""
    from jobs.commands.task import from_file
    from optimizer.explain import as_json, as_text

    task = from_file(file, query, workload)
    priced = task.price(task.start if plan is None else task.plan(plan))
    if svg is not None:
        draw(priced, svg, title=task.name, budget=task.budget)
    if json:
        show.as_json({"query": task.name} | as_json(priced))
        return
    show.tree(as_text(priced))
    if priced.workload.assumed:
        show.note("Rates and selectivities are assumed: --workload FILE gives others.")
    if svg is not None:
        show.note(f"The picture is in {svg}")


def draw(priced: "Priced", path: Path, *, title: str, budget: "Budget | None" = None) -> None:
    """Write the picture of a plan."""
    from optimizer.picture import as_svg

    write(path, as_svg(priced, title, budget))


def write(path: Path, picture: str) -> None:
    """Write a picture, and the directories above it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(picture, encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise MidstreamError(f"cannot write the picture: {reason}", str(path)) from None
