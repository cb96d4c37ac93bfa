"""Fewer and smaller files, without a row less, while the job goes on."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import time, time_ns
from typing import Any

import pytest
from deltalake import DeltaTable

from jobs import cli, specs
from jobs.deciding.decisions import DecisionLog
from jobs.deciding.library import Entry, PlanLibrary
from jobs.engine.microbatch import fingerprint
from jobs.tables.progress import history
from stats.store import StatsStore
from tests.jobs import windows
from tests.jobs.test_migrate import Stage
from tests.jobs.test_reoptimize import EARLY, RATES, see, staged, storage

MONTH = 30 * 24 * 3600


@pytest.fixture
def stage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    monkeypatch.delenv(cli.DEBUG, raising=False)
    with ExitStack() as stack:
        yield staged(tmp_path, capsys, stack)


def rows(path: Path) -> list[dict[str, Any]]:
    return sorted(DeltaTable(path).to_pyarrow_table().to_pylist(), key=str)


def tidied(stage: Stage, *words: str) -> dict[str, dict[str, Any]]:
    found = stage.json("maintain", "JOB", *words)["tables"]
    return {one["table"]: one for one in found}


def test_results_are_merged_and_the_job_goes_on(stage: Stage):
    stage.batches(12)
    out = storage(stage) / "out" / "three"
    before, files = rows(out), len(DeltaTable(out).file_uris())
    assert files >= 8
    assert tidied(stage, "--dry-run")["out/three"]["merged"] == files
    assert len(DeltaTable(out).file_uris()) == files
    assert tidied(stage)["out/three"]["merged"] == files
    assert len(DeltaTable(out).file_uris()) == 1
    assert rows(out) == before
    stage.batches(3)
    counted = sum(batch.results["three"] for batch in history(stage.watched.store))
    assert len(rows(out)) == counted > len(before)
    assert tidied(stage)["out/three"]["merged"] == 0


def test_what_a_crash_left_goes_once_it_is_old(stage: Stage):
    stage.batches(2)
    (state, *_) = [path for path in (storage(stage) / "state").iterdir() if path.is_dir()]
    before = rows(state)
    (part, *_) = state.glob("@until=*")
    old, new = part / "crashed.parquet", part / "being-written.parquet"
    for path in (old, new):
        path.write_bytes(b"half of a file")
    os.utime(old, (time() - MONTH, time() - MONTH))
    name = f"state/{state.name}"
    assert tidied(stage, "--dry-run")[name]["removed"] == 1
    assert old.exists()
    assert tidied(stage)[name]["removed"] == 1
    assert (old.exists(), new.exists()) == (False, True)
    assert rows(state) == before
    stage.batches()


def test_statistics_are_kept_as_long_as_the_job_file_says(stage: Stage):
    see(stage, EARLY)  # at the job's own clock: years ago
    recent = windows.window(time_ns() // 1000, -2)
    windows.write(storage(stage), recent, "three", RATES, EARLY)
    store = StatsStore.of(storage(stage))
    assert len(store.windows()) == 5
    dry = tidied(stage, "--dry-run")
    assert (dry["stats/streams"]["forgotten"], dry["stats/batches"]["forgotten"]) == (12, 4)
    assert len(store.windows()) == 5
    found = tidied(stage)
    assert found["stats/streams"]["forgotten"] == 12
    assert store.windows() == store.good() == [recent]


def test_plans_of_what_a_query_no_longer_is(stage: Stage):
    now = time_ns() // 1000
    job = specs.load(stage.job)
    library = PlanLibrary(DecisionLog.of(storage(stage)).root, 2 * MONTH * 1_000_000)
    means = fingerprint(job.query("three"))
    for query, what, used in (
        ("three", means, now),
        ("three", "something else", now - 1),
        ("four", means, now - 2),
        ("three", means, now - (MONTH + 60) * 1_000_000),
    ):
        library.put(Entry(query, what, f"{what} {used}", {}, 1.0, used))
    assert len(library.entries()) == 4
    assert stage.json("maintain", "JOB", "--dry-run")["plans_forgotten"] == 3
    assert len(library.entries()) == 4
    assert stage.json("maintain", "JOB")["plans_forgotten"] == 3
    assert [(one.query, one.used) for one in library.entries()] == [("three", now)]


def test_for_people(stage: Stage):
    said = stage.says(0, "maintain", "JOB", "--dry-run")
    assert "out/three" in said
    assert "0 plans of the library forgotten, or would be" in said
