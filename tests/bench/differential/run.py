"""A case on an engine: the product's own readers, engine and tables, without a Spark query.

Which batch takes which files is written down as Spark's checkpoint would say it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from json import dumps
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from jobs import specs, streaming
from jobs.backends import SqlBackend
from jobs.backends.duckdb.backend import DuckBackend
from jobs.backends.spark_duckdb.backend import SparkDuckBackend
from jobs.engine.microbatch import Engine
from jobs.sources.files import FilesSource
from jobs.sources.inputs import read_in_place
from jobs.tables import job_store
from jobs.tables.definitions import FILE as DEFINITIONS
from jobs.tables.definitions import with_definition
from jobs.tables.names import result_table
from jobs.tables.partitions import Widths
from jobs.tables.paths import local
from jobs.tables.progress import BatchResources
from jobs.tables.store import Store
from tests.bench.differential.case import Case, Stream
from tests.bench.differential.terms import length
from tests.jobs.engine.inline import Inline


@dataclass(frozen=True)
class Found:
    """What a job has put out and set aside, by table."""

    results: pa.Table | None
    late: Mapping[str, pa.Table]
    rejected: Mapping[str, pa.Table]


def job_file(case: Case, root: Path, engine: str, name: str = "") -> Path:
    """The case as a user would write it down."""
    content = {
        "job": "differential",
        "engine": engine,
        "storage": f"storage-{name or engine}",
        "trigger": "100 milliseconds",
        "durable": name != "",
        "streams": {stream.name: _stream(stream) for stream in case.streams},
        "queries": {case.name: _query(case)},
    }
    path = root / f"{name or engine}.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
    return path


def _stream(stream: Stream) -> dict[str, Any]:
    return {
        "source": "files", "format": stream.format, "path": stream.directory,
        "schema": stream.schema, "event_time": stream.time, "lateness": length(stream.lateness),
        "ahead": length(stream.ahead),
        "options": {"maxFilesPerTrigger": stream.at_once} | dict(stream.options),
        **({"columns": stream.mode} if stream.mode else {}),
    }  # fmt: skip


def _query(case: Case) -> dict[str, Any]:
    made: dict[str, Any] = {"sql": case.query.sql}
    if case.query.window is not None:
        made["window"] = length(case.query.window)
    if case.plan is not None:
        made["plan"] = case.plan
    return made


def checkpoint(case: Case, root: Path, job: specs.Job) -> None:
    """What Spark would note of the files that each batch takes."""
    place = job_store.checkpoint(local(job.storage))
    (place / "offsets").mkdir(parents=True)
    for at, stream in enumerate(case.streams):
        (place / "sources" / str(at)).mkdir(parents=True)
        for number, files in enumerate(case.batches(stream)):
            paths = [root / stream.directory / file.name for file in files]
            lines = [_entry(path, number) for path in paths]
            log = place / "sources" / str(at) / str(number)
            log.write_text("\n".join(["v1", *lines]), encoding="utf-8")
    for number in range(case.count):
        taken = [min(number + 1, len(case.batches(stream))) - 1 for stream in case.streams]
        ends = [dumps({"logOffset": last}) if last >= 0 else "-" for last in taken]
        log = place / "offsets" / str(number)
        log.write_text("\n".join(["v1", "{}", *ends]), encoding="utf-8")


def _entry(path: Path, number: int) -> str:
    modified = path.stat().st_mtime_ns // 10**6
    return dumps({"path": path.as_uri(), "timestamp": modified, "batchId": number})


# --- engines -------------------------------------------------------------------------------------


Read = Callable[..., Any]


@contextmanager
def _engine(name: str, case: Case, scratch: Path, spark: Any) -> Iterator[tuple[SqlBackend, Read]]:
    if name == "duckdb":
        yield DuckBackend(writers=2), FilesSource.rows
    elif name == "spark-duckdb":
        tasks: Any = Inline(case.tasks)
        yield SparkDuckBackend(tasks), partial(FilesSource.filed, scratch=scratch, spark=tasks)
    else:
        from jobs.backends.spark.backend import SparkBackend

        yield SparkBackend(spark), partial(FilesSource.frame_of, scratch=scratch, spark=spark)


def carry_out(
    case: Case, root: Path, engine: str, store: Store | None = None, spark: Any = None
) -> Found:
    """Run a case whose files are there, by default over tables on the disk."""
    job = specs.load(job_file(case, root, engine))
    checkpoint(case, root, job)
    inlets = streaming.streams(job)
    noted = local(job.storage) / "control" / DEFINITIONS
    noted.write_text(dumps(with_definition([], job, 0)), encoding="utf-8")

    def look(number: int) -> BatchResources:
        return BatchResources(taken={one.stream.name: one.taken.position(number) for one in inlets})

    tables = streaming.job_store(job) if store is None else store
    width = dict.fromkeys([stream.name for stream in case.streams][::2], case.width)
    made = replace(streaming.engine_job(job), widths=Widths(width))
    scratch = local(job.storage) / "scratch"
    with _engine(engine, case, scratch, spark) as (backend, read):
        running = Engine(made, tables, backend, lambda: case.clock, look=look)
        try:
            for number in range(case.count):
                for inlet in inlets:
                    inlet.source.inspect(inlet.taken, number)
                running.run(number, read_in_place(inlets, number, read))
        finally:
            running.close()
    return found(case, tables)


def found(case: Case, tables: Store) -> Found:
    """What is in a job's tables."""
    names = [stream.name for stream in case.streams]
    result = result_table(case.name)
    return Found(
        tables.load(result) if tables.exists(result) else None,
        {name: tables.load(f"late/{name}") for name in names if tables.exists(f"late/{name}")},
        {n: tables.load(f"rejected/{n}") for n in names if tables.exists(f"rejected/{n}")},
    )
