"""What a viewer may ask MLflow for: of all that the installed MLflow serves, what is listed."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from jobs.tracking.looks import listed, looks
from jobs.tracking.server import Gate
from tests.jobs.asking import ask, basic, fine

ROOT = Path(__file__).parents[2]

POSTS = {
    "/graphql",
    "2.0/mlflow/experiments/search",
    "2.0/mlflow/experiments/search-datasets",
    "2.0/mlflow/logged-models/search",
    "2.0/mlflow/registered-models/get-latest-versions",
    "2.0/mlflow/runs/search",
    "3.0/mlflow/datasets/search",
    "3.0/mlflow/traces/batchGetInfos",
    "3.0/mlflow/traces/calculate-filter-correlation",
    "3.0/mlflow/traces/metrics",
    "3.0/mlflow/traces/search",
}
"""Requests by POST of which MLflow's own documentation says that they search or get."""

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY", "get")

Route = tuple[str, str]


@pytest.fixture(scope="module")
def served() -> set[Route]:
    """Every request that the installed MLflow serves: its method, its path as it declares it."""
    from mlflow.server import app as flask
    from mlflow.server.fastapi_app import app

    fast = [one for one in app.routes if isinstance(one, APIRoute)]
    paths = [(one.methods, _part(r"\{\w+(:path)?\}", one.path)) for one in fast]
    paths += [
        (one.methods, _part(r"<(path:)?\w+>", one.rule)) for one in flask.url_map.iter_rules()
    ]
    return {(method, path) for methods, path in paths for method in methods}


def _part(variable: str, path: str) -> str:
    return re.sub(variable, lambda found: "<path>" if found[1] else "<one>", path)


def as_viewer(method: str, path: str) -> int:
    gate = Gate(fine, {"admin": "a", "viewer": "v"})
    return ask(gate, method, path, **basic("viewer:v"))[0]


def test_a_viewer_may_ask_for_what_is_listed_and_for_nothing_else(served: set[Route]):
    assert len(served) > 400
    known = {*listed(), *(("HEAD", path) for method, path in listed() if method == "GET")}
    known |= {(method, "/health") for method in METHODS}  # says OK or that the method is none
    for method, path in served:
        asked = path.replace("<one>", "m-0d1").replace("<path>", "a/b.txt")
        wanted = 200 if (method, path) in known else 404 if "/assistant/" in path else 403
        assert as_viewer(method, asked) == wanted, (method, path)


def test_what_is_listed_is_served(served: set[Route]):
    assert set(listed()) <= served


def test_what_is_listed_is_read_only():
    for method, path in listed():
        short = re.sub("^/(ajax-)?api/", "", path)
        assert method == "GET" or short in POSTS, path
        assert not re.search("creat|delet|updat|set-|log-|upload|invoke|proxy|secret|webhook", path)


@pytest.mark.parametrize(
    "path",
    [
        "/ajax-api/3.0/mlflow/review-queues/get-or-create-user",
        "/api/3.0/mlflow/anything/get-whatever",
        "/api/2.0/mlflow/runs/search/delete",
        "/api/2.0/mlflow/runs/search/",
        "/api/2.0/mlflow/runs//search",
        "//api/2.0/mlflow/runs/search",
        "/api/2.0/mlflow/../mlflow/runs/search",
        "/api/2.0/mlflow/runs/search\n",
        "/api/2.0/mlflow/runs/search;x",
        "/API/2.0/mlflow/runs/search",
        "/x/api/2.0/mlflow/runs/search",
        "/api/2.0/mlflow/runs/delete",
        "/graphql/",
    ],
)
def test_nearly_a_look(path: str):
    assert looks("POST", "/api/2.0/mlflow/runs/search")
    assert not looks("POST", path)


def test_a_list_that_writes():
    assert not looks("GET", "/ajax-api/3.0/mlflow/label-schemas/list")


@pytest.mark.parametrize("method", METHODS)
def test_the_method_counts(method: str):
    assert looks(method, "/api/2.0/mlflow/runs/get") == (method in ("GET", "HEAD"))
    assert looks(method, "/api/2.0/mlflow/runs/search") == (method == "POST")


@pytest.mark.parametrize(
    "path",
    ["..", "../keys.json", "a/../../keys.json", "a//b", "./a", "/etc/passwd", "a\\..\\b", ""],
)
def test_artifacts_and_files_are_asked_for_by_plain_paths(path: str):
    artifacts = "/api/2.0/mlflow-artifacts/artifacts/"
    assert looks("GET", f"{artifacts}1/0d1/artifacts/plans/diff.svg")
    assert not looks("GET", f"{artifacts}{path}")
    assert not looks("GET", f"/static-files/{path}")
    assert not looks("GET", f"/ajax-api/3.0/mlflow/traces/{path}")


def test_a_long_path_is_refused_as_quickly_as_a_short_one():
    assert not looks("GET", f"/static-files/{'a' * 60_000}//")
    assert not looks("GET", f"/static-files/{'a/' * 30_000}/")


def test_nothing_that_a_viewer_may_ask_for_changes_anything(tmp_path: Path):
    """By the real server, with something there to look at: a name does not tell."""
    words = [sys.executable, "-W", "ignore", "-m", "tests.jobs.looking", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert {request: changed for request, (_, changed) in found.items() if changed} == {}
    statuses = [status for status, _ in found.values()]
    assert not {401, 403} & set(statuses)
    assert statuses.count(200) > len(statuses) * 0.8  # it was there, and was looked at
