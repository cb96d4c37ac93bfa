"""The engine under random schedules, and the simulator under bugs that it must find."""

import json
from dataclasses import replace

import pytest

from jobs.cli import run as command
from optimizer.migration import MIGRATIONS as STRATEGIES
from tests.bench.mutation import BEGIN, END, PAGE, known, table
from tests.bench.simulate import check
from tests.simulation import values
from tests.simulation.bugs import BUGS
from tests.simulation.bugs.statements import both_sides_count_what_is_new
from tests.simulation.case import draw
from tests.simulation.dice import UNITS
from tests.simulation.run import goes_wrong, run
from tests.simulation.shrink import shrink
from tests.simulation.wishes import INTERVALS, PACES, POINTS

SEEDS, PIECE = 120, 20
MIGRATIONS = 40
"""Seeds of schedules that change plans; `make soak` takes more of both."""

FOUND = 40
"""Of these, within how many each bug of migrations is found."""


@pytest.mark.parametrize("first", range(0, SEEDS, PIECE))
def test_every_schedule_ends_in_the_right_result(first):
    failures = [failure.report for seed in range(first, first + PIECE) if (failure := check(seed))]
    assert not failures, "\n\n".join(failures)


@pytest.mark.parametrize("first", range(0, MIGRATIONS, PIECE))
def test_every_change_of_plans_is_without_effect(first):
    seeds = range(first, first + PIECE)
    failures = [failure.report for seed in seeds if (failure := check(seed, migrations=True))]
    assert not failures, "\n\n".join(failures)


KNOWN = [bug for bug in BUGS if bug.seed is not None]


@pytest.mark.parametrize("bug", KNOWN, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug, monkeypatch):
    """By the seed that has found it before, or by another one, if seeds have changed since."""
    bug.plant(monkeypatch)
    assert any(map(bug.is_found_by, (bug.seed, *range(FOUND))))


def test_whoever_looks_for_the_first_difference_finds_one(monkeypatch):
    assert not goes_wrong(draw(2))
    both_sides_count_what_is_new(monkeypatch)
    assert goes_wrong(draw(2))


def test_the_documentation_says_which_bugs_are_found():
    """Its table is what `midstream bench mutation` prints."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    assert rest.partition(END)[0] == table(known())


@pytest.mark.parametrize("migrations", [False, True])
def test_a_seed_is_always_the_same_case(migrations):
    case = draw(7, migrations=migrations)
    assert case == draw(7, migrations=migrations) != draw(8, migrations=migrations)
    assert run(case) == run(draw(7, migrations=migrations))


def test_what_the_seeds_cover():
    cases = [draw(seed) for seed in range(SEEDS)]
    plans = [plan for case in cases for plan in case.job.plans.values()]
    sizes = {len(plan.query.inputs) for plan in plans}
    assert sizes == {1, 2, 3, 4, 5}
    assert any("[" in str(plan) for plan in plans), "combined inputs"
    assert any(len(case.job.plans) == 2 for case in cases), "two queries"
    assert any(len(batch.crashes) > 2 for case in cases for batch in case.batches)
    streams = [one.stream for case in cases for one in case.job.streams.values()]
    types = {column.type.partition("(")[0] for stream in streams for column in stream.columns}
    assert types == {"TIMESTAMP", "DECIMAL", *values.NAMED}
    assert {case.unit for case in cases} == set(UNITS)
    assert any(len(set(plan.query.streams.values())) < len(plan.query.inputs) for plan in plans)


def test_what_the_seeds_ask_for():
    cases = [draw(seed, migrations=True) for seed in range(MIGRATIONS)]
    wishes = [wish for case in cases for batch in case.batches for wish in batch.wishes]
    assert {wish.kind for wish in wishes} == {"migrate", "abort", "postpone", "release"}
    assert {wish.strategy for wish in wishes if wish.plan} == set(STRATEGIES)
    assert {case.pace for case in cases} == set(PACES)
    assert {case.interval for case in cases} == set(INTERVALS)
    crashes = {at for case in cases for batch in case.batches for at in batch.crashes}
    assert crashes > set(POINTS)


def test_a_failed_seed_tells_how_to_replay_it(monkeypatch):
    both_sides_count_what_is_new(monkeypatch)
    failure = next(failure for seed in range(SEEDS) if (failure := check(seed, tries=5)))
    assert f"midstream bench simulate --seeds {failure.seed}..{failure.seed}\n" in failure.report
    assert "  results of " in failure.report
    assert " extra: " in failure.report
    assert "  plan of " in failure.report
    assert "batch 0: " in failure.report


def test_a_case_shrinks_to_what_makes_it_fail():
    def has_a_null(case):
        rows = [row for batch in case.batches for rows in batch.rows.values() for row in rows]
        return any(None in row.values for row in rows)

    case = next(case for case in map(draw, range(SEEDS)) if has_a_null(case))
    small = shrink(case, has_a_null, tries=1000)
    assert [len(rows) for batch in small.batches for rows in batch.rows.values() if rows] == [1]
    assert len(small.batches) == 1
    assert len(small.job.plans) == 1
    assert not any(batch.crashes or batch.restart or batch.again for batch in small.batches)


def test_crashes_are_at_the_events_that_the_case_says():
    case = draw(1)
    batches = tuple(replace(batch, crashes=(0, 2)) for batch in case.batches)
    outcome = run(replace(case, batches=batches))
    assert not outcome.differences
    assert all(len(events) == 2 for events in outcome.events)


def test_the_command_prints_its_figures(capsys):
    assert command(["bench", "simulate", "--seeds", "3..5", "--jobs", "1", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["seeds"] == 3
    assert figures["failed"] == []
    assert figures["schedules_per_minute"] > 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--seeds", "5..3"], 2), (["--seeds", "all"], 2)],
)
def test_what_the_command_refuses(arguments, code):
    assert command(["bench", "simulate", *arguments]) == code
