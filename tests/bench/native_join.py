"""Midstream beside Spark's own stream-stream joins, Flink SQL and one batch join."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from json import dumps, loads
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from jobs import show
from tests.bench.joins.workload import Workload, write

ROOT = Path(__file__).parents[2]
FLINK = ROOT / ".bench" / "flink" / "bin" / "python"
"""`python -m venv .bench/flink && .bench/flink/bin/pip install apache-flink==2.1.0`."""

ENGINES = (
    "midstream-duckdb",
    "midstream-spark-duckdb",
    "midstream-spark",
    "native-rocksdb",
    "native-changelog",
    "native-memory",
    "flink-heap",
    "flink-rocksdb",
    "batch",
)
SHAPES = ("three", "four", "grouped")
PATIENCE = 3600
"""Seconds after which an engine is given up."""


def native_join(  # noqa: PLR0917  # typer reads options from parameters
    engines: Annotated[str, typer.Option(help="Which, separated by commas.")] = ",".join(ENGINES),
    shape: Annotated[str, typer.Option(help="three, four (no common key) or grouped.")] = "three",
    window: Annotated[int, typer.Option(help="Seconds.")] = 30,
    seconds: Annotated[int, typer.Option(help="How much input; a batch has 10 of them.")] = 80,
    rate: Annotated[int, typer.Option(help="Tuples per second and stream.")] = 10_000,
    runs: Annotated[
        int, typer.Option(min=1, help="Of each engine, in turn; the one in the middle counts.")
    ] = 1,
    batches: Annotated[bool, typer.Option(help="Show every batch of Midstream's.")] = False,
    json: Annotated[bool, typer.Option(help="Print JSON.")] = False,
) -> int:
    """Throughput of a windowed join: Midstream, Spark's own stream-stream joins, Flink SQL.

    Each runs in a process of its own, warmed up, on the same files, with durable state and output;
    midstream-duckdb-unsynced, for one, with `durable: false`, as Spark's and Flink's are.
    """
    workload = Workload(shape, window, seconds, rate)
    every = _outcomes(workload, engines.split(","), runs)
    made = {engine: _middle(outcomes) for engine, outcomes in every.items()}
    report = {
        "command": " ".join(["midstream bench native-join", *sys.argv[3:]]),
        "versions": _versions(),
        "workload": loads(workload.json),
        "engines": made,
    }
    if json:
        show.as_json(report)
    else:
        _show(workload, made, batches=batches)
        show.plain(f"{report['command']}\n{_line(_versions())}")
    counts = {one["results"] for each in every.values() for one in each if "results" in one}
    return 0 if len(counts) <= 1 else 1


def _outcomes(workload: Workload, engines: list[str], runs: int) -> dict[str, list[dict[str, Any]]]:
    """Of each engine, run by run."""
    made: dict[str, list[dict[str, Any]]] = {engine: [] for engine in engines}
    scratch = ROOT / ".bench"
    scratch.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=scratch) as directory:
        kinds = {"csv" if engine.startswith("flink") else "parquet" for engine in engines}
        for kind in kinds:
            write(workload, Path(directory) / kind, kind)
        for engine in engines * runs:
            outcome = _outcome(engine, workload, Path(directory))
            if "seconds" in outcome:
                outcome["rate"] = workload.tuples / outcome["seconds"]
            typer.echo(f"{engine}: {_brief(outcome)}", err=True)
            made[engine].append(outcome)
    return made


def _middle(outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    """The run of the median throughput, with those of all; or what went wrong."""
    if failed := next((one for one in outcomes if "failed" in one), None):
        return failed
    ordered = sorted(outcomes, key=lambda one: float(one["rate"]))
    return ordered[(len(ordered) - 1) // 2] | {"rates": [one["rate"] for one in outcomes]}


def _outcome(engine: str, workload: Workload, directory: Path) -> dict[str, Any]:
    command = _command(engine, workload, directory)
    if not Path(command[0]).exists():
        return {"failed": f"{command[0]} is not there"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {PATIENCE} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        return {"failed": _complaint(done.stderr)}
    outcome: dict[str, Any] = loads(lines[-1].removeprefix("RESULT "))
    return outcome


def _complaint(said: str) -> str:
    """The last line that names an error; Spark puts whole plans below it."""
    lines = said.strip().splitlines() or ["said nothing"]
    named = [line for line in lines if "Exception: " in line or "Error: " in line]
    return (named or lines)[-1].strip()[:200]


def _brief(outcome: Mapping[str, Any]) -> str:
    if "failed" in outcome:
        return str(outcome["failed"])
    return f"{outcome['rate']:,.0f} tuples/s, {outcome['results']:,} results"


def _command(engine: str, workload: Workload, directory: Path) -> list[str]:
    python = [sys.executable, "-W", "ignore", "-m"]
    parquet = str(directory / "parquet")
    if engine.startswith("flink"):
        program = str(Path(__file__).parent / "joins" / "flink_sql.py")
        out = str(directory / engine)
        return [
            str(FLINK),
            program,
            engine,
            dumps(_for_flink(workload)),
            str(directory / "csv"),
            out,
        ]
    if engine.startswith("midstream"):
        name = engine.removeprefix("midstream-")
        return [*python, "tests.bench.joins.program", name, workload.json, parquet]
    return [*python, "tests.bench.joins.spark_native", engine, workload.json, parquet]


def _for_flink(workload: Workload) -> dict[str, Any]:
    """The query as interval joins."""
    names = workload.streams
    lag = f"INTERVAL '{workload.seconds}' SECOND({len(str(workload.seconds))})"
    near = " AND ".join(
        f"{i}.ts BETWEEN {j}.ts - INTERVAL '{workload.window}' SECOND({_digits(workload)})"
        f" AND {j}.ts + INTERVAL '{workload.window}' SECOND({_digits(workload)})"
        for at, i in enumerate(names)
        for j in names[at + 1 :]
    )
    where = f"FROM {', '.join(names)} WHERE {workload.on()} AND {near}"
    if workload.shape == "grouped":
        joined = f"SELECT b.j AS bj, a.v AS av, a.ts AS t {where}"
        end = "1000 * UNIX_TIMESTAMP(CAST(window_end AS STRING))"
        sql = (
            f"SELECT bj, {end}, count(*), sum(av) FROM TABLE(TUMBLE(TABLE joined, "
            "DESCRIPTOR(t), INTERVAL '10' SECOND)) GROUP BY bj, window_start, window_end"
        )
        columns = "j BIGINT, ends BIGINT, n BIGINT, total BIGINT"
        sql = sql.replace("TABLE joined", f"({joined})")
        closed = workload.closed()
        return {"streams": names, "sql": sql, "columns": columns, "closed": closed, "lag": lag}
    values = ", ".join(f"{s}.v" for s in names)
    columns = ", ".join([*(f"{s}v BIGINT" for s in names), "ats BIGINT"])
    sql = f"SELECT {values}, a.ms {where}"
    return {"streams": names, "sql": sql, "columns": columns, "closed": None, "lag": lag}


def _digits(workload: Workload) -> int:
    return len(str(workload.window))


# --- showing -------------------------------------------------------------------------------------


def _show(workload: Workload, made: Mapping[str, dict[str, Any]], *, batches: bool) -> None:
    show.plain(
        f"{workload.sql()}\nwithin {workload.window} s, {workload.tuples:,} tuples; "
        "the ratio is to the best of Spark's own joins\n"
    )
    slowest = [
        one["rate"] for name, one in made.items() if name.startswith("native") and "rate" in one
    ]
    best = max(slowest, default=None)
    rows = []
    for engine, one in made.items():
        if "failed" in one:
            rows.append((engine, one["failed"], "", "", ""))
            continue
        ratio = f"{one['rate'] / best:.1f}" if best else ""
        rows.append(
            (engine, f"{one['rate']:,.0f}", ratio, f"{one['seconds']:.1f}", f"{one['results']:,}")
        )
    columns = ("engine", "tuples/s", "ratio", "seconds", "results")
    show.table(columns, rows, right=" ".join(columns[1:]))
    for engine, one in made.items():
        if len(one.get("rates", ())) > 1:
            show.plain(
                f"{engine}, run by run: {', '.join(f'{rate:,.0f}' for rate in one['rates'])}"
            )
    if batches:
        for engine, one in made.items():
            _show_batches(engine, one.get("batches", []))


def _show_batches(engine: str, batches: list[dict[str, Any]]) -> None:
    rows = [
        (
            str(number),
            f"{batch['at']:.2f}",
            *(f"{ms:,.0f}" for ms in batch["ms"].values()),
            *(f"{ms:,.0f}" if number else "" for ms in batch["cpu_ms"].values()),
            f"{batch['state_rows']:,}",
            f"{batch['state_bytes'] / 1e6:.1f}",
            str(batch["python_mb"]),
            str(batch["java_mb"]),
        )
        for number, batch in enumerate(batches)
    ]
    if rows:
        phases = tuple(batches[0]["ms"])
        show.plain(f"\n{engine}")
        cpu = ("Python CPU", "Java CPU")
        columns = ("batch", "at s", *phases, *cpu, "rows kept", "MB", "Python MB", "Java MB")
        show.table(columns, rows)
        for line in _quarters(batches):
            show.plain(line)


def _quarters(batches: list[dict[str, Any]]) -> Iterator[str]:
    """The first and the last quarter beside each other: what grows with time would show."""
    count = max(1, len(batches) // 4)
    figures = (
        ("ms a batch", lambda batch: sum(batch["ms"].values())),
        ("rows kept", lambda batch: batch["state_rows"]),
        ("Python MB", lambda batch: batch["python_mb"]),
        ("Java MB", lambda batch: batch["java_mb"]),
    )
    for name, figure in figures:
        first, last = (median(map(figure, part)) for part in (batches[:count], batches[-count:]))
        yield f"{name}: {first:,.0f} in the first quarter, {last:,.0f} in the last (medians)"


def _versions() -> dict[str, str]:
    packages = ("pyspark", "delta-spark", "deltalake", "duckdb", "pyarrow")
    return {package: version(package) for package in packages}


def _line(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())
