"""A change of plan that is due later: a job whose states still fill, its decision and its batch."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from math import inf, isfinite
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jobs import cli, specs, streaming
from jobs.backends.duckdb.backend import DuckBackend
from jobs.deciding.decisions import Decision
from jobs.engine.microbatch import Engine
from jobs.proposals import Running
from jobs.tables.requests import read_requests
from jobs.tracking.account import account
from optimizer.estimate import Estimator
from optimizer.migration.matching import States
from optimizer.plan import build, parse
from optimizer.window import MICROSECONDS
from tests.bench.chain import BEGAN, Chain
from tests.bench.drift.engine import job_file
from tests.jobs import small
from tests.jobs.test_migrate import Stage
from tests.jobs.test_reoptimize import THREE, decided, see, staged

YOUNG = {
    "queries": {
        "three": {
            "sql": small.QUERIES["three"]["sql"].replace("3 SECONDS", "2 MINUTES"),
            "plan": "(b a c)",
        }
    },
    "budget": {"cpu": 2e-4},
    "reoptimize": {"objective": "rate by 10 seconds", "drift": 0.1},
}
"""No plan keeps up.  The mjoin has 3 statements a batch where two joins have 4."""

RARE = {("a", "b"): 1e-4, ("b", "c"): 0.01}
"""The mjoin makes the matches of c with b anew, the more the longer its states reach back."""


@pytest.fixture
def make(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Stage]]:
    monkeypatch.delenv(cli.DEBUG, raising=False)
    with ExitStack() as stack:
        yield lambda **changes: staged(tmp_path, capsys, stack, **YOUNG | changes)


def test_a_crossing_that_lies_ahead_is_waited_for(make: Callable[..., Stage]):
    """By hand: two joins have a statement more, which is 170 us a second.

    For each second of window the mjoin makes 100 matches of c anew, 4.2 us, and probes with them,
    1.9 us; two joins write 1.8 rows between them, 0.9 us: all in all after some 30 s.
    """
    stage = make()
    see(stage, RARE)
    (found,) = stage.json(*THREE)
    figures = found["figures"]
    assert (found["outcome"], found["chosen"]) == ("migrate", "((a b) c)")
    assert figures["at_batch"] == 4
    assert 20 < figures["better_after_seconds"] <= 30
    until = f"{figures['better_after_seconds']:.0f} s"
    assert found["reasons"][1] == (
        f"(b a c) is better for the next {until}, while states fill, then ((a b) c): before batch 4"
    )
    (request,) = read_requests(stage.watched.store)
    assert request.at_batch == 4
    stage.batches(3)
    assert (stage.engine.progress.batch, stage.plan) == (3, "(b a c)")
    stage.batches(1)
    assert stage.plan == "((a b) c)"
    told = account(specs.load(stage.job), Decision.from_json(found))
    assert told.metrics["at_batch"] == 4
    assert told.metrics["better_after_seconds"] == figures["better_after_seconds"]
    assert told.files["filling.png"][:4] == b"\x89PNG"


def test_people_are_told_when(make: Callable[..., Stage]):
    stage = make()
    see(stage, RARE)
    assert ", to begin before batch 4" in stage.says(0, *THREE)


def test_by_the_cost_nobody_waits(make: Callable[..., Stage]):
    stage = make(reoptimize={"drift": 0.1}, budget={})
    see(stage, RARE)
    (found,) = stage.json(*THREE)
    assert found["outcome"] == "migrate"
    assert "at_batch" not in found["figures"]
    assert read_requests(stage.watched.store)[0].at_batch is None


@pytest.mark.parametrize(("share", "seconds"), [(0.1, 12), (0.5, 60), (0.95, inf), (2.0, inf)])
def test_how_long_states_have_been_filling(
    make: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch, share: float, seconds: float
):
    """Rows of 120 s fill a state; what is nearly full is full, and has no crossing ahead."""
    stage = make()
    see(stage, RARE)
    full = {"a": 0.9 * 100 * 120, "b": 100 * 120, "c": 100 * 120}
    keys = {"".join(nodes[0].aliases): key for key, nodes in states(stage).items()}
    rows = {keys[name]: share * count for name, count in full.items()}
    monkeypatch.setattr(Running, "rows", rows)
    found = decided(stage).figures
    assert found["state_age_seconds"] == (seconds if isfinite(seconds) else None)
    assert (found["at_batch"] is None) == (share > 0.1)


def states(stage: Stage):
    return States.of(stage.engine.plans["three"]).nodes


def test_states_of_the_engine_fill_as_predicted(tmp_path: Path):
    """After each batch they hold what windows as long as the job has run would."""
    chain = Chain(3, 60, 100)
    values = chain.values((3.0, 2.0))
    chain.write(tmp_path / "data", [values] * 5)
    plan = build(chain.query, parse("((a b) c)"))
    job = specs.load(job_file(chain, tmp_path, "young", plan))
    now, store = BEGAN + 60 * MICROSECONDS, streaming.job_store(job)
    engine = Engine(streaming.engine_job(job), store, DuckBackend(), lambda: now)
    for number in range(5):
        inputs = {n: pq.read_table(tmp_path / f"data/{n}-{number}.parquet") for n in chain.streams}
        work = engine.run(number, inputs).operators
        young = chain.query.bounds.within((number + 1) * chain.batch * MICROSECONDS)
        estimator = Estimator(chain.query, chain.workload(values), young)
        for key, (node, *_) in States.of(plan).nodes.items():
            held = estimator.node(node).held
            assert work[key].state_rows == pytest.approx(held, rel=0.05)
    engine.close()
