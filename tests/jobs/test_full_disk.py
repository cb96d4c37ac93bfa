"""A disk that is really full: a small file system where we may mount one, else /dev/full."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from deltalake import DeltaTable

from jobs import cli
from tests.bench import crash
from tests.jobs import small

SMALL, LARGE = "700k", "64m"


def _mount(*arguments: str) -> bool:
    return os.geteuid() == 0 and not subprocess.run(["mount", *arguments], check=False).returncode


@contextmanager
def _mounted(storage: Path) -> Iterator[None]:
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(storage)], check=True)


def _no_space_for(file: Path) -> None:
    """Whoever writes that file is told by the kernel that no space is left."""
    file.parent.mkdir(parents=True)
    file.symlink_to("/dev/full")


@pytest.mark.spark
def test_a_full_disk_is_told_and_survived(tmp_path: Path):
    small.write(tmp_path, range(6))
    job = small.job(tmp_path)
    storage = tmp_path / "storage"
    storage.mkdir()
    if _mount("-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs", str(storage)):
        with _mounted(storage):
            _fails_for_want_of_space(job)
            assert _mount("-o", f"remount,size={LARGE}", str(storage))
            _goes_on(job, storage)
    else:
        stuck = storage / "control" / "decisions" / "000000000002.parquet"
        _no_space_for(stuck)
        _fails_for_want_of_space(job)
        stuck.unlink()
        _goes_on(job, storage)


def _fails_for_want_of_space(job: Path) -> None:
    assert crash.start(job).wait(timeout=180) == 1
    told = job.with_suffix(".log").read_text(encoding="utf-8")
    assert "no space is left on the disk of" in " ".join(told.split()), told


def _goes_on(job: Path, storage: Path) -> None:
    assert crash.start(job).wait(timeout=180) == 0
    told = DeltaTable(storage / "control" / "progress").to_pyarrow_table()["content"].to_pylist()
    flows = [flow for content in told for flow in json.loads(content)["streams"].values()]
    # A batch may hold two files: Spark had listed one, and found no space to say in which batch.
    found = sum(flow["rows"] + flow["late"] + flow["rejected"] for flow in flows)
    assert found == len(small.STREAMS) * 6 * small.TUPLES
    assert cli.run(["verify", str(job)]) == 0
