"""`midstream status`: what a job has done and how it is, without starting Spark."""

from time import sleep, time_ns
from typing import Annotated, Any

import typer
from rich.text import Text

from jobs import show
from jobs.commands.run import JobFile

EVERY = 2.0
"""Seconds between two looks with --watch."""


def status(
    file: JobFile,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Look again every two seconds.")] = False,
    json: show.Json = False,
) -> None:
    """Show a job's plan, batch, watermark, rates and states, whether it runs or not."""
    from jobs.status import status as look

    while True:
        found = look(file, time_ns() // 1000)
        if watch and not json:
            show.out.clear()
        if json:
            show.as_json(found)
        else:
            _show(found)
        if not watch:
            return
        sleep(EVERY)


def _show(found: dict[str, Any]) -> None:
    running = found["running"]
    state = (
        Text(f"runs (process {running['pid']}, since {running['since']})", "green")
        if running
        else Text("does not run", "yellow")
    )
    show.out.print(Text.assemble((found["job"], "bold"), " ", state))
    show.plain(
        f"batch {found['batch']}, {_ago(found['age_seconds'])} ago, took {found['ms']:,.0f} ms; "
        f"watermark {found['watermark'] or 'not yet known'}"
        + (f", {_ago(found['lag_seconds'])} behind the clock" if found["watermark"] else "")
    )
    if found["migration"]:
        show.plain(_migrates(found["migration"]))
    show.heading("queries")
    show.table(
        ("query", "plan", "results/s"),
        [(q, p, _figure(found["results_per_second"].get(q))) for q, p in found["plans"].items()],
        right="results/s",
    )
    show.heading("streams")
    show.table(
        ("stream", "rows/s", "late", "rejected", "waiting"),
        [
            (s, _figure(r), f"{found['late'][s]:,}", f"{found['rejected'][s]:,}", _waits(found, s))
            for s, r in found["rates"].items()
        ],
        right="rows/s late rejected",
    )
    show.heading("states")
    show.table(
        ("state", "rows", "bytes", "ms", "content"),
        [
            (s["state"], f"{s['rows']:,}", f"{s['bytes']:,}", f"{s['ms']:,.0f}", s["content"] or "")
            for s in found["states"]
        ],
        right="rows bytes ms",
    )


def _migrates(migration: dict[str, Any]) -> str:
    """The migration under way, in a line."""
    part = f", {100 * migration['part']:.0f} % of it" if migration["part"] else ""
    return (
        f"migration {migration['id']} of {migration['query']} by {migration['strategy']}: "
        f"{migration['phase']}, step {migration['step']} of {migration['steps']}{part}, "
        f"for {_ago(migration['for_seconds'])}"
    )


def _waits(found: dict[str, Any], stream: str) -> str:
    waiting = found["backlog"].get(stream, {})
    return ", ".join(f"{count:,} {what}" for what, count in waiting.items())


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}"


def _ago(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:,.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:,.0f} min"
    return f"{seconds / 3600:,.0f} h"
