"""A running job whose processes are ended from outside: what it does, and the one line it says."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs import specs, streaming, streaming_errors
from jobs.tables.progress import history
from tests.bench import crash
from tests.jobs import small
from tests.jobs.test_streaming import changed, differences, run

FILES = 30


def started(directory: Path, *, batches: int = 2) -> "tuple[Path, subprocess.Popen[str]]":
    """A job in a process and a group of its own that has done some batches and has more to do."""
    small.write(directory, range(FILES))
    job = small.job(directory)
    process = crash.start(job, "--batches", str(FILES), alone=True)
    assert process.stdout is not None
    for _ in range(batches):
        process.stdout.readline()
    return job, process


def said(job: Path) -> list[str]:
    """What it printed besides batches; Java has something to say whenever it begins."""
    lines = job.with_suffix(".log").read_text().splitlines()
    return [line for line in lines if not line.startswith(("WARNING: Using", "Picked up"))]


def java(process: "subprocess.Popen[str]") -> int:
    """The process of Spark's Java."""
    told = subprocess.run(
        ["ps", "-o", "pid=,comm=", "--ppid", str(process.pid)], capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return next(int(line.split()[0]) for line in told.stdout.splitlines() if "java" in line)


def right_once_finished(job: Path) -> bool:
    run(job)
    done = [progress.batch for progress in history(streaming.job_store(specs.load(job)))]
    return done == list(range(FILES)) and differences(job) == []


@pytest.mark.spark
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_all_of_its_group(tmp_path: Path, number: signal.Signals):
    """As terminals, supervisors and `kill` send it: Java does not end amid the batch."""
    job, process = started(tmp_path)
    os.killpg(process.pid, number)
    assert process.wait(timeout=120) == 0
    assert said(job) == []


@pytest.mark.spark
def test_java_is_killed(spark: SparkSession, tmp_path: Path):
    job, process = started(tmp_path)
    os.kill(java(process), signal.SIGKILL)
    assert process.wait(timeout=120) == 1
    assert said(job) == [
        "midstream: Spark's Java process is gone (killed by signal 9), perhaps for want of memory: "
        "start the job again; the batch under way is done again then, nothing is lost"
    ]
    assert right_once_finished(job)


@pytest.mark.spark
def test_nobody_reads_what_it_prints(tmp_path: Path):
    job, process = started(tmp_path, batches=1)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=120) == 0
    assert said(job) == []


@pytest.mark.parametrize(("batches", "done"), [(2, 2), (9, 3)])
def test_the_first_of_both_limits_ends_it(
    spark: SparkSession, tmp_path: Path, batches: int, done: int
):
    small.write(tmp_path, range(3))
    both = streaming.Extent(until_caught_up=True, batches=batches)
    assert len(run(small.job(tmp_path), both)) == done


def test_a_stream_without_an_end_ends_by_the_number_of_batches(spark: SparkSession, tmp_path: Path):
    small.write(tmp_path, range(1))
    endless = {
        "source": "generator", "generator": {"rate": 100}, "schema": small.SCHEMA,
        "event_time": "ts",
    }  # fmt: skip
    queries = {"one": {"sql": "SELECT a.k FROM a"}}
    job = changed(small.job(tmp_path), streams={"a": endless}, queries=queries)
    assert len(run(job, streaming.Extent(until_caught_up=True, batches=3))) == 3


CALL = (
    "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n: "
)
TASK = (
    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 6.0 failed"
    " 1 times, most recent failure: Lost task 1.0 in stage 6.0 (TID 13) (localhost executor"
    " driver): "
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[BAD] It is. SQLSTATE: 42 ...\nmore", "[BAD] It is"),
        ("Query a terminated with exception: java.io.Oops: no\n\tat x", "java.io.Oops: no"),
        (f"{CALL}{TASK}java.io.IOException: Stream closed\n\tat y", "Stream closed"),
        (
            f"{CALL}{TASK}org.apache.spark.SparkException: Python worker exited unexpectedly"
            " (crashed). Consider setting 'x'.\n\tat z",
            "Python worker exited unexpectedly (crashed)",
        ),
        (
            f"{TASK}org.apache.spark.api.python.PythonException: Traceback (most recent call last):"
            '\n  File "x.py", line 1, in f\n    g()\nValueError: no such file\n\n\tat w',
            "ValueError: no such file",
        ),
    ],
)
def test_what_spark_says_is_the_cause(text: str, why: str):
    assert streaming_errors.cause(text) == why
