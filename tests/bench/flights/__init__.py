"""`flights`: two months of real flights, caught up with at once and day by day.

Beside it stands what DuckDB alone takes to read, join and write the same, in a process of its own
as the job is.
"""

import json as jsons
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from os import utime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer
import yaml

from jobs import show
from jobs.tables.delta_store import DeltaStore
from jobs.tables.partitions import SMALL
from jobs.tables.store import DataFile

DATA = Path(__file__).parent
EXAMPLE = Path("docs/examples/flights.yaml")
STREAMS = ("flights", "weather")

ALONE = """
from time import perf_counter
import duckdb
connection = duckdb.connect()
began = perf_counter()
connection.execute(\"\"\"
COPY (
  SELECT a.carrier, a.tailnum, a.dest, a.dep_delay, b.dep_delay AS next_delay, w.wind_speed, a.ts
  FROM 'flights/*.parquet' a
  JOIN 'weather/*.parquet' w
    ON w.origin = a.origin AND w.ts > a.ts - INTERVAL 1 HOUR AND w.ts <= a.ts
  JOIN 'flights/*.parquet' b ON b.tailnum = a.tailnum
    AND b.ts BETWEEN a.ts + INTERVAL 1 MINUTE AND a.ts + INTERVAL 12 HOURS
) TO 'results.parquet'\"\"\")
took = perf_counter() - began
print(took, connection.execute("SELECT count(*) FROM 'results.parquet'").fetchone()[0])
"""
"""DuckDB, from its start on."""


@dataclass(frozen=True)
class Figure:
    """One way to take in two months."""

    engine: str
    delivery: str
    batches: int
    results: int
    seconds: float
    """Of all batches."""
    ms_a_batch: float
    live_files: int
    """Files that make up the states, at the end."""
    small_files: int
    """Those with few rows that are not the only ones of their partition."""
    bytes: int
    """Of the whole storage."""
    against_duckdb: float


def flights(
    *,
    engines: Annotated[str, typer.Option(help="Some of spark-duckdb, duckdb, spark.")] = (
        "spark-duckdb,duckdb"
    ),
    json: show.Json = False,
) -> int:
    """Seconds, files and bytes of a job over two months of flights, and DuckDB's seconds beside."""
    with TemporaryDirectory(prefix="midstream-flights-") as place:
        rows = list(_figures(Path(place), engines.split(",")))
    right = len({row.results for row in rows}) == 1
    report = {
        "figures": [asdict(row) for row in rows],
        "results_equal": right,
        "versions": {name: version(name) for name in ("duckdb", "deltalake", "pyspark")},
        "command": " ".join(["midstream bench flights", *sys.argv[3:]]),
    }
    if json:
        show.as_json(report)
    else:
        _print(rows, str(report["command"]))
    return 0 if right else 1


def _figures(place: Path, engines: list[str]) -> Iterator[Figure]:
    for delivery in ("at once", "by day"):
        data = place / delivery.replace(" ", "-")
        _deliver(data, by_day=delivery == "by day")
        seconds, results = _alone(data)
        yield Figure("DuckDB alone", delivery, 1, results, seconds, seconds * 1000, 0, 0, 0, 1.0)
        for engine in engines:
            yield _run(data, engine, delivery, seconds)


def _deliver(data: Path, *, by_day: bool) -> None:
    """The files, one or one a day, the older the earlier."""
    for stream in STREAMS:
        rows = pq.read_table(DATA / f"{stream}-2013-10-11.parquet").sort_by("ts")
        days = pc.strftime(rows.column("ts"), "%Y-%m-%d" if by_day else "%Y")
        (data / stream).mkdir(parents=True)
        for number, day in enumerate(sorted(set(days.to_pylist()))):
            path = data / stream / f"{day}.parquet"
            pq.write_table(rows.filter(pc.equal(days, day)), path)
            utime(path, (1_400_000_000 + number, 1_400_000_000 + number))


def _alone(data: Path) -> tuple[float, int]:
    made = subprocess.run(
        [sys.executable, "-c", ALONE], cwd=data, capture_output=True, text=True, check=True
    )
    seconds, results = made.stdout.split()
    return float(seconds), int(results)


def _run(data: Path, engine: str, delivery: str, alone: float) -> Figure:
    job = data / f"{engine}.yaml"
    job.write_text(yaml.safe_dump(_job(engine)), encoding="utf-8")
    made = subprocess.run(
        [Path(sys.executable).with_name("midstream"), "run", job, "--until-caught-up", "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    batches = [jsons.loads(line) for line in made.stdout.splitlines()]
    took = [batch["ms"] for batch in batches]
    files = list(_files(DeltaStore(data / engine)))
    return Figure(
        engine,
        delivery,
        len(batches),
        sum(batch["results"] for batch in batches),
        sum(took) / 1000,
        median(took),
        len(files),
        sum(_is_small(file, files) for file in files),
        sum(path.stat().st_size for path in (data / engine).glob("**/*") if path.is_file()),
        sum(took) / 1000 / alone,
    )


def _job(engine: str) -> dict[str, Any]:
    job: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    for name, stream in job["streams"].items():
        stream |= {"path": name, "options": {"maxFilesPerTrigger": 1}}
    return job | {"engine": engine, "storage": engine}


def _files(store: DeltaStore) -> Iterator[tuple[str, DataFile]]:
    for table in store.tables():
        if table.startswith("state/"):
            yield from ((table, file) for file in store.files(table))


def _is_small(one: tuple[str, DataFile], files: list[tuple[str, DataFile]]) -> bool:
    table, file = one
    beside = [other for name, other in files if name == table and other.until == file.until]
    return file.rows < SMALL and len(beside) > 1


def _print(rows: list[Figure], command: str) -> None:
    show.table(
        ("engine", "delivery", "batches", "seconds", "ms-a-batch", "files", "small", "MB", "times"),
        [
            (row.engine, row.delivery, f"{row.batches}", f"{row.seconds:.2f}",
             f"{row.ms_a_batch:.0f}", f"{row.live_files}", f"{row.small_files}",
             f"{row.bytes / 1e6:.1f}", f"{row.against_duckdb:.1f}")
            for row in rows
        ],
        right="batches seconds ms-a-batch files small MB times",
    )  # fmt: skip
    show.plain(f"{rows[0].results:,} results each\n{command}")
