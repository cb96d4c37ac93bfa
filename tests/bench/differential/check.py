"""A seed on the engines that have their turn: what each makes of it beside the reference."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jobs import specs, streaming
from jobs.errors import InputError
from jobs.tables.memory_store import MemoryStore
from jobs.verify import judge
from tests.bench.differential.case import Broken, Case
from tests.bench.differential.compare import Wanted, differences
from tests.bench.differential.draw import CLOCK, draw
from tests.bench.differential.reference import accounts, results
from tests.bench.differential.run import carry_out, found, job_file
from tests.bench.differential.shrink import shrink
from tests.bench.differential.writers import write

SHARES = {"duckdb": 1, "spark-duckdb": 5, "verify": 5, "spark": 20, "run": 100}
"""Every how many seeds each has its turn: what needs Spark takes seconds.

`duckdb` keeps its tables in memory. `spark-duckdb` shares its work out as Spark's tasks would, over
tables on the disk, and `verify` judges these. `run` is the command, on each engine in turn, with
Spark's own file source, followed by `midstream verify`.
"""

ZONES = ("UTC", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe")
BLOCK = 20
"""How many seeds in a row have one zone."""

TRIES = 40
"""To make a failing case smaller, where that takes no Spark."""


def zone(seed: int) -> str:
    """The zone of the process in which a seed runs."""
    return ZONES[seed // BLOCK % len(ZONES)]


@dataclass(frozen=True)
class Outcome:
    """What became of a seed."""

    seed: int
    engines: tuple[str, ...] = ()
    """Who has had it."""
    wrong: dict[str, list[str]] = field(default_factory=dict)
    refused: str = ""
    """Why the query, which should be legal, was refused."""
    results: int = 0
    report: str = ""


def turns(seed: int, engines: Sequence[str], *, whole: bool) -> tuple[str, ...]:
    """Who has a seed."""
    return tuple(e for e in engines if whole or seed % SHARES[e] == 0)


def check(seed: int, engines: Sequence[str], tries: int = TRIES, *, whole: bool = False) -> Outcome:
    """Run a seed; if it fails, make it smaller, and tell."""
    case, wanted = draw(seed), turns(seed, engines, whole=whole)
    try:
        wrong, results = _compared(case, wanted)
    except InputError as error:
        return Outcome(seed, refused=f"{error}: {case.query.sql}")
    if not wrong:
        return Outcome(seed, wanted, results=results)
    failing = next(iter(wrong))
    cheap = failing in {"duckdb", "spark-duckdb", "verify"}
    small = shrink(case, partial(_fails, _needed(failing)), tries if cheap else 0)
    return Outcome(seed, wanted, wrong, "", results, _report(small, failing))


def _needed(engine: str) -> tuple[str, ...]:
    return ("spark-duckdb", "verify") if engine == "verify" else (engine,)


def _fails(engines: Sequence[str], case: Case) -> bool:
    try:
        wrong, _ = _compared(case, engines)
    except InputError:
        return False
    return engines[-1] in wrong


def _compared(case: Case, engines: Sequence[str]) -> tuple[dict[str, list[str]], int]:
    """What is wrong, by engine, and how many results there should be."""
    wanted = accounts(case)
    expected, wrong = results(case, wanted), {}
    with TemporaryDirectory(prefix="differential-") as directory:
        root = Path(directory)
        write(case, root)
        for engine in engines:
            try:
                said = list(_said(case, root, engine, Wanted(wanted, expected)))
            except InputError:
                raise
            except Exception as error:  # noqa: BLE001  # whatever it is, it is a finding
                said = [f"{type(error).__name__}: {error}"]
            if said:
                wrong[engine] = said
    return wrong, len(expected)


def _said(case: Case, root: Path, engine: str, wanted: Wanted) -> Iterator[str]:
    match engine:
        case "duckdb":
            yield from differences(case, wanted, carry_out(case, root, engine, MemoryStore()))
        case "spark-duckdb":
            yield from differences(case, wanted, carry_out(case, root, engine))
        case "spark":
            yield from differences(case, wanted, carry_out(case, root, engine, spark=_spark()))
        case "verify":
            yield from _verified(case, root)
        case "run":
            yield from _run(case, root, wanted)


@cache
def _spark() -> Any:
    from jobs.spark import session

    return session("differential")


def _verified(case: Case, root: Path) -> Iterator[str]:
    """What `verify` says of the tables that spark-duckdb has left."""
    if case.count:
        for verdict in judge(specs.load(job_file(case, root, "spark-duckdb"))).verdicts:
            if not verdict.right:
                yield f"verify: {verdict}; {verdict.reason}"


def _run(case: Case, root: Path, wanted: Wanted) -> Iterator[str]:
    """The command itself, and the command that judges it."""
    if not case.count or not _timeless(case):
        return
    engine = ("spark", "spark-duckdb", "duckdb")[case.seed // SHARES["run"] % 3]
    job = specs.load(job_file(case, root, engine, "run"))
    for command in (
        ["run", str(job.file), "--until-caught-up"],
        ["verify", str(job.file), "--json"],
    ):
        told = subprocess.run(
            [sys.executable, "-m", "jobs.cli", *command],
            capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        if told.returncode:
            words = told.stdout[-500:] + told.stderr[-500:]
            yield f"{command[0]} on {engine}: exit code {told.returncode}: {words}"
    yield from differences(case, wanted, found(case, streaming.job_store(job)))


def _timeless(case: Case) -> bool:
    """Whether what is too far in the future is so whatever the clock says."""
    at = {stream.name: stream.at for stream in case.streams}
    rows = (
        (at[f.stream], row) for f in case.files for row in f.rows if not isinstance(row, Broken)
    )
    times = [time for where, row in rows if isinstance(time := row[where], int)]
    return all(time < 1_750_000_000_000_000 or time > 2 * CLOCK for time in times)


# --- words ---------------------------------------------------------------------------------------


def _report(case: Case, engine: str) -> str:
    """All there is to know of a failed case, with the command that says it again."""
    engines = _needed(engine)
    wrong, _ = _compared(case, engines)
    command = f"midstream bench differential --seeds {case.seed}..{case.seed}"
    lines = [
        f"seed {case.seed} fails on {engine} in {os.environ.get('TZ', 'this zone')}; run it again: "
        f"{command} --engines {','.join(engines)} --whole",
        *(f"  {said}" for said in wrong.get(engine, ["(not any more, made smaller)"])[:20]),
        f"  query {case.name}: {case.query.sql}",
        f"  plan {case.plan or 'as written'}; window {case.query.window}; {case.tasks} tasks",
    ]
    for stream in case.streams:
        lines.append(
            f"  stream {stream.name}: {stream.schema}; time {stream.time}, late {stream.lateness}, "
            f"ahead {stream.ahead}; {stream.format} in {json.dumps(stream.directory)}"
        )
        for number, files in enumerate(case.batches(stream)):
            for file in files:
                lines.append(f"    batch {number}: {file.name} by {file.writer}")
                lines += [f"      {row}" for row in file.rows]
    return "\n".join(lines)
