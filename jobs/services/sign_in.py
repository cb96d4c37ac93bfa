"""Who may sign in to Airflow: its simple auth manager, behind the door that MLflow has as well.

Airflow itself takes any host's name and any number of wrong passwords.  This is its own seam for
more: an auth manager may bring middleware.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from json import loads
from typing import Any
from urllib.parse import parse_qsl

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.configuration import conf

from jobs.services.door import (
    App,
    Door,
    Guesses,
    Receive,
    Scope,
    Send,
    answer,
    names,
    not_yet,
    values,
)

MOST = 10_000
"""Bytes of a name and a password."""


class SignIn(SimpleAuthManager):  # type: ignore[misc]  # Airflow is not checked
    """Airflow's own, which puts two things in front of its application."""

    def get_fastapi_middlewares(self) -> list[tuple[Any, dict[str, Any]]]:
        """The last one is asked first."""
        people = frozenset(user.username for user in self.get_users())
        return [
            *super().get_fastapi_middlewares(),
            (Patient, {"guesses": Guesses(people)}),
            (Door, {"names": names(conf.getint("api", "port"))}),
        ]


@dataclass
class Patient:
    """Keeps those waiting who try one password after the other."""

    app: App
    guesses: Guesses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not signs_in(scope):
            await self.app(scope, receive, send)
            return
        content = await _content(receive)
        name = named(content, "".join(values(scope["headers"], b"content-type")))
        if len(content) > MOST:
            await answer(send, 413, "no name and password is as long as that")
        elif seconds := self.guesses.wait(name):
            await not_yet(send, seconds)
        else:
            self.guesses.wrong(name)  # until it turns out to be right: many at once are many
            await self.app(scope, _again(content, receive), self._watched(name, send))

    def _watched(self, name: str, send: Send) -> Send:
        async def watched(message: Mapping[str, Any]) -> None:
            if message.get("status") == 201:
                self.guesses.right(name)
            await send(message)

        return watched


def signs_in(scope: Scope) -> bool:
    """Whether a request brings a password."""
    return bool(scope["method"] == "POST" and scope["path"].startswith("/auth"))


async def _content(receive: Receive) -> bytes:
    """What a request brings, up to a little more than is allowed."""
    found = b""
    while len(found) <= MOST:
        message = await receive()
        found += message.get("body", b"")
        if not message.get("more_body"):
            break
    return found


def _again(content: bytes, receive: Receive) -> Receive:
    """What was read already, and then whatever comes."""
    left = [{"type": "http.request", "body": content, "more_body": False}]

    async def again() -> Any:
        return left.pop() if left else await receive()

    return again


def named(content: bytes, kind: str) -> str:
    """Whose password it is, as Airflow reads it; nobody's where that cannot be read."""
    with suppress(ValueError, RecursionError):
        form = kind.startswith("application/x-www-form-urlencoded")
        found = dict(parse_qsl(content.decode())) if form else loads(content)
        return str(found.get("username", "")) if isinstance(found, dict) else ""
    return ""
