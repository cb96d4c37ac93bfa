"""`midstream up`: the jobs, Airflow and MLflow, kept running until `midstream down`."""

from pathlib import Path
from signal import SIGTERM, default_int_handler, signal
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from jobs import show
from jobs.errors import InputError

if TYPE_CHECKING:
    from jobs.services.home import Home, Settings

HOME = Path(".midstream")

HomeOption = Annotated[
    Path, typer.Option("--home", help="Where passwords, databases and logs are.", metavar="DIR")
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")]


def up(  # noqa: PLR0913  # options, each by its name
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="JOB...", help="Job files.", show_default=False)
    ] = None,
    *,
    home: HomeOption = HOME,
    airflow_port: Port = 8080,
    mlflow_port: Port = 5000,
    wait: Annotated[float, typer.Option(min=1, help="Give up after so many seconds.")] = 180,
    status: Annotated[bool, typer.Option("--status", help="Only say how everything is.")] = False,
    json: show.Json = False,
) -> int:
    """Start the jobs, Airflow and MLflow on this machine, and keep them running."""
    from jobs.services.home import Home

    place = Home.of(home)
    if status:
        return _tell(place, json=json)
    if not files:
        raise InputError("name at least one job file; see 'midstream up --help'", "JOB")
    from jobs.services import manage
    from jobs.services.home import Settings

    jobs = manage.chosen_jobs(files)
    settings = Settings(
        manage.chosen_port(airflow_port, "--airflow-port"),
        manage.chosen_port(mlflow_port, "--mlflow-port"),
        jobs,
    )
    people, new = place.people()
    signal(SIGTERM, default_int_handler)  # what ends this before all is well ends the services, too
    start(place, settings, wait)
    return _tell(place, json=json, people=people if new else None)


def start(home: "Home", settings: "Settings", seconds: float) -> None:
    """Start the services and wait until all are well; if that fails, none is left."""
    from jobs.services import manage

    supervisor = manage.start(home, settings)
    try:
        with show.progress("starting Airflow, MLflow and the jobs") as progress:
            for well in manage.until_well(home, supervisor, seconds):
                progress(sum(well.values()), len(well))
    except BaseException:
        manage.give_up(home, supervisor)
        raise


def _tell(place: Any, *, json: bool, people: dict[str, str] | None = None) -> int:
    from jobs.services.manage import status

    found = status(place)
    if json:
        show.as_json(found | ({"people": people} if people else {}))
    else:
        _show(found, people)
    return 0 if found["up"] and all(c["healthy"] for c in found["components"]) else 1


def _show(found: dict[str, Any], people: dict[str, str] | None) -> None:
    if not found["up"]:
        show.plain(f"nothing is up in {found['home']}: `midstream up JOB...` starts it")
        return
    show.table(
        ("", "process", "died"),
        [
            (
                Text.assemble(("✓ ", "green") if c["healthy"] else ("✗ ", "red"), c["name"]),
                str(c["pid"] or ""),
                f"{c['restarts']} x, last {c['last']}" if c["restarts"] else "",
            )
            for c in found["components"]
        ],
        right="process",
    )
    show.out.print()
    show.plain(f"Airflow    {found['airflow']}\nMLflow     {found['mlflow']}")
    show.plain(f"logs       {found['logs']}")
    if people:
        for name, password in people.items():
            show.plain(f"{name:<10} {password}")
        show.note(f"These passwords are shown once, and kept in {found['passwords']}")
    else:
        show.plain(f"passwords  {found['passwords']}")
    show.note("To end all of it: midstream down")
