"""Random jobs over random files beside plain Python, each block of seeds in a zone of its own."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from jobs.cli import run
from tests.bench.differential import texts
from tests.bench.differential.check import BLOCK, SHARES, ZONES, turns, zone
from tests.bench.differential.draw import CSV, JSON, PACKED, draw
from tests.bench.differential.terms import parts
from tests.bench.differential.writers import WRITERS

SEEDS = 200
"""`midstream bench differential` runs more."""


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_engines_and_verify_agree_with_plain_python(first, capsys):
    seeds = f"{first}..{first + BLOCK - 1}"
    code = run(["bench", "differential", "--seeds", seeds, "--jobs", "1"])
    told = capsys.readouterr().out
    assert code == 0, told
    assert f"{BLOCK} seeds, 0 failed, 0 refused" in told


def test_programs_are_told_who_saw_how_many_seeds(capsys):
    before = dict(os.environ)
    assert run(["bench", "differential", "--seeds", "4..5", "--jobs", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["engines"] == {"duckdb": 2, "spark-duckdb": 1, "verify": 1}
    assert (told["seeds"], told["failed"], told["refused"]) == (2, [], [])
    assert dict(os.environ) == before


@pytest.mark.parametrize("options", [["--seeds", "9..1"], ["--engines", "flink"]])
def test_wrong_options_are_refused(options, capsys):
    assert run(["bench", "differential", *options]) == 2
    assert options[0] in capsys.readouterr().err


def test_a_seed_is_always_the_same_case():
    assert draw(7) == draw(7) != draw(8)
    assert draw(7).query.sql == draw(7).query.sql


def test_who_has_a_seed():
    engines = tuple(SHARES)
    assert turns(0, engines, whole=False) == engines
    assert turns(7, engines, whole=False) == ("duckdb",)
    assert turns(7, engines, whole=True) == engines
    assert {zone(seed) for seed in range(SEEDS)} == set(ZONES)


def test_what_the_seeds_cover():
    cases = [draw(seed) for seed in range(SEEDS)]
    queries = [case.query for case in cases]
    terms = [part for q in queries for _, term in q.output for part in parts(term)]
    writers = Counter(f"{file.writer}" for case in cases for file in case.files)
    streams = [stream for case in cases for stream in case.streams]
    assert {len(query.inputs) for query in queries} == {1, 2, 3}
    assert any(len(dict(q.inputs)) > len({s.name for _, s in q.inputs}) for q in queries)
    assert any(q.grouping and q.grouping.slide < q.grouping.size for q in queries)
    assert any(case.plan and "[" in case.plan for case in cases), "combined inputs"
    assert any(query.window for query in queries)
    assert any(query.ranges and query.between for query in queries)
    assert len({type(term).__name__ for term in terms}) == 5
    assert writers.keys() == {*WRITERS, *texts.WRITERS["csv"], *texts.WRITERS["json"]}
    assert {"*", "?", "[", "="} <= {c for case in cases for file in case.files for c in file.name}
    assert {kind for stream in streams for _, kind in stream.columns} >= {"BINARY", "FLOAT"}
    assert {kind for s in streams if s.format == "csv" for _, kind in s.columns} >= {"BINARY"}
    assert {stream.mode for stream in streams} == {"", "declared", "exact"}
    assert any(stream.parts for stream in streams)
    assert {name for stream in streams for name, _ in stream.options} >= {*CSV, *JSON}
    assert {Path(file.name).suffix for case in cases for file in case.files} >= {*PACKED}
