"""After many batches there are few files, and nothing is lost."""

from collections import Counter
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from jobs.backends.duckdb.backend import DuckBackend
from jobs.engine.ingest import Ingest
from jobs.engine.inline_compaction import Limits, tidy
from jobs.engine.microbatch import Engine, Job
from jobs.status import recent
from jobs.tables.columns import REASON, ROW
from jobs.tables.delta_store import DeltaStore
from jobs.tables.names import DECISIONS, PROGRESS
from jobs.tables.progress import decided, history, last
from optimizer.plan import build, parse
from tests.optimizer.builders import joined, stream

SECOND = 1_000_000
LIMITS = Limits(files=3, batches=8, recent=2)
BATCHES = 40


def _engine(store: DeltaStore) -> Engine:
    plan = build(joined("ab", [("a", "b")]), parse("(a b)"))
    streams = {one.name: Ingest(one) for one in plan.query.streams.values()}
    clock = count(100 * SECOND)
    return Engine(Job("j", streams, {"q": plan}), store, DuckBackend(), clock.__next__)


def _input(batch: int) -> dict[str, pa.Table]:
    columns = {column.name: [batch] for column in stream("a", "k", "v", "w").columns}
    times = pa.array([SECOND + batch], pa.timestamp("us", "UTC"))
    nothing = pa.nulls(1, pa.string())
    rows = pa.table(columns | {"ts": times, REASON: nothing, ROW: nothing})
    return dict.fromkeys("ab", rows)


@pytest.fixture(params=[True, False], ids=["time left", "no time"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> DeltaStore:
    store = DeltaStore(tmp_path)
    engine = _engine(store)
    for batch in range(BATCHES):
        engine.run(batch, _input(batch))
        tidy(engine, lambda: request.param, LIMITS)
    engine.close()
    return DeltaStore(tmp_path)


def test_there_are_few_files_and_all_rows(store: DeltaStore):
    for table in store.tables():
        if table.startswith("state/"):
            partitions = Counter(file.until for file in store.files(table))
            assert max(partitions.values()) <= LIMITS.files * LIMITS.overdue
            assert store.load(table).num_rows == BATCHES
    assert store.load("out/q").num_rows == BATCHES


@pytest.mark.parametrize("table", [DECISIONS, PROGRESS])
def test_control_tables_stay_short(store: DeltaStore, table: str):
    assert len(store.files(table)) < BATCHES / 2
    assert sorted(store.load(table).column("batch").to_pylist()) == list(range(BATCHES))


def test_the_newest_is_found_as_before(store: DeltaStore):
    assert last(store).batch == BATCHES - 1
    assert decided(store, BATCHES - 1) is not None
    assert [progress.batch for progress in history(store)] == list(range(BATCHES))
    assert recent(store.root)[0]["batch"] == BATCHES - 1


def test_another_process_goes_on(store: DeltaStore):
    engine = _engine(store)
    engine.run(BATCHES, _input(BATCHES))
    assert store.load("out/q").num_rows == BATCHES + 1
    engine.close()


def test_the_engines_own_tables_forget_and_have_checkpoints(store: DeltaStore):
    table = DeltaTable(store.path(PROGRESS))
    assert table.metadata().configuration["delta.logRetentionDuration"] == "interval 10 minutes"
    assert list((store.path(PROGRESS) / "_delta_log").glob("*.checkpoint.parquet"))
