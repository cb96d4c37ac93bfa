"""How long a decision takes: a job of many streams, its statistics written by hand."""

import sys
from itertools import pairwise
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from subprocess import DEVNULL, run
from time import perf_counter, process_time
from typing import Any

import yaml

from jobs import specs, streaming
from jobs.backends.duckdb.backend import DuckBackend
from jobs.deciding.reoptimization import Asked, reoptimize
from jobs.engine.microbatch import Engine
from jobs.migrations import user
from jobs.tables.columns import REASON, ROW
from jobs.tables.lease import lease
from stats.store import BATCHES, EDGES, STREAMS, VERDICTS, StatsStore, Window
from tests.bench.migration.run import scratch

START = 1_700_000_040_000_000
MINUTE = 60_000_000


def speed(streams: int, runs: int) -> dict[str, Any]:
    """Seconds of a decision in a warm process, and of the whole command in one of its own."""
    names = [f"s{number:02d}" for number in range(streams)]
    with scratch() as directory:
        job = specs.load(_job(directory, names))
        _run_once(job)
        _observe(Path(job.storage), names)
        asked = Asked(START + MINUTE, user(), dry_run=True)
        with lease(Path(job.storage)):
            command = [sys.executable, "-m", "jobs.cli", "reoptimize", str(job.file), "--dry-run"]
            alone = [_alone(command) for _ in range(runs)]
            reoptimize(job, "q", asked)
            warm = [_warm(job, asked) for _ in range(runs)]
            found = reoptimize(job, "q", asked)
    return {
        "streams": streams,
        "outcome": str(found.outcome),
        "decision_seconds": median(wall for wall, _ in warm),
        "decision_cpu_seconds": median(cpu for _, cpu in warm),
        "command_seconds": median(wall for wall, _ in alone),
        "command_cpu_seconds": median(cpu for _, cpu in alone),
    }


def _warm(job: specs.Job, asked: Asked) -> tuple[float, float]:
    began, used = perf_counter(), process_time()
    reoptimize(job, "q", asked)
    return perf_counter() - began, process_time() - used


def _alone(command: list[str]) -> tuple[float, float]:
    before, began = getrusage(RUSAGE_CHILDREN), perf_counter()
    run(command, check=True, stdout=DEVNULL)
    wall, after = perf_counter() - began, getrusage(RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu


def _job(directory: Path, names: list[str]) -> Path:
    """Each stream is joined with the next one."""
    stream = {
        "source": "files", "path": ".", "format": "parquet",
        "schema": "k BIGINT, n BIGINT, ts TIMESTAMP", "event_time": "ts",
    }  # fmt: skip
    joined = " AND ".join(f"{a}.n = {b}.k" for a, b in pairwise(names))
    sql = f"SELECT {names[0]}.k FROM {', '.join(names)} WHERE {joined}"
    content = {
        "job": "many", "engine": "duckdb", "storage": "storage",
        "streams": dict.fromkeys(names, stream),
        "queries": {"q": {"sql": sql, "window": "30 seconds"}},
    }  # fmt: skip
    path = directory / "many.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def _run_once(job: specs.Job) -> None:
    """A batch of next to nothing, so that the job has run."""
    import pyarrow as pa

    time = pa.timestamp("us", "UTC")
    columns = {"k": pa.int64(), "n": pa.int64(), "ts": time, REASON: pa.string(), ROW: pa.string()}
    rows = pa.table(
        {"k": [1], "n": [1], "ts": [START], REASON: [None], ROW: [None]}, pa.schema(columns.items())
    )
    store = streaming.job_store(job)
    engine = Engine(streaming.engine_job(job), store, DuckBackend(), lambda: START)
    engine.run(0, dict.fromkeys(job.streams, rows))
    engine.close()


def _observe(storage: Path, names: list[str]) -> None:
    """Four good windows: the joins at the end of the chain leave least."""
    store = StatsStore.of(storage)
    streams = [{"stream": name, "rows": 6000, "rate": 100.0, "width": 40.0} for name in names]
    edges = [
        {"query": "q", "one": a, "other": b, "selectivity": 4e-4 / (at + 1), "method": "exact"}
        for at, (a, b) in enumerate(pairwise(names))
    ]
    for number in range(-4, 0):
        window = Window(START + number * MINUTE, START + (number + 1) * MINUTE)
        store.replace(STREAMS, window, streams)
        store.replace(EDGES, window, edges)
        store.replace(BATCHES, window, [{"batches": 6}])
        store.replace(VERDICTS, window, [{"good": True, "reasons": [], "checked": 0}])
