"""`midstream up` for tests: a home of its own, ports that are free, and what a person would ask."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request

from jobs.services import manage
from jobs.services.home import Home
from jobs.services.local import DIRECT

MIDSTREAM = str(Path(sys.executable).parent / "midstream")

ENDED = ("success", "failed")

PATIENCE = 90
"""Seconds to wait for an answer: longer than Airflow waits for its database before it says no."""


def midstream(*words: str, codes: tuple[int, ...] = (0,)) -> Any:
    """A command's JSON."""
    done = subprocess.run(
        [MIDSTREAM, *words, "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode in codes, done.stdout + done.stderr
    return json.loads(done.stdout)


def until(reached: Callable[[], Any], seconds: float, what: str) -> Any:
    """Wait for something that is not false."""
    end = monotonic() + seconds
    while not (found := reached()):
        assert monotonic() < end, f"not within {seconds:.0f} s: {what}"
        sleep(0.5)
    return found


@dataclass
class Up:
    """What `up` has started."""

    directory: Path
    found: Mapping[str, Any]
    _tokens: dict[str, str] = field(default_factory=dict)

    @classmethod
    def start(cls, directory: Path, *jobs: Path) -> "Up":
        """Ports that are free, a home under the directory."""
        ports = ("--airflow-port", "0", "--mlflow-port", "0", "--wait", "600")
        home = ("--home", str(directory))
        try:
            return cls(directory, midstream("up", *map(str, jobs), *home, *ports))
        except BaseException:  # also where somebody interrupts the tests
            manage.stop(Home.of(directory))
            raise

    def stop(self) -> None:
        """Everything ends."""
        manage.stop(self.home)

    @property
    def home(self) -> Home:
        """Where the passwords and logs are."""
        return Home.of(self.directory)

    def status(self) -> dict[str, Any]:
        """As `up --status` tells it."""
        return manage.status(self.home)

    def pid(self, component: str) -> int | None:
        """The process that is it now."""
        (one,) = [one for one in self.home.components if one["name"] == component]
        pid: int | None = one["pid"]
        return pid

    # --- Airflow ---------------------------------------------------------------------------------

    def ask(self, method: str, path: str, body: Any = None, *, who: str | None = "admin") -> Any:
        """A request as that person: its status, and its answer."""
        headers = {"content-type": "application/json"}
        if who is not None:
            headers["authorization"] = f"Bearer {self._token(who)}"
        return send(method, self.found["airflow"] + path, body, headers)

    def _token(self, who: str) -> str:
        if who not in self._tokens:
            people, _ = self.home.people()
            body = {"username": who, "password": people[who]}
            status, answer = self.ask("POST", "/auth/token", body, who=None)
            assert status == 201, answer
            self._tokens[who] = answer["access_token"]
        return self._tokens[who]

    def get(self, path: str) -> Any:
        """What Airflow says to the admin."""
        status, answer = until(partial(self._answered, path), 60, path)
        assert status == 200, answer
        return answer

    def _answered(self, path: str) -> tuple[int, Any] | None:
        """Airflow answers 500 while its SQLite is locked: that is no answer yet."""
        answered: tuple[int, Any] = self.ask("GET", f"/api/v2{path}")
        return None if answered[0] >= 500 else answered

    def trigger(self, dag: str, *, who: str | None = "admin", **conf: Any) -> tuple[int, Any]:
        """Start a DAG by hand."""
        body = {"logical_date": None, "conf": conf}
        status, answer = self.ask("POST", f"/api/v2/dags/{dag}/dagRuns", body, who=who)
        return status, answer

    def runs(self, dag: str) -> list[Any]:
        """Its runs, the oldest first."""
        found: list[Any] = self.get(f"/dags/{dag}/dagRuns?order_by=run_after&limit=100")["dag_runs"]
        return found

    def end(self, dag: str, run: str, seconds: float = 300) -> str:
        """Wait for the end of a run; how it ended."""
        where = f"/dags/{dag}/dagRuns/{run}"

        def ended() -> str | None:
            state: str = self.get(where)["state"]
            return state if state in ENDED else None

        state: str = until(ended, seconds, f"the end of {dag} {run}: {self.states(dag, run)}")
        return state

    def states(self, dag: str, run: str) -> dict[str, str]:
        """Its tasks and how they are; of several of a name, the last."""
        found = self.get(f"/dags/{dag}/dagRuns/{run}/taskInstances")["task_instances"]
        return {one["task_id"]: one["state"] for one in found}

    def log(self, dag: str, run: str, task: str, index: int = -1, attempt: int = 1) -> str:
        """What a task has said."""
        where = f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}/logs/{attempt}?map_index={index}"
        lines = self.get(where)["content"]
        return "\n".join(line["event"] if isinstance(line, dict) else line for line in lines)

    # --- MLflow ----------------------------------------------------------------------------------

    def client(self, monkeypatch: Any, who: str = "admin") -> Any:
        """MLflow's own client, signed in."""
        from mlflow import MlflowClient

        people, _ = self.home.people()
        monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", who)
        monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", people[who])
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
        return MlflowClient(self.found["mlflow"])


def send(method: str, url: str, body: Any, headers: Mapping[str, str]) -> tuple[int, Any]:
    """A request to one of the services: its status, and its answer."""
    content = None if body is None else json.dumps(body).encode()
    request = Request(url, content, dict(headers), method=method)  # ours, http
    try:
        with DIRECT.open(request, timeout=PATIENCE) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except HTTPError as error:
        return error.code, error.read().decode()
