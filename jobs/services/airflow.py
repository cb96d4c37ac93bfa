"""Airflow's REST API, as far as programs beside it need it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from json import dumps, loads
from typing import Any
from urllib.request import Request

from jobs.services.local import DIRECT

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
        path = f"/api/v2/dags/~/dagRuns?limit={count}&order_by=-run_after"
        found = self._ask(path, Authorization=f"Bearer {self._signed_in()}")
        runs: list[dict[str, Any]] = found["dag_runs"]
        return runs

    def _signed_in(self) -> str:
        if not self._token:
            known = {"username": self.user, "password": self.password}
            self._token = self._ask("/auth/token", known)["access_token"]
        return self._token

    def _ask(
        self, path: str, content: Mapping[str, Any] | None = None, **headers: str
    ) -> dict[str, Any]:
        data = None if content is None else dumps(content).encode()
        headers["Content-Type"] = "application/json"
        request = Request(f"{self.url}{path}", data, headers)  # noqa: S310  # our own server's
        with DIRECT.open(request, timeout=SECONDS) as answer:
            found: dict[str, Any] = loads(answer.read())
            return found
