"""Airflow's REST API, as far as people and programs beside it need it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from json import dumps, loads
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

_DIRECT = build_opener(ProxyHandler({}))
"""The server is on this machine: no proxy has a part in that."""

SECONDS = 10
"""To wait for an answer at most."""


@dataclass
class Airflow:
    """A server, and who asks it; errors are urllib's, an `HTTPError` where it says no."""

    url: str
    user: str
    password: str = field(repr=False)
    _token: str = field(default="", repr=False)

    def runs(self, count: int = 20) -> list[dict[str, Any]]:
        """The last runs of all DAGs, the newest first."""
        found = self._ask(f"/api/v2/dags/~/dagRuns?limit={count}&order_by=-run_after")
        runs: list[dict[str, Any]] = found["dag_runs"]
        return runs

    def trigger(self, dag: str, parameters: Mapping[str, Any]) -> str:
        """Have a DAG run now; the id of the run."""
        asked = {"logical_date": None, "conf": dict(parameters)}
        return str(self._ask(f"/api/v2/dags/{dag}/dagRuns", asked)["dag_run_id"])

    def run(self, dag: str, run: str) -> dict[str, Any]:
        """How a run is."""
        return self._ask(f"/api/v2/dags/{dag}/dagRuns/{run}")

    def _ask(self, path: str, content: Mapping[str, Any] | None = None) -> dict[str, Any]:
        if not self._token:
            known = {"username": self.user, "password": self.password}
            self._token = self._answer("/auth/token", known)["access_token"]
        return self._answer(path, content, Authorization=f"Bearer {self._token}")

    def _answer(
        self, path: str, content: Mapping[str, Any] | None, **headers: str
    ) -> dict[str, Any]:
        data = None if content is None else dumps(content).encode()
        headers["Content-Type"] = "application/json"
        request = Request(f"{self.url}{path}", data, headers)  # noqa: S310  # our own server's
        with _DIRECT.open(request, timeout=SECONDS) as answer:
            found: dict[str, Any] = loads(answer.read())
            return found
