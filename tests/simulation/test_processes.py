"""What befalls tables while no process runs, or when the machine is gone."""

from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

from jobs.tables.names import STATE
from tests.simulation.bugs import states as bugs
from tests.simulation.case import draw
from tests.simulation.faults import LOSSES, PAST, FaultyStore
from tests.simulation.run import goes_wrong, run

SEEDS = range(1, 7)


def befallen(seed, **change):
    """A calm case in which the same befalls all batches."""
    case = draw(seed)
    batches = [replace(b, crashes=(), again=False, loss="", guests=False) for b in case.batches]
    return replace(case, batches=tuple(replace(batch, **change) for batch in batches))


@pytest.mark.parametrize("how", [*LOSSES, PAST])
def test_a_lost_table_is_told_and_the_job_goes_on_once_it_is_back(how, monkeypatch):
    cases = [befallen(seed, restart=True, loss=how) for seed in SEEDS]
    assert not any(run(case).differences for case in cases[:3])
    bugs.lost_tables_are_not_noticed(monkeypatch)
    assert any(map(goes_wrong, cases))


def test_others_write_to_the_results_under_the_same_numbers(monkeypatch):
    cases = [replace(befallen(seed, guests=True), history=True) for seed in SEEDS]
    assert not any(run(case).differences for case in cases[:3])
    bugs.all_writers_are_one(monkeypatch)
    assert any(map(goes_wrong, cases))


def test_a_power_cut_takes_back_what_was_not_synced():
    """Of each table, any number of its last changes, but none of those before the last sync."""
    left = set()
    for seed in range(40):
        store = FaultyStore()
        rows = pa.table({"x": [1]})
        for table in ("a", "b"):
            store.create(table, rows.schema)
            store.commit(table, [store.put(table, rows)], 0)
        store.sync()
        for batch in (1, 2):
            for table in ("a", "b"):
                store.commit(table, [store.put(table, rows)], batch)
        store.cut_power(Random(seed))
        left.add((store.load("a").num_rows, store.load("b").num_rows))
    assert left == {(a, b) for a in (1, 2, 3) for b in (1, 2, 3)}


def test_a_power_cut_brings_back_what_was_dropped_and_takes_what_was_made():
    store = FaultyStore()
    schema = pa.schema([("x", pa.int64())])
    store.create(f"{STATE}old", schema)
    store.sync()
    store.drop(f"{STATE}old")
    store.create(f"{STATE}new", schema)
    tables = set()
    for seed in range(40):
        other = FaultyStore()
        other.restore(store.saved())
        other._unsynced = {table: [*past] for table, past in store._unsynced.items()}
        other.cut_power(Random(seed))
        tables.add(tuple(other.tables()))
    both = (f"{STATE}new", f"{STATE}old")
    assert tables == {(), both, both[:1], both[1:]}
