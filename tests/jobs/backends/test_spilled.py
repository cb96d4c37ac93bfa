"""What does not fit into memory is on a disk for a while, where nobody else may look."""

import os
import tempfile
from pathlib import Path

import pytest

from jobs.backends.duckdb.backend import connect
from jobs.backends.duckdb.spilled import spilled


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spilled.cache_clear()
    return tmp_path


@pytest.fixture(autouse=True)
def _forgotten():
    yield
    spilled.cache_clear()


def mode(path: str) -> int:
    return Path(path).stat().st_mode & 0o777


def test_what_duckdb_spills_is_its_users_alone(temporary: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(temporary)
    with connect() as connection:
        connection.execute("SET memory_limit = '20MB'; SET threads = 1")
        connection.execute(
            "CREATE TABLE t AS SELECT repeat(uuid()::VARCHAR, 4) AS u FROM range(300000)"
        )
        assert list(Path(spilled()).glob("*.tmp"))
    assert mode(spilled()) == 0o700
    assert [path.name for path in temporary.iterdir()] == [Path(spilled()).name]
    assert not list(Path(spilled()).glob("*.tmp"))


@pytest.mark.parametrize("kind", ["open", "link", "file"])
def test_a_directory_that_somebody_else_has_prepared(temporary: Path, kind: str):
    place = temporary / f"midstream-{os.getuid()}"
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    if kind == "open":
        place.mkdir()
        place.chmod(0o777)
    elif kind == "link":
        place.symlink_to(elsewhere)
    else:
        place.touch()
    assert Path(spilled()) not in (place, elsewhere)
    assert mode(spilled()) == 0o700
    assert spilled() == spilled()
