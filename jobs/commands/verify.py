"""`midstream verify`: whether the results are what the input says they should be."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from jobs import show
from jobs.commands.run import JobFile
from jobs.commands.stats.collect import moment
from jobs.errors import InputError

if TYPE_CHECKING:
    from jobs.verify import Verdict


def verify(
    file: JobFile,
    *,
    query: Annotated[str | None, typer.Option(help="Only this query.", show_default=False)] = None,
    since: Annotated[
        str | None,
        typer.Option(
            help="Only what batches have put out since then, such as 2026-03-01T14:30.",
            metavar="TIME",
            show_default=False,
        ),
    ] = None,
    last: Annotated[
        str | None,
        typer.Option(
            help="Only what they have put out in that time, such as 1 hour.",
            metavar="TIME",
            show_default=False,
        ),
    ] = None,
    json: show.Json = False,
) -> int:
    """Compute the results of the input read so far again, in another way, and compare.

    Exit codes: 0 right, 1 wrong, 4 cannot tell.
    """
    from jobs import specs
    from jobs.tables.paths import local
    from jobs.verify import CODES, Since, judge

    wanted = Since(moment(since, "--since"), _length(last))
    job = specs.load(file)
    local(job.storage)
    with show.progress("computing the results again"):
        found = judge(job, query, wanted)
    if json:
        verdicts = [verdict.to_json() for verdict in found.verdicts]
        show.as_json(verdicts if len(verdicts) != 1 else verdicts[0])
    else:
        _tell(found.batch, found.verdicts)
    return CODES[found.verdict]


def _length(text: str | None) -> int | None:
    """A length of time in microseconds."""
    from optimizer.query import QueryError
    from optimizer.sql import parse_duration

    try:
        return None if text is None else parse_duration(text)
    except QueryError:
        raise InputError(
            f"expected a length of time such as 1 hour, found {text!r}", "--last"
        ) from None


def _tell(batch: int, verdicts: "tuple[Verdict, ...]") -> None:
    from jobs.verify.verdict import FIGURES

    show.table(
        ("query", *FIGURES, ""),
        [(v.query, *(_figure(getattr(v, name)) for name in FIGURES), _word(v)) for v in verdicts],
        right=" ".join(FIGURES),
    )
    for verdict in verdicts:
        if verdict.reason:
            show.note(f"{verdict.query}: {verdict.reason}")
        if verdict.judged:
            show.note(f"judged: {verdict.judged}")
    show.note(f"up to batch {batch}")


def _figure(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _word(verdict: "Verdict") -> Text:
    styles = {"right": "green", "wrong": "bold red", "cannot tell": "bold yellow"}
    return Text(verdict.verdict, styles[verdict.verdict])
