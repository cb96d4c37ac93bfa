"""A whole job over files of all kinds with names of all kinds, and how each engine reads them."""

import csv
import json
from collections import Counter
from datetime import UTC, datetime
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from jobs import specs, streaming, streaming_errors
from jobs.backends.duckdb.backend import connect
from jobs.sources import files
from jobs.sources.checkpoint import OffsetRange
from jobs.sources.common import SourceError
from jobs.tables.columns import BATCH, REASON, ROW
from jobs.tables.progress import history
from tests.jobs.tables.test_paths import DECOYS, HOSTILE, NO_TABLE
from tests.jobs.test_streaming import differences, run

NAMES = [
    name for name in (*HOSTILE, *NO_TABLE, *DECOYS, "_k=v") if name[0] not in "._" or "=" in name
]
"""Of files; those that begin with a dot or a line Spark's streams leave out."""

PLACE = "in [*]{x,y}\\?k=v#%20é;'\"\n.h/.hidden/_k=1"
STORAGE = "st [*]{x,y}?k=v#é;' \"h/_s"
START = 1_700_000_000_000_000
SCHEMA = "k BIGINT, s STRING, ts TIMESTAMP"
STREAMS = {"p": "parquet", "c": "csv", "j": "json"}

TIMES: list[tuple[pa.DataType, bool]] = [
    (pa.timestamp("us", "UTC"), False), (pa.timestamp("us"), False), (pa.timestamp("ns"), False),
    (pa.timestamp("ns"), True), (pa.timestamp("ms", "Asia/Tokyo"), False),
]  # fmt: skip


def moment(k: int) -> int:
    return START + k * 1_000_000


def iso(k: int) -> str:
    return datetime.fromtimestamp(moment(k) // 1_000_000, UTC).isoformat()


def write(place: Path) -> None:
    """A tuple a file, whose name it tells; of texts, which are found alike, some only are alone."""
    for stream in STREAMS:
        (place / stream).mkdir(parents=True)
    for k, (name, (kind, old)) in enumerate(zip(NAMES, cycle(TIMES), strict=False)):
        times = pa.array([moment(k)], pa.timestamp("us")).cast(kind)
        rows = pa.table({"k": [k], "s": [name], "ts": times, "more": [[k]]})
        pq.write_table(rows, place / "p" / name, use_deprecated_int96_timestamps=old)
        alone = name if k % APART == 0 else "others"
        with (place / "c" / alone).open("a", newline="") as file:
            csv.writer(file).writerow([k, name, iso(k)])
        with (place / "j" / alone).open("a") as file:
            file.write(json.dumps({"k": k, "s": name, "ts": iso(k)}) + "\n")
    (place / "p" / "torn").write_bytes((place / "p" / NAMES[0]).read_bytes()[:100])
    far = pa.table({"k": [1], "s": ["far"], "ts": pa.array([2**63 - 1], pa.timestamp("us", "UTC"))})
    pq.write_table(far, place / "p" / "far")
    (place / "c" / "wrong").write_text('x,"y",z\n')
    (place / "j" / "wrong").write_text("{} {}\n")
    below(place)


APART = 6
"""Of so many tuples of a text one has a file of its own: Spark asks a process about each file."""

BELOW = len(NAMES)
"""What `k` is in directories below: two streams have it from their names, the third reads there."""


def below(place: Path) -> None:
    """Partitions, directories of any other name, and what writers leave beside their files."""
    for stream in STREAMS:
        for name in ("_SUCCESS", ".part.crc", "_temporary/0/part", "a._COPYING_", ".hidden/part"):
            (place / stream / name).parent.mkdir(parents=True, exist_ok=True)
            (place / stream / name).write_text("no row")
    for directory in ("p/k", "c/k", "j/z"):
        (place / f"{directory}={BELOW}" / "_temporary").mkdir(parents=True)
        (place / f"{directory}={BELOW}" / "_temporary" / "part").write_text("no row")
    times = pa.array([moment(BELOW) // 1000], pa.timestamp("ms"))
    rows = pa.table({"TS": times, "S": ["below"]})
    pq.write_table(rows, place / "p" / f"k={BELOW}" / "part", compression="zstd")
    (place / "c" / f"k={BELOW}" / "part").write_text(f"below,{iso(BELOW)}\r\n")
    line = json.dumps({"k": BELOW, "s": "below", "ts": iso(BELOW)})
    (place / "j" / f"z={BELOW}" / "part").write_text(line)


def job(directory: Path, engine: str, storage: str = STORAGE) -> Path:
    content = {
        "job": "all", "engine": engine, "storage": storage,
        "streams": {
            name: {
                "source": "files", "path": f"{PLACE}/{name}", "format": form, "schema": SCHEMA,
                "event_time": "ts", "lateness": "1 hour",
                **({"options": {"recursiveFileLookup": True}} if name == "j" else {}),
            }
            for name, form in STREAMS.items()
        },
        "queries": {"q": {
            "sql": "SELECT p.k, p.s AS a, c.s AS b, j.s AS c FROM p [RANGE 1 SECOND]"
            " JOIN c [RANGE 1 SECOND] ON p.k = c.k JOIN j [RANGE 1 SECOND] ON c.k = j.k",
        }},
    }  # fmt: skip
    path = directory / f"{engine}.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("everyones") / PLACE


@pytest.fixture(scope="module")
def path(spark: SparkSession, place: Path) -> Path:
    """A job that has run over all of them, by Spark's own listing."""
    write(place)
    made = job(place.parents[PLACE.count("/")], "duckdb")
    run(made)
    return made


ALL = [*NAMES, "below"]


def test_every_file_is_read_once(path: Path, place: Path):
    store = streaming.job_store(specs.load(path))
    results = [tuple(row.values()) for row in store.load("out/q").to_pylist()]
    assert sorted(results) == [(k, name, name, name) for k, name in enumerate(ALL)]
    assert sum(batch.streams["p"].rejected for batch in history(store)) == 2
    assert set_aside(store, "p") == {
        str(place / "p" / "far"): "ts has no value of TIMESTAMP",
        str(place / "p" / "torn"): "cannot be read",
    }
    assert set_aside(store, "c") == {'x,"y",z': "k is not BIGINT: x, ts is not TIMESTAMP: z"}
    assert set_aside(store, "j") == {"{} {}": "not a JSON object"}
    assert differences(path) == []
    assert [one.source.waiting(one.taken, 0) for one in streaming.streams(specs.load(path))] == [
        0
    ] * 3


@pytest.mark.parametrize("where", ["tasks", "spark"])
def test_every_engine_reads_the_same(
    spark: SparkSession, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
):
    """DuckDB in Spark's tasks and Spark itself, from files that tasks have written anew."""
    monkeypatch.setattr(files, "_LARGE", 0)
    for inlet in streaming.streams(specs.load(path)):
        source, taken = inlet.source, inlet.taken
        assert isinstance(source, files.FilesSource)
        if where == "spark":
            found = source.frame_of(taken, 0, scratch=tmp_path, spark=spark).toArrow()
        else:
            with connect() as connection:
                filed = source.filed(taken, 0, scratch=tmp_path, spark=spark)
                filed.define(connection, "found", None)
                found = connection.sql("FROM found").to_arrow_table()
        assert told(found) == told(source.rows(taken, 0))


def told(rows: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in rows.to_pylist())


def set_aside(store: Any, stream: str) -> dict[str, str]:
    rows = store.load(f"rejected/{stream}").to_pylist()
    return {
        row[ROW]: row[REASON].split(":")[0] if row[REASON].startswith("cannot") else row[REASON]
        for row in rows
    }


def test_statistics_read_the_same_batch_by_batch(spark: SparkSession, path: Path):
    spec = specs.load(path)
    done = history(streaming.job_store(spec))
    for inlet in streaming.streams(spec):
        name = inlet.stream.name
        ends = [None, *((p.taken or {})[name] for p in done)]
        parts = [
            OffsetRange(p.batch, *between) for p, between in zip(done, pairwise(ends), strict=True)
        ]
        flows = {p.batch: p.streams[name] for p in done}
        taken = Counter({b: flow.rows + flow.late + flow.rejected for b, flow in flows.items()})
        rows = inlet.source.again(spark, inlet.taken, parts).toArrow()
        assert Counter(rows.column(BATCH).to_pylist()) == taken
        assert Counter(inlet.source.count(spark, inlet.taken, parts)) == taken
        fitting = [row["s"] for row in rows.to_pylist() if row[REASON] is None]
        assert sorted(fitting) == sorted(ALL)


def test_directories_below_are_another_matter(place: Path, path: Path):
    """Spark would make columns of their names: they are declared, read as they are, or refused."""
    content = yaml.safe_load(path.read_text())
    del content["streams"]["j"]["options"]
    other = path.with_name("refused.yaml")
    other.write_text(yaml.safe_dump(content))
    with pytest.raises(SourceError, match="say recursiveFileLookup: true to read these as well"):
        streaming.streams(specs.load(other))


def test_partitions_that_differ_are_told_in_a_line():
    """Spark's own words go over ten lines, and say nothing of what to do."""
    text = (
        "[CONFLICTING_PARTITION_COLUMN_NAMES] Conflicting partition column names detected:\n\n"
        "\tPartition column name list #0: k\n\tPartition column name list #1: k, day\n\nPlease "
        "check the following directories:\n\n\tfile:/in/a%20b/k=1\n\tfile:/in/a%20b/k=1/day=2"
    )
    said = str(streaming_errors.explain(AnalysisException(text), Path("storage")))
    assert said.startswith("directories below /in/a b/k=1, or one of its files, name other columns")
    assert "\n" not in said
