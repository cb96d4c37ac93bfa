"""Which variables reach a job, a hook and a task's command."""

import ast
import json
import os
import sys
from pathlib import Path

import pytest

from jobs.engine.migration.hooks import run_hook
from jobs.environment import needed, passed, tracking

ROOT = Path(__file__).parents[2]

SECRETS = {
    "AIRFLOW__CORE__FERNET_KEY": "s1",
    "AIRFLOW__API__SECRET_KEY": "s2",
    "AIRFLOW__API_AUTH__JWT_SECRET": "s3",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "s4",
    "AIRFLOW_CONN_PAGER": "s5",
    "MLFLOW_TRACKING_PASSWORD": "s6",
    "MLFLOW_TRACKING_TOKEN": "s7",
    "_MLFLOW_SERVER_FILE_STORE": "s8",
}
USERS = {"AWS_SECRET_ACCESS_KEY": "u1", "KAFKA_PASSWORD": "u2", "PAGER_TOKEN": "u3", "MY": "u4"}
PLAIN = {"PATH": "/bin", "HOME": "/root", "LC_ALL": "C", "JAVA_HOME": "/java", "SPARK_HOME": "/s",
         "MIDSTREAM_SPARK_MASTER": "local[1]", "TZ": "UTC", "PYTHONPATH": "/p"}  # fmt: skip
HERE = SECRETS | USERS | PLAIN


def test_what_any_program_needs_and_nothing_else():
    assert needed(HERE) == passed(HERE) == PLAIN


@pytest.mark.parametrize(
    ("named", "more"),
    [
        ("AWS_*", {"AWS_SECRET_ACCESS_KEY"}),
        (" AWS_* , KAFKA_PASSWORD,,", {"AWS_SECRET_ACCESS_KEY", "KAFKA_PASSWORD"}),
        ("aws_*", set()),
        ("*", set(USERS)),
        ("AIRFLOW__CORE__FERNET_KEY,AIRFLOW_*,MLFLOW_*,_MLFLOW_*", set()),
    ],
)
def test_what_the_user_names_but_never_what_is_the_services(named: str, more: set[str]):
    here = HERE | {"MIDSTREAM_PASS_ENV": named}
    assert passed(here).keys() == PLAIN.keys() | {"MIDSTREAM_PASS_ENV"} | more
    assert needed(here).keys() == PLAIN.keys() | {"MIDSTREAM_PASS_ENV"}


def test_secrets_do_not_pass_by_a_name_that_begins_well():
    for name in ("SPARK_AUTHENTICATE_SECRET", "PYSPARK_GATEWAY_SECRET", "MIDSTREAM_PASSWORDS",
                 "JAVA_KEYSTORE_PASSWORD", "MIDSTREAM_KEYS", "HADOOP_TOKEN_FILE"):  # fmt: skip
        assert name not in needed({name: "s"})


def test_only_what_tracks_knows_mlflow():
    here = HERE | {"AIRFLOW__API__BASE_URL": "http://127.0.0.1:1"}
    more = {name for name in here if name.startswith("MLFLOW_")} | {"AIRFLOW__API__BASE_URL"}
    assert tracking(here).keys() == PLAIN.keys() | more


def test_a_hook_gets_what_it_is_about_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name, value in (SECRETS | USERS).items():
        monkeypatch.setenv(name, value)
    seen = tmp_path / "seen"
    dump = tmp_path / "dump.py"
    write = f"pathlib.Path({str(seen)!r}).write_text(json.dumps(dict(os.environ)))"
    dump.write_text(f"import json, os, pathlib; {write}")
    run_hook(f"{sys.executable} {dump}", {"MIDSTREAM_PHASE": "before"})
    said = json.loads(seen.read_text())
    assert said["MIDSTREAM_PHASE"] == "before"
    assert said["PATH"] == os.environ["PATH"]
    assert not (SECRETS | USERS).keys() & said.keys()


STARTS = {"run", "Popen", "check_output", "check_call", "call", "create_subprocess_exec", "system"}


def test_no_hook_and_no_task_starts_a_program_with_all_that_there_is():
    """Each program of a user's, and each command, is told its variables."""
    for file in [*(ROOT / "dags").glob("*.py"), *(ROOT / "jobs" / "engine").rglob("*.py")]:
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and _starts(call.func):
                assert "env" in {one.arg for one in call.keywords}, f"{file}:{call.lineno}"


def _starts(function: ast.expr) -> bool:
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return False
    return function.value.id in ("subprocess", "asyncio", "os") and function.attr in STARTS
