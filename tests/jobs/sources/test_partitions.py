"""Directories that say what is in a column, as Spark, pyarrow and pandas make them."""

from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from jobs.sources.common import Feed, SourceError
from jobs.sources.files import FilesSource
from jobs.sources.reading import Reader
from jobs.tables.columns import REASON, ROW
from optimizer.query import Column, Stream

COLUMNS = (
    Column("day", "DATE"), Column("k", "BIGINT"), Column("s", "STRING"), Column("ts", "TIMESTAMP"),
)  # fmt: skip
TIMES = pa.array([0], pa.timestamp("us", "UTC"))


def reader(root: Path, form: str = "parquet", exact: bool = False, **options: str) -> Reader:
    return Reader(Feed(Stream("a", COLUMNS, "ts"), 0, exact), form, options, root)


def source_of(root: Path, **options: str) -> FilesSource:
    spec = SimpleNamespace(path=str(root), format="parquet", options=options)
    return FilesSource(Feed(Stream("a", COLUMNS, "ts"), 0, exact=False), spec)


def rows(root: Path, path: Path, **how: Any) -> list[Any]:
    one = reader(root, **how)
    one.check(path)
    assert one.plain(path) is None
    found = one.rows(path).to_pylist()
    assert one.count(path) == len(found)
    return [tuple(row.values()) for row in found]


def test_as_pyarrow_writes_them(tmp_path: Path):
    """Escaped, with nulls; whoever writes them leaves the columns out of the files."""
    texts = ["a/b=c", "ü %41", None]
    table = pa.table({
        "day": [date(2024, 2, 29)] * 3, "s": texts, "k": [1, 2, 3],
        "ts": pa.array([0] * 3, pa.timestamp("us", "UTC")),
    })  # fmt: skip
    parts = ds.partitioning(pa.schema([("day", pa.date32()), ("s", pa.string())]), flavor="hive")
    ds.write_dataset(table, tmp_path, format="parquet", partitioning=parts)
    found = [row for path in tmp_path.rglob("*.parquet") for row in rows(tmp_path, path)]
    assert {(row[0], row[1], row[2]) for row in found} == {
        (date(2024, 2, 29), k, s) for k, s in enumerate(texts, 1)
    }


def test_a_directory_counts_for_more_than_the_file(tmp_path: Path):
    (tmp_path / "S=dir").mkdir()
    path = tmp_path / "S=dir" / "x"
    table = {"s": ["file"], "day": [date(2024, 1, 1)], "k": [1], "ts": TIMES}
    pq.write_table(pa.table(table), path)
    assert [row[2] for row in rows(tmp_path, path)] == ["dir"]
    assert reader(tmp_path, exact=True).partition(path) is None


def test_csv_and_json(tmp_path: Path):
    """What is left of the columns is in the lines, in order."""
    (tmp_path / "k=7").mkdir()
    path = tmp_path / "k=7" / "x"
    path.write_text("2024-01-01,x,1970-01-01\nno day,x,1970-01-01")
    fine, wrong = rows(tmp_path, path, form="csv", exact=True)
    assert fine[:3] == (date(2024, 1, 1), 7, "x")
    assert wrong[1:3] == (7, "x")
    assert wrong[-2:] == ("day is not DATE: no day", "no day,x,1970-01-01")
    path.write_text('{"s": "x"}\n{"k": 1}')
    fine, wrong = rows(tmp_path, path, form="json", exact=True)
    assert fine[:3] == (None, 7, "x")
    assert wrong[-2] == "unknown field k"


def test_a_directory_that_says_no_value(tmp_path: Path):
    """Its files are set aside, each with its path."""
    (tmp_path / "day=soon").mkdir()
    path = tmp_path / "day=soon" / "x"
    pq.write_table(pa.table({"s": ["x", "y"], "k": [1, 2], "ts": [TIMES[0]] * 2}), path)
    (row,) = reader(tmp_path).rows(path).to_pylist()
    assert (row[REASON], row[ROW]) == ("cannot be read: day is not DATE: soon", str(path))


@pytest.mark.parametrize("below", ["z=1", "day=2024-01-01/day=2024-01-02", "day=", "archive", "k"])
def test_a_directory_that_names_no_column(tmp_path: Path, below: str):
    (tmp_path / below).mkdir(parents=True)
    source = source_of(tmp_path)
    with pytest.raises(SourceError, match="say recursiveFileLookup: true to read these as well"):
        source._is_ours(tmp_path / below / "x")


def test_what_waits(tmp_path: Path):
    """What Spark leaves is none of it: drafts, marks, what is hidden."""
    there = ["x", "k=1/x", "k=1/day=2024-01-01/x"]
    for name in (*there, "_SUCCESS", ".x.crc", "_temporary/0/x", "k=1/_temporary/0/x", "other/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for recursive, more in (("false", []), ("true", ["other/x"])):
        source = source_of(tmp_path, recursiveFileLookup=recursive)
        found = {str(path.relative_to(tmp_path)) for path in source._present()}
        assert found == {*there, *more}
