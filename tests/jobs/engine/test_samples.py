"""What a dry run expects of skewed keys, beside what fills then make of the same states."""

from collections import Counter
from itertools import accumulate
from random import Random

import pytest

from jobs.backends.duckdb.backend import DuckBackend
from jobs.engine.ingest import Ingest
from jobs.engine.microbatch import Engine, Job
from jobs.engine.migration.samples import sampled
from jobs.engine.observed import observed
from jobs.tables.delta_store import DeltaStore
from optimizer.estimate import Estimator
from optimizer.migration.matching import Context, States, name
from optimizer.plan import build, parse
from tests.optimizer.builders import joined, stream, where, window
from tests.simulation.case import Row, relation

SECOND = 1_000_000
EDGES = [("a", "b"), ("b", "c")]


def zipf(r, count, exponent, keys=1000):
    weights = list(accumulate(k**-exponent for k in range(1, keys + 1)))
    return r.choices(range(keys), cum_weights=weights, k=count)


def held(tmp_path, query, tree, rows):
    """A job that has taken these rows in: its plan and its store."""
    old = build(query, parse(tree))
    streams = {s.name: Ingest(s) for s in query.streams.values()}
    store = DeltaStore(tmp_path)
    job = Job("j", streams, {"q": old})
    engine = Engine(job, store, DuckBackend(), lambda: 100 * SECOND)
    engine.run(0, {one: relation(stream(one, "k", "v", "w"), rows[one]) for one in streams})
    engine.close()
    return old, store


def skewed(seed, count, exponent):
    r = Random(seed)
    return {
        one: [
            Row((key, n % 10, n, n * 10 * SECOND // count))
            for n, key in enumerate(zipf(r, count, exponent))
        ]
        for one in "abc"
    }


def alone(rows):
    """The same, but nothing of `a` finds a partner: there are no results."""
    return rows | {"a": [Row((-1, *row.values[1:])) for row in rows["a"][:5]]}


def keys(rows):
    return Counter(row.values[0] for row in rows)


@pytest.mark.parametrize("exponent", [0.0, 1.2])
def test_heavy_keys_meet_heavy_keys(tmp_path, exponent):
    """All are within one window: as many rows as the products of how often each key comes up."""
    query = joined("abc", EDGES, window("abc", 60))
    rows = alone(skewed(1, 3000, exponent))
    old, store = held(tmp_path, query, "(a b c)", rows)
    new = build(query, parse("(a (b c))"))
    (found,) = sampled(old, new, Context(), store).values()
    b, c = keys(rows["b"]), keys(rows["c"])
    true = sum(count * c[key] for key, count in b.items())
    assert found.likely == pytest.approx(true, rel=0.25)
    assert true <= found.most <= 2 * true


def test_what_is_made_of_a_sample_is_one_too(tmp_path):
    """The same key joins three streams: no product of pairs' selectivities knows how often."""
    rows = skewed(2, 700, 0.8)
    query = joined("abcd", [("a", "b"), ("b", "c"), ("c", "d")], window("abcd", 60))
    rows["d"] = alone(rows)["a"]
    old, store = held(tmp_path, query, "(a b c d)", rows)
    new = build(query, parse("(((a b) c) d)"))
    names = {key: name(nodes[0]) for key, nodes in States.of(new).nodes.items()}
    found = {names[key]: one for key, one in sampled(old, new, Context(), store).items()}
    a, b, c = (keys(rows[one]) for one in "abc")
    true = sum(count * b[key] * c[key] for key, count in a.items())
    assert found["((a b) c)"].likely == pytest.approx(true, rel=0.4)
    assert true <= found["((a b) c)"].most <= 3 * true


def test_selects_and_windows_count(tmp_path):
    """Rows of b pass a select of b; only tuples of a second find each other."""
    query = joined("abc", EDGES, window("abc", 1), selects=[where("b.v")])
    rows = alone(skewed(3, 2000, 1.2))
    old, store = held(tmp_path, query, "(a b c)", rows)
    (found,) = sampled(old, build(query, parse("(a (b c))")), Context(), store).values()
    times = [
        (b.values[0], b.values[3], c.values[3])
        for b in rows["b"] if b.values[1] > 5
        for c in rows["c"] if b.values[0] == c.values[0]
    ]  # fmt: skip
    true = sum(abs(one - other) <= SECOND for _, one, other in times)
    assert found.likely == pytest.approx(true, rel=0.3)
    assert true <= found.most


def test_nothing_is_there_yet(tmp_path):
    query = joined("abc", EDGES, window("abc", 60))
    old, store = held(tmp_path, query, "(a b c)", {one: [] for one in "abc"})
    found = sampled(old, build(query, parse("(a (b c))")), Context(), store)
    assert [one.most for one in found.values()] in ([], [0.0])


def test_the_workload_of_a_job_without_statistics_knows_heavy_keys(tmp_path):
    query = joined("abc", EDGES, window("abc", 60))
    rows = alone(skewed(4, 3000, 1.2))
    old, store = held(tmp_path, query, "(a b c)", rows)
    batches = [{"streams": {one: {"rows": 0, "newest": None} for one in "abc"}, "operators": {}}]
    load = observed(old, store, batches, 10.0)
    b, c = keys(rows["b"]), keys(rows["c"])
    true = sum(count * c[key] for key, count in b.items()) / (3000 * 3000)
    assert load.selectivity("b", "c") == pytest.approx(true)


def test_the_workload_of_a_job_without_statistics_knows_what_three_joined_on_a_key_come_to(
    tmp_path,
):
    query = joined("abc", EDGES, window("abc", 60))
    rows = skewed(5, 300, 1.2)
    old, store = held(tmp_path, query, "(a b c)", rows)
    batches = [{"streams": {one: {"rows": 0, "newest": None} for one in "abc"}, "operators": {}}]
    load = observed(old, store, batches, 10.0)
    a, b, c = (keys(rows[one]) for one in "abc")
    true = sum(count * b[key] * c[key] for key, count in a.items()) / 300**3
    estimator = Estimator(query, load)
    by_pairs = load.selectivity("a", "b") * load.selectivity("b", "c")
    assert estimator.crossing(1, 2) * estimator.crossing(3, 4) == pytest.approx(true, rel=0.02)
    assert true > 2 * by_pairs
