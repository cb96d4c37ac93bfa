"""What every request to the services passes first: by which name, from whose page, how often wrong.

Browsers send a person's sign-in along with what other pages ask for.  So a request passes only if
it names this server as its user does, and comes from no other page than this server's own: another
port of the same machine is somebody else's.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

FREE = 3
"""Wrong passwords in a row that cost nothing: people mistype."""
LONGEST = 60.0
"""Seconds to wait at most before the next password is looked at."""

_ONCE = (b"host", b"origin", b"authorization", b"content-type")
_OTHER_METHODS = (b"x-http-method-override", b"x-http-method", b"x-method-override")
_ELSEWHERE = (b"cross-site", b"same-site")


def names(port: int) -> frozenset[str]:
    """By which names a server is asked that listens at a port of this machine."""
    return frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})


@dataclass
class Door:
    """Lets requests in that name this server, and come from no other page."""

    app: App
    names: frozenset[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # no page of the services needs one
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http" and (reason := stranger(scope, self.names)):
            await answer(send, 403, reason)
        else:
            await self.app(scope, receive, send)


def stranger(scope: Scope, known: frozenset[str]) -> str:
    """Why a request is not let in; empty if it may pass."""
    headers = scope["headers"]
    if any(len(values(headers, name)) > 1 for name in _ONCE):
        return "a header that there is one of was sent twice"
    if any(values(headers, name) for name in _OTHER_METHODS):
        return "a request has one method, and no header that says another"
    host = "".join(values(headers, b"host")).lower()
    if host not in known:
        return f"this server is {' or '.join(sorted(known))}"
    origin = values(headers, b"origin")
    if (origin and origin != [f"http://{host}"]) or _from_another_page(headers):
        return "another page has asked for this"
    return ""


def _from_another_page(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a browser says so of a request that carries no origin; following a link is fine."""
    said = dict(headers)
    elsewhere = said.get(b"sec-fetch-site", b"") in _ELSEWHERE
    return elsewhere and said.get(b"sec-fetch-dest") != b"document"


def values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    """What a request says under a name, however often."""
    return [value.decode("latin-1") for key, value in headers if key.lower() == name]


async def answer(send: Send, status: int, words: str, *headers: tuple[bytes, bytes]) -> None:
    """Answer instead of the application."""
    sent = [(b"content-type", b"text/plain; charset=utf-8"), *headers]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": words.encode()})


@dataclass
class Guesses:
    """Wrong passwords in a row, by name: the next one is looked at after ever longer.

    Whoever reaches the services is on this machine and may choose among millions of its addresses:
    so addresses do not count, and all names that nobody has are one.
    """

    known: frozenset[str]
    clock: Callable[[], float] = monotonic
    _wrong: dict[str, int] = field(default_factory=dict)
    _until: dict[str, float] = field(default_factory=dict)

    def wait(self, name: str) -> float:
        """Seconds until a password of theirs is looked at; 0 for at once."""
        return max(0.0, self._until.get(self._key(name), 0.0) - self.clock())

    def wrong(self, name: str) -> None:
        """One more."""
        key = self._key(name)
        self._wrong[key] = self._wrong.get(key, 0) + 1
        if (over := self._wrong[key] - FREE) >= 0:
            self._until[key] = self.clock() + min(LONGEST, 2.0 ** min(over, 10))

    def right(self, name: str) -> None:
        """The person it is."""
        self._wrong.pop(self._key(name), None)
        self._until.pop(self._key(name), None)

    def _key(self, name: str) -> str:
        return name if name in self.known else ""


async def not_yet(send: Send, seconds: float) -> None:
    """Answer that it is too early for another password."""
    pause = (b"retry-after", str(int(seconds) + 1).encode())
    await answer(send, 429, "too many wrong passwords: wait, then try again", pause)
