"""The MLflow server of `midstream up`: MLflow's own, behind a sign-in.

MLflow's sign-in (`--app-name basic-auth`) needs Flask-WTF, which nothing else here does, and has a
user base of its own.  This one knows the two people whom Airflow knows as well: who is not the
admin may look at everything and change nothing.
"""

import os
import re
from base64 import b64decode
from binascii import Error
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from hmac import compare_digest
from json import loads
from pathlib import Path
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

ADMIN = "admin"

HEALTH = "/health"
"""Anyone may ask whether the server is there."""

ASSISTANT = "/mlflow/assistant/"
"""MLflow's assistant runs commands on the server's machine: nobody needs that here."""

_LOOKS = re.compile(r".*/(search[\w-]*|get[\w-]*|graphql|batch-get|metrics/[\w-]+)")
"""Requests by POST that change nothing: MLflow's pages search this way."""


def app() -> App:
    """MLflow's application over the directory that the environment names, behind the gate."""
    home = Path(os.environ["MIDSTREAM_MLFLOW_HOME"])
    passwords = Path(os.environ["MIDSTREAM_PASSWORDS"])
    _settle(f"sqlite:///{home / 'mlflow.db'}", home / "artifacts")
    from mlflow.server.fastapi_app import app as mlflow

    return Gate(mlflow, loads(passwords.read_text(encoding="utf-8")))


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


@dataclass(frozen=True)
class Gate:
    """Lets in who knows a password; who is not the admin only looks."""

    inner: App
    people: Mapping[str, str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # none of MLflow's pages needs one
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http" and (refusal := self.refusal(scope)):
            await _answer(send, refusal)
        else:
            await self.inner(scope, receive, send)

    def refusal(self, scope: Scope) -> int:
        """The status to refuse a request with; 0 if it may pass."""
        if scope["path"] == HEALTH:
            return 0
        if ASSISTANT in scope["path"]:
            return 404
        name = self.who(dict(scope["headers"]).get(b"authorization", b""))
        if name is None:
            return 401
        return 0 if name == ADMIN or looks(scope["method"], scope["path"]) else 403

    def who(self, header: bytes) -> str | None:
        """Who it is, if the password is right."""
        kind, _, coded = header.partition(b" ")
        try:
            name, _, password = b64decode(coded, validate=True).decode().partition(":")
        except (Error, UnicodeDecodeError):
            return None
        known = self.people.get(name)
        right = known is not None and compare_digest(known.encode(), password.encode())
        return name if kind.lower() == b"basic" and right else None


def looks(method: str, path: str) -> bool:
    """Whether a request changes nothing."""
    return method in ("GET", "HEAD", "OPTIONS") or bool(method == "POST" and _LOOKS.fullmatch(path))


_WORDS = {
    401: b"sign in first",
    403: b"you may look, but not change anything",
    404: b"not part of this server",
}


async def _answer(send: Send, status: int) -> None:
    headers = [(b"content-type", b"text/plain")]
    if status == 401:
        headers.append((b"www-authenticate", b'Basic realm="Midstream"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": _WORDS[status]})
