"""Bugs planted in the engine, each of a class that came up; random jobs must find every one."""

import re
from collections.abc import Callable, Sequence
from functools import cache

import pyarrow.compute as pc
import pytest
from sqlglot import exp

from jobs.backends.duckdb import backend
from jobs.backends.parquet_input import ParquetInput
from jobs.engine import ingest, microbatch
from jobs.sources import csv_records, json_lines, partitions, values
from jobs.sources.common import Feed
from optimizer.sql import bounds, meaning
from tests.bench.differential.case import Case
from tests.bench.differential.check import check
from tests.bench.differential.draw import draw

SEEDS = 200
"""Within how many each must be found."""

Plant = Callable[[pytest.MonkeyPatch], None]
Might = Callable[[Case], bool]


def another_zone(patch: pytest.MonkeyPatch) -> None:
    """Statements run in the zone of the machine."""
    settings = backend._SETTINGS.replace("'UTC'", "'America/New_York'")
    patch.setattr(backend, "_SETTINGS", settings)


def on_time_is_late(patch: pytest.MonkeyPatch) -> None:
    """A tuple just at the watermark is late."""
    patch.setattr(ingest, "_late", lambda one: f"{ingest._time(one)} <= :watermark")


def the_last_microsecond_is_too_far(patch: pytest.MonkeyPatch) -> None:
    """A tuple just at the end of `ahead` is rejected."""
    latest = ingest._latest
    patch.setattr(ingest, "_latest", lambda *given: latest(*given) - 1)


def windows_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    """A window is put out when the watermark passes its end, whoever may still come."""

    def until(self: microbatch.Engine, batch: microbatch._Batch, output: object) -> int | None:
        done = self.progress.emitted.get(output.query, ingest.ALWAYS)  # type: ignore[attr-defined]
        if output.horizon is None:  # type: ignore[attr-defined]
            return None
        return done if batch.watermark is None else max(done, batch.watermark)

    patch.setattr(microbatch.Engine, "_emits_until", until)


def less_is_at_most(patch: pytest.MonkeyPatch) -> None:
    """`b.ts < a.ts + x` lets tuples meet that are x apart."""
    limits = bounds.time_limits

    def wider(condition: exp.Expr, times: object) -> object:
        if isinstance(condition, exp.LT):
            condition = exp.LTE(this=condition.this, expression=condition.expression)
        return limits(condition, times)  # type: ignore[arg-type]

    patch.setattr("optimizer.sql.select.time_limits", wider)


def overflow_stops(patch: pytest.MonkeyPatch) -> None:
    """Sums and products that do not fit are errors."""
    plain = {"SafeAdd": exp.Add, "SafeSubtract": exp.Sub, "SafeMultiply": exp.Mul}

    def untried(node: exp.Expr) -> exp.Expr:
        made = plain[type(node).__name__]
        return exp.Paren(this=made(this=node.this.copy(), expression=node.expression.copy()))

    rewrites = {**meaning._REWRITES[meaning.DUCKDB], **dict.fromkeys(plain, untried)}
    patch.setitem(meaning._REWRITES, meaning.DUCKDB, rewrites)


def quotes_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """An empty text in quotes is NULL."""
    patch.setattr(csv_records, "_value", lambda field, *_: field or None)


def escapes_stay(patch: pytest.MonkeyPatch) -> None:
    """Fields are found by their text as it stands in the line."""
    decode = json_lines._object
    patch.setattr(json_lines, "_object", lambda line, names: decode(line.lower(), names))


def shares_overlap(patch: pytest.MonkeyPatch) -> None:
    """Two tasks read the same rows."""
    parts = ParquetInput._parts
    patch.setattr(ParquetInput, "_parts", lambda self, _: parts(self, None))


def columns_go_by_place(patch: pytest.MonkeyPatch) -> None:
    """A header does not say where columns stand."""

    def as_declared(header: Sequence[str], feed: Feed) -> tuple[Sequence[int], int, str]:
        return range(len(feed.stream.columns)), len(header or feed.stream.columns), ""

    patch.setattr(csv_records, "_places", as_declared)


def directories_are_not_unescaped(patch: pytest.MonkeyPatch) -> None:
    """The value of a partition is what its directory is called."""
    patch.setattr(partitions, "unquote", lambda text: text)


def nanoseconds_round(patch: pytest.MonkeyPatch) -> None:
    """What is finer than a microsecond is rounded up."""
    patch.setattr(pc, "floor_temporal", pc.ceil_temporal)


def _bounded(case: Case) -> bool:
    return bool(case.query.between) and re.search("` < `", case.query.sql) is not None


def _large(case: Case) -> bool:
    values = [value for file in case.files for row in file.rows if isinstance(row, tuple)
              for value in row if isinstance(value, int)]  # fmt: skip
    large = any(2**62 < abs(value) <= 2**63 for value in values)
    return large and any(f" {sign} " in case.query.sql.partition(" FROM ")[0] for sign in "+-*")


def _windows(case: Case) -> bool:
    return case.query.grouping is not None and len(case.query.inputs) > 1


def _written(case: Case, *writers: str) -> bool:
    return any(file.writer in writers and file.rows for file in case.files)


def _headed(case: Case) -> bool:
    return any(
        s.format == "csv" and dict(s.options)["header"] and not s.exact for s in case.streams
    )


def _escaped(case: Case) -> bool:
    parts = {stream.name for stream in case.streams if stream.parts}
    files = [file for file in case.files if file.stream in parts and file.rows]
    return any("%" in file.name.rpartition("/")[0] for file in files)


def _at_the_end(case: Case) -> bool:
    ends = {stream.name: (stream.at, case.clock + stream.ahead) for stream in case.streams}
    rows = [(ends[file.stream], row) for file in case.files for row in file.rows]
    return any(isinstance(row, tuple) and row[at] == end for (at, end), row in rows)


PLANTS: dict[Plant, Might] = {
    another_zone: lambda _: True,
    on_time_is_late: lambda case: case.count > 1,
    the_last_microsecond_is_too_far: _at_the_end,
    windows_do_not_wait: _windows,
    less_is_at_most: _bounded,
    overflow_stops: _large,
    quotes_do_not_count: lambda case: _written(case, "rfc4180", "csv unix"),
    escapes_stay: lambda case: _written(case, "json"),
    shares_overlap: lambda case: case.tasks > 1,
    columns_go_by_place: _headed,
    directories_are_not_unescaped: _escaped,
    nanoseconds_round: lambda case: _written(case, "nanos"),
}
"""Each bug, and which cases might show it: the others need not be tried."""


@cache
def cases() -> list[Case]:
    return [draw(seed) for seed in range(SEEDS)]


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant, monkeypatch):
    seeds = [case.seed for case in cases() if PLANTS[plant](case)]
    plant(monkeypatch)
    backend.duck_text.cache_clear()
    values._database.cache_clear()
    engines = ("spark-duckdb",) if plant is shares_overlap else ("duckdb",)
    found = (check(seed, engines, tries=0, whole=True) for seed in seeds)
    try:
        assert any(outcome.wrong or outcome.refused for outcome in found)
    finally:
        monkeypatch.undo()
        backend.duck_text.cache_clear()
        values._database.cache_clear()
