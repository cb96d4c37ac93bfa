"""`midstream place`: decide where each operator runs, on Spark or in the database."""

from math import inf
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from jobs import show
from jobs.commands.pictures import check_pictures, say_where
from jobs.errors import InputError, RefusedError
from jobs.words import unknown

if TYPE_CHECKING:
    from jobs.commands.placing import Run
    from jobs.placement import Subject
    from optimizer.placement import Options

ALL = "all"


def place(  # noqa: PLR0913  # options, each by its name
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A job, a workload or an operator file.", show_default=False
        ),
    ],
    *,
    strategy: Annotated[
        str, typer.Option(help="One of `midstream strategies`, or all, side by side.")
    ] = "federated",
    query: Annotated[str | None, typer.Option(help="Which of the job's queries.")] = None,
    workload: Annotated[
        Path | None, typer.Option(help="Rates, selectivities and costs for a job's query.")
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(help="Place this plan instead of the best on Spark; @db and @spark hold."),
    ] = None,
    no_pruning: Annotated[
        bool, typer.Option("--no-pruning", help="Look at all placements, not only at those left.")
    ] = False,
    no_feasibility: Annotated[
        bool, typer.Option("--no-feasibility", help="Take the least total, keeping up or not.")
    ] = False,
    cut: Annotated[
        int | None, typer.Option(min=1, help="Cut the plan into pieces of so many operators.")
    ] = None,
    cores: Annotated[
        float | None,
        typer.Option(help="CPUs that operators share; otherwise the budget's, or one for each."),
    ] = None,
    svg: Annotated[
        Path | None,
        typer.Option(help="Draw the placement into this file, or all into a directory."),
    ] = None,
    json: show.Json = False,
) -> int:
    """Place each operator of a plan on Spark or in the database.

    Exit code 3 where nothing is feasible; the best is shown all the same.
    """
    from jobs.commands.placing import as_json, draw, report
    from jobs.placement import Asked, subject
    from optimizer.placement import Options

    names = _chosen(strategy)
    _check(cores)
    check_pictures(svg, len(names))
    found = subject(Asked(file, query, workload, plan, cores, feasibility=not no_feasibility))
    options = Options(found.objective, pruning=not no_pruning, cut=cut)
    runs = [run for name in names if (run := _timed(name, found, options, alone=len(names) == 1))]
    if svg is not None:
        draw(runs, svg, found)
    if json:
        listed = [as_json(run, found) for run in runs]
        show.as_json(listed if strategy == ALL else listed[0])
    else:
        report(runs, found)
        say_where(svg)
    return 0 if any(run.placed.feasible for run in runs) else 3


def _chosen(strategy: str) -> list[str]:
    from optimizer.placement import PLACEMENTS

    if strategy == ALL:
        return list(PLACEMENTS)
    if strategy not in PLACEMENTS:
        raise InputError(unknown("strategy", strategy, [*PLACEMENTS, ALL]), "--strategy")
    return [strategy]


def _check(cores: float | None) -> None:
    if cores is not None and not 0 < cores <= inf:
        raise InputError(f"found {cores:g}; allowed: a number above 0", "--cores")


def _timed(name: str, subject: "Subject", options: "Options", *, alone: bool) -> "Run | None":
    """One strategy; among others, none where a plan is too large for it."""
    from dataclasses import replace

    from jobs.commands.placing import Run
    from optimizer.placement import place as placed
    from optimizer.placement.exhaustive import TooLargeError

    with show.progress(f"{name} over {len(subject.plan)} operators") as told:
        begun = perf_counter()
        try:
            found = placed(name, subject.plan, replace(options, progress=told))
        except TooLargeError as error:
            if alone:
                raise RefusedError(str(error)) from None
            return None
        return Run(found, perf_counter() - begun)
