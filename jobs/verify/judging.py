"""Whether a job's results are right: computed again from what it read, by another route.

What is judged are the results of the batches that are done, by the queries that made them: both are
taken from the storage, not from the job file, which may have been edited since.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa

from jobs.engine.microbatch import fingerprint
from jobs.errors import InputError, RefusedError
from jobs.specs import Job
from jobs.verify.columns import inexact, mistyped
from jobs.verify.compare import Shape, compare
from jobs.verify.expected import FARTHEST, Scope, column, reach, statements
from jobs.verify.intake import Intake, quoted, relation, take_in
from jobs.verify.near import Counts
from jobs.verify.past import Past, past
from jobs.verify.raw import TIME
from jobs.verify.results import Results, join, results
from jobs.verify.verdict import CANNOT_TELL, RIGHT, WRONG, CannotTellError, Verdict
from jobs.words import unknown
from optimizer.query import Query


@dataclass(frozen=True)
class Judgement:
    """What was found, up to which batch."""

    batch: int
    verdicts: tuple[Verdict, ...]

    @property
    def verdict(self) -> str:
        """The one word for all: wrong if anything is, else whether all could be told."""
        words = {one.verdict for one in self.verdicts}
        return next(word for word in (WRONG, CANNOT_TELL, RIGHT) if word in words)


@dataclass(frozen=True)
class Since:
    """From when on results are judged: a moment, or a time before the last batch; microseconds."""

    at: int | None = None
    last: int | None = None

    def first(self, known: Past) -> int:
        """The first batch that began then or later."""
        at = self.at
        if self.last is not None:
            at = max(known.batches[-1].clock - self.last, -(2**62) if at is None else at)
        later = (batch.number for batch in known.batches if at is None or batch.clock >= at)
        return min(later, default=known.last + 1)


def judge(job: Job, query: str | None = None, since: Since = Since()) -> Judgement:
    """Compare the results of a query, or of all, up to the last finished batch."""
    wanted = [query] if query is not None else list(job.queries)
    try:
        with _told():
            known = past(job)
            names = wanted if query is not None else list(known.batches[-1].queries)
            known = known.from_batch(since.first(known), _longest(known, names))
    except CannotTellError as error:
        return Judgement(-1, _unknown(wanted, error))
    if not {*names} <= {*job.queries, *known.batches[-1].queries}:
        raise InputError(unknown("query", names[0], job.queries), "--query")
    try:
        with _connected() as connection, _told():
            intake = take_in(connection, known)
            verdicts = tuple(_judged(connection, known, intake, job, name) for name in names)
    except CannotTellError as error:
        verdicts = _unknown(names, error)
    return Judgement(known.last, verdicts)


def _longest(known: Past, names: Sequence[str]) -> int:
    """How far before the watermark input may lie that results to come are made of."""
    queries = [known.job.query(name) for name in names if name in known.job.queries]
    return max((q.bounds.longest * 2 + (q.grouping.size if q.grouping else 0) for q in queries),
               default=0)  # fmt: skip


def _unknown(names: Sequence[str], error: CannotTellError) -> tuple[Verdict, ...]:
    return tuple(Verdict(name, CANNOT_TELL, reason=str(error)) for name in names)


@contextmanager
def _told() -> Iterator[None]:
    """Whatever keeps the judge from judging is a reason why it cannot tell, never a verdict."""
    try:
        yield
    except (CannotTellError, RefusedError):
        raise
    except MemoryError:
        raise CannotTellError("verify has not enough memory for all that the job read") from None
    except Exception as error:
        first, *_ = str(error).splitlines() or [""]
        raise CannotTellError(f"verify cannot go on: {type(error).__name__}: {first}") from error


@contextmanager
def _connected() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database that may put on the disk what does not fit into memory."""
    with (
        TemporaryDirectory(prefix="midstream-verify-") as directory,
        duckdb.connect(config={"temp_directory": directory}) as connection,
    ):
        connection.execute("SET GLOBAL TimeZone = 'UTC'")
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


# --- one query -----------------------------------------------------------------------------------


def _judged(
    connection: duckdb.DuckDBPyConnection, known: Past, intake: Intake, job: Job, name: str
) -> Verdict:
    try:
        with _told():
            return _compared(connection, known, intake, job, name)
    except CannotTellError as error:
        return Verdict(name, CANNOT_TELL, reason=str(error), judged=_edited(known, job, name))


def _compared(
    connection: duckdb.DuckDBPyConnection, known: Past, intake: Intake, job: Job, name: str
) -> Verdict:
    query = _query(known, name)
    actual = _actual(known, name)
    scopes = _scopes(connection, known, intake, query, name)
    judged = f"{_edited(known, job, name)}: {intake.describe(s.name for _, s in query.inputs)}"
    verdicts = []
    for scope in scopes:
        verdict = _verdict(connection, scope, intake, actual, name, judged)
        if verdict.right:
            return verdict
        verdicts.append(verdict)
    if len(verdicts) > 1:
        raise CannotTellError(
            f"query {name} began with batch {known.since(name)}, and how much of the input before "
            "that it found depends on the states that it shares"
        )
    return verdicts[0]


def _query(known: Past, name: str) -> Query:
    """The query that made the results, as it was noted when it ran."""
    if known.since(name) is None:
        raise CannotTellError(f"query {name} was not part of batch {known.last}, the last one")
    query = known.job.query(name)
    if fingerprint(query) != known.batches[-1].queries[name]:
        raise CannotTellError(
            f"what query {name} was in batch {known.last} cannot be read any more: another version "
            "of midstream, or another control/definitions.json, has written it"
        )
    return query


def _edited(known: Past, job: Job, name: str) -> str:
    """Which query it is, and whether that is the one of the job file."""
    since = known.since(name)
    words = f"query {name} as it has run since batch {since}, up to batch {known.last}"
    if known.judged:
        words += f", what was put out since batch {known.judged}"
    if since is None or name not in job.queries:
        return f"query {name}" if since is None else f"{words} (the job file has none of that name)"
    try:
        same = fingerprint(job.query(name)) == known.batches[-1].queries[name]
    except Exception:  # noqa: BLE001  # an edited file may be wrong in any way
        same = False
    return words if same else f"{words} (the job file has been edited since)"


def _actual(known: Past, name: str) -> Results:
    jobs = [stretch.job for stretch in known.stretches if name in stretch.job.queries]
    sinks = dict.fromkeys(job.sink(name) for job in jobs)
    return join([results(Path(sink), known.writer, known.last, known.judged) for sink in sinks])


def _scopes(
    connection: duckdb.DuckDBPyConnection, known: Past, intake: Intake, query: Query, name: str
) -> list[Scope]:
    """Over what to compute a query: of one that came later, what it came after, or everything."""
    before = known.batches[known.judged - 1].watermark if known.judged else None
    until, above = (_complete(query, mark) for mark in (intake.watermark, before))
    wide = any(_far(connection, stream.name) for _, stream in query.inputs)
    since = known.since(name) or 0
    starts = [since, 0] if since > known.begin else [0]
    return [Scope(query, until, start, known.judged, above, wide) for start in starts]


def _complete(query: Query, watermark: int | None) -> int | None:
    """The end of the last windows that are complete once the watermark is there."""
    if query.grouping is None or watermark is None:
        return None
    own = query.grouping.time.alias
    behind = (query.bounds[other, own] for other in query.aliases if other != own)
    return watermark - max([0, *behind])


def _far(connection: duckdb.DuckDBPyConnection, stream: str) -> bool:
    time = quoted(TIME)
    ((low, high),) = connection.execute(
        f"SELECT min({time}), max({time}) FROM {relation('input', stream)}"
    ).fetchall()
    return low is not None and (low < -FARTHEST or high > FARTHEST)


def _verdict(
    connection: duckdb.DuckDBPyConnection,
    scope: Scope,
    intake: Intake,
    actual: Results,
    name: str,
    judged: str,
) -> Verdict:
    made = _compute(connection, scope)
    ((expected,),) = connection.execute('SELECT count(*) FROM "@expected"').fetchall()
    there = 0 if actual.rows is None else actual.rows.num_rows
    reason = "" if actual.rows is None else mistyped(scope.query, made, actual.rows.schema)
    if reason:
        counts = Counts(missing=expected, wrong=there)
    else:
        _load(connection, scope.query, made, actual.rows)
        counts = compare(connection, _shape(connection, scope.query, made))
    differs = bool(reason or counts != Counts())
    if differs and intake.doubts:
        raise CannotTellError("; ".join(intake.doubts))
    complaints = [*([reason] if reason else []), *_of_streams(intake, scope.query)]
    if actual.others and differs:
        complaints.append(_changed(actual.others))
    return Verdict(
        name,
        WRONG if differs or complaints else RIGHT,
        expected, there, counts.missing, counts.duplicate, counts.wrong,
        "; ".join(complaints), judged,
    )  # fmt: skip


def _of_streams(intake: Intake, query: Query) -> list[str]:
    """What is wrong with the rows set aside of the streams that a query reads."""
    names = {stream.name for _, stream in query.inputs}
    return [text for stream, text in intake.complaints if stream in names]


def _changed(versions: Sequence[int]) -> str:
    words = ", ".join(map(str, versions[:3])) + (", ..." if len(versions) > 3 else "")
    return f"somebody else changed rows of the table in version {words}"


def _compute(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[str]:
    """Make `@expected`; the types of its columns."""
    texts = iter(statements(connection, scope))
    connection.execute(f'CREATE OR REPLACE TABLE "@expected" AS {next(texts)}').fetchall()
    for text in texts:
        connection.execute(f'INSERT INTO "@expected" {text}').fetchall()
    kinds = dict(_kinds(connection, "@expected"))
    return [kinds[column(i).strip('"')] for i in range(len(scope.query.output))]


def _kinds(connection: duckdb.DuckDBPyConnection, table: str) -> Iterator[tuple[str, str]]:
    for name, kind, *_ in connection.execute(f'DESCRIBE "{table}"').fetchall():
        yield name, kind


def _load(
    connection: duckdb.DuckDBPyConnection, query: Query, made: Sequence[str], rows: pa.Table | None
) -> None:
    """Make `@actual`, its columns numbered as those of `@expected`."""
    if rows is None:
        columns = ", ".join(column(i) for i in range(len(query.output)))
        source = f'SELECT {columns} FROM "@expected" LIMIT 0'
    else:
        connection.register("@rows", rows.rename_columns([f"c{i}" for i in range(len(made))]))
        columns = ", ".join(f"c{i} AS {column(i)}" for i in range(len(made)))
        source = f'SELECT {columns} FROM "@rows"'
    connection.execute(f'CREATE OR REPLACE TABLE "@actual" AS {source}').fetchall()
    connection.unregister("@rows")
    _align(connection, made)


def _align(connection: duckdb.DuckDBPyConnection, made: Sequence[str]) -> None:
    """Write decimals of different precision as text: no common type may hold them all."""
    found = dict(_kinds(connection, "@actual"))
    for i, kind in enumerate(made):
        other = found[column(i).strip('"')]
        if kind != other and kind.startswith("DECIMAL"):
            for table in ("@expected", "@actual"):
                connection.execute(
                    f'ALTER TABLE "{table}" ALTER {column(i)} TYPE VARCHAR USING {_plain(i)}'
                ).fetchall()


def _plain(i: int) -> str:
    text = f"CAST({column(i)} AS VARCHAR)"
    return f"CASE WHEN contains({text}, '.') THEN rtrim(rtrim({text}, '0'), '.') ELSE {text} END"


def _shape(connection: duckdb.DuckDBPyConnection, query: Query, made: Sequence[str]) -> Shape:
    names = dict(_kinds(connection, "@expected"))
    reaches = tuple(i for i in range(len(made)) if reach(i).strip('"') in names)
    return Shape(len(made), tuple(inexact(query, made)), reaches)
