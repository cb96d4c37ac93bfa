"""Make the archive of this version's layout: `make stores`, once when the layout is final."""

import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from jobs import cli, specs, streaming
from jobs.backends.duckdb.backend import DuckBackend
from jobs.engine.microbatch import Engine
from jobs.tables.columns import REASON, ROW
from jobs.tables.origin import LAYOUT, begun
from stats.store import COLUMNS, COMBINED, ERRORS, GROUPS, OPERATORS, VALIDATIONS, StatsStore
from tests.jobs import small, windows
from tests.stores import DONE, FOLLOW, KEPT

SECOND = 1_000_000


def main() -> None:
    """Run a job, change a plan of it, write statistics, decide."""
    with TemporaryDirectory() as directory:
        root = Path(directory)
        file = small.job(root, trigger="10 seconds")
        _inputs(root)
        _batches(file)
        _statistics(root / "storage")
        cli.run(["reoptimize", str(file), "--query", "three"])
        for log in root.rglob(".*.crc"):
            log.unlink()
        with tarfile.open(KEPT / f"layout-{LAYOUT}.tar.xz", "w:xz") as archive:
            for path in sorted(root.iterdir()):
                archive.add(path, path.name)


def _inputs(root: Path) -> None:
    """What each batch takes: all of it in time."""
    (root / "input").mkdir()
    for seed, name in enumerate(small.STREAMS):
        parts = []
        for file in range(DONE + FOLLOW):
            rows = small.rows(seed, file, 30)
            times = rows.column("ts").cast(pa.int64())
            fine = rows.filter(pc.greater_equal(times, small.START + 5 * SECOND * file))
            numbers = pa.array([file] * fine.num_rows, pa.int64())
            parts.append(fine.append_column("batch", numbers))
        pq.write_table(pa.concat_tables(parts), root / "input" / f"{name}.parquet")


def _batches(file: Path) -> None:
    job = specs.load(file)
    begun(Path(job.storage), small.STREAMS, small.START)
    ticks = iter(range(small.START + 5 * SECOND, small.START * 2, SECOND))
    engine = Engine(
        streaming.engine_job(job), streaming.job_store(job), DuckBackend(), lambda: next(ticks)
    )
    for number in range(DONE):
        if number == DONE // 2:
            words = ("((a b) c)", "--query", "three", "--strategy", "moving-state", "--yes")
            cli.run(["migrate", str(file), *words])
        engine.run(number, taken(file.parent, number))
    engine.close()
    assert str(engine.plans["three"]) == "((a b) c)"


def taken(root: Path, batch: int) -> dict[str, pa.Table]:
    """What a batch takes of each stream, as the engine takes it."""
    found = {}
    for name in small.STREAMS:
        rows = pq.read_table(root / "input" / f"{name}.parquet", filters=[("batch", "=", batch)])
        nothing = pa.nulls(rows.num_rows, pa.string())
        raw = rows.drop_columns(["batch"]).append_column(REASON, nothing)
        found[name] = raw.append_column(ROW, nothing)
    return found


def _statistics(storage: Path) -> None:
    """A few windows, with a row of every table."""
    windows.price(storage)
    joins = {("a", "b"): 0.1, ("b", "c"): 0.1}
    store = StatsStore.of(storage)
    for number in range(-4, 0):
        window = windows.window(small.START, number)
        rates = dict.fromkeys(small.STREAMS, 10.0)
        windows.write(storage, window, "three", rates, joins, selects={"0.1 < a.v": 0.9})
        heavy = [{"value": "1", "rows": 60}]
        store.replace(COLUMNS, window, [{"stream": "a", "value": "k", "rows": 600, "nulls": 12,
                                         "distinct": 10, "heavy": heavy}])  # fmt: skip
        store.replace(GROUPS, window, [{"query": "counted", "groups": 10.0}])
        store.replace(COMBINED, window, [{"query": "counted", "alias": "a", "rate": 9.0}])
        store.replace(OPERATORS, window, [{"operator": "x", "batches": 6, "rows": 60, "ms": 1.0,
                                           "state_rows": 30, "state_bytes": 900}])  # fmt: skip
        store.replace(VALIDATIONS, window, [{"table": "streams", "rule": "rows-known",
                                             "expectation": "expect", "passed": True,
                                             "observed": "600"}])  # fmt: skip
        store.replace(ERRORS, window, [{"query": "three", "predicted": 0.1, "measured": 0.1,
                                        "error": 0.0}])  # fmt: skip
    for path in sorted(store.root.iterdir()):
        DeltaTable(path).optimize.compact()
        DeltaTable(path).vacuum(0, enforce_retention_duration=False, dry_run=False)


if __name__ == "__main__":
    main()
