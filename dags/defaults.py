"""What all tasks have in common."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from dags.failures import note

TAGS = ("midstream",)

DEFAULTS: dict[str, Any] = {
    "owner": "streaming",
    "on_failure_callback": note,
    "retry_delay": timedelta(seconds=5),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(minutes=5),
    "execution_timeout": timedelta(hours=1),
}
"""No retries unless a task says so: it does where doing it twice is doing it once."""


def words(dag: str) -> str:
    """What a DAG's page says of it."""
    return (Path(__file__).parent / "docs" / f"{dag}.md").read_text(encoding="utf-8")
