"""The directory in which the services keep everything: passwords, databases, logs, who runs."""

import os
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from json import dumps, loads
from pathlib import Path
from secrets import token_bytes, token_hex, token_urlsafe
from typing import Any

ADMIN, VIEWER = "admin", "viewer"
PROGRAM = "midstream"
"""As whom `midstream track` signs in to MLflow, with a key of its own."""


@dataclass(frozen=True)
class Settings:
    """What was asked for: where the two pages are, and which jobs run."""

    airflow_port: int
    mlflow_port: int
    jobs: Mapping[str, str]
    """The job files, absolute, by the names of the jobs."""

    @property
    def airflow(self) -> str:
        """Where Airflow's pages are."""
        return f"http://127.0.0.1:{self.airflow_port}"

    @property
    def mlflow(self) -> str:
        """Where MLflow's pages are."""
        return f"http://127.0.0.1:{self.mlflow_port}"


@dataclass(frozen=True)
class Home:
    """Paths, and the small files behind some of them."""

    root: Path

    @classmethod
    def of(cls, directory: Path) -> "Home":
        """Beside the jobs' own directories, under a name that a job is not likely to have."""
        return cls(directory.absolute() / "services")

    def make(self) -> None:
        """Make the directories, which nobody else may look into."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.root.chmod(0o700)
        for path in (self.logs, self.airflow, self.mlflow):
            path.mkdir(exist_ok=True)

    @property
    def logs(self) -> Path:
        """A file for each component, and Airflow's own of each task."""
        return self.root / "logs"

    @property
    def airflow(self) -> Path:
        """Airflow's own directory."""
        return self.root / "airflow"

    @property
    def database(self) -> Path:
        """What Airflow's processes share."""
        return self.airflow / "airflow.db"

    @property
    def mlflow(self) -> Path:
        """MLflow's database and the artifacts."""
        return self.root / "mlflow"

    @property
    def passwords(self) -> Path:
        """Who may sign in, in the form that Airflow reads."""
        return self.root / "passwords.json"

    def log(self, component: str) -> Path:
        """What a component has said."""
        return self.logs / f"{component}.log"

    def people(self) -> tuple[dict[str, str], bool]:
        """The passwords by name, and whether they have only just been made."""
        new = not self.passwords.exists()
        if new:
            self.make()
            _keep_secret(self.passwords, {ADMIN: token_urlsafe(12), VIEWER: token_urlsafe(12)})
        return _read(self.passwords), new

    @property
    def secrets(self) -> Path:
        """The keys' file."""
        return self.root / "keys.json"

    def keys(self) -> dict[str, str]:
        """With which Airflow signs and encrypts, and a program signs in to MLflow."""
        found: dict[str, str] = _read(self.secrets) if self.secrets.exists() else {}
        complete = _keys() | found
        if complete != found:  # an older version made fewer
            _keep_secret(self.secrets, complete)
        return complete

    @property
    def settings(self) -> Settings:
        """As they were last asked for."""
        return Settings(**_read(self.root / "settings.json"))

    @property
    def has_settings(self) -> bool:
        """Whether anything was ever started here."""
        return (self.root / "settings.json").exists()

    def keep(self, settings: Settings) -> None:
        """For the supervisor, and for those who ask later."""
        _write(self.root / "settings.json", asdict(settings))

    def note(self, components: Sequence[Mapping[str, Any]]) -> None:
        """How the components are, for those who ask."""
        _write(self.root / "components.json", components)

    @property
    def components(self) -> list[dict[str, Any]]:
        """How they were when that last changed."""
        path = self.root / "components.json"
        found: list[dict[str, Any]] = _read(path) if path.exists() else []
        return found


def _read(path: Path) -> Any:
    return loads(path.read_text(encoding="utf-8"))


def _write(path: Path, content: Any) -> None:
    """So that there is never half of it."""
    draft = path.with_suffix(".draft")
    draft.write_text(dumps(content, indent=2), encoding="utf-8")
    draft.replace(path)


def _keys() -> dict[str, str]:
    fernet = urlsafe_b64encode(token_bytes(32)).decode()
    others = {name: token_hex(32) for name in ("jwt", "session", "tracking")}
    return others | {"fernet": fernet}


def _keep_secret(path: Path, content: Mapping[str, str]) -> None:
    """Readable by its owner from the first byte on, and never half of it."""
    draft = path.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(dumps(content, indent=2))
    draft.replace(path)
