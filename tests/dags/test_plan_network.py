"""`plan_network` by its form, without a scheduler: `dag.test()` runs its tasks in this process."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from jobs.services.components import DAGS
from tests.dags.test_alone import RUN, _by_run
from tests.jobs.network.test_job_queries import JOB, NETWORK
from tests.jobs.windows import window, write

FORM = {"job": "pair", "reason": "links are slow"}

CASES: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    "without a reason": (
        {"job": "pair"}, {"wanted": "failed", "plan": "upstream_failed"}, "say why you ask",
    ),
    "without a job": ({"reason": "to see"}, {"wanted": "failed"}, "choose whose network"),
    "a dry run": (
        FORM | {"strategy": "landmarks", "max_cs": "2"}, {"plan": "success", "escalate": "skipped"},
        "start     operator a b, l",
    ),
    "deployed": (FORM | {"dry_run": False}, {"plan": "success"}, "is in force from now on"),
    "once": (FORM | {"dry_run": False}, {"plan": "success"}, "nothing takes less"),
}  # fmt: skip


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[dict[str, str], str]]:
    """For each case the states of its tasks, and everything that was said."""
    place = tmp_path_factory.mktemp("network")
    streams = {n: s | {"site": {"a": "l", "b": "r"}[n]} for n, s in JOB["streams"].items()}
    wide = JOB["queries"]["wide"] | {"sink": {"site": "l"}}
    sites = {"network": "network.yaml", "site": "m", "streams": streams, "queries": {"wide": wide}}
    (place / "job.yaml").write_text(yaml.safe_dump(JOB | sites))
    (place / "network.yaml").write_text(yaml.safe_dump(NETWORK))
    for number in range(3):
        write(place / "store", window(0, number), "wide", {"a": 3.0, "b": 30.0}, {("a", "b"): 0.01})
    environment = os.environ | {
        "AIRFLOW_HOME": str(place / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "MIDSTREAM_JOBS": str(place / "job.yaml"),
    }
    asked = json.dumps([("plan_network", conf) for conf, _, _ in CASES.values()])
    airflow = str(Path(sys.executable).parent / "airflow")
    subprocess.run([airflow, "db", "migrate"], env=environment, check=True, capture_output=True)
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(DAGS), asked],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(zip(CASES, _by_run(done.stdout), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_what_the_form_leads_to(case: str, told: dict[str, tuple[dict[str, str], str]]):
    _, expected, words = CASES[case]
    states, said = told[case]
    assert {name: states[name] for name in expected} == expected
    assert words in said


def test_on_news_it_only_proposes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of the jobs with news those that have a network, whatever the form's defaults are."""
    from dags import plan_network as dag
    from dags.commands import Answer
    from dags.news import asset

    known = {"pair": SimpleNamespace(name="pair", file="pair.yaml")}
    run = SimpleNamespace(run_type="asset_triggered", triggering_user_name=None, run_id="r")
    events: dict[Any, list[Any]] = {asset("pair"): [], asset("other"): []}
    context = {"dag_run": run, "triggering_asset_events": events}
    asked: list[tuple[str, ...]] = []

    def answer(*words: str, **_: Any) -> Answer:
        asked.append(words)
        said = {"outcome": "hold", "reasons": ["as it was"], "candidates": [], "steps": []}
        return Answer(0, said | {"id": "1", "job": "pair", "deployed": False})

    monkeypatch.setattr(dag, "JOBS", known)
    monkeypatch.setattr(dag, "get_current_context", lambda: context)
    monkeypatch.setattr(dag, "asker", lambda: "schedule")
    monkeypatch.setattr(dag, "midstream", answer)
    params = {name: param.value for name, param in dag.PARAMS.items()}
    (about,) = dag.wanted.function(params)
    assert dag.plan.function(about, params)["outcome"] == "hold"
    assert asked == [("plan-network", "--propose", "--", "pair.yaml")]
