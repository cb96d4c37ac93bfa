"""Rows of the table of requests that say nothing, or nothing doable: none of them ends a job."""

from dataclasses import asdict, replace
from json import dumps
from typing import Any

import pyarrow as pa

from jobs.backends.duckdb.backend import DuckBackend
from jobs.engine.microbatch import Engine
from jobs.migrations import records
from jobs.tables.names import REQUESTS
from jobs.tables.progress import last
from jobs.tables.requests import Request, append_request, read_events
from optimizer.plan import to_json
from tests.jobs import small
from tests.jobs.test_migrate import THREE, Stage, stage

__all__ = ["stage"]

WISH = Request("wish", 1, query="three", strategy="background", plan={"op": "source", "alias": "a"})


def append(stage: Stage, content: str | None, id_: str | None = "wish", at: int | None = 1) -> None:
    """A row as any program may append it."""
    store = stage.watched.store
    append_request(
        store, Request("made", 0, kind="abort", target="nothing")
    )  # the table, if it is not there
    row = pa.table({"id": [id_], "at": [at], "content": [content]}, schema=store.schema(REQUESTS))
    store.commit(REQUESTS, [store.put(REQUESTS, row)], 0, writer=f"by {id_} {content}"[:50])


def wish(**fields: Any) -> str:
    return dumps(asdict(WISH) | fields)


BAD: dict[str, tuple[str | None, str]] = {
    "nothing": (None, "Invalid JSON"),
    "no text": ("", "Invalid JSON"),
    "torn": (wish()[:40], "Invalid JSON"),
    "no object": ("[]", "should be an object"),
    "nested without end": ("[" * 100_000, "recursion limit exceeded"),
    "a field of another version": (wish(place="db"), "place: Unexpected keyword argument"),
    "a field missing": ('{"id": "wish"}', "at: Field required"),
    "another type": (wish(proof="many"), "proof: Input should be a valid integer"),
    "no number": (wish(saves=float("nan")), "saves: Input should be a finite number"),
    "more digits than a number may have": (wish(at="AT").replace('"AT"', "9" * 5000), "out of"),
    "an unknown kind": (wish(kind="explode"), "kind: String should match"),
    "another id": (wish(id="other"), "its id is 'other' elsewhere in its row"),
    "an unknown query": (wish(query="four"), "the job has no query four"),
    "an unknown strategy": (wish(strategy="magic"), "there is no strategy magic"),
    "no plan": (wish(plan=None), "the request names no plan"),
    "an empty plan": (wish(plan={}), "op"),
    "what is no plan": (wish(plan={"op": 7, "inputs": {"a": None}}), "op"),
    "a plan of a part of the query": (wish(), "the plan reads a, the query a, b, c"),
    "a plan that is wrong in depth": (
        wish(plan={"op": "project", "columns": [[]], "inputs": [{"op": "source", "alias": "a"}]}),
        "",
    ),
}


def test_rows_that_ask_for_nothing_doable(stage: Stage):
    """Each is refused with its reason, which is shown; the job goes on."""
    for name, (content, _) in BAD.items():
        append(stage, content and content.replace('"id": "wish"', f'"id": "{name}"'), name)
        stage.batches()
    assert stage.engine.progress.batch == 2 + len(BAD)
    answers = {event.id: event for event in read_events(stage.watched.store) if event.id in BAD}
    assert {name: answers[name].phase for name in BAD} == dict.fromkeys(BAD, "refused")
    details = {name: event.detail for name, event in answers.items()}
    assert {name: details[name] for name, (_, why) in BAD.items() if why not in details[name]} == {}


def test_what_was_refused_is_shown(stage: Stage):
    append(stage, wish(place="db"))
    stage.batches()
    assert stage.json("migration", "status", "JOB", "wish")["phase"] == "refused"
    assert "place: Unexpected keyword" in stage.says(0, "migration", "status", "JOB")
    append(stage, wish(id="odd", plan={"op": 7}), "odd", 2)
    stage.batches()
    assert "to what is no plan" in stage.says(0, "migration", "status", "JOB", "odd")


def test_the_next_process_goes_on_beside_such_rows(stage: Stage):
    append(stage, "{")
    append(stage, None, None, None)
    stage.batches()
    assert [record.phase for record in records(stage.watched.store)] == ["refused", "refused"]
    engine = Engine(stage.engine.job, stage.watched.store, DuckBackend(), lambda: small.START)
    again = replace(stage, engine=engine)
    stage.json(*THREE, "--yes")
    assert again.batches(3).batch == 6
    assert again.plan == "((a b) c)"
    engine.close()


def test_two_rows_of_one_id_are_answered_once(stage: Stage):
    plan = to_json(stage.engine.plans["three"].root)
    for reason in ("once", "again"):
        append(stage, wish(plan=plan, reason=reason, at_batch=99))
    stage.batches()
    assert [event.phase for event in read_events(stage.watched.store) if event.id == "wish"] == [
        "waiting"
    ]


def test_a_torn_file_of_requests_is_told_once_and_ends_nothing(stage: Stage):
    append(stage, wish(), "first")
    before = set(stage.watched.store.files(REQUESTS))
    append(stage, wish())
    (file,) = set(stage.watched.store.files(REQUESTS)) - before
    (stage.watched.storage / REQUESTS / file.path).write_bytes(b"PAR1 torn")
    stage.batches(3)
    assert last(stage.watched.store).batch == 5
    assert [e.phase for e in read_events(stage.watched.store) if e.id == REQUESTS] == ["refused"]
    assert f"{REQUESTS}/{file.path} cannot be read" in stage.says(1, "migration", "status", "JOB")
