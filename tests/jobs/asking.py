"""Asks an ASGI application as a browser or a program would, without a server."""

import asyncio
from base64 import b64encode
from typing import Any

HERE = {"host": "127.0.0.1:5000"}


def basic(who: str) -> dict[str, str]:
    """A sign-in, `name:password`."""
    return {"authorization": "Basic " + b64encode(who.encode()).decode()}


def ask(
    app: Any, method: str, path: str, *headers: tuple[str, str], body: Any = b"", **more: str
) -> tuple[int, dict[str, str]]:
    """The status, and the headers of the answer; `more` are headers that a test has one of."""
    sent: list[Any] = []
    left = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        return left.pop() if left else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    said = [*more.items(), *headers]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [(name.replace("_", "-").encode(), text.encode()) for name, text in said],
    }
    asyncio.run(app(scope, receive, send))
    (begun,) = [one for one in sent if one["type"] == "http.response.start"]
    return begun["status"], {k.decode(): v.decode() for k, v in begun["headers"]}


async def fine(_scope: Any, receive: Any, send: Any) -> None:
    """An application that lets everybody do everything."""
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})
