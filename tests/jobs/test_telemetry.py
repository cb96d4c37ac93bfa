"""No program reports to anyone."""

import os
import subprocess
import sys

import pytest

from jobs.telemetry import SWITCHES, switch_off


def test_importing_the_programs_switches_telemetry_off() -> None:
    code = "import jobs, os; print(*map(os.environ.get, jobs.telemetry.SWITCHES))"
    clean = {name: value for name, value in os.environ.items() if name not in SWITCHES}
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == list(SWITCHES.values())


def test_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DO_NOT_TRACK", "0")
    switch_off()
    assert os.environ["DO_NOT_TRACK"] == "0"
