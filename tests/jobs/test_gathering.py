"""Statistics of a job that has run: from its own tables and the input that it read."""

from json import loads
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs import cli, specs, streaming
from jobs.commands.stats.validate import judge
from jobs.gathering import Gathering, Range
from jobs.tables.history import History
from jobs.tables.names import PROGRESS
from jobs.tables.progress import Progress
from jobs.verify.intake import take_in
from jobs.verify.past import past
from stats.store import BATCHES, EDGES, GATHERED, GROUPS, STREAMS, StatsStore, Window
from tests.jobs import small

SECOND = 1_000_000
SIZE = 5 * SECOND
WINDOWS = [Window(small.START + i * SIZE, small.START + (i + 1) * SIZE) for i in range(10)]
FILES = (0, 1, 2, 5, 6, 7)
"""Five seconds each: for ten seconds nothing happens."""


@pytest.fixture(scope="module")
def finished(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job that has taken one file of each stream a batch; c has nothing in the first window."""
    directory = tmp_path_factory.mktemp("gathered")
    for file in FILES:
        small.write(directory, range(file, file + 1))
    (directory / "c" / "0000.parquet").unlink()
    job = small.job(directory, statistics={"window": "5 seconds"})
    streaming.run(specs.load(job), streaming.Extent(until_caught_up=True), lambda _: None)
    return job


@pytest.fixture(scope="module")
def gathered(spark: SparkSession, finished: Path) -> Gathering:
    gathering = Gathering(specs.load(finished))
    gathering.gather(spark, gathering.wanted(Range()), lambda *_: None)
    return gathering


def progress(job: Path) -> list[Progress]:
    from jobs.tables.progress import history

    return history(streaming.job_store(specs.load(job)))


def versions(stats: StatsStore) -> dict[str, int]:
    return {table: DeltaTable(stats.path(table)).version() for table in GATHERED}


def accepted(job: Path) -> duckdb.DuckDBPyConnection:
    """The input as `verify` knows it: all that was read, less what should be set aside."""
    connection = duckdb.connect()
    take_in(connection, past(specs.load(job)))
    return connection


def test_windows_are_complete_once_a_batch_began_with_their_end_behind(
    finished: Path, gathered: Gathering
):
    began = [p.watermark for p in progress(finished)][-2]
    assert began is not None
    expected = [window for window in WINDOWS if window.end <= began]
    assert gathered.complete == gathered.stats.windows() == expected
    assert len(expected) >= 6


def test_tuples_are_counted_that_were_accepted(finished: Path, gathered: Gathering):
    windows = gathered.complete
    rows = {(r["window_start"], r["stream"]): r for r in gathered.stats.rows(STREAMS, windows)}
    assert len(rows) == 3 * len(windows)
    with accepted(finished) as connection:
        for stream in small.STREAMS:
            found = connection.execute(
                f'SELECT epoch_us(ts) // {SIZE} * {SIZE}, count(*) FROM "input@{stream}" GROUP BY 1'
            ).fetchall()
            known = dict(found)
            for window in windows:
                assert rows[window.start, stream]["rows"] == known.get(window.start, 0)
    assert rows[windows[0].start, "c"]["rows"] == 0
    assert sum(rows[windows[4].start, stream]["rows"] for stream in "abc") == 0


def test_pairs_are_counted_of_tuples_that_were_accepted(finished: Path, gathered: Gathering):
    text = (
        f"SELECT epoch_us(a.ts) // {SIZE} * {SIZE} AS w, count(*), count(*) FILTER (a.k = b.k) "
        'FROM "input@a" AS a, "input@b" AS b '
        f"WHERE epoch_us(a.ts) // {SIZE} = epoch_us(b.ts) // {SIZE} AND a.v > 0.1 GROUP BY w"
    )
    with accepted(finished) as connection:
        known = {w: (pairs, matches) for w, pairs, matches in connection.execute(text).fetchall()}
    rows = gathered.stats.rows(EDGES, gathered.complete)
    found = {r["window_start"]: (r["pairs"], r["matches"]) for r in rows
             if (r["query"], r["one"], r["other"]) == ("three", "a", "b")}  # fmt: skip
    assert found == {window.start: known.get(window.start, (0, 0)) for window in gathered.complete}


def test_what_was_taken_is_what_was_accepted_late_or_rejected(finished: Path, gathered: Gathering):
    done = progress(finished)
    began = [None, *(p.watermark for p in done)]
    rows = gathered.stats.rows(STREAMS, gathered.complete)
    for window in gathered.complete:
        own = [
            p for p, watermark in zip(done, began, strict=False)
            if window.start <= (WINDOWS[0].start if watermark is None else watermark) < window.end
        ]  # fmt: skip
        for row in rows:
            if row["window_start"] == window.start:
                flows = [p.streams[row["stream"]] for p in own]
                assert row["accepted"] == sum(flow.rows for flow in flows)
                assert row["late"] == sum(flow.late for flow in flows)
                assert row["rejected"] == sum(flow.rejected for flow in flows)
                assert row["taken"] == row["accepted"] + row["late"] + row["rejected"]
    assert sum(row["late"] for row in rows) > 0
    assert sum(row["rejected"] for row in rows) > 0


def test_batches_are_figures_of_the_job(finished: Path, gathered: Gathering):
    done = progress(finished)
    rows = gathered.stats.rows(BATCHES, gathered.complete)
    assert sum(row["batches"] for row in rows) == len(done) - 1
    assert all(p.cpu is not None and p.memory and p.backlog is not None for p in done)
    assert [p.backlog for p in done][-2:] == [2, 0]
    assert rows[0]["cpu"] == pytest.approx(sum(p.cpu for p in done[:2] if p.cpu is not None))


def test_windows_are_good_whether_a_batch_ran_in_them_or_not(finished: Path, gathered: Gathering):
    """A query groups: of a window without a batch there are no groups to count."""
    idle = [row for row in gathered.stats.rows(BATCHES, gathered.complete) if not row["batches"]]
    assert idle
    groups = {r["window_start"]: r["groups"] for r in gathered.stats.rows(GROUPS)}
    assert [groups[row["window_start"]] for row in idle] == [None] * len(idle)
    assert [verdict.reasons for verdict in judge(specs.load(finished))] == [[]] * len(
        gathered.complete
    )
    assert gathered.stats.good() == gathered.complete


def test_gathering_again_changes_nothing(spark: SparkSession, gathered: Gathering):
    before = versions(gathered.stats)
    gathered.gather(spark, gathered.wanted(Range(again=True)), lambda *_: None)
    assert versions(gathered.stats) == before


def test_gaps_are_filled(spark: SparkSession, gathered: Gathering):
    whole = {table: gathered.stats.read(table) for table in GATHERED}
    for table in GATHERED:
        gathered.stats.replace_all(table, {w: [] for w in gathered.complete[1:3]})
    assert gathered.wanted(Range()) == gathered.complete[1:3]
    told: list[tuple[int, int]] = []
    gathered.gather(spark, gathered.wanted(Range()), lambda *done: told.append(done))
    assert told[-1] == (2, 2)
    for table in GATHERED:
        order = [(name, "ascending") for name in GATHERED[table].names[:4]]
        assert gathered.stats.read(table).sort_by(order).equals(whole[table].sort_by(order))


def test_the_command(finished: Path, gathered: Gathering, capsys: pytest.CaptureFixture[str]):
    def told(*arguments: str, code: int = 0) -> Any:
        capsys.readouterr()
        assert cli.run(["stats", *arguments, "--json"]) == code
        return loads(capsys.readouterr().out)

    assert told("collect", str(finished))["gathered"] == []
    assert (
        "not after"
        in told("collect", str(finished), "--from", "2026-01-02", "--to", "2026-01-01", code=2)[
            "error"
        ]
    )
    assert "expected a time" in told("collect", str(finished), "--from", "noon", code=2)["error"]
    shown = told("show", str(finished), "--last", "2", "--edges")["windows"]
    assert [window["start"] for window in shown] == [
        "2023-11-14T22:13:40.000+00:00", "2023-11-14T22:13:45.000+00:00",
    ]  # fmt: skip
    assert {edge["query"] for edge in shown[0]["edges"]} == {"three", "two", "counted"}
    assert "none is quarantined" in told("show", str(finished), "--quarantined", code=3)["error"]


def test_a_job_that_has_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.run(["stats", "collect", str(small.job(tmp_path))]) == 3
    assert "has not finished a batch yet" in capsys.readouterr().err


def test_history_is_the_same_in_the_middle(finished: Path, gathered: Gathering):
    store = streaming.job_store(specs.load(finished))
    found = History(store, PROGRESS)
    done = progress(finished)
    assert found.last == done[-1].batch
    assert [row["batch"] for row in found.between(1, 3)] == [1, 2, 3]
    assert found.first(lambda row: row["batch"] >= 2) == 2
    assert found.first(lambda row: False) == found.last + 1
