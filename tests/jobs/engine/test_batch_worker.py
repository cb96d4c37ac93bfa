"""Batches go on beside Spark, but never beside each other."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from jobs.engine.batch_worker import SerialWorker
from jobs.sources.checkpoint import rewind_unfinished_batch

PATIENCE = 20
"""Seconds after which a test has failed."""


@pytest.fixture
def beside() -> Iterator[SerialWorker]:
    made = SerialWorker()
    yield made
    with suppress(ZeroDivisionError):
        made.close()


def test_one_batch_waits_for_the_other(beside: SerialWorker):
    end = Event()
    done: list[int] = []

    def first() -> None:
        assert end.wait(PATIENCE)
        done.append(1)

    beside.begin(first)
    beside.check()
    second = Thread(target=beside.begin, args=(lambda: done.append(2),))
    second.start()
    second.join(0.1)
    assert second.is_alive()
    assert done == []
    end.set()
    second.join(PATIENCE)
    beside.wait()
    assert done == [1, 2]


def test_an_error_is_raised_each_time_and_nothing_else_begins(beside: SerialWorker):
    done: list[int] = []

    def fail() -> None:
        raise ZeroDivisionError

    beside.begin(fail)
    with pytest.raises(ZeroDivisionError):
        beside.begin(lambda: done.append(1))
    for look in (beside.wait, beside.wait, beside.check, beside.close):
        with pytest.raises(ZeroDivisionError):
            look()
    assert done == []


def test_the_end_waits_for_the_last_one():
    beside, done = SerialWorker(), []
    beside.begin(lambda: done.append(Event().wait(0.1)))
    beside.close()
    assert len(done) == 1


def _checkpoint(place: Path, offsets: int, commits: int) -> Path:
    """As Spark leaves it, checksums and all, when it has noted so many of each."""
    for kind, count in (("offsets", offsets), ("commits", commits)):
        (place / kind).mkdir()
        for batch in range(count):
            (place / kind / str(batch)).write_text("v1")
            (place / kind / f".{batch}.crc").write_text("crc")
    return place


@pytest.mark.parametrize(
    ("done", "offsets", "commits", "left"),
    [
        (2, 3, 3, (3, 3)),
        (2, 4, 3, (4, 3)),
        (2, 4, 4, (4, 3)),
        (2, 5, 4, (4, 3)),
        (-1, 2, 1, (1, 0)),
        (-1, 1, 0, (1, 0)),
        (2, 6, 5, (6, 5)),
        (-1, 0, 0, (0, 0)),
    ],
    ids=[
        "in step", "amid a batch", "noted too early", "and the next begun",
        "in the very first", "before any was noted", "of another storage", "nothing yet",
    ],
)  # fmt: skip
def test_what_spark_noted_too_early_is_put_back(
    tmp_path: Path, done: int, offsets: int, commits: int, left: tuple[int, int]
):
    checkpoint = _checkpoint(tmp_path, offsets, commits)
    for _ in range(2):
        rewind_unfinished_batch(checkpoint, done)
        for kind, count in zip(("offsets", "commits"), left, strict=True):
            names = {path.name for path in (checkpoint / kind).iterdir()}
            expected = {name for b in range(count) for name in (str(b), f".{b}.crc")}
            assert names == expected


@pytest.mark.parametrize("torn", ["commits/2", "offsets/3", "sources/0/3"])
@pytest.mark.parametrize("left", [b"", b"v1\n\0\0\0"])
def test_what_a_power_cut_has_torn_is_taken_back(tmp_path: Path, torn: str, left: bytes):
    """Batch 2 is done, and batch 3 was planned."""
    checkpoint = tmp_path / "checkpoint"
    whole = [*(f"{kind}/{n}" for kind in ("offsets", "sources/0") for n in range(4))]
    whole += [f"commits/{n}" for n in range(3)]
    for name in whole:
        (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoint / name).write_bytes(b"v1\n{}")
    (checkpoint / torn).write_bytes(left)
    rewind_unfinished_batch(checkpoint, 2)
    found = {str(p.relative_to(checkpoint)) for p in checkpoint.glob("**/*") if p.is_file()}
    assert found == set(whole) - {torn, "offsets/3"}
