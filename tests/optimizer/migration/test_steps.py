"""The vocabulary, its JSON, and the proof before a cut-over."""

import json

import pytest

from optimizer.migration.steps import (
    STEPS,
    CutOver,
    Drop,
    Fill,
    How,
    Keep,
    Parallel,
    Prove,
    StepError,
    Track,
    Wait,
    from_json,
    to_json,
    with_proof,
)

EVERY = (
    Keep("a"),
    Fill("ab", How.JOIN, ("a", "b")),
    Fill("c", How.DERIVE, ("d",), partial=True),
    Track(("ab", "c")),
    Parallel(()),
    Wait(),
    Prove(2),
    CutOver(),
    Drop("bc"),
)


def test_every_step_survives_json():
    assert {type(step) for step in EVERY} == set(STEPS.values())
    for step in EVERY:
        assert from_json(json.loads(json.dumps(to_json(step)))) == step


def test_json_is_readable():
    assert to_json(EVERY[1]) == {
        "step": "fill", "state": "ab", "how": "join", "sources": ["a", "b"], "partial": False,
    }  # fmt: skip
    assert to_json(CutOver()) == {"step": "cut-over"}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({}, "None is not one of keep, fill"),
        ({"step": "jump"}, "'jump' is not one of"),
        ({"step": "keep"}, "keep lacks a field"),
        ({"step": "keep", "state": 1}, "state cannot be 1"),
        ({"step": "keep", "state": "a", "sources": []}, "keep has no sources"),
        ({"step": "fill", "state": "a", "how": "magic", "sources": []}, "how cannot be 'magic'"),
        ({"step": "track", "states": "ab"}, "states cannot be 'ab'"),
        ({"step": "prove", "batches": 0}, "batches cannot be 0"),
        ({"step": "prove", "batches": True}, "batches cannot be True"),
    ],
)
def test_other_data_is_refused(data, why):
    with pytest.raises(StepError, match=why):
        from_json(data)


FILLS = (Fill("ab", How.JOIN, ("a", "b")), Fill("abc", How.JOIN, ("ab", "c")))


def test_a_proof_tracks_what_was_filled_at_once():
    steps = (Keep("a"), *FILLS, CutOver(), Drop("bc"))
    assert with_proof(steps, 3) == (
        Keep("a"), *FILLS, Track(("ab", "abc")), Prove(3), CutOver(), Drop("bc"),
    )  # fmt: skip


def test_a_proof_of_what_is_tracked_already():
    steps = (Track(("ab",)), FILLS[0], CutOver())
    assert with_proof(steps, 1) == (Track(("ab",)), FILLS[0], Prove(1), CutOver())
    assert with_proof((Parallel(()), Wait(), CutOver()), 1)[-2:] == (Prove(1), CutOver())
    assert with_proof((Keep("a"), CutOver()), 1) == (Keep("a"), Prove(1), CutOver())


def test_no_proof():
    assert with_proof((Keep("a"), CutOver()), 0) == (Keep("a"), CutOver())
