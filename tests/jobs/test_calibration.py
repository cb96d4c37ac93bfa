"""`midstream stats calibrate`, over a job run batch by batch and windows written by hand."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs import cli, specs, streaming
from jobs.backends.duckdb.backend import DuckBackend
from jobs.calibration import calibrate
from jobs.engine.microbatch import Engine
from jobs.proposals import Subject
from optimizer.plan import to_json
from stats.costs import SHIPPED, history
from stats.store import (
    BATCHES,
    EDGES,
    ERRORS,
    OPERATORS,
    SELECTS,
    STREAMS,
    VERDICTS,
    StatsStore,
    Window,
)
from tests.jobs import small
from tests.jobs.test_migrate import Stage

SIZE = 10_000_000
CALIBRATE = ("stats", "calibrate", "JOB")


@pytest.fixture
def stage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    """The watermark comes about a second behind the end of each batch's 5 seconds."""
    monkeypatch.delenv(cli.DEBUG, raising=False)
    queries = {"three": small.QUERIES["three"]}
    statistics = {"window": "10 seconds", "every": "10 seconds"}
    path = small.job(tmp_path, queries=queries, statistics=statistics)
    spec = specs.load(path)
    ticks = iter(range(small.START, small.START + 10**12, 1_000_000))
    engine = Engine(
        streaming.engine_job(spec), streaming.job_store(spec), DuckBackend(), lambda: next(ticks)
    )
    stage = Stage(path, engine, capsys)
    stage.batches(13)
    yield stage
    engine.close()


def store(stage: Stage) -> StatsStore:
    return StatsStore.of(stage.job.parent / "storage")


def write(stage: Stage, *numbers: int, good: bool = True, **batches: Any) -> None:
    """Windows of two batches each, all alike."""
    keys = stage.engine.progress.operators
    streams = [
        {"stream": name, "rows": 100, "rate": 10.0, "width": 40.0, "taken": 100,
         "accepted": 100, "late": 0, "rejected": 0}
        for name in small.STREAMS
    ]  # fmt: skip
    pairs = (("a", "b"), ("b", "c"))
    tables: dict[str, list[dict[str, Any]]] = {
        STREAMS: streams,
        EDGES: [{"query": "three", "one": o, "other": p, "selectivity": 0.1} for o, p in pairs],
        SELECTS: [{"query": "three", "alias": "a", "predicate": "0.1 < a.v", "selectivity": 0.9}],
        OPERATORS: [{"operator": k, "batches": 2, "rows": 100, "ms": 20.0} for k in keys],
        BATCHES: [{"batches": 2, "ms": 200.0, "cpu": 0.5, "results": 30} | batches],
        VERDICTS: [{"good": good, "reasons": [], "checked": 1, "at": 0}],
    }
    for number in numbers:
        start = small.START + number * SIZE
        for table, rows in tables.items():
            store(stage).replace(table, Window(start, start + SIZE), rows)


def test_nothing_can_be_said_without_windows(stage: Stage):
    said = stage.says(3, *CALIBRATE)
    assert "no window of small has passed validation: `midstream stats collect" in said


def test_windows_that_do_not_tell_are_not_enough(stage: Stage):
    write(stage, 0, 1, 2)
    write(stage, 3, 4, cpu=None)
    said = stage.says(3, *CALIBRATE)
    assert "2 of 5 validated windows tell what work costs, 3 are needed" in said


def test_a_fit_is_kept_and_predicts_what_it_was_fitted_to(stage: Stage):
    write(stage, 0, 1, 2, 3, 4)
    write(stage, 5, good=False, cpu=50.0)
    found = stage.json(*CALIBRATE)
    assert (found["executor"], found["before"], found["kept"]) == ("duckdb", "shipped", True)
    assert (found["windows"], found["windows_good"], found["batches"]) == (4, 5, 8)
    assert found["error"] < 0.01 < found["error_before"]
    assert found["costs"]["scan"]["before"] == SHIPPED["duckdb"].scan
    assert {row["name"]: row["value"] for row in history(store(stage))} == {
        name: cost["value"] for name, cost in found["costs"].items()
    }
    assert stage.json(*CALIBRATE)["before"] == "fitted"


def test_errors_are_those_of_the_costs_in_force_at_the_time(stage: Stage):
    write(stage, 0, 1, 2, 3)
    error = stage.json(*CALIBRATE)["error_before"]
    write(stage, 4)
    stage.json(*CALIBRATE)
    windows = store(stage).windows()
    rows = [r for r in store(stage).rows(ERRORS, windows) if r["operator"] is None]
    assert [r["window_start"] for r in rows] == [w.start for w in windows[1:]]
    assert {r["measured"] for r in rows} == {0.05}
    assert abs(rows[0]["error"]) == pytest.approx(error)
    assert abs(rows[-1]["error"]) < 0.01
    told = stage.json("stats", "show", "JOB", "--last", "1", "--errors")["windows"][0]["errors"]
    assert {"query": "three", "operator": None, "measured": 0.05}.items() <= told[0].items()
    assert abs(told[0]["error"]) < 0.01
    write(stage, 5)
    said = stage.says(0, "stats", "show", "JOB", "--errors")
    assert "the whole plan" in said


def test_without_a_calibration_nobody_knows_how_wrong_predictions_are(stage: Stage):
    write(stage, 0)
    said = stage.says(0, "stats", "show", "JOB", "--errors")
    assert "of these windows it is not known yet" in said


def test_a_dry_run_keeps_nothing(stage: Stage):
    write(stage, 0, 1, 2, 3)
    said = stage.says(0, *CALIBRATE, "--dry-run")
    assert "Nothing was kept" in said
    assert "shipped" in said.splitlines()[0]
    assert history(store(stage)) == []
    assert store(stage).rows(ERRORS, store(stage).windows()) == []


def test_windows_in_which_the_plan_changed_do_not_count(stage: Stage):
    stage.says(0, "migrate", "JOB", "((a b) c)", "--strategy", "moving-state", "--yes")
    stage.batches(6)  # the 14th begins at 63 s, in window 6, and cuts over
    assert stage.plan == "((a b) c)"
    write(stage, 3, 4, 5, 6, 7, 8)
    found = calibrate(specs.load(stage.job), lambda _done, _all: None)
    ran = {one.window.start: str(one.plans["three"]) for one in found.measured}
    assert set(ran.values()) == {"(a b c)", "((a b) c)"}
    starts = [small.START + number * SIZE for number in (4, 5, 7, 8)]
    assert list(ran) == starts


def test_a_dry_run_of_a_migration_looks_at_windows(stage: Stage):
    """At the last ones, however old: so it prices as a decision does."""
    job = specs.load(stage.job)
    crude = Subject.of(job, "three", None).task.workload
    assert crude.streams["a"].rate != pytest.approx(10)
    write(stage, 0, 1, 2)
    found = Subject.of(job, "three", None).task.workload
    assert found.streams["a"].rate == pytest.approx(10)
    assert found.unit_costs == SHIPPED["duckdb"].units
    assert to_json(Subject.of(job, "three", None).plan.root) == to_json(
        stage.engine.plans["three"].root
    )
