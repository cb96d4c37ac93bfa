"""The benchmark of predictions, with very little to measure; its plans and its tuples."""

import json
from itertools import pairwise

import pytest

from jobs.cli import run
from optimizer.plan import Join, walk
from tests.bench.calibration.loads import LOADS


@pytest.mark.parametrize("name", LOADS)
def test_plans_range_from_cheap_to_dear_and_have_no_products(name: str):
    load = LOADS[name]
    plans = load.plans(20)
    assert 19 <= len({str(offer) for offer in plans}) <= 20
    assert all(one.total.cpu <= other.total.cpu for one, other in pairwise(plans))
    for offer in plans:
        joins = [node for node in walk(offer.plan.root) if isinstance(node, Join)]
        assert all(len(join.predicates) >= len(join.parts) - 1 for join in joins)


def test_tuples_find_as_many_partners_as_the_workload_says():
    load = LOADS["chain"]
    a, b = (load.batch_of(name, 0, seed=1).column("ab").to_numpy() for name in "ab")
    pairs = sum((a == value).sum() * (b == value).sum() for value in range(200))
    expected = 200 * (len(a) / load.values["ab"]) * (len(b) / load.values["ab"])
    assert pairs == pytest.approx(expected, rel=0.15)


def test_the_command_prints_what_was_predicted_and_measured(capsys: pytest.CaptureFixture[str]):
    assert run(["bench", "calibration", "--workloads", "small", "--plans", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["plans"]) == 3
    assert len({one["results"] for one in found["plans"]}) == 1
    for one in found["plans"]:
        assert one["cpu"] > 0
        assert one["error"] == pytest.approx(one["fitted"] / one["cpu"] - 1)
    tries = found["tries"]["shipped costs, all plans"]
    assert tries["plans"] == 3
    assert 0 <= tries["right"] <= tries["pairs"] <= 3


def test_a_workload_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]):
    assert run(["bench", "calibration", "--workloads", "chian"]) == 2
    assert "did you mean chain?" in capsys.readouterr().err
