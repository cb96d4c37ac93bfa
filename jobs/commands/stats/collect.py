"""`midstream stats collect`: what a job's streams were like, window by window."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from jobs import show
from jobs.commands.run import JobFile
from jobs.errors import InputError
from jobs.spark import DRIVER_JVM, QUICK_JVM

Since = Annotated[
    str | None,
    typer.Option("--from", help="Only windows after that time, such as 2026-03-01T14:30.",
                 metavar="TIME", show_default=False),
]  # fmt: skip
Until = Annotated[
    str | None, typer.Option("--to", help="Only windows before it.", metavar="TIME",
                             show_default=False),
]  # fmt: skip


def collect(
    file: JobFile,
    *,
    since: Since = None,
    until: Until = None,
    again: Annotated[bool, typer.Option("--again", help="Those too that are there.")] = False,
    json: show.Json = False,
) -> None:
    """Gather the statistics of every complete window that has none yet."""
    first, last = moment(since, "--from"), moment(until, "--to")
    if first is not None and last is not None and last <= first:
        raise InputError(f"{until} is not after {since}", "--to")
    from jobs import specs

    job = specs.load(file)
    job.check()
    job.check_runnable()
    from jobs.gathering import Gathering, Range
    from jobs.status import moment as written

    gathering = Gathering(job)
    windows = gathering.wanted(Range(first, last, again))
    if windows:
        from jobs.spark import active, end, session

        alone = active() is None
        try:
            with show.progress("gathering windows") as told:
                gathering.gather(session(f"midstream-stats-{job.job}", **SETTINGS), windows, told)
        finally:
            if alone:
                end()
    if json:
        show.as_json({
            "job": job.job,
            "gathered": [[written(w.start), written(w.end)] for w in windows],
            "complete_until": written(gathering.complete[-1].end) if gathering.complete else None,
        })  # fmt: skip
        return
    if not windows:
        show.plain(f"Nothing to gather: {gathering.why(Range(first, last, again))}")
        return
    count = f"{len(windows)} windows" if len(windows) > 1 else "1 window"
    show.plain(
        f"Gathered {count} from {written(windows[0].start)} to {written(windows[-1].end)}: "
        f"midstream stats show {file}"
    )


SETTINGS: dict[str, str | int] = {
    "spark.driver.memory": "1g",
    # What cannot be computed is null, as in the job.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # Such a session lives for seconds: the optimising compiler would take as long as it saves, and
    # nobody waits for short pauses.
    "spark.driver.extraJavaOptions": f"{DRIVER_JVM} {QUICK_JVM} -XX:+UseParallelGC",
    # Most values come up more than once, and there are more of them than its small table has room
    # for: then each tuple is looked up twice.
    "spark.sql.codegen.aggregate.map.twolevel.enabled": "false",
    # It would put what is counted on one core, where it is small, and plans every step once more.
    "spark.sql.adaptive.enabled": "false",
    # What is kept is looked at two or three times: to compress it takes longer.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    # How much of it there is, is known when it is joined: only where it is more is it sorted.
    "spark.sql.autoBroadcastJoinThreshold": "32m",
}
"""Of a session that gathers: what it holds are counts, not tuples."""


def moment(text: str | None, option: str) -> int | None:
    """A time as people write it, in microseconds; without a zone it is UTC."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"expected a time such as 2026-03-01T14:30, found {text!r}", option
        ) from None
    whole = time if time.tzinfo else time.replace(tzinfo=UTC)
    return round(whole.timestamp() * 1_000_000)
