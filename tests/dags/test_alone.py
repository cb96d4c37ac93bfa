"""Each DAG's own words, without a scheduler: `dag.test()` runs its tasks in this process."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs import specs, streaming
from jobs.services.components import DAGS
from tests.jobs import small

RUN = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
for dag, conf in json.loads(sys.argv[2]):
    run = DagBag(sys.argv[1]).dags[dag].test(run_conf=conf)  # a form leaves its values in the DAG
    states = {one.task_id: str(one.state) for one in run.get_task_instances()}
    print("STATES", json.dumps(states))
"""

FORM = {"query": "small / two", "reason": "to see"}

CASES: dict[str, tuple[str, dict[str, Any], dict[str, str], str]] = {
    "without a reason": (
        "reoptimize", {"query": "small / two"},
        {"wanted": "failed", "decide": "upstream_failed"}, "say why you ask",
    ),
    "without a query": (
        "reoptimize", {"reason": "to see"},
        {"wanted": "failed"}, "choose whose plan to look at",
    ),
    "an approval that only looks": (
        "reoptimize", FORM | {"approve": "261118-224714-201-two"},
        {"wanted": "failed"}, "to approve is to act",
    ),
    "nothing is known yet": (
        "reoptimize", FORM,
        {"wanted": "success", "decide": "skipped", "escalate": "skipped"}, "no good windows",
    ),
    "a migration without a plan": (
        "migrate", FORM, {"preflight": "failed", "request": "upstream_failed"}, "write the plan",
    ),
    "a plan that is none": (
        "migrate", FORM | {"plan": "(a z)"}, {"preflight": "failed"}, "z",
    ),
    "a dry run": (
        "migrate", {"query": "small / three", "reason": "to see", "plan": "((a b) c)"},
        {"preflight": "skipped", "request": "skipped", "watch": "skipped"}, "to ((a b) c) by",
    ),
    "a night without statistics": (
        "maintain", {"job": "small", "dry_run": False},
        {"chosen": "success", "calibrate": "skipped", "tidy": "success"},
        "no window of small has passed validation",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def told(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[dict[str, str], str]]:
    """For each case the states of its tasks, and everything that was said."""
    place = tmp_path_factory.mktemp("alone")
    small.write(place, range(2))
    job = small.job(place)
    streaming.run(specs.load(job), streaming.Extent(until_caught_up=True), lambda _: None)
    environment = os.environ | {
        "AIRFLOW_HOME": str(place / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "MIDSTREAM_JOBS": str(job),
    }
    asked = json.dumps([(dag, conf) for dag, conf, _, _ in CASES.values()])
    airflow = str(Path(sys.executable).parent / "airflow")
    subprocess.run([airflow, "db", "migrate"], env=environment, check=True, capture_output=True)
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(DAGS), asked],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(zip(CASES, _by_run(done.stdout), strict=True))


def _by_run(text: str) -> list[tuple[dict[str, str], str]]:
    """What was said before each run's states."""
    found = []
    said, *rest = text.split("STATES ")
    for part in rest:
        states, _, after = part.partition("\n")
        found.append((json.loads(states), said))
        said = after
    return found


@pytest.mark.spark
@pytest.mark.parametrize("case", CASES)
def test_what_a_form_leads_to(case: str, told: dict[str, tuple[dict[str, str], str]]):
    _, _, expected, words = CASES[case]
    states, said = told[case]
    assert {name: states[name] for name in expected} == expected
    assert words in said
