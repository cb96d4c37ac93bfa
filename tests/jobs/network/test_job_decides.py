"""What `reoptimize` and MLflow say of a running job's network; its statistics written by hand."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from shutil import copy
from typing import Any

import pytest
import yaml

from jobs import cli, specs
from jobs.deciding.decisions import DecisionLog
from jobs.network.deployments import DeploymentLog
from jobs.tracking.deployments import account
from optimizer.network.placement import NETWORK_PLACEMENTS
from tests.jobs import small
from tests.jobs.network.test_job_queries import NETWORK
from tests.jobs.test_migrate import Stage
from tests.jobs.test_reoptimize import EARLY, THREE, see, staged, storage
from tests.jobs.test_tracking import database, runs

__all__ = ["database"]

SITES = {"a": "l", "b": "l", "c": "r"}


@pytest.fixture
def stage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    """The job runs at r; a and b come in at l, and the results go there."""
    monkeypatch.delenv(cli.DEBUG, raising=False)
    (tmp_path / "network.yaml").write_text(yaml.safe_dump(NETWORK))
    stream = {
        "source": "files", "format": "parquet", "options": {"maxFilesPerTrigger": 1},
        "schema": small.SCHEMA, "event_time": "ts", "lateness": "1 second",
    }  # fmt: skip
    three = {**small.QUERIES["three"], "plan": "((a b) c)", "sink": {"site": "l"}}
    with ExitStack() as stack:
        yield staged(
            tmp_path, capsys, stack, network="network.yaml", site="r", queries={"three": three},
            streams={name: stream | {"path": name, "site": at} for name, at in SITES.items()},
        )  # fmt: skip


def log(stage: Stage) -> DeploymentLog:
    return DeploymentLog.of(storage(stage))


def test_a_decision_says_what_to_do_about_the_network(stage: Stage):
    """a and b hardly match: joined where they come in, only what matches would travel."""
    see(stage, EARLY)
    (found,) = stage.json(*THREE)
    deployment = found["deployment"]
    assert found["outcome"] == "hold"
    assert (deployment["outcome"], deployment["deployed"]) == ("deploy", False)
    assert all(one > 0.2 for one in deployment["figures"]["drift"])
    (kept,) = log(stage).all()
    assert kept.id == deployment["id"]
    assert stage.json(*THREE)[0]["deployment"]["id"] == kept.id
    assert "midstream plan-network" in stage.says(0, *THREE)


def test_a_dry_run_writes_nothing_down(stage: Stage):
    see(stage, EARLY)
    (found,) = stage.json(*THREE, "--dry-run")
    assert found["deployment"]["outcome"] == "deploy"
    assert log(stage).all() == []
    assert DecisionLog.of(storage(stage)).newest(1) == []


def test_without_windows_there_is_nothing_to_plan(stage: Stage):
    (found,) = stage.json(*THREE, code=3)
    assert found["deployment"]["outcome"] == "blocked"
    assert "no good windows" in found["deployment"]["reasons"][0]


def test_plans_do_not_wait_for_the_network(stage: Stage):
    see(stage, EARLY)
    (stage.job.parent / "network.yaml").unlink()
    (found,) = stage.json(*THREE)
    assert found["outcome"] == "hold"
    assert found["deployment"]["outcome"] == "blocked"
    assert "network.yaml" in found["deployment"]["reasons"][0]


def test_history_is_not_about_networks(stage: Stage):
    see(stage, EARLY)
    stage.json(*THREE)
    (found,) = stage.json("reoptimize", "JOB", "--history")
    assert "deployment" not in found


def test_a_deployment_as_values(stage: Stage):
    see(stage, EARLY)
    found = stage.json("plan-network", "JOB", "--reason", "links are slow")
    (one,) = log(stage).all()
    told = account(specs.load(stage.job), one, log(stage))
    assert told.tags["midstream.decision"] == found["id"]
    assert (told.tags["deployed"], told.tags["why"]) == ("yes", "links are slow")
    assert told.metrics["usage"] == found["figures"]["usage"]
    assert told.metrics["moved_bytes"] == found["figures"]["moved_bytes"]
    assert list(told.series["drift"]) == found["figures"]["drift"]
    assert told.params["plan.three"] == found["queries"][0]["plan"]
    assert [child.name for child in told.children] == list(NETWORK_PLACEMENTS)
    for child in told.children:
        assert {"usage", "over_optimum", "examined"} <= child.metrics.keys()
        assert str(child.files["network.svg"]).startswith("<svg")
    (taken,) = [child.name for child in told.children if "taken" in child.tags]
    assert taken == found["strategy"]


def test_mlflow_has_a_run_a_deployment_and_one_a_strategy(
    stage: Stage, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    copy(database, tmp_path / "mlflow.db")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    monkeypatch.chdir(tmp_path)
    see(stage, EARLY)
    found = stage.json("plan-network", "JOB")
    told = stage.json("track", "JOB")
    assert list(told["runs"]) == [found["id"]]
    (run,) = runs(stage, "tags.deployed = 'yes'")
    assert run.data.metrics["usage"] == pytest.approx(found["figures"]["usage"])
    nested: Any = runs(stage, f"tags.`mlflow.parentRunId` = '{run.info.run_id}'")
    assert {one.data.params["strategy"] for one in nested} == set(NETWORK_PLACEMENTS)
    assert stage.json("track", "JOB")["runs"] == {}
