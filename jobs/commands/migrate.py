"""`midstream migrate`: what a change of plan would do, and the request for it."""

from dataclasses import dataclass, replace
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from jobs import show
from jobs.commands.run import JobFile
from jobs.errors import InputError, RefusedError
from jobs.tables.phases import Phase

if TYPE_CHECKING:
    from jobs.proposals import Proposal
    from optimizer.migration.preview import Line, Preview, Rebuilt

Row = list[str | Text]

Strategy = Annotated[
    str, typer.Option(help="auto, or one of `midstream strategies`.", metavar="NAME")
]
Proof = Annotated[int, typer.Option(min=0, help="For so many batches both plans must agree first.")]
Hold = Annotated[bool, typer.Option("--hold", help="Build everything, cut over when released.")]
AtBatch = Annotated[int | None, typer.Option(min=0, help="Begin before that batch, not earlier.")]
Limit = Annotated[
    str | None, typer.Option(help="Give up after that long, such as 10m.", metavar="TIME")
]
Before = Annotated[
    str, typer.Option(help="Run this before the cut-over; if it fails, abort.", metavar="CMD")
]
After = Annotated[str, typer.Option(help="Run this after the end.", metavar="CMD")]
Reason = Annotated[str, typer.Option(help="Why, for those who read it later.", metavar="TEXT")]
Workload = Annotated[
    Path | None, typer.Option(help="Rates and selectivities; otherwise the job's statistics.")
]
Svg = Annotated[Path | None, typer.Option(help="Draw what changes into this file.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would happen.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
AskId = Annotated[
    str | None,
    typer.Option(
        "--id", help="Ask under this id; asking again with it changes nothing.", show_default=False
    ),
]
Watch = Annotated[bool, typer.Option("--watch", help="Follow it to its end.")]


@dataclass(frozen=True)
class Conduct:
    """What to do with a proposal besides showing it."""

    dry_run: bool
    yes: bool
    watch: bool
    json: bool
    svg: Path | None = None
    id: str | None = None
    """Under which id to ask; otherwise a new one."""


def migrate(  # noqa: PLR0913  # options, each by its name
    file: JobFile,
    plan: Annotated[
        str,
        typer.Argument(
            metavar="PLAN", show_default=False,
            help="The plan to change to, such as '((b c) a)', or a file of `explain --json`.",
        ),
    ],
    *,
    query: Annotated[str | None, typer.Option(help="Which of the job's queries.")] = None,
    strategy: Strategy = "auto",
    proof: Proof = 0,
    hold: Hold = False,
    at_batch: AtBatch = None,
    limit: Limit = None,
    before: Before = "",
    after: After = "",
    reason: Reason = "",
    workload: Workload = None,
    svg: Svg = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    id_: AskId = None,
    watch: Watch = False,
    json: show.Json = False,
) -> int:  # fmt: skip
    """Change the plan of a running job: first a dry run, then, if you agree, the request."""
    from jobs import specs
    from jobs.proposals import Subject, wanted
    from jobs.tables.requests import Request

    how = Conduct(dry_run, yes, watch, json, svg, id_)
    if asked_already(file, id_):
        return settle(file, str(id_), how)
    wish = Request(
        id="", at=0, strategy=strategy, proof=proof, hold=hold, at_batch=at_batch,
        limit=micros(limit), before=before, after=after, reason=reason,
    )  # fmt: skip
    subject = Subject.of(specs.load(file), query, workload)
    proposal = subject.propose(wish, wanted(plan, subject))
    return conduct(file, proposal, how)


def asked_already(file: Path, id_: str | None) -> bool:
    """Whether someone has asked under that id before."""
    from jobs.migrations import Watched, records

    return id_ is not None and id_ in {
        record.request.id for record in records(Watched.of(file).store)
    }


def settle(file: Path, id_: str, how: Conduct) -> int:
    """Tell what became of what was asked before, and follow it if that is wanted."""
    from jobs.commands.migration import follow
    from jobs.migrations import Watched

    watched = Watched.of(file)
    end = follow(watched, id_, quiet=how.json) if how.watch else watched.status(id_)
    if how.json:
        show.as_json({"id": id_, "again": True, "status": end})
    else:
        show.plain(f"{id_} was asked for before: {end['phase']}")
    return 0 if not how.watch or end["phase"] == Phase.DONE else 1


def micros(length: str | None) -> int | None:
    """A length of time as people write it; `10m` are minutes."""
    if length is None:
        return None
    from optimizer.query import QueryError
    from optimizer.sql import parse_duration

    try:
        return parse_duration(f"{length}in" if length.endswith("m") else length)
    except QueryError as error:
        raise InputError(str(error), "--limit") from None


def conduct(file: Path, proposal: "Proposal", how: Conduct) -> int:
    """Show a proposal and, if that is wanted, ask the job for it."""
    if how.svg is not None:
        _draw(proposal, how.svg)
    if not how.json:
        _show(proposal, how.svg)
    if proposal.refusal:
        if not how.json:
            raise RefusedError(proposal.refusal)
        show.as_json({"error": proposal.refusal, "where": ""} | proposal.to_json())
        return RefusedError.code
    if not _agreed(how):
        if how.json:
            show.as_json({"id": None} | proposal.to_json())
        else:
            show.note("This was a dry run, nothing has been asked for: --yes does it.")
        return 0
    return _request(file, proposal, how)


def _agreed(how: Conduct) -> bool:
    """Whether to go on: as told, or as the person at the terminal says."""
    if how.dry_run or how.yes or how.json:
        return how.yes and not how.dry_run
    return show.is_asked() and typer.confirm("Migrate?")


def _request(file: Path, proposal: "Proposal", how: Conduct) -> int:
    from jobs.commands.migration import follow
    from jobs.migrations import Watched, new_id, user
    from jobs.tables.requests import append_request

    watched, now = Watched.of(file), time_ns() // 1000
    query = proposal.request.query
    id_ = how.id or new_id(now, query)
    request = replace(proposal.request, id=id_, at=now, by=user())
    append_request(watched.store, request)
    if how.json:
        end = follow(watched, request.id, quiet=True) if how.watch else {}
        show.as_json({"id": request.id} | proposal.to_json() | {"status": end})
        return 0 if not how.watch or end["phase"] == Phase.DONE else 1
    show.out.print(Text.assemble("Asked for ", (request.id, "bold")), soft_wrap=True)
    if not how.watch:
        show.note(f"To follow it: midstream migration status {file} {request.id} --watch")
        return 0
    return 0 if follow(watched, request.id)["phase"] == Phase.DONE else 1


# --- for people ----------------------------------------------------------------------------------


def _draw(proposal: "Proposal", path: Path) -> None:
    from jobs.pictures import write
    from optimizer.picture import diff

    title = f"{proposal.request.query}: what changes"
    write(path, diff(proposal.old, proposal.new, title=title))


def _show(proposal: "Proposal", svg: Path | None) -> None:
    from optimizer.explain import cpu_text

    request, old, new = proposal.request, proposal.old, proposal.new
    show.out.print(
        Text.assemble(
            (request.query, "bold"), f": from {old.plan} to {new.plan} by ",
            (request.strategy, "cyan"),
        ),
        soft_wrap=True,
    )  # fmt: skip
    if proposal.reason:
        show.plain(f"{proposal.reason[:1].upper()}{proposal.reason[1:]}.")
    show.out.print()
    show.table(("", "state", "rows", "made", "takes"), rows(proposal.preview), right="rows takes")
    show.out.print()
    show.plain(times(proposal))
    show.plain(f"{cpu_text(old.total.cpu)} before, {cpu_text(new.total.cpu)} after.")
    show.plain(f"Priced by {proposal.ground or 'the workload file'}.")
    show.out.print()
    for check in proposal.checks:
        mark = Text("✓", "green") if check.ok else Text("✗" if check.fatal else "!", "yellow")
        show.out.print(Text.assemble(mark, f" {check.text}"), soft_wrap=True)
    if svg is not None:
        show.note(f"The picture is in {svg}")


def rows(found: "Preview") -> list[Row]:
    """A line a state."""
    from optimizer.explain import compact

    def line(
        word: str, style: str, one: "Line", made: str = "", takes: str = "", most: float = 0.0
    ) -> Row:
        count, upper = compact(one.rows), compact(most)
        count += f" to {upper}" if most > one.rows and upper != count else ""
        return [Text(word, style), one.state, count, made, takes]

    kept = [line("keep", "green", one) for one in found.kept]
    dropped = [line("drop", "red", one) for one in found.dropped]
    rebuilt = [
        line("rebuild", "yellow", one, _made(one), _takes(one), one.most) for one in found.rebuilt
    ]
    return [*kept, *rebuilt, *dropped]


def _takes(one: "Rebuilt") -> str:
    from optimizer.migration.cost import spell

    return spell(one.seconds) if one.seconds else ""


def _made(one: "Rebuilt") -> str:
    if one.how == "parallel":
        return "both plans run"
    only = ", for this query only" if one.partial else ""
    return f"{one.how} {', '.join(one.sources)}{only}"


def times(proposal: "Proposal") -> str:
    """How long nothing comes out, and when the new plan runs."""
    from optimizer.migration.cost import spell

    effort, hold = proposal.preview.effort, proposal.request.hold
    stop = f"The job stops for about {spell(effort.pause)}" if effort.pause else "The job goes on"
    if effort.longest > 1.1 * effort.pause:
        stop += f", {spell(effort.longest)} at most"
    until = f"after about {spell(effort.lasts)}" if effort.lasts else "before the next batch"
    over = "everything is ready to cut over" if hold else "the cut-over comes"
    return f"{stop}; {over} {until}. A batch begins every {spell(proposal.batch)}."
