"""Queries of jobs over a network: what statistics say of them, by hand."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.cli import run
from tests.jobs.windows import window, write

JOB: dict[str, Any] = {
    "job": "pair", "engine": "duckdb", "storage": "store",
    "streams": {
        name: {"source": "generator", "schema": f"k BIGINT, {name}x BIGINT, ts TIMESTAMP",
               "event_time": "ts", "generator": {"rate": 1.0}}
        for name in "ab"
    },
    "queries": {
        "wide": {"sql": "SELECT a.k, a.ax, b.bx FROM a [RANGE 20 SECONDS] "
                        "JOIN b [RANGE 10 SECONDS] ON a.k = b.k"},
        "narrow": {"sql": "SELECT a.k, b.bx FROM a [RANGE 20 SECONDS] "
                          "JOIN b [RANGE 10 SECONDS] ON a.k = b.k WHERE a.ax = 7"},
        "self": {"sql": "SELECT x.k FROM a [RANGE 10 SECONDS] x "
                        "JOIN a [RANGE 10 SECONDS] y ON x.k = y.k"},
    },
}  # fmt: skip
NETWORK: dict[str, Any] = {
    "sites": ["l", "m", "r"],
    "links": [{"between": ["l", "m"], "latency": 1}, {"between": ["m", "r"], "latency": 1}],
}


class Stage:
    """A job with statistics, and a file of queries that names it."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]):
        self.path, self.capsys = path, capsys
        self.streams: dict[str, Any] = {"a": {"site": "l"}, "b": {"site": "m"}}
        (path / "job.yaml").write_text(yaml.safe_dump(JOB))
        (path / "network.yaml").write_text(yaml.safe_dump(NETWORK))

    def see(self) -> None:
        selects = {"a.ax = 7": 0.1}
        for name in ("wide", "narrow"):
            write(self.path / "store", window(0, 0), name, {"a": 30.0, "b": 3.0},
                  {("a", "b"): 0.01}, selects=selects)  # fmt: skip

    def __call__(self, *names: str) -> tuple[int, str, str]:
        queries = [{"job": "job.yaml", "query": name, "sink": "r"} for name in names]
        file = {"streams": self.streams, "queries": queries}
        (self.path / "queries.yaml").write_text(yaml.safe_dump(file))
        self.capsys.readouterr()
        files = [str(self.path / f"{name}.yaml") for name in ("network", "queries")]
        code = run(["plan-network", *files, "--strategy", "exhaustive", "--json"])
        return code, *self.capsys.readouterr()


@pytest.fixture
def stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Stage:
    return Stage(tmp_path, capsys)


def test_rates_selectivities_and_windows_come_from_the_job(stage: Stage):
    """30 and 3 tuples a second, 20 and 10 seconds, 1 in 100 matches."""
    stage.see()
    code, out, err = stage("narrow")
    assert (code, err) == (0, ""), out
    (query,) = json.loads(out)["queries"]
    (operator,) = query["operators"]
    rate = (30 * 0.1) * 3 * 0.01 * (20 + 10)
    assert query["name"] == "narrow"
    assert operator["where"] == [{"stream": "a", "predicate": "a.ax = 7"}]
    width = operator["bytes_per_s"] / rate
    assert 0 < width < 80
    assert width != pytest.approx(80)


def test_columns_have_names(stage: Stage):
    """The wide query cannot read the narrow one's join as it is: a column is missing."""
    stage.see()
    code, out, _ = stage("narrow", "wide")
    assert code == 0
    _, wide = json.loads(out)["queries"]
    assert all(reused["relaxed"] for reused in wide["reused"])
    code, out, _ = stage("wide", "narrow")
    _, narrow = json.loads(out)["queries"]
    assert [reused["relaxed"] for reused in narrow["reused"]] == [False]


def test_without_validated_statistics_nothing_is_made_up(stage: Stage):
    code, out, _ = stage("wide")
    assert code == 3
    assert "has no validated statistics" in json.loads(out)["error"]


@pytest.mark.parametrize(
    ("names", "streams", "where", "says"),
    [
        (["none"], {}, "queries[0].query", "no query is called 'none'"),
        (["self"], {}, "queries[0].query", "joins itself"),
        (["wide"], {"b": None}, "queries[0].job", "reads stream b"),
        (["wide", "wide"], {}, "queries[1].name", "is called 'wide', too"),
    ],
)
def test_what_cannot_be(stage: Stage, names: list[str], streams: Any, where: str, says: str):
    stage.see()
    given = stage.streams | streams
    stage.streams = {name: found for name, found in given.items() if found is not None}
    code, out, _ = stage(*names)
    told = json.loads(out)
    assert code == 2
    assert told["where"].endswith(where)
    assert says in told["error"]
