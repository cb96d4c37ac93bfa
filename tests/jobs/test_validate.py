"""`midstream stats validate` as people and Airflow call it: its exit code, its JSON, its page."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs import specs
from jobs.commands.stats.validate import expected
from jobs.tables.names import DECISIONS
from jobs.tables.progress import BatchDecision
from stats.store import EDGES, StatsStore
from tests.jobs import small
from tests.jobs.test_migrate import Stage
from tests.jobs.test_reoptimize import EARLY, see, staged, storage
from tests.stats.test_validate import LAST, QUERIES, STREAMS_OF_JOB, WINDOWS, good, write


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job of which six good windows have been gathered."""
    directory = tmp_path_factory.mktemp("validated")
    stream = {
        "source": "files", "format": "parquet", "path": "in", "event_time": "ts",
        "schema": "k BIGINT, v DOUBLE, kind STRING, ts TIMESTAMP",
    }  # fmt: skip
    content = {
        "job": "gates",
        "storage": "storage",
        "streams": dict.fromkeys(STREAMS_OF_JOB, stream),
        "queries": {name: {"sql": sql} for name, sql in QUERIES.items()},
    }
    file = directory / "job.yaml"
    file.write_text(yaml.safe_dump(content))
    for window in WINDOWS:
        write(StatsStore.of(directory / "storage"), window, good())
    return file


def validate(job: Path, *options: str) -> tuple[int, Any]:
    """In a process of its own: how it ends matters."""
    command = [sys.executable, "-m", "jobs.cli", "stats", "validate", str(job), "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


def test_good_then_broken_then_gathered_again(job: Path):
    store = StatsStore.of(job.parent / "storage")
    code, told = validate(job)
    assert (code, [one["good"] for one in told["validated"]]) == (0, [True] * len(WINDOWS))
    assert "gates" in Path(told["report"]).read_text()

    broken = [row | {"selectivity": 1.7} for row in good()[EDGES]]
    store.replace(EDGES, LAST, broken)
    code, told = validate(job)
    (one,) = told["validated"]
    assert (code, one["good"]) == (3, False)
    assert any("1.7" in reason for reason in one["reasons"])
    assert store.good() == WINDOWS[:-1]

    store.replace(EDGES, LAST, good()[EDGES])
    code, told = validate(job)
    assert (code, [one["good"] for one in told["validated"]]) == (0, [True])
    assert store.good() == WINDOWS


def test_nothing_new_is_nothing_to_complain_of(job: Path, tmp_path: Path):
    validate(job)
    code, told = validate(job, "--report", str(tmp_path / "page"))
    assert (code, told["validated"]) == (0, [])
    assert Path(told["report"]).is_relative_to(tmp_path)


def test_nothing_gathered_is_said(tmp_path: Path, job: Path):
    other = tmp_path / "other.yaml"
    other.write_text(job.read_text())
    code, told = validate(other)
    assert code == 3
    assert "stats collect" in told["error"]


# --- how far the gathering is behind -------------------------------------------------------------

DAY = 24 * 3600


@pytest.fixture
def stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Stage]:
    """A job that runs since long ago, and of which a window has been gathered."""
    with ExitStack() as stack:
        stage = staged(tmp_path, capsys, stack)
        see(stage, EARLY, at=range(-1, 0))
        runs_since(stage, "2023-11-14T00:00:00+00:00")
        yield stage


def runs_since(stage: Stage, moment: str) -> None:
    (storage(stage) / "lease.json").write_text(json.dumps({"pid": 1, "since": moment}))


def behind(stage: Stage, now: int) -> float:
    """For how long the next window has been complete, by a clock of seconds."""
    job = specs.load(stage.job)
    delay = expected(job, StatsStore.of(storage(stage)), now * 1_000_000).delay
    assert delay is not None
    return delay.seconds


def test_a_job_that_stood_still_is_not_behind(stage: Stage):
    """Its next window is complete when a batch begins whose watermark is past it: 40 s later."""
    now = small.START // 1_000_000 + DAY
    while (stage.engine.progress.watermark or 0) < small.START + 40_000_000:
        assert behind(stage, now) <= 0
        stage.batches()
    assert behind(stage, now) <= 0
    stage.batches()
    (begun,) = [one for one in decisions(stage) if one.batch == stage.engine.progress.batch]
    assert behind(stage, now) == round(now - begun.clock / 1_000_000)
    runs_since(stage, datetime.fromtimestamp(now - 60, UTC).isoformat())
    assert behind(stage, now) == 60


def decisions(stage: Stage) -> list[BatchDecision]:
    rows = stage.watched.store.load(DECISIONS).column("content").to_pylist()
    return [BatchDecision.from_text(content) for content in rows]
