"""Starts the services, tells how they are, ends them."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from jobs import specs
from jobs.errors import InputError, MidstreamError, RefusedError
from jobs.services import pages
from jobs.services.home import Home, Settings
from jobs.tables.lease import holder
from jobs.tables.paths import local

TICK = 0.3
"""Seconds between two looks."""
GONE = 30.0
"""Seconds in which everything has ended, or is made to."""


def chosen_jobs(files: Sequence[Path]) -> dict[str, str]:
    """The jobs of some files, each checked before anything is started."""
    found: dict[str, str] = {}
    for file in files:
        job = specs.load(file)
        job.check()
        job.check_runnable()
        if job.job in found:
            raise InputError(f"{found[job.job]} describes job {job.job} too", str(file))
        found[job.job] = str(file.absolute())
    return found


def chosen_port(port: int, option: str) -> int:
    """A port that is free now: the one asked for or, for 0, any."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            advice = "0 takes any that is free"
            raise InputError(
                f"port {port} cannot be had: {error.strerror}; {advice}", option
            ) from None
        free: int = probe.getsockname()[1]
        return free


def start(home: Home, settings: Settings) -> subprocess.Popen[bytes]:
    """Start the supervisor, on its own from now on."""
    if held := holder(home.root):
        raise RefusedError(f"the services are up already: {held}; `midstream down` ends them")
    home.make()
    home.keep(settings)
    home.note([])
    with home.log("supervisor").open("ab") as log:
        return subprocess.Popen(
            (sys.executable, "-m", "jobs.services.supervisor", str(home.root)),
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip


def until_well(
    home: Home, supervisor: subprocess.Popen[bytes], seconds: float
) -> Iterator[Mapping[str, bool]]:
    """Which components are well, again and again until all of them are."""
    until = monotonic() + seconds
    while True:
        if supervisor.poll() is not None:
            raise MidstreamError(f"the services did not start: {tail(home.log('supervisor'))}")
        well = {c["name"]: c["healthy"] for c in status(home)["components"]}
        yield well
        if well and all(well.values()):
            return
        if monotonic() > until:
            missing = [name for name, fine in well.items() if not fine] or ["supervisor"]
            logs = ", ".join(str(home.log(name)) for name in missing)
            raise MidstreamError(
                f"not well after {seconds:.0f} s: {', '.join(missing)}; see {logs}"
            )
        sleep(TICK)


def tail(path: Path, lines: int = 3) -> str:
    """The end of a log."""
    return " / ".join(path.read_text(encoding="utf-8", errors="replace").split("\n")[-1 - lines :])


def status(home: Home) -> dict[str, Any]:
    """Where everything is, and how it is."""
    held = holder(home.root)
    if not home.has_settings:
        return {"up": False, "home": str(home.root), "components": []}
    settings = home.settings
    well = _health(settings) if held else {}
    return {
        "up": held is not None,
        "home": str(home.root),
        "supervisor": None if held is None else {"pid": held.pid, "since": held.since},
        "airflow": settings.airflow,
        "mlflow": settings.mlflow,
        "passwords": str(home.passwords),
        "logs": str(home.logs),
        "jobs": dict(settings.jobs),
        "components": [
            one
            | {"healthy": bool(one["pid"]) and well[one["name"]], "log": str(home.log(one["name"]))}
            for one in home.components
            if held and one["name"] in well
        ],
    }


def _health(settings: Settings) -> dict[str, bool]:
    found = pages.airflow_health(settings.airflow) | pages.mlflow_health(settings.mlflow)
    return found | {f"job-{name}": _runs(Path(file)) for name, file in settings.jobs.items()}


def _runs(file: Path) -> bool:
    return holder(local(specs.load(file).storage)) is not None


def stop(home: Home) -> bool:
    """End everything; whether there was anything to end."""
    held = holder(home.root)
    if held is None or not held.pid:
        return False
    with suppress(ProcessLookupError):
        os.kill(held.pid, signal.SIGTERM)
    until = monotonic() + GONE
    while holder(home.root) is not None:
        if monotonic() > until:
            raise MidstreamError(f"process {held.pid} does not end; see {home.log('supervisor')}")
        sleep(TICK / 3)
    return True


def give_up(home: Home, supervisor: subprocess.Popen[bytes]) -> None:
    """End a supervisor that has just been started, whether it has come to say so or not."""
    supervisor.terminate()
    try:
        supervisor.wait(GONE)
    except subprocess.TimeoutExpired:
        log = home.log("supervisor")
        raise MidstreamError(f"process {supervisor.pid} does not end; see {log}") from None
