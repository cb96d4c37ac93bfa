"""`crash`: the real process, killed anywhere, started again, its results compared with the input.

Half of the kills are at a named step of a batch, half at random times.  A seed chooses them.  With
migrations, there is always one under way: of either query and of every strategy in turn.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer

from jobs import show, specs, streaming
from jobs.engine.migration.definition import Migration
from jobs.errors import InputError
from jobs.spark import QUICK_JVM
from jobs.tables.phases import FINAL
from jobs.tables.progress import last, latest
from jobs.tables.requests import ABORT, MIGRATE, Request, append_request, read_events, read_requests
from jobs.verify import CANNOT_TELL, judge
from optimizer.identity import states
from optimizer.migration import MIGRATIONS
from optimizer.plan import build, from_json, parse, to_json
from tests.jobs import small

POINTS = (
    "taken", "decide", "ingest", "operator:*", "write:state/*", "commit:state/*", "write:out/*",
    "commit:out/two", "commit:out/*", "write:late/*", "commit:late/*", "commit:rejected/*",
    "progress", "done",
)  # fmt: skip
"""The steps of a batch at which the process can be told to kill itself."""

BETWEEN = ("fill:*", "decide", "drop:state/*", "commit:state/*", "progress", "proof_*")
"""Steps at which a migration could be hurt."""

SHAPES = {
    "three": ("(a b c)", "((a b) c)", "(a (b c))", "((a c) b)"),
    "counted": ("(a b)", "([a] b)", "(a [b])", "([a] [b])"),
}
"""The plans between which queries migrate."""

ENGINES = ("duckdb", "spark", "spark-duckdb")

JVM = f"{QUICK_JVM} -XX:+UseSerialGC"
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
    migrations: Counter[str] = field(default_factory=Counter)
    """What became of those that were asked for."""
    orphans: int = 0
    """Tables of states that nobody needs."""

    @property
    def kills(self) -> int:
        """How often a process was killed, wherever that was."""
        return sum(self.killed.values())

    @property
    def clean(self) -> bool:
        """Not a row is lost, repeated or wrong, and nothing is left lying about."""
        return not (self.missing or self.duplicate or self.wrong or self.orphans)


def crash(
    *,
    runs: Annotated[int, typer.Option(min=1, help="How often to kill the process.")] = 50,
    seed: Annotated[int, typer.Option(help="What chooses where.")] = 1,
    files: Annotated[int, typer.Option(min=2, help="Batches of a whole job.")] = 8,
    engine: Annotated[str, typer.Option(help="duckdb, spark or spark-duckdb.")] = "duckdb",
    migrations: Annotated[
        bool, typer.Option("--migrations", help="Change plans meanwhile, again and again.")
    ] = False,
    json: show.Json = False,
) -> int:
    """Kill a running job anywhere, again and again: nothing may be missing, duplicate or wrong."""
    if engine not in ENGINES:
        raise InputError(f"there is no engine {engine!r}: {' or '.join(ENGINES)}", "--engine")
    began = monotonic()
    with tempfile.TemporaryDirectory(prefix="midstream-crash-") as directory:
        outcome = crashes(Path(directory), runs, seed, files, engine, migrations=migrations)
    figures: dict[str, Any] = {
        "engine": engine,
        "runs": outcome.runs,
        "killed": outcome.kills,
        "at": dict(sorted(outcome.killed.items())),
        "results": outcome.results,
        "missing": outcome.missing,
        "duplicate": outcome.duplicate,
        "wrong": outcome.wrong,
        **({"migrations": dict(sorted(outcome.migrations.items()))} if migrations else {}),
        "orphans": outcome.orphans,
        "seconds": round(monotonic() - began, 1),
        "command": f"midstream bench crash --runs {runs} --seed {seed} --files {files} "
        f"--engine {engine}" + " --migrations" * migrations,
    }
    if json:
        show.as_json(figures)
    else:
        show.table(("", "count"), [(k, str(v)) for k, v in figures.items()])
    return 0 if outcome.clean else 1


def crashes(
    directory: Path,
    runs: int,
    seed: int,
    files: int,
    engine: str = "duckdb",
    *,
    migrations: bool = False,
) -> Outcome:
    """Kill jobs over the same data until there were enough kills."""
    chosen = random.Random(seed)
    outcome = Outcome()
    storage = 0
    while outcome.kills < runs:
        place = directory / str(storage)
        place.mkdir()
        job = small.job(place, engine=engine)
        if migrations:
            _change(job, chosen, outcome, files)
        else:
            small.write(place, range(files))
            for _ in range(min(LIVES, runs - outcome.kills)):
                if not _life(job, chosen, outcome, POINTS):
                    break
        _finish(job, outcome)
        typer.echo(f"killed {outcome.kills} of {runs} times, {outcome.results:,} results", err=True)
        storage += 1
    return outcome


def _change(job: Path, chosen: random.Random, outcome: Outcome, files: int) -> None:
    """A life for each file, so that none sees the end; and something to ask for in each."""
    for file in range(files):
        small.write(job.parent, range(file, file + 1))
        _wish(job, chosen)
        _life(job, chosen, outcome, (*POINTS, *(BETWEEN * 3)))


def _wish(job: Path, chosen: random.Random) -> None:
    """Ask for a migration, unless there is one: then, now and then, for its end."""
    spec = specs.load(job)
    store = streaming.job_store(spec)
    ended = {event.id for event in read_events(store) if event.phase in FINAL}
    known = [request for request in read_requests(store) if request.kind == MIGRATE]
    number = len(read_requests(store))
    open_ = [request for request in known if request.id not in ended]
    if open_:
        if chosen.random() < 0.15:
            append_request(store, Request(f"r{number}", number, ABORT, open_[0].id))
        return
    query, strategy = chosen.choice(list(SHAPES)), list(MIGRATIONS)[len(known) % len(MIGRATIONS)]
    plan = build(spec.query(query), parse(chosen.choice(SHAPES[query])))
    proof = chosen.choice([0, 0, 1])
    wish = Request(f"m{number}", number, MIGRATE, "", query, to_json(plan.root))
    append_request(store, replace(wish, strategy=strategy, proof=proof))


def _life(job: Path, chosen: random.Random, outcome: Outcome, points: Sequence[str]) -> bool:
    """Start a process that is to die; whether it did, before it had nothing left to do."""
    outcome.runs += 1
    if chosen.random() < 0.5:
        point = chosen.choice(points)
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


def start(
    job: Path, *options: str, crash_at: str = "", alone: bool = False
) -> "subprocess.Popen[str]":
    """Start `midstream run` on its own, until it has caught up; perhaps in a group of its own."""
    environment = os.environ | {streaming.CRASH_AT: crash_at, "JAVA_TOOL_OPTIONS": JVM}
    command = [sys.executable, "-m", "jobs.cli", "run", str(job)]
    return subprocess.Popen(
        [*command, *(options or ("--until-caught-up",))],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=job.with_suffix(".log").open("w"),
        text=True,
        start_new_session=alone,
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
    for verdict in judge(spec).verdicts:
        if verdict.verdict == CANNOT_TELL:
            raise RuntimeError(f"nobody can tell whether the results are right: {verdict}")
        outcome.results += verdict.actual or 0
        outcome.missing += verdict.missing or 0
        outcome.duplicate += verdict.duplicate or 0
        outcome.wrong += verdict.wrong or 0
    outcome.orphans += len(_orphans(specs.load(job)))
    strategies = {r.id: r.strategy for r in read_requests(store) if r.kind == MIGRATE}
    phases = {event.id: event.phase for event in read_events(store) if event.id in strategies}
    outcome.migrations.update(f"{phase} {strategies[id_]}" for id_, phase in phases.items())


def _orphans(spec: specs.Job) -> list[str]:
    """Tables of states that neither the plans nor a migration under way need."""
    store = streaming.job_store(spec)
    decision = latest(store)
    assert decision is not None
    under_way = decision.migration
    needed = set(Migration.from_json(under_way).touched) if under_way else set()
    for name, plan in decision.plans.items():
        needed |= set(states(from_json(spec.query(name), plan).root))
    found = [table for table in store.tables() if table.startswith("state/")]
    return [table for table in found if table.removeprefix("state/") not in needed]
