"""Storages that versions have left behind: opened, gone on with, or refused in one line."""

from collections import Counter
from json import loads
from pathlib import Path
from typing import Any

import duckdb
import pytest

from jobs import cli, specs, streaming
from jobs.backends.duckdb.backend import DuckBackend
from jobs.engine.microbatch import Engine
from jobs.tables.origin import LAYOUT
from stats.store import KEYS, TABLES, StatsStore
from tests.jobs import small
from tests.stores import DONE, FOLLOW, KEPT, unpack
from tests.stores.__main__ import taken

REFUSED = "was made by another version of midstream (layout 1, this one has {}): go on with that version, or give the job a new storage"  # noqa: E501


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    capsys.readouterr()
    code = cli.run([*words, "--json"])
    out, err = capsys.readouterr()
    assert err == ""
    return code, loads(out)


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job that this version's layout has been kept of."""
    monkeypatch.delenv(cli.DEBUG, raising=False)
    return unpack(LAYOUT, tmp_path)


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job of before storages had a layout."""
    monkeypatch.delenv(cli.DEBUG, raising=False)
    return unpack(1, tmp_path)


def test_every_layout_is_kept():
    assert {path.name for path in KEPT.glob("*.xz")} == {
        f"layout-{number}.tar.xz" for number in range(1, LAYOUT + 1)
    }


def test_a_kept_storage_is_read_by_every_command(job: Path, capsys: pytest.CaptureFixture[str]):
    file = str(job)
    code, status = told(capsys, "status", file)
    assert (code, status["batch"], status["plans"]["three"]) == (0, DONE - 1, "((a b) c)")
    code, shown = told(capsys, "stats", "show", file)
    assert (code, [one["verdict"] for one in shown["windows"]]) == (0, ["good"] * 4)
    code, decisions = told(capsys, "reoptimize", file, "--query", "three", "--dry-run")
    assert (code, decisions[0]["windows"] != []) == (3, True)
    code, history = told(capsys, "reoptimize", file, "--history")
    assert (code, [one["outcome"] for one in history]) == (0, ["blocked"])
    code, proposed = told(capsys, "migrate", file, "(a b c)", "--query", "three")
    assert (code, proposed["from"], proposed["to"]) == (0, "((a b) c)", "(a b c)")
    code, migration = told(capsys, "migration", "status", file)
    assert (code, migration["phase"], migration["to"]) == (0, "done", "((a b) c)")
    code, explained = told(capsys, "explain", file, "--query", "three")
    assert (code, explained["priced_by"]["source"]) == (0, "statistics")
    assert told(capsys, "maintain", file, "--dry-run")[0] == 0


@pytest.mark.parametrize("layout", range(1, LAYOUT + 1))
def test_statistics_of_every_layout_are_read_and_written(tmp_path: Path, layout: int):
    job = unpack(layout, tmp_path)
    store = StatsStore.of(job.parent / "storage")
    windows = store.windows()
    assert len(windows) == len(store.good()) == 4
    assert store.rows(KEYS, windows) == []  # they are from before there were any
    for table in TABLES.keys() - {KEYS}:
        rows = store.rows(table, windows)
        assert {row["window_start"] for row in rows} == {window.start for window in windows}
        assert set(rows[0]) == set(TABLES[table].names)
        store.replace(table, windows[0], [])
        assert store.rows(table, windows) == rows[len(rows) // 4 :]


JOINED = """
SELECT a.k, a.v + b.v AS v, c.s FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND a.v > 0.1
AND greatest(a.ts, b.ts, c.ts) - least(a.ts, b.ts, c.ts) <= INTERVAL 3 SECONDS
"""


def test_a_job_goes_on_with_a_kept_storage(job: Path):
    """Its results, those of before and those to come, are what DuckDB makes of all its input."""
    spec = specs.load(job)
    store = streaming.job_store(spec)
    ticks = iter(range(small.START + 100_000_000, small.START * 2, 1_000_000))
    engine = Engine(streaming.engine_job(spec), store, DuckBackend(), lambda: next(ticks))
    for number in range(DONE, DONE + FOLLOW):
        engine.run(number, taken(job.parent, number))
    engine.close()
    found = store.load("out/three").to_pylist()
    with duckdb.connect() as connection:
        for name in small.STREAMS:
            connection.read_parquet(str(job.parent / "input" / f"{name}.parquet")).create_view(name)
        expected = connection.execute(JOINED).fetchall()
    assert len(expected) > 200
    assert Counter((row["k"], round(row["v"], 9), row["s"]) for row in found) == Counter(
        (k, round(v, 9), s) for k, v, s in expected
    )


@pytest.mark.parametrize(
    "words",
    [
        ("run", "JOB", "--batches", "1"),
        ("verify", "JOB"),
        ("migrate", "JOB", "(a b c)", "--query", "three"),
        ("migration", "status", "JOB"),
        ("reoptimize", "JOB", "--dry-run"),
        ("stats", "collect", "JOB"),
        ("stats", "calibrate", "JOB"),
        ("status", "JOB"),
    ],
    ids=" ".join,
)
def test_a_storage_of_an_earlier_layout_is_refused_in_a_line(
    old: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
):
    code, said = told(capsys, *(str(old) if word == "JOB" else word for word in words))
    assert code == 3
    assert said["error"] == f"{old.parent / 'storage'} {REFUSED.format(LAYOUT)}"


def test_what_is_heavy_in_the_inputs_of_a_key_is_shown(
    old: Path, capsys: pytest.CaptureFixture[str]
):
    """An earlier version has not written it: there is nothing to show until it is gathered."""
    words = ["stats", "show", str(old), "--keys", "--last", "1"]
    assert cli.run(words) == 0
    assert "heaviest" not in capsys.readouterr().out
    store = StatsStore.of(old.parent / "storage")
    heavy = [{"value": "7", "rows": 300}, {"value": "8", "rows": 20}]
    rows = [
        {"query": "three", "key": "a.k = b.k = c.k", "alias": alias, "rows": 1_000, "nulls": 80,
         "heavy": heavy, "rest": 600, "others": 41.5}
        for alias in "abc"
    ]  # fmt: skip
    store.replace(KEYS, store.windows()[-1], rows)
    assert cli.run(words) == 0
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "three b a.k = b.k = c.k 1,000 7 (300), 8 (20) 600 42" in shown
    code, found = told(capsys, *words)
    assert (code, found["windows"][-1]["keys"]) == (0, rows)


def test_what_needs_no_job_reads_an_earlier_layout(old: Path, capsys: pytest.CaptureFixture[str]):
    code, shown = told(capsys, "stats", "show", str(old))
    assert (code, [one["verdict"] for one in shown["windows"]]) == (0, ["good"] * 4)
    assert cli.run(["stats", "show", str(old), "--streams", "--edges", "--columns"]) == 0
    code, explained = told(capsys, "explain", str(old), "--query", "three")
    assert (code, explained["priced_by"]) == (0, {"source": "assumed"})
    capsys.readouterr()
    assert cli.run(["explain", str(old), "--query", "three"]) == 0
    assert REFUSED.format(LAYOUT) in capsys.readouterr().out
