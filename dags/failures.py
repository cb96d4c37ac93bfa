"""What happens when a task has failed for good: it is written down, and someone is told."""

import logging
import os
import shlex
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from json import dumps
from pathlib import Path
from typing import Any

from jobs.environment import passed

ON_FAILURE = "MIDSTREAM_ON_FAILURE"
"""A command of yours that gets a failure as JSON: to page someone, for instance."""

HOME = "MIDSTREAM_HOME"

log = logging.getLogger(__name__)


def note(context: Mapping[str, Any]) -> None:
    """Write a failure into `failures.log` beside the other logs, and run the user's command."""
    task = context["ti"]
    found = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "dag": task.dag_id,
        "task": task.task_id,
        "run": task.run_id,
        "by": context["dag_run"].triggering_user_name,
        "error": str(context.get("exception") or ""),
    }
    log.error("failed for good: %s", found["error"])
    if home := os.environ.get(HOME):
        with (Path(home) / "services" / "logs" / "failures.log").open("a") as file:
            file.write(dumps(found) + "\n")
    if command := os.environ.get(ON_FAILURE):
        subprocess.run(
            shlex.split(command), input=dumps(found), env=passed(os.environ), text=True,
            check=False, timeout=60,
        )  # fmt: skip
