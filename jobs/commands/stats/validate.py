"""`midstream stats validate`: which windows are to be believed, and why the others are not."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs import show
from jobs.commands.run import JobFile
from jobs.errors import RefusedError
from jobs.tables.names import DECISIONS, PROGRESS

if TYPE_CHECKING:
    from jobs.specs import Job
    from stats.frames import Delay, Expected
    from stats.store import StatsStore
    from stats.validate import Verdict

Again = Annotated[bool, typer.Option("--again", help="Judge all windows, by today's job file.")]
Report = Annotated[
    Path | None, typer.Option(help="Where to put the page for a browser; beside the statistics.")
]


def validate(
    file: JobFile, *, again: Again = False, report: Report = None, json: show.Json = False
) -> int:
    """Judge the windows that are new; exit code 3 if one of those is quarantined."""
    from jobs import specs
    from jobs.tables.paths import local
    from stats.report import write
    from stats.store import StatsStore

    job = specs.load(file)
    store = StatsStore.of(local(job.storage))
    if not store.windows():
        raise RefusedError(f"nothing is known of {job.job} yet: `midstream stats collect {file}`")
    with show.progress("Validating windows") as progress:
        verdicts = judge(job, again=again, report=progress)
    page = write(store, job.job, report or store.root / "report")
    if json:
        show.as_json(_as_json(store, verdicts, page))
    else:
        _show(store, verdicts, page)
    return 0 if all(verdict.good for verdict in verdicts) else RefusedError.code


def judge(
    job: "Job",
    *,
    again: bool = False,
    report: Callable[[int, int], None] = lambda _done, _total: None,
) -> "list[Verdict]":
    """The verdicts on a job's windows that had none, or on all; for programs."""
    from jobs.tables.paths import local
    from stats.store import StatsStore
    from stats.validate import validate as judged

    store, now = StatsStore.of(local(job.storage)), time_ns() // 1000
    return judged(store, expected(job, store, now), at=now, again=again, report=report)


def expected(job: "Job", store: "StatsStore", now: int) -> "Expected":
    """What a job's statistics must tell of, as its file says."""
    from stats.frames import Expected

    queries = {name: job.query(name) for name in job.queries}
    return Expected(tuple(job.streams), queries, _delay(job, store, now))


def _delay(job: "Job", store: "StatsStore", now: int) -> "Delay | None":
    """For how long a job that runs has had a window complete that nobody has gathered.

    A window is complete when the batch after begins: not while the job stood still.
    """
    from jobs.specs import MICROSECOND
    from jobs.status import SECOND
    from jobs.tables.history import History
    from jobs.tables.job_store import JobStore
    from jobs.tables.lease import holder
    from jobs.tables.paths import local
    from stats.frames import Delay

    storage, windows = local(job.storage), store.windows()
    held = holder(storage)
    if held is None or not windows:
        return None
    due = windows[-1].end + job.statistics.window // MICROSECOND
    tables = JobStore(storage)
    done, begun = History(tables, PROGRESS), History(tables, DECISIONS)
    after = (
        done.first(lambda batch: batch["watermark"] is not None and batch["watermark"] >= due) + 1
    )
    since = next((batch["clock"] for batch in begun.between(after, after)), now)
    waited = now - max(since, _micros(held.since))
    return Delay(round(waited / SECOND), round(job.statistics.stale.total_seconds()))


def _micros(time: str) -> int:
    """A moment as a lease has it; one that is not known is over."""
    try:
        return round(datetime.fromisoformat(time).timestamp() * 1_000_000)
    except ValueError:
        return 0


# --- what is shown -------------------------------------------------------------------------------


def _as_json(store: "StatsStore", verdicts: "list[Verdict]", page: Path) -> dict[str, Any]:
    from jobs.status import moment

    return {
        "validated": [
            {
                "start": moment(verdict.window.start),
                "end": moment(verdict.window.end),
                "good": verdict.good,
                "reasons": verdict.reasons,
                "checked": len(verdict.findings),
            }
            for verdict in verdicts
        ],
        "windows": len(store.windows()),
        "good": len(store.good()),
        "report": str(page),
    }


def _show(store: "StatsStore", verdicts: "list[Verdict]", page: Path) -> None:
    from jobs.status import moment

    broken = [verdict for verdict in verdicts if not verdict.good]
    if broken:
        rows = [(moment(one.window.start) or "", "\n".join(one.reasons)) for one in broken]
        show.table(("quarantined", "because"), rows)
    windows, good = len(store.windows()), len(store.good())
    show.plain(
        f"{_windows(len(verdicts))} validated, {len(broken)} of them quarantined; "
        f"decisions may use {good:,} of {windows:,}"
    )
    show.note(f"Every expectation, for a browser: {page}")


def _windows(count: int) -> str:
    return f"{count:,} window{'' if count == 1 else 's'}"
