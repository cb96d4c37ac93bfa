"""Names of directories and files: all that a disk takes, or a refusal in one line."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from jobs import cli, status
from jobs.errors import MidstreamError, RefusedError
from jobs.tables import paths
from jobs.tables.delta_store import DeltaStore

HOSTILE = (
    "a*b", "a?b", "a[b", "a]b", "a[x]b", "a[!x]b", "a[]b", "[[]", "**", "a{b}", "a{b,c}", "{",
    "a'b", 'a"b', "a%zb", "100%", "a+b", "a#b", "a&b", "k=v", "a,b", "a;b", "a b", " lead",
    "trail ",
    "é漢", "~x", "$x", "a!b", "a:b", "...", "a|b", "a<b>", "a^b", "a`b", "@v1", ".h", "_h",
)  # fmt: skip
"""What tables may be called, too."""

NO_TABLE = ("a\\b", "a\\*b", "a\nb", "a\tb", "a%20b", "a%2Fb")
"""What Delta does not write, or writes elsewhere."""

DECOYS = ("axb", "ab", "aab", "a", "v")
"""What the names would match if they were patterns."""


def files(directory: Path) -> dict[Path, str]:
    """A file in a directory of each name and one of that name, and what is in it."""
    found = {}
    for name in (*HOSTILE, *NO_TABLE, *DECOYS):
        (directory / name).mkdir(exist_ok=True)
        for path in (directory / name / "f.parquet", directory / f"{name}.parquet"):
            pq.write_table(pa.table({"x": [str(path)]}), path)
            found[path] = str(path)
    return found


def test_duckdb_reads_the_files_of_these_names(tmp_path: Path):
    with duckdb.connect() as connection:
        for path, content in files(tmp_path).items():
            if paths.duck_reads(path):
                found = connection.execute(f"SELECT * FROM {paths.read_parquet([path])}").fetchall()
                assert found == [(content,)]
            else:
                with pytest.raises(MidstreamError, match="rename it"):
                    paths.read_parquet([path])


def test_spark_reads_the_files_of_these_names(spark: SparkSession, tmp_path: Path):
    """But for those that its streams never take, either."""
    known = {path: text for path, text in files(tmp_path).items() if path.name[0] not in "._"}
    rows = spark.read.schema("x STRING").options(**paths.LITERAL).parquet(*map(str, known))
    assert rows.columns == ["x"]
    assert sorted(row.x for row in rows.collect()) == sorted(known.values())


@pytest.mark.parametrize("name", HOSTILE)
def test_a_storage_of_this_name(tmp_path: Path, name: str):
    root = paths.local(str(tmp_path / name))
    store = DeltaStore(root)
    for table in ("out/q", "control/progress"):
        store.create(table, pa.schema([("batch", pa.int64()), ("content", pa.string())]))
        for batch in range(2):
            rows = pa.table({"batch": [batch], "content": [f'{{"b": {batch}}}']})
            store.commit(table, [store.put(table, rows)], batch)
        assert store.load(table).num_rows == 2
    store.merge("out/q", store.files("out/q"))
    assert len(store.files("out/q")) == 1
    assert store.tables() == ["control/progress", "out/q"]
    assert sorted(found["b"] for found in status.recent(root)) == [0, 1]
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", NO_TABLE)
def test_a_storage_that_delta_does_not_write(tmp_path: Path, name: str):
    with pytest.raises(RefusedError, match="Delta keeps no table") as error:
        paths.local(str(tmp_path / name))
    assert "\n" not in str(error.value)


@contextmanager
def somebody_else(place: Path) -> Iterator[None]:
    """For a while a person to whom the directory does not belong."""
    if root := os.geteuid() == 0:
        os.seteuid(65534)
    else:
        place.chmod(0)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        else:
            place.chmod(0o700)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that everybody may look into."""
    with TemporaryDirectory() as directory:
        Path(directory).chmod(0o777)
        yield Path(directory)


def test_a_storage_of_somebody_elses_is_not_taken_for_an_empty_one(shared: Path):
    own = shared / "own"
    own.mkdir(mode=0o700)
    (shared / "file").touch(0o600)
    assert paths.local(str(own)) == own
    with somebody_else(own):
        for path in (own, own / "deep" / "storage"):
            with pytest.raises(RefusedError, match="is not yours to look into") as error:
                paths.local(str(path))
            assert str(path) in str(error.value)
        assert paths.local(str(shared / "new" / "storage")) == shared / "new" / "storage"


def test_what_is_somebody_elses_is_no_defect(shared: Path, capsys: pytest.CaptureFixture[str]):
    own = shared / "home" / "services"
    own.mkdir(mode=0o700, parents=True)
    assert cli.run(["up", "--status", "--home", str(own.parent)]) == 1
    capsys.readouterr()
    with somebody_else(own):
        assert cli.run(["up", "--status", "--home", str(own.parent)]) == 3
    said = capsys.readouterr().err
    assert str(own) in said.replace("\n", "")
    assert "permission denied; do this as its owner" in said
