"""How a task takes what a command says, and what happens once a task has failed for good."""

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.jobs import small


def test_what_a_command_answers(tmp_path: Path):
    from dags.commands import RefusedError, midstream

    job = str(small.job(tmp_path))
    said = midstream("explain", job, "--query", "two")
    assert (said.code, said.refusal) == (0, "")
    with pytest.raises(RefusedError, match="did you mean three"):
        midstream("explain", job, "--query", "tree")
    with pytest.raises(RefusedError, match="has not finished a batch yet"):
        midstream("status", job)
    assert "has not finished a batch yet" in midstream("status", job, fine=(0, 3)).refusal


def test_a_command_is_logged_as_a_person_would_type_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    from dags import commands

    monkeypatch.setattr(commands, "MIDSTREAM", "echo")
    with caplog.at_level("INFO"), pytest.raises(commands.CommandError):
        commands.midstream("migrate", "((a b) c)", "--reason", "it's late")
    assert """midstream migrate '((a b) c)' --reason 'it'"'"'s late'""" in caplog.messages


def test_what_a_form_says_is_never_an_option(tmp_path: Path):
    from dags import commands, migrate

    form = {"migration": "auto", "reason": "--yes", "plan": "--yes"}
    words = migrate._words({"file": "-j.yaml", "query": "two"}, form, "--dry-run")
    said = commands.command(*words)
    assert said[1:] == [
        *("migrate", "--query", "two", "--strategy", "auto", "--reason", "--yes", "--dry-run"),
        *("--json", "--", "-j.yaml", "--yes"),
    ]
    with pytest.raises(commands.RefusedError, match=r"-j\.yaml: cannot be read"):
        commands.midstream(*words)


def test_a_command_knows_none_of_airflows_secrets(monkeypatch: pytest.MonkeyPatch):
    from dags import commands

    monkeypatch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "s")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "k")
    assert not {"s", "k"} & set(commands.variables("verify").values())
    assert "k" in commands.variables("track").values()
    assert "s" not in commands.variables("track").values()


def test_what_may_go_better_the_next_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from dags import commands

    broken = tmp_path / "midstream"
    broken.write_text("#!/bin/sh\necho no memory >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(commands, "MIDSTREAM", str(broken))
    with pytest.raises(commands.CommandError, match="no memory"):
        commands.midstream("status", "job.yaml")
    broken.write_text("#!/bin/sh\necho not JSON\n")
    with pytest.raises(commands.CommandError, match="not JSON"):
        commands.midstream("status", "job.yaml")


def test_a_migration_that_nobody_can_read_of_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The job file is gone for good: without an end, the watch would wait for days."""
    from dags import watching
    from dags.commands import RefusedError

    monkeypatch.setattr(watching, "EVERY", 0.01)
    monkeypatch.setattr(watching, "PATIENCE", 0.1)
    trigger = watching.MigrationTrigger(str(tmp_path / "gone.yaml"), "261118-224714-201-two")

    async def first() -> Any:
        return await anext(trigger.run())

    told = asyncio.run(first()).payload
    assert (told["id"], told["phase"]) == ("261118-224714-201-two", "out of sight")
    watch = watching.WatchOperator(task_id="watch", file="", migration="")
    with pytest.raises(RefusedError, match=r"is out of sight: .*gone\.yaml"):
        watch.ended({}, told)


def test_a_failure_is_written_down_and_somebody_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from dags import failures

    told = tmp_path / "told.json"
    script = f"import sys, pathlib; pathlib.Path({str(told)!r}).write_text(sys.stdin.read())"
    (tmp_path / "page.py").write_text(script)
    (tmp_path / "services" / "logs").mkdir(parents=True)
    monkeypatch.setenv("MIDSTREAM_HOME", str(tmp_path))
    monkeypatch.setenv("MIDSTREAM_ON_FAILURE", f"{sys.executable} {tmp_path / 'page.py'}")
    task = SimpleNamespace(dag_id="migrate", task_id="watch", run_id="manual__1")
    run = SimpleNamespace(triggering_user_name="admin")
    failures.note({"ti": task, "dag_run": run, "exception": ValueError("aborted")})
    (line,) = (tmp_path / "services" / "logs" / "failures.log").read_text().splitlines()
    found = json.loads(line)
    assert json.loads(told.read_text()) == found
    assert (found["dag"], found["task"], found["by"]) == ("migrate", "watch", "admin")
    assert found["error"] == "aborted"


FIGURES = {"expected": 1, "actual": 1, "missing": 0, "duplicate": 0, "wrong": 0}


@pytest.mark.parametrize(
    ("code", "figures", "verdict", "task"),
    [
        (0, FIGURES, "right", "finish"),
        (1, FIGURES | {"missing": 1}, "wrong", "revert"),
        (4, dict.fromkeys(FIGURES), "cannot tell", "finish"),
    ],
)
def test_only_wrong_results_speak_against_a_plan(
    code: int, figures: dict[str, Any], verdict: str, task: str, caplog: pytest.LogCaptureFixture
):
    from dags.commands import Answer
    from dags.migrate import follows

    words = {"verdict": verdict, "reason": "why", "judged": "what"}
    with caplog.at_level("INFO"):
        assert follows(Answer(code, figures | words)) == task
    assert f"verdict   {verdict}" in caplog.messages
    assert ("the new plan stays" in caplog.text) == (code == 4)


def test_a_verify_that_fails_is_no_verdict():
    """Exit code 1 alone says as well that the command could not be carried out."""
    from dags.commands import Answer, CommandError
    from dags.migrate import follows

    with pytest.raises(CommandError, match="a disk is full"):
        follows(Answer(1, {"error": "a disk is full"}))
