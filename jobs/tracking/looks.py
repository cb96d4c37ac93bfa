"""What whoever is not the admin may ask MLflow for: requests that change nothing, each by its name.

Whatever is not here is refused, also what a later MLflow adds.  A name does not tell:
`review-queues/get-or-create-user` writes, and so does `label-schemas/list`, by GET.  Left out is
besides what belongs to language models' gateways, secrets, webhooks, scorers and jobs, which nobody
needs here.
"""

import re
from collections.abc import Iterator

PAGES = """
GET /
GET /version
GET /static-files/<path>
GET /get-artifact
GET /model-versions/get-artifact
POST /graphql
"""
"""MLflow's graphql has queries, and no mutation that writes."""

PROGRAMS = """
GET 2.0/mlflow-artifacts/artifacts
GET 2.0/mlflow-artifacts/artifacts/<path>
GET 2.0/mlflow/artifacts/list
GET 2.0/mlflow/experiments/get
GET 2.0/mlflow/experiments/get-by-name
GET 2.0/mlflow/experiments/search
POST 2.0/mlflow/experiments/search
GET 2.0/mlflow/logged-models/<one>
GET 2.0/mlflow/logged-models/<one>/artifacts/directories
POST 2.0/mlflow/logged-models/search
GET 2.0/mlflow/metrics/get-history
GET 2.0/mlflow/metrics/get-history-bulk-interval
GET 2.0/mlflow/model-versions/get
GET 2.0/mlflow/model-versions/get-download-uri
GET 2.0/mlflow/model-versions/search
GET 2.0/mlflow/registered-models/alias
GET 2.0/mlflow/registered-models/get
GET 2.0/mlflow/registered-models/get-latest-versions
POST 2.0/mlflow/registered-models/get-latest-versions
GET 2.0/mlflow/registered-models/search
GET 2.0/mlflow/runs/get
POST 2.0/mlflow/runs/search
GET 2.0/mlflow/traces
GET 2.0/mlflow/traces/<one>/info
GET 3.0/mlflow/datasets/<one>
GET 3.0/mlflow/datasets/<one>/experiment-ids
GET 3.0/mlflow/datasets/<one>/records
GET 3.0/mlflow/datasets/search
POST 3.0/mlflow/datasets/search
GET 3.0/mlflow/server-info
GET 3.0/mlflow/traces/<one>
GET 3.0/mlflow/traces/<one>/assessments/<one>
GET 3.0/mlflow/traces/batchGet
POST 3.0/mlflow/traces/batchGetInfos
POST 3.0/mlflow/traces/calculate-filter-correlation
GET 3.0/mlflow/traces/get
POST 3.0/mlflow/traces/metrics
POST 3.0/mlflow/traces/search
"""
"""Under `/api/` for programs, and under `/ajax-api/` for MLflow's pages."""

PAGES_ONLY = """
POST 2.0/mlflow/experiments/search-datasets
GET 2.0/mlflow/get-trace-artifact
GET 2.0/mlflow/logged-models/<one>/artifacts/files
GET 2.0/mlflow/metrics/get-history-bulk
GET 3.0/mlflow/get-trace-artifact
GET 3.0/mlflow/ui-telemetry
"""
"""Under `/ajax-api/` alone."""

_ONE = r"(?!\.{1,2}(?:/|$))[^/\\]+"
_PARTS = {"<one>": _ONE, "<path>": f"{_ONE}(?:/{_ONE})*"}


def looks(method: str, path: str) -> bool:
    """Whether a request changes nothing; a path as it is after decoding, as MLflow takes it."""
    asked = "GET" if method == "HEAD" else method
    return any(one.fullmatch(path) for one in _LOOKS.get(asked, ()))


def listed() -> Iterator[tuple[str, str]]:
    """Every request that is, by its method and its path."""
    yield from _lines(PAGES, "")
    yield from _lines(PROGRAMS, "/api/")
    yield from _lines(PROGRAMS + PAGES_ONLY, "/ajax-api/")


def _lines(text: str, under: str) -> Iterator[tuple[str, str]]:
    for line in text.split("\n"):
        method, _, path = line.partition(" ")
        if method:
            yield method, f"{under}{path}"


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split("(<one>|<path>)", path)
    return re.compile("".join(_PARTS.get(part) or re.escape(part) for part in parts))


_LOOKS = {
    asked: [_pattern(path) for method, path in listed() if method == asked]
    for asked in ("GET", "POST")
}
