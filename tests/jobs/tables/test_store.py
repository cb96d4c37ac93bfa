"""Both stores behave alike, and Delta's tables can be read by others at any time."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs.tables.columns import BATCH, UNTIL
from jobs.tables.delta_store import DeltaStore
from jobs.tables.memory_store import MemoryStore
from jobs.tables.partitions import Partitioning, put_partitions
from jobs.tables.store import DataFile, Store

TABLE = "state/k"
TENS = Partitioning(10)
SCHEMA = pa.schema(
    [("v", pa.int64()), ("word", pa.string()), (UNTIL, pa.int64()), (BATCH, pa.int64())]
)


@pytest.fixture(params=["memory", "delta"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    made = MemoryStore() if request.param == "memory" else DeltaStore(tmp_path)
    made.create(TABLE, SCHEMA)
    return made


def again(store: Store) -> Store:
    """The same tables, as another process finds them."""
    return DeltaStore(store.root) if isinstance(store, DeltaStore) else store


def rows(batch: int, *values: tuple[int, int]) -> pa.Table:
    return pa.table(
        {
            "v": [v for v, _ in values],
            "word": ["a=b %20/c"] * len(values),
            UNTIL: [until for _, until in values],
            BATCH: [batch] * len(values),
        },
        schema=SCHEMA,
    )


def append(store: Store, batch: int, *values: tuple[int, int]) -> list[DataFile]:
    files = put_partitions(store, TABLE, rows(batch, *values), TENS)
    store.commit(TABLE, files, batch)
    return files


def until(store: Store, cutoff: int) -> list[DataFile]:
    return [file for file in store.files(TABLE) if file.until is not None and file.until <= cutoff]


def values(store: Store) -> list[tuple[int, int, int]]:
    loaded = store.load(TABLE).select(["v", UNTIL, BATCH]).to_pylist()
    return sorted(tuple(row.values()) for row in loaded)


def test_a_new_table_is_empty_and_has_its_columns(store):
    assert store.exists(TABLE)
    assert not store.exists("state/other")
    assert store.last_batch(TABLE) == store.last_batch("state/other") == -1
    assert store.files(TABLE) == []
    assert values(store) == []
    assert dict(zip(store.schema(TABLE).names, store.schema(TABLE).types, strict=True)) == dict(
        zip(SCHEMA.names, SCHEMA.types, strict=True)
    )
    assert store.tables() == [TABLE]


def test_what_is_committed_can_be_read_a_file_for_each_partition(store):
    append(store, 0, (1, 10), (2, 20), (3, 10))
    append(store, 3, (4, 20))
    assert values(store) == [(1, 10, 0), (2, 20, 0), (3, 10, 0), (4, 20, 3)]
    assert sorted((file.until, file.rows) for file in store.files(TABLE)) == [
        (10, 2),
        (20, 1),
        (20, 1),
    ]
    assert store.last_batch(TABLE) == again(store).last_batch(TABLE) == 3


def test_the_files_listed_are_those_put(store):
    files = append(store, 0, (1, 10), (2, -20))
    listed = again(store).files(TABLE)
    assert sorted(f.path for f in listed) == sorted(f.path for f in files)
    assert sorted(f.bytes for f in listed) == sorted(f.bytes for f in files)


def test_a_batch_is_committed_once(store):
    append(store, 2, (1, 10))
    append(store, 2, (2, 10))
    append(store, 1, (3, 10))
    assert values(again(store)) == [(1, 10, 2)]


def test_what_is_not_committed_is_not_there(store):
    append(store, 0, (1, 10))
    put_partitions(store, TABLE, rows(1, (2, 10)), TENS)
    left = again(store)
    assert values(left) == [(1, 10, 0)]
    assert len(left.files(TABLE)) == 1
    assert left.last_batch(TABLE) == 0
    append(left, 1, (2, 10))
    assert values(left) == [(1, 10, 0), (2, 10, 1)]


def test_a_commit_drops_what_it_is_told_to(store):
    append(store, 0, (1, 10), (3, 30), (4, -10))
    store.commit(TABLE, [], 1, gone=until(store, 20))
    assert values(again(store)) == [(3, 30, 0)]
    assert [file.until for file in store.files(TABLE)] == [30]
    assert store.last_batch(TABLE) == 1
    new = put_partitions(store, TABLE, rows(2, (5, 40)), TENS)
    store.commit(TABLE, new, 2, gone=store.files(TABLE))
    assert values(store) == [(5, 40, 2)]


def test_a_batch_drops_once(store):
    append(store, 1, (1, 10), (2, 20))
    store.commit(TABLE, [], 1, gone=until(store, 10))
    assert values(again(store)) == [(1, 10, 1), (2, 20, 1)]


def test_no_rows_make_no_files(store):
    assert put_partitions(store, TABLE, rows(0), TENS) == []


def test_the_newest_file_is_the_one_whose_name_sorts_last(store):
    store.create("control/x", pa.schema([("n", pa.int64())]))
    for n in (8, 9, 10):
        row = pa.table({"n": [n]})
        store.commit("control/x", [store.put("control/x", row, name=f"{n:012d}")], n)
    assert again(store).newest("control/x").to_pylist() == [{"n": 10}]


def test_merging_changes_files_and_no_rows(store):
    for batch in range(4):
        append(store, batch, (batch, 10), (batch, 20))
    store.merge(TABLE, [file for file in store.files(TABLE) if file.until == 10])
    assert values(again(store)) == [(n, until, n) for n in range(4) for until in (10, 20)]
    assert store.last_batch(TABLE) == 3
    assert sorted((f.until, f.rows) for f in store.files(TABLE)) == [(10, 4), *[(20, 1)] * 4]
    store.commit(TABLE, append(store, 4, (9, 20)), 4, gone=until(store, 10))
    store.commit(TABLE, [], 5, gone=until(store, 10))
    assert [v for v, _, _ in values(store)] == [0, 1, 2, 3, 9]


def test_a_merged_file_is_as_young_as_its_youngest(store):
    append(store, 0, (1, 10), (2, 20), (3, 30))
    store.merge(TABLE, until(store, 20))
    assert sorted((f.until, f.rows) for f in store.files(TABLE)) == [(20, 2), (30, 1)]


def test_a_dropped_table_is_gone(store):
    append(store, 0, (1, 10))
    store.drop(TABLE)
    assert not store.exists(TABLE)
    assert store.tables() == []


def test_delta_tables_are_for_everyone(spark: SparkSession, tmp_path: Path):
    """Spark and DuckDB see what is committed, and nothing else, with the oldest protocol."""
    store = DeltaStore(tmp_path)
    store.create(TABLE, SCHEMA)
    path = str(store.path(TABLE))
    for batch in range(3):
        append(store, batch, (batch, 10 * batch), (batch, 10))
        put_partitions(store, TABLE, rows(9, (9, 9)), TENS)
        theirs = spark.read.format("delta").load(path)
        assert sorted(map(tuple, theirs.select("v", UNTIL, BATCH).collect())) == values(store)
        seen = duckdb.from_arrow(DeltaTable(path).to_pyarrow_dataset())
        assert seen.count("*").fetchall() == [(2 * batch + 2,)]
    store.commit(TABLE, [], 3, gone=until(store, 0))
    assert spark.read.format("delta").load(path).count() == 5
    protocol = DeltaTable(path).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)


def test_files_hold_what_the_table_says(tmp_path: Path):
    store = DeltaStore(tmp_path)
    store.create(TABLE, SCHEMA)
    (file,) = append(store, 0, (1, 10))
    path = store.path(TABLE) / file.path
    assert path.stat().st_size == file.bytes
    assert UNTIL not in pq.read_schema(path).names
