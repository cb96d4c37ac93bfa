"""`midstream reoptimize`: whether a job's plans should change, why, and the requests for it."""

from collections.abc import Iterator
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from jobs import show
from jobs.commands.run import JobFile
from jobs.errors import InputError, RefusedError

if TYPE_CHECKING:
    from jobs.deciding.decisions import Decision
    from jobs.deciding.reoptimization import Asked
    from jobs.network.deployments import Deployment
    from jobs.specs import Job

SHOWN = 20
"""So many decisions of the history."""

STYLES = {"migrate": "bold green", "hold": "bold", "blocked": "bold yellow"}

Row = list[str | Text]


def reoptimize(  # noqa: PLR0913  # options, each by its name
    file: JobFile,
    *,
    query: Annotated[str | None, typer.Option(help="Only this query; otherwise all.")] = None,
    reason: Annotated[
        str, typer.Option(help="Why you ask, for those who read it later.", metavar="TEXT")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide, but do nothing.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Migrate to the best plan, whatever the thresholds say.")
    ] = False,
    strategy: Annotated[
        str | None, typer.Option(help="Search like this, not as the job file says.")
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(help="cost, 'rate by 10 seconds' or 'first 1000 results', this time."),
    ] = None,
    migration: Annotated[
        str | None, typer.Option(help="Migrate like this, not as the job file says.")
    ] = None,
    approve: Annotated[
        str | None, typer.Option(help="Agree to a decision that waits.", metavar="ID")
    ] = None,
    reject: Annotated[
        str | None, typer.Option(help="Refuse a decision that waits.", metavar="ID")
    ] = None,
    history: Annotated[bool, typer.Option("--history", help="Show earlier decisions.")] = False,
    json: show.Json = False,
) -> int:
    """Decide whether the running plans are still the right ones; if not, ask for a migration."""
    from jobs import specs
    from jobs.deciding.reoptimization import Asked, answer
    from jobs.deciding.reoptimization import reoptimize as decide
    from jobs.migrations import user

    answers = approve is not None or reject is not None
    _check(force=force, dry_run=dry_run, history=history, answers=(approve, reject))
    if (force or answers) and not reason:
        reason = _ask_why(json=json)
    if objective is not None:
        _check_objective(objective)
    job = specs.load(file).deciding(strategy=strategy, objective=objective, migration=migration)
    asked = Asked(time_ns() // 1000, user(), reason, force, dry_run)
    if history:
        return _history(job, query, json=json)
    if answers:
        made = [answer(job, approve or reject or "", asked, agrees=approve is not None)]
    else:
        made = [decide(job, name, asked) for name in (job.queries if query is None else [query])]
    deployment = None if answers else _deployment(job, asked)
    if json:
        more = {} if deployment is None else {"deployment": _summary(deployment)}
        show.as_json([one.to_json() | more for one in made])
    else:
        for one in made:
            _show(file, one)
        _show_deployment(file, deployment, dry_run=dry_run)
    return RefusedError.code if any(one.outcome == "blocked" for one in made) else 0


def _check(*, force: bool, dry_run: bool, history: bool, answers: tuple[str | None, ...]) -> None:
    given = [history, *(one is not None for one in answers)]
    if sum(given) > 1 or (any(given) and (force or dry_run)):
        raise InputError("each is something else to do: give one", "--history, --approve, --reject")


def _check_objective(text: str) -> None:
    from jobs.objectives import FORMS, objective
    from jobs.words import found

    try:
        objective(text)
    except ValueError:
        raise InputError(f"found {found(text)}; allowed: {FORMS}", "--objective") from None


def _ask_why(*, json: bool) -> str:
    """Whoever overrides a rule says why."""
    if not json and show.is_asked():
        return str(typer.prompt("Why?"))
    raise InputError("say why, for those who read it later", "--reason")


# --- the network ---------------------------------------------------------------------------------


def _deployment(job: "Job", asked: "Asked") -> "Deployment | None":
    """What the job should do about its network, if its file names one; plans do not wait for it."""
    if job.network is None:
        return None
    from jobs.network.deployments import Deployment
    from jobs.network.placing import propose
    from jobs.network.scene import Wish

    try:
        found, _ = propose(job, Wish(asked.now, asked.by, asked.why), keep=not asked.dry_run)
    except (InputError, RefusedError) as error:
        return Deployment("", asked.now, job.job, "blocked", (str(error),))
    return found


def _summary(found: "Deployment") -> dict[str, Any]:
    """All that a decision says of it; the steps are in `network/log` under the job's storage."""
    names = ("id", "outcome", "reasons", "strategy", "figures", "deployed")
    return {name: getattr(found, name) for name in names}


def _show_deployment(file: Path, found: "Deployment | None", *, dry_run: bool) -> None:
    if found is not None:
        from jobs.commands.plan_job import next_step, tell

        show.out.print()
        tell(found, steps=False)
        next_step(file, found, dry_run=dry_run)


# --- for people ----------------------------------------------------------------------------------


def _show(file: Path, one: "Decision") -> None:
    to = f" -> {one.chosen}" if one.migrates else ""
    show.out.print(
        Text.assemble(
            (one.query, "bold"), ": ", (one.outcome, STYLES[one.outcome]), f", {one.running}{to}"
        ),
        soft_wrap=True,
    )
    for reason in one.reasons:
        show.plain(f"  {reason}")
    if one.candidates:
        show.out.print()
        show.table(
            ("found by", "plan", "CPU", "rows", "within", "examined", "time"),
            _candidates(one),
            right="CPU rows examined time",
        )
        show.out.print()
        show.table(
            ("window", "running", "best", "chosen", "drift"),
            _windows(one),
            right="running best chosen drift",
        )
    if priced_by := one.figures.get("priced_by"):
        show.out.print()
        show.plain(f"Priced by {priced_by}.")
    show.out.print()
    _next(file, one)


def _candidates(one: "Decision") -> Iterator[Row]:
    from optimizer.explain import compact, cpu_number

    for found in one.candidates:
        yield [
            Text(found.strategy, "cyan"),
            found.plan,
            cpu_number(found.cpu),
            compact(found.memory_tuples),
            Text("yes", "green") if found.qualified else Text("no", "red"),
            f"{found.examined:,}",
            f"{1000 * found.seconds:,.1f} ms",
        ]


def _windows(one: "Decision") -> Iterator[Row]:
    from jobs.status import moment
    from optimizer.explain import cpu_number

    names = ("running_by_window", "best_by_window", "chosen_by_window", "drift")
    figures = zip(*(one.figures[name] for name in names), strict=True)
    for (start, _), (running, best, chosen, drift) in zip(one.windows, figures, strict=True):
        costs = (cpu_number(cpu) for cpu in (running, best, chosen))
        yield [moment(start) or "", *costs, f"{drift:.2f}"]


def _next(file: Path, one: "Decision") -> None:
    """What came of it, and what to do now."""
    if one.approval == "waits":
        show.plain(f"{one.id} waits for a person: midstream reoptimize {file} --approve {one.id}")
    elif one.approval == "rejected":
        show.plain(f"{one.id} was rejected by {one.answered_by}: {one.answered_why}")
    elif one.request:
        later = one.figures.get("at_batch")
        when = "" if later is None else f", to begin before batch {later}"
        show.out.print(Text.assemble("Asked for ", (one.request, "bold"), when), soft_wrap=True)
        show.note(f"To follow it: midstream migration status {file} {one.request} --watch")
    elif one.dry_run:
        show.note("This was a dry run: nothing has been written down or asked for.")


def _history(job: "Job", query: str | None, *, json: bool) -> int:
    from jobs.deciding.decisions import DecisionLog
    from jobs.tables.paths import local

    found = DecisionLog.of(local(job.storage)).newest(SHOWN)
    found = [one for one in found if query in (None, one.query)]
    if json:
        show.as_json([one.to_json() for one in found])
    elif not found:
        show.plain("Nothing has been decided yet.")
    else:
        show.table(("decision", "outcome", "plan", "why", "by"), map(_line, found))
    return 0


def _line(one: "Decision") -> Row:
    plan = f"{one.running} -> {one.chosen}" if one.migrates else one.running
    said = f", {one.approval} by {one.answered_by}" if one.answered_by else ""
    waits = ", waits" if one.approval == "waits" else ""
    outcome = Text.assemble((one.outcome, STYLES[one.outcome]), said or waits)
    return [one.id, outcome, plan, one.reasons[0], one.by]
