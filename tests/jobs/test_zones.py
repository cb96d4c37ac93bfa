"""Machines of other time zones: what a query says of a time is said in UTC, on every engine."""

import os
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from jobs.backends.duckdb.backend import connect
from jobs.streaming import BACKENDS
from jobs.tables.delta_store import DeltaStore

ZONES = ["America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"]
BEGAN = datetime(2024, 3, 9, 22, 17, tzinfo=UTC)
"""New York's clocks go forward eight hours later; those of Lord Howe go back on April 6th."""

HOURS = [*range(14), *range(24 * 28 - 12, 24 * 28 + 2)]
TIMES = [BEGAN + timedelta(hours=hour) for hour in HOURS]

SQL = """
SELECT n, hour(ts) AS hour, CAST(ts AS DATE) AS date, date_trunc('day', ts) AS day,
  ts + INTERVAL 1 DAY AS next, CAST(date AS TIMESTAMP) AS midnight, local, there
FROM s WHERE ts >= TIMESTAMP '2024-03-10 02:30:00' AND local = ts AND there = ts
"""
GROUPED = "SELECT count(*) AS many, window.start AS day FROM s GROUP BY window(ts, '1 day')"


def rows() -> pa.Table:
    """The same instants: in UTC, by a wall clock that is taken for UTC's, and in another zone."""
    here = pa.array(TIMES, pa.timestamp("us", "UTC"))
    return pa.table({
        "n": pa.array(range(len(TIMES)), pa.int64()),
        "ts": here,
        "local": here.cast(pa.timestamp("us")),
        "there": here.cast(pa.timestamp("us", "Asia/Tokyo")),
        "date": here.cast(pa.date32()),
    })  # fmt: skip


def expected() -> Counter[tuple[object, ...]]:
    return Counter(
        (
            n, t.hour, t.date(), t.replace(hour=0, minute=0), t + timedelta(days=1),
            t.replace(hour=0, minute=0), t, t,
        )
        for n, t in enumerate(TIMES)
        if t >= datetime(2024, 3, 10, 2, 30, tzinfo=UTC)
    )  # fmt: skip


def windows() -> Counter[tuple[object, ...]]:
    """Those that the watermark has passed."""
    days = Counter(t.replace(hour=0, minute=0) for t in TIMES)
    return Counter((n, day) for day, n in days.items() if day + timedelta(days=1) <= TIMES[-1])


def test_the_times_are_those_of_clocks_that_change():
    for zone in ("America/New_York", "Australia/Lord_Howe"):
        offsets = {t.astimezone(ZoneInfo(zone)).utcoffset() for t in TIMES}
        assert len(offsets) == 2


@pytest.mark.parametrize("zone", ZONES)
def test_duckdb_tells_time_in_utc_also_by_its_cursors(zone: str, tmp_path: Path):
    script = tmp_path / "hours.py"
    script.write_text(
        "from jobs.backends.duckdb.backend import connect\n"
        "one = connect()\n"
        "for c in (one, one.cursor()):\n"
        "    print(c.sql(\"SELECT hour(TIMESTAMPTZ '2024-03-10 07:30:00+00')\").fetchall())\n"
    )
    assert _python(zone, str(script)).splitlines() == ["[(7,)]"] * 2


def test_this_process_tells_time_in_utc():
    told = connect().cursor().sql("SELECT current_setting('TimeZone')").fetchall()
    assert told == [("UTC",)]


RUN = """
import sys
from pathlib import Path
from jobs import specs, streaming
from jobs.verify import judge

for name in sys.argv[1:]:
    job = specs.load(Path(name))
    streaming.run(job, streaming.Extent(until_caught_up=True), lambda _: None)
    print([str(verdict) for verdict in judge(job).verdicts if not verdict.right])
"""


@pytest.mark.spark
def test_a_job(tmp_path: Path):
    """Every engine in one process, of a zone that is half an hour off, and for half of the year."""
    (tmp_path / "data").mkdir()
    now = time.time()
    # a second batch lets the watermark of the first close its windows
    for at, some in enumerate((rows(), rows().slice(len(TIMES) - 1))):
        path = tmp_path / "data" / f"{at}.parquet"
        pq.write_table(some, path)
        os.utime(path, (now + at, now + at))
    schema = "n BIGINT, ts TIMESTAMP, local TIMESTAMP, there TIMESTAMP, date DATE"
    stream = {"source": "files", "path": "data", "format": "parquet", "schema": schema,
              "event_time": "ts", "options": {"maxFilesPerTrigger": 1}}  # fmt: skip
    files = []
    for engine in BACKENDS:
        job = {
            "job": "zones",
            "engine": engine,
            "storage": engine,
            "streams": {"s": stream},
            "queries": {"each": {"sql": SQL}, "days": {"sql": GROUPED}},
        }
        files.append(tmp_path / f"{engine}.yaml")
        files[-1].write_text(yaml.safe_dump(job))
    said = _python(ZONES[-1], "-c", RUN, *map(str, files))
    assert [line for line in said.splitlines() if line.startswith("[")] == ["[]"] * len(files)
    for engine in BACKENDS:
        store = DeltaStore(tmp_path / engine)
        assert _found(store, "each") == expected() + last(), engine
        assert _found(store, "days") == windows(), engine


def last() -> Counter[tuple[object, ...]]:
    """The last row once more."""
    (row,) = (row for row in expected() if row[0] == len(TIMES) - 1)
    return Counter([row])


def _found(store: DeltaStore, query: str) -> Counter[tuple[object, ...]]:
    table = store.load(f"out/{query}")
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _python(zone: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"TZ": zone}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
