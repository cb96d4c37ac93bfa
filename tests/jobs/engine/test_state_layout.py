"""What `explain` says of a plan's states on the disk, beside the files of jobs that run."""

from random import Random

import pytest

from jobs.backends.duckdb.backend import DuckBackend
from jobs.engine.ingest import Ingest
from jobs.engine.inline_compaction import tidy
from jobs.engine.microbatch import Engine, Job
from jobs.engine.state_layout import layouts
from jobs.tables.delta_store import DeltaStore
from jobs.tables.partitions import Widths
from optimizer.cost.dual import price
from optimizer.estimate import Estimator
from optimizer.migration.matching import States, name
from optimizer.plan import Plan, build, parse
from optimizer.workload import Method, StreamLoad, Workload
from tests.optimizer.builders import counts, joined, stream
from tests.simulation.case import Row, relation

SECOND = 1_000_000
BATCH = 10
KEYS = 400


def expected(plan: Plan, rate: float, widths: Widths):
    edges = plan.query.graph.edges
    load = Workload(
        {alias: StreamLoad(rate) for alias in plan.query.aliases},
        dict.fromkeys(edges, 1 / KEYS),
        method=Method.BATCH,
        batch=BATCH,
    )
    priced = price(plan, Estimator(plan.query, load))
    names = {key: name(nodes[0]) for key, nodes in States.of(plan).nodes.items()}
    return {names[key]: one for key, one in layouts(priced, widths, BATCH).items()}, names


def run(tmp_path, plan: Plan, rate: int, batches: int, widths: Widths, names):
    """Files of each state, on average over the second half of the batches."""
    store, random = DeltaStore(tmp_path), Random(1)
    ingests = {one.name: Ingest(one) for one in plan.query.streams.values()}
    job = Job("j", ingests, {"q": plan}, widths=widths)
    engine = Engine(job, store, DuckBackend(), lambda: 10**12)
    found: dict[str, list[int]] = {key: [] for key in names}
    for number in range(batches):
        inputs = {
            one: relation(
                stream(one, "k", "v", "w"),
                [
                    Row((random.randrange(KEYS), 0, 0, ts * SECOND * BATCH // (rate * BATCH)))
                    for ts in range(number * rate * BATCH, (number + 1) * rate * BATCH)
                ],
            )
            for one in ingests
        }
        engine.run(number, inputs)
        tidy(engine, lambda: True)
        for key in names:
            if number >= batches // 2:
                found[key].append(len(engine.states.files.get(key, ())))
    engine.close()
    return {names[key]: sum(counts) / len(counts) for key, counts in found.items()}


@pytest.mark.parametrize(
    ("window", "rate", "batches", "widths"),
    [
        (10, 20, 12, Widths()),
        (60, 100, 24, Widths()),
        (600, 5, 130, Widths()),
        (60, 20, 24, Widths({"a": 30 * SECOND})),
    ],
)
def test_it_is_about_what_a_job_makes(tmp_path, window, rate, batches, widths):
    plan = build(joined("abc", [("a", "b"), ("b", "c")], window), parse("((a b) c)"))
    said, names = expected(plan, rate, widths)
    found = run(tmp_path, plan, rate, batches, widths, names)
    for state, files in found.items():
        assert said[state].files == pytest.approx(files, rel=0.5, abs=2.5)


def test_by_hand():
    """A batch of 10 s under 60 s: three files would be one too many for partitions of 30 s."""
    plan = build(joined("ab", [("a", "b")], 60), parse("(a b)"))
    said, _ = expected(plan, 1_000, Widths({"a": 60 * SECOND}))
    assert said["a"].to_json() == {
        "partition_seconds": 60, "kept_seconds": 60, "files_per_batch": 1, "files": 6,
    }  # fmt: skip


def test_groups_are_kept_for_a_window_longer():
    query = joined("ab", [("a", "b")], 60, grouping=counts("a.k", size=120, slide=60))
    said, _ = expected(build(query, parse("(a b)")), 10, Widths())
    assert said["the group-by"].kept == 180 * SECOND
    assert said["the group-by"].width == 180 * SECOND // 16
    assert said["a"].kept == 60 * SECOND
