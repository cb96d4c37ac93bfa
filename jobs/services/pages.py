"""Asks the services over HTTP how they are."""

from json import JSONDecodeError, loads
from typing import Any
from urllib.error import URLError

from jobs.services.local import DIRECT

SECONDS = 3
"""To wait for an answer at most."""

AIRFLOW = {
    "airflow-scheduler": "scheduler",
    "airflow-dags": "dag_processor",
    "airflow-triggerer": "triggerer",
}
"""What Airflow calls the components of which it knows how they are."""


def airflow_health(url: str) -> dict[str, bool]:
    """Which of Airflow's components are well; only the server knows, so none if it is not there."""
    try:
        found: dict[str, Any] = loads(_get(f"{url}/api/v2/monitor/health"))
    except (OSError, JSONDecodeError):
        return dict.fromkeys(("airflow-api", *AIRFLOW), False)
    well = {name: found[known]["status"] == "healthy" for name, known in AIRFLOW.items()}
    return {"airflow-api": found["metadatabase"]["status"] == "healthy"} | well


def mlflow_health(url: str) -> dict[str, bool]:
    """Whether the MLflow server answers."""
    try:
        return {"mlflow": _get(f"{url}/health") == b"OK"}
    except OSError:
        return {"mlflow": False}


def _get(url: str) -> bytes:
    try:
        with DIRECT.open(url, timeout=SECONDS) as answer:
            content: bytes = answer.read()
            return content
    except URLError as error:
        raise OSError(str(error)) from None
