"""Telemetry is off: nothing that Midstream starts reports to anyone, unless its user asks for it.

Importing `jobs` calls this, so every program, and every process that a program starts, is covered.
"""

import os

SWITCHES = {
    "DO_NOT_TRACK": "true",
    "GX_ANALYTICS_ENABLED": "False",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}


def switch_off() -> None:
    """Switch telemetry off, but leave alone what the user has set."""
    for name, value in SWITCHES.items():
        os.environ.setdefault(name, value)
