"""`midstream rate`: its JSON, what people see, the picture, and what is refused."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from jobs import cli, show

THREE = """\
window: none
streams: {A: {rate: 50, tuples: 5000}, B: {rate: 500, tuples: 10000}, C: {rate: 100, tuples: 20000}}
joins:
  - {between: [A, B], selectivity: 2e-3}
  - {between: [A, C], selectivity: 5e-3, cost: 0.005}
unit_costs: {move: 0.00376}
"""


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(show.out, "_width", 160)


@pytest.fixture
def three(tmp_path: Path) -> Path:
    path = tmp_path / "three.yaml"
    path.write_text(THREE)
    return path


def told(capsys, *arguments) -> tuple[int, str, str]:
    code = cli.run(["rate", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def as_json(capsys, *arguments):
    code, out, _ = told(capsys, *arguments, "--json")
    assert code == 0
    return json.loads(out)


def test_json_by(capsys, three):
    found = as_json(capsys, three, "--strategy", "all", "--by", "20 seconds")
    assert list(found) == [
        "objective", "model", "servers", "plans", "chosen", "crossings", "left_out", "examined",
        "seconds",
    ]  # fmt: skip
    assert found["objective"] == {"by": 20.0}
    assert (found["model"], found["servers"]) == ("exact", "each")
    assert [p["strategy"] for p in found["plans"]] == [
        "rate-max", "time-min", "exact", "cardinality",
    ]  # fmt: skip
    assert found["chosen"] == "((A C) B)"
    exact = found["plans"][2]
    assert exact["results_by"] == pytest.approx(8_989, rel=1e-3)
    assert "seconds_to" not in exact
    assert exact["saturated"][0] == {"operator": "(A C)", "from": 0.0}
    assert exact["curve"][0] == [0.0, 0.0]
    assert exact["curve"][-1] == [20.0, pytest.approx(exact["results_by"], rel=1e-3)]
    assert exact["selects"] == {}
    assert found["examined"] > 0
    crossing = next(c for c in found["crossings"] if c["plans"] == [0, 3])
    assert crossing["results"] == pytest.approx(2_000, rel=0.02)
    assert crossing["seconds"] == pytest.approx(11.2, abs=0.1)


def test_json_first_with_plans_and_simulation(capsys, three):
    found = as_json(
        capsys, three, "--plan", "((A B) C)", "--plan", "((A C) B)", "--first", 2500,
        "--simulate", 3, "--seed", 1,
    )  # fmt: skip
    assert found["objective"] == {"first": 2500.0}
    assert [p["strategy"] for p in found["plans"]] == ["given", "given"]
    for one in found["plans"]:
        assert one["simulated"]["runs"] == 3
        assert one["simulated"]["seconds_to"] == pytest.approx(one["seconds_to"], rel=0.1)
        assert one["simulated"]["spread"] >= 0
    again = as_json(capsys, three, "--plan", "((A B) C)", "--first", 2500, "--simulate", 3,
                    "--seed", 1)  # fmt: skip
    assert again["plans"][0]["simulated"] == found["plans"][0]["simulated"]


def test_several_objectives_are_a_list(capsys, three):
    found = as_json(capsys, three, "--strategy", "exact", "--by", "5", "--first", "100")
    assert [one["objective"] for one in found] == [{"by": 5.0}, {"first": 100.0}]


def test_never(capsys, three):
    found = as_json(capsys, three, "--first", 10**12)
    assert {one["seconds_to"] for one in found["plans"]} == {None}
    assert found["chosen"] is None
    out = told(capsys, three, "--first", 10**12)[1]
    assert "never" in out
    assert "no plan ever makes so many" in out
    assert "→" not in out


def test_figure_1_selects_in_their_order(capsys, tmp_path):
    path = tmp_path / "one.yaml"
    path.write_text(
        "window: none\nstreams: {I: {rate: 500, selects: [{name: slow, selectivity: 0.1,"
        " cost: 0.02}, {name: free, selectivity: 0.1}]}}\n"
    )
    (one,) = as_json(capsys, path, "--plan", "I", "--by", "10 seconds")["plans"]
    assert one["results_by"] == pytest.approx(50)
    assert [s["name"] for s in one["selects"]["I"]] == ["free", "slow"]
    assert one["saturated"] == []


def test_one_server(capsys, three):
    each, one = (
        as_json(capsys, three, "--plan", "((A C) B)", "--by", 20, "--servers", servers)
        for servers in ("each", "one")
    )
    assert one["plans"][0]["results_by"] < each["plans"][0]["results_by"]
    assert one["plans"][0]["saturated"][0]["operator"] == "the server"


def test_printed(capsys, three):
    found = as_json(capsys, three, "--plan", "((A B) C)", "--by", 1, "--model", "printed")
    assert found["model"] == "printed"


def test_people_and_the_picture(capsys, three, tmp_path):
    picture = tmp_path / "curves" / "a.svg"
    code, out, _ = told(capsys, three, "--by", "20 seconds", "--svg", picture, "--simulate", 2)
    assert code == 0
    assert "cross at 1,998 results, after 11.2 s" in out
    assert "→" in out
    assert "((A C) B)" in out
    assert "Results over time" in out
    root = ET.parse(picture).getroot()
    assert root.tag.endswith("svg")
    texts = [element.text or "" for element in root.iter() if element.tag.endswith("text")]
    assert any("2 k at 11.2 s" in text for text in texts)


def test_cardinality_is_left_out_of_all_where_a_stream_has_no_end(capsys, three):
    three.write_text(THREE.replace(", tuples: 5000", ""))
    found = as_json(capsys, three, "--strategy", "all", "--by", 5)
    assert found["left_out"] == {"cardinality": "stream A has no end, and no cardinality"}
    assert len(found["plans"]) == 3


WRONG = [
    (("--by", "-1 seconds"), "--by: found '-1 seconds'; allowed: a time above zero"),
    (("--by", "0"), "--by: found '0'; allowed"),
    (("--by", "inf"), "--by: found 'inf'; allowed"),
    (("--first", "0"), "--first: found '0'; allowed: a whole number"),
    (("--first", "2.5"), "--first: found '2.5'; allowed"),
    ((), "--by or --first: missing"),
    (("--by", "5", "--plan", "(A D)"), "--plan: the query has no stream D"),
    (("--by", "5", "--plan", "(A B)"), "--plan: (A B) leaves out C"),
    (("--by", "5", "--plan", "(A B C)"), "--plan: (A B C) joins 3 inputs"),
    (("--by", "5", "--plan", "((A B)@db C)"), "--plan:"),
    (("--by", "5", "--plan", "((A B) C"), "--plan: a parenthesis is not closed"),
    (("--by", "5", "--strategy", "two-layer"), "--strategy: no strategy is called 'two-layer'"),
    (("--by", "5", "--model", "best"), "--model: found 'best'; allowed: exact or printed"),
    (("--by", "5", "--servers", "two"), "--servers: found 'two'; allowed: each or one"),
    (("--by", "5", "--model", "printed", "--servers", "one"), "--servers: the printed model"),
    (("--by", "5", "--first", "5", "--svg", "x.svg"), "--svg: one picture is of one objective"),
]


@pytest.mark.parametrize(("options", "says"), WRONG, ids=[" ".join(o) for o, _ in WRONG])
def test_wrong_options(capsys, three, options, says):
    code, _, err = told(capsys, three, *options)
    assert code == 2
    assert err.startswith(f"midstream: {says}")
    assert err.count("\n") == 1


FIELDS = [
    ("tuples: 5000", "tuples: -1", "streams.A.tuples: found -1"),
    ("rate: 50,", "rate: -50,", "streams.A.rate: found -50"),
    ("move: 0.00376", "move: -1", "unit_costs.move: found -1"),
    ("move: 0.00376", "comp: -1", "unit_costs.comp: found -1"),
    ("move: 0.00376", "hash: x", "unit_costs.hash: found 'x'"),
    ("cost: 0.005", "cost: -1", "joins[1].cost: found -1"),
    ("window: none", "window: never", "window: found 'never'; allowed: seconds, or a length"),
    ("window: none", "", "no window bounds A against B"),
    ("window: none", "window: none\nbounds: [{between: [A, B], seconds: [0, 1]}]",
     "bounds: window is none already"),
    ("tuples: 5000", "window: 5", "streams.A.window: window is none already"),
    ("tuples: 5000", "selects: [{name: x, selectivity: 2}]", "streams.A.selects[0].selectivity"),
    ("tuples: 5000", "selects: [{selectivity: 1}]", "streams.A.selects[0].name: missing"),
    ("tuples: 5000", "selects: [{name: x, selectivity: 1}, {name: x, selectivity: 1}]",
     "streams.A.selects[1].name: x is there already"),
    ("tuples: 5000", "selects: [{name: x, selectivity: 1, cost: -2}]",
     "streams.A.selects[0].cost: found -2"),
    ("window: none", "window: none\njoin_method: batch", "join_method: found batch"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "says"), FIELDS, ids=[says for _, _, says in FIELDS])
def test_wrong_fields(capsys, three, right, wrong, says):
    three.write_text(THREE.replace(right, wrong))
    code, _, err = told(capsys, three, "--by", 5)
    assert code == 2
    assert says in err
    assert err.count("\n") == 1


def test_cardinality_needs_an_end(capsys, three):
    three.write_text(THREE.replace(", tuples: 10000", ""))
    code, _, err = told(capsys, three, "--by", 5, "--strategy", "cardinality")
    assert code == 2
    assert f"{three}:2: streams.B.tuples: missing" in err


def test_other_commands_refuse_a_window_of_none(capsys, three):
    assert cli.run(["optimize", "--workload", str(three)]) == 2
    assert "window: found 'none'; allowed: seconds, or a length of time" in capsys.readouterr().err


def test_other_commands_take_the_other_fields(capsys, three):
    three.write_text(
        THREE.replace("window: none", "window: 5").replace(
            "tuples: 5000", "tuples: 5000, selects: [{name: x, selectivity: 0.5, cost: 1}]"
        )
    )
    assert cli.run(["explain", str(three), "--json"]) == 0
    assert cli.run(["optimize", "--workload", str(three), "--strategy", "rate-max"]) == 2
    assert "rate-max needs an objective" in capsys.readouterr().err
