"""Statements shared out among tasks: together these write what one alone would."""

from pathlib import Path

import pyarrow as pa
import pytest

from jobs.engine.microbatch import differing
from jobs.engine.statements import parse as parsed
from jobs.tables.delta_store import DeltaStore
from optimizer.plan import build, parse
from tests.jobs.engine.cases import CASES, Case
from tests.jobs.engine.harness import AT_ONCE, DELIVERIES, IN_ORDER, run
from tests.jobs.engine.inline import Inline, backend
from tests.jobs.engine.test_contract import check, in_files, plans

THREE = next(case for case in CASES if len(case.query.inputs) == 3)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_results_do_not_depend_on_how_many_share_the_work(case: Case, tmp_path: Path):
    for at, plan in enumerate(plans(case, most=4)):
        how, store = DELIVERIES[at % len(DELIVERIES)], DeltaStore(tmp_path / str(at))
        run(plan, store, backend(tasks=1 + at % 3), how, convert=in_files(tmp_path / "raw"))
        check(case, plan, store, how)


@pytest.mark.parametrize(("shape", "jobs"), [("(a b c)", 1), ("((a b) c)", 2)])
def test_a_batch_is_a_job_for_each_level(shape: str, jobs: int, tmp_path: Path):
    plan, spark = build(THREE.query, parse(shape)), Inline(2)
    one = backend(2)
    one.session = spark  # type: ignore[assignment]
    run(plan, DeltaStore(tmp_path / "store"), one, AT_ONCE, convert=in_files(tmp_path / "raw"))
    assert spark.jobs == jobs


def test_an_interrupted_batch_is_done_again(tmp_path: Path):
    """What it has committed stays, the rest is computed from it."""
    plan = build(THREE.query, parse("((a b) c)"))
    store = Interrupted(tmp_path / "store")
    with pytest.raises(InterruptedError):
        run(plan, store, backend(2), IN_ORDER, convert=in_files(tmp_path / "raw"))
    store.left = -1
    run(plan, store, backend(2), IN_ORDER, convert=in_files(tmp_path / "raw"))
    check(THREE, plan, store, IN_ORDER)


def test_what_two_plans_put_out_is_compared_whole(tmp_path: Path):
    one, convert = backend(3), in_files(tmp_path)
    rows = pa.table({"n": [1, 1, 2, 3], "x": [0.5, 0.5, None, 1.5]})
    one.put("old", convert(rows))
    for new, differences in ((rows.take([3, 2, 1, 0]), 0), (rows.slice(1), 1)):
        one.put("new", convert(new))
        one.run("different", differing(one, "old", "new"))
        assert one.rows("different").to_pylist() == [{"n": differences}]


def test_parts_in_parentheses_are_shared_out_too(tmp_path: Path):
    one, store = backend(3), DeltaStore(tmp_path / "store")
    rows = pa.table({"n": list(range(20))})
    one.put("a", in_files(tmp_path / "raw")(rows))
    one.run("twice", parsed("(SELECT n FROM a) UNION ALL (SELECT n + 20 AS n FROM a)"))
    store.create("t", rows.schema)
    store.commit("t", one.write("twice", store, "t", None)(), 0)
    assert sorted(store.load("t").column("n").to_pylist()) == list(range(40))


class Interrupted(DeltaStore):
    """Fails at the commit of so many tables of results."""

    left = 2

    def commit(self, table, files, batch, writer="", gone=()):
        if table.startswith("out/"):
            self.left -= 1
            if self.left == 0:
                raise InterruptedError
        return super().commit(table, files, batch, writer, gone)
