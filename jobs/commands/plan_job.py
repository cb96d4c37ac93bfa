"""`midstream plan-network JOB`: where a job's operators should run on the network of its file."""

from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING

from rich.text import Text

from jobs import show
from jobs.errors import InputError, RefusedError

if TYPE_CHECKING:
    from jobs.network.deployments import Deployment
    from jobs.network.placing import Choice
    from jobs.specs import Job

STYLES = {"deploy": "bold green", "hold": "bold", "blocked": "bold yellow"}

Row = list[str | Text]


def plan_job(  # noqa: PLR0913  # options, each by its name
    file: Path, strategy: str | None, max_cs: int | None, seed: int,
    *, dry_run: bool, propose: bool, reason: str, svg: Path | None, json: bool,
) -> int:  # fmt: skip
    """Decide about a job's deployment, and keep it unless somebody only asks."""
    from jobs import specs
    from jobs.migrations import user
    from jobs.network import placing
    from jobs.network.scene import Wish

    job = specs.load(file)
    check(job)
    wish = Wish(time_ns() // 1000, user(), reason, strategy, max_cs, seed)
    decide = placing.propose if propose else placing.deploy
    with show.progress(f"{job.job} on its network"):
        found, choice = decide(job, wish, keep=not dry_run)
    if svg is not None and choice is not None:
        _draw(choice, svg)
    if json:
        show.as_json(found.to_json())
    else:
        tell(found)
        next_step(file, found, dry_run=dry_run)
    return RefusedError.code if found.outcome == "blocked" else 0


def check(job: "Job") -> None:
    """Refuse a job without a network."""
    if job.network is None:
        problem = "missing; needed: the file of the network that the job is planned over"
        raise InputError(problem, job.document.where(("network",)))


def _draw(choice: "Choice", svg: Path) -> None:
    from jobs.commands.pictures import picture
    from jobs.network.picture import as_svg
    from jobs.pictures import write

    write(picture(svg, choice.taken.strategy), as_svg(choice.session))


def tell(one: "Deployment", *, steps: bool = True) -> None:
    """What was decided, for people."""
    show.out.print(
        Text.assemble(("network", "bold"), ": ", (one.outcome, STYLES[one.outcome])),
        soft_wrap=True,
    )
    for reason in one.reasons:
        show.plain(f"  {reason}")
    if one.candidates:
        show.out.print()
        columns = ("strategy", "usage", "over", "joins", "examined", "time")
        show.table(columns, _candidates(one), right=" ".join(columns[1:]))
    if one.outcome == "deploy" and steps:
        show.out.print()
        show.table(("query", "plan", "at", "reused", "usage"), _queries(one), right="usage")
        show.out.print()
        show.table(("step", "what", "where"), _steps(one))


def _candidates(one: "Deployment") -> list[Row]:
    from jobs.network.report import figure, share, time

    rows: list[Row] = []
    for found in one.candidates:
        over = found.over_optimum
        above = "" if over is None else share(over)
        rows.append([
            Text(found.strategy, "cyan"), figure(found.usage), above, f"{found.joins:,}",
            f"{found.examined:,}", time(found.seconds),
        ])  # fmt: skip
    return rows


def _queries(one: "Deployment") -> list[Row]:
    from jobs.network.report import figure

    return [
        [Text(q["name"], "cyan"), q["plan"], " ".join(o["site"] for o in q["operators"]) or "-",
         "; ".join(" ".join(r["streams"]) for r in q["reused"]) or "-", figure(q["usage"])]
        for q in one.queries
    ]  # fmt: skip


def _steps(one: "Deployment") -> list[Row]:
    from optimizer.explain import size

    rows: list[Row] = []
    for step in one.steps:
        what, where = f"{_WORDS[step['kind']]} of {step['query']}", step["site"]
        if step["do"] != "connect":
            what = f"{what}: {' '.join(step['streams'])}"
        else:
            reads = f"reads {' '.join(step['reads'])}"
            what = f"{what} {reads}" if step["kind"] == "sink" else f"  {reads}"
            where = f"{step['from']} -> {where}, {size(step['bytes_per_s'])}/s"
        rows.append([Text(step["do"], "cyan"), what, where])
    return rows


_WORDS = {"operator": "join", "sink": "result"}


def next_step(file: Path, one: "Deployment", *, dry_run: bool) -> None:
    """What came of it, and what to do now."""
    if one.deployed:
        show.note(f"{one.id} is in force from now on.")
    elif one.outcome == "deploy" and dry_run:
        show.note("This was a dry run: nothing has been written down.")
    elif one.outcome == "deploy":
        show.note(f"{one.id} is a proposal: midstream plan-network {file} deploys it.")
