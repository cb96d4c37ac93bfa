"""What a batch notes beside its work, and what is found again of it later."""

from dataclasses import asdict
from itertools import pairwise
from json import dumps
from pathlib import Path
from time import process_time

import pyarrow as pa
from deltalake import write_deltalake

from jobs.engine.process_usage import meter
from jobs.sources.checkpoint import CheckpointOffsets, OffsetRange
from jobs.sources.delta_table import _between
from jobs.tables.history import History
from jobs.tables.job_store import JobStore
from jobs.tables.names import PROGRESS
from jobs.tables.progress import Progress, last, record


def test_measuring_sees_what_is_used():
    measure = meter()
    before, began = measure(), process_time()
    held = bytearray(50_000_000)
    while process_time() < began + 0.2:
        pass
    after = measure()
    assert after.cpu - before.cpu >= 0.15
    assert after.memory - before.memory > 40_000_000
    assert held


def test_a_row_of_an_older_version_is_read(tmp_path: Path):
    store = JobStore(tmp_path)
    record(store, PROGRESS, Progress(batch=0))
    content = asdict(Progress(batch=1, watermark=7))
    for new in ("cpu", "memory", "backlog", "taken"):
        del content[new]
    row = pa.table({"batch": [1], "content": [dumps(content)]})
    store.commit(PROGRESS, [store.put(PROGRESS, row, name=f"{1:012d}")], 1)
    assert last(store) == Progress(batch=1, watermark=7, events=[])


def test_history_is_found_in_merged_files(tmp_path: Path):
    store = JobStore(tmp_path)
    for batch in range(20):
        record(store, PROGRESS, Progress(batch=batch, watermark=batch * 10))
    files = sorted(store.files(PROGRESS), key=lambda file: file.path)
    store.merge(PROGRESS, files[:6], name=f"{5:012d}-")
    store.merge(PROGRESS, files[6:9], name=f"{8:012d}-")
    found = History(JobStore(tmp_path), PROGRESS)
    assert found.last == 19
    assert [row["batch"] for row in found.between(4, 7)] == [4, 5, 6, 7]
    assert [row["batch"] for row in found.between(8, 30)] == list(range(8, 20))
    for batch in range(20):
        assert found.first(lambda row, at=batch * 10: row["watermark"] >= at) == batch  # type: ignore[misc]
    assert found.first(lambda row: row["watermark"] > 190) == 20
    assert History(JobStore(tmp_path / "none"), PROGRESS).last == -1


def test_files_of_batches_are_found_in_logs_that_sum_up_others(tmp_path: Path):
    """Spark drops the logs of single batches once a later one has all their entries."""
    log = tmp_path / "sources" / "0"
    log.mkdir(parents=True)

    def write(name: str, numbers: range) -> None:
        entries = [dumps({"path": f"file:///in/{n}%20x.parquet", "batchId": n}) for n in numbers]
        (log / name).write_text("\n".join(["v1", *entries]))

    write("9.compact", range(10))
    write("10", range(10, 11))
    write("11", range(11, 12))
    taken = CheckpointOffsets(tmp_path, 0)
    parts = [OffsetRange(b, {"logOffset": b - 5}, {"logOffset": b - 3}) for b in (7, 9, 11, 13)]
    assert taken.files_of(parts) == {
        Path(f"/in/{number} x.parquet"): batch
        for batch, numbers in ((7, (3, 4)), (9, (5, 6)), (11, (7, 8)), (13, (9, 10)))
        for number in numbers
    }
    assert taken.files_of([OffsetRange(0, None, {"logOffset": 0})]) == {Path("/in/0 x.parquet"): 0}
    assert taken.files_of([OffsetRange(1, {"logOffset": 3}, {"logOffset": 3})]) == {}


def test_files_between_two_positions_in_a_delta_table(tmp_path: Path):
    """Each file is between exactly two of the positions that Delta's source went through."""
    for number in range(4):
        write_deltalake(tmp_path, pa.table({"x": [number]}), mode="append")

    def at(version: int, index: int, *, starting: bool = False) -> dict[str, object]:
        return {"reservoirVersion": version, "index": index, "isStartingVersion": starting}

    positions = [None, at(1, 0, starting=True), at(1, 1, starting=True), at(2, 0), at(4, -1)]
    found = [
        [path for path, _ in _between(tmp_path, OffsetRange(i, start, end))]
        for i, (start, end) in enumerate(pairwise(positions))
    ]
    assert [len(files) for files in found] == [1, 1, 1, 1]
    assert len({file for files in found for file in files}) == 4
    whole = [path for path, _ in _between(tmp_path, OffsetRange(0, None, at(3, -1)))]
    assert sorted(whole) == sorted(file for files in found[:3] for file in files)
    assert list(_between(tmp_path, OffsetRange(0, None, None))) == []
