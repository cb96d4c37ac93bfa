"""What anyone can know of a job from its tables."""

import os
import subprocess
import sys
from json import loads
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs import cli, specs, streaming
from jobs.tables.lease import HeldError, holder, lease
from jobs.tables.progress import Progress
from tests.jobs import small


@pytest.fixture(scope="module")
def finished(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[Progress]]:
    directory = tmp_path_factory.mktemp("finished")
    small.write(directory, range(3))
    job = small.job(directory)
    done: list[Progress] = []
    streaming.run(specs.load(job), streaming.Extent(batches=2), done.append)
    return job, done


def told(job: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()
    assert cli.run(["status", str(job), "--json"]) == 0
    return loads(capsys.readouterr().out)


def test_says_what_was_done(
    finished: tuple[Path, list[Progress]], capsys: pytest.CaptureFixture[str]
):
    job, done = finished
    found = told(job, capsys)
    assert found["batch"] == 1
    assert found["plans"] == {"three": "(a b c)", "two": "(a b)", "counted": "(a b)"}
    assert found["running"] is None
    assert found["backlog"] == {name: {"files": 1} for name in small.STREAMS}
    for name in small.STREAMS:
        assert found["late"][name] == sum(p.streams[name].late for p in done)
        assert found["rejected"][name] == sum(p.streams[name].rejected for p in done)
    states = {state["state"]: state for state in found["states"]}
    assert {key: w.state_rows for key, w in done[-1].operators.items()} == {
        key: state["rows"] for key, state in states.items()
    }
    assert all(state["content"] for state in states.values())
    assert found["watermark"].startswith("2023-11-14T22:13:")


def test_for_people(finished: tuple[Path, list[Progress]], capsys: pytest.CaptureFixture[str]):
    job, _ = finished
    assert cli.run(["status", str(job)]) == 0
    out = capsys.readouterr().out
    assert "does not run" in out
    assert "(a b c)" in out
    assert "1 files" in out


def test_who_runs_it(finished: tuple[Path, list[Progress]], capsys: pytest.CaptureFixture[str]):
    job, _ = finished
    with lease(job.parent / "storage"):
        assert told(job, capsys)["running"]["pid"] > 0
        with pytest.raises(HeldError, match="running already: process"):
            lease(job.parent / "storage").__enter__()
    assert holder(job.parent / "storage") is None


def test_needs_no_spark(finished: tuple[Path, list[Progress]]):
    """Neither Spark nor anything else that takes long is imported."""
    job, _ = finished
    program = (
        "import sys; from jobs.cli import run; code = run(['status', sys.argv[1]]); "
        "heavy = {'pyspark', 'pyarrow', 'duckdb', 'sqlglot', 'pandas'} & sys.modules.keys(); "
        "sys.exit(code or (f'imported {heavy}' if heavy else 0))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(job)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_new_storage_is_its_owners_alone(tmp_path: Path, umask: int):
    before = os.umask(umask)
    try:
        with lease(tmp_path / "new" / "storage"):
            pass
    finally:
        os.umask(before)
    assert [mode(path) for path in (tmp_path / "new", tmp_path / "new" / "storage")] == [0o700] * 2


def test_a_storage_that_was_there_stays_as_it_is(tmp_path: Path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o775)
    with lease(tmp_path / "shared"):
        pass
    assert mode(tmp_path / "shared") == 0o775


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_crashed_holder_loses_the_lease(tmp_path: Path):
    program = (
        "import sys, os, signal; from pathlib import Path; from jobs.tables.lease import lease\n"
        "with lease(Path(sys.argv[1])): os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    with lease(tmp_path):
        pass


def test_before_the_first_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.run(["status", str(small.job(tmp_path)), "--json"]) == 3
    assert "has not finished a batch yet" in loads(capsys.readouterr().out)["error"]
