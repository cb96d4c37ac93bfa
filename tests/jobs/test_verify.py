"""Verifying finds what is missing, duplicate or wrong, and nothing else."""

from collections.abc import Iterator
from json import loads
from pathlib import Path
from shutil import copytree

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from jobs import cli, specs, streaming
from tests.jobs import small


@pytest.fixture(scope="module")
def finished(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("finished")
    small.write(directory, range(3))
    job = small.job(directory)
    streaming.run(specs.load(job), streaming.Extent(until_caught_up=True), lambda _: None)
    return job


@pytest.fixture
def results(finished: Path, tmp_path: Path) -> Iterator[Path]:
    """The tables of results, to be spoilt and put right again."""
    storage = finished.parent / "storage"
    storage.rename(storage.with_name("kept"))
    copytree(storage.with_name("kept"), storage)
    yield storage / "out"
    storage.rename(tmp_path / "spoilt")
    storage.with_name("kept").rename(storage)


def verdicts(job: Path, capsys: pytest.CaptureFixture[str], *options: str, code: int = 1):
    capsys.readouterr()
    assert cli.run(["verify", str(job), "--json", *options]) == code
    return loads(capsys.readouterr().out)


def test_right_results(finished: Path, capsys: pytest.CaptureFixture[str]):
    found = verdicts(finished, capsys, code=0)
    assert [verdict["query"] for verdict in found] == ["three", "two", "counted"]
    for verdict in found:
        assert verdict["expected"] == verdict["actual"] > 0
        assert verdict["missing"] == verdict["duplicate"] == verdict["wrong"] == 0


def test_a_missing_row(finished: Path, results: Path, capsys: pytest.CaptureFixture[str]):
    table = DeltaTable(results / "counted")
    gone = table.to_pyarrow_table().slice(0, 1).to_pylist()[0]
    table.delete(f"k = {gone['k']} AND at = '{gone['at'].isoformat()}'")
    verdict = verdicts(finished, capsys, "--query", "counted")
    assert (verdict["missing"], verdict["duplicate"], verdict["wrong"]) == (1, 0, 0)


def test_a_duplicate_row(finished: Path, results: Path, capsys: pytest.CaptureFixture[str]):
    row = DeltaTable(results / "two").to_pyarrow_table().slice(0, 1)
    write_deltalake(results / "two", row, mode="append")
    verdict = verdicts(finished, capsys, "--query", "two")
    assert (verdict["missing"], verdict["duplicate"], verdict["wrong"]) == (0, 1, 0)
    assert verdict["actual"] == verdict["expected"] + 1


def test_a_wrong_row(finished: Path, results: Path, capsys: pytest.CaptureFixture[str]):
    row = DeltaTable(results / "three").to_pyarrow_table().slice(0, 1)
    wrong = row.set_column(0, row.schema.field(0), [[777]])
    write_deltalake(results / "three", wrong, mode="append")
    verdict = verdicts(finished, capsys, "--query", "three")
    assert (verdict["missing"], verdict["duplicate"], verdict["wrong"]) == (0, 0, 1)


def test_doubles_may_differ_a_little(
    finished: Path, results: Path, capsys: pytest.CaptureFixture[str]
):
    DeltaTable(results / "counted").update({"m": "m * (1 + 1e-13)"})
    assert verdicts(finished, capsys, "--query", "counted", code=0)["wrong"] == 0
    DeltaTable(results / "counted").update({"m": "m * (1 + 1e-6)"})
    verdict = verdicts(finished, capsys, "--query", "counted")
    assert verdict["missing"] == verdict["wrong"] == verdict["actual"]


def test_tuples_called_late_that_are_not(
    finished: Path, results: Path, capsys: pytest.CaptureFixture[str]
):
    """A tuple set aside must have been older than the watermark of its batch."""
    known = DeltaTable(results / "two").to_pyarrow_table().column("k").to_pylist()
    tuples = small.rows(10, 1).to_pylist()
    on_time = next(
        i for i, t in enumerate(tuples) if t["ts"] and t["k"] is not None and t["k"] in known
    )
    row = small.rows(10, 1).slice(on_time, 1)
    late = row.append_column("@watermark", [[0]]).append_column("@batch", [[0]])
    write_deltalake(results.parent / "late" / "a", late, mode="append")
    assert verdicts(finished, capsys, "--query", "two", code=0)["wrong"] == 0

    DeltaTable(results.parent / "late" / "a").update({"@watermark": "9999999999999999"})
    verdict = verdicts(finished, capsys, "--query", "two")
    assert verdict["actual"] > verdict["expected"]
    assert verdict["wrong"] + verdict["duplicate"] == verdict["actual"] - verdict["expected"]


def test_a_job_that_has_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    job = small.job(tmp_path)
    assert "nothing to verify" in verdicts(job, capsys, code=3)["error"]


def test_an_unknown_query(finished: Path, capsys: pytest.CaptureFixture[str]):
    assert (
        "no query is called 'towo'"
        in verdicts(finished, capsys, "--query", "towo", code=2)["error"]
    )
