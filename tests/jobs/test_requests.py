"""Rows of the table of requests that say nothing, or what nobody can do: none of them ends a job."""

from dataclasses import asdict, replace
from json import dumps
from typing import Any

import pyarrow as pa
import pytest

from jobs.engine.progress import last
from jobs.engine.requests import REQUESTS, Request, ask, told
from jobs.migrations import records
from optimizer.plan import to_json
from tests.jobs.test_migrate import THREE, Stage, stage

__all__ = ["stage"]

WISH = Request(
    "wish", 1, query="three", strategy="background", plan={"op": "source", "alias": "a"}
)


def append(stage: Stage, content: str | None, id_: str | None = "wish", at: int | None = 1) -> None:
    """A row as any program may append it."""
    store = stage.watched.store
    ask(store, Request("made", 0, kind="abort", target="nothing"))  # the table, if it is not there
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
    "an unknown kind": (wish(kind="explode"), "kind: Input should be"),
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


@pytest.mark.parametrize("name", BAD)
def test_a_row_that_asks_for_nothing_doable(stage: Stage, name: str):
    content, why = BAD[name]
    append(stage, content)
    assert stage.batches(2).batch == 4
    event = told(stage.watched.store)[-1]
    assert (event.id, event.phase) == ("wish", "refused")
    assert why in event.detail
    found = stage.json("migration", "status", "JOB", "wish")
    assert (found["phase"], found["events"][-1]["detail"]) == ("refused", event.detail)
    assert event.detail in stage.says(0, "migration", "status", "JOB")


def test_the_next_process_goes_on_beside_such_rows(stage: Stage):
    append(stage, "{")
    append(stage, None, None, None)
    stage.batches()
    assert [record.phase for record in records(stage.watched.store)] == ["refused", "refused"]
    again = replace(stage, engine=replace_engine(stage))
    assert again.batches(2).batch == 5
    assert stage.json(*THREE, "--yes")["id"] is not None
    again.batches(3)
    again.engine.close()
    assert str(again.engine.plans["three"]) == "((a b) c)"


def replace_engine(stage: Stage) -> Any:
    """Another process with the same job."""
    old = stage.engine
    return type(old)(old.job, stage.watched.store, old.executor, old.clock)


def test_two_rows_of_one_id_are_answered_once(stage: Stage):
    plan = to_json(stage.engine.plans["three"].root)
    for reason in ("once", "again"):
        append(stage, wish(plan=plan, reason=reason, at_batch=99))
    stage.batches()
    assert [event.phase for event in told(stage.watched.store) if event.id == "wish"] == ["waiting"]


def test_a_torn_file_of_requests_is_told_once_and_ends_nothing(stage: Stage):
    append(stage, wish(), "first")
    before = set(stage.watched.store.files(REQUESTS))
    append(stage, wish())
    (file,) = set(stage.watched.store.files(REQUESTS)) - before
    (stage.watched.storage / REQUESTS / file.path).write_bytes(b"PAR1 torn")
    stage.batches(3)
    assert last(stage.watched.store).batch == 5
    assert [e.phase for e in told(stage.watched.store) if e.id == REQUESTS] == ["refused"]
    assert "control/requests cannot be read" in stage.says(1, "migration", "status", "JOB")
