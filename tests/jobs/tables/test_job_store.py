"""Tables where the job wants them, and readable by whoever opens them next."""

from pathlib import Path

import pyarrow as pa

from jobs.tables.job_store import JobStore
from jobs.tables.partitions import Partitioning, put_partitions

ROWS = pa.table({"a": [1, 2], "@until": [10, 20]})


def test_partitions_are_found_by_the_next_process(tmp_path: Path):
    store = JobStore(tmp_path)
    store.create("state/x", ROWS.schema)
    store.commit("state/x", put_partitions(store, "state/x", ROWS, Partitioning(10)), 0)

    again = JobStore(tmp_path)

    assert again.load("state/x").sort_by("a") == ROWS
    assert all((tmp_path / "state/x" / file.path).exists() for file in again.files("state/x"))
    gone = [file for file in again.files("state/x") if file.until == 10]
    again.commit("state/x", [], 1, gone=gone)
    assert [file.until for file in again.files("state/x")] == [20]


def test_a_table_that_is_elsewhere(tmp_path: Path):
    store = JobStore(tmp_path / "storage", elsewhere={"out/q": tmp_path / "else"})
    rows = ROWS.drop_columns(["@until"])
    store.create("out/q", rows.schema)
    store.commit("out/q", [store.put("out/q", rows)], 0)
    assert (tmp_path / "else" / "_delta_log").is_dir()
    assert store.load("out/q") == rows
    assert store.tables() == []
