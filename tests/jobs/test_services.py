"""What `up` keeps running, with programs that start at once in place of Airflow and MLflow."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from fastapi.routing import APIRoute

from jobs import cli
from jobs.errors import InputError, RefusedError
from jobs.services import manage
from jobs.services.components import Component, components
from jobs.services.home import Home, Settings
from jobs.services.supervisor import LONGEST, Child, below, write_ahead
from jobs.tables.lease import lease
from jobs.tracking.server import Gate
from tests.jobs import small
from tests.jobs.asking import ask, basic, fine

SUPERVISE = """
import json, os, sys
from pathlib import Path
from jobs.services import supervisor
from jobs.services.components import Component
from jobs.services.home import Home
supervisor.TICK, supervisor.PATIENCE, supervisor.MANNERS = 0.05, 0.5, 0.2
commands = json.loads(sys.argv[2])
children = [
    supervisor.Child(Component(name, tuple(command), dict(os.environ)))
    for name, command in commands.items()
]
supervisor.Supervisor(Home(Path(sys.argv[1])), children).run()
"""


@dataclass
class Supervised:
    """A supervisor in a process of its own."""

    home: Home
    process: subprocess.Popen[bytes]

    def pid(self, name: str) -> int | None:
        """The process that is a component now."""
        found = {one["name"]: one["pid"] for one in self.home.components}
        pid: int | None = found.get(name)
        return pid

    def restarts(self, name: str) -> int:
        """How often it was started again."""
        (one,) = [one for one in self.home.components if one["name"] == name]
        return int(one["restarts"])

    def end(self) -> float:
        """End it; how long that took."""
        begun = monotonic()
        self.process.terminate()
        self.process.wait(10)
        return monotonic() - begun


Supervise = Callable[..., Supervised]


@pytest.fixture
def supervise(tmp_path: Path) -> Iterator[Supervise]:
    started: list[Supervised] = []

    def start(**commands: list[str]) -> Supervised:
        home = Home(tmp_path / "services")
        home.make()
        words = [sys.executable, "-c", SUPERVISE, str(home.root), json.dumps(commands)]
        started.append(Supervised(home, subprocess.Popen(words, stdout=subprocess.DEVNULL)))
        until(lambda: all(map(started[-1].pid, commands)))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.end()


def until(reached: Callable[[], Any], seconds: float = 20) -> Any:
    end = monotonic() + seconds
    while not (found := reached()):
        assert monotonic() < end
        sleep(0.02)
    return found


def there(pid: int) -> bool:
    """Whether a process is there, and more than an entry that nobody has read."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


SLEEP = ["sleep", "1000"]


def test_who_dies_is_started_again(supervise: Supervise):
    up = supervise(one=SLEEP, other=SLEEP)
    first, other = up.pid("one"), up.pid("other")
    assert first
    os.kill(first, signal.SIGKILL)
    again = until(lambda: (pid := up.pid("one")) not in (None, first) and pid)
    assert there(again)
    assert (up.restarts("one"), up.restarts("other")) == (1, 0)
    assert up.pid("other") == other
    assert "one ended (SIGKILL)" not in up.home.log("one").read_text()


def test_what_it_leaves_behind_is_ended(supervise: Supervise, tmp_path: Path):
    note = tmp_path / "left"
    up = supervise(one=["sh", "-c", f"sleep 1001 & echo $! > {note}; wait"])
    left = int(until(lambda: note.exists() and note.read_text()))
    assert there(left)
    first = up.pid("one")
    assert first
    os.kill(first, signal.SIGKILL)
    until(lambda: not there(left))


def test_all_of_it_ends_within_seconds_even_who_does_not_listen(
    supervise: Supervise, tmp_path: Path
):
    note = tmp_path / "deaf"
    deaf = f"trap '' TERM; sleep 1002 & echo $! > {note}; while true; do wait; done"
    up = supervise(one=SLEEP, deaf=["sh", "-c", deaf])
    child = int(until(lambda: note.exists() and note.read_text()))
    pids = [up.pid("one"), up.pid("deaf"), child]
    assert up.end() < 5
    assert not any(there(pid) for pid in pids if pid)
    assert up.home.components == []


def test_killed_the_supervisor_takes_the_others_with_it(supervise: Supervise):
    up = supervise(one=SLEEP, other=SLEEP)
    pids = [up.pid("one"), up.pid("other")]
    up.process.kill()
    up.process.wait(10)
    until(lambda: not any(there(pid) for pid in pids if pid))


def test_who_needs_another_waits_for_it():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        child = Child(Component("one", ("true",), {}, after=other.getsockname()[1]))
        assert not child.due
        other.listen()
        assert child.due


def test_who_cannot_start_is_tried_ever_less_often():
    child = Child(Component("one", ("false",), {}))
    child.since = -1000.0
    pauses = []
    for _ in range(9):
        child.since = monotonic()
        child.died(256)
        pauses.append(child.pause)
    assert pauses[:4] == [1, 2, 4, 8]
    assert pauses[-1] == LONGEST
    assert (child.last, child.due) == ("exit code 1", False)
    child.since = monotonic() - 3600
    child.died(9)
    assert (child.pause, child.last) == (1, "SIGKILL")


# --- home ----------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home.of(tmp_path)
    made.make()
    return made


def test_passwords_are_made_once_and_for_their_owner_only(home: Home):
    people, new = home.people()
    assert (set(people), new) == ({"admin", "viewer"}, True)
    assert len(set(people.values())) == 2
    assert home.people() == (people, False)
    assert home.keys() == home.keys()
    for path in (home.passwords, home.root / "keys.json"):
        assert path.stat().st_mode & 0o777 == 0o600
    assert home.root.stat().st_mode & 0o777 == 0o700


def test_every_component_listens_on_this_machine_only(home: Home):
    home.keep(Settings(18080, 15000, {"small": "/jobs/small.yaml"}))
    found = {one.name: one for one in components(home)}
    assert set(found) == {
        "airflow-api", "airflow-scheduler", "airflow-dags", "airflow-triggerer", "mlflow",
        "job-small",
    }  # fmt: skip
    known = found["airflow-api"].environment
    assert known["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert json.loads(known["MIDSTREAM_JOBS"]) == ["/jobs/small.yaml"]
    assert known["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"] == "admin:admin,viewer:viewer"
    assert known["MLFLOW_DISABLE_TELEMETRY"] == "true"
    for name in ("airflow-scheduler", "airflow-triggerer"):
        assert "--skip-serve-logs" in found[name].command
    assert "127.0.0.1" in found["mlflow"].command
    for one in found.values():
        people, _ = home.people()
        assert not set(people.values()) & set(one.command)  # `ps` shows everyone's


def test_who_knows_which_secret(home: Home, monkeypatch: pytest.MonkeyPatch):
    """A job knows none, MLflow's server reads its own, and Airflow no person's password."""
    home.keep(Settings(18080, 15000, {"small": "/jobs/small.yaml"}))
    people, keys = home.people()[0], home.keys()
    for name, value in {"AIRFLOW__CORE__FERNET_KEY": "x", "AWS_SECRET": "y", "PAGER": "z"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MIDSTREAM_PASS_ENV", "PAGER")
    for one in components(home):
        known = set(one.environment.values())
        expected = set(keys.values()) if one.name.startswith("airflow-") else set()
        assert known & {*people.values(), *keys.values()} == expected, one.name
        assert not known & {"x", "y"}, one.name
        assert ("z" in known) == (one.name != "mlflow"), one.name
        assert str(one).find(keys["jwt"]) == -1
    job = next(one for one in components(home) if one.name == "job-small")
    assert not [name for name in job.environment if name.startswith(("AIRFLOW", "MLFLOW_T"))]


def test_a_home_of_an_older_version_gets_the_keys_that_it_lacks(home: Home):
    home.secrets.write_text(json.dumps({"jwt": "j", "session": "s", "fernet": "f"}))
    found = home.keys()
    assert (found["jwt"], found["session"], found["fernet"]) == ("j", "s", "f")
    assert len(found["tracking"]) == 64
    assert home.keys() == found
    assert home.secrets.stat().st_mode & 0o777 == 0o600


# --- up and down ---------------------------------------------------------------------------------


def test_a_port_that_is_taken():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="0 takes any that is free"):
            manage.chosen_port(taken.getsockname()[1], "--airflow-port")
    assert manage.chosen_port(0, "--airflow-port") > 0


def test_a_job_twice(tmp_path: Path):
    one = small.job(tmp_path)
    other = small.job(tmp_path, storage="elsewhere")
    assert manage.chosen_jobs([one]) == {"small": str(one)}
    with pytest.raises(InputError, match="describes job small too"):
        manage.chosen_jobs([one, other])


def test_nothing_starts_where_a_job_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    wrong = small.job(tmp_path, engine="sparc")
    words = ["up", str(wrong), "--home", str(tmp_path), "--airflow-port", "0", "--mlflow-port", "0"]
    assert cli.run(words) == 2
    assert "did you mean spark" in capsys.readouterr().err
    assert cli.run(["up", "--home", str(tmp_path)]) == 2
    assert not (tmp_path / "services").exists()


def test_what_is_up_is_not_started_again(home: Home):
    with lease(home.root), pytest.raises(RefusedError, match="`midstream down` ends them"):
        manage.start(home, Settings(0, 0, {}))


@pytest.mark.parametrize("moment", [0.0, 1.0, 3.0])
def test_what_ends_up_before_all_is_well_ends_the_services_too(tmp_path: Path, moment: float):
    """At any moment, also before the supervisor has said that it is there."""
    small.write(tmp_path, range(1))
    home = Home.of(tmp_path)
    ports = ("--airflow-port", "0", "--mlflow-port", "0")
    words = (sys.executable, "-m", "jobs.cli", "up", str(small.job(tmp_path)), *ports)
    with subprocess.Popen(
        [*words, "--home", str(tmp_path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as up:
        until(lambda: _supervisors(up.pid))
        (supervisor,) = _supervisors(up.pid)
        sleep(moment)
        up.terminate()
        assert up.wait(40) != 0
    assert not there(supervisor)
    until(lambda: below(supervisor) == [])
    assert not manage.status(home)["up"]


def _supervisors(pid: int) -> list[int]:
    """Of the children of a process, those that are one."""
    commands = {child: Path(f"/proc/{child}/cmdline").read_bytes() for child in below(pid)}
    return [child for child, command in commands.items() if b"jobs.services.supervisor" in command]


def test_nothing_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.run(["down", "--home", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"ended": False}
    assert cli.run(["up", "--status", "--home", str(tmp_path)]) == 1
    assert "nothing is up" in capsys.readouterr().out


# --- MLflow's gate -------------------------------------------------------------------------------


MAKE = "/api/2.0/mlflow/experiments/create"
SEARCH = "/ajax-api/2.0/mlflow/runs/search"


@pytest.mark.parametrize(
    ("method", "path", "who", "status"),
    [
        ("GET", "/", "", 401),
        ("GET", "/health", "", 200),
        ("GET", "/", "admin:v", 401),
        ("GET", "/", "admin:", 401),
        ("GET", "/", "nobody:a", 401),
        ("GET", "/", "nobody:", 401),
        ("GET", "/", "admin", 401),
        ("GET", "/", "viewer:v", 200),
        ("POST", SEARCH, "viewer:v", 200),
        ("POST", MAKE, "viewer:v", 403),
        ("DELETE", "/api/3.0/mlflow/anything", "viewer:v", 403),
        ("POST", MAKE, "admin:a", 200),
        ("POST", MAKE, "midstream:k", 200),
        ("POST", MAKE, "midstream:a", 401),
        ("GET", "/ajax-api/3.0/mlflow/assistant/config", "viewer:v", 404),
        ("POST", "/ajax-api/3.0/mlflow/assistant/message", "admin:a", 404),
    ],
)
def test_who_may_do_what_in_mlflow(method: str, path: str, who: str, status: int):
    gate = Gate(fine, {"admin": "a", "viewer": "v"}, {"midstream": "k"})
    assert ask(gate, method, path, **(basic(who) if who else {}))[0] == status


def test_nothing_of_the_assistant_is_served():
    from mlflow.server.assistant.api import assistant_router

    paths = [route.path for route in assistant_router.routes if isinstance(route, APIRoute)]
    gate = Gate(fine, {"admin": "a"})
    assert paths
    assert {ask(gate, "GET", path, **basic("admin:a"))[0] for path in paths} == {404}


def test_who_reads_keeps_nobody_from_writing(tmp_path: Path):
    database = tmp_path / "airflow.db"
    with closing(sqlite3.connect(database, timeout=0)) as writer:
        writer.execute("CREATE TABLE runs AS SELECT 1 AS id UNION ALL SELECT 2")
        writer.commit()
    write_ahead(database)
    with (
        closing(sqlite3.connect(database, timeout=0)) as reader,
        closing(sqlite3.connect(database, timeout=0)) as writer,
    ):
        rows = reader.execute("SELECT id FROM runs")
        assert rows.fetchone() == (1,)
        writer.execute("INSERT INTO runs VALUES (3)")
        writer.commit()
        assert rows.fetchall() == [(2,)]
