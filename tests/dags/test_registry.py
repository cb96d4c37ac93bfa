"""Which jobs the DAGs know, whose turn it is, and that parsing them imports nothing heavy."""

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobs.services.components import DAGS
from tests.jobs import small

PARSE = """
import sys
from airflow.dag_processing.dagbag import DagBag
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, Asset, BaseOperator, Param, task
from airflow.serialization.serialized_objects import DagSerialization
from airflow.triggers.base import BaseTrigger
bag = DagBag(sys.argv[1])
assert not bag.import_errors, bag.import_errors
known = {"gather_statistics", "reoptimize", "migrate", "maintain", "plan_network"}
assert set(bag.dags) == known, bag.dags
heavy = {"pyspark", "mlflow", "deltalake", "pandas", "great_expectations", "duckdb", "numba"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
def of(one, name):
    return getattr(one, name, None) or one.partial_kwargs.get(name)
for dag in bag.dags.values():
    DagSerialization.to_dict(dag)
    assert dag.doc_md and "midstream" in dag.tags, dag
    for one in dag.tasks:
        assert of(one, "doc_md"), (one, "doc")
        assert of(one, "owner") == "streaming" and of(one, "on_failure_callback"), one
        assert one.retries == 0 or of(one, "retry_exponential_backoff"), one
form = bag.dags["migrate"].params
assert form["dry_run"] is True
assert form.get_param("query").schema["enum"] == ["small / three", "small / two", "small / counted"]
"""


def test_the_dags_import_without_what_is_heavy(tmp_path: Path):
    job = small.job(tmp_path)
    environment = os.environ | {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "MIDSTREAM_JOBS": str(job),
    }
    words = [sys.executable, "-c", PARSE, str(DAGS)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from dags import registry

    other = small.job(tmp_path, job="other", storage="other", statistics={"every": "3 minutes"})
    files = [small.job(tmp_path, statistics={"every": "2 minutes"}), other, tmp_path / "lost.yaml"]
    monkeypatch.setenv("MIDSTREAM_JOBS", os.pathsep.join(map(str, files)))
    return registry


def test_a_wrong_job_file_does_not_take_the_others_down(registry):
    found = registry.jobs()
    assert list(found) == ["small", "other", "lost"]
    assert found["lost"].queries == ()
    assert registry.subjects(found)[0] == "small / three"
    assert registry.chosen("other / two", found) == (found["other"], "two")


HOSTILE = (
    "a:b.yaml", "c d.yaml", "e,f.yaml", "g'h\".yaml", "i\nj.yaml", "ключ.yaml", "-k.yaml",
    "l*[m]?.yaml", "n=o/p.yaml", "$(q);r.yaml", "%41.yaml", "{{ s }}.yaml", "#t?u.yaml",
    "[\"v\"]/w.yaml",
)  # fmt: skip
"""Names of files and directories that mean something to a shell, a URL, a template or a list."""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_job_file_whose_name_means_something_elsewhere(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from dags import registry
    from jobs.services.components import components
    from jobs.services.home import Home, Settings

    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    small.job(tmp_path).rename(file)
    home = Home.of(tmp_path)
    home.make()
    home.keep(Settings(1, 2, {"small": str(file), "other": "/elsewhere.yaml"}))
    known = {one.name: one for one in components(home)}
    monkeypatch.setenv("MIDSTREAM_JOBS", known["airflow-dags"].environment["MIDSTREAM_JOBS"])
    found = registry.jobs()
    assert {job.name: job.file for job in found.values()} == {
        "small": str(file),
        "elsewhere": "/elsewhere.yaml",
    }
    assert known["job-small"].command[-2:] == ("run", str(file))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_wrong_file_whose_name_means_something_elsewhere(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from dags import news, registry

    file = tmp_path / name
    monkeypatch.setenv("MIDSTREAM_JOBS", json.dumps([str(file), str(small.job(tmp_path))]))
    found = registry.jobs()
    assert [job.file for job in found.values()] == [str(tmp_path / "job.yaml"), str(file)]
    for key, job in found.items():
        assert (job.name, news.job_of(news.asset(key).name)) == (key, key)
        assert key.isascii()


def test_two_files_of_one_name_and_paths_that_are_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from dags import news, registry

    right = small.job(tmp_path)
    (tmp_path / "small").mkdir()
    again = right.rename(tmp_path / "again.yaml")
    wrong = [tmp_path / "small.yaml", tmp_path / "small" / "small.yaml", tmp_path / ("x" * 3000)]
    others = [os.fsdecode(b"/tmp/\xff.yaml"), "/a\0b.yaml", "relative.yaml", 7]
    listed = [str(one) for one in (again, again, *wrong)] + others
    monkeypatch.setenv("MIDSTREAM_JOBS", json.dumps(listed))
    found = registry.jobs()
    assert len(found) == len(listed)
    assert found["small"].file == str(again)
    assert found["relative"].file == str(Path.cwd() / "relative.yaml")
    for key, job in found.items():
        assert news.asset(key)
        assert json.dumps(job.file).encode()
        assert job.file.encode()


def test_job_files_as_a_person_lists_them(monkeypatch: pytest.MonkeyPatch):
    from dags import registry

    assert registry.files("/a.yaml:/b c.yaml::") == [Path("/a.yaml"), Path("/b c.yaml")]
    assert registry.files("[draft]/a.yaml") == [Path.cwd() / "[draft]" / "a.yaml"]
    assert registry.files("") == []


def test_the_forms_offer_every_strategy_there_is():
    from dags import registry
    from optimizer.migration import MIGRATIONS
    from optimizer.network.placement import NETWORK_PLACEMENTS
    from optimizer.search import COSTS, ENDLESS

    assert set(registry.SEARCHES) == {*COSTS, *ENDLESS}
    assert set(registry.MIGRATIONS) == {"auto", *MIGRATIONS}
    assert tuple(NETWORK_PLACEMENTS) == registry.NETWORKS


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("cost", True), ("rate by 10 seconds", True), ("rate by 1.5 minutes", True),
        ("first 1000 results", True), ("first 1 result", True), ("", False), ("costs", False),
        ("at cost", False), ("rate by soon", False), ("first results", False), ("fastest", False),
    ],
)  # fmt: skip
def test_a_form_takes_the_three_forms_of_an_objective(text: str, fits: bool):
    """As the command does, but for what only it can say of the numbers."""
    from dags import registry
    from jobs.objectives import objective

    assert bool(re.fullmatch(registry.OBJECTIVE, text)) == fits
    if fits:
        objective(text)
    else:
        with pytest.raises(ValueError, match=r"\S"):
            objective(text)


def test_without_any_job(monkeypatch: pytest.MonkeyPatch):
    from dags import registry

    monkeypatch.delenv("MIDSTREAM_JOBS", raising=False)
    assert registry.jobs() == {}
    assert registry.subjects({}) == ["no job is known: set MIDSTREAM_JOBS"]
    assert registry.schedule([]) == timedelta(minutes=5)


def test_every_job_has_its_turn_as_often_as_its_file_says(registry):
    known = [job for job in registry.jobs().values() if job.name != "lost"]
    step = registry.schedule(known)
    assert step == timedelta(minutes=1)
    begin = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
    turns = [
        [job.name for job in registry.due(known, begin + minute * step, step)]
        for minute in range(1, 7)
    ]
    assert [t.count("small") for t in turns].count(1) == 3
    assert [t.count("other") for t in turns].count(1) == 2
    assert turns == [[], ["small"], ["other"], ["small"], [], ["small", "other"]]
