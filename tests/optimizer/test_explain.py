"""What people and programs read of a plan."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.cost.dual import Priced, price
from optimizer.estimate import Estimator
from optimizer.explain import as_json, as_text, compact, cpu_number, duration, share, shorten, size
from optimizer.identity import states
from optimizer.plan import build, from_json, parse
from optimizer.query import Query
from optimizer.workload import Workload
from tests.optimizer.builders import cases, joined, trees, where, workload


def priced(query: Query, tree: str, load: Workload | None = None) -> Priced:
    assumed = load or Workload.assume(query)
    return price(build(query, parse(tree)), Estimator(query, assumed))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (0.0123, "0.012"), (0.5, "0.5"), (1.26, "1.3"), (9.99, "10"), (42.4, "42"),
        (99.6, "100"), (120, "120"), (999.4, "999"), (999.9, "1 k"), (1234, "1.2 k"),
        (99_960, "100 k"), (340_000_000, "340 M"), (1e15, "1000 T"),
        (1e26, "1.0e+26"), (1e-9, "1.0e-09"),
        (float("inf"), "inf"),
    ],
)  # fmt: skip
def test_compact_numbers(value, text):
    assert compact(value) == text


@given(st.floats(0.001, 9e14))
def test_compact_numbers_are_near_and_short(value):
    text = compact(value)
    number, _, prefix = text.partition(" ")
    scale = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[prefix]
    assert float(number) * scale == pytest.approx(value, rel=0.051)
    assert len(text) <= 7


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "0 s"), (250_000, "250 ms"), (1_500, "1.5 ms"), (15_000_000, "15 s"),
        (90_000_000, "90 s"), (300_000_000, "5 min"), (7_200_000_000, "2 h"),
        (172_800_000_000, "2 d"),
    ],
)  # fmt: skip
def test_durations(microseconds, text):
    assert duration(microseconds) == text


def test_other_numbers():
    assert [size(n) for n in (12, 3_400_000)] == ["12 B", "3.4 MB"]
    assert [share(n, 1000) for n in (0, 1, 500, 99_000)] == ["0 %", "<1 %", "50 %", "99 times"]
    assert [cpu_number(n) for n in (0, 1e-9, 0.00002, 0.27722, 3, 1513.2)] == [
        "0", "0.000001", "0.000020", "0.277", "3", "1.5 k",
    ]  # fmt: skip
    assert shorten("a long text", 7) == "a long…"


SET_1 = workload({"A": 20, "B": 20, "C": 20}, {("A", "B"): 0.05, ("B", "C"): 0.5})
QUERY = joined("ABC", [("A", "B"), ("B", "C")], 5)


def test_json_gives_every_operator_its_figures():
    data = as_json(priced(QUERY, "((A B) C)", SET_1))
    assert (data["plan"], data["method"], data["assumed"]) == ("((A B) C)", "hash", False)
    assert data["memory_tuples"] == pytest.approx(800)
    (project,) = data["root"]["inputs"]
    (join,) = project["inputs"]
    assert join["probes"] == [["(A B)", "C"], ["C", "(A B)"]]
    assert join["heaviest"]
    assert join["rate"] == pytest.approx(3 * 20**3 * 0.05 * 0.5 * 25)
    assert "state" not in join
    inner, last = join["inputs"]
    assert inner["state"]["rows"] == pytest.approx(20 * 20 * 0.05 * 25)
    assert last["state"]["rows"] == pytest.approx(100)
    assert inner["state"]["bytes"] == pytest.approx(500 * inner["width"])


@given(cases(), st.data())
def test_json_is_plain_and_complete(case, data):
    query, load = case
    plan = build(query, data.draw(trees(query.aliases)))
    found = price(plan, Estimator(query, load))
    explained = json.loads(json.dumps(as_json(found), allow_nan=False))
    operators = list(flat(explained["root"]))
    assert from_json(query, explained) == plan
    assert {o["state"]["key"] for o in operators if "state" in o} == states(plan.root).keys()
    assert sum(o["cpu"] for o in operators) == pytest.approx(found.total.cpu)
    assert sum(o["cpu_share"] for o in operators) == pytest.approx(1)
    assert sum(o["heaviest"] for o in operators) == 1


def flat(operator):
    yield operator
    for below in operator.get("inputs", ()):
        yield from flat(below)


def test_text_says_what_matters():
    query = joined("ABC", [("A", "B")], 5, selects=[where("A.v")])
    text = as_text(priced(query, "(A B C)"))
    for words in ("(A B C)", "assumed", "A.k = B.k", "where A.v > 5", "probes A → B → C", "5 s",
                  "◀ heaviest", "100 %"):  # fmt: skip
        assert words in text
    crossed = as_text(priced(query, "((A C) B)"))
    assert "no predicate: every pair within the windows" in crossed


@given(cases(2, 8), st.data())
def test_text_stays_in_its_columns(case, data):
    query, load = case
    plan = build(query, data.draw(trees(query.aliases)))
    lines = as_text(price(plan, Estimator(query, load))).splitlines()
    ends = lines[3].index("rate") + len("rate")
    rows = [line for line in lines[4:] if line[ends - 2 : ends] == "/s"]
    assert len(rows) == str(plan).count("(") + len(query.aliases) + 1
    assert all(line == line.rstrip() for line in lines)
