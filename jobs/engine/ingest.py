"""What a batch takes in: tuples in time, late ones, and those that do not fit their stream.

A stream's raw rows have its columns, and beside them `@reason` and `@row`: why the source could not
make a tuple of what it read, and what that was.  Nothing is dropped silently: late and rejected
rows go to tables of their own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from jobs.backends import SqlBackend
from jobs.engine.statements import parse, quote
from jobs.tables.columns import ALWAYS, REASON, ROW, WATERMARK
from jobs.tables.progress import BatchDecision, Progress, StreamStats
from optimizer.query import Stream
from optimizer.window import MICROSECONDS

FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The event times that count: from the year 1 to the year 9999, as Spark has them in microseconds.

What is computed from them, such as the end of a window, then never leaves a BIGINT.
"""


@dataclass(frozen=True)
class Ingest:
    """How a stream's tuples are taken in; times in microseconds."""

    stream: Stream
    lateness: int = 0
    idle_after: int | None = None
    ahead: int = 3600 * MICROSECONDS
    """How far an event time may lie in the future before its tuple is rejected."""


@dataclass(frozen=True)
class Intake:
    """A stream's tuples in a batch: the relation of those in time, and of those set aside."""

    relation: str
    aside: tuple[str, ...]


def summarise(
    backend: SqlBackend, ingests: Mapping[str, Ingest], before: Progress, decision: BatchDecision
) -> tuple[dict[str, StreamStats], int]:
    """Count each stream's tuples, in time, late and rejected, and find the newest event time.

    Also from which event time to which the rows of the batch are, in microseconds.

    Mostly there is nothing to set aside, which a look without thresholds tells: its statement is
    the same in every batch, so that nothing has to be compiled for it again.
    """
    looks = [
        f"SELECT '{name}' AS stream, count(*) AS total, CAST(0 AS BIGINT) AS late, "
        f"count(CASE WHEN {quote(REASON)} IS NULL THEN {_time(ingest)} END) AS fitting, "
        f"max({_time(ingest)}) AS newest, min({_time(ingest)}) AS oldest FROM `raw_{name}`"
        for name, ingest in ingests.items()
    ]
    backend.run("look", parse(" UNION ALL ".join(looks)))
    rows = {row["stream"]: row for row in backend.rows("look").to_pylist()}
    span = _span(rows.values())
    if not all(_fine(rows[name], i, before, decision) for name, i in ingests.items()):
        rows = _count(backend, ingests, before, decision)
    flows = {name: _flow(rows[name], before.streams.get(name), decision) for name in ingests}
    return flows, span


def _span(looks: Iterable[Mapping[str, int | None]]) -> int:
    """How far the rows of a batch are apart, at the very most."""
    times = [time for row in looks for time in (row["oldest"], row["newest"]) if time is not None]
    return max(times) - min(times) if times else 0


def _fine(
    row: Mapping[str, int], ingest: Ingest, before: Progress, decision: BatchDecision
) -> bool:
    """Whether every row of a stream is a tuple in time."""
    return row["fitting"] == row["total"] and (
        row["total"] == 0
        or (
            row["oldest"] >= max(_or_always(before.watermark), FIRST)
            and row["newest"] <= _latest(ingest, decision)
        )
    )


def _count(
    backend: SqlBackend, ingests: Mapping[str, Ingest], before: Progress, decision: BatchDecision
) -> dict[str, Mapping[str, int]]:
    """Count row by row."""
    parts = []
    for name, ingest in ingests.items():
        fits, late = _fits(ingest), _late(ingest)
        parts.append(
            f"SELECT '{name}' AS stream, count(*) AS total, "
            f"count(CASE WHEN {fits} AND {late} THEN 1 END) AS late, "
            f"count(CASE WHEN {fits} THEN 1 END) AS fitting, "
            f"max(CASE WHEN {fits} THEN {_time(ingest)} END) AS newest FROM `raw_{name}`"
        )
    latest = {f"latest_{name}": _latest(i, decision) for name, i in ingests.items()}
    watermark = _or_always(before.watermark)
    backend.run("summary", parse(" UNION ALL ".join(parts)), {"watermark": watermark, **latest})
    return {row["stream"]: row for row in backend.rows("summary").to_pylist()}


def _flow(
    row: Mapping[str, int], before: StreamStats | None, decision: BatchDecision
) -> StreamStats:
    known = before or StreamStats(seen=decision.clock)
    times = [time for time in (row["newest"], known.newest) if time is not None]
    return StreamStats(
        rows=row["fitting"] - row["late"],
        late=row["late"],
        rejected=row["total"] - row["fitting"],
        newest=max(times, default=None),
        seen=decision.clock if row["total"] else known.seen,
    )


def take_in(
    backend: SqlBackend,
    ingest: Ingest,
    flow: StreamStats,
    watermark: int | None,
    decision: BatchDecision,
) -> Intake:
    """Sort a stream's raw rows into `in_S` and, where there are any, `late_S` and `rejected_S`."""
    name = ingest.stream.name
    columns = ", ".join(f"`{column.name}`" for column in ingest.stream.columns)
    fits, late = _fits(ingest), _late(ingest)
    parameters = {
        "watermark": _or_always(watermark),
        f"latest_{name}": _latest(ingest, decision),
    }
    source = f"FROM `raw_{name}` WHERE"
    if not flow.late and not flow.rejected:
        backend.also(f"in_{name}", f"raw_{name}")
        return Intake(f"in_{name}", ())
    backend.run(
        f"in_{name}", parse(f"SELECT {columns} {source} {fits} AND NOT ({late})"), parameters
    )
    aside = []
    if flow.late:
        aside.append(f"late_{name}")
        reason = f"CAST(:watermark AS BIGINT) AS {quote(WATERMARK)} {source} {fits} AND {late}"
        backend.run(aside[-1], parse(f"SELECT {columns}, {reason}"), parameters)
    if flow.rejected:
        aside.append(f"rejected_{name}")
        time = f"`{ingest.stream.event_time}`"
        reason = (
            f"coalesce({quote(REASON)}, CASE WHEN {time} IS NULL THEN 'no event time' "
            f"WHEN {_in_range(ingest)} IS NOT TRUE THEN 'event time out of range' "
            f"ELSE 'event time too far in the future' END) AS {quote(REASON)}, {quote(ROW)}"
        )
        statement = f"SELECT {columns}, {reason} {source} NOT ({fits})"
        backend.run(aside[-1], parse(statement), parameters)
    return Intake(f"in_{name}", tuple(aside))


def _time(ingest: Ingest) -> str:
    return f"unix_micros(`{ingest.stream.event_time}`)"


def _fits(ingest: Ingest) -> str:
    early = f"{_time(ingest)} <= :latest_{ingest.stream.name}"
    in_time = f"coalesce({_in_range(ingest)} AND {early}, FALSE)"
    return f"({quote(REASON)} IS NULL AND {in_time})"


def _in_range(ingest: Ingest) -> str:
    return f"({_time(ingest)} BETWEEN {FIRST} AND {LAST})"


def _latest(ingest: Ingest, decision: BatchDecision) -> int:
    return min(decision.clock + ingest.ahead, LAST)


def _late(ingest: Ingest) -> str:
    return f"{_time(ingest)} < :watermark"


def _or_always(watermark: int | None) -> int:
    return ALWAYS if watermark is None else watermark
