"""`midstream demo`: a job, its streams that change, and everything that follows from that, live."""

from contextlib import contextmanager
from pathlib import Path
from shutil import copyfile, rmtree
from signal import SIGTERM, default_int_handler, signal
from time import monotonic, sleep
from typing import TYPE_CHECKING, Annotated

import typer

from jobs import show
from jobs.commands.up import start
from jobs.errors import InputError, MidstreamError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobs.demonstration.look import Look
    from jobs.demonstration.view import View
    from jobs.services.home import Home
    from jobs.specs import Job

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "live.yaml"
DIRECTORY = Path(".midstream/demo")
EVERY = 2.0
"""Seconds between two looks."""
STARTS = 180.0
"""Seconds in which everything has started."""


def demo(
    *,
    directory: Annotated[
        Path, typer.Option(help="Where everything goes; emptied first.", metavar="DIR")
    ] = DIRECTORY,
    end: Annotated[
        bool,
        typer.Option(
            "--exit", envvar="DEMO_EXIT", help="End at once when all is told, without Ctrl-C."
        ),
    ] = False,
    wait: Annotated[float, typer.Option(min=1, help="Give up after so many seconds.")] = 600,
    json: show.Json = False,
) -> int:
    """Watch a job's streams change, the drift noticed, and its plan migrated while it runs."""
    from jobs import specs
    from jobs.demonstration.view import View

    file = _prepare(directory)
    job, view = specs.load(file), View(quiet=json)
    with _services(directory, job) as home:
        seen = _watch(job, home, view, monotonic() + wait)
        right = _report(job, seen, directory, json=json)
        if not (end or json):
            _links(home)
            _until_told()
    return 0 if right else 1


def _prepare(directory: Path) -> Path:
    """The example's job file in a directory of its own, without what the last time left there."""
    if not EXAMPLE.is_file():
        raise InputError(
            "the examples are part of the source tree: run this from a checkout", "demo"
        )
    file = directory / EXAMPLE.name
    if directory.exists() and any(directory.iterdir()) and not file.exists():
        raise InputError(f"{directory} holds something else than a demo", "--directory")
    _stop(directory)
    rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    copyfile(EXAMPLE, file)
    return file


def _stop(directory: Path) -> None:
    from jobs.services.home import Home
    from jobs.services.manage import stop

    stop(Home.of(directory))


@contextmanager
def _services(directory: Path, job: "Job") -> "Iterator[Home]":
    """Airflow, MLflow and the job, until the demonstration ends."""
    from jobs.services import manage
    from jobs.services.home import Home, Settings

    signal(SIGTERM, default_int_handler)  # what ends this ends the services, too
    home = Home.of(directory)
    home.people()
    ports = (manage.chosen_port(0, ""), manage.chosen_port(0, ""))
    start(home, Settings(*ports, manage.chosen_jobs([job.file])), STARTS)
    try:
        yield home
    finally:
        with show.progress("ending everything"):
            manage.stop(home)


def _watch(job: "Job", home: "Home", view: "View", until: float) -> "Look":
    """Tell what happens until the migration is over and measured."""
    from jobs.demonstration.look import Look, look, news
    from jobs.demonstration.report import settled
    from jobs.services.airflow import Airflow
    from jobs.services.home import ADMIN

    people, _ = home.people()
    airflow = Airflow(home.settings.airflow, ADMIN, people[ADMIN])
    seen = Look()
    with view.open():
        view.tell(f"{job.job} runs, Airflow and MLflow with it; its streams change in a while")
        while not settled(seen):
            if monotonic() > until:
                raise MidstreamError(f"nothing was migrated in time; see {home.logs}")
            now = look(job, airflow, seen)
            for line in news(seen, now):
                view.tell(line)
            view.update(now)
            seen = now
            sleep(EVERY)
    return seen


def _report(job: "Job", seen: "Look", directory: Path, *, json: bool) -> bool:
    from jobs.demonstration.report import report, tell

    assert seen.decision is not None
    assert seen.migration is not None
    with show.progress("computing all results again, in another way"):
        found = report(job, seen.decision, seen.migration, directory / "pictures")
    if json:
        show.as_json(found.to_json())
    else:
        tell(found)
    return found.right


def _links(home: "Home") -> None:
    from jobs.services.home import ADMIN

    people, _ = home.people()
    show.heading("Look around: the job goes on until Ctrl-C")
    show.plain(f"  Airflow  {home.settings.airflow}\n  MLflow   {home.settings.mlflow}")
    show.plain(f"  sign in as {ADMIN} with {people[ADMIN]}")


def _until_told() -> None:
    try:
        while True:
            sleep(3600)
    except KeyboardInterrupt:
        return
