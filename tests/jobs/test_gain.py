"""What a change of plan has gained, by histories whose answer is known by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs import specs
from jobs.deciding.decisions import Decision
from jobs.tracking.gain import BATCHES, WARMING, Gain, gain
from tests.jobs import small

FIRST, DONE = 20, 24
"""The migration begins before the one, the new plan runs from the other."""


def batch(number: int, cpu: float | None, rows: int = 300, ms: float = 100.0) -> dict[str, Any]:
    """A third of the rows come of each stream."""
    return {
        "batch": number, "cpu": cpu, "operators": {"x": {"ms": ms}, "y": {"ms": ms}},
        "streams": {name: {"rows": rows // 3} for name in "abc"}, "migration": None, "events": [],
    }  # fmt: skip


def history(
    before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Ten batches, a migration that costs much, a cut-over that does, then ten more."""
    moving = [batch(n, 9.0) | {"migration": {"id": "m"}} for n in range(FIRST, DONE)]
    cold = [batch(DONE + n, 7.0) for n in range(WARMING)]
    return [
        *(one | {"batch": FIRST - BATCHES + n} for n, one in enumerate(before)),
        *moving, *cold,
        *(one | {"batch": DONE + WARMING + n} for n, one in enumerate(after)),
    ]  # fmt: skip


def measured(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> Gain:
    found = gain(history(before, after), FIRST, DONE)
    assert found is not None
    return found


def test_the_same_input_at_less_cpu():
    """22 % less a batch, though its joins take longer by the clock: others use the machine."""
    found = measured([batch(0, 1.0)] * 10, [batch(0, 0.78, ms=160.0)] * 10)
    assert found.share == pytest.approx(0.22)
    assert str(found) == (
        "CPU time of the job a batch: 10 batches before of 300 rows, 10 after of 300"
    )


def test_input_that_varies_a_little_is_compared_as_it_is():
    before = [batch(0, 1.0 + n / 100, rows=300 + 3 * n) for n in range(10)]
    after = [batch(0, 0.5 + n / 200, rows=327 - 3 * n) for n in range(10)]
    assert measured(before, after).share == pytest.approx(0.5)


def test_batches_that_take_in_more_are_compared_with_their_like():
    """Ten times the rows in half of the batches after: what they cost says nothing of the plan."""
    found = measured([batch(0, 1.0)] * 10, [batch(0, 0.78), batch(0, 5.0, rows=3000)] * 5)
    assert found.share == pytest.approx(0.22)
    assert (len(found.before), len(found.after)) == (5, 5)


def test_mixtures_are_compared_in_the_same_proportion():
    before = [batch(0, 1.0)] * 5 + [batch(0, 4.0, rows=1500)] * 5
    after = [batch(0, 0.5)] * 9 + [batch(0, 3.0, rows=1500)]
    assert measured(before, after).share == pytest.approx(1 - (5 * 0.5 + 3.0) / (5 * 1.0 + 4.0))


def test_another_rate_is_compared_by_the_row_and_says_so():
    """Twice the rows at one and a half times the CPU: three quarters for each row."""
    found = measured([batch(0, 1.0)] * 10, [batch(0, 1.5, rows=600)] * 10)
    assert found.share == pytest.approx(0.25)
    assert str(found) == (
        "CPU time of the job a row, for a batch takes in another number of them: 10 batches "
        "before of 300 rows, 10 after of 600"
    )


def test_batches_of_another_migration_are_left_out():
    other = batch(0, 50.0) | {"migration": {"id": "other"}}
    told = batch(0, 50.0) | {"events": [{"id": "other"}]}
    found = measured([batch(0, 1.0)] * 8 + [other, told], [told, other] + [batch(0, 0.6)] * 8)
    assert found.share == pytest.approx(0.4)


def test_batches_without_input_are_left_out():
    found = measured(
        [batch(0, 1.0)] * 5 + [batch(0, 0.1, rows=0)] * 5,
        [batch(0, 0.9)] * 8 + [batch(0, 0.1, rows=0)] * 2,
    )
    assert found.share == pytest.approx(0.1)


def test_where_nobody_measures_cpu_it_is_the_joins_time_and_said():
    found = measured([batch(0, None, ms=100.0)] * 10, [batch(0, 0.5, ms=75.0)] * 10)
    assert found.share == pytest.approx(0.25)
    assert str(found).startswith("time of its joins a batch")


def test_nothing_before_or_after_is_no_gain():
    assert gain(history([], [batch(0, 1.0)]), FIRST, DONE) is None
    assert gain(history([batch(0, 1.0)], []), FIRST, DONE) is None
    assert gain(history([batch(0, 0.0)], [batch(0, 0.0)]), FIRST, DONE) is None


def test_the_prediction_is_compared_in_the_same_terms(tmp_path: Path):
    """Three streams of 10/s: 300 rows are 10 s.  The plan was to save 0.03 of a batch's 1 CPU-s a
    tenth: 0.3 of it; 0.22 were saved, for the rest of the job costs what it did."""
    query = specs.load(small.job(tmp_path)).query("three")
    decision = Decision(
        "id", 1, "job", "three", "migrate", "", (), {"running_cpu": 0.04, "chosen_cpu": 0.01},
        "", {}, (), "", {}, "", "", {"streams": {name: {"rate": 10.0} for name in "abc"}}, (), "",
        "", "", False, False, "",
    )  # fmt: skip
    found = measured([batch(0, 1.0)] * 10, [batch(0, 0.78)] * 10)
    figures = found.figures(query, decision)
    assert figures["predicted_gain_of_job"] == pytest.approx(0.3)
    assert figures["prediction_error"] == pytest.approx(0.08)
    assert figures["measured_seconds_per_batch_before"] == pytest.approx(1.0)
    assert figures["measured_seconds_per_batch_after"] == pytest.approx(0.78)
    assert figures["measured_rows_per_batch_after"] == 300
    without = replace(found, by_cpu=False).figures(query, decision)
    assert without["prediction_error"] == pytest.approx(0.75)
