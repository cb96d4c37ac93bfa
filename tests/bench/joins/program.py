"""Midstream itself: the program that `midstream run` runs, until it has caught up."""

import sys
from json import dumps
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import pyarrow.compute as pc
from deltalake import DeltaTable

from jobs.engine.process_usage import cpu_seconds, java, memory_mb
from jobs.specs import Job, load
from jobs.streaming import Extent, run
from jobs.tables.progress import Progress
from tests.bench.joins.workload import BEGAN, SCHEMA, Workload, write

UNSYNCED = "-unsynced"
"""Ends an engine's name for a job with `durable: false`."""


def main(engine: str, workload: Workload, data: Path) -> dict[str, Any]:
    """Warm up with a little, then run all of it."""
    with TemporaryDirectory(dir=data.parent) as warm:
        little = workload.little
        write(little, Path(warm) / "data")
        _run(engine, little, Path(warm) / "data", Path(warm) / "job")
    with TemporaryDirectory(dir=data.parent) as storage:
        return _run(engine, workload, data, Path(storage))


def _run(engine: str, workload: Workload, data: Path, storage: Path) -> dict[str, Any]:
    batches: list[dict[str, Any]] = []
    machines: list[int] = []
    used: dict[str, float] = {}
    began = perf_counter()

    def report(progress: Progress) -> None:
        machines[:] = machines or java()  # to look for them takes longer than all the rest
        before = dict(used)
        used.update(python=process_time(), java=sum(map(cpu_seconds, machines)))
        states = progress.operators.values()
        batches.append(
            {
                "at": round(perf_counter() - began, 3),
                "ms": progress.ms,
                "cpu_ms": {what: 1000 * (used[what] - before.get(what, 0.0)) for what in used},
                "operators": [work.ms for work in states],
                "state_rows": sum(work.state_rows for work in states),
                "state_bytes": sum(work.state_bytes for work in states),
                "python_mb": memory_mb(),
                "java_mb": sum(map(memory_mb, machines)),
            }
        )

    run(_job(engine, workload, data, storage), Extent(until_caught_up=True), report)
    seconds = perf_counter() - began
    return {"seconds": seconds, "results": _results(workload, storage), "batches": batches}


def _job(engine: str, workload: Workload, data: Path, storage: Path) -> Job:
    streams = {
        name: {
            "source": "files",
            "path": str(data / name),
            "format": "parquet",
            "options": {"maxFilesPerTrigger": 1},
            "schema": SCHEMA,
            "event_time": "ts",
        }
        for name in workload.streams
    }
    query = {
        "sql": workload.sql(), "plan": workload.plan, "window": f"{workload.window} seconds"
    }  # fmt: skip
    document = {
        "job": "native-join",
        "engine": engine.removesuffix(UNSYNCED),
        "durable": not engine.endswith(UNSYNCED),
        "storage": str(storage),
        "streams": streams,
        "queries": {"q": query},
    }
    storage.mkdir(exist_ok=True)
    file = storage / "job.json"
    file.write_text(dumps(document))
    return load(file)


def _results(workload: Workload, storage: Path) -> int:
    rows = DeltaTable(storage / "out" / "q").to_pyarrow_table()
    if workload.shape != "grouped":
        return int(rows.num_rows)
    ends = pc.cast(rows.column("ends"), "int64")
    assert workload.closed() > BEGAN, "too few seconds for a window to close"
    closed = rows.filter(pc.less_equal(ends, workload.closed() * 1000))
    return int(pc.sum(closed.column("n")).as_py() or 0)


if __name__ == "__main__":
    made = main(sys.argv[1], Workload.from_json(sys.argv[2]), Path(sys.argv[3]))
    print("RESULT " + dumps(made))
