"""Bugs planted in the engine, each of a class that came up; random jobs must find every one."""

from collections.abc import Callable

import pytest
from sqlglot import exp

from jobs.engine import ingest, microbatch
from jobs.engine.executors import duck
from jobs.engine.executors.filed import Filed
from jobs.engine.sources import csv_records, json_lines, values
from optimizer.sql import bounds, meaning
from tests.bench.differential.check import check

SEEDS = 200
"""Within how many each must be found."""

Plant = Callable[[pytest.MonkeyPatch], None]


def another_zone(patch: pytest.MonkeyPatch) -> None:
    """Statements run in the zone of the machine."""
    settings = duck._SETTINGS.replace("'UTC'", "'America/New_York'")
    patch.setattr(duck, "_SETTINGS", settings)


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
    parts = Filed._parts
    patch.setattr(Filed, "_parts", lambda self, _: parts(self, None))


PLANTS: list[Plant] = [
    another_zone, on_time_is_late, the_last_microsecond_is_too_far, windows_do_not_wait,
    less_is_at_most, overflow_stops, quotes_do_not_count,
    escapes_stay, shares_overlap,
]  # fmt: skip


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant, monkeypatch):
    plant(monkeypatch)
    duck.duck_text.cache_clear()
    values._database.cache_clear()
    engines = ("spark-duckdb",) if plant is shares_overlap else ("duckdb",)
    found = (check(seed, engines, tries=0, whole=True) for seed in range(SEEDS))
    try:
        assert any(outcome.wrong or outcome.refused for outcome in found)
    finally:
        monkeypatch.undo()
        duck.duck_text.cache_clear()
        values._database.cache_clear()
