"""What the decisions come to over hours of windows, and over a real engine's batches."""

import itertools
import json

import pytest

from jobs.cli import run
from optimizer.drift import Policy
from tests.bench.chain import Chain
from tests.bench.drift.scenarios import SCENARIOS
from tests.bench.drift.simulated import Simulation

CHAIN = Chain(4, 30, 2_000)
POLICY = Policy()


@pytest.mark.parametrize("name", ["none", "noise", "single burst", "oscillation, 2 min"])
def test_nothing_that_lasts_changes_nothing(name: str):
    found = Simulation(CHAIN, SCENARIOS[name], 50, POLICY).run()
    assert found["migrations"] == []
    assert found["work"] == found["never"]


@pytest.mark.parametrize("seed", range(3))
def test_noise_of_other_seeds(seed: int):
    assert Simulation(CHAIN, SCENARIOS["noise"], 30, POLICY, seed).run()["migrations"] == []


def test_a_step_is_followed_by_one_migration():
    """It comes with the third window of the new kind; what is lost is the work of these."""
    found = Simulation(CHAIN, SCENARIOS["step"], 60, POLICY).run()
    (only,) = found["migrations"]
    assert only["window"] == 42
    assert found["clairvoyant"] < found["work"] < 0.6 * found["never"]


def test_to_and_fro_is_answered_less_and_less():
    """At 10 minutes from one to the next there would be nine; after the second, it takes 20."""
    found = Simulation(CHAIN, SCENARIOS["oscillation, 8 min"], 100, POLICY).run()
    at = [one["window"] for one in found["migrations"]]
    assert len(at) <= 6
    first, *others = (later - earlier for earlier, later in itertools.pairwise(at))
    assert first >= 10
    assert min(others) >= 20
    assert found["work"] < found["never"]


def test_the_command(capsys: pytest.CaptureFixture[str]):
    """Three steps of statistics after the selectivities change, the engine has the other plan."""
    options = ["--part", "engine,speed", "--batches", "27", "--streams", "4", "--runs", "1"]
    assert run(["bench", "drift", *options, "--rate", "500", "--json"]) == 0
    parts = json.loads(capsys.readouterr().out)["parts"]
    engine = parts["engine"]
    assert engine["same_results"]
    assert engine["cut_overs"]["never"] == []
    assert engine["cut_overs"]["clairvoyant"] == [9]
    outcomes = [one["outcome"] for one in engine["decided"] if one["batch"] < 9]
    assert "migrate" not in outcomes
    assert parts["speed"]["outcome"] == "migrate"
