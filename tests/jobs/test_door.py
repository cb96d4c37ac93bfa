"""By which name the services are asked, from whose page, and how many passwords may be tried."""

import asyncio
import json
from typing import Any
from urllib.parse import urlencode

import pytest

from jobs.services.door import LONGEST, Door, Guesses, names
from jobs.services.sign_in import Patient, named
from jobs.tracking.server import Gate
from tests.jobs.asking import ask, basic, fine

DOOR = Door(fine, names(5000))
NEAR = "127.0.0.1:5000"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:5000", 200),
        ("localhost:5000", 200),
        ("LocalHost:5000", 200),
        ("127.0.0.1", 403),
        ("127.0.0.1:5001", 403),
        ("localhost:50000", 403),
        ("localhost.:5000", 403),
        ("127.0.0.1:5000.evil.org", 403),
        ("rebound.evil.org:5000", 403),
        ("user@127.0.0.1:5000", 403),
        ("0.0.0.0:5000", 403),
        ("192.168.0.7:5000", 403),
        ("", 403),
    ],
)
def test_by_which_name_a_server_is_asked(host: str, status: int):
    assert ask(DOOR, "GET", "/", host=host)[0] == status


def test_a_request_without_a_name_or_with_two():
    assert ask(DOOR, "GET", "/")[0] == 403
    assert ask(DOOR, "GET", "/", ("host", "evil.org"), host=NEAR)[0] == 403
    assert ask(DOOR, "GET", "/", ("Host", NEAR), host=NEAR)[0] == 403
    signed = tuple(basic("admin:a").items())
    assert ask(DOOR, "GET", "/", *signed, *signed, host=NEAR)[0] == 403


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])
@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:5000", 200),
        ("http://localhost:5000", 403),  # not the page that this server has shown
        ("http://127.0.0.1:8080", 403),
        ("http://localhost:3000", 403),
        ("http://localhost", 403),
        ("https://127.0.0.1:5000", 403),
        ("http://127.0.0.1:50000", 403),
        ("http://127.0.0.1:5000.evil.org", 403),
        ("http://127.0.0.1:5000/", 403),
        ("http://127.0.0.1:5000 http://evil.org", 403),
        ("http://[::1]:5000", 403),
        ("https://evil.org", 403),
        ("null", 403),
        ("", 403),
    ],
)
def test_from_whose_page_a_request_comes(method: str, origin: str, status: int):
    assert ask(DOOR, method, "/api", host=NEAR, origin=origin)[0] == status


@pytest.mark.parametrize(
    ("site", "into", "status"),
    [
        ("same-origin", "empty", 200),
        ("none", "document", 200),
        ("cross-site", "document", 200),  # a link, such as one in an e-mail
        ("same-site", "document", 200),  # from Airflow's page to MLflow's
        ("cross-site", "image", 403),
        ("same-site", "script", 403),
        ("cross-site", "iframe", 403),
        ("cross-site", "empty", 403),
    ],
)
def test_what_other_pages_may_show(site: str, into: str, status: int):
    said = {"sec_fetch_site": site, "sec_fetch_dest": into}
    assert ask(DOOR, "GET", "/", host=NEAR, **said)[0] == status


@pytest.mark.parametrize("name", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"])
def test_a_request_has_one_method(name: str):
    assert ask(DOOR, "POST", "/", (name, "DELETE"), host=NEAR)[0] == 403


def test_no_other_way_in():
    sent: list[str] = []

    async def nobody(*_: Any) -> None:
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(message["type"])

    asyncio.run(Door(nobody, names(1))({"type": "websocket", "headers": []}, nobody, send))
    assert sent == ["websocket.close"]


# --- wrong passwords -----------------------------------------------------------------------------


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def guesses() -> tuple[Guesses, Clock]:
    clock = Clock()
    return Guesses(frozenset({"admin", "viewer"}), clock), clock


def test_each_wrong_password_costs_twice_the_time_of_the_one_before():
    found, clock = guesses()
    waits = []
    for _ in range(12):
        found.wrong("admin")
        waits.append(found.wait("admin"))
        clock.now += waits[-1]
        assert found.wait("admin") == 0
    assert waits == [0, 0, 1, 2, 4, 8, 16, 32, LONGEST, LONGEST, LONGEST, LONGEST]


def test_a_right_password_makes_up_for_all():
    found, clock = guesses()
    for _ in range(5):
        found.wrong("admin")
    clock.now += 4
    found.right("admin")
    found.wrong("admin")
    assert found.wait("admin") == 0


def test_people_do_not_wait_for_each_other_and_made_up_names_share_one_wait():
    found, _ = guesses()
    for number in range(100_000):
        found.wrong(f"nobody-{number}")
    assert found.wait("nobody-100001") == LONGEST
    assert found.wait("admin") == found.wait("viewer") == 0
    assert len(found._wrong) == len(found._until) == 1


def tried(gate: Any, password: str, who: str = "admin") -> tuple[int, dict[str, str]]:
    return ask(gate, "GET", "/", host=NEAR, **basic(f"{who}:{password}"))


def test_mlflow_looks_at_no_password_while_it_waits():
    clock = Clock()
    gate = Gate(fine, {"admin": "right", "viewer": "v"}, {"program": "key"})
    gate.guesses.clock = clock
    assert [tried(gate, str(n))[0] for n in range(3)] == [401] * 3
    for guess in ("right", "wrong"):
        status, headers = tried(gate, guess)
        assert (status, headers["retry-after"]) == (429, "2")
    assert tried(gate, "v", "viewer")[0] == 200
    assert tried(gate, "key", "program")[0] == 200
    assert ask(gate, "GET", "/", host=NEAR)[0] == 401  # a browser, before it asks its user
    clock.now = 1.0
    assert tried(gate, "right")[0] == 200
    assert tried(gate, "wrong")[0] == 401


def test_a_programs_key_cannot_be_tried_without_end():
    gate = Gate(fine, {"admin": "a"}, {"program": "key"})
    assert [tried(gate, str(n), "program")[0] for n in range(4)] == [401, 401, 401, 429]
    assert tried(gate, "", "program")[0] == 401
    assert tried(gate, "key", "program")[0] == 200


def airflow(right: str) -> Any:
    """Airflow's answers to a sign-in."""

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"].decode()
        status = 201 if right in body else 401
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        assert (await receive())["type"] == "http.disconnect"

    return app


JSON, FORM = "application/json", "application/x-www-form-urlencoded"


@pytest.mark.parametrize("path", ["/auth/token", "/auth/token/cli", "/auth/token/", "/auth//token"])
@pytest.mark.parametrize(("kind", "write"), [(JSON, json.dumps), (FORM, urlencode)])
def test_airflow_looks_at_no_password_while_it_waits(path: str, kind: str, write: Any):
    found, clock = guesses()
    patient = Patient(airflow("right"), found)

    def tried(password: str, who: str = "admin") -> int:
        body = write({"username": who, "password": password}).encode()
        return ask(patient, "POST", path, body=body, content_type=kind)[0]

    assert [tried(str(n)) for n in range(4)] == [401, 401, 401, 429]
    assert tried("right") == 429
    assert tried("right", "viewer") == 201
    clock.now = 1.0
    assert tried("right") == 201
    assert tried("wrong") == 401


def test_many_guesses_at_once_are_many():
    found, _ = guesses()
    looked = []

    async def slow(_scope: Any, _receive: Any, send: Any) -> None:
        looked.append(1)
        await asyncio.sleep(0.01)
        await send({"type": "http.response.start", "status": 401, "headers": []})

    async def once() -> None:
        async def receive() -> Any:
            return {"type": "http.request", "body": b'{"username": "admin"}'}

        async def send(_message: Any) -> None:
            pass

        scope = {"type": "http", "method": "POST", "path": "/auth/token", "headers": []}
        await Patient(slow, found)(scope, receive, send)

    async def all_at_once() -> None:
        await asyncio.gather(*(once() for _ in range(50)))

    asyncio.run(all_at_once())
    assert len(looked) == 3


def test_other_requests_to_airflow_are_not_touched():
    found, _ = guesses()
    patient = Patient(fine, found)
    for method, path in (("POST", "/api/v2/dags"), ("GET", "/auth/login")):
        assert {ask(patient, method, path)[0] for _ in range(9)} == {200}
    assert ask(patient, "POST", "/auth/token", body=b"x" * 20_000)[0] == 413


@pytest.mark.parametrize(
    ("content", "kind", "who"),
    [
        (b'{"username": "admin", "password": "p"}', JSON, "admin"),
        (b'{"username": "x", "username": "admin"}', JSON, "admin"),
        ('{"username": "admin"}'.encode("utf-16"), JSON, "admin"),
        (b"username=x&username=admin", FORM, "admin"),
        (b'{"a": "&username=admin&password=p&"}', FORM, "admin"),
        (b'["admin"]', JSON, ""),
        (b"\xff", JSON, ""),
        (b"\xff", FORM, ""),
        (b"[" * 9_000, JSON, ""),
        (b"", JSON, ""),
    ],
)
def test_whose_password_it_is(content: bytes, kind: str, who: str):
    assert named(content, kind) == who
