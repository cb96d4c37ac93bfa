"""Asks MLflow, as a viewer, everything that a viewer may, and prints what came of it.

A program of its own: MLflow's server takes its settings from the environment, once.
"""

import json
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from jobs.tracking.looks import listed
from jobs.tracking.server import app

QUERY = 'query { mlflowGetRun(input: {runId: "RUN"}) { run { info { runId } } } }'


def main(home: Path) -> dict[str, tuple[int, list[str]]]:
    """For each request its status, and what it has changed in the database and the artifacts."""
    (home / "people.json").write_text(json.dumps({"admin": "a", "viewer": "v"}))
    (home / "keys.json").write_text(json.dumps({"tracking": "k"}))
    os.environ |= {
        "MIDSTREAM_MLFLOW_HOME": str(home),
        "MIDSTREAM_MLFLOW_PORT": "5000",
        "MIDSTREAM_PASSWORDS": str(home / "people.json"),
        "MIDSTREAM_KEYS": str(home / "keys.json"),
        "MLFLOW_ENABLE_AI_GATEWAY": "false",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    server: Any = app()
    client = TestClient(server, base_url="http://127.0.0.1:5000", raise_server_exceptions=False)
    known = _something(client)
    before, found = _state(home), {}
    for method, path in listed():
        status = _look(client, method, path, known)
        now = _state(home)
        found[f"{method} {path}"] = status, sorted(now ^ before)
        before = now
    return found


def _something(client: TestClient) -> dict[str, Any]:
    """What there is to look at, by the names under which requests ask for it."""

    def make(path: str, **content: Any) -> Any:
        answer = client.post(f"/api/{path}", json=content, auth=("admin", "a"))
        assert answer.status_code == 200, answer.text
        return answer.json()

    e = make("2.0/mlflow/experiments/create", name="e")["experiment_id"]
    begun = make("2.0/mlflow/runs/create", experiment_id=e, start_time=1)
    run = begun["run"]["info"]["run_id"]
    make("2.0/mlflow/runs/log-metric", run_id=run, key="m", value=1.0, timestamp=1)
    make("2.0/mlflow/registered-models/create", name="r")
    source = f"mlflow-artifacts:/{e}/{run}/artifacts"
    make("2.0/mlflow/model-versions/create", name="r", source=source, run_id=run)
    make("2.0/mlflow/registered-models/alias", name="r", alias="x", version="1")
    logged = make("2.0/mlflow/logged-models", experiment_id=e, name="l")
    data = make("3.0/mlflow/datasets/create", name="d", experiment_ids=[e])
    place = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": e}}
    trace = {"trace_id": "tr-1", "trace_location": place, "state": "OK"}
    trace |= {"request_time": "2026-01-01T00:00:00Z", "execution_duration": "1s"}
    make("3.0/mlflow/traces", trace={"trace_info": trace})
    file = f"mlflow-artifacts/artifacts/{e}/{run}/artifacts/a.txt"
    assert client.put(f"/api/2.0/{file}", content=b"x", auth=("admin", "a")).status_code == 200
    return {
        "experiment_id": e, "experiment_ids": [e], "experiment_name": "e", "locations": [place],
        "run_id": run, "run_uuid": run, "run_ids": [run], "metric_key": "m", "max_results": 10,
        "name": "r", "version": "1", "alias": "x", "path": "a.txt", "file": file,
        "model": logged["model"]["info"]["model_id"], "dataset": data["dataset"]["dataset_id"],
        "trace_id": "tr-1", "trace_ids": ["tr-1"], "request_id": "tr-1", "view_type": "TRACES",
        "metric_name": "trace_count", "aggregations": [{"aggregation_type": "COUNT"}],
        "query": QUERY.replace("RUN", run),
    }  # fmt: skip


def _look(client: TestClient, method: str, path: str, known: dict[str, Any]) -> int:
    asked = path.replace("mlflow-artifacts/artifacts/<path>", known["file"])
    for part, one in (("traces", "tr-1"), ("logged-models", "model"), ("datasets", "dataset")):
        asked = asked.replace(f"{part}/<one>", f"{part}/{known.get(one, one)}")
    asked = asked.replace("<path>", "index.html").replace("<one>", "x")
    content: Any = {"params": known} if method == "GET" else {"json": known}
    answer = client.request(method, asked, auth=("viewer", "v"), **content)
    return int(answer.status_code)


def _state(home: Path) -> set[str]:
    with sqlite3.connect(home / "mlflow.db") as database:
        rows = set(database.iterdump())
    return rows | {f"{path} {path.stat().st_size}" for path in (home / "artifacts").rglob("*")}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))))
