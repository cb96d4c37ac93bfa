"""What people type and see to change the plan of a job; the job's batches are run by hand here."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer
import yaml

from jobs import cli, show, specs, streaming
from jobs.backends.duckdb.backend import DuckBackend
from jobs.engine.microbatch import Engine
from jobs.migrations import Record, Watched, new_id, remaining, share
from jobs.proposals import Running
from jobs.tables.columns import REASON, ROW
from jobs.tables.lease import lease
from jobs.tables.memory_store import MemoryStore
from jobs.tables.names import DECISIONS
from jobs.tables.progress import BatchDecision, Progress, latest, record
from jobs.tables.requests import Request, append_request, read_requests
from optimizer.migration import MIGRATIONS
from optimizer.migration.matching import Context, States, name
from optimizer.plan import build, parse
from tests.bench import crash
from tests.jobs import small, windows

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@dataclass
class Stage:
    """A job, and the engine that runs its batches when told to."""

    job: Path
    engine: Engine
    capsys: pytest.CaptureFixture[str]

    def batches(self, count: int = 1) -> Progress:
        for _ in range(count):
            number = self.engine.progress.batch + 1
            inputs = {s: _raw(small.rows(at, number)) for at, s in enumerate(small.STREAMS)}
            self.engine.run(number, inputs)
        return self.engine.progress

    def told(self, *arguments: str) -> tuple[int, str, str]:
        self.capsys.readouterr()
        words = [str(self.job) if word == "JOB" else word for word in arguments]
        return cli.run(words), *self.capsys.readouterr()

    def json(self, *arguments: str, code: int = 0) -> Any:
        found, out, err = self.told(*arguments, "--json")
        assert (found, err) == (code, "")
        return json.loads(out)

    def says(self, code: int, *arguments: str) -> str:
        """What people read: what was asked for, then what is wrong."""
        found, out, err = self.told(*arguments)
        assert found == code, out + err
        return out + err

    @property
    def plan(self) -> str:
        return str(self.engine.plans["three"])

    @property
    def watched(self) -> Watched:
        return Watched.of(self.job)


def _raw(rows: pa.Table) -> pa.Table:
    nothing = pa.nulls(rows.num_rows, pa.string())
    return rows.append_column(REASON, nothing).append_column(ROW, nothing)


@pytest.fixture
def stage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    monkeypatch.delenv(cli.DEBUG, raising=False)
    path = small.job(tmp_path)
    spec = specs.load(path)
    ticks = iter(range(small.START, small.START + 10**12, 1_000_000))
    engine = Engine(
        streaming.engine_job(spec), streaming.job_store(spec), DuckBackend(), lambda: next(ticks)
    )
    stage = Stage(path, engine, capsys)
    windows.price(tmp_path / "storage")
    stage.batches(3)
    yield stage
    engine.close()


THREE = ("migrate", "JOB", "((a b) c)", "--query", "three")

# --- the dry run ---------------------------------------------------------------------------------


def test_a_dry_run_says_what_would_happen_and_asks_for_nothing(stage: Stage):
    said = stage.says(0, *THREE, "--strategy", "background")
    lines = [line.split() for line in said.splitlines()]
    assert said.startswith("three: from (a b c) to ((a b) c) by background\n")
    assert ["keep", "c"] in [line[:2] for line in lines]
    rebuilt = next(line for line in lines if line[:1] == ["rebuild"])
    assert rebuilt[1:3] == ["(a", "b)"]
    assert "join a, b" in said
    assert "The job goes on; the cut-over comes after about" in said
    assert "! the job does not run: its next run will do it" in said
    assert "✓ no other migration is under way" in said
    assert said.endswith("This was a dry run, nothing has been asked for: --yes does it.\n")
    assert read_requests(stage.watched.store) == []


def test_a_track_that_begins_with_younger_rows_stops_the_job_for_them(stage: Stage):
    """Stream c is a batch behind: what a and b have brought since is filled first."""
    track = (*THREE, "--strategy", "parallel-track")
    number = stage.engine.progress.batch + 1
    inputs = {s: _raw(small.rows(at, number)) for at, s in enumerate(small.STREAMS)}
    stage.engine.run(number, inputs | {"c": inputs["c"].slice(0, 0)})
    plan, store = stage.engine.plans["three"], Running.of(specs.load(stage.job)).store
    begins = Running.of(specs.load(stage.job)).begins(
        plan, build(plan.query, parse("((a b) c)")), Context()
    )
    behind = stage.engine.progress.streams["c"].newest or 0
    states = {name(nodes[0]): key for key, nodes in States.of(plan).nodes.items()}
    assert len(begins.fills) == 1
    for alias in "abc":
        rows = store.load(f"state/{states[alias]}")
        (time,) = (f.name for f in rows.schema if pa.types.is_timestamp(f.type))
        younger = sum(at.value > behind for at in rows.column(time))
        assert younger <= begins.rows[states[alias]] <= rows.num_rows
        assert (younger > 0) == (begins.rows[states[alias]] > 0) == (alias != "c")
    found = stage.json(*track)
    assert found["longest_pause"] == found["pause"] > 0
    assert "The job stops for about" in stage.says(0, *track)


def test_a_dry_run_for_programs(stage: Stage):
    found = stage.json(*THREE)
    assert (found["id"], found["query"]) == (None, "three")
    assert (found["from"], found["to"]) == ("(a b c)", "((a b) c)")
    assert found["strategy"] == "moving-state"  # some rows are filled in no time
    assert "stops for" in found["reason"]
    assert [line["state"] for line in found["kept"]] == ["a", "b", "c"]
    rows = {key: work.state_rows for key, work in stage.engine.progress.operators.items()}
    assert all(line["rows"] == rows[line["key"]] for line in found["kept"])
    (rebuilt,) = found["rebuilt"]
    assert (rebuilt["state"], rebuilt["how"], rebuilt["sources"]) == ("(a b)", "join", ["a", "b"])
    assert rebuilt["rows"] > 0
    assert found["dropped"] == []
    assert [step["step"] for step in found["steps"]][-2:] == ["fill", "cut-over"]
    assert all(check["ok"] for check in found["checks"][1:])


def test_yes_with_dry_run_is_a_dry_run(stage: Stage):
    stage.says(0, *THREE, "--yes", "--dry-run")
    assert read_requests(stage.watched.store) == []


def test_a_person_is_asked(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(show, "is_asked", lambda: True)
    monkeypatch.setattr(typer, "confirm", lambda _: False)
    assert "nothing has been asked for" in stage.says(0, *THREE)
    monkeypatch.setattr(typer, "confirm", lambda _: True)
    assert "To follow it: midstream migration status" in stage.says(0, *THREE)
    assert len(read_requests(stage.watched.store)) == 1


def test_what_changes_as_a_picture(stage: Stage, tmp_path: Path):
    picture = tmp_path / "pictures" / "change.svg"
    assert f"The picture is in {picture}" in stage.says(0, *THREE, "--svg", str(picture))
    assert "1 rebuilt" in picture.read_text()


def test_a_plan_from_a_file(stage: Stage, tmp_path: Path):
    wanted = stage.json("explain", "JOB", "--query", "three", "--plan", "((b c) a)")
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(wanted))
    assert stage.json("migrate", "JOB", str(file), "--query", "three")["to"] == "((b c) a)"
    file.write_text(json.dumps({"plan": "(a (b c))"}))
    assert stage.json("migrate", "JOB", str(file), "--query", "three")["to"] == "(a (b c))"
    file.write_text("[]")
    assert "is not one plan" in stage.says(2, "migrate", "JOB", str(file), "--query", "three")
    file.write_text('{"root": {"op": "dance"}}')
    said = stage.says(2, "migrate", "JOB", str(file), "--query", "three")
    assert said.startswith("midstream: PLAN: not a plan of this query")


def test_a_workload_of_ones_own(stage: Stage, tmp_path: Path):
    load = {
        "streams": {name: {"rate": 100_000} for name in small.STREAMS},
        "joins": [
            {"between": ["a", "b"], "selectivity": 0.5},
            {"between": ["b", "c"], "selectivity": 0.5},
        ],
        "budget": {"cpu": 0.5},
    }
    file = tmp_path / "load.yaml"
    file.write_text(yaml.safe_dump(load))
    said = stage.says(0, *THREE, "--workload", str(file))
    assert "it would fall behind" in said


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["((a b) c", "--query", "three"], 2, "PLAN: a parenthesis is not closed in '((a b) c'"),
        (["((a b) d)", "--query", "three"], 2, "PLAN: the query has no stream d; it has a, b, c"),
        (["none.json", "--query", "three"], 2, "none.json: cannot be read: no such file"),
        (["((a b) c)", "--query", "tree"], 2, "--query: no query is called 'tree'"),
        (["((a b) c)"], 2, "has several queries: name one of three, two, counted"),
        (["(a b c)", "--query", "three"], 3, "the job runs this plan already: (a b c)"),
        (
            ["((a b) c)", "--query", "three", "--strategy", "moving"],
            2,
            "--strategy: no strategy is called 'moving'; there is auto, moving-state",
        ),
        (
            ["((a b) c)", "--query", "three", "--limit", "soon"],
            2,
            "--limit: not a length of time: 'soon'",
        ),
    ],
)
def test_refused(stage: Stage, arguments: list[str], code: int, says: str):
    assert says in stage.says(code, "migrate", "JOB", *arguments)
    assert read_requests(stage.watched.store) == []


def test_before_the_first_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    job = str(small.job(tmp_path))
    assert cli.run(["migrate", job, "((a b) c)", "--query", "three"]) == 3
    assert "has not finished a batch yet" in capsys.readouterr().err
    assert cli.run(["migration", "status", job]) == 3
    assert "nothing has been migrated yet" in capsys.readouterr().err


def test_another_one_under_way(stage: Stage):
    first = stage.json(*THREE, "--yes", "--hold")["id"]
    stage.batches()
    said = stage.says(3, "migrate", "JOB", "((b c) a)", "--query", "three", "--yes")
    assert said.endswith(
        f"midstream: migration {first} of three is under way: wait for its end, or abort it\n"
    )
    refused = stage.json("migrate", "JOB", "((b c) a)", "--query", "three", "--yes", code=3)
    assert refused["error"].startswith(f"migration {first} of three is under way")
    assert len(read_requests(stage.watched.store)) == 1


def test_one_that_has_not_begun_is_replaced(stage: Stage):
    first = stage.json(*THREE, "--yes", "--at-batch", "90")["id"]
    said = stage.says(0, "migrate", "JOB", "((b c) a)", "--query", "three", "--yes")
    assert f"! {first} has not begun, this one replaces it" in said
    stage.batches()
    assert stage.plan == "((b c) a)"
    assert stage.json("migration", "status", "JOB", first)["phase"] == "superseded"


def test_a_stale_request(stage: Stage):
    """Made against a plan that another migration has replaced meanwhile."""
    stage.json(*THREE, "--yes")
    (request,) = read_requests(stage.watched.store)
    stage.batches()
    append_request(stage.watched.store, replace(request, id="late", at=request.at + 1))
    stage.batches()
    found = stage.json("migration", "status", "JOB", "late")
    assert found["phase"] == "refused"
    assert found["events"][0]["detail"] == "the plan has changed since the request was made"


def test_a_full_disk(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    usage = type("Usage", (), {"free": 0})
    monkeypatch.setattr("jobs.proposals.disk_usage", lambda _: usage)
    assert "for the new states, 0 B free on the disk" in stage.says(3, *THREE, "--yes")


# --- the request, and what becomes of it ---------------------------------------------------------


def test_what_is_asked_for(stage: Stage):
    options = ["--proof", "2", "--hold", "--at-batch", "9", "--limit", "10m", "--before", "true",
               "--after", "echo", "--reason", "drift"]  # fmt: skip
    id_ = stage.json(*THREE, *options, "--yes")["id"]
    (request,) = read_requests(stage.watched.store)
    assert request.id == id_
    assert id_.endswith("-three")
    assert request.strategy in MIGRATIONS
    assert (request.proof, request.hold, request.at_batch) == (2, True, 9)
    assert (request.limit, request.before, request.after) == (600_000_000, "true", "echo")
    assert (request.reason, bool(request.by), bool(request.base)) == ("drift", True, True)


def test_asked_twice_under_one_id(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MIDSTREAM_USER", "eva in Airflow")
    ours = "261118-173337-285-three"
    for plan in ("((a b) c)", "((b c) a)"):  # the second is not even looked at
        again = ("migrate", "JOB", plan, "--query", "three", "--id", ours, "--yes")
        assert stage.json(*again)["id"] == ours
    stage.batches(3)
    found = stage.json(*again)
    assert (found["again"], found["status"]["phase"]) == (True, "done")
    assert (stage.plan, found["status"]["by"]) == ("((a b) c)", "eva in Airflow")
    assert len(read_requests(stage.watched.store)) == 1

    back = ("migration", "revert", "JOB", "--id", "261118-180000-000-three", "--yes")
    stage.json(*back)
    stage.batches(3)
    assert stage.plan == "(a b c)"
    assert "was asked for before: done" in stage.says(0, *back)
    assert len(read_requests(stage.watched.store)) == 2


@pytest.mark.parametrize("strategy", MIGRATIONS)
def test_to_its_end(stage: Stage, strategy: str):
    id_ = stage.json(*THREE, "--strategy", strategy, "--proof", "1", "--yes")["id"]
    found = stage.json("migration", "status", "JOB")
    assert (found["id"], found["phase"], found["events"]) == (id_, "requested", [])
    phases, shares = [], [0.0]
    while not found["ended"]:
        stage.batches()
        found = stage.json("migration", "status", "JOB")
        phases.append(found["phase"])
        if found["progress"] is not None:
            shares.append(found["progress"])
            assert 0 <= found["progress"] <= 1
            line = stage.json("status", "JOB")["migration"]
            assert (line["id"], line["phase"], line["step"]) == (
                id_, found["phase"], found["step"],
            )  # fmt: skip
            assert f"migration {id_} of three by {strategy}: " in stage.says(0, "status", "JOB")
    assert phases[-1] == "done"
    assert "proving" in phases
    assert shares == sorted(shares)
    assert (found["from"], found["to"], stage.plan) == ("(a b c)", "((a b) c)", "((a b) c)")
    assert stage.json("status", "JOB")["migration"] is None
    assert "done: the new plan runs" in stage.says(0, "migration", "status", "JOB")
    assert stage.says(0, "migration", "status", "JOB", "--watch").count("done ") == 1


def test_held_and_released(stage: Stage):
    stage.json(*THREE, "--yes")
    stage.json("migration", "postpone", "JOB")
    stage.batches(2)
    assert stage.plan == "(a b c)"
    assert stage.json("migration", "status", "JOB")["phase"] == "ready"
    said = stage.says(0, "migration", "status", "JOB")
    assert "ready: everything is there, the cut-over is held until it is released" in said
    assert "does not run" in stage.says(0, "migration", "release", "JOB", "--reason", "now")
    assert "release asked " in stage.says(0, "migration", "status", "JOB")
    stage.batches()
    assert stage.plan == "((a b) c)"
    assert "is done already; `midstream migration revert`" in (
        stage.says(3, "migration", "release", "JOB")
    )


def test_aborted(stage: Stage):
    id_ = stage.json(*THREE, "--yes", "--hold")["id"]
    stage.batches()
    asked_for = stage.json("migration", "abort", "JOB", "--reason", "second thoughts")
    assert (asked_for["migration"], asked_for["answer"]) == (id_, None)
    stage.batches()
    found = stage.json("migration", "status", "JOB", "--watch", code=1)
    assert (found["phase"], found["events"][-1]["detail"]) == ("aborted", "second thoughts")
    assert [one["answer"] for one in found["requests"]] == ["done"]
    assert (found["from"], found["to"]) == ("(a b c)", "((a b) c)")
    assert stage.plan == "(a b c)"
    assert "is aborted already" in stage.says(3, "migration", "abort", "JOB")
    assert "nothing to go back from" in stage.says(3, "migration", "revert", "JOB")


def test_cancelled_before_it_began(stage: Stage):
    stage.json(*THREE, "--yes")
    stage.json("migration", "abort", "JOB")
    stage.batches()
    assert stage.json("migration", "status", "JOB")["phase"] == "cancelled"


def test_an_answer_is_waited_for(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    """As long as the job runs: here it does while the command sleeps."""
    stage.json(*THREE, "--yes", "--hold")
    stage.batches()
    monkeypatch.setattr("jobs.commands.migration.sleep", lambda _: stage.batches())
    with lease(stage.job.parent / "storage"):
        assert "the next batch will answer; a job without new input makes no batches" in (
            stage.says(0, "migration", "postpone", "JOB", "--wait", "0")
        )
        id_ = stage.json("migration", "status", "JOB")["id"]
        said = stage.says(0, "migration", "abort", "JOB")
        assert said == f"abort {id_}: done, before batch {stage.engine.progress.batch}.\n"


def test_reverted(stage: Stage):
    done = stage.json(*THREE, "--yes")["id"]
    stage.batches()
    aborted = stage.json("migrate", "JOB", "((b c) a)", "--query", "three", "--yes", "--hold")
    stage.batches()
    said = stage.says(3, "migration", "revert", "JOB", aborted["id"])
    assert "`midstream migration abort` stops it" in said
    stage.json("migration", "abort", "JOB")
    stage.batches()

    assert "three: from ((a b) c) to (a b c) by" in stage.says(0, "migration", "revert", "JOB")
    back = stage.json("migration", "revert", "JOB", "--yes")
    stage.batches()
    assert stage.plan == "(a b c)"
    found = stage.json("migration", "status", "JOB", back["id"])
    assert found["reason"] == f"revert {done}"


def test_unknown_ids(stage: Stage):
    id_ = stage.json(*THREE, "--yes")["id"]
    said = stage.says(2, "migration", "status", "JOB", "x")
    assert said == f"midstream: ID: no migration is called 'x'; there is {id_}\n"


def test_a_failing_command_of_the_users(stage: Stage):
    stage.json(*THREE, "--yes", "--before", "false", "--after", "false")
    stage.batches()
    found = stage.json("migration", "status", "JOB")
    assert (found["phase"], stage.plan) == ("aborted", "(a b c)")
    assert [e["phase"] for e in found["events"]] == ["waiting", "building", "aborted", "hook"]
    assert found["events"][2]["detail"].startswith("false ended with 1")


def test_lines_of_a_run(stage: Stage):
    from jobs.commands.run import _say, summary

    id_ = stage.json(*THREE, "--yes")["id"]
    stage.json("migration", "abort", "JOB", "--reason", "no")
    stage.capsys.readouterr()
    _say(summary(stage.batches()))
    lines = stage.capsys.readouterr().out.splitlines()
    assert lines[0] == f"migration    {id_} accepted"
    assert lines[1] == f"migration    {id_} cancelled: no"
    assert lines[2] == f"migration    abort {id_}: as asked"
    assert lines[3].startswith("batch ")


# --- figures -------------------------------------------------------------------------------------


def test_ids_sort_by_time():
    ids = [new_id(at * 1_000_000 + 7_000, "q") for at in (10**9, 10**9 + 1, 1_700_000_000)]
    assert ids == sorted(ids)
    assert ids[0] == "010909-014640-007-q"


def test_how_much_is_done():
    """Two fills and a proof of four batches; the first fill and half of the second are done."""
    steps = [{"step": "keep"}, {"step": "fill"}, {"step": "track"}, {"step": "fill"},
             {"step": "prove", "batches": 4}, {"step": "cut-over"}]  # fmt: skip
    migration = {"steps": steps, "boundary": 10}
    assert share(migration, {"step": 3, "part": 0.5}, 11) == pytest.approx(0.5)
    assert share(migration, {"step": 4, "part": 0}, 12) == pytest.approx(2.5 / 3)
    assert share(migration, {"step": 5, "part": 0}, 20) == 1
    assert share({"steps": [{"step": "cut-over"}]}, {"step": 0, "part": 0}, 3) == 1


def test_how_long_the_rest_takes():
    assert remaining([(30, 0.75), (20, 0.5), (10, 0.25)]) == 10
    assert remaining([(30, 0.5), (20, 0.5)]) is None
    assert remaining([(30, 0.5)]) is None


def test_a_look_while_the_job_decides(monkeypatch: pytest.MonkeyPatch):
    """Between two questions to a table another row may come."""
    store = MemoryStore()
    for batch in range(2):
        record(store, DECISIONS, BatchDecision(batch, clock=batch))
    monkeypatch.setattr(store, "last_batch", lambda _: 0)
    decision = latest(store)
    assert decision is not None
    assert decision.batch == 1


def test_a_request_that_nobody_has_read():
    made = Record(Request("m", 0), (), ())
    assert (made.phase, made.begun, made.ended) == ("requested", False, False)


# --- the real process ----------------------------------------------------------------------------


def midstream(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "jobs.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.spark
def test_a_running_job(tmp_path: Path):
    """It runs in a process of its own; its plan is changed and changed back; no result is lost."""
    orders = yaml.safe_load((EXAMPLES / "orders.yaml").read_text())
    file = tmp_path / "orders.yaml"
    file.write_text(yaml.safe_dump(orders | {"trigger": "500 milliseconds"}, sort_keys=False))
    process = crash.start(file, "--batches", "1000")
    assert process.stdout is not None
    for _ in range(3):
        process.stdout.readline()

    wish = ("migrate", str(file), "((o p) v)", "--query", "paid", "--strategy", "background")
    done = midstream(*wish, "--proof", "1", "--yes", "--watch", "--json")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert json.loads(done.stdout)["status"]["phase"] == "done"
    assert json.loads(done.stdout)["checks"][0]["ok"]
    assert midstream(*wish, "--yes").returncode == 3

    back = midstream("migration", "revert", str(file), "--yes", "--hold")
    assert back.returncode == 0, back.stderr
    aborted = midstream("migration", "abort", str(file), "--wait", "60")
    assert (aborted.returncode, aborted.stderr) == (0, "")
    assert ": done, before batch " in aborted.stdout
    assert midstream("migration", "status", str(file), "--watch").returncode == 1

    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert " cut over: ((o v) p) -> ((o p) v)" in said
    assert "((o p) v); (o p)" in said.splitlines()[-1]
    verified = midstream("verify", str(file))
    assert verified.returncode == 0, verified.stdout + verified.stderr
