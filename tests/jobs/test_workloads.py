"""Workload files: the queries and loads they mean, and what is said about those that are wrong."""

import json
from math import inf
from pathlib import Path
from re import escape
from typing import Any

import pytest
import yaml

from jobs.errors import InputError
from jobs.specs import load as load_job
from jobs.workloads import load, to_json
from optimizer.cost.dual import Cost
from optimizer.keys import Shares
from optimizer.memo import Memo
from optimizer.plan import Leaf, build, parse
from optimizer.query import Query
from optimizer.window import MICROSECONDS
from optimizer.workload import Budget, Method, UnitCosts, Workload
from tests.optimizer.builders import joined

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
WRONG = yaml.safe_load(Path(__file__).with_name("wrong_workloads.yaml").read_text())

SMALL = """\
window: 15
streams: {A: {rate: 20}, B: {rate: 20}, C: {rate: 50}}
joins: [{between: [A, B], selectivity: 0.02}, {between: [B, C], selectivity: 0.5}]
"""


def loaded(directory: Path, text: str, query: Query | None = None):
    path = directory / "w.yaml"
    path.write_text(text)
    return load(path, query)


def seconds(query: Query, newer: str, older: str) -> float:
    return query.bounds[newer, older] / MICROSECONDS


# --- right ---------------------------------------------------------------------------------------


def test_a_query_is_made_up(tmp_path: Path):
    query, workload, budget = loaded(tmp_path, SMALL)
    assert query.aliases == ("A", "B", "C")
    assert {frozenset("AB"), frozenset("BC")} == set(query.graph.edges)
    assert all(predicate.sides for predicate in query.predicates)
    assert seconds(query, "A", "C") == seconds(query, "C", "A") == 15
    assert workload.streams["C"].rate == 50
    assert workload.joins[frozenset("AB")] == 0.02
    assert (workload.method, workload.unit_costs) == (Method.HASH, UnitCosts())
    assert budget == Budget()
    assert not workload.assumed


def test_widths_stay_as_given_through_every_join(tmp_path: Path):
    text = SMALL.replace("A: {rate: 20}", "A: {rate: 20, width: 60}")
    query, workload, _ = loaded(tmp_path, text)
    memo = Memo(query, workload)
    assert memo.leaf("A").estimate.width == pytest.approx(60)
    ab = memo.join([memo.leaf("A"), memo.leaf("B")])
    assert ab.estimate.width == pytest.approx(160)


def test_everything(tmp_path: Path):
    text = SMALL + (
        "join_method: batch\nbatch: 5\nunit_costs: {join: 1e-6, statement: 2e-3}\n"
        "budget: {cpu: 0.5, memory: 600 tuples}\n"
    )
    _, workload, budget = loaded(tmp_path, text)
    assert (workload.method, workload.batch) == (Method.BATCH, 5)
    assert workload.unit_costs == UnitCosts(join=1e-6, statement=2e-3)
    assert budget == Budget(cpu=0.5, tuples=600)


@pytest.mark.parametrize(
    ("written", "budget"),
    [
        ("{bytes: 30MB}", Budget(bytes=30e6)),
        ("{memory: 30MB}", Budget(bytes=30e6)),
        ("{memory: 1 tuple}", Budget(tuples=1)),
        ("{cpu: 2, bytes: 1.5KiB}", Budget(cpu=2, bytes=1536)),
        ("{}", Budget(inf, inf, inf)),
    ],
)
def test_budgets(tmp_path: Path, written: str, budget: Budget):
    assert loaded(tmp_path, SMALL + f"budget: {written}\n")[2] == budget


def test_bounds_are_the_second_time_less_the_first(tmp_path: Path):
    text = SMALL.replace("window: 15", "bounds:\n- {between: [A, B], seconds: [-60, 300]}\n"
                         "- {between: [B, C], seconds: [0, 10]}")  # fmt: skip
    query, _, _ = loaded(tmp_path, text)
    assert (seconds(query, "B", "A"), seconds(query, "A", "B")) == (300, 60)
    assert (seconds(query, "C", "B"), seconds(query, "B", "C")) == (10, 0)
    assert (seconds(query, "C", "A"), seconds(query, "A", "C")) == (310, 60)  # the shortest paths


def test_bounds_and_a_window_both_hold(tmp_path: Path):
    text = SMALL + "bounds: [{between: [A, B], seconds: [-60, 5]}]\n"
    query, _, _ = loaded(tmp_path, text)
    assert (seconds(query, "B", "A"), seconds(query, "A", "B")) == (5, 15)


def test_windows_of_streams_are_ranges(tmp_path: Path):
    text = (
        "streams: {A: {rate: 1, window: 5 minutes}, B: {rate: 1, window: 60}}\n"
        "joins: [{between: [A, B], selectivity: 0.1}]\n"
    )
    query, _, _ = loaded(tmp_path, text)
    assert (seconds(query, "B", "A"), seconds(query, "A", "B")) == (300, 60)


def test_selects_thin_a_stream_out(tmp_path: Path):
    query, workload, _ = loaded(
        tmp_path, SMALL.replace("C: {rate: 50}", "C: {rate: 50, select: 0.1}")
    )
    memo = Memo(query, workload)
    assert memo.leaf("C").estimate.rate == pytest.approx(5)
    same = loaded(tmp_path, SMALL + "selects: {C: 0.1}\n")
    assert same[:2] == (query, workload)


def test_a_group_by(tmp_path: Path):
    text = SMALL + "group_by: {groups: 100, combine: {B: 5}, by: C, size: 60, slide: 20}\n"
    query, workload, _ = loaded(tmp_path, text)
    assert query.grouping is not None
    assert [str(key) for key in query.grouping.keys] == ["C.grouped AS grouped"]
    assert (query.grouping.size, query.grouping.slide) == (60 * MICROSECONDS, 20 * MICROSECONDS)
    assert (workload.groups, workload.combine) == (100, {"B": 5})
    plan = build(query, parse("((A [B]) C)"))
    assert str(plan) == "((A [B]) C)"
    combined = Memo(query, workload).leaf("B", combined=True)
    assert combined.tree == Leaf("B", combined=True)
    assert combined.estimate.rate == pytest.approx(5)


def test_for_the_query_of_a_job(tmp_path: Path):
    query = load_job(EXAMPLES / "airline.yaml").query("terminal")
    same, workload, budget = load(EXAMPLES / "terminal.yaml", query)
    assert same is query
    assert workload.selectivity("f", "w") == 0.0022
    assert budget == Budget(cpu=0.049, bytes=4.5e6)
    by_text = (
        (EXAMPLES / "terminal.yaml").read_text().replace("{f: 0.1}", "{f.terminal = 'T4': 0.2}")
    )
    assert loaded(tmp_path, by_text, query)[1].selects == {"f.terminal = 'T4'": 0.2}


KEYED = """
streams: {a: {rate: 10}, b: {rate: 10}, c: {rate: 10}}
joins: [{between: [a, b], selectivity: 0.1}, {between: [b, c], selectivity: 0.1}]
keys:
  - key: a.k = b.k = c.k
    inputs: [a, b, c]
    values: [{shares: [0.3, 0.2, 0.1]}, {count: 8, shares: [0.05, 0.1, 0]}]
"""


def keyed(path: Path, text: str = KEYED) -> Workload:
    path.write_text(text)
    return load(path, joined("abc", [("a", "b"), ("b", "c")]))[1]


def test_keys_that_three_inputs_share(tmp_path: Path):
    found = keyed(tmp_path / "load.yaml")
    shares = Shares(("a", "b", "c"), ((1.0, (0.3, 0.2, 0.1)), (8.0, (0.05, 0.1, 0.0))))
    assert found.keys == {"a.k = b.k = c.k": shares}
    again = tmp_path / "again.json"
    again.write_text(json.dumps(to_json(found)))
    assert load(again, joined("abc", [("a", "b"), ("b", "c")]))[1] == found


def test_a_query_that_the_file_makes_has_a_key_for_each_join(tmp_path: Path):
    """So what a decision has kept can be looked at without its job."""
    _, found, _ = loaded(tmp_path, f"window: 10{KEYED}")
    assert found.keys == {}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "[0.3, 0.2, 0.1]",
            "[0.3, 0.2]",
            "keys[0].values[0].shares: found 2; allowed: 3,",
        ),
        ("[0.3, 0.2, 0.1]", "[0.3, 0.2, 1.1]", "keys[0].values[0].shares[2]: found 1.1; allowed: "),
        ("a.k = b.k = c.k", "a.k = b.k", "no three streams of the query are joined on a.k = b.k"),
    ],
)
def test_wrong_keys(tmp_path: Path, old: str, new: str, says: str):
    with pytest.raises(InputError, match=escape(says)):
        keyed(tmp_path / "load.yaml", KEYED.replace(old, new))


def test_json_is_fine_too(tmp_path: Path):
    path = tmp_path / "w.json"
    path.write_text(json.dumps(yaml.safe_load(SMALL)))
    assert load(path) == loaded(tmp_path, SMALL)


# --- the papers' settings (Zhu-Raghavan, Table 2) ---

SETTLED = [
    ("set-1", "(A B C)", 0.277, 300),
    ("set-1", "((A B) C)", 0.075, 800),
    ("set-2", "(A B C)", 5.405, 1_350),
    ("set-2", "((A B) C)", 0.621, 3_150),
    ("set-3", "(A B C D)", 0.477, 600),
    ("set-3", "((A B) (C D))", 0.447, 5_100),
    ("set-4", "(A B C D)", 36.2, 4_000),
    ("set-4", "((A B) (C D))", 35.2, 74_000),
]


def cost(query: Query, workload: Workload, plan: str) -> Cost:
    from jobs.planning_task import Task

    tree = parse(plan)
    return Task("", query, workload, Budget(), tree).price(tree).total


@pytest.mark.parametrize(("example", "plan", "cpu", "tuples"), SETTLED)
def test_settled(example: str, plan: str, cpu: float, tuples: float):
    query, workload, _ = load(EXAMPLES / f"{example}.yaml")
    total = cost(query, workload, plan)
    assert total.cpu == pytest.approx(cpu, abs=0.5 * 10 ** -len(str(cpu).split(".")[1]))
    assert total.tuples == pytest.approx(tuples)


# --- wrong ---------------------------------------------------------------------------------------


def changed(text: str, replacements: dict[str, str]) -> str:
    for old, new in replacements.items():
        assert old in text
        text = text.replace(old, new, 1)
    return text


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in WRONG])
def test_wrong(tmp_path: Path, case: dict[str, Any]):
    text = case.get("text", changed(SMALL, case.get("replace", {})) + case.get("add", ""))
    with pytest.raises(InputError) as wrong:
        loaded(tmp_path, text)
    says = case["says"]
    separator = ":" if says[0].isdigit() else ": "
    assert [str(problem) for problem in wrong.value.problems] == [
        f"{tmp_path}/w.yaml{separator}{says}"
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (SMALL, ":1: window: the job's query says its windows itself: remove it"),
        ("streams: {f: {rate: 1}}\n", ": the workload says nothing of stream w"),
        (
            "streams: {f: {rate: 1, window: 5}}\n",
            ":1: streams.f.window: the job's query says its windows itself: remove it",
        ),
        (
            "streams: {f: {rate: 1}, w: {rate: 1}, c: {rate: 1}, b: {rate: 1}}\n",
            ": the workload has no selectivity between f and w",
        ),
        (
            "streams: {f: {rate: 1}}\nselects: {f.gate = 1: 0.1}\n",
            ":2: selects['f.gate = 1']: no select or stream is called 'f.gate = 1'; there is "
            "f.terminal = 'T4', f.carrier = 'DL', f, w, c, b",
        ),
    ],
)
def test_wrong_for_the_query_of_a_job(tmp_path: Path, text: str, says: str):
    query = load_job(EXAMPLES / "airline.yaml").query("terminal")
    with pytest.raises(InputError) as wrong:
        loaded(tmp_path, text, query)
    assert str(wrong.value) == f"{tmp_path}/w.yaml{says}"
