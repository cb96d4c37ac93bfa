"""`midstream verify`: whether the results are what the input says they should be."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from jobs import show
from jobs.commands.run import JobFile
from jobs.errors import InputError, RefusedError
from jobs.words import unknown

if TYPE_CHECKING:
    from jobs.engine.verify import Verdict
    from jobs.specs import Job


def verify(
    file: JobFile,
    *,
    query: Annotated[str | None, typer.Option(help="Only this query.", show_default=False)] = None,
    json: show.Json = False,
) -> int:
    """Compute the results of the input read so far again, in another way, and compare."""
    from jobs import specs

    job = specs.load(file)
    if query is not None and query not in job.queries:
        raise InputError(unknown("query", query, job.queries), "--query")
    with show.progress("computing the results again"):
        batch, verdicts = compared(job, query)
    if json:
        found = [asdict(verdict) for verdict in verdicts]
        show.as_json(found if len(found) != 1 else found[0])
    else:
        figures = ("expected", "actual", "missing", "duplicate", "wrong")
        show.table(
            ("query", *figures, ""),
            [
                (v.query, *(f"{asdict(v)[name]:,}" for name in figures), _word(right=v.right))
                for v in verdicts
            ],
            right=" ".join(figures),
        )
        show.note(f"up to batch {batch}")
    return 0 if all(verdict.right for verdict in verdicts) else 1


def compared(job: "Job", query: str | None = None) -> "tuple[int, list[Verdict]]":
    """The results of a query, or of all, up to the last batch, compared with its input's."""
    from jobs import streaming
    from jobs.engine.progress import last
    from jobs.engine.verify import verify as compare

    store = streaming.job_store(job)
    progress = last(store)
    if progress.batch < 0:
        raise RefusedError("there is nothing to verify: the job has not finished a batch yet")
    names = list(progress.plans) if query is None else [query]
    queries = {name: job.query(name) for name in names if name in job.queries}
    return progress.batch, list(compare(queries, streaming.streams(job), store, progress))


def _word(*, right: bool) -> Text:
    return Text("right", "green") if right else Text("not right", "bold red")
