"""Whole jobs: started, stopped, killed, resumed; their results compared with their input."""

import errno
import signal
from pathlib import Path
from time import monotonic, sleep
from typing import get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs import cli, specs, streaming
from jobs.engine.resource_monitor import ResourceMonitor
from jobs.errors import MidstreamError, RefusedError
from jobs.sources.checkpoint import CheckpointOffsets
from jobs.sources.files import FilesSource
from jobs.tables.job_store import JobStore
from jobs.tables.progress import BatchResources, Progress, history
from jobs.verify import judge
from stats.costs import SHIPPED
from tests.bench import crash
from tests.jobs import small

DRAIN = streaming.Extent(until_caught_up=True)


def run(job: Path, extent: streaming.Extent = DRAIN) -> list[Progress]:
    done: list[Progress] = []
    streaming.run(specs.load(job), extent, done.append)
    return done


def differences(job: Path) -> list[str]:
    verdicts = judge(specs.load(job)).verdicts
    assert all(verdict.actual or verdict.reason for verdict in verdicts)
    return [str(verdict) for verdict in verdicts if not verdict.right]


def changed(job: Path, **fields: object) -> Path:
    content = yaml.safe_load(job.read_text()) | fields
    job.write_text(yaml.safe_dump(content))
    return job


def test_results_are_those_of_the_input(spark: SparkSession, tmp_path: Path):
    small.write(tmp_path, range(4))
    job = small.job(tmp_path)

    batches = run(job)

    assert [progress.batch for progress in batches] == [0, 1, 2, 3]
    assert differences(job) == []
    flows = [flow for progress in batches for flow in progress.streams.values()]
    tables = {kind: tmp_path / "storage" / kind for kind in ("late", "rejected")}
    for kind, path in tables.items():
        counted = sum(getattr(flow, kind) for flow in flows)
        assert counted > 0
        kept = [DeltaTable(table).to_pyarrow_table().num_rows for table in path.iterdir()]
        assert sum(kept) == counted
    assert sum(flow.rows + flow.late + flow.rejected for flow in flows) == 3 * 4 * 50


def test_goes_on_where_it_stopped(spark: SparkSession, tmp_path: Path):
    small.write(tmp_path, range(3))
    job = small.job(tmp_path)
    assert len(run(job, streaming.Extent(batches=2))) == 2
    small.write(tmp_path, range(3, 4))

    again = run(job)

    assert [progress.batch for progress in again] == [2, 3]
    assert differences(job) == []
    assert run(job) == []


@pytest.mark.parametrize("engine", ["spark", "spark-duckdb"])
def test_spark_computes_the_same(spark: SparkSession, tmp_path: Path, engine: str):
    small.write(tmp_path, range(2))
    queries = {f"all-{name}": query for name, query in small.QUERIES.items()}
    job = small.job(tmp_path, engine=engine, queries=queries)
    run(job)
    assert differences(job) == []


@pytest.mark.parametrize("engine", ["spark", "spark-duckdb"])
def test_rows_that_only_spark_can_read_reach_its_tasks(
    spark: SparkSession, tmp_path: Path, engine: str
):
    """Through files that do not outlive their batch by long."""
    small.write(tmp_path, range(2))
    job = small.job(tmp_path, engine=engine)
    streams = yaml.safe_load(job.read_text())["streams"]
    for file in sorted((tmp_path / "b").iterdir()):
        lines = (
            pq.read_table(file)
            .to_pandas()
            .to_json(orient="records", lines=True, date_unit="us", date_format="iso")
        )
        file.with_suffix(".json").write_text(lines)
        file.unlink()
    streams["b"]["format"] = "json"
    run(changed(job, streams=streams))
    assert differences(job) == []
    left = list((tmp_path / "storage/scratch").rglob("*.parquet"))
    assert len(left) <= 2 * len(streams)


def test_every_engine_of_a_job_file_is_there_and_has_a_price():
    allowed = get_args(specs.Job.model_fields["engine"].annotation)
    assert streaming.BACKENDS.keys() == SHIPPED.keys() == set(allowed)


def test_results_go_where_the_job_says(spark: SparkSession, tmp_path: Path):
    small.write(tmp_path, range(1))
    queries = {"two": small.QUERIES["two"] | {"sink": {"path": "elsewhere/two"}}}
    job = small.job(tmp_path, queries=queries)
    (progress,) = run(job)
    assert (
        DeltaTable(tmp_path / "elsewhere/two").to_pyarrow_table().num_rows
        == (progress.results["two"])
    )
    assert differences(job) == []


def test_a_silent_stream_is_not_waited_for(spark: SparkSession, tmp_path: Path):
    small.write(tmp_path, range(2))
    for file in (tmp_path / "c").iterdir():
        file.unlink()
    job = small.job(tmp_path)
    streams = yaml.safe_load(job.read_text())["streams"]

    assert run(job)[-1].watermark is None

    streams["c"]["idle_after"] = "1 millisecond"
    assert run(changed(job, storage="other", streams=streams))[-1].watermark is not None


def test_a_changed_query_is_refused(spark: SparkSession, tmp_path: Path):
    small.write(tmp_path, range(1))
    job = small.job(tmp_path)
    run(job)
    other = {"two": {"sql": small.QUERIES["two"]["sql"].replace("3 SECONDS", "4 SECONDS")}}
    with pytest.raises(RefusedError, match="query two is not the one"):
        run(changed(job, queries=other))


def test_other_streams_are_refused(spark: SparkSession, tmp_path: Path):
    small.write(tmp_path, range(1))
    job = small.job(tmp_path, queries={"two": small.QUERIES["two"]})
    run(job)
    streams = yaml.safe_load(job.read_text())["streams"]
    del streams["c"]
    with pytest.raises(RefusedError, match="this storage has a, b, c, the job file a, b"):
        run(changed(job, streams=streams))


def test_streams_may_be_written_in_another_order(spark: SparkSession, tmp_path: Path):
    small.write(tmp_path, range(1))
    job = small.job(tmp_path)
    run(job)
    small.write(tmp_path, range(1, 2))
    streams = yaml.safe_load(job.read_text())["streams"]
    run(changed(job, streams=dict(reversed(streams.items()))))
    assert differences(job) == []


def test_a_full_disk(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    small.write(tmp_path, range(2))
    job = small.job(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(JobStore, "put", full)
        with pytest.raises(MidstreamError, match=r"no space is left on the disk of .*storage"):
            run(job)

    run(job)
    assert differences(job) == []


def test_a_lost_checkpoint_is_noticed(spark: SparkSession, tmp_path: Path):
    small.write(tmp_path, range(2))
    job = small.job(tmp_path)
    run(job)
    (tmp_path / "storage/checkpoint").rename(tmp_path / "lost")
    small.write(tmp_path, range(2, 3))
    with pytest.raises(RefusedError, match="restore both, or start with a new storage"):
        run(job)


def _dies_amid_batch_1(
    monkeypatch: pytest.MonkeyPatch, seen: list[bool], commit: Path, patience: float
) -> None:
    """The process fails before it notes that batch 1 is done; has Spark noted that by then?"""
    look = ResourceMonitor.__call__

    def fail(self: ResourceMonitor, batch: int) -> BatchResources:
        end = monotonic() + patience
        while batch == 1 and not commit.exists() and monotonic() < end:
            sleep(0.05)
        if batch == 1:
            seen.append(commit.exists())
            raise OSError("amid batch 1")
        return look(self, batch)

    monkeypatch.setattr(ResourceMonitor, "__call__", fail)


def test_spark_asks_again_for_what_it_noted_too_early(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    small.write(tmp_path, range(4))
    job, seen = small.job(tmp_path), list[bool]()
    with monkeypatch.context() as patch:
        _dies_amid_batch_1(patch, seen, tmp_path / "storage/checkpoint/commits/1", 60)
        with pytest.raises(OSError, match="amid batch 1"):
            run(job)
    assert seen == [True], "Spark goes on while a batch is carried out"

    assert [progress.batch for progress in run(job)][:1] == [1]
    assert differences(job) == []


def test_spark_waits_where_it_removes_what_it_has_noted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    small.write(tmp_path, range(4))
    streams = yaml.safe_load(small.job(tmp_path).read_text())["streams"]
    archive = {"cleanSource": "archive", "sourceArchiveDir": str(tmp_path / "archive")}
    for stream in streams.values():
        stream["options"] = stream["options"] | archive
    job, seen = small.job(tmp_path, streams=streams), list[bool]()
    with monkeypatch.context() as patch:
        _dies_amid_batch_1(patch, seen, tmp_path / "storage/checkpoint/commits/1", 3)
        with pytest.raises(OSError, match="amid batch 1"):
            run(job)
    assert seen == [False]

    run(job)
    removed = list((tmp_path / "archive").rglob("*.parquet"))
    assert removed
    for file in removed:  # `verify` reads all of the input again
        file.rename(tmp_path / file.parent.name / file.name)
    assert differences(job) == []


def test_a_batch_is_read_while_the_one_before_is_carried_out(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    small.write(tmp_path, range(3))
    job, read, look = small.job(tmp_path), list[int](), ResourceMonitor.__call__
    rows = FilesSource.rows

    def noted(self: FilesSource, taken: CheckpointOffsets, batch: int) -> pa.Table:
        read.append(batch)
        return rows(self, taken, batch)

    def patient(self: ResourceMonitor, batch: int) -> BatchResources:
        end = monotonic() + 60
        while batch == 1 and 2 not in read and monotonic() < end:
            sleep(0.05)
        return look(self, batch)

    monkeypatch.setattr(FilesSource, "rows", noted)
    monkeypatch.setattr(ResourceMonitor, "__call__", patient)
    batches = run(job)
    assert [progress.batch for progress in batches] == [0, 1, 2]
    assert batches[1].finished - batches[0].finished < 60_000_000
    assert differences(job) == []


def test_a_batch_that_is_not_to_be_carried_out_is_not_looked_at(
    spark: SparkSession, tmp_path: Path
):
    small.write(tmp_path, range(2))
    pq.write_table(pa.table({"k": [1]}), tmp_path / "b" / "0001.parquet")
    job = small.job(tmp_path)
    assert len(run(job, streaming.Extent(until_caught_up=True, batches=1))) == 1
    with pytest.raises(MidstreamError, match=r"0001\.parquet"):
        run(job)


@pytest.mark.spark
def test_stopped_by_a_signal(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """One process runs; another is refused; SIGTERM ends the first between two batches."""
    small.write(tmp_path, range(8))
    job = small.job(tmp_path)
    process = crash.start(job, "--batches", "100")
    assert process.stdout is not None
    for _ in range(4):  # until windows have been emitted as well
        process.stdout.readline()

    assert cli.run(["run", str(job)]) == 3
    assert f"the job is running already: process {process.pid}, since 20" in capsys.readouterr().err

    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == 0
    assert len(history(streaming.job_store(specs.load(job)))) >= 1
    assert differences(job) == []


@pytest.mark.spark
@pytest.mark.parametrize(("engine", "runs"), [("duckdb", 2), ("spark", 1), ("spark-duckdb", 1)])
def test_killed_anywhere(tmp_path: Path, engine: str, runs: int):
    """A few of what `midstream bench crash` does many times."""
    outcome = crash.crashes(tmp_path, runs=runs, seed=3, files=3, engine=engine)
    assert sum(outcome.killed.values()) == runs
    assert outcome.clean
    assert outcome.results > 0


@pytest.mark.spark
def test_killed_while_its_plans_change(tmp_path: Path):
    outcome = crash.crashes(tmp_path, runs=1, seed=4, files=2, migrations=True)
    assert outcome.killed
    assert outcome.clean
    assert outcome.results > 0
    assert outcome.migrations
