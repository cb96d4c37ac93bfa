"""The MLflow server of `midstream up`: MLflow's own, behind a sign-in.

MLflow's sign-in (`--app-name basic-auth`) needs Flask-WTF, which nothing else here does, and has a
user base of its own.  This one knows the two people whom Airflow knows as well: who is not the
admin may look at everything and change nothing.
"""

import os
from base64 import b64decode
from binascii import Error
from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from json import loads
from pathlib import Path

from jobs.services.door import App, Door, Guesses, Receive, Scope, Send, answer, names, not_yet
from jobs.services.home import ADMIN, PROGRAM
from jobs.tracking.looks import looks

HEALTH = "/health"
"""Anyone may ask whether the server is there."""

ASSISTANT = "/mlflow/assistant/"
"""MLflow's assistant runs commands on the server's machine: nobody needs that here."""

REALM = (b"www-authenticate", b'Basic realm="Midstream", charset="UTF-8"')


def app() -> App:
    """MLflow's application over the directory that the environment names, behind the gate."""
    home = Path(os.environ["MIDSTREAM_MLFLOW_HOME"])
    passwords = _read("MIDSTREAM_PASSWORDS")
    programs = {PROGRAM: _read("MIDSTREAM_KEYS")["tracking"]}
    _settle(f"sqlite:///{home / 'mlflow.db'}", home / "artifacts")
    from mlflow.server.fastapi_app import app as mlflow

    port = int(os.environ["MIDSTREAM_MLFLOW_PORT"])
    return Door(Gate(mlflow, passwords, programs), names(port))


def _read(variable: str) -> dict[str, str]:
    """The file that a variable of the environment names."""
    found: dict[str, str] = loads(Path(os.environ[variable]).read_text(encoding="utf-8"))
    return found


def _settle(database: str, artifacts: Path) -> None:
    """Tell MLflow's application what its own start script would tell it."""
    from mlflow.server import constants
    from mlflow.server.handlers import initialize_backend_stores

    root = "mlflow-artifacts:/"
    os.environ |= {
        constants.BACKEND_STORE_URI_ENV_VAR: database,
        constants.REGISTRY_STORE_URI_ENV_VAR: database,
        constants.ARTIFACT_ROOT_ENV_VAR: root,
        constants.ARTIFACTS_DESTINATION_ENV_VAR: str(artifacts),
        constants.SERVE_ARTIFACTS_ENV_VAR: "true",
    }
    initialize_backend_stores(database, database, root)


@dataclass
class Gate:
    """Lets in who knows a password; who is not the admin only looks."""

    inner: App
    people: Mapping[str, str]
    programs: Mapping[str, str] = field(default_factory=dict)
    """Names and keys of programs, which write and which nobody can guess."""
    guesses: Guesses = field(init=False)

    def __post_init__(self) -> None:
        self.guesses = Guesses(frozenset(self.people))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] == HEALTH:
            await self.inner(scope, receive, send)
        elif ASSISTANT in scope["path"]:
            await answer(send, 404, "not part of this server")
        else:
            await self._ask(scope, receive, send)

    async def _ask(self, scope: Scope, receive: Receive, send: Send) -> None:
        name, password = signed(dict(scope["headers"]).get(b"authorization", b""))
        program = same(self.programs.get(name, ""), password) and name in self.programs
        if password and not program and (seconds := self.guesses.wait(name)):
            await not_yet(send, seconds)
        elif not program and not self._knows(name, password):
            await answer(send, 401, "sign in first", REALM)
        elif program or name == ADMIN or looks(scope["method"], scope["path"]):
            await self.inner(scope, receive, send)
        else:
            await answer(send, 403, "you may look, but not change anything")

    def _knows(self, name: str, password: str) -> bool:
        """Whether it is that person; asking without a password is no guess."""
        if not password:
            return False
        right = same(self.people.get(name, ""), password)
        (self.guesses.right if right else self.guesses.wrong)(name)
        return right


def signed(header: bytes) -> tuple[str, str]:
    """A name and a password; two empty ones where there are none."""
    kind, _, coded = header.partition(b" ")
    try:
        name, _, password = b64decode(coded, validate=True).decode().partition(":")
    except (Error, UnicodeDecodeError):
        return "", ""
    return (name, password) if kind.lower() == b"basic" else ("", "")


def same(one: str, other: str) -> bool:
    """Whether two passwords are, which takes as long if they are not."""
    return compare_digest(one.encode(), other.encode())
