"""What a storage must hold when a job goes on, and whose results a sink has."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from shutil import copytree, rmtree

import pyarrow as pa
import pytest

from jobs.backends.duckdb.backend import DuckBackend
from jobs.engine.ingest import Ingest
from jobs.engine.microbatch import Engine, Job
from jobs.tables.columns import REASON, ROW
from jobs.tables.inventory import InventoryError
from jobs.tables.job_store import JobStore
from jobs.tables.origin import begun
from optimizer.plan import as_written, build
from optimizer.query import Stream
from optimizer.sql import parse, parse_schema

STREAMS = {name: Stream(name, parse_schema("k BIGINT, ts TIMESTAMP"), "ts") for name in "ab"}
BATCHES = 4


def storage(root: Path, sink: Path | None = None) -> JobStore:
    begun(root, STREAMS, now=0)
    return JobStore(root, elsewhere={"out/q": sink} if sink else {}, durable=False)


def engine(
    store: JobStore, sql: str = "SELECT a.k AS k, b.k AS l FROM a, b WHERE a.k = b.k"
) -> Engine:
    query = parse(sql, STREAMS, 10_000_000)
    ingests = {name: Ingest(stream) for name, stream in STREAMS.items()}
    job = Job("inventory", ingests, {"q": build(query, as_written(query))})
    return Engine(job, store, DuckBackend(), clock=lambda: 10**7)


def rows(batch: int) -> dict[str, pa.Table]:
    """Each batch brings its number, and a tuple that is late from the second one on."""
    keys, times = [batch, -1], [1_000_000 * (batch + 1), 0]
    table = pa.table({
        "k": pa.array(keys, pa.int64()),
        "ts": pa.array(times, pa.timestamp("us", "UTC")),
        REASON: pa.nulls(2, pa.string()),
        ROW: pa.nulls(2, pa.string()),
    })  # fmt: skip
    return dict.fromkeys("ab", table)


def go_on(store: JobStore, first: int = 0, last: int = BATCHES - 1) -> None:
    runs = engine(store)
    for batch in range(first, last + 1):
        runs.run(batch, rows(batch))
    runs.close()


def found(path: Path) -> Counter[tuple[int, int]]:
    table = JobStore(path.parent).load(path.name)
    return Counter(zip(table["k"].to_pylist(), table["l"].to_pylist(), strict=True))


RESULTS = Counter([(-1, -1), *((n, n) for n in range(BATCHES))])
"""The tuples of the first batch are in time, later ones of their age are not."""


def of_kind(store: JobStore, kind: str) -> Path:
    return store.path(next(table for table in store.tables() if table.startswith(kind)))


def without_last_commit(table: Path) -> None:
    max((table / "_delta_log").glob("*.json")).unlink()


def without_a_file(table: Path) -> None:
    next(table.glob("**/*.parquet")).unlink()


def with_a_torn_file(table: Path) -> None:
    file = next(table.glob("**/*.parquet"))
    file.write_bytes(file.read_bytes()[:-1])


LOSSES: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "a state": ("state/", rmtree, "is gone"),
    "results": ("out/", rmtree, "is gone"),
    "late rows": ("late/", rmtree, "is gone"),
    "a state's last commit": ("state/", without_last_commit, "is older than the job"),
    "the last results": ("out/", without_last_commit, "is older than the job"),
    "a state's file": ("state/", without_a_file, "lost or damaged files"),
    "the end of a state's file": ("state/", with_a_torn_file, "lost or damaged files"),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_lost_is_named(loss: str, tmp_path: Path):
    kind, lose, words = LOSSES[loss]
    go_on(storage(tmp_path))
    table = of_kind(storage(tmp_path), kind)
    lose(table)
    with pytest.raises(InventoryError, match=words) as refused:
        engine(storage(tmp_path))
    assert str(refused.value).startswith(str(table))
    assert "restore" in str(refused.value)


def test_what_is_whole_goes_on(tmp_path: Path):
    for batch in range(BATCHES):
        go_on(storage(tmp_path), batch, batch)
    assert found(tmp_path / "out" / "q") == RESULTS


def test_merged_files_are_the_same_rows(tmp_path: Path):
    go_on(storage(tmp_path), last=2)
    runs = engine(storage(tmp_path))
    while runs.compact():
        pass
    runs.close()
    go_on(storage(tmp_path), first=3)
    assert found(tmp_path / "out" / "q") == RESULTS


def test_a_storage_may_be_moved(tmp_path: Path):
    go_on(storage(tmp_path / "one"), last=1)
    (tmp_path / "one").rename(tmp_path / "other")
    go_on(storage(tmp_path / "other"), first=2)
    assert found(tmp_path / "other" / "out" / "q") == RESULTS


def test_an_older_storage_is_not_that_of_its_sink(tmp_path: Path):
    sink = tmp_path / "sink"
    go_on(storage(tmp_path / "now", sink), last=0)
    copytree(tmp_path / "now", tmp_path / "then")
    go_on(storage(tmp_path / "now", sink), first=1)
    with pytest.raises(InventoryError, match="has batch 3 already"):
        engine(storage(tmp_path / "then", sink))


def test_progress_that_is_lost_is_no_new_beginning(tmp_path: Path):
    go_on(storage(tmp_path))
    rmtree(tmp_path / "control" / "progress")
    rmtree(tmp_path / "control" / "decisions")
    with pytest.raises(InventoryError, match="has batch 3 already"):
        engine(storage(tmp_path))


def test_a_new_storage_adds_to_an_old_sink(tmp_path: Path):
    sink = tmp_path / "sink"
    go_on(storage(tmp_path / "one", sink))
    go_on(storage(tmp_path / "other", sink))
    assert found(sink) == RESULTS + RESULTS


def test_two_jobs_share_a_sink(tmp_path: Path):
    sink = tmp_path / "sink"
    for batch in range(BATCHES):
        go_on(storage(tmp_path / "one", sink), batch, batch)
        go_on(storage(tmp_path / "other", sink), batch, batch)
    assert found(sink) == RESULTS + RESULTS


def test_results_may_go_elsewhere_from_now_on(tmp_path: Path):
    go_on(storage(tmp_path / "job", tmp_path / "one"), last=1)
    go_on(storage(tmp_path / "job", tmp_path / "other"), first=2)
    assert found(tmp_path / "one") + found(tmp_path / "other") == RESULTS


def test_a_sink_with_other_columns_is_refused(tmp_path: Path):
    sink = tmp_path / "sink"
    go_on(storage(tmp_path / "one", sink))
    runs = engine(storage(tmp_path / "other", sink), "SELECT a.k AS k, b.ts AS l FROM a, b")
    with pytest.raises(InventoryError, match="with the columns k int64, l int64; these results"):
        runs.run(0, rows(0))
