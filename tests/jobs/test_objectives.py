"""What plans are chosen for: the three forms, what plans make of them, and how that is said."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from jobs import cli
from jobs.deciding.candidates import RUNNING, known, pick
from jobs.deciding.objectives import ahead, changed, makes
from jobs.objectives import objective
from jobs.planning_task import from_workload
from optimizer.cost.dual import Cost
from optimizer.cost.rate.objective import Objective
from optimizer.cost.throughput import Throughput
from optimizer.plan import build, parse
from optimizer.workload import Budget, StreamLoad, Workload

BUSY = """\
window: 50
streams: {A: {rate: 20}, B: {rate: 20}, C: {rate: 20}, D: {rate: 20}}
joins:
  - {between: [A, B], selectivity: 0.02}
  - {between: [B, C], selectivity: 0.2}
  - {between: [C, D], selectivity: 0.05}
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("cost", None),
        ("rate by 10 seconds", Objective(by=10.0)),
        ("rate by  2 minutes", Objective(by=120.0)),
        ("first 1000 results", Objective(first=1000.0)),
        ("first 1 result", Objective(first=1.0)),
    ],
)
def test_the_three_forms(text, found):
    assert objective(text) == found
    assert found is None or objective(found.spelt) == found


@pytest.mark.parametrize(
    "text",
    ["", "rate", "rate by", "rate by soon", "rate by 0 seconds", "first 0 results", "Cost",
     "first 1.5 results", "first -1 results", "first results", "rate by 10 seconds or cost"],
)  # fmt: skip
def test_nothing_else(text):
    with pytest.raises(ValueError, match=r"\S"):
        objective(text)


def test_what_keeps_up_makes_everything_and_what_needs_twice_the_cpu_makes_half():
    by = Throughput(Objective(by=10.0), 50.0, Budget())
    assert [by.value(Cost(cpu)) for cpu in (0.1, 1.0, 2.0)] == [500, 500, 250]
    first = Throughput(Objective(first=100.0), 50.0, Budget(cpu=2.0))
    assert [first.value(Cost(cpu)) for cpu in (0.1, 2.0, 4.0)] == [2, 2, 4]
    silent = Throughput(Objective(first=1.0), 0.0, Budget())
    assert silent.value(Cost(1.0)) is None
    said = [makes(one, Cost(2.0)) for one in (by, first, silent)]
    assert said == [
        "250 results by 10 s", "the first 100 results within 2 s", "the first 1 results never",
    ]  # fmt: skip
    assert by.order(Cost(0.1)) < by.order(Cost(0.2)) < by.order(Cost(2.0))


@pytest.fixture
def busy(tmp_path: Path) -> Path:
    path = tmp_path / "busy.yaml"
    path.write_text(BUSY)
    return path


def test_an_infeasible_query_gets_the_plan_of_most_results(busy):
    task = replace(from_workload(busy), objective=Objective(by=10.0))
    memo = task.memo()
    texts = ("(((A B) C) D)", "((A B) (C D))", "(A B C D)")
    options = [known(build(task.query, parse(text)), RUNNING, memo) for text in texts]
    taken = pick(options, memo, 0.9)
    assert str(taken.priced.plan) == "((A B) (C D))"
    assert taken.total.cpu == min(one.total.cpu for one in options) > 1
    (run, _, chosen) = (options[0].priced, 0, taken.priced)
    assert memo.throughput is not None
    gained = run.total.cpu / chosen.total.cpu - 1
    assert (
        ahead(memo.throughput, run, chosen)
        == f"((A B) (C D)) has {gained:.0%} more results by 10 s"
    )
    assert ahead(memo.throughput, chosen, run) == ""


def test_what_changed_is_said():
    def load(rate: float, share: float = 0.1) -> Workload:
        streams = {"baggage": StreamLoad(rate), "flights": StreamLoad(10)}
        return Workload(streams, {frozenset(streams): share})

    minute = 60_000_000
    nine = (9 * 60 + 10) * minute
    windows = [(nine + i * minute, load(rate)) for i, rate in enumerate((10, 11, 30, 30))]
    assert changed(windows) == "since 09:12 baggage is 3 times as fast"
    assert changed([(nine, load(10)), (nine + minute, load(12))]) == ""
    rarer = [(nine, load(20)), (nine + minute, load(10, 0.02))]
    assert changed(rarer) == "since 09:11 baggage and flights match 0.2 times as often"
    assert changed(windows[:1]) == ""
    assert changed([(nine, load(0)), (nine + minute, load(12))]) == ""


def as_json(capsys, *arguments):
    code = cli.run(["optimize", "--workload", *map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_optimize_for_an_objective(capsys, busy):
    code, found = as_json(capsys, busy, "--objective", "rate by 10 seconds")
    assert code == 0
    names = [one["strategy"] for one in found]
    assert names[-3:] == ["rate-max", "time-min", "exact"]
    assert "cardinality" not in names
    best = max(found, key=lambda one: one["results_by"])
    assert best["plan"] == "((A B) (C D))"
    assert {json.dumps(one["objective"]) for one in found} == {'{"by": 10.0}'}
    assert best["results_by"] == pytest.approx(10 * 16e6 / 35.2, rel=0.01)


def test_optimize_for_the_first_results(capsys, busy):
    _, found = as_json(capsys, busy, "--objective", "first 1000 results", "--strategy", "two-layer")
    assert found["seconds_to"] > 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--objective", "fast"), "--objective: found 'fast'; allowed: cost, rate by 10 seconds"),
        (("--strategy", "exact"), "--strategy: exact needs an objective of output rates"),
        (("--objective", "rate by 1 hour", "--strategy", "cardinality"),
         "--strategy: cardinality needs streams that end"),
    ],
)  # fmt: skip
def test_wrong_options(capsys, busy, options, says):
    assert cli.run(["optimize", "--workload", str(busy), *options]) == 2
    assert capsys.readouterr().err.startswith(f"midstream: {says}")
