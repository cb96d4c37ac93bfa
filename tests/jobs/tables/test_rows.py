"""Rows of control tables that another version wrote: read, or refused in a line."""

from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from jobs.deciding.decisions import Candidate, Decision, DecisionLog
from jobs.engine.migration.definition import Migration
from jobs.errors import RefusedError
from jobs.tables import progress, requests
from jobs.tables.delta_store import DeltaStore
from jobs.tables.names import DECISIONS, MIGRATIONS, PROGRESS
from jobs.tables.progress import Progress
from jobs.tables.requests import Event

DONE = asdict(Progress(
    batch=0,
    streams={"a": progress.StreamStats(3)},
    operators={"x": progress.OperatorStats(1, 2, 16, 0.5)},
))  # fmt: skip
DECIDED = asdict(progress.BatchDecision(0, 7))


@pytest.fixture
def store(tmp_path: Path) -> DeltaStore:
    return DeltaStore(tmp_path)


def put(store: DeltaStore, table: str, content: dict[str, Any]) -> None:
    rows = pa.table({"batch": pa.array([0], pa.int64()), "content": [dumps(content)]})
    store.create(table, rows.schema)
    store.commit(table, [store.put(table, rows, name=f"{0:012d}")], 0)


def without(content: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name not in names}


def test_what_an_earlier_version_did_not_write_has_its_default(store: DeltaStore):
    flow, work = {"rows": 3}, DONE["operators"]["x"]
    put(store, PROGRESS, {"batch": 0, "streams": {"a": flow}, "operators": {"x": work}})
    put(store, DECISIONS, {"batch": 0, "clock": 7})
    assert progress.last(store) == Progress(
        batch=0,
        streams={"a": progress.StreamStats(3)},
        operators={"x": progress.OperatorStats(1, 2, 16, 0.5)},
    )
    assert progress.latest(store) == progress.decided(store, 0) == progress.BatchDecision(0, 7)


LATER = "control/{} has mood: it was written by another version of midstream, a newer one; go on with that one, or give the job another storage"  # noqa: E501


@pytest.mark.parametrize(
    "content",
    [
        DONE | {"mood": 1},
        DONE | {"streams": {"a": {"rows": 3, "mood": 1}}},
        DONE | {"operators": {"x": DONE["operators"]["x"] | {"mood": 1}}},
    ],
    ids=["batch", "stream", "operator"],
)
def test_progress_of_a_later_version_is_refused(store: DeltaStore, content: dict[str, Any]):
    """It may say something that this version would not heed."""
    put(store, PROGRESS, content)
    for look in (progress.last, progress.history):
        with pytest.raises(RefusedError) as error:
            look(store)
        assert str(error.value) == LATER.format("progress")


def test_a_decision_of_a_later_version_is_refused(store: DeltaStore):
    put(store, DECISIONS, DECIDED | {"mood": 1})
    with pytest.raises(RefusedError) as error:
        progress.latest(store)
    assert str(error.value) == LATER.format("decisions")


def test_a_row_that_lacks_what_it_needs_is_refused(store: DeltaStore):
    put(store, DECISIONS, without(DECIDED, "clock"))
    with pytest.raises(RefusedError, match="control/decisions lacks clock"):
        progress.latest(store)
    with pytest.raises(RefusedError, match="control/decisions lacks began"):
        Migration.from_json({"request": {"id": "m", "at": 1}, "steps": []})


def test_what_happened_is_read_whatever_else_it_says(store: DeltaStore):
    event = Event("m", "q", "done", 3, 5)
    put(store, MIGRATIONS, asdict(event) | {"mood": 1})
    assert requests.read_events(store) == [event]


def test_decisions_of_another_version_are_read(tmp_path: Path):
    candidate = Candidate("s", "(a b)", 0.1, 1.0, 8.0, True, 3, 0.1)
    known = Decision(
        "id", 1, "job", "q", "hold", "", ("why",), {}, "(a b)", {}, (candidate,), "", {}, "", "",
        {}, ((0, 1),), "", "me", "", False, False, "key",
    )  # fmt: skip
    log = DecisionLog.of(tmp_path)
    log.record(known)
    content = known.to_json() | {"mood": 1, "candidates": [asdict(candidate) | {"mood": 1}]}
    assert Decision.from_json(without(content, "answered_by", "request")) == known
    with pytest.raises(RefusedError, match="reoptimize/decisions lacks key"):
        Decision.from_json(without(content, "key"))
    assert log.newest(1) == [known]
