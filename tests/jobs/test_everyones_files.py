"""Whole jobs over files of all kinds with names of all kinds, on every engine."""

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
from pyspark.sql import SparkSession

from jobs import specs, streaming
from jobs.engine.checkpoint import Part
from jobs.engine.ingest import REASON, ROW
from jobs.engine.progress import history
from jobs.engine.sources import files
from jobs.engine.sources.common import SourceError
from jobs.engine.store import BATCH
from tests.jobs.engine.test_paths import DECOYS, HOSTILE, NO_TABLE
from tests.jobs.test_streaming import run

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
    """One tuple a file and stream; `s` is the file's name.  One file of Parquet is torn."""
    for stream in STREAMS:
        (place / stream).mkdir(parents=True)
    for k, (name, (kind, old)) in enumerate(zip(NAMES, cycle(TIMES), strict=False)):
        times = pa.array([moment(k)], pa.timestamp("us")).cast(kind)
        rows = pa.table({"k": [k], "s": [name], "ts": times})
        pq.write_table(rows, place / "p" / name, use_deprecated_int96_timestamps=old)
        with (place / "c" / name).open("w", newline="") as file:
            csv.writer(file).writerow([k, name, iso(k)])
        (place / "j" / name).write_text(json.dumps({"k": k, "s": name, "ts": iso(k)}))
    (place / "p" / "torn").write_bytes((place / "p" / NAMES[0]).read_bytes()[:100])
    far = pa.table({"k": [1], "s": ["far"], "ts": pa.array([2**63 - 1], pa.timestamp("us", "UTC"))})
    pq.write_table(far, place / "p" / "far")
    (place / "c" / "wrong").write_text('x,"y",z\n')
    (place / "j" / "wrong").write_text("{} {}\n")


def job(directory: Path, engine: str, storage: str = STORAGE) -> Path:
    content = {
        "job": "all", "engine": engine, "storage": storage,
        "streams": {
            name: {
                "source": "files", "path": f"{PLACE}/{name}", "format": form, "schema": SCHEMA,
                "event_time": "ts", "lateness": "1 hour",
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


@pytest.mark.parametrize("engine", streaming.EXECUTORS)
def test_every_file_is_read_once(
    spark: SparkSession, tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
):
    if engine == "spark-duckdb":
        monkeypatch.setattr(files, "_LARGE", 0)  # so that tasks read what has to be rewritten
    place = tmp_path / PLACE
    write(place)
    path = job(tmp_path, engine)

    batches = run(path)

    store = streaming.job_store(specs.load(path))
    results = [tuple(row.values()) for row in store.load("out/q").to_pylist()]
    assert sorted(results) == [(k, name, name, name) for k, name in enumerate(NAMES)]
    assert sum(batch.streams["p"].rejected for batch in batches) == 2
    assert set_aside(store, "p") == {
        str(place / "p" / "far"): "ts has no value of TIMESTAMP",
        str(place / "p" / "torn"): "cannot be read",
    }
    assert set_aside(store, "c") == {'x,"y",z': "k is not BIGINT: x, ts is not TIMESTAMP: z"}
    assert set_aside(store, "j") == {"{} {}": "not a JSON object"}
    if engine == "spark":
        read_by_batch(spark, path)


def set_aside(store: Any, stream: str) -> dict[str, str]:
    rows = store.load(f"rejected/{stream}").to_pylist()
    return {
        row[ROW]: row[REASON].split(":")[0] if row[REASON].startswith("cannot") else row[REASON]
        for row in rows
    }


def read_by_batch(spark: SparkSession, path: Path) -> None:
    """Check that the same can be read again for statistics, batch by batch."""
    spec = specs.load(path)
    done = history(streaming.job_store(spec))
    for inlet in streaming.streams(spec):
        name = inlet.stream.name
        ends = [None, *((p.taken or {})[name] for p in done)]
        parts = [Part(p.batch, *between) for p, between in zip(done, pairwise(ends), strict=True)]
        flows = {p.batch: p.streams[name] for p in done}
        taken = Counter({b: flow.rows + flow.late + flow.rejected for b, flow in flows.items()})
        rows = inlet.source.again(spark, inlet.taken, parts).toArrow()
        assert Counter(rows.column(BATCH).to_pylist()) == taken
        assert Counter(inlet.source.count(spark, inlet.taken, parts)) == taken
        fitting = [row["s"] for row in rows.to_pylist() if row[REASON] is None]
        assert sorted(fitting) == sorted(NAMES)


def test_directories_below_are_another_matter(spark: SparkSession, tmp_path: Path):
    """Spark would make columns of their names: they are refused, or read as they are."""
    write(tmp_path / PLACE)
    for name in ("k=1", "z=2"):
        below = tmp_path / PLACE / "j" / name
        below.mkdir()
        (below / "x").write_text(json.dumps({"k": 0, "s": name, "ts": iso(0)}))
    path = job(tmp_path, "duckdb", "storage")
    with pytest.raises(SourceError, match="say recursiveFileLookup: true to read these as well"):
        run(path)

    content = yaml.safe_load(path.read_text())
    content["streams"]["j"]["options"] = {"recursiveFileLookup": True}
    path.write_text(yaml.safe_dump(content))
    run(path)
    store = streaming.job_store(specs.load(path))
    found = Counter(row["c"] for row in store.load("out/q").to_pylist())
    assert found == Counter([*NAMES, "k=1", "z=2"])
