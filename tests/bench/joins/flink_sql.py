"""Flink SQL's interval joins.  Runs in an environment of its own: nothing here but Flink's.

Flink's Python package brings no Parquet, so it reads and writes the same rows as CSV.  It reads
files in no order of time, so its watermark lags by the whole input: else rows would be late.
"""

import json
import sys
import time
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]


def main(kind: str, job: dict, data: Path, out: Path) -> dict:  # type: ignore[type-arg]
    """Run all of it; the time begins when the job is submitted."""
    settings = {
        "parallelism.default": "2",
        "state.backend.type": "rocksdb" if kind.endswith("rocksdb") else "hashmap",
        "execution.checkpointing.interval": "5 s",
        "execution.checkpointing.dir": (out / "checkpoints").as_uri(),
        "execution.checkpointing.incremental": "true",
        "table.local-time-zone": "UTC",
    }
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in settings.items():
        tables.get_config().set(name, value)
    for stream in job["streams"]:
        tables.execute_sql(
            f"CREATE TABLE {stream} (k BIGINT, j BIGINT, v BIGINT, ms BIGINT, "
            f"ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts - {job['lag']}) WITH "
            f"('connector' = 'filesystem', 'path' = '{data / stream}', 'format' = 'csv')"
        )
    tables.execute_sql(
        f"CREATE TABLE sink ({job['columns']}) WITH "
        f"('connector' = 'filesystem', 'path' = '{out / 'out'}', 'format' = 'csv')"
    )
    began = time.perf_counter()
    tables.execute_sql(f"INSERT INTO sink {job['sql']}").wait()
    seconds = time.perf_counter() - began
    files = [p for p in (out / "out").rglob("*") if p.is_file() and not p.name.endswith(".crc")]
    rows = [line.split(",") for p in files for line in p.read_text().splitlines()]
    if job["closed"] is None:
        return {"seconds": seconds, "results": len(rows)}
    closed = [row for row in rows if int(row[1]) <= job["closed"]]
    return {"seconds": seconds, "results": sum(int(row[2]) for row in closed)}


if __name__ == "__main__":
    made = main(sys.argv[1], json.loads(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]))
    print("RESULT " + json.dumps(made))
