"""`midstream run`: the streaming job, a line a batch, until it is told to stop."""

from collections.abc import Callable
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from jobs import show
from jobs.tables.phases import Phase

if TYPE_CHECKING:
    from jobs.tables.progress import Progress

JobFile = Annotated[Path, typer.Argument(metavar="JOB", help="A job file.", show_default=False)]


def run(
    file: JobFile,
    *,
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="End when nothing is left to read.")
    ] = False,
    batches: Annotated[
        int | None, typer.Option(min=1, help="End after that many batches.", show_default=False)
    ] = None,
    json: show.Json = False,
) -> None:
    """Run a job. SIGTERM or Ctrl-C ends it after the batch under way; run again, it goes on."""
    from jobs import specs

    job = specs.load(file)
    from jobs import streaming
    from jobs.spark import active, end

    say = _line if json else _say
    extent = streaming.Extent(until_caught_up, batches)
    alone = active() is None
    try:
        streaming.run(job, extent, lambda progress: _told(say, summary(progress)), _notice)
    finally:
        if alone:
            end()


def _told(say: Callable[[dict[str, Any]], None], batch: dict[str, Any]) -> None:
    try:
        say(batch)
    except BrokenPipeError:
        show.silence()
        raise


def _notice(said: str) -> None:
    show.err.print(said, style="yellow", soft_wrap=True, markup=False)


def summary(progress: "Progress") -> dict[str, Any]:
    """A batch in figures."""
    from jobs.status import moment, notation

    streams = progress.streams.values()
    plans = {query: notation(plan) for query, plan in progress.plans.items()}
    return {
        "batch": progress.batch,
        "plan": "; ".join(plans.values()),
        "rows": sum(flow.rows for flow in streams),
        "late": sum(flow.late for flow in streams),
        "rejected": sum(flow.rejected for flow in streams),
        "results": sum(progress.results.values()),
        "state_rows": sum(work.state_rows for work in progress.operators.values()),
        "ms": round(sum(progress.ms.values()), 1),
        "plans": plans,
        "results_of": dict(progress.results),
        "watermark": moment(progress.watermark),
        "migrations": [
            {name: event[name] for name in ("id", "query", "phase", "strategy", "detail")}
            for event in progress.events
        ],
    }


def _line(batch: dict[str, Any]) -> None:
    typer.echo(dumps(batch))


def _news(event: dict[str, Any]) -> str:
    """What became of a migration, or of a request about one."""
    if not event["strategy"] and event["phase"] == Phase.DONE:
        return f"{event['detail']}: as asked"
    news = _HAPPENED.get(event["phase"], event["phase"])
    return f"{event['id']} {news}" + (f": {event['detail']}" if event["detail"] else "")


_HAPPENED = {Phase.WAITING: "accepted", Phase.DONE: "cut over"}
"""Phases that sound better as news."""


def _say(batch: dict[str, Any]) -> None:
    for event in batch["migrations"]:
        line = Text.assemble(("migration    ", "bold"), _news(event))
        show.out.print(line, soft_wrap=True)
    aside = "".join(f"  {batch[kind]:,} {kind}" for kind in ("late", "rejected") if batch[kind])
    show.out.print(
        Text.assemble(
            (f"batch {batch['batch']:>5}  ", "bold"),
            f"{batch['rows']:>9,} rows  {batch['results']:>9,} results  "
            f"{batch['state_rows']:>9,} in state  {batch['ms']:>8,.0f} ms",
            (aside, "yellow"),
            (f"  {batch['plan']}", "dim"),
        ),
        soft_wrap=True,
    )
