"""`midstream bench network`, with very little to measure, and the workloads by hand."""

import json

import pytest

from jobs.cli import run
from optimizer.network.load import Demand, Question, Source
from optimizer.network.placement import NETWORK_PLACEMENTS
from optimizer.network.streams import Predicate
from optimizer.query import Column, Stream
from optimizer.sql import parse
from tests.bench.network.causes import NEAR, neighbours
from tests.bench.network.sequence import network_of
from tests.bench.network.workloads import (
    FEEDS,
    MINUTE,
    SlideLoad,
    enterprise,
    stubs,
    synthetic,
)

MINE = ("flights", "baggage", "check-ins")


@pytest.mark.parametrize("workload", ["synthetic", "enterprise"])
def test_every_strategy_beside_what_was_published(workload: str, capsys):
    options = ["--queries", "4", "--seeds", "0..2", "--no-figures", "--theorems", "2", "--json"]
    assert run(["bench", "network", "--workload", workload, *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["strategy"] for one in found["strategies"]] == list(NETWORK_PLACEMENTS)
    assert {"usage", "over_optimum", "space_share", "joins", "filters", "reused", "seconds"} <= (
        found["strategies"][0].keys()
    )
    assert found["strategies"][0]["over_optimum"] == 0
    assert list(found["figures"]) == (["12"] if workload == "synthetic" else ["13", "14"])
    assert found["theorems"]["networks"] == 2


def test_causes_change_one_thing_at_a_time(capsys):
    """Baselines that reuse nothing make a join for each but one of a query's streams."""
    options = ["--queries", "3", "--seeds", "0..1", "--no-figures", "--causes", "--json"]
    assert run(["bench", "network", *options]) == 0
    found = json.loads(capsys.readouterr().out)
    alone = found["causes"]["nothing to reuse"]["for the baselines"]
    where = network_of(128, 0, 32)
    _, demands = synthetic(stubs(where), 0, 3)
    joins = sum(len(demand.streams) - 1 for demand in demands)
    (mine,) = [one["joins"] for one in found["strategies"] if one["strategy"] == "top-down"]
    assert alone["fewer joins"]["top-down"]["mean"] == pytest.approx(1 - mine / joins)
    assert list(found["causes"]["sources and sinks together"]) == [f"{n} sites" for n in NEAR]


def test_neighbours_are_the_nearest():
    where = network_of(128, 0, 16)
    chosen = neighbours(where, 3, 8)
    centre, net = stubs(where)[3], where.network
    others = [net.distance(centre, name) for name in stubs(where) if name not in chosen]
    assert chosen[0] == centre
    assert max(net.distance(centre, name) for name in chosen) <= min(others)


@pytest.mark.parametrize("options", [["--workload", "x"], ["--seeds", "3"], ["--seeds", "3..2"]])
def test_wrong_options(options: list[str], capsys):
    assert run(["bench", "network", *options]) == 2
    assert options[0] in capsys.readouterr().err


Where = dict[str, tuple[Predicate, ...]]


def rate(where: Where) -> float:
    sources = {name: Source(f.tuples / f.period, 100, "s") for name, f in FEEDS.items()}
    windows = {n: (5 * MINUTE if n == "flights" else MINUTE, MINUTE) for n in MINE}
    demand = Demand("q", MINE, "s", where, {}, windows)
    load = SlideLoad(sources)
    return load.rate(Question(load, demand).content)


def test_tuples_a_slide_by_hand():
    """120 flights check in, all of them have bags: each meets one flight, 4 bags, 2 check-ins."""
    assert rate({}) == pytest.approx(120 * 1 * 4 * 2 / 60)


def test_one_flight_by_hand():
    keys = {"flights": 1500, "baggage": 125, "check-ins": 120}
    where: Where = {name: (Predicate.of("num = 7", 1 / count),) for name, count in keys.items()}
    assert rate(where) == pytest.approx(1 * 4 * 2 / 60)


def test_workloads_have_the_published_shape():
    load, demands = synthetic(["a", "b"], 3, 200)
    assert len(load.sources) == 10
    assert {len(d.streams) for d in demands} == {3, 4, 5, 6}
    for demand in demands:
        question = Question(load, demand)
        assert question.components(question.everything) == [question.everything]
    load, demands = enterprise(["a", "b"], 3, 1000)
    rates = {name: source.rate for name, source in load.sources.items()}
    assert rates == pytest.approx(
        {"flights": 5, "check-ins": 4, "baggage": 8.33, "weather": 1.5, "sales": 1.17}, abs=0.01
    )
    gates = sum(set(d.streams) == set(MINE) and bool(d.where) for d in demands)
    assert 0.75 < gates / len(demands) < 0.85


def test_the_gate_query_is_read_by_our_parser():
    """Q1 of section 4.1.1; a flight's number reaches all three streams by equality."""
    schemas = {
        "flights": ("num", "gate"), "baggage": ("flight", "status"),
        "check_ins": ("flight", "status"),
    }  # fmt: skip
    streams = {
        name: Stream(name, (*(Column(c, "STRING") for c in columns), Column("ts", "TIMESTAMP")),
                     "ts")
        for name, columns in schemas.items()
    }  # fmt: skip
    query = parse(
        """SELECT fl.gate, bg.status AS bag, ci.status
        FROM flights fl [RANGE 5 MINUTES], baggage bg [RANGE 1 MINUTE],
             check_ins ci [RANGE 1 MINUTE]
        WHERE fl.num = ci.flight AND fl.num = bg.flight AND fl.num = '7'""",
        streams,
    )
    assert set(query.aliases) == {"fl", "bg", "ci"}
    reached = {a: [str(p) for p in query.selects(a)] for a in query.aliases}
    assert all(reached.values()), reached
