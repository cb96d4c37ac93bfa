"""Runs `midstream` for a task: its JSON is the task's result, its words go to the task's log."""

import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from json import JSONDecodeError, loads
from pathlib import Path
from typing import Any, NoReturn

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from jobs.environment import passed, tracking

MIDSTREAM = str(Path(sys.executable).parent / "midstream")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """What the command has said."""

    code: int
    data: Any

    @property
    def refusal(self) -> str:
        """Why it would not do it; empty where it did."""
        return self.problem if self.code == 3 else ""

    @property
    def problem(self) -> str:
        """What is wrong, and where."""
        if not isinstance(self.data, Mapping) or "error" not in self.data:
            return f"exit code {self.code}"
        where = f"{self.data['where']}: " if self.data.get("where") else ""
        return f"{where}{self.data['error']}"


class CommandError(AirflowException):
    """The command failed; it may go better the next time."""


class RefusedError(AirflowFailException):
    """The command will say the same however often it is asked."""


def midstream(*words: str, by: str = "", fine: tuple[int, ...] = (0,)) -> Answer:
    """Run a command; `fine` are the exit codes with which its answer is one to go on with.

    1 is worth another try, 2 and 3 are not: wrong input stays wrong, and a refusal has a reason.
    """
    log.info("midstream %s", shlex.join(words))
    environment = variables(words[0]) | ({"MIDSTREAM_USER": by} if by else {})
    with subprocess.Popen(
        command(*words), env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        out, err = process.communicate()
    for line in filter(str.strip, err.splitlines()):
        log.info("  %s", line)
    answer = Answer(process.returncode, read(out))
    if answer.code in fine and answer.data is not None:
        return answer
    if answer.code in (2, 3):
        raise RefusedError(answer.problem)
    raise CommandError(answer.problem if answer.data else (err or out)[-2000:] or answer.problem)


def command(*words: str) -> list[str]:
    """As it is called: what follows `--` is never an option, whatever somebody wrote there."""
    end = words.index("--") if "--" in words else len(words)
    return [MIDSTREAM, *words[:end], "--json", *words[end:]]


def variables(name: str) -> dict[str, str]:
    """The variables of a command: none of Airflow's, and MLflow's only where it is told of."""
    return (tracking if name == "track" else passed)(os.environ)


def asker() -> str:
    """Who has started this run, as the job's history will name them."""
    run = get_current_context()["dag_run"]
    return f"{run.triggering_user_name or 'schedule'} in Airflow, {run.run_id}"


def read(text: str | bytes) -> Any:
    """A command's JSON; none where it said something else."""
    try:
        return loads(text)
    except JSONDecodeError:
        return None


def skip(why: str) -> NoReturn:
    """Leave this task and those behind it out; Airflow's own log would not say why."""
    tell("skipped: %s", why)
    raise AirflowSkipException(why)


def tell(text: str, *values: object) -> None:
    """A line of the task's log."""
    log.info(text, *values)
