"""The processes that make up the services: what each is called with, and what it must know."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from json import dumps
from pathlib import Path
from socket import socket

from jobs.environment import needed, passed
from jobs.services.home import ADMIN, PROGRAM, VIEWER, Home

DAGS = Path(__file__).parents[2] / "dags"

BIN = Path(sys.executable).parent

SERVER = (
    *("-m", "uvicorn", "--factory", "jobs.tracking.server:app", "--host", "127.0.0.1"),
    "--no-proxy-headers",  # nothing stands in front of it that could be believed
)


@dataclass(frozen=True)
class Component:
    """A process to keep running."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    after: int | None = None
    """It starts once somebody listens at that port."""

    @property
    def awaited(self) -> bool:
        """Whether what it needs is there."""
        if self.after is None:
            return True
        with socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.after)) == 0


def components(home: Home) -> list[Component]:
    """In the order in which they start: the slowest first, and the jobs, which wait for no one."""
    settings = home.settings
    mlflow = (sys.executable, *SERVER, "--port", str(settings.mlflow_port))
    orchestrates = airflow(home)
    # Tasks that start before the API is there fail.
    after = {"airflow-scheduler": settings.airflow_port}
    commands = {
        "airflow-api": ("api-server",),
        "airflow-scheduler": ("scheduler", "--skip-serve-logs"),
        "airflow-dags": ("dag-processor",),
        "airflow-triggerer": ("triggerer", "--skip-serve-logs"),
    }
    first, *others = (
        Component(name, (_bin("airflow"), *words), orchestrates, after.get(name))
        for name, words in commands.items()
    )
    jobs = (
        Component(f"job-{name}", (_bin("midstream"), "run", file), passed(_around()))
        for name, file in settings.jobs.items()
    )
    return [first, Component("mlflow", mlflow, tracks(home)), *others, *jobs]


def migrate_database(home: Home) -> Component:
    """What has to be done before Airflow starts, once for each of its versions."""
    return Component("airflow-database", (_bin("airflow"), "db", "migrate"), airflow(home))


def _bin(name: str) -> str:
    return str(BIN / name)


def _around() -> dict[str, str]:
    """What there is, and the way to the programs and to this machine."""
    near = "127.0.0.1,localhost"
    path = os.pathsep.join([str(BIN), *filter(None, [os.environ.get("PATH")])])
    always = {"PATH": path, "NO_PROXY": near, "no_proxy": near, "PYTHONUNBUFFERED": "1"}
    return dict(os.environ) | always


def airflow(home: Home) -> dict[str, str]:
    """The variables of Airflow's components: its own, and what its tasks' commands will need."""
    settings = home.settings
    tasks = {
        "MIDSTREAM_JOBS": dumps(list(settings.jobs.values())),
        "MIDSTREAM_HOME": str(home.root.parent),
        "MLFLOW_TRACKING_URI": settings.mlflow,
        "MLFLOW_TRACKING_USERNAME": PROGRAM,
        "MLFLOW_TRACKING_PASSWORD": home.keys()["tracking"],
    }
    return passed(_around()) | tasks | _airflow(home)


def tracks(home: Home) -> dict[str, str]:
    """The MLflow server's variables: where its things are, and who may sign in."""
    home.people()
    home.keys()
    own = {
        "MIDSTREAM_MLFLOW_HOME": str(home.mlflow),
        "MIDSTREAM_MLFLOW_PORT": str(home.settings.mlflow_port),
        "MIDSTREAM_PASSWORDS": str(home.passwords),
        "MIDSTREAM_KEYS": str(home.secrets),
        "MLFLOW_ENABLE_AI_GATEWAY": "false",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    return needed(_around()) | own


def _airflow(home: Home) -> dict[str, str]:
    url, keys = home.settings.airflow, home.keys()
    options = {
        "CORE__DAGS_FOLDER": DAGS,
        "CORE__LOAD_EXAMPLES": False,
        "CORE__DAGS_ARE_PAUSED_AT_CREATION": False,
        "CORE__PARALLELISM": 4,
        "CORE__AUTH_MANAGER": "jobs.services.sign_in.SignIn",
        "CORE__FERNET_KEY": keys["fernet"],
        "CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{ADMIN}:admin,{VIEWER}:viewer",
        "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": home.passwords,
        "API__HOST": "127.0.0.1",
        "API__PORT": home.settings.airflow_port,
        "API__BASE_URL": url,
        "API__SECRET_KEY": keys["session"],
        "API_AUTH__JWT_SECRET": keys["jwt"],
        # SQLite has one writer: on a busy machine the others wait longer than its five seconds.
        "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home.database}?timeout=60",
        "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": 5,
        "DAG_PROCESSOR__PARSING_PROCESSES": 1,
        "DAG_PROCESSOR__REFRESH_INTERVAL": 10,
        "LOGGING__BASE_LOG_FOLDER": home.logs / "tasks",
        "LOGGING__DAG_PROCESSOR_CHILD_PROCESS_LOG_DIRECTORY": home.logs / "dags",
        # A task whose worker has died is found within seconds, and tried again.
        "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": 10,
        "SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": 15,
        "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": 0.1,
        "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": 60,
    }
    set_ = {f"AIRFLOW__{name}": str(value) for name, value in options.items()}
    return set_ | {"AIRFLOW_HOME": str(home.airflow)}
