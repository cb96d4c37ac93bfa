"""`midstream optimize`: search for a plan that stays within the budget."""

from dataclasses import replace
from math import inf
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs import show
from jobs.commands.pictures import check_pictures, picture, say_where
from jobs.errors import InputError, RefusedError
from jobs.objectives import FORMS
from jobs.objectives import objective as wanted
from jobs.pictures import draw
from jobs.words import found as found_text
from jobs.words import unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobs.commands.comparison import Run
    from jobs.planning_task import Task
    from optimizer.memo import Offer

ALL = "all"


def optimize(  # noqa: PLR0913  # options, each by its name
    *,
    workload: Annotated[
        Path, typer.Option(help="Rates, selectivities and the budget.", show_default=False)
    ],
    strategy: Annotated[
        str, typer.Option(help="One of `midstream strategies`, or all, side by side.")
    ] = ALL,
    job: Annotated[Path | None, typer.Option(help="Take the query from this job file.")] = None,
    query: Annotated[str | None, typer.Option(help="Which of the job's queries.")] = None,
    objective: Annotated[
        str | None,
        typer.Option(help="cost, 'rate by 10 seconds' or 'first 1000 results'; as the job says."),
    ] = None,
    limit: Annotated[
        float | None, typer.Option(min=0, help="Seconds after which a search takes what it has.")
    ] = None,
    svg: Annotated[
        Path | None,
        typer.Option(help="Draw the chosen plan into this file, or all into a directory."),
    ] = None,
    json: show.Json = False,
) -> int:
    """Search for a plan within the budget; exit code 3 where none is found."""
    task = _wanting(_task(workload, job, query), objective)
    names = chosen(strategy, task)
    check_pictures(svg, len(names))
    runs = [timed(name, task, limit) for name in names]
    if svg is not None:
        _draw(runs, svg, task)
    if json:
        listed = [as_json(run, task) for run in runs]
        show.as_json(listed if strategy == ALL else listed[0])
    else:
        from jobs.commands.comparison import report

        report(runs, task)
        say_where(svg)
    return 0 if any(run.found.qualified for run in runs) else 3


def _wanting(task: "Task", text: str | None) -> "Task":
    """The task with the objective of an option, if there is one."""
    if text is None:
        return task
    try:
        return replace(task, objective=wanted(text))
    except ValueError:
        raise InputError(f"found {found_text(text)}; allowed: {FORMS}", "--objective") from None


def chosen(strategy: str, task: "Task") -> list[str]:
    """The strategies of that name; those by rates where there is an objective of that kind."""
    from optimizer.search import COSTS, ENDLESS, RATES

    names = COSTS if task.objective is None else (*COSTS, *ENDLESS)
    if strategy == ALL:
        return list(names)
    if strategy in RATES and strategy not in names:
        advice = "streams that end: see `midstream rate`"
        if task.objective is None:
            advice = "an objective of output rates: --objective 'rate by 10 seconds'"
        raise InputError(f"{strategy} needs {advice}", "--strategy")
    if strategy not in names:
        raise InputError(unknown("strategy", strategy, [*names, ALL]), "--strategy")
    return [strategy]


def _task(workload: Path, job: Path | None, query: str | None) -> "Task":
    from jobs.planning_task import from_job, from_workload
    from jobs.specs import load

    if job is not None:
        return from_job(load(job), query, workload)
    if query is not None:
        raise InputError("a query is one of a job: give --job as well", "--query")
    return from_workload(workload)


def timed(strategy: str, task: "Task", limit: float | None) -> "Run":
    """Run one search; the clock is read here, as the optimizer has none."""
    from jobs.commands.comparison import Run
    from optimizer.search import search

    with show.progress(f"{strategy} over {len(task.query.aliases)} streams") as told:
        begun = perf_counter()
        end = inf if limit is None else begun + limit
        memo = task.memo(lambda: perf_counter() >= end, told)
        try:
            found = search(strategy, memo)
        except LookupError:
            raise RefusedError(memo.stopped, f"--strategy {strategy}") from None
        return Run(found, perf_counter() - begun)


def as_json(run: "Run", task: "Task") -> dict[str, Any]:
    """The result in the form that scripts rely on."""
    found, total = run.found, run.found.chosen.total
    made = task.memo().throughput
    return {
        **(
            {}
            if made is None
            else {"objective": made.objective.to_json(), made.objective.measure: made.value(total)}
        ),
        "strategy": found.strategy,
        "qualified": found.qualified,
        "binding": found.binding,
        "reason": found.reason,
        "complete": found.complete,
        "plan": str(found.chosen.plan),
        "cpu": total.cpu,
        "memory_tuples": total.tuples,
        "memory_bytes": total.bytes,
        "examined": found.examined,
        "seconds": run.seconds,
        "front": [_point(offer) for offer in found.front],
    }


def _point(offer: "Offer") -> dict[str, Any]:
    total = offer.total
    return {
        "plan": str(offer),
        "cpu": total.cpu,
        "memory_tuples": total.tuples,
        "memory_bytes": total.bytes,
    }


def _draw(runs: "Sequence[Run]", path: Path, task: "Task") -> None:
    for run in runs:
        one = picture(path, run.found.strategy)
        draw(run.found.chosen, one, title=f"{task.name}: {run.found.strategy}", budget=task.budget)
