"""`midstream plan-network`: what it prints, keeps, refuses and draws."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from deltalake import DeltaTable

from jobs.cli import run
from optimizer.network.placement import NETWORK_PLACEMENTS

NETWORK: dict[str, Any] = {
    "sites": ["n1", "n2", "n3", "n4", "n5"],
    "links": [
        {"between": ["n1", "n2"], "latency": 3.0}, {"between": ["n2", "n3"], "latency": 2.0},
        {"between": ["n3", "n4"], "latency": 5.0}, {"between": ["n4", "n5"], "latency": 1.0},
        {"between": ["n1", "n5"], "latency": 9.0},
    ],
}  # fmt: skip
QUERIES: dict[str, Any] = {
    "window": 10,
    "streams": {
        "A": {"rate": 10, "width": 100, "site": "n3"}, "B": {"rate": 5, "site": "n1"},
        "C": {"rate": 2, "site": "n5"},
    },
    "joins": [
        {"between": ["A", "B"], "selectivity": 0.01}, {"between": ["B", "C"], "selectivity": 0.02},
    ],
    "queries": [
        {"name": "q1", "streams": ["A", "B"], "sink": "n1", "columns": {"A": 40},
         "where": [{"stream": "A", "predicate": "num = 7", "selectivity": 0.1}]},
        {"name": "q2", "streams": ["A", "B", "C"], "sink": "n4"},
    ],
}  # fmt: skip


class Files:
    """Both files in a directory, and the command over them."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]):
        self.path, self.capsys = path, capsys
        self.network, self.queries = NETWORK, QUERIES

    def __call__(self, *options: str) -> tuple[int, str, str]:
        for name in ("network", "queries"):
            (self.path / f"{name}.yaml").write_text(yaml.safe_dump(getattr(self, name)))
        files = [str(self.path / "network.yaml"), str(self.path / "queries.yaml")]
        self.capsys.readouterr()
        code = run(["plan-network", *files, *options])
        return code, *self.capsys.readouterr()

    def json(self, *options: str) -> Any:
        code, out, err = self(*options, "--json")
        assert (code, err) == (0, ""), out
        return json.loads(out)


@pytest.fixture
def files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Files:
    return Files(tmp_path, capsys)


def test_fields_and_figures(files: Files):
    """By hand: 40 bytes of 1 in 10 of A go 5 to B; then A costs 960 more, from n3 to n1."""
    found = files.json("--strategy", "exhaustive")
    assert {"strategy", "sites", "max_cs", "height", "setup_seconds", "queries", "total_usage",
            "total_optimum", "joins_deployed", "filters_deployed"} <= found.keys()  # fmt: skip
    first, second = found["queries"]
    assert (first["plan"], first["usage"], first["over_optimum"]) == ("(A B)", 200.0, 0.0)
    (operator,) = first["operators"]
    assert operator == {
        "streams": ["A", "B"], "inputs": [["A"], ["B"]], "site": "n1",
        "where": [{"stream": "A", "predicate": "num = 7"}], "bytes_per_s": pytest.approx(140),
    }  # fmt: skip
    assert first["filters"] == [{"stream": "A", "site": "n3", "predicate": "num = 7"}]
    (flow,) = first["flows"]
    assert flow == {
        "streams": ["A"], "from": "n3", "to": "n1", "path": ["n3", "n2", "n1"],
        "bytes_per_s": 40.0, "usage": 200.0,
    }  # fmt: skip
    assert (first["space"], first["examined"]) == (5, 5)
    for query in (first, second):
        price = sum(reused["price"] for reused in query["reused"])
        assert query["usage"] == pytest.approx(price + sum(f["usage"] for f in query["flows"]))
    assert found["total_usage"] == pytest.approx(first["usage"] + second["usage"])
    assert found["total_optimum"] == pytest.approx(first["optimum"] + second["optimum"])


def test_a_flow_between_queries_at_one_site_is_listed(files: Files):
    files.queries = QUERIES | {"queries": [
        {"name": "q1", "streams": ["A", "B"], "sink": "n1"},
        {"name": "q2", "streams": ["A", "B"], "sink": "n1"},
    ]}  # fmt: skip
    _, second = files.json("--strategy", "exhaustive")["queries"]
    assert second["operators"] == []
    (flow,) = second["flows"]
    assert (flow["from"], flow["to"], flow["path"], flow["usage"]) == ("n1", "n1", ["n1"], 0.0)
    assert [r["query"] for r in second["reused"]] == ["q1"]


def test_all_is_a_list_and_one_is_not(files: Files):
    found = files.json("--strategy", "all")
    assert [one["strategy"] for one in found] == list(NETWORK_PLACEMENTS)
    exact = found[0]["total_usage"]
    assert all(one["queries"][0]["usage"] >= found[0]["queries"][0]["usage"] for one in found)
    assert isinstance(files.json(), dict)
    assert exact > 0
    _, out, _ = files("--strategy", "all")
    assert all(name in out for name in NETWORK_PLACEMENTS)


def test_hierarchy(files: Files):
    found = files.json("--hierarchy", "--max-cs", "2")
    assert found.keys() == {"levels", "d", "height", "max_cs"}
    assert sorted(n for c in found["levels"][0] for n in c["members"]) == NETWORK["sites"]
    assert len(found["levels"]) == len(found["d"]) == found["height"]
    assert max(len(c["members"]) for level in found["levels"] for c in level) <= 2
    code, out, _ = files("--hierarchy")
    assert code == 0
    assert "Level 1" in out


def test_a_state_is_gone_on_from(files: Files):
    state = ["--strategy", "exhaustive", "--state", str(files.path / "state")]
    together = files.json("--strategy", "exhaustive")
    files.queries = QUERIES | {"queries": QUERIES["queries"][:1]}
    assert [q["name"] for q in files.json(*state)["queries"]] == ["q1"]
    files.queries = QUERIES
    found = files.json(*state)
    assert [q["name"] for q in found["queries"]] == ["q2"]
    assert found["deployed"] == ["q1", "q2"]
    for field in ("total_usage", "total_optimum", "joins_deployed", "filters_deployed"):
        assert found[field] == pytest.approx(together[field])
    assert files.json(*state)["queries"] == []
    rows = DeltaTable(files.path / "state" / "advertisements").to_pyarrow_table().to_pylist()
    assert [r["streams"] for r in rows if r["kind"] == "base"] == [["A"], ["B"], ["C"]]
    assert {r["query"] for r in rows if r["kind"] == "sink"} == {"q1", "q2"}


def test_another_query_of_a_running_ones_name_is_refused(files: Files):
    state = ["--state", str(files.path / "state")]
    files.json(*state)
    changed = QUERIES["queries"][0] | {"sink": "n2"}
    files.queries = QUERIES | {"queries": [changed]}
    code, _, err = files(*state)
    assert code == 2
    assert "queries[0].name: another query called 'q1' runs already" in err


def test_a_site_of_the_state_that_is_gone_is_planned_around(files: Files):
    files.queries = QUERIES | {"streams": QUERIES["streams"] | {"A": {"rate": 10, "site": "n2"}}}
    state = ["--strategy", "exhaustive", "--state", str(files.path / "state")]
    sites = {o["site"] for q in files.json(*state)["queries"] for o in q["operators"]}
    gone = next(iter(sites - {"n1", "n2", "n4", "n5"}), None)
    links = [*NETWORK["links"], {"between": ["n2", "n4"], "latency": 7.0}]
    files.network = {
        "sites": ["n1", "n2", "n4", "n5"], "links": [k for k in links if "n3" not in k["between"]],
    }  # fmt: skip
    found = files.json(*state)
    again = found["events"][0]["replanned"] if gone else []
    assert [q["name"] for q in found["queries"]] == again


def test_events_are_carried_out_in_their_order(files: Files):
    files.queries = QUERIES | {"events": [
        {"deploy": "q2"},
        {"join": {"site": "n9", "links": [{"between": ["n9", "n1"], "latency": 1.0}]}},
        {"deploy": "q1"}, {"undeploy": "q2"}, {"leave": "n9"},
    ]}  # fmt: skip
    found = files.json("--strategy", "exhaustive")
    assert [next(iter(e)) for e in found["events"]] == [
        "deploy", "join", "deploy", "undeploy", "leave",
    ]  # fmt: skip
    assert (found["deployed"], found["sites"]) == (["q1"], 5)
    assert {q["name"]: q["deployed"] for q in found["queries"]} == {"q2": False, "q1": True}


@pytest.mark.parametrize("strategy", NETWORK_PLACEMENTS)
def test_what_stood_on_a_site_that_leaves_is_planned_again(files: Files, strategy: str):
    """m is where both streams meet; q2 reads what q1 makes there."""
    names = ["a", "b", "m", "s", "o"]
    links = [["a", "m"], ["b", "m"], ["m", "s"]]
    around = [["a", "o"], ["b", "o"], ["o", "s"]]
    files.network = {"sites": names, "links": [
        *({"between": two, "latency": 1.0} for two in links),
        *({"between": two, "latency": 2.0} for two in around),
    ]}  # fmt: skip
    files.queries = {
        "window": 1, "streams": {"A": {"rate": 9, "site": "a"}, "B": {"rate": 9, "site": "b"}},
        "joins": [{"between": ["A", "B"], "selectivity": 0.01}],
        "queries": [{"name": n, "streams": ["A", "B"], "sink": "s"} for n in ("q1", "q2")],
        "events": [{"deploy": "q1"}, {"deploy": "q2"}, {"undeploy": "q1"}, {"deploy": "q1"},
                   {"leave": "m"}],
    }  # fmt: skip
    found = files.json("--strategy", strategy)
    at = {o["site"] for q in found["queries"] for o in q["operators"]}
    assert "m" not in at
    assert found["joins_deployed"] == 1
    assert found["total_usage"] > 0


def test_a_sites_load_is_paid_for_what_is_read_there(files: Files):
    """A costs 200 on its way to n1, and 40 and 500 bytes a second are read there."""
    sites: dict[str, Any] = dict.fromkeys(NETWORK["sites"])
    files.network = NETWORK | {"sites": sites | {"n1": {"load": 1}}}
    files.queries = QUERIES | {"queries": QUERIES["queries"][:1]}
    (query,) = files.json("--strategy", "exhaustive")["queries"]
    assert [o["site"] for o in query["operators"]] == ["n1"]
    assert query["usage"] == pytest.approx(40 * 5 + (40 + 500) * 1)


def test_distances_in_costs(files: Files):
    links = [link | {"cost": 2 * link["latency"]} for link in NETWORK["links"]]
    files.network = NETWORK | {"links": links, "measure": "cost"}
    files.queries = QUERIES | {"queries": QUERIES["queries"][:1]}
    assert files.json()["queries"][0]["usage"] == pytest.approx(2 * 200)


WRONG: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("unknown site", {"links": [{"between": ["n1", "n7"], "latency": 1}]}, {}, "links[0].between"),
    ("negative", {"links": [{"between": ["n1", "n2"], "latency": -1}]}, {}, "links[0].latency"),
    ("no number", {"links": [{"between": ["n1", "n2"], "latency": float("nan")}]}, {}, "latency"),
    ("itself", {"links": [{"between": ["n1", "n1"], "latency": 1}]}, {}, "links[0].between"),
    ("twice", {"sites": ["n1", "n1"]}, {}, "sites"),
    ("none", {"sites": []}, {}, "sites"),
    ("field", {"sitez": []}, {}, "sitez"),
    ("capacity", {"sites": {"n1": {"capacity": -1}}, "links": []}, {}, "sites.n1.capacity"),
    ("stream nowhere", {}, {"streams": QUERIES["streams"] | {"A": {"rate": 1, "site": "x"}}},
     "streams.A.site"),
    ("sink nowhere", {}, {"queries": [{"name": "q", "streams": ["A"], "sink": "x"}]},
     "queries[0].sink"),
    ("out of reach", {"sites": [*NETWORK["sites"], "x"]},
     {"queries": [{"name": "q", "streams": ["A"], "sink": "x"}]}, "queries[0].sink"),
    ("one name", {}, {"queries": [QUERIES["queries"][0]] * 2}, "queries[1].name"),
    ("stream twice", {}, {"queries": [{"name": "q", "streams": ["A", "A"], "sink": "n1"}]},
     "queries[0].streams"),
    ("no stream", {}, {"queries": [{"name": "q", "streams": [], "sink": "n1"}]},
     "queries[0].streams"),
    ("other's stream", {}, {"queries": [{"name": "q", "streams": ["A"], "sink": "n1", "where": [
        {"stream": "B", "predicate": "x = 1", "selectivity": 1}]}]}, "queries[0].where[0].stream"),
    ("share", {}, {"joins": [{"between": ["A", "B"], "selectivity": 2}]}, "joins[0].selectivity"),
    ("joined twice", {}, {"joins": [QUERIES["joins"][0]] * 2}, "joins[1].between"),
    ("beyond", {}, {"window": 1e9, "streams": QUERIES["streams"] | {
        "A": {"rate": 1e300, "site": "n1"}}}, "queries[0]"),
    ("no window", {}, {"window": None}, "window"),
    ("deploy unknown", {}, {"events": [{"deploy": "q9"}]}, "events[0].deploy"),
    ("undeploy unknown", {}, {"events": [{"undeploy": "q1"}]}, "events[0].undeploy"),
    ("leave unknown", {}, {"events": [{"leave": "n9"}]}, "events[0].leave"),
    ("leaves a sink", {}, {"events": [{"deploy": "q1"}, {"leave": "n1"}]}, "events[1].leave"),
    ("there already", {}, {"events": [{"join": {"site": "n1", "links": [
        {"between": ["n1", "n2"], "latency": 1}]}}]}, "events[0].join.site"),
    ("twice deployed", {}, {"events": [{"deploy": "q1"}] * 2}, "events[1].deploy"),
    ("two events", {}, {"events": [{"deploy": "q1", "leave": "n5"}]}, "events[0]"),
]  # fmt: skip


@pytest.mark.parametrize(("network", "queries", "where"), [one[1:] for one in WRONG],
                         ids=[one[0] for one in WRONG])  # fmt: skip
def test_wrong_files(files: Files, network: Any, queries: Any, where: str):
    files.network, files.queries = NETWORK | network, QUERIES | queries
    code, out, err = files()
    assert (code, out) == (2, ""), err
    assert f": {where}" in err or f".{where}" in err
    assert "defect" not in err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--strategy", "best"], "--strategy: no strategy is called 'best'"),
        (["--max-cs", "1"], "--max-cs: found '1'"),
        (["--max-cs", "many"], "--max-cs: found 'many'"),
        (["--strategy", "all", "--state", "s"], "--state: several strategies"),
        (["--strategy", "all", "--svg", "x.svg"], "--svg: all strategies make several"),
        (["--generate", "ring"], "--generate: no generator is called 'ring'"),
    ],
)
def test_wrong_options(files: Files, options: list[str], says: str):
    code, out, err = files(*options)
    assert (code, out) == (2, "")
    assert says in err


def test_no_site_left_is_refused(files: Files):
    files.network = NETWORK | {"sites": {name: {"capacity": 0} for name in NETWORK["sites"]}}
    for strategy in NETWORK_PLACEMENTS:
        code, out, err = files("--strategy", strategy)
        assert (code, out) == (3, ""), err
        assert "no site is left that may take the operators" in err
    files.queries = QUERIES | {"queries": [{"name": "q", "streams": ["A"], "sink": "n1"}]}
    assert files.json()["queries"][0]["operators"] == []


def test_rates_of_zero_and_names_of_any_kind(files: Files):
    names = ["köln", "x'y\"z", "a b", "<&>"]
    files.network = {"sites": names, "links": [
        {"between": [a, b], "latency": 0} for a, b in pairwise(names)
    ]}  # fmt: skip
    files.queries = {
        "window": "5 minutes",
        "streams": {"CHECK-INS": {"rate": 0, "site": "köln"}, "\u98db": {"rate": 0, "site": "a b"}},
        "queries": [{"name": "<q>", "streams": ["CHECK-INS", "\u98db"], "sink": "<&>"}],
    }
    for one in files.json("--strategy", "all", "--svg", str(files.path / "pictures")):
        assert (one["total_usage"], one["queries"][0]["over_optimum"]) == (0.0, 0.0)
    for drawn in (files.path / "pictures").iterdir():
        ET.fromstring(drawn.read_text(encoding="utf-8"))


def test_generated_networks_are_read_again(files: Files, capsys: pytest.CaptureFixture[str]):
    assert run(["plan-network", "--generate", "transit-stub", "--sites", "128", "--seed", "3"]) == 0
    text = capsys.readouterr().out
    files.network = yaml.safe_load(text)
    assert len(files.network["sites"]) == 132
    assert sum(name.startswith("s") for name in files.network["sites"]) == 128
    streams = {name: {"rate": 1, "site": f"s{i}"} for i, name in enumerate("ABC", 1)}
    files.queries = QUERIES | {"streams": streams, "queries": [
        {"name": "q", "streams": ["A", "B", "C"], "sink": "s99"}]}  # fmt: skip
    assert files.json()["sites"] == 132
    assert run(["plan-network", "--generate", "transit-stub", "--sites", "128", "--seed", "3"]) == 0
    assert capsys.readouterr().out == text


def test_the_picture_shows_sites_flows_and_what_stands_where(files: Files):
    assert files("--svg", str(files.path / "n.svg"))[0] == 0
    drawn = (files.path / "n.svg").read_text(encoding="utf-8")
    ET.fromstring(drawn)
    for text in ("n3 → n2: ", "stream A", "operator of q1", "sink of q2"):
        assert text in drawn


def test_one_file_for_several_pictures_is_refused_before_anything_is_read(
    capsys: pytest.CaptureFixture[str],
):
    words = ["plan-network", "none.yaml", "neither.yaml", "--strategy", "all", "--svg", "x.svg"]
    assert run([*words, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["where"] == "--svg"
