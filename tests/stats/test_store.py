"""Statistics as tables: a window is replaced whole, and only good ones are offered to decisions."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from stats import costs
from stats.errors import StatsError
from stats.store import BATCHES, COLUMNS, STREAMS, TABLES, VERDICTS, StatsStore, Window

FIRST, SECOND = Window(60_000_000, 120_000_000), Window(120_000_000, 180_000_000)


@pytest.fixture
def store(tmp_path: Path) -> StatsStore:
    return StatsStore.of(tmp_path)


def _rates(store: StatsStore) -> list[tuple[int, str, float]]:
    rows = store.rows(STREAMS, [FIRST, SECOND])
    return [(row["window_start"], row["stream"], row["rate"]) for row in rows]


def test_a_window_is_replaced_and_the_others_stay(store: StatsStore):
    store.replace(STREAMS, FIRST, [{"stream": "a", "rate": 1.0}, {"stream": "b", "rate": 2.0}])
    store.replace(STREAMS, SECOND, [{"stream": "a", "rate": 3.0}])
    store.replace(STREAMS, FIRST, [{"stream": "a", "rate": 4.0}])
    assert _rates(store) == [(60_000_000, "a", 4.0), (120_000_000, "a", 3.0)]


def test_saying_the_same_again_writes_nothing(store: StatsStore):
    heavy = [{"stream": "a", "value": "k", "heavy": [{"value": "7", "rows": 3}]}]
    store.replace(COLUMNS, FIRST, heavy)
    before = DeltaTable(store.path(COLUMNS)).version()
    store.replace(COLUMNS, FIRST, heavy)
    assert DeltaTable(store.path(COLUMNS)).version() == before


def test_a_window_can_become_empty(store: StatsStore):
    store.replace(STREAMS, FIRST, [{"stream": "a", "rate": 1.0}])
    store.replace(STREAMS, FIRST, [])
    assert _rates(store) == []


def test_what_was_never_written_has_no_rows(store: StatsStore):
    assert (store.windows(), store.good(), store.rows(STREAMS, [FIRST])) == ([], [], [])


def test_only_windows_that_passed_are_good(store: StatsStore):
    for window, good in ((SECOND, True), (FIRST, False)):
        store.replace(BATCHES, window, [{"batches": 1}])
        store.replace(VERDICTS, window, [{"good": good, "reasons": [], "checked": 1, "at": 0}])
    assert store.windows() == [FIRST, SECOND]
    assert store.good() == [SECOND]


# --- other versions ------------------------------------------------------------------------------


def _put(store: StatsStore, table: str, columns: dict[str, pa.DataType], **values: object) -> None:
    """A table with these columns and one row, of the first window."""
    times = {name: TABLES[table].field(name).type for name in ("window_start", "window_end")}
    row = {"window_start": FIRST.start, "window_end": FIRST.end, **values}
    store.root.mkdir(exist_ok=True)
    schema = pa.schema([*times.items(), *columns.items()])
    write_deltalake(store.path(table), pa.Table.from_pylist([row], schema=schema))


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_an_earlier_version_lacks_columns_and_is_read_and_written(
    store: StatsStore, table: str
):
    """Whatever columns it lacks: here all but the first."""
    first = TABLES[table].field(2)
    _put(store, table, {first.name: first.type})
    (old,) = store.rows(table)
    assert list(old) == TABLES[table].names
    assert {name for name, value in old.items() if value is not None} == {
        "window_start", "window_end",
    }  # fmt: skip
    names = [n for n in TABLES[table].names if not n.startswith("window_")]
    samples = {
        pa.string(): "x", pa.float64(): 1.5, pa.int64(): 7, pa.bool_(): True,
        TABLES[VERDICTS].field("at").type: 5, TABLES[VERDICTS].field("reasons").type: ["y"],
        TABLES[COLUMNS].field("heavy").type: [{"value": "z", "rows": 3}],
    }  # fmt: skip
    new = {name: samples[TABLES[table].field(name).type] for name in names}
    store.replace(table, SECOND, [new])
    assert store.read(table, SECOND).to_pylist()[0].keys() == old.keys()
    assert store.rows(table, [FIRST]) == [old]
    found = store.rows(table, [SECOND])[0]
    assert [found[name] for name in names if name != "at"] == [
        new[name] for name in names if name != "at"
    ]


def test_a_column_of_a_later_version_is_left_alone(store: StatsStore):
    _put(store, STREAMS, {"stream": pa.string(), "rate": pa.float64(), "mood": pa.string()},
         stream="a", rate=1.0, mood="fine")  # fmt: skip
    store.replace(STREAMS, SECOND, [{"stream": "a", "rate": 2.0}])
    assert _rates(store) == [(FIRST.start, "a", 1.0), (SECOND.start, "a", 2.0)]
    assert DeltaTable(store.path(STREAMS)).to_pyarrow_table().sort_by("window_start")[
        "mood"
    ].to_pylist() == ["fine", None]


def test_a_column_of_another_type_is_refused_in_a_line(store: StatsStore):
    _put(store, STREAMS, {"stream": pa.string(), "rate": pa.string()}, stream="a", rate="1.0")
    for use in (store.rows, lambda table: store.replace(table, SECOND, [{"stream": "a"}])):
        with pytest.raises(StatsError) as error:
            use(STREAMS)
        assert str(error.value) == (
            f"{store.path(STREAMS)} cannot be used (not of the types that they should be: rate "
            "(string)): it is damaged, or another version of midstream wrote it; move it away, "
            "and gather again with `midstream stats collect --again`"
        )


@pytest.mark.parametrize("harm", ["data", "log", "log entry"])
def test_a_damaged_table_is_refused_in_a_line(store: StatsStore, harm: str):
    store.replace(STREAMS, FIRST, [{"stream": "a", "rate": 1.0}])
    (data,) = store.path(STREAMS).glob("*.parquet")
    logs = sorted((store.path(STREAMS) / "_delta_log").glob("*.json"))
    if harm == "data":
        data.write_bytes(data.read_bytes()[:20])
    elif harm == "log":
        logs[0].unlink()
    else:
        logs[-1].write_text('{"add": {')
    with pytest.raises(StatsError) as error:
        store.rows(STREAMS)
    assert "\n" not in str(error.value)
    assert "move it away, and gather again" in str(error.value)


def test_unit_costs_of_another_version_are_read_and_written(store: StatsStore):
    old = {
        "executor": "duckdb", "value": 0.5, "low": 0.1, "high": 1.0, "mood": "fine",
    }  # fmt: skip
    store.root.mkdir()
    names = [name for name in costs.SHIPPED["duckdb"].values if name != "take"]
    rows = [old | {"name": name} for name in [*names, "one more"]]
    write_deltalake(store.path("costs"), pa.Table.from_pylist(rows))
    known = costs.in_force(store, "duckdb")
    assert known is not None
    assert known == replace(costs.Costs.of(dict.fromkeys([*names, "take"], 0.5)),
                            take=costs.SHIPPED["duckdb"].take)  # fmt: skip
    fitted = costs.Fit(costs.SHIPPED["duckdb"], dict.fromkeys(known.values, 0.0),
                       dict.fromkeys(known.values, 1.0), 3, 0.1)  # fmt: skip
    costs.keep(store, "duckdb", fitted, at=7)
    assert costs.in_force(store, "duckdb") == costs.SHIPPED["duckdb"]
    assert {row["valid_until"] for row in costs.history(store)} == {7, None}
