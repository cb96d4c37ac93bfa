"""`reoptimize` by its form, for another objective; `dag.test()` runs its tasks in this process.

Statistics say that b and c should be joined first, and that the running plan keeps up, too.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from jobs.services.components import DAGS
from tests.dags.test_alone import RUN, _by_run
from tests.jobs.test_reoptimize import LATE, see, staged

FORM = {"query": "small / three", "reason": "to see"}
BY = "rate by 10 seconds"

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "as the job file says": ({}, "three: migrate, ((a b) c) -> (a (b c))"),
    "results": ({"objective": BY, "dry_run": False}, "three: hold, ((a b) c)"),
    "results, by a search of theirs": ({"objective": BY, "strategy": "exact"}, "exact "),
    "cost, by a search for results": (
        {"objective": "cost", "strategy": "exact"}, "exact needs an objective of output rates",
    ),
    "nothing within the form": ({"objective": "rate by 0 seconds"}, "--objective: found"),
}  # fmt: skip

Told = dict[str, tuple[dict[str, str], str]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("objective")


@pytest.fixture(scope="module")
def told(place: Path) -> Iterator[Told]:
    """For each case the states of its tasks, and everything that was said."""
    with ExitStack() as stack:
        stage = staged(place, None, stack)  # type: ignore[arg-type]  # nobody prints here
        see(stage, LATE)
        environment = os.environ | {
            "AIRFLOW_HOME": str(place / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "MIDSTREAM_JOBS": str(stage.job),
            "MLFLOW_TRACKING_URI": f"sqlite:///{place / 'mlflow.db'}",
        }
        yield dict(zip(CASES, _by_run(_said(environment, place)), strict=True))


def _said(environment: dict[str, str], place: Path) -> str:
    airflow = str(Path(sys.executable).parent / "airflow")
    subprocess.run([airflow, "db", "migrate"], env=environment, check=True, capture_output=True)
    asked = json.dumps([("reoptimize", FORM | conf) for conf, _ in CASES.values()])
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(DAGS), asked],
        env=environment, cwd=place, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("case", CASES)
def test_what_an_objective_leads_to(case: str, told: Told):
    _, words = CASES[case]
    assert words in told[case][1]


def test_what_mlflow_keeps_of_it(told: Told, place: Path):
    """The one that was no dry run."""
    from mlflow import MlflowClient

    assert told["results"][0]["track"] == "success"
    client = MlflowClient(f"sqlite:///{place / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("small")
    found = client.search_runs([experiment.experiment_id], "params.objective != ''")
    (run,) = found
    assert run.data.params["objective"] == BY
    made = run.data.metrics
    assert made["running_results_by"] == made["chosen_results_by"] > 0
    below = client.search_runs(
        [experiment.experiment_id], f"tags.mlflow.parentRunId = '{run.info.run_id}'"
    )
    assert {child.data.metrics["results_by"] for child in below} == {made["running_results_by"]}
    files = {one.path for one in client.list_artifacts(run.info.run_id)}
    assert {"results.png", "front.png", "decision.json"} <= files


def test_the_form_itself_refuses_anything_else():
    from airflow.sdk.exceptions import ParamValidationError

    from dags.reoptimize import PARAMS

    for fine in ("as the job file says", "cost", BY, "first 1000 results"):
        assert PARAMS["objective"].resolve(fine) == fine
    for wrong in ("fastest", "at cost", "rate by 10 seconds or so\nmore", ""):
        with pytest.raises(ParamValidationError):
            PARAMS["objective"].resolve(wrong)
