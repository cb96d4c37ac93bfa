"""Shares of rows in files: none twice, none missing, all alike in size."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.backends.parquet_input import ParquetInput, Share

SCHEMA = pa.schema([("n", pa.int64()), ("@batch", pa.int64())])


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files with 'quotes'")


def filed(directory: Path, counts: list[int], before: int | None = None) -> ParquetInput:
    """Files with so many rows; the row's number is the same wherever it stands."""
    files, first = [], 0
    for at, count in enumerate(counts):
        path = directory / f"{first}-{count}-{at}.parquet"
        numbers = list(range(first, first + count))
        pq.write_table(pa.table({"n": numbers, "@batch": [at] * count}, SCHEMA), path)
        files.append((str(path), count))
        first += count
    return ParquetInput(tuple(files), SCHEMA, before=before)


def read(rows: ParquetInput, share: Share | None) -> list[int]:
    with duckdb.connect() as connection:
        rows.define(connection, 'a "name"', share)
        return [n for (n,) in connection.execute('SELECT n FROM "a ""name"""').fetchall()]


@given(
    counts=st.lists(st.integers(0, 12), max_size=5),
    tasks=st.integers(1, 7),
    before=st.none() | st.integers(0, 5),
)
def test_shares_are_all_rows_once(
    directory: Path, counts: list[int], tasks: int, before: int | None
):
    rows = filed(directory, counts, before)
    taken = [read(rows, Share(task, tasks)) for task in range(tasks)]
    files = [at for at, count in enumerate(counts) for _ in range(count)]
    wanted = [n for n, at in enumerate(files) if before is None or at < before]
    assert sorted(n for part in taken for n in part) == wanted
    assert sorted(read(rows, None)) == wanted
    if before is None:
        assert max(map(len, taken)) - min(map(len, taken)) <= 1


@pytest.mark.parametrize("name", ["file_row_number", "FILE_ROW_NUMBER", "filename"])
@pytest.mark.parametrize("tasks", range(1, 6))
def test_a_column_may_be_called_as_duckdb_numbers_rows(directory: Path, name: str, tasks: int):
    schema, files = pa.schema([("n", pa.int64()), (name, pa.int64())]), []
    for at, count in enumerate((3, 0, 1, 5)):
        path = directory / f"{name}-{at}.parquet"
        numbers = [10 * at + i for i in range(count)]
        pq.write_table(pa.table({"n": numbers, name: [7] * count}, schema), path)
        files.append((str(path), count))
    rows = ParquetInput(tuple(files), schema)
    taken = [n for task in range(tasks) for n in read(rows, Share(task, tasks))]
    assert sorted(taken) == [0, 1, 2, 20, 30, 31, 32, 33, 34]


def test_files_may_have_their_columns_in_another_order(directory: Path):
    one, other = directory / "one.parquet", directory / "other.parquet"
    pq.write_table(pa.table({"n": [1, 2], "@batch": [10, 10]}, SCHEMA), one)
    pq.write_table(pa.table({"@batch": [20, 20], "n": [3, 4]}), other)
    rows = ParquetInput(((str(one), 2), (str(other), 2)), SCHEMA)
    assert [read(rows, Share(task, 3)) for task in range(3)] == [[1], [2], [3, 4]]
