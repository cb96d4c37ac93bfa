"""Every expectation fails on data broken for it, and for it alone; what is only new passes."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from shutil import copytree
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from optimizer.query import Stream
from optimizer.sql import parse, parse_schema
from stats.frames import ENOUGH, Delay, Expected
from stats.store import (
    BATCHES,
    COLUMNS,
    COMBINED,
    EDGES,
    GATHERED,
    GROUPS,
    KEYS,
    OPERATORS,
    SELECTS,
    STREAMS,
    VALIDATIONS,
    VERDICTS,
    StatsStore,
    Window,
)
from stats.validate import COMPLETE, RULES, Verdict, validate

Rows = dict[str, list[dict[str, Any]]]

MINUTE = 60_000_000
WINDOWS = [Window(number * MINUTE, (number + 1) * MINUTE) for number in range(6)]
LAST = WINDOWS[-1]


def _stream(name: str) -> Stream:
    return Stream(name, parse_schema("k BIGINT, v DOUBLE, kind STRING, ts TIMESTAMP"), "ts")


QUERIES = {
    "gates": "SELECT f.v FROM flights f [RANGE 9 SECONDS] JOIN bags b [RANGE 9 SECONDS]"
    " ON f.k = b.k WHERE f.kind = 'T4' AND f.v > 1",
    "loads": "SELECT b.kind, count(*) AS n FROM bags b [RANGE 9 SECONDS]"
    " JOIN carts c [RANGE 9 SECONDS] ON b.k = c.k GROUP BY b.kind, window(b.ts, '9 seconds')",
}
STREAMS_OF_JOB = {name: _stream(name) for name in ("flights", "bags", "carts", "spare")}
EXPECTED = Expected(
    tuple(STREAMS_OF_JOB), {name: parse(sql, STREAMS_OF_JOB) for name, sql in QUERIES.items()}
)


def flow(stream: str, rows: int, **changes: Any) -> dict[str, Any]:
    """A stream of which 5 rows came too late and 1 was rejected, in a window of a minute."""
    return {
        "stream": stream, "rows": rows, "rate": rows / 60, "burstiness": 1.0, "width": 40.0,
        "taken": rows + 6, "accepted": rows, "late": 5, "rejected": 1,
        "least": rows // 10, "most": 3 * rows,
    } | changes  # fmt: skip


def good() -> Rows:
    """A window in which everything is as it should be."""
    heavy = [{"value": "7", "rows": 60}, {"value": "8", "rows": 20}]
    return {
        STREAMS: [flow("flights", 600), flow("bags", 1200), flow("carts", 120), flow("spare", 60)],
        COLUMNS: [
            {"stream": stream, "value": "k", "rows": rows, "nulls": 10, "distinct": 50,
             "heavy": heavy}
            for stream, rows in (("flights", 600), ("bags", 1200), ("carts", 120))
        ],
        EDGES: [
            {"query": "gates", "one": "b", "other": "f", "pairs": 180_000.0, "matches": 3_600.0,
             "selectivity": 0.02, "error": 0.001, "method": "sampled"},
            {"query": "loads", "one": "b", "other": "c", "pairs": 144_000.0, "matches": 1_440.0,
             "selectivity": 0.01, "error": 0.0, "method": "exact"},
        ],
        KEYS: [
            {"query": "gates", "key": "b.k = c.k = f.k", "alias": alias, "rows": rows, "nulls": 10,
             "heavy": heavy, "rest": rows - 90, "others": 41.5}
            for alias, rows in (("b", 1200), ("c", 120), ("f", 300))
        ],
        SELECTS: [
            {"query": "gates", "alias": "f", "predicate": predicate, "rows": 600, "passed": passed,
             "selectivity": passed / 600}
            for predicate, passed in (("f.kind = 'T4'", 150), ("1 < f.v", 300))
        ],
        GROUPS: [{"query": "loads", "groups": 12.5}],
        COMBINED: [{"query": "loads", "alias": "b", "rate": 3.5}],
        OPERATORS: [{"operator": "0a1b", "batches": 6, "rows": 900, "state_rows": 400,
                     "state_bytes": 9_000, "ms": 120.0}],
        BATCHES: [{"batches": 6, "ms": 900.0, "cpu": 1.5, "memory": 800_000_000, "state_rows": 400,
                   "state_bytes": 9_000, "lag": 2.5, "backlog": 0, "busy": 0.3, "results": 900}],
    }  # fmt: skip


def write(store: StatsStore, window: Window, rows: Mapping[str, list[dict[str, Any]]]) -> None:
    for table, content in rows.items():
        store.replace(table, window, content)


def judge(store: StatsStore, expected: Expected = EXPECTED, **options: Any) -> list[Verdict]:
    return validate(store, expected, at=0, **options)


def failed(verdict: Verdict) -> list[tuple[str, str]]:
    return [(one.table, one.rule) for one in verdict.findings if not one.passed]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> StatsStore:
    """Six good windows, validated."""
    store = StatsStore.of(tmp_path_factory.mktemp("job"))
    for window in WINDOWS:
        write(store, window, good())
    assert [failed(verdict) for verdict in judge(store)] == [[]] * len(WINDOWS)
    return store


@pytest.fixture
def store(judged: StatsStore, tmp_path: Path) -> StatsStore:
    """A copy of them, to break."""
    copytree(judged.root, tmp_path / "stats")
    return StatsStore.of(tmp_path)


# --- a broken set for each expectation -----------------------------------------------------------

Change = Callable[[Rows], object]


def put(table: str, number: int = 0, **changes: Any) -> Change:
    """Another value in a row."""
    return lambda rows: rows[table][number].update(changes)


def twice(table: str) -> Change:
    return lambda rows: rows[table].append(deepcopy(rows[table][0]))


def without(table: str) -> Change:
    return lambda rows: rows[table].pop()


SPARE = 3
"""The stream of which nothing else tells: it can be broken alone."""

BROKEN: Mapping[tuple[str, str], tuple[Change, str]] = {
    (STREAMS, "complete"): (without(STREAMS), "there is nothing of spare"),
    (STREAMS, "once"): (twice(STREAMS), "flights is there more than once"),
    (STREAMS, "rows-known"): (
        put(STREAMS, SPARE, rows=None),
        "the number of rows of spare is not known",
    ),
    (STREAMS, "rows-not-negative"): (
        put(STREAMS, SPARE, rows=-6, rate=-0.1, least=None),
        "the number of rows of spare is -6, below 0",
    ),
    (STREAMS, "rate-known"): (put(STREAMS, rate=None), "the rate of flights is not known"),
    (STREAMS, "rate-of-rows"): (
        put(STREAMS, rate=12.0),
        "the rate of flights is 12/s, but 600 rows in 60 s are 10/s",
    ),
    (STREAMS, "burstiness-not-negative"): (
        put(STREAMS, burstiness=-0.5),
        "the burstiness of flights is -0.5, below 0",
    ),
    (STREAMS, "width-not-negative"): (
        put(STREAMS, width=-40.0),
        "the bytes a tuple of flights is -40, below 0",
    ),
    (STREAMS, "accepted-not-negative"): (
        put(STREAMS, accepted=-1, taken=5),
        "the number of accepted rows of flights is -1, below 0",
    ),
    (STREAMS, "late-not-negative"): (
        put(STREAMS, late=-1, taken=600),
        "the number of late rows of flights is -1, below 0",
    ),
    (STREAMS, "rejected-not-negative"): (
        put(STREAMS, rejected=-1, taken=604),
        "the number of rejected rows of flights is -1, below 0",
    ),
    (STREAMS, "all-accounted-for"): (
        put(STREAMS, taken=700),
        "700 rows of flights were taken, but 600 accepted, 5 late and 1 rejected make 606",
    ),
    (STREAMS, "rows-that-moved-on"): (
        put(STREAMS, SPARE, rows=0, rate=0.0),
        "spare has 0 rows, where batches moved its newest event time on 6 times",
    ),
    (STREAMS, "rows-as-accepted"): (
        put(STREAMS, SPARE, most=59),
        "spare has 60 rows, more than the 59 that the job accepted in all batches that may have"
        " taken any",
    ),
    (STREAMS, "width-as-before"): (
        put(STREAMS, width=8_000.0),
        "a tuple of flights has 8,000 bytes, where it has had 40: a factor beyond 100",
    ),
    (COLUMNS, "complete"): (without(COLUMNS), "there is nothing of carts.k"),
    (COLUMNS, "once"): (twice(COLUMNS), "flights.k is there more than once"),
    (COLUMNS, "rows-known"): (
        put(COLUMNS, rows=None),
        "the number of rows of flights.k is not known",
    ),
    (COLUMNS, "rows-of-stream"): (
        put(COLUMNS, rows=599),
        "599 rows were looked at for flights.k, but its stream has 600",
    ),
    (COLUMNS, "nulls-not-negative"): (
        put(COLUMNS, nulls=-1),
        "the number of nulls of flights.k is -1, below 0",
    ),
    (COLUMNS, "distinct-known"): (
        put(COLUMNS, distinct=None),
        "the number of distinct values of flights.k is not known",
    ),
    (COLUMNS, "distinct-not-negative"): (
        put(COLUMNS, distinct=-1),
        "the number of distinct values of flights.k is -1, below 0",
    ),
    (COLUMNS, "values-within-rows"): (
        put(COLUMNS, distinct=591),
        "flights.k has 10 nulls and 591 distinct values in 600 rows",
    ),
    (COLUMNS, "heavy-within-rows"): (
        put(COLUMNS, heavy=[{"value": "7", "rows": 400}, {"value": "8", "rows": 191}]),
        "the heaviest values of flights.k have 591 rows and 10 are null, of 600",
    ),
    (EDGES, "complete"): (without(EDGES), "there is nothing of b-c in loads"),
    (EDGES, "once"): (twice(EDGES), "b-f in gates is there more than once"),
    (EDGES, "pairs-known"): (
        put(EDGES, 1, pairs=None),
        "the number of pairs of b-c in loads is not known",
    ),
    (EDGES, "pairs-not-negative"): (
        put(EDGES, pairs=-5.0, selectivity=0.0, matches=0.0),
        "the number of pairs of b-f in gates is -5, below 0",
    ),
    (EDGES, "pairs-of-rows"): (
        put(EDGES, 1, pairs=140_000.0, matches=1_400.0),
        "b-c in loads has 140,000 pairs, but 1,200 rows by 120 make another number",
    ),
    (EDGES, "pairs-within-rows"): (
        put(EDGES, pairs=800_000.0, matches=16_000.0),
        "b-f in gates has 800,000 pairs, more than 1,200 rows by 600 can make",
    ),
    (EDGES, "selectivity-is-a-share"): (
        put(EDGES, selectivity=1.7, matches=306_000.0),
        "the selectivity of b-f in gates is 1.7, not within 0..1",
    ),
    (EDGES, "selectivity-if-pairs"): (
        put(EDGES, selectivity=None, matches=None, error=None),
        "the selectivity of b-f in gates is not known, though it has 180,000 pairs",
    ),
    (EDGES, "matches-of-pairs"): (
        put(EDGES, matches=360.0),
        "b-f in gates has 360 matches, but 0.02 of 180,000 pairs are 3,600",
    ),
    (EDGES, "error-not-negative"): (
        put(EDGES, error=-0.001),
        "the error of the selectivity of b-f in gates is -0.001, below 0",
    ),
    (EDGES, "exact-without-error"): (
        put(EDGES, 1, error=0.002),
        "the selectivity of b-c in loads is called exact, with an error of 0.002",
    ),
    (EDGES, "method-known"): (
        put(EDGES, method="guessed"),
        "the method for b-f in gates is guessed, not exact or sampled",
    ),
    (SELECTS, "complete"): (without(SELECTS), "there is nothing of 1 < f.v in gates"),
    (SELECTS, "once"): (twice(SELECTS), "f.kind = 'T4' in gates is there more than once"),
    (SELECTS, "rows-known"): (
        put(SELECTS, rows=None),
        "the number of rows of f.kind = 'T4' in gates is not known",
    ),
    (SELECTS, "rows-of-stream"): (
        put(SELECTS, rows=300, passed=150, selectivity=0.5),
        "300 rows were looked at for f.kind = 'T4' in gates, but flights has 600",
    ),
    (KEYS, "once"): (twice(KEYS), "b by b.k = c.k = f.k in gates is there more than once"),
    (KEYS, "rest-not-negative"): (
        put(KEYS, rest=-1, rows=89),
        "the number of rows of other values of b by b.k = c.k = f.k in gates is -1, below 0",
    ),
    (KEYS, "others-not-negative"): (
        put(KEYS, others=-1.0),
        "the number of other values of b by b.k = c.k = f.k in gates is -1, below 0",
    ),
    (KEYS, "heavy-and-rest"): (
        put(KEYS, rest=1_000),
        "b by b.k = c.k = f.k in gates has 1,200 rows, but 10 without the key, 80 of heavy values"
        " and 1,000 of others",
    ),
    (SELECTS, "passed-known"): (
        put(SELECTS, passed=None),
        "the number of rows that pass of f.kind = 'T4' in gates is not known",
    ),
    (SELECTS, "passed-not-negative"): (
        put(SELECTS, passed=-6, selectivity=-0.01),
        "the number of rows that pass of f.kind = 'T4' in gates is -6, below 0",
    ),
    (SELECTS, "passed-within-rows"): (
        put(SELECTS, passed=900, selectivity=1.5),
        "900 rows pass f.kind = 'T4' in gates, of 600",
    ),
    (SELECTS, "selectivity-of-rows"): (
        put(SELECTS, selectivity=0.3),
        "the selectivity of f.kind = 'T4' in gates is 0.3, but 150 of 600 rows are 0.25",
    ),
    (GROUPS, "complete"): (without(GROUPS), "there is nothing of loads"),
    (GROUPS, "once"): (twice(GROUPS), "loads is there more than once"),
    (GROUPS, "groups-not-negative"): (
        put(GROUPS, groups=-1.0),
        "the number of groups of loads is -1, below 0",
    ),
    (COMBINED, "once"): (twice(COMBINED), "b in loads is there more than once"),
    (COMBINED, "rate-not-negative"): (
        put(COMBINED, rate=-1.0),
        "the rate of b in loads is -1, below 0",
    ),
    (OPERATORS, "once"): (twice(OPERATORS), "0a1b is there more than once"),
    (OPERATORS, "batches-at-least-one"): (
        put(OPERATORS, batches=0),
        "the number of batches of 0a1b is 0, below 1",
    ),
    (OPERATORS, "batches-within-window"): (
        put(OPERATORS, batches=7),
        "0a1b worked in 7 batches, but the window has 6",
    ),
    (OPERATORS, "rows-not-negative"): (
        put(OPERATORS, rows=-1),
        "the number of rows of 0a1b is -1, below 0",
    ),
    (OPERATORS, "state_rows-not-negative"): (
        put(OPERATORS, state_rows=-1),
        "the number of rows in the state of 0a1b is -1, below 0",
    ),
    (OPERATORS, "state_bytes-not-negative"): (
        put(OPERATORS, state_bytes=-1),
        "the size of the state of 0a1b is -1, below 0",
    ),
    (OPERATORS, "ms-not-negative"): (put(OPERATORS, ms=-1.0), "the time of 0a1b is -1, below 0"),
    (BATCHES, "once"): (twice(BATCHES), "the job is there more than once"),
    (BATCHES, "batches-not-negative"): (
        lambda rows: rows.update({BATCHES: [rows[BATCHES][0] | {"batches": -1}], OPERATORS: []}),
        "the number of batches of the job is -1, below 0",
    ),
    (BATCHES, "operators-at-work"): (
        lambda rows: rows.update({OPERATORS: []}),
        "6 batches, but nothing of any operator",
    ),
    (BATCHES, "ms-not-negative"): (put(BATCHES, ms=-1.0), "the time of the job is -1, below 0"),
    (BATCHES, "cpu-not-negative"): (
        put(BATCHES, cpu=-1.0),
        "the CPU time of the job is -1, below 0",
    ),
    (BATCHES, "memory-not-negative"): (
        put(BATCHES, memory=-1),
        "the memory of the job is -1, below 0",
    ),
    (BATCHES, "state_rows-not-negative"): (
        put(BATCHES, state_rows=-1),
        "the number of rows in the states of the job is -1, below 0",
    ),
    (BATCHES, "state_bytes-not-negative"): (
        put(BATCHES, state_bytes=-1),
        "the size of the states of the job is -1, below 0",
    ),
    (BATCHES, "backlog-not-negative"): (
        put(BATCHES, backlog=-1),
        "the backlog of the job is -1, below 0",
    ),
    (BATCHES, "busy-not-negative"): (
        put(BATCHES, busy=-0.1),
        "the busy share of the job is -0.1, below 0",
    ),
    (BATCHES, "results-not-negative"): (
        put(BATCHES, results=-1),
        "the number of results of the job is -1, below 0",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> tuple[StatsStore, dict[str, Window]]:
    """A window for each broken set, all in one store, and which it is; good ones are between."""
    store = StatsStore.of(tmp_path_factory.mktemp("broken"))
    windows: dict[Window, Rows] = {}
    places = {}
    for (table, rule), (change, _) in BROKEN.items():
        between = [good() for _ in range(ENOUGH + 1 if table == STREAMS else 0)]
        rows = good()
        change(rows)
        for content in (*between, rows):
            window = Window(len(windows) * MINUTE, (len(windows) + 1) * MINUTE)
            windows[window] = content
        places[f"{table} {rule}"] = window
    _write_at_once(store, windows)
    return store, places


def _write_at_once(store: StatsStore, windows: Mapping[Window, Rows]) -> None:
    for table, schema in GATHERED.items():
        rows = [
            {"window_start": window.start, "window_end": window.end} | row
            for window, content in windows.items()
            for row in content[table]
        ]
        write_deltalake(store.path(table), pa.Table.from_pylist(rows, schema=schema))


@pytest.fixture(scope="module")
def verdicts(broken: tuple[StatsStore, dict[str, Window]]) -> dict[Window, Verdict]:
    return {verdict.window: verdict for verdict in judge(broken[0])}


@pytest.mark.parametrize(("table", "rule"), BROKEN, ids=lambda part: part)
def test_broken_data_fails_its_expectation_and_no_other(
    broken: tuple[StatsStore, dict[str, Window]],
    verdicts: dict[Window, Verdict],
    table: str,
    rule: str,
):
    _, reason = BROKEN[table, rule]
    verdict = verdicts[broken[1][f"{table} {rule}"]]
    assert (failed(verdict), verdict.reasons) == ([(table, rule)], [f"{table}: {reason}"])


def test_broken_windows_are_in_quarantine_and_all_others_are_good(
    broken: tuple[StatsStore, dict[str, Window]], verdicts: dict[Window, Verdict]
):
    store, places = broken
    assert len(places) == len(BROKEN)
    assert set(store.good()) == set(store.windows()) - set(places.values())


@pytest.mark.parametrize("table", GATHERED)
def test_a_table_with_a_column_of_another_type_fails_and_is_not_read(store: StatsStore, table: str):
    path = store.path(table)
    content = DeltaTable(path).to_pyarrow_table()
    name = content.column_names[-1]
    other = content.set_column(
        content.num_columns - 1, name, pa.array([True] * content.num_rows, pa.bool_())
    )
    write_deltalake(path, other, mode="overwrite", schema_mode="overwrite")
    (*_, verdict) = judge(store)
    assert failed(verdict) == [(table, "layout")]
    assert verdict.reasons == [f"{table}: not of the types that they should be: {name} (boolean)"]
    assert store.good() == []


def test_tables_of_an_earlier_and_of_a_later_version_are_judged_by_what_they_have(
    store: StatsStore,
):
    """Of the one a column is null, which is not judged; of the other one more is there."""
    for table, lacks in ((STREAMS, ["least", "most"]), (BATCHES, ["busy"])):
        content = DeltaTable(store.path(table)).to_pyarrow_table().drop_columns(lacks)
        write_deltalake(store.path(table), content, mode="overwrite", schema_mode="overwrite")
    more = DeltaTable(store.path(EDGES)).to_pyarrow_table()
    more = more.append_column("later", pa.array(["?"] * more.num_rows))
    write_deltalake(store.path(EDGES), more, mode="overwrite", schema_mode="overwrite")
    assert [failed(verdict) for verdict in judge(store)] == [[]] * len(WINDOWS)
    write(store, LAST, good())
    assert [(one.window, one.good) for one in judge(store)] == [(LAST, True)]
    assert [row["least"] for row in store.rows(STREAMS, WINDOWS[-2:])] == [None] * 4 + [
        60,
        120,
        12,
        6,
    ]


def test_what_is_known_too_long_after_is_not_fresh(store: StatsStore):
    late = Expected(EXPECTED.streams, EXPECTED.queries, Delay(1_200, 900))
    (verdict,) = judge(store, late)
    assert verdict.window == LAST
    assert failed(verdict) == [(BATCHES, "gathered-in-time")]
    assert verdict.reasons == [
        "batches: the next window has been complete for 1,200 s, and is not gathered: "
        "more than 900 s"
    ]
    assert judge(store, late) == []
    in_time = Expected(EXPECTED.streams, EXPECTED.queries, Delay(600, 900))
    assert [(one.window, one.good) for one in judge(store, in_time)] == [(LAST, True)]


def test_every_expectation_has_its_broken_set_and_its_reason():
    known = {(table, rule.name) for table, wanted in RULES.items() for rule in wanted}
    known |= {(table, COMPLETE.name) for table in EXPECTED.subjects}
    assert known == set(BROKEN) | {(BATCHES, "gathered-in-time")}
    text = Path("docs/validation.md").read_text(encoding="utf-8")
    assert [rule for _, rule in sorted(known) if f"`{rule}`" not in text] == []


# --- what is only new, unknown or empty ----------------------------------------------------------


def _faster(rows: Rows, factor: float) -> None:
    """Flights at another rate, as all tables would tell of it."""
    changed = round(600 * factor)
    rows[STREAMS][0] = flow("flights", changed)
    rows[COLUMNS][0]["rows"] = changed
    for row in rows[SELECTS]:
        row.update(rows=changed, passed=changed // 4, selectivity=(changed // 4) / changed)


@pytest.mark.parametrize("factor", [0.1, 10])
def test_another_rate_is_drift_and_no_defect(store: StatsStore, factor: float):
    rows = good()
    _faster(rows, factor)
    rows[EDGES][0].update(pairs=1_000.0, matches=20.0)
    rows[COLUMNS][0].update(distinct=20, heavy=[])
    write(store, LAST, rows)
    assert [verdict.reasons for verdict in judge(store)] == [[]]


@pytest.mark.parametrize("factor", [0.1, 10])
def test_another_selectivity_is_drift_and_no_defect(store: StatsStore, factor: float):
    rows = good()
    for row in rows[EDGES]:
        row.update(selectivity=row["selectivity"] * factor, matches=row["matches"] * factor)
    write(store, LAST, rows)
    assert [verdict.reasons for verdict in judge(store)] == [[]]


def test_a_window_without_rows_is_good(store: StatsStore):
    rows = good()
    rows[STREAMS] = [
        flow(name, 0, burstiness=None, width=None, taken=0, late=0, rejected=0)
        for name in STREAMS_OF_JOB
    ]
    for row in rows[COLUMNS]:
        row.update(rows=0, nulls=0, distinct=0, heavy=[])
    for row in rows[EDGES]:
        row.update(pairs=0.0, matches=0.0, selectivity=None, error=None)
    for row in rows[SELECTS]:
        row.update(rows=0, passed=0, selectivity=None)
    rows[COMBINED] = []
    write(store, LAST, rows)
    assert [verdict.reasons for verdict in judge(store)] == [[]]


def test_what_could_not_be_observed_is_not_judged(store: StatsStore):
    rows = good()
    for row in rows[STREAMS]:
        row.update(taken=None, burstiness=None)
    rows[BATCHES][0].update(cpu=None, memory=None, backlog=None, lag=None)
    write(store, LAST, rows)
    assert [verdict.reasons for verdict in judge(store)] == [[]]


def test_a_change_of_width_that_stays_is_believed_after_a_while(tmp_path: Path):
    """Half of ten windows later, the new width is the usual one."""
    store = StatsStore.of(tmp_path)
    for number in range(20):
        rows = good()
        rows[STREAMS][0]["width"] = 40.0 if number < 10 else 8_000.0
        write(store, Window(number * MINUTE, (number + 1) * MINUTE), rows)
    found = [verdict.good for verdict in judge(store)]
    assert found == [True] * 10 + [False] * 5 + [True] * 5


# --- quarantine and release ----------------------------------------------------------------------


def test_only_what_is_new_or_gathered_again_is_judged(store: StatsStore):
    assert judge(store) == []
    assert [verdict.window for verdict in judge(store, again=True)] == WINDOWS


def test_a_window_gathered_again_is_released(store: StatsStore):
    broken = good()
    broken[EDGES][0].update(selectivity=1.7, matches=306_000.0)
    write(store, WINDOWS[2], broken)
    judge(store)
    assert store.good() == [*WINDOWS[:2], *WINDOWS[3:]]
    assert judge(store) == []
    write(store, WINDOWS[2], good())
    assert [(one.window, one.good) for one in judge(store)] == [(WINDOWS[2], True)]
    assert store.good() == WINDOWS


def test_rewriting_the_same_rows_changes_no_verdict(store: StatsStore):
    path = store.path(STREAMS)
    content = DeltaTable(path).to_pyarrow_table()
    backwards = content.take(pa.array(range(content.num_rows - 1, -1, -1)))
    write_deltalake(path, backwards, mode="overwrite")
    assert judge(store) == []


def test_verdict_and_findings_are_kept(store: StatsStore):
    rows = good()
    rows[EDGES][0].update(selectivity=1.7, matches=306_000.0)
    write(store, LAST, rows)
    validate(store, EXPECTED, at=77)
    (verdict,) = store.rows(VERDICTS, [LAST])
    findings = store.rows(VALIDATIONS, [LAST])
    reason = "the selectivity of b-f in gates is 1.7, not within 0..1"
    assert (verdict["good"], verdict["reasons"]) == (False, [f"edges: {reason}"])
    assert verdict["checked"] == len(findings) == len(BROKEN) + 1 + len(GATHERED)
    (broken,) = [row for row in findings if not row["passed"]]
    assert broken | {"window_start": 0, "window_end": 0} == {
        "window_start": 0, "window_end": 0, "table": EDGES, "rule": "selectivity-is-a-share",
        "expectation": "expect_column_values_to_be_between", "passed": False,
        "observed": "0.01 .. 1.7", "reason": reason,
    }  # fmt: skip


def test_many_broken_rows_make_one_short_reason(store: StatsStore):
    rows = good()
    for row in rows[STREAMS]:
        row.update(burstiness=-1.0)
    write(store, LAST, rows)
    (verdict,) = judge(store)
    assert verdict.reasons == [
        "streams: the burstiness of flights is -1, below 0; the burstiness of bags is -1, below 0; "
        "the burstiness of carts is -1, below 0; and 1 more"
    ]


def test_nothing_gathered_nothing_judged(tmp_path: Path):
    assert judge(StatsStore.of(tmp_path)) == []
