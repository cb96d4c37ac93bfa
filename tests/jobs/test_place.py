"""`midstream place`: files of operators, workloads and jobs, and what programs and people read."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs import operators
from jobs.documents import read
from jobs.errors import InputError
from tests.jobs.test_cli import Run, run  # noqa: F401  # a fixture

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
WRONG = yaml.safe_load(Path(__file__).with_name("wrong_operators.yaml").read_text())

SMALL = Path(__file__).with_name("operators.yaml").read_text()


def changed(text: str, replacements: dict[str, str]) -> str:
    for old, new in replacements.items():
        assert old in text
        text = text.replace(old, new, 1)
    return text


@pytest.fixture
def place(run: Run, tmp_path: Path):  # noqa: F811
    """Runs the command on a text, or on an existing file."""

    def place(text: str | Path, *options: str):
        path = text
        if isinstance(text, str):
            path = tmp_path / "ops.yaml"
            path.write_text(text)
        return run("place", str(path), *options)

    return place


# --- operator files ------------------------------------------------------------------------------


def test_json_by_hand(place):
    """Spark: s5 2000 * 1e-6; a5 1000 * 2e-6; a1 2000 * 2e-6; j1 (400 + 16,000) * 3e-6."""
    told = place(SMALL, "--json", "--strategy", "spark")
    found = told.json
    assert told.code == 0
    assert {name: one["rate_in"] for name, one in found["operators"].items()} == {
        "s5": [2000], "a5": [1000], "a1": [2000], "j1": [400, 16_000],
    }  # fmt: skip
    rates = [one["rate_out"] for one in found["operators"].values()]
    assert rates == pytest.approx([1000, 400, 16_000, 400 * 1 + 16_000 * 1])
    sizes = [one["size"] for one in found["operators"].values()]
    assert sizes == pytest.approx([300_000, 400, 400, 400])
    needs = [one["utilisation"] for one in found["fragments"]]
    assert needs == pytest.approx([0.002, 0.002, 0.004, 0.0492])
    assert found["total"] == pytest.approx(0.0572) == found["logical"]["total"]
    assert found["bottleneck"] == pytest.approx(0.0492) == found["logical"]["bottleneck"]
    assert (found["busiest"], found["feasible"], found["space"]) == ("j1", True, 16)
    assert found["placement"] == dict.fromkeys(["s5", "a5", "a1", "j1"], "spark")
    assert found["logical"]["plan"] == "j1(a5(s5(plugs)) a1(plugs))"


def test_a_part_in_the_database_by_hand(place):
    """In: 2 * 2000 tuples, out 16,400, at 2e-6; work: 2000e-7 + 1000 * 3e-7 + 2000 * 3e-7 + ..."""
    found = place(SMALL, "--json", "--strategy", "db").json
    (part,) = found["fragments"]
    assert part["operators"] == ["s5", "a5", "a1", "j1"]
    assert part["transfer_in"] == pytest.approx(0.008)
    assert part["transfer_out"] == pytest.approx(0.0328)
    assert part["statement"] == pytest.approx(1e-3 + 2e-4 + 3e-4 + 6e-4 + 16_400 * 2e-7)
    assert part["utilisation"] == pytest.approx(0.008 + 0.0328 + 0.0021 + 0.00328)
    assert found["busiest"] == "j1"
    assert set(found) == {
        "strategy", "logical", "plan", "placement", "fragments", "operators", "feasible",
        "bottleneck", "busiest", "total", "examined", "partial", "space", "cut", "seconds",
    }  # fmt: skip


def test_what_was_measured_decides(place):
    """a5 and j1 as one part were seen to need 0.0001: less than j1 alone needs on Spark."""
    cheap = changed(SMALL, {"utilisation: 0.4": "utilisation: 0.0001"})
    found = place(cheap, "--json").json
    assert found["placement"] == {"s5": "spark", "a5": "db", "a1": "spark", "j1": "db"}
    assert [one["operators"] for one in found["fragments"]] == [["s5"], ["a1"], ["a5", "j1"]]
    assert found["fragments"][2]["utilisation"] == 0.0001
    assert found["fragments"][2]["statement"] is None
    dear = changed(SMALL, {"utilisation: 0.4": "utilisation: 9.0"})
    assert place(dear, "--json").json["placement"] != found["placement"]


def test_all_strategies_side_by_side(place):
    told = place(SMALL, "--strategy", "all", "--json")
    assert [one["strategy"] for one in told.json] == ["federated", "exhaustive", "spark", "db"]
    assert [one["examined"] for one in told.json] == [7, 16, 1, 1]
    assert told.json[0]["total"] == pytest.approx(told.json[1]["total"])
    shown = place(SMALL, "--strategy", "all").out
    assert "everything" in shown
    assert "nothing" in shown


def test_nothing_feasible_is_refused_and_shown(place):
    told = place(changed(SMALL, {"rate: 2000": "rate: 2e6"}), "--json")
    assert (told.code, told.json["feasible"]) == (3, False)
    shown = place(changed(SMALL, {"rate: 2000": "rate: 2e6"}))
    assert shown.code == 3
    assert "No placement keeps up" in shown.out


def test_a_second_a_second_is_feasible(place):
    """2000 * 5e-4; a little more is not."""
    one = "streams: {s: {rate: 2000}}\noperators: [{name: o, kind: project, inputs: [s], " \
          "window: 1, cost: COST, db_cost: 1}]\ndb: {statement: 1, in: 1, out: 1}\n"  # fmt: skip
    assert place(one.replace("COST", "5e-4")).code == 0
    assert place(one.replace("COST", "5.001e-4")).code == 3
    assert place(one.replace("COST", "0")).code == 0


def test_cores_are_shared(place):
    """All of it needs 0.0572 on Spark: more than a twentieth of a CPU."""
    assert place(SMALL, "--cores", "0.05", "--strategy", "spark").code == 3
    assert place(SMALL, "--cores", "0.06", "--strategy", "spark").code == 0


@pytest.mark.parametrize("cores", ["0", "-1", "nan"])
def test_cores_must_be_some(place, cores: str):
    told = place(SMALL, "--cores", cores)
    assert told.code == 2
    assert told.err == f"midstream: --cores: found {cores}; allowed: a number above 0\n"


def test_without_feasibility_the_least_total_wins(place):
    """On Spark a bottleneck of 1.2 and nothing else; in the database 0.9 and 0.8."""
    text = """\
streams: {s: {rate: 1}}
operators:
  - {name: a, kind: select, inputs: [s], window: 1, selectivity: 1, cost: 1.2, db_cost: 0.9}
  - {name: b, kind: project, inputs: [a], cost: 0, db_cost: 9}
db: {statement: 0, in: 0.2, out: 0.2}
"""
    kept_up = changed(text, {"db_cost: 0.9": "db_cost: 0.5"})
    assert place(kept_up, "--json").json["placement"]["a"] == "db"
    dear = changed(kept_up, {"cost: 0, db_cost: 9": "cost: 0, db_cost: 9"})
    assert place(dear, "--json", "--no-feasibility").json["total"] == pytest.approx(0.9)
    told = place(changed(text, {"cost: 1.2": "cost: 1.25", "db_cost: 0.9": "db_cost: 0.55"}
                         ), "--json", "--no-feasibility")  # fmt: skip
    assert told.json["total"] == pytest.approx(0.95)
    told = place(text, "--json", "--no-feasibility")
    assert (told.code, told.json["total"], told.json["feasible"]) == (3, 1.2, False)


def test_names_are_anybodys(place):
    odd = changed(
        SMALL, {"name: s5": 'name: "sélect\'5 (\\"x\\")"', "[s5]": '["sélect\'5 (\\"x\\")"]'}
    )
    found = place(odd, "--json").json
    assert 'sélect\'5 ("x")' in found["placement"]


def test_a_cut_is_told(place):
    found = place(SMALL, "--json", "--cut", "2").json
    assert found["cut"] == [["s5", "a5"], ["a1", "j1"]]
    assert place(SMALL, "--json").json["cut"] == [["s5", "a5", "a1", "j1"]]
    assert place(SMALL, "--cut", "0").code == 2


def test_without_pruning_all_are_examined(place):
    assert place(SMALL, "--json", "--no-pruning").json["examined"] == 16


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in WRONG])
def test_wrong(tmp_path: Path, case: dict[str, Any]):
    path = tmp_path / "w.yaml"
    path.write_text(case.get("text", changed(SMALL, case.get("replace", {}))))
    with pytest.raises(InputError) as wrong:
        operators.of(read(path))
    said = [str(one).removeprefix(f"{path}:").strip() for one in wrong.value.problems]
    assert sorted(said) == sorted(case["says"])


def test_wrong_is_exit_2(place):
    told = place(changed(SMALL, {"inputs: [s5]": "inputs: [j1]"}), "--json")
    assert told.code == 2
    assert told.json["error"] == "a cycle: a5 → j1 → a5"
    assert told.json["where"].endswith("ops.yaml:4: operators[1].inputs[0]")


def test_slides_by_tuples_of_two_streams_are_no_slides(tmp_path: Path):
    path = tmp_path / "w.yaml"
    path.write_text("""\
streams: {a: {rate: 1}, b: {rate: 1}}
operators:
  - {name: j, kind: join, inputs: [a, b], window: 1, selectivity: 1, cost: 0, db_cost: 0}
  - {name: g, kind: aggregate, inputs: [j], slide_tuples: 5, groups: 1, cost: 0, db_cost: 0}
db: {statement: 0, in: 0, out: 0}
""")
    with pytest.raises(InputError, match=r"operators\[1\].slide_tuples: slides by tuples of one"):
        operators.of(read(path))


@pytest.mark.parametrize("option", ["--query", "--workload", "--plan"])
def test_an_operator_file_takes_no_query(place, option: str):
    told = place(SMALL, option, "x")
    assert told.code == 2
    assert f"{option}: " in told.err
    assert "gives its operators itself" in told.err


def test_an_unknown_strategy(place):
    told = place(SMALL, "--strategy", "federate")
    assert told.code == 2
    assert "there is federated, exhaustive, spark, db, all; did you mean federated?" in told.err


def test_what_is_too_large_to_try_all(place):
    chain = ["{name: o0, kind: project, inputs: [s], window: 1, cost: 1e-9, db_cost: 1e-9}"]
    chain += [f"{{name: o{i}, kind: project, inputs: [o{i - 1}], cost: 1e-9, db_cost: 1e-9}}"
              for i in range(1, 40)]  # fmt: skip
    text = "streams: {s: {rate: 1}}\noperators:\n" + "".join(f"  - {one}\n" for one in chain)
    text += "db: {statement: 0, in: 0, out: 0}\n"
    told = place(text, "--strategy", "exhaustive")
    assert told.code == 3
    assert "too many to try all; take the strategy federated" in told.err
    assert place(text, "--json").json["examined"] == 41
    listed = place(text, "--strategy", "all", "--json").json
    assert [one["strategy"] for one in listed] == ["federated", "spark", "db"]


def test_the_picture_shows_every_operator(place, tmp_path: Path):
    told = place(SMALL, "--svg", str(tmp_path / "a" / "p.svg"))
    picture = (tmp_path / "a" / "p.svg").read_text()
    assert told.code == 0
    assert all(f">{name}<" in picture for name in ("s5", "a5", "a1", "j1", "plugs"))
    place(SMALL, "--strategy", "all", "--svg", str(tmp_path / "all"))
    assert len(list((tmp_path / "all").iterdir())) == 4
    assert place(SMALL, "--strategy", "all", "--svg", str(tmp_path / "x.svg")).code == 2


def test_people_see_operators_and_parts(place):
    shown = place(changed(SMALL, {"utilisation: 0.4": "utilisation: 0.0001"})).out
    for text in ("Operators", "In the database, each one statement", "measured", "16 k/s"):
        assert text in shown


def test_json_files_too(run: Run, tmp_path: Path):  # noqa: F811
    path = tmp_path / "ops.json"
    path.write_text(json.dumps(yaml.safe_load(SMALL.replace("e-", ".0e-"))))
    assert run("place", str(path)).code == 0


# --- workloads and jobs --------------------------------------------------------------------------

PIPELINED = """\
window: 15
streams: {A: {rate: 20}, B: {rate: 20}, C: {rate: 50}}
joins: [{between: [A, B], selectivity: 0.02}, {between: [B, C], selectivity: 0.5}]
join_method: pipelined
unit_costs: {join: 1e-3}
db: {statement: 1e-3, executions: 2, in: 1e-5, out: 1e-6, join: 1e-4}
"""


def test_a_pipelined_workload_by_hand(place):
    """A and B first: 40 tuples/s, then 240 + 50; the other way round it is 70 and 15,020."""
    found = place(PIPELINED, "--json", "--strategy", "spark").json
    assert found["logical"]["plan"] in ("((A B) C)", "(C (A B))", "((B A) C)", "(C (B A))")
    assert found["logical"]["examined"] > 3
    assert found["operators"]["join:A+B"]["utilisation"] == pytest.approx(0.04)
    assert found["operators"]["join:A+B"]["rate_out"] == pytest.approx(2 * 20 * 0.02 * 300)
    assert found["operators"]["join:A+B"]["size"] == pytest.approx(300 * 300 * 0.02)
    assert found["operators"]["join:A+B+C"]["utilisation"] == pytest.approx(0.29)
    assert (found["bottleneck"], found["total"]) == pytest.approx((0.29, 0.33))


def test_a_pipelined_workload_in_the_database_by_hand(place):
    """Twice a second a statement; 90 tuples in; 240 * 0.5 * 750 + 50 * 0.5 * 1800 out."""
    (part,) = place(PIPELINED, "--json", "--strategy", "db").json["fragments"]
    assert part["transfer_in"] == pytest.approx(90 * 1e-5)
    assert part["statement"] == pytest.approx(2e-3 + 40e-4 + 290e-4)
    assert part["transfer_out"] == pytest.approx((90_000 + 45_000) * 1e-6)


def test_fragments_of_a_workload_name_ids(place):
    text = PIPELINED.replace(
        "join: 1e-4}",
        'join: 1e-4, fragments: [{operators: ["join:B+A"], utilisation: 0.1}]}',
    )
    told = place(text, "--json")
    assert told.code == 2
    assert "no operator is called 'join:B+A'; there is join:A+B, join:A+B+C" in told.json["error"]
    known = text.replace('"join:B+A"', '"join:A+B", "join:A+B+C"')
    found = place(known, "--json", "--strategy", "db").json
    assert (found["total"], found["fragments"][0]["transfer_in"]) == (0.1, None)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (", join: 1e-4}", "}", "6: db.join: missing; needed: seconds for a unit of work in the"),
        ("in: 1e-5, ", "", "6: db.in: missing; needed: seconds for a tuple that goes in"),
        ("statement: 1e-3", "statement: -1", "6: db.statement: found -1; allowed: a number of"),
        ("db: {", "bd: {", "6: bd: unknown field; allowed: window"),
    ],
)
def test_a_wrong_database(place, old: str, new: str, says: str):
    told = place(changed(PIPELINED, {old: new}))
    assert told.code == 2
    assert says in told.err


def test_without_a_database_there_is_nothing_to_place_in(run: Run):  # noqa: F811
    told = run("place", str(EXAMPLES / "set-1.yaml"))
    assert told.code == 2
    assert "db: missing; needed: what the database costs" in told.err


def test_a_workload_without_operators(place):
    told = place("streams: {A: {rate: 1}}\njoin_method: batch\n")
    assert told.code == 2
    assert "has no select, join or group-by to place" in told.err


def test_the_budget_of_a_workload_is_shared(place):
    """All of it needs 0.33 on Spark."""
    for cpu, code in (("0.3", 3), ("0.35", 0)):
        told = place(f"{PIPELINED}budget: {{cpu: {cpu}}}\n", "--strategy", "spark")
        assert told.code == code
    assert place(f"{PIPELINED}budget: {{cpu: 0.3}}\n", "--strategy", "spark", "--cores", "1"
                 ).code == 0  # fmt: skip


def test_a_job(run: Run):  # noqa: F811
    """Of many queries one is to be named; its workload is assumed, its costs are shipped."""
    airline = str(EXAMPLES / "airline.yaml")
    assert run("place", airline).code == 2
    told = run("place", airline, "--query", "terminal", "--json")
    found = told.json
    assert set(found["placement"]) >= {"select:f", "select:f#2", "join:b+c+f+w"}
    assert found["space"] == 2 ** len(found["placement"])
    assert told.code == (0 if found["feasible"] else 3)


def test_a_job_with_a_workload(run: Run, tmp_path: Path):  # noqa: F811
    path = tmp_path / "w.yaml"
    path.write_text(
        "streams: {f: {rate: 5}, b: {rate: 5}, c: {rate: 5}}\njoin_method: batch\n"
        "joins: [{between: [f, b], selectivity: 0.01}, {between: [f, c], selectivity: 0.01}]\n"
    )
    told = run("place", str(EXAMPLES / "airline.yaml"), "--query", "gates", "--workload",
               str(path), "--json")  # fmt: skip
    assert told.code == 0
    assert {"join:b+c+f", "join:b+f"} & set(told.json["placement"]) >= {"join:b+c+f"}
    assert sorted(told.json["operators"]) == sorted(told.json["placement"])


def test_a_given_plan_holds_its_places(place):
    """`@db` and `@spark` are kept by every strategy, whatever they cost."""
    plan = "((B C)@db A)@spark"
    for strategy in ("federated", "exhaustive", "spark", "db"):
        found = place(PIPELINED, "--plan", plan, "--strategy", strategy, "--json").json
        assert found["placement"] == {"join:B+C": "db", "join:A+B+C": "spark"}
        assert found["plan"] == "((B C)@db A)"
        assert (found["space"], found["logical"]["examined"]) == (1, 1)
    told = place(PIPELINED, "--plan", "((B C)@moon A)")
    assert told.code == 2
    assert "there is no place 'moon'; allowed: spark, db" in told.err


def test_the_chosen_plan_can_be_explained(place, run: Run, tmp_path: Path):  # noqa: F811
    """Its notation is a plan's, and `explain` calls its operators the same."""
    found = place(PIPELINED, "--json").json
    told = run("explain", str(tmp_path / "ops.yaml"), "--plan", found["plan"], "--json").json
    nodes, places = [told["root"]], {}
    while nodes:
        node = nodes.pop()
        places[node["id"]] = node["place"]
        nodes += node.get("inputs", [])
    assert found["placement"].items() <= places.items()
