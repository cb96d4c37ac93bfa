"""`status`: how long `midstream status` takes beyond Python's own start, after many batches."""

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from itertools import count
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Annotated

import pyarrow as pa
import typer

from jobs import show, specs
from jobs.backends.duckdb.backend import DuckBackend
from jobs.engine.ingest import Ingest
from jobs.engine.inline_compaction import tidy
from jobs.engine.microbatch import Engine, Job
from jobs.tables.columns import REASON, ROW
from jobs.tables.job_store import JobStore
from tests.jobs import small

TARGET = 300.0
"""Milliseconds."""

_ORDINARY = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
"""Where that is set, Python compiles every module anew at each start."""

_EMPTY = [sys.executable, "-c", "pass"]


def status(
    *,
    batches: Annotated[int, typer.Option(min=1, help="How many the job has done.")] = 100,
    runs: Annotated[int, typer.Option(min=1, help="Looks; the median counts.")] = 15,
    json: show.Json = False,
) -> None:
    """Time of `midstream status` beside an empty Python program, on a job of three queries."""
    with TemporaryDirectory(prefix="midstream-status-") as directory:
        job = small.job(Path(directory))
        _done(job, batches)
        look = [sys.executable, "-m", "jobs.cli", "status", str(job)]
        python, whole = _alternating((_EMPTY, look), runs)
        used = _cpu(look) - _cpu(_EMPTY)
    figures = {
        "batches": batches,
        "python_ms": round(python, 1),
        "status_ms": round(whole, 1),
        "beyond_python_ms": round(whole - python, 1),
        "cpu_beyond_python_ms": round(used, 1),
        "target_ms": TARGET,
        "versions": {name: version(name) for name in ("deltalake", "pydantic", "typer")},
        "command": " ".join(["midstream bench status", *sys.argv[3:]]),
    }
    if json:
        show.as_json(figures)
    else:
        show.table(("", "figure"), [(name, str(value)) for name, value in figures.items()])


def _done(job: Path, batches: int) -> None:
    """Have the engine alone do the batches of a job, as `midstream run` would."""
    spec = specs.load(job)
    streams = {name: Ingest(spec.stream(name), lateness=1_000_000) for name in spec.streams}
    plans = {name: spec.plan(name) for name in spec.queries}
    store = JobStore(Path(spec.storage))
    clock = count(small.START, 200_000)
    engine = Engine(Job(spec.job, streams, plans), store, DuckBackend(), clock.__next__)
    for batch in range(batches):
        inputs = {name: _raw(at, batch) for at, name in enumerate(small.STREAMS)}
        engine.run(batch, inputs)
        tidy(engine, lambda: True)
    engine.close()


def _raw(stream: int, batch: int) -> pa.Table:
    rows = small.rows(stream, batch)
    for column in (REASON, ROW):
        rows = rows.append_column(column, pa.nulls(rows.num_rows, pa.string()))
    return rows


def _alternating(commands: Sequence[Sequence[str]], runs: int) -> list[float]:
    """The median milliseconds of each; one after the other, so that both see the same machine."""
    for command in commands:
        _timed(command)
    took = [[_timed(command) for command in commands] for _ in range(runs)]
    return [median(times) for times in zip(*took, strict=True)]


def _cpu(command: Sequence[str]) -> float:
    """The CPU time of a command, which says something on a busy machine too."""
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=_ORDINARY)
    after = getrusage(RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _timed(command: Sequence[str]) -> float:
    began = perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=_ORDINARY)
    return (perf_counter() - began) * 1000
