"""One plan has one price, whoever is asked, and everyone says what it rests on."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from jobs import cli, specs
from jobs.deciding.decisions import Decision
from jobs.tracking.account import account, priced, task_of
from stats.costs import SHIPPED, Fit, keep
from stats.store import StatsStore
from tests.jobs.test_migrate import Stage
from tests.jobs.test_reoptimize import LATE, THREE, decided, see, staged, storage

OTHER = "(a (b c))"


@pytest.fixture
def stage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    monkeypatch.delenv(cli.DEBUG, raising=False)
    with ExitStack() as stack:
        yield staged(tmp_path, capsys, stack)


def _nothing(stage: Stage, last: int) -> None:
    pass


def _refit(stage: Stage, last: int = 0) -> None:
    """Costs of this machine, none of them round."""
    costs = SHIPPED["duckdb"]
    keep(StatsStore.of(storage(stage)), "duckdb", Fit(costs, costs.values, costs.values, 1, 0.1), 1)


def _uneven(stage: Stage, last: int) -> None:
    """Windows that differ, one of them without a good verdict, and one missing."""
    see(stage, {("a", "b"): 0.21, ("b", "c"): 0.0013}, at=range(last - 3, last - 2), factor=1.37)
    see(stage, {("a", "b"): 0.9, ("b", "c"): 0.9}, at=range(last - 2, last - 1), good=False)


@pytest.mark.parametrize("change", [_nothing, _refit, _uneven])
@pytest.mark.parametrize("last", [0, -45], ids=["fresh", "stale"])
def test_everyone_says_the_same_price(stage: Stage, change: Any, last: int):
    see(stage, LATE, at=range(last - 6, last))
    change(stage, last)
    decision = decided(stage, dry_run=True)
    assert decision.running == "((a b) c)" != decision.chosen
    now, then = decision.figures["running_cpu"], decision.figures["chosen_cpu"]
    assert now > then > 0

    proposed = stage.json("migrate", "JOB", decision.chosen, "--query", "three")
    assert proposed["cpu"] == {"from": now, "to": then}

    shown = stage.json("explain", "JOB", "--query", "three")
    other = stage.json("explain", "JOB", "--query", "three", "--plan", decision.chosen)
    again = stage.json("explain", "JOB", "--query", "three", "--plan", "((a b) c)")
    assert (shown["plan"], other["plan"]) == ("((a b) c)", decision.chosen)
    assert [one["cpu"] for one in (shown, other, again)] == [now, then, now]

    task = task_of(specs.load(stage.job), decision)
    assert priced(task, decision.running_plan).total.cpu == now
    assert priced(task, decision.chosen_plan).total.cpu == then
    assert account(specs.load(stage.job), decision).metrics["running_cpu"] == now
    assert proposed["priced_by"] == shown["priced_by"]
    assert shown["priced_by"]["source"] == "statistics"
    assert len(shown["priced_by"]["windows"]) == 3


def test_everyone_says_what_the_price_rests_on(stage: Stage):
    see(stage, LATE)
    words = (
        "Priced by 3 windows of statistics, 2023-11-14T22:10:00.000+00:00 to "
        "2023-11-14T22:13:00.000+00:00; method batch, batches of 10 s, fitted unit costs "
        "for duckdb."
    )
    assert words in stage.says(0, *THREE, "--dry-run")
    assert words in stage.says(0, "migrate", "JOB", OTHER, "--query", "three")
    assert words in stage.says(0, "explain", "JOB", "--query", "three")
    made = account(specs.load(stage.job), decided(stage))
    assert f"Priced by {made.params['priced by']}." == words


def test_without_good_windows_the_jobs_own_tables_say_it_at_the_same_unit_costs(stage: Stage):
    _refit(stage)
    see(stage, LATE, good=False)
    proposed = stage.json("migrate", "JOB", OTHER, "--query", "three")
    shown = stage.json("explain", "JOB", "--query", "three", "--plan", OTHER)
    assert shown["cpu"] == proposed["cpu"]["to"]
    assert (shown["priced_by"]["source"], shown["priced_by"]["fitted"]) == ("tables", True)
    assert shown["cpu"] > 4 * SHIPPED["duckdb"].statement / 10
    said = stage.says(0, "explain", "JOB", "--query", "three")
    assert "the job's own tables, for there are no good windows of statistics" in said


def test_a_workload_file_is_named(stage: Stage, tmp_path: Path):
    see(stage, LATE)
    file = tmp_path / "w.json"
    file.write_text(stage.json(*THREE, "--dry-run")[0]["workload"].__repr__().replace("'", '"'))
    found = stage.json("explain", "JOB", "--query", "three", "--workload", str(file))
    assert found["priced_by"] == {"source": "workload file"}


def test_a_job_that_has_not_run_is_priced_by_assumptions(stage: Stage, tmp_path: Path):
    (storage(stage) / "control" / "progress").rename(tmp_path / "progress")
    found = stage.json("explain", "JOB", "--query", "three")
    assert found["priced_by"] == {"source": "assumed"}


def test_a_query_that_was_changed_is_explained_all_the_same(stage: Stage):
    see(stage, LATE)
    stage.job.write_text(stage.job.read_text().replace("0.1", "0.2"))
    found = stage.json("explain", "JOB", "--query", "three")
    assert found["priced_by"] == {"source": "assumed"}
    said = stage.says(0, "explain", "JOB", "--query", "three")
    assert "statistics are not looked at: query three is not the one" in said


def test_decisions_without_windows_have_no_price(stage: Stage):
    (found,) = stage.json(*THREE, "--dry-run", code=3)
    assert "priced_by" not in found["figures"]
    assert isinstance(decided(stage), Decision)


def test_placements_rest_on_the_same_statistics(stage: Stage):
    """Rates do not depend on the plan; what work costs in either place is that place's own."""
    see(stage, LATE)
    shown = stage.json("explain", "JOB", "--query", "three")
    placed = stage.json("place", "JOB", "--query", "three")
    root = shown["root"]
    while root["op"] != "join":
        (root,) = root["inputs"]
    assert root["id"] == "join:a+b+c"
    assert placed["operators"][root["id"]]["rate_out"] == pytest.approx(root["rate"])
    assert placed["logical"]["examined"] == 6
    for place in ("spark", "db"):
        pure = stage.json("place", "JOB", "--query", "three", "--strategy", place)
        assert placed["total"] <= pure["total"]
