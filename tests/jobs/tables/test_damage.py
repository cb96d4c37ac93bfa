"""A storage of which a part is empty, torn, something else or gone: it is said in a line."""

import shutil
from collections.abc import Callable, Iterator
from json import dumps, loads
from pathlib import Path

import pytest

from jobs import specs, streaming
from jobs.backends.duckdb.backend import DuckBackend
from jobs.engine.microbatch import Engine
from jobs.errors import MidstreamError
from jobs.tables.damage import DamagedError, note
from tests.jobs import small
from tests.jobs.test_migrate import THREE, Stage


@pytest.fixture
def stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Stage]:
    """A job that has begun as a run does, and done three batches."""
    path = small.job(tmp_path)
    for name in small.STREAMS:
        (tmp_path / name).mkdir()
    spec = specs.load(path)
    streaming.streams(spec)
    ticks = iter(range(small.START, small.START + 10**12, 1_000_000))
    engine = Engine(
        streaming.engine_job(spec), streaming.job_store(spec), DuckBackend(), lambda: next(ticks)
    )
    stage = Stage(path, engine, capsys)
    stage.batches(3)
    yield stage
    engine.close()


PARTS = (
    "control/streams.json", "control/states.json", "lease.json", "control/progress/*.parquet",
    "control/progress/_delta_log/*0.json", "control/decisions/*.parquet",
    "control/decisions/_delta_log/*2.json", "late/a/_delta_log/*0.json",
)  # fmt: skip


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "torn": torn,
    "another": lambda path: path.write_bytes(b"[]"),
    "nonsense": lambda path: path.write_bytes(b"\xff\0nonsense"),
    "a directory": a_directory,
}

COMMANDS = (
    ("status", "JOB"),
    ("migration", "status", "JOB"),
    THREE,
    ("reoptimize", "JOB", "--dry-run"),
    ("maintain", "JOB", "--dry-run"),
    ("verify", "JOB"),
)


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_command_says_what_is_damaged(stage: Stage, damage: str):
    storage = stage.job.parent / "storage"
    copy = shutil.copytree(storage, stage.job.parent / "copy")
    for part in PARTS:
        for path in sorted(storage.glob(part))[-1:]:
            DAMAGES[damage](path)
        for words in COMMANDS:
            code, out, err = stage.told(*words)
            assert code in range(5), (part, words)
            assert "defect" not in out + err, (part, words, err)
        shutil.rmtree(storage)
        shutil.copytree(copy, storage)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_run_does_not_begin_with_damaged_notes(stage: Stage, damage: str):
    storage, job = stage.job.parent / "storage", specs.load(stage.job)
    DAMAGES[damage](storage / "control/streams.json")
    with pytest.raises(MidstreamError, match=r"streams\.json"):
        streaming.streams(job)


def test_a_note_without_a_field_that_is_needed(stage: Stage):
    path = stage.job.parent / "storage/control/streams.json"
    path.write_text(dumps({k: v for k, v in loads(path.read_text()).items() if k != "id"}))
    with pytest.raises(MidstreamError, match=r"streams\.json lacks id"):
        streaming.streams(specs.load(stage.job))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", "\udcff"])
def test_a_note_that_says_nothing(tmp_path: Path, text: str):
    path = tmp_path / "note.json"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(DamagedError, match=r"note\.json cannot be read .*: restore the job's stor"):
        note(path)


def test_a_draft_that_was_left_is_no_matter(stage: Stage):
    job = specs.load(stage.job)
    draft = stage.job.parent / "storage/control/streams.draft"
    draft.parent.mkdir(exist_ok=True)
    draft.write_text("{")
    assert [inlet.stream.name for inlet in streaming.streams(job)] == ["a", "b", "c"]
