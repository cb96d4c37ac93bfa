"""Power cuts: what was not synced may be gone, empty or half there, and no result is lost."""

from pathlib import Path
from random import Random

import pytest

from jobs import streaming
from jobs.tables import durability
from jobs.tables.damage import DamagedError
from jobs.tables.durability import mend
from jobs.tables.job_store import JobStore
from tests.jobs.tables import test_inventory as small


class PowerCut(BaseException):
    """Nothing in the engine may catch this."""


class Disk:
    """Remembers what has been synced, and loses what was not."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.synced: dict[Path, bytes] = {}

    def sync(self, path: Path) -> None:
        if path.is_file():
            self.synced[path] = path.read_bytes()

    def all_there(self) -> None:
        """As after a clean stop, long ago."""
        for path in self._files():
            self.sync(path)

    def cut(self, r: Random) -> None:
        """Of what was not synced, each file is gone, empty, half there, or whole."""
        for path in self._files():
            now, then = path.read_bytes(), self.synced.get(path)
            if now != then:
                left = r.choice([then, b"", now[: len(now) // 2], now])
                path.unlink() if left is None else path.write_bytes(left)
        for path, content in self.synced.items():
            if not path.exists() and r.random() < 0.5:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)  # its removal was not synced either

    def _files(self) -> list[Path]:
        return [path for path in sorted(self.root.glob("**/*")) if path.is_file()]


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    found = Disk(tmp_path)
    monkeypatch.setattr(durability, "_sync", found.sync)
    return found


def durable(root: Path) -> JobStore:
    store = small.storage(root)
    store.durable = True
    streaming.mend_tables(store, store.tables())
    return store


def run_until_cut(root: Path, disk: Disk, left: int) -> None:
    """Batches from wherever the job stands, up to a step at which the power goes."""
    steps = iter(range(left))

    def step(_: str) -> None:
        if next(steps, None) is None:
            raise PowerCut

    runs = small.engine(durable(root))
    runs._step = runs.states.step = step
    for batch in range(runs.progress.batch + 1, small.BATCHES):
        runs.run(batch, small.rows(batch))


@pytest.mark.parametrize("seed", range(24))
def test_no_result_is_lost_or_repeated(seed: int, tmp_path: Path, disk: Disk):
    r, root = Random(seed), tmp_path / "job"
    small.storage(root)
    disk.all_there()
    for _ in range(3):
        try:
            run_until_cut(root, disk, r.randrange(45))
        except PowerCut:
            disk.cut(r)
            disk.all_there()
    run_until_cut(root, disk, 10_000)
    assert small.found(root / "out" / "q") == small.RESULTS


def test_what_a_batch_says_is_on_the_disk(tmp_path: Path, disk: Disk):
    """Cut just after each batch was reported: nothing that it said is lost."""
    root = tmp_path / "job"
    for batch in range(small.BATCHES):
        runs = small.engine(durable(root))
        progress = runs.run(batch, small.rows(batch))
        disk.cut(Random(batch))
        assert small.engine(durable(root)).progress == progress
    assert small.found(root / "out" / "q") == small.RESULTS


@pytest.mark.parametrize("left", [b"", b"\0" * 40, b'{"add":{"path"'])
def test_a_torn_commit_is_taken_back(left: bytes, tmp_path: Path):
    small.go_on(small.storage(tmp_path), last=0)
    newest = max((tmp_path / "out" / "q" / "_delta_log").glob("*.json"))
    newest.write_bytes(left)
    assert mend(tmp_path / "out" / "q") == [newest]
    assert mend(tmp_path / "out" / "q") == []
    assert small.found(tmp_path / "out" / "q").total() == 0


def test_what_a_killed_process_has_not_synced_is(tmp_path: Path, disk: Disk, monkeypatch):
    """It was killed just before; who goes on takes what it finds for done, and tells Spark so."""
    with monkeypatch.context() as patch:
        patch.setattr(JobStore, "sync", lambda _: None)
        small.go_on(durable(tmp_path), last=0)
    commits = set(tmp_path.glob("**/_delta_log/*.json"))
    assert not commits & disk.synced.keys()
    small.engine(durable(tmp_path))
    assert commits <= disk.synced.keys()


def test_what_was_promised_is_not_taken_back(tmp_path: Path):
    """An entry that somebody has deleted is missed, and what follows it is left alone."""
    small.go_on(small.storage(tmp_path), last=2)
    log = tmp_path / "out" / "q" / "_delta_log"
    *_, lost, newest = sorted(log.glob("*.json"))
    kept = lost.read_bytes()
    lost.unlink()
    assert mend(log.parent, promised=int(newest.stem)) == []
    lost.write_bytes(kept)
    small.go_on(small.storage(tmp_path), first=3)
    assert small.found(tmp_path / "out" / "q") == small.RESULTS


@pytest.mark.parametrize("left", [b"", b"{"])
def test_what_was_promised_and_is_torn_is_named(left: bytes, tmp_path: Path):
    """Delta takes an empty entry for a commit without files: its results would be gone."""
    small.go_on(small.storage(tmp_path), last=2)
    store = small.storage(tmp_path)
    *_, torn, _ = sorted((tmp_path / "out" / "q" / "_delta_log").glob("*.json"))
    torn.write_bytes(left)
    with pytest.raises(DamagedError, match="restore") as named:
        streaming.mend_tables(store, store.tables())
    assert str(named.value).startswith(str(torn))


def test_what_is_taken_back_is_put_aside(tmp_path: Path):
    small.go_on(small.storage(tmp_path), last=0)
    newest = max((tmp_path / "out" / "q" / "_delta_log").glob("*.json"))
    newest.write_bytes(b"torn")
    mend(tmp_path / "out" / "q")
    assert newest.with_name(f"{newest.name}.torn").read_bytes() == b"torn"


def test_a_torn_checkpoint_is_taken_back(tmp_path: Path):
    store = small.storage(tmp_path)
    small.go_on(store)
    table = store.table("out/q")
    table.create_checkpoint()
    (checkpoint,) = (tmp_path / "out" / "q" / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.write_bytes(checkpoint.read_bytes()[:100])
    mend(tmp_path / "out" / "q")
    assert small.found(tmp_path / "out" / "q") == small.RESULTS


def test_without_durability_nothing_is_synced(tmp_path: Path, disk: Disk):
    small.storage(tmp_path)
    disk.synced.clear()
    small.go_on(small.storage(tmp_path))
    assert not disk.synced
