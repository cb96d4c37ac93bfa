"""Job files: what they mean, and what is said about those that are wrong."""

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.errors import InputError, RefusedError
from jobs.specs import FilesStream, GeneratorStream, Job, load
from optimizer.workload import Budget

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "airline.yaml"

SMALL = """\
job: small
streams:
  a:
    source: delta
    path: in/a
    schema: k INT, ts TIMESTAMP
    event_time: ts
  b:
    source: delta
    path: in/b
    schema: k INT, ts TIMESTAMP
    event_time: ts
queries:
  pairs:
    sql: SELECT a.k FROM a JOIN b ON a.k = b.k
    window: 5 minutes
"""


def written(directory: Path, text: str, name: str = "job.yaml") -> Path:
    path = directory / name
    path.write_text(text)
    return path


def job(directory: Path, text: str) -> Job:
    return load(written(directory, text))


def changed(*replacements: tuple[str, str]) -> str:
    text = SMALL
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new, 1)
    return text


# --- right ---------------------------------------------------------------------------------------


def test_example():
    airline = load(EXAMPLE)
    assert airline.job == "airline"
    assert airline.storage == str(EXAMPLE.parent / ".midstream/airline")
    assert airline.trigger == timedelta(seconds=10)
    assert airline.budget.limits == Budget(cpu=1.5, bytes=2 * 2**30)
    flights = airline.streams["flights"]
    assert isinstance(flights, FilesStream)
    assert (flights.format, flights.lateness) == ("parquet", timedelta(seconds=10))
    assert flights.idle_after == timedelta(minutes=5)
    assert flights.path == str(EXAMPLE.parent / "data/flights")
    assert flights.options == {"maxFilesPerTrigger": 1}


def test_example_queries():
    airline = load(EXAMPLE)
    airline.check()
    gates = airline.query("gates")
    assert gates.aliases == ("f", "b", "c")
    assert gates.bounds["b", "f"] == 5 * 60 * 10**6
    assert gates.bounds["f", "b"] == 60 * 10**6
    assert str(airline.plan("gates")) == "((f b) c)"
    assert str(airline.plan("terminal")) == "(((f w) c) b)"
    assert airline.query("monitoring").grouping is not None


def test_defaults(tmp_path: Path):
    small = job(tmp_path, SMALL)
    assert small.engine == "spark-duckdb"
    assert small.storage == str(tmp_path / ".midstream/small")
    assert small.sink("pairs") == str(tmp_path / ".midstream/small/out/pairs")
    assert small.trigger == timedelta(seconds=10)
    assert small.streams["a"].lateness == timedelta(0)
    assert small.streams["a"].idle_after is None
    assert small.budget.limits == Budget()
    policy = small.reoptimize
    assert (policy.strategy, policy.drift, policy.windows) == ("two-layer", 0.2, 3)
    assert (policy.cooldown, policy.horizon) == (timedelta(minutes=10), timedelta(hours=1))
    assert (policy.migration, policy.approve) == ("auto", False)


def test_window_of_a_query_bounds_all_pairs(tmp_path: Path):
    bounds = job(tmp_path, SMALL).query("pairs").bounds
    assert bounds["a", "b"] == bounds["b", "a"] == 5 * 60 * 10**6


def test_a_job_does_not_change(tmp_path: Path):
    small = job(tmp_path, SMALL)
    with pytest.raises(ValueError, match="frozen"):
        small.trigger = timedelta(seconds=1)  # type: ignore[misc]


def test_paths_are_relative_to_the_file_and_addresses_are_left_alone(tmp_path: Path):
    small = job(tmp_path, changed(("in/a", "../in/a"), ("in/b", "s3://bucket/b")))
    paths = [getattr(stream, "path", None) for stream in small.streams.values()]
    assert paths == [str(tmp_path.parent / "in/a"), "s3://bucket/b"]


def test_generator(tmp_path: Path):
    generator = """\
source: generator
    generator:
      rate: 1000
      keys: {k: 50}
      drift: [{after: 5 minutes, rate: 2e3}]
"""
    small = job(tmp_path, changed(("source: delta\n    path: in/a\n", generator)))
    stream = small.streams["a"]
    assert isinstance(stream, GeneratorStream)
    assert (stream.generator.rate, stream.generator.keys) == (1000, {"k": 50})
    [shift] = stream.generator.drift
    assert (shift.after, shift.rate) == (timedelta(minutes=5), 2000)
    small.check_runnable()


def test_kafka_is_described_and_refused_when_run(tmp_path: Path):
    kafka = "source: kafka\n    topic: a\n    servers: localhost:9092"
    small = job(tmp_path, changed(("source: delta\n    path: in/a", kafka)))
    with pytest.raises(RefusedError) as refused:
        small.check_runnable()
    assert str(refused.value) == (
        f"{tmp_path}/job.yaml:4: streams.a.source: "
        "kafka is not supported yet; use files, delta or generator"
    )


@pytest.mark.parametrize(
    ("written_as", "budget"),
    [
        ("{cpu: 2}", Budget(cpu=2)),
        ("{memory: 600 tuples}", Budget(tuples=600)),
        ("{memory: 30MB}", Budget(bytes=30e6)),
        ("{memory: 1.5 GiB}", Budget(bytes=1.5 * 2**30)),
        ("{memory: 1000}", Budget(bytes=1000)),
        ("{}", Budget()),
    ],
)
def test_budgets(tmp_path: Path, written_as: str, budget: Budget):
    assert job(tmp_path, SMALL + f"budget: {written_as}\n").budget.limits == budget


def test_words_that_old_yaml_mistakes_for_truths(tmp_path: Path):
    text = (
        SMALL.replace("k INT", "on INT")
        .replace("a.k = b.k", "a.on = b.on")
        .replace("a.k", "1 AS x")
    )
    assert job(tmp_path, text + "reoptimize: {drift: 2e-1}\n").reoptimize.drift == 0.2


def test_json_is_fine_too(tmp_path: Path):
    path = written(tmp_path, json.dumps(yaml.safe_load(SMALL), indent="\t"), "job.json")
    assert load(path).job == "small"


def test_import_is_light():
    """DAGs and `midstream --help` must not wait for Spark or a SQL parser."""
    code = "import sys, jobs.specs; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pyspark", "sqlglot", "numpy", "pandas", "airflow"} & set(told.stdout.split())


# --- wrong ---------------------------------------------------------------------------------------

WRONG = yaml.safe_load(Path(__file__).with_name("wrong_jobs.yaml").read_text())


def messages(directory: Path, text: str, name: str = "job.yaml") -> list[str]:
    with pytest.raises(InputError) as wrong:
        load(written(directory, text, name)).check()
    assert wrong.value.code == 2
    return [str(problem).replace(f"{directory}/", "") for problem in wrong.value.problems]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in WRONG])
def test_wrong(tmp_path: Path, case: dict[str, Any]):
    text = case.get("text", changed(*case.get("replace", {}).items()) + case.get("add", ""))
    says = [case["says"]] if isinstance(case["says"], str) else case["says"]
    assert messages(tmp_path, text) == [
        f"job.yaml:{line if line[0].isdigit() else ' ' + line}" for line in says
    ]


def test_sql_errors_show_the_place(tmp_path: Path):
    with pytest.raises(InputError) as wrong:
        job(tmp_path, changed(("a.k = b.k", "a.k = b.q"))).query("pairs")
    assert wrong.value.problems[0].detail == (
        "  SELECT a.k FROM a JOIN b ON a.k = b.q\n" + " " * 36 + "^"
    )


def test_wrong_json(tmp_path: Path):
    assert messages(tmp_path, '{"job": "a",\n "streams": }', "job.json") == [
        "job.json:2: cannot be read as JSON: Expecting value (column 13)"
    ]


def test_no_such_file(tmp_path: Path):
    with pytest.raises(InputError) as wrong:
        load(tmp_path / "none.yaml")
    assert str(wrong.value) == f"{tmp_path}/none.yaml: cannot be read: no such file or directory"


def test_not_text(tmp_path: Path):
    (tmp_path / "job.yaml").write_bytes(b"job: \xff")
    with pytest.raises(InputError, match="is not text in UTF-8: byte 5 is wrong"):
        load(tmp_path / "job.yaml")


def test_nested_without_end(tmp_path: Path):
    assert messages(tmp_path, "[" * 5000) == ["job.yaml: is nested too deeply"]


def test_unknown_query(tmp_path: Path):
    with pytest.raises(InputError) as wrong:
        job(tmp_path, SMALL).query("pair")
    assert str(wrong.value) == (
        f"{tmp_path}/job.yaml:13: queries: "
        "no query is called 'pair'; there is pairs; did you mean pairs?"
    )
