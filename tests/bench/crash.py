"""`crash`: the real process, killed anywhere, started again, its results compared with the input.

Half of the kills are at a named step of a batch, half at random times.  A seed chooses them.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer

from jobs import show, specs, streaming
from jobs.engine.progress import last
from jobs.engine.verify import verify
from jobs.errors import InputError
from tests.jobs import small

POINTS = (
    "taken", "decide", "ingest", "operator:*", "write:state/*", "commit:state/*", "write:out/*",
    "commit:out/two", "commit:out/*", "write:late/*", "commit:late/*", "commit:rejected/*",
    "progress", "purge:state/*", "done",
)  # fmt: skip
"""The steps of a batch at which the process can be told to kill itself."""

ENGINES = ("duckdb", "spark")

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A process that lives for seconds is not worth optimising for."""

LIVES = 6
"""How often a storage is crashed, at most, before what it holds is looked at."""


@dataclass
class Outcome:
    """What became of the crashed jobs."""

    runs: int = 0
    killed: Counter[str] = field(default_factory=Counter)
    results: int = 0
    missing: int = 0
    duplicate: int = 0
    wrong: int = 0

    @property
    def clean(self) -> bool:
        """Not a row is lost, repeated or wrong."""
        return not (self.missing or self.duplicate or self.wrong)


def crash(
    *,
    runs: Annotated[int, typer.Option(min=1, help="How often to kill the process.")] = 50,
    seed: Annotated[int, typer.Option(help="What chooses where.")] = 1,
    files: Annotated[int, typer.Option(min=2, help="Batches of a whole job.")] = 8,
    engine: Annotated[str, typer.Option(help="duckdb or spark.")] = "duckdb",
    json: show.Json = False,
) -> int:
    """Kill a running job anywhere, again and again: nothing may be missing, duplicate or wrong."""
    if engine not in ENGINES:
        raise InputError(f"there is no engine {engine!r}: {' or '.join(ENGINES)}", "--engine")
    began = monotonic()
    with tempfile.TemporaryDirectory(prefix="midstream-crash-") as directory:
        outcome = crashes(Path(directory), runs, seed, files, engine)
    figures: dict[str, Any] = {
        "engine": engine,
        "runs": outcome.runs,
        "killed": sum(outcome.killed.values()),
        "at": dict(sorted(outcome.killed.items())),
        "results": outcome.results,
        "missing": outcome.missing,
        "duplicate": outcome.duplicate,
        "wrong": outcome.wrong,
        "seconds": round(monotonic() - began, 1),
        "command": f"midstream bench crash --runs {runs} --seed {seed} --files {files} "
        f"--engine {engine}",
    }
    if json:
        show.as_json(figures)
    else:
        show.table(("", "count"), [(k, str(v)) for k, v in figures.items()])
    return 0 if outcome.clean else 1


def crashes(directory: Path, runs: int, seed: int, files: int, engine: str = "duckdb") -> Outcome:
    """Kill jobs over the same data until there were enough kills."""
    small.write(directory, range(files))
    chosen = random.Random(seed)
    outcome = Outcome()
    storage = 0
    while sum(outcome.killed.values()) < runs:
        job = small.job(directory, storage=f"storage-{storage}", engine=engine)
        left = min(LIVES, runs - sum(outcome.killed.values()))
        for _ in range(left):
            if not _life(job, chosen, outcome):
                break
        _finish(job, outcome)
        storage += 1
    return outcome


def _life(job: Path, chosen: random.Random, outcome: Outcome) -> bool:
    """Start a process that is to die; whether it did, before it had nothing left to do."""
    outcome.runs += 1
    if chosen.random() < 0.5:
        point = chosen.choice(POINTS)
        following = last(streaming.job_store(specs.load(job))).batch + 1
        batch = following + chosen.randrange(2)
        code = start(job, crash_at=f"{point}@{batch}").wait()
    else:
        point = "random time"
        process = start(job)
        code = _killed_after(process, chosen.uniform(0, 2.5))
    if code == -signal.SIGKILL:
        outcome.killed[point] += 1
    elif code != 0:
        raise RuntimeError(f"the job ended with {code} at {point}: {_said(job)}")
    return code != 0


def start(job: Path, *options: str, crash_at: str = "") -> "subprocess.Popen[str]":
    """Start `midstream run` on its own, until it has caught up."""
    environment = os.environ | {streaming.CRASH_AT: crash_at, "JAVA_TOOL_OPTIONS": QUICK_JVM}
    command = [sys.executable, "-m", "jobs.cli", "run", str(job)]
    return subprocess.Popen(
        [*command, *(options or ("--until-caught-up",))],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=job.with_suffix(".log").open("w"),
        text=True,
    )


def _killed_after(process: "subprocess.Popen[str]", seconds: float) -> int:
    """Kill a process some time after its first batch, at the latest when that is done."""
    assert process.stdout is not None
    process.stdout.readline()
    with suppress(subprocess.TimeoutExpired):
        return process.wait(timeout=seconds)
    process.kill()
    return process.wait()


def _said(job: Path) -> str:
    """The last that a process had to say."""
    return job.with_suffix(".log").read_text(encoding="utf-8").strip().rpartition("\n")[2]


def _finish(job: Path, outcome: Outcome) -> None:
    """Let the job come to its end, and add up what is not as it should be."""
    if (code := start(job).wait()) != 0:
        raise RuntimeError(f"the job did not recover: it ended with {code}: {_said(job)}")
    spec = specs.load(job)
    store = streaming.job_store(spec)
    queries = {name: spec.query(name) for name in spec.queries}
    for verdict in verify(queries, streaming.streams(spec), store, last(store)):
        outcome.results += verdict.actual
        outcome.missing += verdict.missing
        outcome.duplicate += verdict.duplicate
        outcome.wrong += verdict.wrong
