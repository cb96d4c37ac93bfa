"""What a job's statistics lead to: by windows written by hand, over a job run batch by batch."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from jobs import cli, show, specs, streaming
from jobs.backends.duckdb.backend import DuckBackend
from jobs.deciding.decisions import Decision, DecisionLog
from jobs.deciding.library import PlanLibrary
from jobs.deciding.reoptimization import Asked, Desk, carry_out, decide
from jobs.engine.microbatch import Engine
from jobs.tables.lease import lease
from jobs.tables.requests import read_requests
from jobs.tracking.account import account
from optimizer.migration.matching import States
from stats.store import StatsStore
from tests.jobs import small, windows
from tests.jobs.test_migrate import Stage

RATES = {"a": 100.0, "b": 100.0, "c": 100.0}
EARLY = {("a", "b"): 0.001, ("b", "c"): 0.3}
"""The plan of the job file, ((a b) c), is right."""
LATE = {("a", "b"): 0.3, ("b", "c"): 0.001}
"""It is not: b and c should be joined first."""
SELECTS = {"0.1 < a.v": 0.9}
THREE = ("reoptimize", "JOB", "--query", "three")


def staged(
    directory: Path, capsys: pytest.CaptureFixture[str], stack: ExitStack, **changes: Any
) -> Stage:
    """A job that has done a batch, and that somebody runs."""
    queries = {"three": {**small.QUERIES["three"], "plan": "((a b) c)"}}
    content = {"queries": queries, "trigger": "10 seconds"} | changes
    path = small.job(directory, **content)
    spec = specs.load(path)
    ticks = iter(range(small.START, small.START + 10**12, 1_000_000))
    engine = Engine(
        streaming.engine_job(spec), streaming.job_store(spec), DuckBackend(), lambda: next(ticks)
    )
    stack.callback(engine.close)
    stage = Stage(path, engine, capsys)
    windows.price(storage(stage))
    stage.batches()
    stack.enter_context(lease(storage(stage)))
    return stage


@pytest.fixture
def make(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Stage]]:
    monkeypatch.delenv(cli.DEBUG, raising=False)
    with ExitStack() as stack:
        yield lambda **changes: staged(tmp_path, capsys, stack, **changes)


@pytest.fixture
def stage(make: Callable[..., Stage]) -> Stage:
    return make()


def storage(stage: Stage) -> Path:
    return stage.job.parent / "storage"


def see(
    stage: Stage,
    joins: Mapping[tuple[str, str], float],
    *,
    at: range = range(-4, 0),
    factor: float = 1.0,
    **more: Any,
) -> None:
    """Windows of the query, the last of which ended just before the job's batches."""
    rates = {name: factor * rate for name, rate in RATES.items()}
    for number in at:
        window = windows.window(small.START, number)
        windows.write(storage(stage), window, "three", rates, joins, selects=SELECTS, **more)


def decided(stage: Stage, now: int = small.START + 60_000_000, **wish: Any) -> Decision:
    """At a moment of the job's own clock."""
    desk = Desk.of(specs.load(stage.job))
    return decide(desk, "three", Asked(now, "eva", **wish))


def steady(decision: Mapping[str, Any]) -> dict[str, Any]:
    """Without what differs from one time to the next."""
    kept = {name: decision[name] for name in decision.keys() - {"id", "at", "windows", "key"}}
    candidates = [one | {"seconds": 0} for one in decision["candidates"]]
    return kept | {"candidates": candidates}


# --- migrate, hold -------------------------------------------------------------------------------


def test_a_better_plan(stage: Stage):
    see(stage, LATE)
    (found,) = stage.json(*THREE)
    assert (found["outcome"], found["trigger"]) == ("migrate", "data-driven")
    assert (found["running"], found["chosen"]) == ("((a b) c)", "(a (b c))")
    assert found["reasons"][0].startswith("drift ")
    assert " for 3 windows, over 0.20" in found["reasons"][0]
    (request,) = read_requests(stage.watched.store)
    assert (request.id, request.by) == (found["request"], found["by"])
    assert request.reason == f"{found['id']}: {found['reasons'][0]}"
    stage.batches(2)
    assert stage.plan == "(a (b c))"
    assert stage.json("migration", "status", "JOB", found["request"])["phase"] == "done"


def test_the_figures_of_a_decision(stage: Stage):
    see(stage, LATE)
    found = decided(stage)
    figures = found.figures
    saved = figures["running_cpu"] - figures["chosen_cpu"]
    assert figures["gain_per_hour"] == pytest.approx(3600 * saved)
    assert figures["payback_seconds"] == pytest.approx(figures["migration_work"] / saved)
    assert figures["migration_work"] > 0
    assert len(figures["drift"]) == len(found.windows) == 4
    for drift, running, best in zip(
        figures["drift"], figures["running_by_window"], figures["best_by_window"], strict=True
    ):
        assert drift == pytest.approx(running / best - 1)
    assert [one.strategy for one in found.candidates] == [
        "two-layer", "state-selection", "state-removal",
    ]  # fmt: skip
    assert {one.strategy for one in found.candidates if one.plan == found.chosen} >= {
        found.strategy
    }


def test_a_job_on_spark_is_decided_by_what_spark_costs(make: Callable[..., Stage]):
    """Nothing was fitted for it: in 10 s, an mjoin has 3 statements of 0.28 s, two joins have 4."""
    stage = make(engine="spark")
    see(stage, LATE)
    found = decided(stage)
    assert (found.outcome, found.chosen) == ("migrate", "(a b c)")
    assert found.running == "((a b) c)"
    assert 3 * 0.28 / 10 < found.figures["chosen_cpu"] < 4 * 0.28 / 10
    assert found.figures["running_cpu"] > 4 * 0.28 / 10


def test_the_right_plan_stays(stage: Stage):
    see(stage, EARLY)
    (found,) = stage.json(*THREE)
    assert (found["outcome"], found["chosen"]) == ("hold", "((a b) c)")
    assert read_requests(stage.watched.store) == []
    assert found["reasons"] == ["no plan better than ((a b) c)"]


def test_a_burst_changes_nothing(stage: Stage):
    see(stage, EARLY, at=range(-8, -2))
    see(stage, LATE, at=range(-2, -1))
    see(stage, EARLY, at=range(-1, 0))
    assert stage.json(*THREE)[0]["outcome"] == "hold"
    assert read_requests(stage.watched.store) == []


def test_all_queries_of_a_job(make: Callable[..., Stage]):
    queries = dict(small.QUERIES) | {"three": {**small.QUERIES["three"], "plan": "((a b) c)"}}
    stage = make(queries=queries)
    see(stage, LATE)
    found = stage.json("reoptimize", "JOB")
    assert [(one["query"], one["outcome"]) for one in found] == [
        ("three", "migrate"), ("two", "hold"), ("counted", "hold"),
    ]  # fmt: skip


def test_for_people(stage: Stage):
    see(stage, LATE)
    said = stage.says(0, *THREE)
    assert said.startswith("three: migrate, ((a b) c) -> (a (b c))\n  drift ")
    assert "pays after" in said
    assert "Asked for " in said
    assert "midstream migration status" in said


# --- once ----------------------------------------------------------------------------------------


def test_the_same_decision_migrates_once(stage: Stage):
    see(stage, LATE)
    first, again = stage.json(*THREE)[0], stage.json(*THREE)[0]
    assert first == again
    assert len(read_requests(stage.watched.store)) == 1
    assert len(stage.json("reoptimize", "JOB", "--history")) == 1


def test_killed_before_it_was_written_down(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    """The request is there, the decision is not."""
    see(stage, LATE)
    desk = Desk.of(specs.load(stage.job))
    made = decide(desk, "three", Asked(small.START, "eva"))

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(DecisionLog, "record", killed)
        with pytest.raises(KeyboardInterrupt):
            carry_out(desk, made)
    carry_out(desk, decided(stage))
    assert len(read_requests(stage.watched.store)) == 1


def test_new_windows_while_the_request_waits(stage: Stage):
    see(stage, LATE, at=range(-4, -1))
    stage.json(*THREE)
    see(stage, LATE)
    (found,) = stage.json(*THREE, code=3)
    assert found["outcome"] == "blocked"
    assert found["reasons"][-1].endswith("has been asked for already")
    assert len(read_requests(stage.watched.store)) == 1


# --- windows -------------------------------------------------------------------------------------


def test_quarantined_windows_change_no_decision(stage: Stage):
    """Broken in between, broken at the end, whatever they say: as if they were not there."""
    see(stage, LATE, at=range(-7, -1))
    store = StatsStore.of(storage(stage))
    without = steady(decided(stage).to_json())
    for joins, factor in ((EARLY, 1e-6), (LATE, 1e6), (LATE, 1.0)):
        see(stage, joins, at=range(-1, 0), factor=factor, good=False, busy=1.0, backlog=99)
        assert len(store.windows()) == 7
        assert steady(decided(stage).to_json()) == without
    see(stage, EARLY, at=range(-1, 0))
    assert steady(decided(stage).to_json()) != without

    see(stage, LATE, at=range(-4, 0))
    see(stage, LATE, at=range(-3, -2), good=False)
    between = steady(decided(stage).to_json())
    see(stage, EARLY, at=range(-3, -2), factor=50.0, good=False)
    assert steady(decided(stage).to_json()) == between
    assert between["outcome"] == "migrate"


def test_nothing_is_known(stage: Stage):
    (found,) = stage.json(*THREE, code=3)
    assert found["outcome"] == "blocked"
    assert found["reasons"][0].startswith("no good windows: ")
    see(stage, LATE, good=False)
    assert stage.json(*THREE, code=3)[0]["reasons"] == found["reasons"]
    assert "no good windows" in stage.says(3, *THREE)


def test_windows_of_long_ago_are_no_trend(stage: Stage):
    """Of three in a row, only the last is of now; together they would be one."""
    see(stage, LATE, at=range(-30, -20))
    see(stage, LATE, at=range(-1, 0))
    (found,) = stage.json(*THREE)
    assert found["reasons"][0] == "good windows: 1 of the 3 that a trend takes"


def test_statistics_that_lag(stage: Stage):
    """The job's watermark is after the start of its data; three rounds of 5 minutes are 15."""
    see(stage, LATE, at=range(-20, -16))
    assert decided(stage).outcome == "blocked"
    assert "no good windows: the newest ended 16 min ago" in decided(stage).reasons[-1]
    see(stage, LATE, at=range(-18, -14))
    assert decided(stage).outcome == "migrate"


def test_what_no_window_says(stage: Stage):
    see(stage, {("a", "b"): 0.3})
    found = decided(stage)
    assert (found.outcome, found.reasons[-1]) == ("blocked", "no window says: join b-c")


# --- what stands in the way ----------------------------------------------------------------------


def test_a_job_that_does_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    with ExitStack() as stack:
        stage = staged(tmp_path, capsys, stack)
        see(stage, LATE)
    (found,) = stage.json(*THREE, code=3)
    assert found["reasons"][-1] == "the job does not run"
    assert read_requests(stage.watched.store) == []


def test_a_migration_under_way(stage: Stage):
    stage.json("migrate", "JOB", "(a b c)", "--query", "three", "--yes", "--hold")
    stage.batches()
    see(stage, LATE)
    (found,) = stage.json(*THREE, code=3)
    assert "is under way" in found["reasons"][-1]
    assert len(read_requests(stage.watched.store)) == 1


def test_cooldown(stage: Stage):
    """Ten minutes from the end of a migration, whoever asked for it."""
    id_ = stage.json("migrate", "JOB", "(a b c)", "--query", "three", "--yes")["id"]
    stage.batches()
    see(stage, LATE)
    end = stage.watched.find(id_).event("done").at
    soon = decided(stage, end + 599_000_000)
    assert (soon.outcome, soon.trigger) == ("blocked", "data-driven")
    assert soon.reasons[-1].startswith("cooldown: the last migration ended 599 s ago")
    assert decided(stage, end + 600_000_000).outcome == "migrate"
    assert decided(stage, end + 1, why="now", force=True).outcome == "migrate"


def test_payback(make: Callable[..., Stage]):
    stage = make(reoptimize={"horizon": "1 millisecond"})
    see(stage, LATE)
    found = decided(stage)
    assert found.outcome == "blocked"
    assert found.reasons[-1].startswith("payback too long: ")


def test_thresholds_of_the_job_file(make: Callable[..., Stage]):
    stage = make(reoptimize={"drift": 1000.0, "windows": 2})
    see(stage, LATE)
    found = decided(stage)
    assert found.outcome == "hold"
    assert found.reasons[0].startswith("no trigger for 2 windows: drift ")
    assert len(found.windows) == 3


def test_an_unknown_search(make: Callable[..., Stage]):
    stage = make(reoptimize={"strategy": "two-layers"})
    see(stage, LATE)
    said = stage.says(2, *THREE)
    assert "reoptimize.strategy: no strategy is called 'two-layers'" in said
    assert "did you mean two-layer?" in said


def test_another_search_and_another_migration_than_the_file_says(stage: Stage):
    see(stage, LATE)
    wishes = ("--strategy", "jtree-finder", "--migration", "parallel-track", "--dry-run")
    (found,) = stage.json(*THREE, *wishes)
    assert found["candidates"][0]["strategy"] == "jtree-finder"
    assert found["migration"] == "parallel-track"
    said = stage.says(2, *THREE, "--migration", "by-force")
    assert "by-force" in said
    assert "parallel-track" in said


# --- the budget ----------------------------------------------------------------------------------


def test_no_plan_within_the_budget(make: Callable[..., Stage]):
    stage = make(budget={"cpu": 1e-6})
    see(stage, LATE)
    found = decided(stage)
    assert (found.outcome, found.trigger) == ("blocked", "unqualified")
    assert found.reasons[-1].startswith("no qualified plan: the best known, ")


def test_states_that_nearly_fill_the_budget(make: Callable[..., Stage]):
    """Windows of 3 s hold 270, 300 and 300 rows; (a b) another 243 by the estimate, 74 % of 1,500.

    Measured, the states take 1,400: 93 %.  (a b c) needs 870, by the same measure 73 %.
    """
    stage = make(budget={"memory": "1500 tuples"})
    joins = {("a", "b"): 0.003, ("b", "c"): 0.3}
    see(stage, joins)
    assert decided(stage).reasons == ("no plan better than ((a b) c)",)
    see(stage, joins, states=measured(stage, a=270, b=300, c=300, ab=530))
    found = decided(stage)
    assert (found.trigger, found.outcome) == ("memory-driven", "migrate")
    assert found.reasons[0] == "states take 93% of the memory in the budget for 3 windows"
    assert found.chosen == "(a b c)"


def measured(stage: Stage, **rows: int) -> dict[str, int]:
    """Rows of the running plan's states, named by their inputs."""
    states = States.of(stage.engine.plans["three"]).nodes
    return {key: rows["".join(sorted(nodes[0].aliases))] for key, nodes in states.items()}


def test_a_state_that_grows_inside_the_plan(stage: Stage):
    """Half of a minute's window is its full time; before that it grows because it is young."""
    see(stage, LATE, at=range(-6, -4), states=measured(stage, a=1, b=1, c=1, ab=100))
    for number, rows in zip(range(-4, 0), (100, 110, 115, 130), strict=True):
        states = measured(stage, a=1, b=1, c=1, ab=rows)
        see(stage, LATE, at=range(number, number + 1), states=states)
    reasons = decided(stage).reasons
    assert "(a b) keeps more and more for 3 windows: 130 rows, from 100" in reasons
    see(stage, LATE, at=range(-6, -4), good=False)
    assert not any("more and more" in reason for reason in decided(stage).reasons)


def test_a_backlog_that_rises(stage: Stage):
    for number, waiting in zip(range(-4, 0), (0, 2, 5, 9), strict=True):
        see(stage, LATE, at=range(number, number + 1), backlog=waiting, busy=0.97)
    assert "backlog rising for 3 windows, by 9 to 9" in decided(stage).reasons


def test_an_operator_that_cannot_keep_up(make: Callable[..., Stage]):
    """The bushy plan's joins of 20 k tuples a second find 0.3 * 60 k partners for each of them."""
    stage = make()
    see(stage, LATE, factor=200.0)
    found = decided(stage)
    assert found.trigger == "infeasible"
    assert found.reasons[0].startswith("falling behind for 3 windows: the busiest operator needs ")


# --- for results ---------------------------------------------------------------------------------

BY = {"objective": "rate by 10 seconds"}


def test_plans_that_keep_up_have_the_same_results(make: Callable[..., Stage]):
    """By the cost there is a better plan; by the results there is not."""
    stage = make(reoptimize=BY)
    see(stage, LATE)
    found = decided(stage)
    assert (found.outcome, found.figures["drift"]) == ("hold", [0.0] * len(found.windows))
    assert found.figures["running_results_by"] == found.figures["chosen_results_by"] > 0


def test_a_plan_that_cannot_keep_up_is_left_for_the_one_of_most_results(
    make: Callable[..., Stage],
):
    stage = make(reoptimize=BY | {"drift": 0.05})
    see(stage, LATE, factor=200.0)
    found = decided(stage)
    figures = found.figures
    assert (found.outcome, found.trigger) == ("migrate", "data-driven")
    assert figures["objective"] == "rate by 10 seconds"
    more = figures["chosen_results_by"] / figures["running_results_by"] - 1
    assert more > 0
    assert f"{found.chosen} has {more:.0%} more results by 10 s" in found.reasons[0]
    assert {one.seconds_to for one in found.candidates} == {None}
    assert max(one.results_by or 0 for one in found.candidates) == figures["chosen_results_by"]
    assert figures["drift"][-1] == pytest.approx(more, rel=0.2)
    assert Decision.from_json(found.to_json()) == found
    told = account(specs.load(stage.job), found)
    assert told.params["objective"] == "rate by 10 seconds"
    assert told.metrics["chosen_results_by"] == figures["chosen_results_by"]
    assert all(one.metrics["results_by"] > 0 for one in told.children)
    assert told.files["results.png"][:4] == b"\x89PNG"


def test_a_few_more_results_are_no_reason(make: Callable[..., Stage]):
    """No plan keeps up, which asks for nothing by itself: one has 10 % more, it takes 20."""
    stage = make(reoptimize=BY, budget={"cpu": 1.0})
    see(stage, LATE, factor=200.0)
    found = decided(stage)
    assert (found.outcome, found.reasons[0]) == (
        "hold", "no trigger for 3 windows: drift 0.10, 0.10, 0.10, threshold 0.20",
    )  # fmt: skip


def test_an_infeasible_query_may_have_its_best_plan(make: Callable[..., Stage]):
    """By the cost that is blocked: no plan is qualified."""
    stage = make(reoptimize=BY, budget={"cpu": 1.0})
    see(stage, EARLY, factor=200.0)
    found = decided(stage)
    assert (found.outcome, found.reasons) == ("hold", ("no plan better than ((a b) c)",))
    (cost,) = stage.json(*THREE, "--dry-run", "--objective", "cost", code=3)
    assert cost["outcome"] == "blocked"


def test_the_first_results_sooner(make: Callable[..., Stage]):
    """Results per second are as the CPU that both plans need, so is how long the first take."""
    stage = make(reoptimize={"objective": "first 1000 results", "drift": 0.05})
    see(stage, LATE, factor=200.0)
    found = decided(stage)
    figures = found.figures
    share = figures["chosen_cpu"] / figures["running_cpu"]
    assert figures["chosen_seconds_to"] == pytest.approx(share * figures["running_seconds_to"])
    assert found.reasons[0] == f"(a (b c)) has the first 1,000 results {1 - share:.0%} sooner"
    assert min(one.seconds_to or 0 for one in found.candidates) == figures["chosen_seconds_to"]


def test_explain_says_what_a_plan_makes_of_the_objective(make: Callable[..., Stage]):
    stage = make(reoptimize=BY)
    see(stage, LATE, factor=200.0)
    made = {
        plan: stage.json("explain", "JOB", "--query", "three", "--plan", plan)
        for plan in ("((a b) c)", "(a (b c))")
    }
    assert {one["objective"] for one in made.values()} == {BY["objective"]}
    assert made["(a (b c))"]["results_by"] > made["((a b) c)"]["results_by"] > 0
    said = stage.says(0, "explain", "JOB", "--query", "three")
    assert " results by 10 s." in said


def test_another_objective_for_once(make: Callable[..., Stage]):
    stage = make(reoptimize=BY)
    see(stage, LATE)
    (found,) = stage.json(*THREE, "--dry-run", "--objective", "cost")
    assert "objective" not in found["figures"]
    stage.json(*THREE, "--objective", "much", code=2)


# --- by hand -------------------------------------------------------------------------------------


def test_a_dry_run_changes_nothing(stage: Stage):
    see(stage, LATE)
    before = sorted(storage(stage).rglob("*"))
    (found,) = stage.json(*THREE, "--dry-run")
    assert (found["outcome"], found["dry_run"], found["request"]) == ("migrate", True, "")
    assert "This was a dry run" in stage.says(0, *THREE, "--dry-run")
    assert sorted(storage(stage).rglob("*")) == before


def test_force_takes_a_reason(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    see(stage, LATE, at=range(-1, 0))
    assert stage.json(*THREE)[0]["outcome"] == "hold"
    assert "--reason: say why" in stage.says(2, *THREE, "--force")
    monkeypatch.setattr(show, "is_asked", lambda: True)
    monkeypatch.setattr(typer, "prompt", lambda _: "sales day")
    assert "Asked for" in stage.says(0, *THREE, "--force")
    (found,) = stage.json(*THREE, "--force", "--reason", "again")
    assert (found["outcome"], found["trigger"], found["why"]) == ("migrate", "by hand", "sales day")
    assert len(read_requests(stage.watched.store)) == 1


def test_force_does_not_take_an_unqualified_plan(make: Callable[..., Stage]):
    stage = make(budget={"cpu": 1e-6})
    see(stage, LATE, at=range(-1, 0))
    (found,) = stage.json(*THREE, "--force", "--reason", "I know better", code=3)
    assert found["reasons"][-1].startswith("no qualified plan: ")


def test_forced_again_after_an_abort(stage: Stage):
    see(stage, LATE)
    (first,) = stage.json(*THREE)
    stage.json("migration", "abort", "JOB", first["request"])
    stage.batches()
    (again,) = stage.json(*THREE, "--force", "--reason", "it was a mistake")
    assert again["request"] not in ("", first["request"])
    stage.batches(2)
    assert stage.plan == "(a (b c))"


@pytest.mark.parametrize(
    "arguments", [("--history", "--force"), ("--approve", "x", "--reject", "y")]
)
def test_one_thing_at_a_time(stage: Stage, arguments: tuple[str, ...]):
    assert "give one" in stage.says(2, *THREE, *arguments)


def test_an_unknown_query(stage: Stage):
    assert "no query is called 'tree'" in stage.says(2, "reoptimize", "JOB", "--query", "tree")


def test_before_the_first_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    job = str(small.job(tmp_path))
    assert cli.run(["reoptimize", job]) == 3
    assert "has not finished a batch yet" in capsys.readouterr().err
    assert cli.run(["reoptimize", job, "--history"]) == 0
    assert "Nothing has been decided yet" in capsys.readouterr().out


def test_history(stage: Stage):
    see(stage, EARLY, at=range(-8, -4))
    stage.json(*THREE, "--reason", "a look")
    see(stage, LATE)
    stage.json(*THREE)
    first, second = stage.json("reoptimize", "JOB", "--history")
    assert (first["outcome"], first["why"], second["outcome"]) == ("hold", "a look", "migrate")
    said = stage.says(0, "reoptimize", "JOB", "--history")
    assert said.count("hold") == 1
    assert stage.json("reoptimize", "JOB", "--history", "--query", "other") == []


def test_many_decisions_are_few_files(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("jobs.tables.command_log.MAX_FILES", 3)
    see(stage, EARLY)
    desk = Desk.of(specs.load(stage.job))
    for second in range(6):
        carry_out(desk, decided(stage, small.START + second * 1_000_000))
    from deltalake import DeltaTable

    assert len(DeltaTable(desk.log.path).file_uris()) <= 4
    assert len(desk.log.newest(100)) == 6


def test_the_workload_is_one_that_optimize_reads(stage: Stage, tmp_path: Path):
    see(stage, LATE)
    (found,) = stage.json(*THREE, "--dry-run")
    file = tmp_path / "observed.yaml"
    file.write_text(yaml.safe_dump(found["workload"]))
    arguments = ("--workload", str(file), "--job", "JOB", "--strategy", found["strategy"])
    again = stage.json("optimize", *arguments, "--query", "three")
    assert (again["plan"], again["cpu"]) == (found["chosen"], found["figures"]["chosen_cpu"])


# --- a person agrees -----------------------------------------------------------------------------


@pytest.fixture
def gated(make: Callable[..., Stage]) -> Stage:
    stage = make(reoptimize={"approve": True})
    see(stage, LATE)
    return stage


def test_a_decision_waits_for_a_person(gated: Stage):
    (found,) = gated.json(*THREE)
    assert (found["outcome"], found["approval"], found["request"]) == ("migrate", "waits", "")
    assert read_requests(gated.watched.store) == []
    assert f"--approve {found['id']}" in gated.says(0, *THREE)
    see(gated, LATE, at=range(-3, 1))
    assert gated.json(*THREE)[0]["id"] == found["id"]  # nothing new for whoever decides

    assert "say why" in gated.says(2, "reoptimize", "JOB", "--approve", found["id"])
    (agreed,) = gated.json("reoptimize", "JOB", "--approve", found["id"], "--reason", "go")
    assert (agreed["approval"], agreed["answered_why"]) == ("approved", "go")
    (request,) = read_requests(gated.watched.store)
    assert request.id == agreed["request"]
    (kept,) = gated.json("reoptimize", "JOB", "--history")
    assert kept == agreed
    assert "waits for nobody" in gated.says(
        3, "reoptimize", "JOB", "--approve", found["id"], "--reason", "again"
    )
    gated.batches(2)
    assert gated.plan == "(a (b c))"


def test_rejected(gated: Stage):
    id_ = gated.json(*THREE)[0]["id"]
    (said,) = gated.json("reoptimize", "JOB", "--reject", id_, "--reason", "not today")
    assert (said["approval"], said["request"]) == ("rejected", "")
    assert read_requests(gated.watched.store) == []
    see(gated, LATE, at=range(-3, 1))
    (found,) = gated.json(*THREE, code=3)
    assert "ago: not today" in found["reasons"][-1]
    assert gated.json(*THREE, "--force", "--reason", "now")[0]["approval"] == "waits"


def test_agreed_too_late(gated: Stage):
    """Meanwhile someone else has changed the plan."""
    id_ = gated.json(*THREE)[0]["id"]
    gated.json("migrate", "JOB", "(a b c)", "--query", "three", "--yes")
    gated.batches()
    said = gated.says(3, "reoptimize", "JOB", "--approve", id_, "--reason", "go")
    assert "does not run ((a b) c) any more" in said
    assert "no decision is called 'x'" in gated.says(
        2, "reoptimize", "JOB", "--approve", "x", "--reason", "go"
    )


# --- the library ---------------------------------------------------------------------------------


def plans(stage: Stage) -> PlanLibrary:
    return Desk.of(specs.load(stage.job)).library


def found_by(found: Mapping[str, Any]) -> list[str]:
    return [one["strategy"] for one in found["candidates"]]


def test_a_plan_that_stays_is_noted_and_found_without_a_search(stage: Stage):
    see(stage, EARLY)
    (first,) = stage.json(*THREE)
    assert "library" not in found_by(first)
    (entry,) = plans(stage).entries()
    assert entry.plan == first["running_plan"]
    (again,) = stage.json(*THREE)
    assert found_by(again) == ["library"]
    assert again["candidates"][0]["examined"] == 0
    assert (again["outcome"], again["library"]) == ("hold", entry.signature)
    assert plans(stage).entries() == [entry]


def test_a_plan_migrated_to_is_noted_once_it_runs(stage: Stage):
    see(stage, LATE)
    (moved,) = stage.json(*THREE)
    assert plans(stage).entries() == []
    stage.batches(2)
    stage.json(*THREE, code=0)
    (entry,) = plans(stage).entries()
    assert entry.plan == moved["chosen_plan"]
    assert found_by(stage.json(*THREE)[0]) == ["library"]


def test_a_plan_whose_migration_failed_is_forgotten(stage: Stage):
    """It was known as the best; then the migration back to it is aborted half-way."""
    see(stage, EARLY)
    stage.json(*THREE)
    assert len(plans(stage).entries()) == 1
    stage.json("migrate", "JOB", "(a (b c))", "--query", "three", "--yes")
    stage.batches(2)
    (moved,) = stage.json(*THREE, "--force", "--reason", "as it was")
    assert found_by(moved) == ["library"]
    stage.json("migration", "postpone", "JOB", moved["request"])
    stage.batches(2)
    stage.json("migration", "abort", "JOB", moved["request"])
    stage.batches()
    assert stage.json("migration", "status", "JOB", moved["request"])["phase"] == "aborted"
    (again,) = stage.json(*THREE, "--force", "--reason", "once more")
    assert "library" not in found_by(again)
    assert plans(stage).entries() == []


def test_another_workload_is_searched(stage: Stage):
    see(stage, EARLY)
    stage.json(*THREE)
    see(stage, EARLY, factor=4.0)
    assert "library" not in found_by(stage.json(*THREE)[0])


def test_a_plan_that_lost_its_advantage_is_not_taken(stage: Stage):
    from dataclasses import replace

    see(stage, EARLY)
    stage.json(*THREE)
    (entry,) = plans(stage).entries()
    plans(stage).put(replace(entry, advantage=entry.advantage * 1.04))
    assert found_by(stage.json(*THREE)[0]) == ["library"]
    plans(stage).put(replace(entry, advantage=entry.advantage * 1.07))
    assert "library" not in found_by(stage.json(*THREE)[0])
