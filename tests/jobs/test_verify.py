"""Verifying tells what is missing, duplicate or wrong, what it judges, and when it cannot tell."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from json import loads
from math import inf
from os import utime
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any
from unittest.mock import ANY
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyspark.sql import SparkSession

from jobs import cli, specs, streaming
from jobs.tables.columns import BATCH, REASON, ROW, WATERMARK
from jobs.tables.progress import history
from jobs.verify import expected, intake, judge, judging, results
from jobs.verify.past import past
from tests.jobs import small

NAMES = {
    "names": {
        "sql": "SELECT a.k AS a, b.s AS e, a.v + b.v AS _nth, a.v - b.v AS nth, b.v AS b"
        " FROM a [RANGE 1 SECONDS] JOIN b [RANGE 1 SECONDS] ON a.k = b.k"
    },
    "near-zero": {
        "sql": "SELECT a.k AS e, sum(a.v - 0.5) - sum(a.v) + 0.5 * count(*) AS a,"
        " avg(a.v - b.v) AS _batch, window.end AS _until"
        " FROM a [RANGE 3 SECONDS] JOIN b [RANGE 3 SECONDS] ON a.k = b.k"
        " GROUP BY a.k, window(a.ts, '5 seconds')"
    },
}
"""Queries whose columns are called as anything may be, and a sum of which nothing is left."""


@pytest.fixture(scope="module")
def finished(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("finished")
    small.write(directory, range(3))
    job = small.job(directory, queries={**small.QUERIES, **NAMES})
    streaming.run(specs.load(job), streaming.Extent(until_caught_up=True), lambda _: None)
    return job


@pytest.fixture
def storage(finished: Path, tmp_path: Path) -> Iterator[Path]:
    """The tables and the job file, to be spoilt and put right again."""
    storage, text = finished.parent / "storage", finished.read_text()
    storage.rename(storage.with_name("kept"))
    copytree(storage.with_name("kept"), storage)
    yield storage
    finished.write_text(text)
    storage.rename(tmp_path / "spoilt")
    storage.with_name("kept").rename(storage)


def verdicts(job: Path, capsys: pytest.CaptureFixture[str], *options: str, code: int = 1):
    capsys.readouterr()
    assert cli.run(["verify", str(job), "--json", *options]) == code
    return loads(capsys.readouterr().out)


def test_right_results(finished: Path, capsys: pytest.CaptureFixture[str]):
    found = verdicts(finished, capsys, code=0)
    assert [verdict["query"] for verdict in found] == [*small.QUERIES, *NAMES]
    for verdict in found:
        assert verdict["verdict"] == "right"
        assert verdict["expected"] == verdict["actual"] > 0
        assert verdict["missing"] == verdict["duplicate"] == verdict["wrong"] == 0
        assert "since batch 0, up to batch 2" in verdict["judged"]


# --- bugs planted in results and in what was set aside -------------------------------------------

Spoil = Callable[[Path], object]


@dataclass(frozen=True)
class Planted:
    """What is done to a storage, and what must be said of a query."""

    spoil: Spoil
    query: str
    counts: tuple[int, int, int] | None = (0, 0, 0)
    """Missing, duplicate, wrong; nothing if that is for nobody to tell."""
    verdict: str = "wrong"
    reason: str = ""


def table(storage: Path, query: str) -> DeltaTable:
    return DeltaTable(storage / "out" / query)


def rows(storage: Path, query: str) -> pa.Table:
    return table(storage, query).to_pyarrow_table()


def written(storage: Path, query: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Put other rows, perhaps of another schema, in place of a query's results."""
    changed = change(rows(storage, query))
    write_deltalake(storage / "out" / query, changed, mode="overwrite", schema_mode="overwrite")


def replaced(query: str, column: int, row: int, value: Any) -> Spoil:
    """Another value in one place."""

    def change(found: pa.Table) -> pa.Table:
        values = found.column(column).to_pylist()
        values[row] = value(values[row]) if callable(value) else value
        kind = found.schema.field(column)
        return found.set_column(column, kind, pa.array(values, kind.type))

    return lambda storage: written(storage, query, change)


def swapped(query: str, column: int) -> Spoil:
    """The least and the greatest value of a column in each other's place."""

    def change(found: pa.Table) -> pa.Table:
        values = found.column(column).to_pylist()
        low, high = values.index(min(values)), values.index(max(values))
        values[low], values[high] = values[high], values[low]
        kind = found.schema.field(column)
        return found.set_column(column, kind, pa.array(values, kind.type))

    return lambda storage: written(storage, query, change)


def typed(query: str, column: int, kind: pa.DataType) -> Spoil:
    def change(found: pa.Table) -> pa.Table:
        name = found.schema.field(column).name
        return found.set_column(column, name, found.column(column).cast(kind))

    return lambda storage: written(storage, query, change)


def aside(storage: Path, kind: str) -> tuple[Path, pa.Table]:
    """A table of rows set aside, and what it holds."""
    path = storage / kind / "a"
    return path, DeltaTable(path).to_pyarrow_table()


def hidden(kind: str) -> Spoil:
    """A row set aside is lost."""

    def spoil(storage: Path) -> None:
        path, found = aside(storage, kind)
        write_deltalake(path, found.slice(1), mode="overwrite")

    return spoil


def good_row(kind: str, extra: dict[str, Any]) -> Spoil:
    """A row that counted is set aside as well."""

    def spoil(storage: Path) -> None:
        path, found = aside(storage, kind)
        tuples = small.rows(10, 1).to_pylist()
        good = next(t for t in tuples if t["ts"] and t["ts"].timestamp() * 1e6 > small.START + 5e6)
        row = pa.Table.from_pylist([good | extra | {BATCH: 1}], schema=found.schema)
        write_deltalake(path, row, mode="append")

    return spoil


def appended(app: str, batch: int) -> Spoil:
    """Rows that another writer has added, as its part of that number."""

    def spoil(storage: Path) -> None:
        part = CommitProperties(app_transactions=[Transaction(app, batch)])
        found = rows(storage, "two").slice(0, 5)
        write_deltalake(storage / "out/two", found, mode="append", commit_properties=part)

    return spoil


def compacted(storage: Path) -> None:
    table(storage, "two").optimize.compact()
    table(storage, "two").vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def forgotten(storage: Path) -> None:
    """Two storages write to a sink, whose log has forgotten its first versions."""
    appended(f"midstream-{uuid4()}", 3)(storage)
    table(storage, "two").create_checkpoint()
    (storage / "out/two/_delta_log" / f"{0:020d}.json").unlink()
    (storage / "out/two/_delta_log" / f"{1:020d}.json").unlink()


def defined(change: Callable[[list[Any]], list[Any]]) -> Spoil:
    def spoil(storage: Path) -> None:
        path = storage / "control/definitions.json"
        path.write_text(json.dumps(change(loads(path.read_text()))))

    return spoil


def turned(storage: Path) -> None:
    """The table as somebody else might make it: with the columns in another order."""
    found = rows(storage, "two").select(["s", "k"])
    rmtree(storage / "out/two")
    write_deltalake(storage / "out/two", found)


def deleted(storage: Path) -> None:
    row = rows(storage, "counted").slice(0, 1).to_pylist()[0]
    table(storage, "counted").delete(f"k = {row['k']} AND at = '{row['at'].isoformat()}'")


ALL = {"two": 710, "three": 2716, "counted": 48}

PLANTED: dict[str, Planted] = {
    "a row lost": Planted(deleted, "counted", (1, 0, 0), reason="somebody else changed rows"),
    "a row twice": Planted(
        lambda s: write_deltalake(s / "out/two", rows(s, "two").slice(0, 1), mode="append"),
        "two", (0, 1, 0),
    ),
    "a row made up": Planted(
        lambda s: write_deltalake(
            s / "out/three", rows(s, "three").slice(0, 1).set_column(0, "k", [[777]]),
            mode="append",
        ), "three", (0, 0, 1),
    ),
    "a key wrong": Planted(replaced("two", 0, 0, 777), "two", (1, 0, 1)),
    "a text wrong": Planted(replaced("names", 1, 0, "s9"), "names", (1, 0, 1)),
    "null for a value": Planted(replaced("three", 1, 0, None), "three", (1, 0, 1)),
    "doubles swapped": Planted(swapped("counted", 2), "counted", (2, 0, 2)),
    "one of several doubles swapped": Planted(swapped("names", 3), "names", (2, 0, 2)),
    "infinity for a large value": Planted(replaced("counted", 2, 0, inf), "counted", (1, 0, 1)),
    "infinity for a sum near zero": Planted(
        replaced("near-zero", 1, 0, -inf), "near-zero", (1, 0, 1)
    ),
    "a thousandth for a sum near zero": Planted(
        replaced("near-zero", 1, 0, 1e-3), "near-zero", (1, 0, 1)
    ),
    "the last digits of a sum": Planted(
        lambda s: table(s, "counted").update({"m": "m * (1 + 1e-13)"}), "counted", verdict="right"
    ),
    "the last digits of a carried double": Planted(
        replaced("names", 4, 0, lambda v: v * (1 + 1e-13)), "names", (1, 0, 1)
    ),
    "a millionth of a sum": Planted(
        replaced("counted", 2, 0, lambda v: v * (1 + 1e-6)), "counted", (1, 0, 1)
    ),
    "another type": Planted(
        typed("two", 0, pa.string()), "two", (ALL["two"], 0, ALL["two"]),
        reason="column k is STRING, and should be BIGINT",
    ),
    "a narrower type": Planted(
        typed("two", 0, pa.int32()), "two", (ALL["two"], 0, ALL["two"]),
        reason="column k is INT, and should be BIGINT",
    ),
    "columns in another order": Planted(
        turned, "two",
        (ALL["two"], 0, ALL["two"]), reason="the columns are s, k; the query has k, s",
    ),
    "a column more": Planted(
        lambda s: written(s, "two", lambda found: found.append_column("x", found.column("k"))),
        "two", (ALL["two"], 0, ALL["two"]), reason="the columns are k, s, x",
    ),
    "no results at all": Planted(lambda s: rmtree(s / "out/two"), "two", (ALL["two"], 0, 0)),
    "an empty table": Planted(
        lambda s: written(s, "two", lambda found: found.slice(0, 0)), "two", (ALL["two"], 0, 0)
    ),
    "a late row hidden": Planted(
        hidden("late"), "two", reason="1 rows should be in late/a and are not"
    ),
    "a rejected row hidden": Planted(
        hidden("rejected"), "two", reason="1 rows should be in rejected/a and are not"
    ),
    "a good row late": Planted(
        good_row("late", {WATERMARK: 2**62}), "two", reason="1 rows of late/a should not be there"
    ),
    "a good row rejected": Planted(
        good_row("rejected", {REASON: "no event time", ROW: None}), "two",
        reason="1 rows of rejected/a should not be there",
    ),
    "a good row rejected as text": Planted(
        good_row("rejected", {REASON: "not a JSON object", ROW: "{}"}), "two",
        reason="1 rows of rejected/a should not be there",
    ),
    "rows of another storage": Planted(
        appended(f"midstream-{uuid4()}", 3), "two", verdict="right"
    ),
    "rows of somebody else": Planted(
        appended("somebody", 3), "two", (0, 5, 0), reason="somebody else changed rows"
    ),
    "compacted and vacuumed": Planted(compacted, "two", verdict="right"),
    "whose rows are whose is forgotten": Planted(
        forgotten, "two", None, "cannot tell", "does not say any more whose rows are whose"
    ),
    "what ran is forgotten": Planted(
        lambda s: (s / "control/definitions.json").unlink(), "two", None, "cannot tell",
        "control/definitions.json does not say",
    ),
    "what ran is another query": Planted(
        defined(lambda known: loads(json.dumps(known).replace("a.k, b.s", "a.k, a.s"))), "two",
        None, "cannot tell", "what query two was in batch 2 cannot be read any more",
    ),
    "a torn definition": Planted(
        lambda s: (s / "control/definitions.json").write_text("[{"), "two", None, "cannot tell",
        "verify cannot go on",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_planted(name: str, finished: Path, storage: Path, capsys: pytest.CaptureFixture[str]):
    planted = PLANTED[name]
    planted.spoil(storage)
    code = {"right": 0, "wrong": 1, "cannot tell": 4}[planted.verdict]
    found = verdicts(finished, capsys, "--query", planted.query, code=code)
    figures = tuple(found[name] for name in ("missing", "duplicate", "wrong"))
    assert figures == (planted.counts if planted.verdict != "cannot tell" else (None,) * 3)
    assert found["verdict"] == planted.verdict
    assert planted.reason in found["reason"]
    assert "defect" not in found["reason"]


def test_rows_of_a_batch_that_is_not_done_do_not_count(
    finished: Path, storage: Path, capsys: pytest.CaptureFixture[str]
):
    appended(writer(storage), 3)(storage)
    assert verdicts(finished, capsys, "--query", "two", code=0)["actual"] == ALL["two"]


def test_the_watermark_follows_from_the_tuples(
    finished: Path, storage: Path, capsys: pytest.CaptureFixture[str]
):
    """Whatever the job has noted of it."""
    noted(storage)
    assert verdicts(finished, capsys, "--query", "two", code=0)["expected"] == ALL["two"]


def noted(storage: Path) -> None:
    """Another watermark in what is noted of the first batch."""
    path = storage / "control/progress"
    found = DeltaTable(path).to_pyarrow_table()
    changed = []
    for row in found.to_pylist():
        content = loads(row["content"])
        content["watermark"] += 3_000_000 * (row["batch"] == 0)
        changed.append(row | {"content": json.dumps(content)})
    write_deltalake(path, pa.Table.from_pylist(changed, found.schema), mode="overwrite")


MUTANTS: dict[str, tuple[Any, str, Any, Spoil, str]] = {
    "rows of other storages count": (
        results, "_counts", lambda *_: True, PLANTED["rows of another storage"].spoil, "two",
    ),
    "no rows count": (results, "_counts", lambda *_: False, appended("midstream-x", 3), "two"),
    "types are not looked at": (
        judging, "mistyped", lambda *_: "", PLANTED["a narrower type"].spoil, "two",
    ),
    "a carried double is like a computed one": (
        judging, "inexact", lambda _, made: [i for i, kind in enumerate(made) if kind == "DOUBLE"],
        PLANTED["the last digits of a carried double"].spoil, "names",
    ),
    "what was set aside is not looked at": (
        intake, "_compared", lambda *_: [], PLANTED["a late row hidden"].spoil, "two",
    ),
    "the noted watermarks are believed": (
        intake, "watermarks", lambda _, past: [b.watermark for b in past.batches], noted, "two",
    ),
    "nothing is ever late": (
        intake, "watermarks", lambda _, past: [None] * len(past.batches), lambda _: None, "two",
    ),
    "any query will do": (
        judging, "fingerprint", lambda _: ANY, PLANTED["what ran is another query"].spoil, "two",
    ),
    "all rows are of one stretch": (
        expected, "_during", lambda *_: [], lambda _: None, "two",
    ),
    "windows are complete too early": (
        judging, "_complete", lambda _, mark: None if mark is None else mark + 10_000_000,
        lambda _: None, "counted",
    ),
}  # fmt: skip
"""Bugs in the judge: what is changed, and the storage of which it then says something else."""


@pytest.mark.parametrize("name", MUTANTS)
def test_a_bug_in_the_judge_is_found(
    name: str, finished: Path, storage: Path, monkeypatch: pytest.MonkeyPatch
):
    owner, attribute, instead, spoil, query = MUTANTS[name]
    spoil(storage)
    job = specs.load(finished)
    before = judge(job, query)
    monkeypatch.setattr(owner, attribute, instead)
    assert judge(job, query) != before


def writer(storage: Path) -> str:
    """Under which name the storage's batches are in the sink."""
    entry = (storage / "out/two/_delta_log" / f"{1:020d}.json").read_text().splitlines()
    (found,) = (loads(line)["txn"]["appId"] for line in entry if "txn" in loads(line))
    return str(found)


# --- what is judged ------------------------------------------------------------------------------


def edited(job: Path, **queries: Any) -> None:
    content = yaml.safe_load(job.read_text())
    content["queries"] |= queries
    job.write_text(yaml.safe_dump(content, sort_keys=False))


def test_an_edited_job_file_changes_no_verdict(
    finished: Path, storage: Path, capsys: pytest.CaptureFixture[str]
):
    """While the query runs on as it was: what is judged is that one."""
    assert storage.exists()
    edited(finished, two={"sql": small.QUERIES["two"]["sql"].replace("3 SECONDS", "9 SECONDS")})
    found = verdicts(finished, capsys, "--query", "two", code=0)
    assert found["expected"] == ALL["two"]
    assert "(the job file has been edited since)" in found["judged"]
    edited(finished, two={"sql": "SELECT"})
    assert "edited since" in verdicts(finished, capsys, "--query", "two", code=0)["judged"]


def test_a_query_that_the_job_file_does_not_have_any_more(
    finished: Path, storage: Path, capsys: pytest.CaptureFixture[str]
):
    content = yaml.safe_load(finished.read_text())
    del content["queries"]["two"]
    finished.write_text(yaml.safe_dump(content))
    found = verdicts(finished, capsys, "--query", "two", code=0)
    assert "(the job file has none of that name)" in found["judged"]
    assert [one["query"] for one in verdicts(finished, capsys, code=0)][:2] == ["three", "two"]
    assert storage.exists()


def test_a_query_that_has_not_run_yet(
    finished: Path, storage: Path, capsys: pytest.CaptureFixture[str]
):
    assert storage.exists()
    edited(finished, new=small.QUERIES["two"])
    found = verdicts(finished, capsys, "--query", "new", code=4)
    assert "query new was not part of batch 2" in found["reason"]
    assert len(verdicts(finished, capsys, code=0)) == len({**small.QUERIES, **NAMES})


def test_input_that_is_gone(finished: Path, storage: Path, capsys: pytest.CaptureFixture[str]):
    assert storage.exists()
    file = finished.parent / "a" / "0001.parquet"
    file.rename(file.with_suffix(".away"))
    try:
        found = verdicts(finished, capsys, "--query", "two", code=4)
    finally:
        file.with_suffix(".away").rename(file)
    assert "1 of the files of stream a that batches took is gone: " in found["reason"]
    assert str(file) in found["reason"]


def test_input_that_is_another(finished: Path, storage: Path, capsys: pytest.CaptureFixture[str]):
    """Where nobody has changed what matters, results are right all the same."""
    assert storage.exists()
    file = finished.parent / "a" / "0001.parquet"
    before, found, since = file.read_bytes(), pq.read_table(file), file.stat().st_mtime_ns
    try:
        file.write_bytes(before)
        assert verdicts(finished, capsys, "--query", "two", code=0)["missing"] == 0
        pq.write_table(found.set_column(0, "k", pc.add(found.column("k"), 1)), file)
        reason = verdicts(finished, capsys, "--query", "two", code=4)["reason"]
    finally:
        file.write_bytes(before)
        utime(file, ns=(since, since))
    assert "1 of the files of stream a changed after batches took them" in reason


# --- from some time on ---------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["two", "names", "counted", "near-zero"])
@pytest.mark.parametrize("batch", [0, 1, 2, 3])
def test_what_some_batches_have_put_out(
    finished: Path, capsys: pytest.CaptureFixture[str], query: str, batch: int
):
    """As many rows as these batches have noted."""
    known = past(specs.load(finished)).batches
    done = history(streaming.job_store(specs.load(finished)))
    after = [*(one.clock for one in known), known[-1].clock + 1][batch]
    since = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=after)).isoformat()
    found = verdicts(finished, capsys, "--query", query, "--since", since, code=0)
    assert found["expected"] == found["actual"] == sum(p.results[query] for p in done[batch:])


def test_a_row_lost_before_and_one_lost_since(
    finished: Path, storage: Path, capsys: pytest.CaptureFixture[str]
):
    log = storage / "out/two/_delta_log"
    assert verdicts(finished, capsys, "--query", "two", "--last", "1 microsecond", code=0)
    for version, lost in ((2, True), (4, False)):
        entry = log / f"{version - 1:020d}.json"
        lines = [line for line in entry.read_text().splitlines() if "add" not in loads(line)]
        entry.write_text("\n".join(lines))
        code = 0 if lost else 1
        found = verdicts(finished, capsys, "--query", "two", "--last", "1 microsecond", code=code)
        assert (found["missing"] > 0) == (not lost)
    assert verdicts(finished, capsys, "--query", "two")["missing"] > 0


def test_old_input_may_be_gone_where_it_does_not_matter_any_more(
    finished: Path, storage: Path, capsys: pytest.CaptureFixture[str]
):
    assert storage.exists()
    file = finished.parent / "a" / "0000.parquet"
    file.rename(file.with_suffix(".away"))
    try:
        words = ("--query", "names", "--last", "1 microsecond")
        assert verdicts(finished, capsys, *words, code=0)["expected"] > 0
        assert "is gone" in verdicts(finished, capsys, "--query", "names", code=4)["reason"]
    finally:
        file.with_suffix(".away").rename(file)


def test_which_rows_are_how_old_may_be_forgotten(
    finished: Path, storage: Path, capsys: pytest.CaptureFixture[str]
):
    table(storage, "two").optimize.compact()
    found = verdicts(finished, capsys, "--query", "two", "--last", "1 microsecond", code=4)
    assert "whose rows are whose" in found["reason"]


def test_times_that_are_none(finished: Path, capsys: pytest.CaptureFixture[str]):
    for option in ("--since", "--last"):
        found = verdicts(finished, capsys, option, "yesterday", code=2)
        assert found["where"] == option


def test_a_job_that_has_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    job = small.job(tmp_path)
    assert "nothing to verify" in verdicts(job, capsys, code=3)["error"]


def test_an_unknown_query(finished: Path, capsys: pytest.CaptureFixture[str]):
    assert (
        "no query is called 'towo'"
        in verdicts(finished, capsys, "--query", "towo", code=2)["error"]
    )


def test_people_see_the_word_and_the_reason(
    finished: Path, storage: Path, capsys: pytest.CaptureFixture[str]
):
    deleted(storage)
    assert cli.run(["verify", str(finished)]) == 1
    shown = capsys.readouterr().out
    assert "wrong" in shown
    assert "counted: somebody else changed rows of the table in version" in shown
    assert "judged: query two as it has run since batch 0" in shown
