"""No program reports to anyone."""

import os
import subprocess
import sys

import pytest

from jobs.quiet import SWITCHES, quiet


def test_importing_the_programs_switches_telemetry_off() -> None:
    code = (
        "import jobs, os; print(os.environ['MLFLOW_DISABLE_TELEMETRY'], os.environ['DO_NOT_TRACK'])"
    )
    clean = {name: value for name, value in os.environ.items() if name not in SWITCHES}
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["true", "1"]


def test_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DO_NOT_TRACK", "0")
    quiet()
    assert os.environ["DO_NOT_TRACK"] == "0"
