"""Commands of the user's that a migration runs: before its cut-over, and after its end."""

import os
import shlex
import subprocess
from collections.abc import Mapping

from jobs.environment import passed

PATIENCE = 60
"""Seconds after which a command is given up."""


class HookError(RuntimeError):
    """A command that failed, and how."""


def run_hook(command: str, about: Mapping[str, str]) -> None:
    """Run a command without a shell; what it is about is in its environment."""
    if not command:
        return
    try:
        done = subprocess.run(
            shlex.split(command),
            env={**passed(os.environ), **about},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise HookError(f"{command}: {error}") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise HookError(f"{command} ended with {done.returncode}: {said[-1] if said else ''}")
