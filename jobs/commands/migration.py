"""`midstream migration`: where a migration stands; hold it, let it go on, stop it, go back."""

from contextlib import nullcontext
from pathlib import Path
from time import monotonic, sleep, time_ns
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from jobs import show
from jobs.commands import migrate
from jobs.commands.run import JobFile
from jobs.errors import RefusedError
from jobs.tables.phases import Phase

if TYPE_CHECKING:
    from jobs.migrations import Watched
    from jobs.tables.requests import Event, Request

EVERY = 0.5
"""Seconds between two looks."""

STOPPED = "The job does not run: its next run will go on."

app = typer.Typer(
    help="Follow a migration, hold it, release it, stop it, go back.", no_args_is_help=True
)

Id = Annotated[
    str | None,
    typer.Argument(
        metavar="[ID]",
        help="A migration; otherwise the one under way, or the newest.",
        show_default=False,
    ),
]
Wait = Annotated[float, typer.Option(min=0, help="For so many seconds, wait for the job's answer.")]


@app.command()
def status(
    file: JobFile, id_: Id = None, *, watch: migrate.Watch = False, json: show.Json = False
) -> int:
    """Show a migration's phase, how far it is, and its history."""
    from jobs.migrations import Watched

    watched = Watched.of(file)
    found = watched.status(id_)
    if not json:
        _show(found)
    if watch:
        found = follow(watched, found["id"], quiet=json, known=len(found["events"]))
    if json:
        show.as_json(found)
    return 1 if watch and found["phase"] != Phase.DONE else 0


@app.command()
def postpone(
    file: JobFile, id_: Id = None, *, reason: migrate.Reason = "", wait: Wait = 10,
    json: show.Json = False,
) -> int:  # fmt: skip
    """Build everything, but do not cut over until it is released."""
    return _steer(file, id_, "postpone", reason, wait, json=json)


@app.command()
def release(
    file: JobFile, id_: Id = None, *, reason: migrate.Reason = "", wait: Wait = 10,
    json: show.Json = False,
) -> int:  # fmt: skip
    """Let a migration that was held cut over."""
    return _steer(file, id_, "release", reason, wait, json=json)


@app.command()
def abort(
    file: JobFile, id_: Id = None, *, reason: migrate.Reason = "", wait: Wait = 10,
    json: show.Json = False,
) -> int:  # fmt: skip
    """Stop a migration at any time before its cut-over; nothing is left of it."""
    return _steer(file, id_, "abort", reason, wait, json=json)


@app.command()
def revert(  # noqa: PLR0913  # options, each by its name
    file: JobFile,
    id_: Id = None,
    *,
    strategy: migrate.Strategy = "auto",
    proof: migrate.Proof = 0,
    hold: migrate.Hold = False,
    reason: migrate.Reason = "",
    svg: migrate.Svg = None,
    dry_run: migrate.DryRun = False,
    yes: migrate.Yes = False,
    ask_id: migrate.AskId = None,
    watch: migrate.Watch = False,
    json: show.Json = False,
) -> int:
    """Go back, by another migration, to the plan that ran before one that is done."""
    from jobs import specs
    from jobs.migrations import Watched, pick, plan_before, records
    from jobs.proposals import Subject
    from jobs.tables.requests import Request

    how = migrate.Conduct(dry_run, yes, watch, json, svg, ask_id)
    if migrate.asked_already(file, ask_id):
        return migrate.settle(file, str(ask_id), how)
    watched = Watched.of(file)
    found = records(watched.store)
    done = [record for record in found if record.phase == "done"]
    record = pick(done if id_ is None and done else found, id_)
    name = record.request.id
    if record.phase != Phase.DONE:
        advice = "; `midstream migration abort` stops it" if not record.ended else ""
        raise RefusedError(f"{name} is {record.phase}, there is nothing to go back from{advice}")
    plan = plan_before(watched.store, record)
    if plan is None:
        raise RefusedError(f"the plan before {name} is not known any more: name it to `migrate`")
    subject = Subject.of(specs.load(file), record.request.query, None)
    wish = Request(
        "", 0, strategy=strategy, proof=proof, hold=hold, reason=reason or f"revert {name}"
    )
    proposal = subject.propose(wish, subject.past(plan, name))
    return migrate.conduct(file, proposal, how)


# --- asking --------------------------------------------------------------------------------------


def _steer(
    file: Path, id_: str | None, kind: str, reason: str, wait: float, *, json: bool
) -> int:  # fmt: skip
    from jobs.migrations import Watched, new_id, user
    from jobs.tables.requests import Request, append_request

    watched, now = Watched.of(file), time_ns() // 1000
    record = watched.find(id_)
    target = record.request
    if record.ended:
        advice = "; `midstream migration revert` goes back" if record.phase == Phase.DONE else ""
        raise RefusedError(f"{target.id} is {record.phase} already{advice}")
    request = Request(
        new_id(now, kind), now, kind, target.id, target.query, strategy="", reason=reason, by=user()
    )
    append_request(watched.store, request)
    answer = _answer(watched, request, wait)
    if json:
        about = {"id": request.id, "kind": kind, "migration": target.id}
        read_events = {"answer": answer and answer.phase, "detail": answer.detail if answer else ""}
        show.as_json(about | read_events)
        return 3 if answer and answer.phase == Phase.REFUSED else 0
    if answer is None:
        show.plain(f"{kind} {target.id}: {_unanswered(watched)}.")
    elif answer.phase == Phase.REFUSED:
        raise RefusedError(answer.detail)
    else:
        show.plain(f"{kind} {target.id}: done, before batch {answer.batch}.")
    return 0


def _unanswered(watched: "Watched") -> str:
    if not watched.running:
        return "the job does not run, its next run will answer"
    return "the next batch will answer; a job without new input makes no batches"


def _answer(watched: "Watched", request: "Request", wait: float) -> "Event | None":
    """What the job says within a while; it says nothing if it does not run."""
    from jobs.tables.requests import read_events

    until = monotonic() + wait
    while True:
        for event in read_events(watched.store):
            if event.id == request.id:
                return event
        if monotonic() >= until or not watched.running:
            return None
        sleep(EVERY)


# --- showing -------------------------------------------------------------------------------------


def follow(watched: "Watched", id_: str, *, quiet: bool = False, known: int = 0) -> dict[str, Any]:
    """Print what happens to a migration until it ends; its last status."""
    ran = True
    spinner = show.err.status("") if show.err.is_terminal and not quiet else nullcontext()
    with spinner as shown:
        while True:
            found = watched.status(id_)
            for event in found["events"][known:]:
                if not quiet:
                    show.out.print(_line(event), soft_wrap=True)
            known = len(found["events"])
            if found["ended"]:
                return found
            if ran and not found["running"] and not quiet:
                show.note(STOPPED)
            ran = found["running"]
            if shown is not None:
                shown.update(Text(stands(found)))
            sleep(EVERY)


def stands(found: dict[str, Any]) -> str:
    """A migration under way in a line."""
    text = f"{found['phase']}: {found['means']}"
    if found["step"] is not None:
        text += f"; step {found['step']} of {found['steps']}, {100 * found['progress']:.0f} % done"
    if found["held"] and found["phase"] != Phase.READY:
        text += "; its cut-over is held"
    if found["eta_seconds"] is not None:
        text += f", about {found['eta_seconds']:,.0f} s to go"
    return text


def _line(event: dict[str, Any]) -> Text:
    style = {Phase.DONE: "green", Phase.ABORTED: "red", Phase.REFUSED: "red", Phase.HOOK: "yellow"}
    return Text.assemble(
        (f"{event['at'][11:19]}  before batch {event['batch']:>5}  ", "dim"),
        (f"{event['phase']:<10}", style.get(event["phase"], "")),
        f" {event['detail']}".rstrip(),
    )


def _show(found: dict[str, Any]) -> None:
    asked = f"asked {found['asked'][:19].replace('T', ' ')}"
    asked += f" by {found['by']}" if found["by"] else ""
    show.out.print(Text.assemble((found["id"], "bold"), f"  {asked}"), soft_wrap=True)
    change = f"{found['from']} to {found['to']}" if found["from"] else f"to {found['to']}"
    if found["to"]:
        show.plain(f"{found['query']}: {change} by {found['strategy']}")
    if found["reason"]:
        show.plain(f"because: {found['reason']}")
    show.plain(stands(found))
    if not found["ended"] and not found["running"]:
        show.note(STOPPED)
    if found["events"]:
        show.out.print()
    for event in found["events"]:
        show.out.print(_line(event), soft_wrap=True)
    for one in found["requests"]:
        answer = one["answer"] or "not answered yet"
        show.note(f"{one['kind']} asked {one['asked'][:19].replace('T', ' ')}: {answer}"
                  f"{': ' + one['reason'] if one['reason'] else ''}")  # fmt: skip
