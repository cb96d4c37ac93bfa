"""Airflow's own scheduler, the MLflow server and a job, all started by `midstream up`.

They start once, and the tests go on from where the one before has left them.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from jobs.migrations import Record, Watched, records
from jobs.services.supervisor import below
from stats.store import BATCHES, STREAMS, VERDICTS, StatsStore, Window
from tests.dags import job
from tests.dags.services import Up, midstream, send, until

pytestmark = pytest.mark.services

SUBJECT = f"shop / {job.QUERY}"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return job.write(tmp_path_factory.mktemp("up"))


@pytest.fixture(scope="module")
def up(file: Path) -> Iterator[Up]:
    started = Up.start(file.parent, file)
    until(lambda: "batch" in midstream("status", str(file), codes=(0, 3)), 300, "a batch")
    yield started
    started.stop()


def migrations(file: Path) -> list[Record]:
    return records(Watched.of(file).store)


def plan(file: Path) -> str:
    found: str = midstream("status", str(file))["plan"]
    return found


def by_hand(up: Up, dag: str, **conf: Any) -> str:
    """Start a DAG as the admin; its run."""
    status, answer = up.trigger(dag, **conf)
    assert status == 200, answer
    run: str = answer["dag_run_id"]
    return run


def test_who_may_do_what(up: Up):
    fine = {"query": SUBJECT, "plan": "((o p) v)", "reason": "to see"}
    assert up.trigger("migrate", who=None, **fine)[0] == 401
    assert up.trigger("migrate", who="viewer", **fine)[0] == 403
    assert up.ask("GET", "/api/v2/dags/migrate/dagRuns", who="viewer")[0] == 200
    for wrong in ({"query": "shop / unpaid"}, {"migration": "by force"}, {"reason": ""}):
        status, answer = up.trigger("migrate", **(fine | wrong))
        assert status == 400, answer
    del fine["reason"]
    assert up.trigger("migrate", **fine)[0] == 400
    assert up.runs("migrate") == []


def test_who_comes_in_at_all(up: Up):
    """Through the door that stands before Airflow's and MLflow's own applications."""
    for page, health in (("airflow", "/api/v2/monitor/health"), ("mlflow", "/version")):
        url = up.found[page]
        for name, value in (("host", "evil.org"), ("origin", "http://localhost:3000")):
            assert send("GET", url + health, None, {name: value})[0] == 403
    body = {"username": "nobody", "password": "x"}
    asked = [up.ask("POST", "/auth/token", body, who=None)[0] for _ in range(4)]
    assert asked == [401, 401, 401, 429]


def test_no_secret_is_in_a_commands_words_a_jobs_variables_or_a_log(up: Up):
    people, _ = up.home.people()
    secrets = [one.encode() for one in (*people.values(), *up.home.keys().values())]
    pid = up.pid("job-shop")
    assert pid
    processes = [Path(f"/proc/{one}") for one in [pid, *below(pid)]]
    read = [place / name for place in processes for name in ("environ", "cmdline")]
    held = up.status()["supervisor"]["pid"]
    read += [Path(f"/proc/{one}/cmdline") for one in [held, *below(held)]]
    read += [path for path in up.home.logs.rglob("*.log") if path.is_file()]
    for path in read:
        with suppress(OSError):  # a process that has ended
            content = path.read_bytes()
            assert not [one for one in secrets if one in content], path


def test_the_dags_explain_themselves(up: Up):
    for dag in ("gather_statistics", "reoptimize", "migrate", "maintain", "plan_network"):
        until(partial(_is_there, up, dag), 120, dag)
        assert "| task |" in up.get(f"/dags/{dag}/details")["doc_md"]
    assert up.get("/importErrors")["total_entries"] == 0


def _is_there(up: Up, dag: str) -> bool:
    return bool(up.ask("GET", f"/api/v2/dags/{dag}")[0] == 200)


def test_from_the_schedule_to_a_migration(
    up: Up, file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (run,) = until(lambda: up.runs("migrate"), 900, "a migration that nobody has asked for")
    assert up.end("migrate", run["dag_run_id"], 600) == "success"
    states = up.states("migrate", run["dag_run_id"])
    assert states.pop("revert") == "skipped"
    assert set(states.values()) == {"success"}, states

    (record,) = migrations(file)
    decisions = [d for d in midstream("reoptimize", str(file), "--history") if d["request"]]
    assert {d["request"] for d in decisions} == {record.request.id}
    assert (record.phase, decisions[0]["running"]) == ("done", job.WRONG)
    assert record.request.by.startswith("schedule in Airflow, asset_triggered__")
    assert plan(file) == decisions[0]["chosen"] != job.WRONG
    verdict = midstream("verify", str(file))
    assert verdict["expected"] > 0
    assert (verdict["missing"], verdict["duplicate"], verdict["wrong"]) == (0, 0, 0)

    asked = next(r for r in up.runs("reoptimize") if r["dag_run_id"] in record.request.by)
    said = up.log("reoptimize", asked["dag_run_id"], "decide", 0)
    assert decisions[0]["reasons"][0] in said
    up.ask("PATCH", "/api/v2/dags/gather_statistics", {"is_paused": True})
    _is_tracked(up, file, decisions[0], monkeypatch, tmp_path)


def _is_tracked(
    up: Up, file: Path, decision: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """The decision's run in MLflow, with what a person compares and looks at."""
    client = up.client(monkeypatch, "viewer")
    experiment = client.get_experiment_by_name("shop").experiment_id
    tagged = f"tags.`midstream.decision` = '{decision['id']}'"
    (run,) = client.search_runs([experiment], tagged)
    assert run.data.tags["migration"] == decision["request"]
    assert run.data.tags["migration.phase"] == "done"
    assert run.data.tags["airflow"].startswith(f"{up.found['airflow']}/dags/reoptimize/runs/")
    assert run.data.params["running"] == job.WRONG
    assert run.data.metrics["running_cpu"] == decision["figures"]["running_cpu"]
    assert run.data.metrics["migration_seconds"] > 0
    below = client.search_runs([experiment], f"tags.mlflow.parentRunId = '{run.info.run_id}'")
    found = {r.data.params["strategy"]: r.data.metrics["cpu"] for r in below}
    assert found == {c["strategy"]: c["cpu"] for c in decision["candidates"]}
    names = {a.path for a in client.list_artifacts(run.info.run_id, "plans")}
    assert {"plans/running.svg", "plans/chosen.svg", "plans/diff.svg"} <= names
    front = Path(client.download_artifacts(run.info.run_id, "front.png", str(tmp_path)))
    assert front.read_bytes().startswith(b"\x89PNG")


def test_the_same_run_again_asks_for_nothing_more(up: Up, file: Path):
    before = migrations(file)
    run = up.runs("migrate")[0]["dag_run_id"]
    again = {"dag_run_id": run, "dry_run": False, "only_failed": False}
    status, answer = up.ask("POST", "/api/v2/dags/migrate/clearTaskInstances", again)
    assert status == 200, answer
    assert up.end("migrate", run) == "success"
    assert migrations(file) == before


def test_by_hand_without_a_reason_nothing_is_decided(up: Up):
    run = by_hand(up, "reoptimize", query=SUBJECT)
    assert up.end("reoptimize", run) == "failed"
    assert "say why you ask" in up.log("reoptimize", run, "wanted")


def test_on_call_sees_a_dry_run_first(up: Up, file: Path):
    before = migrations(file)
    run = by_hand(up, "migrate", query=SUBJECT, plan=job.WRONG, reason="to see")
    assert up.end("migrate", run) == "success"
    states = up.states("migrate", run)
    assert (states["preflight"], states["request"]) == ("skipped", "skipped")
    said = up.log("migrate", run, "preflight")
    assert f"to {job.WRONG} by" in said
    assert "rebuilt" in said
    assert migrations(file) == before


def test_a_scheduler_that_dies_during_a_migration(up: Up, file: Path):
    before = {record.request.id for record in migrations(file)}
    conf = {"plan": job.WRONG, "migration": "parallel-track", "reason": "while one dies"}
    run = by_hand(up, "migrate", query=SUBJECT, dry_run=False, **conf)
    (asked,) = until(
        lambda: [r for r in migrations(file) if r.request.id not in before], 120, "a request"
    )
    for component in ("airflow-scheduler", "airflow-triggerer"):
        _another(up, component)
    assert up.end("migrate", run, 600) == "success"
    (record,) = [r for r in migrations(file) if r.request.id not in before]
    assert (record.request.id, record.phase) == (asked.request.id, "done")
    assert record.request.reason == "while one dies"
    assert record.request.by == f"admin in Airflow, {run}"
    assert plan(file) == job.WRONG


def _another(up: Up, component: str) -> None:
    """Kill it, and wait for the one that takes its place."""
    old = up.pid(component)
    assert old is not None
    os.kill(old, signal.SIGKILL)
    until(lambda: up.pid(component) not in (None, old), 30, f"another {component}")


def test_a_decision_that_waits_for_a_person(up: Up, file: Path):
    """The thresholds are read anew each time: from now on nothing happens without consent."""
    before = migrations(file)
    _change(file, approve=True)
    wanted = {"query": SUBJECT, "reason": "to go back", "dry_run": False}
    run = by_hand(up, "reoptimize", force=True, **wanted)
    assert up.end("reoptimize", run) == "success"
    decision = midstream("reoptimize", str(file), "--history")[-1]
    assert (decision["outcome"], decision["approval"]) == ("migrate", "waits")
    assert f"start this again with Approve {decision['id']}" in up.log(
        "reoptimize", run, "decide", 0
    )
    assert migrations(file) == before

    run = by_hand(up, "reoptimize", approve=decision["id"], **wanted)
    assert up.end("reoptimize", run) == "success"
    followed = up.runs("migrate")[-1]["dag_run_id"]
    assert up.end("migrate", followed, 600) == "success"
    (record,) = [r for r in migrations(file) if r not in before]
    assert (record.phase, record.request.by) == ("done", f"admin in Airflow, {run}")
    assert plan(file) == decision["chosen"] != job.WRONG
    _change(file, approve=False)


def _change(file: Path, **policy: Any) -> None:
    content = yaml.safe_load(file.read_text())
    content["reoptimize"] |= policy
    file.write_text(yaml.safe_dump(content, sort_keys=False))


def test_mlflow_may_be_away(up: Up, file: Path, monkeypatch: pytest.MonkeyPatch):
    midstream("reoptimize", str(file), "--reason", "while MLflow is away", codes=(0, 3))
    client = up.client(monkeypatch)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    told = midstream("track", str(file))
    assert (told["runs"], told["waiting"] > 0, bool(told["missed"])) == ({}, True, True)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", up.found["mlflow"])
    told = midstream("track", str(file))
    assert (told["waiting"], told["missed"]) == (0, "")
    experiment = client.get_experiment_by_name("shop").experiment_id
    whys = [r.data.tags.get("why") for r in client.search_runs([experiment])]
    assert whys.count("while MLflow is away") == 1
    midstream("track", str(file))
    assert [r.data.tags.get("why") for r in client.search_runs([experiment])] == whys


def _gather(up: Up) -> None:
    """Gather by hand."""
    up.end("gather_statistics", by_hand(up, "gather_statistics", job="shop"), 900)


def test_a_window_that_is_not_to_be_believed_blocks_decisions(up: Up, file: Path):
    """More rows in the source than were counted, as after a loss: a window that nobody has seen."""
    store = StatsStore.of(file.parent / "shop")
    up.ask("PATCH", "/api/v2/dags/gather_statistics", {"is_paused": False})
    while not store.windows():
        _gather(up)
    last = store.windows()[-1]
    length = last.end - last.start
    false = Window(last.end + 1000 * length, last.end + 1001 * length)
    for table in (STREAMS, BATCHES):
        rows = store.rows(table, [last])
        lost = [row | {"taken": row["accepted"] + 7} if "taken" in row else row for row in rows]
        when = {"window_start": false.start, "window_end": false.end}
        store.replace(table, false, [row | when for row in lost])
    by_hand(up, "gather_statistics", job="shop")
    until(lambda: store.rows(VERDICTS, [false]), 900, "a verdict")
    assert false not in store.good()
    run = until(lambda: _failed(up), 120, "a run that fails")
    states = up.states("gather_statistics", run)
    assert (states["of_job.validate"], states["of_job.publish"]) == ("failed", "upstream_failed")
    assert "quarantined" in up.log("gather_statistics", run, "of_job.validate", 0)
    assert "quarantined" in (up.home.logs / "failures.log").read_text()


def test_wrong_results_go_back_to_the_plan_before(up: Up, file: Path):
    """Somebody has deleted results: that is no fault of the plan, but nobody can know that."""
    old = plan(file)
    until(
        partial(_delete_some, file.parent / "shop" / "out" / job.QUERY), 120, "a gap to delete in"
    )
    wanted = {"query": SUBJECT, "plan": job.WRONG, "reason": "to be wrong", "dry_run": False}
    run = by_hand(up, "migrate", **wanted)
    assert up.end("migrate", run, 900) == "failed"
    states = up.states("migrate", run)
    assert (states["verify"], states["finish"], states["revert"]) == (
        "success",
        "skipped",
        "failed",
    )
    assert "was reverted" in up.log("migrate", run, "revert")
    there, back = migrations(file)[-2:]
    assert (there.phase, back.phase) == ("done", "done")
    assert back.request.reason == "results are not right"
    assert plan(file) == old


def _delete_some(results: Path) -> bool:
    """Delete unless the job commits meanwhile: Delta refuses whoever has not seen all rows."""
    try:
        DeltaTable(results).delete("id < 100")
    except CommitFailedError:
        return False
    return True


def _failed(up: Up) -> str | None:
    """The last run that has failed."""
    failed = [run for run in up.runs("gather_statistics") if run["state"] == "failed"]
    return failed[-1]["dag_run_id"] if failed else None
