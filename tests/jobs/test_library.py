"""Plans noted by workload: which workloads are alike, what is kept, and when a plan is good yet."""

from dataclasses import replace
from pathlib import Path

import pytest

from jobs.deciding.library import MOST, Entry, PlanLibrary, signature, still_good
from optimizer.workload import StreamLoad, UnitCosts, Workload

LOAD = Workload(
    {"a": StreamLoad(100.0), "b": StreamLoad(20.0)}, {frozenset("ab"): 0.01}, {"a.v > 1": 0.5}
)
ENTRY = Entry("q", "same query", "s0", {"op": "source"}, advantage=2.0, used=1_000)


def library(directory: Path, keep: int = 10_000) -> PlanLibrary:
    return PlanLibrary(directory, keep)


def test_about_the_same_workload():
    """100 and 110 both round to 1.5 ** 11 = 86.5; 200 to 1.5 ** 13."""
    near = replace(LOAD, streams={"a": StreamLoad(90.0), "b": StreamLoad(20.0)})
    assert signature(near) == signature(LOAD)
    assert signature(replace(LOAD, unit_costs=UnitCosts(scan=1.0))) == signature(LOAD)


@pytest.mark.parametrize(
    "other",
    [
        replace(LOAD, streams={"a": StreamLoad(200.0), "b": StreamLoad(20.0)}),
        replace(LOAD, streams={"a": StreamLoad(20.0), "b": StreamLoad(100.0)}),
        replace(LOAD, streams={"a": StreamLoad(0.0), "b": StreamLoad(20.0)}),
        replace(LOAD, joins={frozenset("ab"): 0.1}),
        replace(LOAD, selects={"a.v > 1": 0.05}),
        replace(LOAD, groups=50.0),
        replace(LOAD, combine={"a": 3.0}),
        replace(LOAD, batch=60.0),
    ],
)
def test_another_workload(other: Workload):
    assert signature(other) != signature(LOAD)


def test_a_plan_is_good_while_its_advantage_lasts():
    assert still_good(ENTRY, 2.0)
    assert still_good(ENTRY, 1.9)
    assert not still_good(ENTRY, 1.89)


def test_found_again(tmp_path: Path):
    plans = library(tmp_path)
    assert plans.find("q", "same query", "s0") is None
    plans.put(ENTRY)
    assert plans.find("q", "same query", "s0") == ENTRY
    assert plans.find("other", "same query", "s0") is None
    assert plans.find("q", "another query", "s0") is None
    assert plans.find("q", "same query", "s1") is None


def test_a_newer_plan_takes_the_place(tmp_path: Path):
    plans = library(tmp_path)
    plans.put(ENTRY)
    plans.put(replace(ENTRY, plan={"op": "join"}))
    assert [entry.plan for entry in plans.entries()] == [{"op": "join"}]


def test_forgotten(tmp_path: Path):
    plans = library(tmp_path)
    plans.put(ENTRY)
    plans.put(other := replace(ENTRY, signature="s1"))
    plans.forget(ENTRY)
    assert plans.entries() == [other]
    plans.forget(other)
    assert plans.entries() == []


def test_what_nobody_used_goes(tmp_path: Path):
    plans = library(tmp_path, keep=100)
    plans.put(ENTRY)
    plans.put(replace(ENTRY, signature="s1", used=1_100))
    assert len(plans.entries()) == 2
    plans.put(replace(ENTRY, signature="s2", used=1_101))
    assert [entry.signature for entry in plans.entries()] == ["s2", "s1"]


def test_there_is_an_end_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("jobs.deciding.library.MOST", 3)
    plans = library(tmp_path)
    for number in range(5):
        plans.put(replace(ENTRY, signature=f"s{number}", used=number))
    assert [entry.signature for entry in plans.entries()] == ["s4", "s3", "s2"]
    assert MOST == 100
