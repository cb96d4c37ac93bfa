"""`collect`: how long gathering statistics takes, and how that grows with the range.

The job is run first, so that its tables and Spark's checkpoint are real.  Gathering is a program of
its own, as it is when a schedule starts it: cold first, then again for ranges of several lengths.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from json import dumps, loads
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Annotated, Any

import typer

from jobs import show
from jobs.engine.process_usage import java, usage
from tests.bench.joins.program import _job
from tests.bench.joins.workload import Workload, write

MINUTE = 60
LEAD, TAIL = 40, 20
"""Seconds before the first whole minute, and until a batch knows that the last one is over."""

WINDOW = 10
TARGET, TARGET_MB = 20.0, 2048


def collect(
    *,
    rate: Annotated[int, typer.Option(min=1, help="Tuples a second of each stream.")] = 10_000,
    minutes: Annotated[str, typer.Option(help="How long the ranges are.")] = "1,2,4,5",
    json: show.Json = False,
) -> None:
    """Time, CPU and memory of gathering whole minutes of a job over three streams."""
    lengths = [int(length) for length in minutes.split(",")]
    seconds = LEAD + max(lengths) * MINUTE + TAIL
    workload = Workload("three", WINDOW, seconds, rate)
    with TemporaryDirectory(prefix="midstream-collect-") as directory:
        place = Path(directory)
        with show.progress("running the job first"):
            write(workload, place / "data")
            _in_a_process("run", place, workload, lengths)
        with show.progress("gathering"):
            found = _in_a_process("gather", place, workload, lengths)
    report = found | {
        "tuples_per_second": rate * len(workload.streams),
        "target_s": TARGET,
        "target_mb": TARGET_MB,
        "versions": {name: version(name) for name in ("pyspark", "deltalake")},
        "command": " ".join(["midstream bench collect", *sys.argv[3:]]),
    }
    if json:
        show.as_json(report)
    else:
        _show(report)


def _show(report: dict[str, Any]) -> None:
    show.table(
        ("minutes", "", "tuples", "s", "CPU s", "tuples/s"),
        [
            (
                str(run["minutes"]), run["state"], f"{run['tuples']:,}", f"{run['s']:.1f}",
                f"{run['cpu_s']:.1f}", f"{run['tuples'] / run['s']:,.0f}",
            )
            for run in report["runs"]
        ],
        right="minutes tuples s CPU tuples/s",
    )  # fmt: skip
    show.plain(
        f"Spark was up after {report['spark_s']:.1f} s; {report['peak_mb']:,} MB at most\n"
        f"to reach: 5 minutes in {TARGET:.0f} s, {TARGET_MB:,} MB\n"
        f"{report['command']}"
    )
    show.plain(", ".join(f"{name} {number}" for name, number in report["versions"].items()))


def _in_a_process(
    what: str, place: Path, workload: Workload, lengths: Sequence[int]
) -> dict[str, Any]:
    program = [sys.executable, "-m", "tests.bench.collect", what, str(place), workload.json]
    done = subprocess.run(
        [*program, *map(str, lengths)], capture_output=True, text=True, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise RuntimeError(f"{what} failed: {done.stderr[-2000:]}")
    found: dict[str, Any] = loads(lines[-1].removeprefix("RESULT "))
    return found


def _run(place: Path, workload: Workload) -> dict[str, Any]:
    from jobs.streaming import Extent, run

    job = _job("duckdb", workload, place / "data", place / "storage")
    run(job, Extent(until_caught_up=True), lambda _: None)
    return {}


def _gather(place: Path, workload: Workload, lengths: Sequence[int]) -> dict[str, Any]:
    from jobs.commands.stats.collect import SETTINGS
    from jobs.gathering import Gathering, Range
    from jobs.spark import session
    from stats.store import STREAMS

    gathering = Gathering(_job("duckdb", workload, place / "data", place / "storage"))
    whole = gathering.wanted(Range())[1:]
    began = perf_counter()
    spark = session("midstream-bench-collect", **SETTINGS)
    up = perf_counter() - began
    runs = []
    for state, length in [("cold", max(lengths)), *(("warm", one) for one in lengths)]:
        cpu, began = _cpu(), perf_counter()
        windows = whole[:length]
        gathering.gather(spark, windows, lambda *_: None)
        rows = sum(row["rows"] for row in gathering.stats.rows(STREAMS, windows))
        runs.append({
            "minutes": len(windows), "state": state, "tuples": rows,
            "s": round(perf_counter() - began, 2), "cpu_s": round(_cpu() - cpu, 2),
        })  # fmt: skip
    return {
        "spark_s": round(up, 2),
        "runs": runs,
        "peak_mb": sum(map(_peak, [os.getpid(), *java()])),
    }


def _cpu() -> float:
    return sum(usage(pid).cpu for pid in (os.getpid(), *java()))


def _peak(pid: int) -> int:
    """The most memory that a process has held, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    (line,) = [line for line in lines if line.startswith("VmHWM:")]
    return int(line.split()[1]) // 1024


if __name__ == "__main__":
    load = Workload.from_json(sys.argv[3])
    made = (
        _run(Path(sys.argv[2]), load)
        if sys.argv[1] == "run"
        else _gather(Path(sys.argv[2]), load, list(map(int, sys.argv[4:])))
    )
    print("RESULT " + dumps(made))
