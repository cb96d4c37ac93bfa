"""What MLflow is told of decisions: its own code over SQLite; its server is in tests/dags."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from jobs import cli, specs
from jobs.deciding.decisions import Decision
from jobs.errors import RefusedError
from jobs.tracking.account import account, verbatim
from jobs.tracking.gain import WARMING
from jobs.tracking.ledger import Ledger, catch_up
from stats.costs import SHIPPED, Fit, keep
from stats.store import StatsStore
from tests.jobs.test_migrate import Stage
from tests.jobs.test_reoptimize import EARLY, LATE, THREE, see, staged, storage

CLOSED = "http://127.0.0.1:9"
"""Where nobody listens."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MLflow's tables, which take seconds to make."""
    from mlflow import MlflowClient

    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def stage(
    database: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Stage]:
    copy(database, tmp_path / "mlflow.db")
    monkeypatch.delenv(cli.DEBUG, raising=False)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    monkeypatch.chdir(tmp_path)  # MLflow puts artifacts below it
    with ExitStack() as stack:
        yield staged(tmp_path, capsys, stack)


def runs(stage: Stage, wanted: str = "") -> list[Any]:
    from mlflow import MlflowClient

    client = MlflowClient()
    experiment = client.get_experiment_by_name("small")
    return list(client.search_runs([experiment.experiment_id], wanted))


def decide(stage: Stage) -> Decision:
    (found,) = stage.json(*THREE)
    return Decision.from_json(found)


def test_a_decision_as_values(stage: Stage):
    see(stage, LATE)
    decision = decide(stage)
    found = account(specs.load(stage.job), decision)
    assert found.tags["midstream.decision"] == decision.id
    assert found.tags["migration"] == decision.request
    assert decision.reasons[0] in found.tags["mlflow.note.content"]
    assert (found.params["running"], found.params["chosen"]) == ("((a b) c)", decision.chosen)
    assert (found.params["rate.a"], found.params["selectivity.a-b"]) == ("100", "0.3")
    assert found.params["policy.drift"] == "0.2"
    before, after = decision.figures["running_cpu"], decision.figures["chosen_cpu"]
    assert found.metrics["predicted_gain"] == pytest.approx((before - after) / before)
    assert found.metrics["examined"] == sum(one.examined for one in decision.candidates)
    assert list(found.series["drift"]) == list(decision.figures["drift"])
    assert [child.params["strategy"] for child in found.children] == [
        one.strategy for one in decision.candidates
    ]
    assert {"front.png", "workload.json", "validation.json", "statistics/edges.json"} <= set(
        found.files
    )
    rows = json.loads(str(found.files["statistics/streams.json"]))
    assert {row["stream"]: row["rate"] for row in rows} == {"a": 100.0, "b": 100.0, "c": 100.0}
    for name in ("running", "chosen", "diff"):
        assert str(found.files[f"plans/{name}.svg"]).startswith("<svg")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("results come late (again), 3 % more", "results come late (again), 3 % more"),
        ("<script>alert(1)</script>", r"\<script\>alert(1)\</script\>"),
        ("![x](http://evil/?) [y](javascript:z)", r"\!\[x\](http://evil/?) \[y\](javascript:z)"),
        ("a\n\n# b\n- c\r\n", r"a \# b - c"),
        ("`c` *d* _e_ &lt;", r"\`c\` \*d\* \_e\_ \&lt;"),
        ("", ""),
    ],
)
def test_a_persons_words_are_only_words(text: str, written: str):
    assert verbatim(text) == written


def test_no_password_of_an_address_is_told():
    from jobs.tracking.mlflow_log import Log, shown

    uri = "https://eva:s3cr:t@tracking.example:5000"
    page = Log(None, uri, "7").page("0d1")
    assert page == "https://tracking.example:5000/#/experiments/7/runs/0d1"
    assert shown(f"no route to {uri}/api") == "no route to https://tracking.example:5000/api"
    assert shown("http://127.0.0.1:9/a@b") == "http://127.0.0.1:9/a@b"


def test_to_do_nothing_is_told_as_well(stage: Stage):
    see(stage, EARLY)
    decision = decide(stage)
    assert decision.outcome == "hold"
    assert stage.json("track", "JOB")["missed"] == ""
    (run,) = runs(stage, "tags.outcome = 'hold'")
    assert run.info.status == "FINISHED"
    assert run.data.metrics["running_cpu"] == decision.figures["running_cpu"]
    assert stage.json("track", "JOB")["runs"] == {}


def test_without_windows_there_is_little_to_tell(stage: Stage):
    assert stage.json(*THREE, code=3)[0]["outcome"] == "blocked"
    (page,) = stage.json("track", "JOB")["runs"].values()
    assert "/runs/" in page
    (run,) = [one for one in runs(stage) if one.info.run_id in page]
    assert "no good windows" in run.data.tags["mlflow.note.content"]


def test_what_became_of_it(stage: Stage):
    stage.batches(12)
    see(stage, LATE)
    decision = decide(stage)
    stage.json("track", "JOB")
    (run,) = runs(stage, f"tags.`midstream.decision` = '{decision.id}'")
    assert "migration.phase" not in run.data.tags

    stage.batches(12)
    stage.json("track", "JOB")
    (run,) = runs(stage, f"tags.`midstream.decision` = '{decision.id}'")
    status = stage.json("migration", "status", "JOB", decision.request)
    over = {event["phase"]: event["batch"] for event in status["events"]}
    assert run.data.tags["migration.batch"] == str(over["done"])
    metric = {"moving-state": "T_MS", "parallel-track": "T_PT", "background": "T_BG"}
    assert run.data.metrics[metric[decision.migration]] >= 0

    done = over["done"]
    metrics = run.data.metrics
    assert "time of its joins a" in run.data.tags["measured"]
    assert 1 <= metrics["measured_batches_after"] <= 10
    assert metrics["prediction_error"] == pytest.approx(
        metrics["predicted_gain"] - metrics["measured_gain"]
    )
    ledger = Ledger.of(storage(stage))
    assert ledger.waits(decision.id) is (stage.engine.progress.batch < done + WARMING + 9)


def test_while_nobody_answers(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    see(stage, EARLY)
    decision = decide(stage)
    with monkeypatch.context() as away:
        away.setenv("MLFLOW_TRACKING_URI", CLOSED)
        away.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        told = stage.json("track", "JOB")
    assert (told["runs"], told["waiting"], bool(told["missed"])) == ({}, 1, True)
    assert list(stage.json("track", "JOB")["runs"]) == [decision.id]


def test_what_was_told_in_part_is_told_again(stage: Stage):
    from mlflow import MlflowClient

    see(stage, EARLY)
    decision = decide(stage)
    client = MlflowClient()
    experiment = client.create_experiment("small")
    client.create_run(experiment, tags={"midstream.decision": decision.id})
    stage.json("track", "JOB")
    tagged = f"tags.`midstream.decision` = '{decision.id}'"
    (run,) = runs(stage, tagged)
    assert run.info.status == "FINISHED"

    Ledger.of(storage(stage)).path.unlink()  # forgotten here, not there
    stage.json("track", "JOB")
    assert [one.info.run_id for one in runs(stage, tagged)] == [run.info.run_id]


def test_the_costs_in_use(stage: Stage):
    from mlflow import MlflowClient

    store = StatsStore.of(storage(stage))
    costs = SHIPPED["duckdb"]
    for at in (1_000_000, 2_000_000):
        keep(store, "duckdb", Fit(costs, costs.values, costs.values, 40, 0.1), at)
    stage.json("track", "JOB")
    stage.json("track", "JOB")
    client, model = MlflowClient(), "small unit costs on duckdb"
    found = client.search_model_versions(f"name = '{model}'")
    assert sorted(one.tags["fitted"] for one in found) == [
        "1970-01-01T00:00:00.000+00:00",  # those that were shipped
        "1970-01-01T00:00:01.000+00:00",
        "1970-01-01T00:00:02.000+00:00",
    ]
    used = client.get_model_version_by_alias(model, "in-use")
    assert used.tags["fitted"] == "1970-01-01T00:00:02.000+00:00"
    assert client.get_run(used.run_id).data.metrics["probe"] == costs.probe


def test_where_mlflow_is_has_to_be_known(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    with pytest.raises(RefusedError, match="MLFLOW_TRACKING_URI"):
        catch_up(specs.load(stage.job))
