"""Statistics of windows, against DuckDB's over the same tuples."""

import random
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from optimizer.query import Query, Stream
from optimizer.sql import parse, parse_schema
from stats import edges
from stats.collect import Input, Subject, collect
from stats.store import (
    BATCHES,
    COLUMNS,
    COMBINED,
    EDGES,
    GROUPS,
    OPERATORS,
    SELECTS,
    STREAMS,
    Window,
)
from stats.windows import Batch, Counted, Worked

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
SIZE = 10 * SECOND
SCHEMA = "k BIGINT, v DOUBLE, s STRING, ts TIMESTAMP"
STREAMS_OF = {name: Stream(name, parse_schema(SCHEMA), "ts") for name in "abc"}
ARROW = pa.schema([
    ("k", pa.int64()), ("v", pa.float64()), ("s", pa.string()),
    ("ts", pa.timestamp("us", "UTC")), ("@batch", pa.int64()),
])  # fmt: skip

QUERIES = {
    "joined": "SELECT a.k FROM a JOIN b ON a.k = b.k JOIN c ON b.k + 1 = c.k AND b.s = c.s"
    " WHERE a.v > 0.25 AND a.s <> 's1' AND c.v < 0.9",
    "compared": "SELECT a.k FROM a JOIN b ON a.v < b.v JOIN c ON b.k = c.k AND b.v + c.v < 1",
    "itself": "SELECT x.k FROM a x JOIN a y ON x.k = y.k WHERE x.v > 0.5",
    "counted": "SELECT a.s, count(*) AS n FROM a JOIN b ON a.k = b.k WHERE b.v > 0.1"
    " GROUP BY a.s, window(a.ts, '10 seconds')",
}


def windows(count: int) -> list[Window]:
    return [Window(START + i * SIZE, START + (i + 1) * SIZE) for i in range(count)]


def tuples(seed: int, count: int, since: int, until: int, keys: int = 20) -> pa.Table:
    """A tenth without a key, half of the others with the same one; few different times."""
    r = random.Random(seed)
    return pa.table(
        {
            "k": [
                None if r.random() < 0.1 else min(r.randrange(2 * keys), keys) for _ in range(count)
            ],
            "v": [r.random() for _ in range(count)],
            "s": [None if r.random() < 0.05 else "s" * r.randrange(4) + "1" for _ in range(count)],
            "ts": [
                START + since + r.randrange((until - since) // 1000) * 1000 for _ in range(count)
            ],
            "@batch": [r.randrange(3) for _ in range(count)],
        },
        schema=ARROW,
    )


def queries(texts: Mapping[str, str]) -> dict[str, Query]:
    return {name: parse(text, STREAMS_OF, 5 * SECOND) for name, text in texts.items()}


def gathered(
    spark: SparkSession,
    streams: Mapping[str, pa.Table],
    count: int,
    texts: Mapping[str, str] = QUERIES,
    batches: Sequence[Batch] = (),
) -> dict[str, list[dict[str, Any]]]:
    """All rows of each table, with the number of their window."""
    inputs = {
        name: Input(STREAMS_OF[name], spark.createDataFrame(rows), {})
        for name, rows in streams.items()
    }
    subject = Subject(windows(count), windows(1)[0], inputs, queries(texts), batches)
    return {
        table: [row | {"w": windows(count).index(w)} for w, rows in by.items() for row in rows]
        for table, by in collect(spark, subject).items()
    }


def asked(streams: Mapping[str, pa.Table], text: str) -> list[tuple[Any, ...]]:
    """What DuckDB says; `w` is the number of a tuple's window."""
    with duckdb.connect() as connection:
        for name, rows in streams.items():
            connection.register(f"_{name}", rows)
            connection.execute(
                f"CREATE TABLE {name} AS SELECT *, (epoch_us(ts) - {START}) // {SIZE} AS w, "
                f"(epoch_us(ts) - {START}) // {SECOND} % 10 AS second FROM _{name}"
            )
        return connection.execute(text).fetchall()


DATA = {
    "a": tuples(1, 900, 0, 4 * SIZE),
    "b": pa.concat_tables([tuples(2, 400, SIZE, 2 * SIZE), tuples(3, 400, 3 * SIZE, 4 * SIZE)]),
    "c": tuples(4, 300, 3 * SIZE, 4 * SIZE),
}
"""b has an empty window, c starts late; in the last window all are there."""


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str, list[dict[str, Any]]]:
    return gathered(spark, DATA, 4)


def test_streams(found: Mapping[str, Any]):
    expected = {
        (w, name): figures
        for name in DATA
        for w, *figures in asked(
            DATA,
            "SELECT w, sum(n), sum(width) / sum(n), var_samp(n) / avg(n) FROM ("
            f"SELECT w, second, count(k1) AS n, coalesce(sum(width), 0) AS width FROM "
            "(SELECT * FROM range(4) AS t(w), range(10) AS u(second)) LEFT JOIN "
            "(SELECT w, second, 1 AS k1, 24 + coalesce(strlen(s), 0) AS width "
            f"FROM {name}) USING (w, second) GROUP BY ALL) GROUP BY w",
        )
    }
    for row in found[STREAMS]:
        rows, width, burstiness = expected[row["w"], row["stream"]]
        assert row["rows"] == rows
        assert row["rate"] == rows / 10
        if rows:
            assert row["width"] == pytest.approx(width)
            assert row["burstiness"] == pytest.approx(burstiness)
        else:
            assert (row["width"], row["burstiness"]) == (None, None)
    assert len(found[STREAMS]) == len(expected) == 12


ADDED = "TRY_ADD(k, 1)"


def test_columns(found: Mapping[str, Any]):
    rows = {(r["stream"], r["value"], r["w"]): r for r in found[COLUMNS]}
    values = {(stream, value) for stream, value, _ in rows}
    assert values == {
        ("a", "k"), ("b", "k"), ("b", ADDED), ("b", "s"), ("c", "k"), ("c", "s"),
    }  # fmt: skip
    for stream, text in values:
        value = "k + 1" if text == ADDED else text
        counted = asked(
            DATA,
            f"SELECT w, count(*), count(*) - count({value}), count(DISTINCT {value}) "
            f"FROM {stream} GROUP BY w",
        )
        for w, *figures in counted:
            row = rows[stream, text, w]
            assert [row["rows"], row["nulls"], row["distinct"]] == figures
            heavy = asked(
                DATA,
                f"SELECT CAST({value} AS VARCHAR) AS x, count(*) AS n FROM {stream} WHERE w = {w} "
                f"AND {value} IS NOT NULL GROUP BY x ORDER BY n DESC, x LIMIT 10",
            )
            assert [(one["value"], one["rows"]) for one in row["heavy"]] == heavy
    assert rows["c", "k", 0] == {
        "stream": "c", "value": "k", "w": 0, "rows": 0, "nulls": 0, "distinct": 0, "heavy": [],
    }  # fmt: skip


EDGES_OF = [
    ("joined", "a", "b", "a.k = b.k", "a.v > 0.25 AND a.s <> 's1'", "TRUE"),
    ("joined", "b", "c", "b.k + 1 = c.k AND b.s = c.s", "TRUE", "c.v < 0.9"),
    ("compared", "a", "b", "a.v < b.v", "TRUE", "TRUE"),
    ("compared", "b", "c", "b.k = c.k AND b.v + c.v < 1", "TRUE", "TRUE"),
    ("counted", "a", "b", "a.k = b.k", "TRUE", "b.v > 0.1"),
]


@pytest.mark.parametrize(("query", "one", "other", "predicates", "first", "second"), EDGES_OF)
def test_edges(  # noqa: PLR0917
    found: Mapping[str, Any],
    query: str,
    one: str,
    other: str,
    predicates: str,
    first: str,
    second: str,
):
    rows = [r for r in found[EDGES] if (r["query"], r["one"], r["other"]) == (query, one, other)]
    sides = f"(FROM {one} WHERE {first}) AS {one}, (FROM {other} WHERE {second}) AS {other}"
    text = f"SELECT {one}.w, count(*), count(*) FILTER ({predicates}) FROM {sides}"
    expected = {
        w: figures for w, *figures in asked(DATA, f"{text} WHERE {one}.w = {other}.w GROUP BY 1")
    }
    assert [row["w"] for row in rows] == [0, 1, 2, 3]
    assert expected
    for row in rows:
        pairs, matches = expected.get(row["w"], (0, 0))
        assert (row["pairs"], row["matches"]) == (pairs, matches)
        assert (row["selectivity"], row["error"]) == (
            (matches / pairs, 0) if pairs else (None, None)
        )
        assert row["method"] == "exact"


def test_a_stream_joined_with_itself(found: Mapping[str, Any]):
    text = "SELECT x.w, count(*) FROM a AS x JOIN a AS y ON x.w = y.w AND x.k = y.k WHERE x.v > 0.5"
    assert {r["w"]: r["matches"] for r in found[EDGES] if r["query"] == "itself"} == dict(
        asked(DATA, f"{text} GROUP BY 1")
    )


def test_selects(found: Mapping[str, Any]):
    conditions = {
        ("joined", "a", "0.25 < a.v"), ("joined", "a", "a.s <> 's1'"), ("joined", "c", "c.v < 0.9"),
        ("itself", "x", "0.5 < x.v"), ("counted", "b", "0.1 < b.v"),
    }  # fmt: skip
    rows = {(r["query"], r["alias"], r["predicate"], r["w"]): r for r in found[SELECTS]}
    assert {key[:3] for key in rows} == conditions
    for query, alias, text in conditions:
        stream = "a" if alias == "x" else alias
        for w, total, passed in asked(
            DATA,
            f"SELECT w, count(*), count(*) FILTER ({text}) FROM {stream} AS {alias} GROUP BY w",
        ):
            row = rows[query, alias, text, w]
            assert (row["rows"], row["passed"]) == (total, passed)
            assert row["selectivity"] == passed / total
    assert rows["counted", "b", "0.1 < b.v", 0]["selectivity"] is None


def test_equal_tuples_of_a_batch_are_combined(found: Mapping[str, Any]):
    left = {
        "a": 'SELECT w, count(DISTINCT ("@batch", k, s, ts)) / 10 FROM a GROUP BY w',
        "b": 'SELECT w, count(DISTINCT ("@batch", k, ts)) / 10 FROM b WHERE v > 0.1 GROUP BY w',
    }
    for row in found[COMBINED]:
        assert row["rate"] == dict(asked(DATA, left[row["alias"]])).get(row["w"], 0)
    assert len(found[COMBINED]) == 8


# --- samples -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sampled(spark: SparkSession) -> list[dict[str, Any]]:
    """A hundred windows, of which each draws 64 of 300 tuples, or of a key's 100."""
    data = {
        "a": pa.concat_tables([tuples(w, 300, w * SIZE, (w + 1) * SIZE, 2) for w in range(100)]),
        "b": pa.concat_tables(
            [tuples(1000 + w, 330, w * SIZE, (w + 1) * SIZE, 2) for w in range(100)]
        ),
    }
    texts = {
        "theta": "SELECT a.k FROM a JOIN b ON a.v < b.v",
        "rare": "SELECT a.k FROM a JOIN b ON abs(a.v - b.v) < 0.02",
        "within": "SELECT a.k FROM a JOIN b ON a.k = b.k AND a.v * b.v < 0.2",
    }
    conditions = {"theta": "a.v < b.v", "rare": "abs(a.v - b.v) < 0.02",
                  "within": "a.k = b.k AND a.v * b.v < 0.2"}  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edges, "SAMPLES", (64,))
        rows = gathered(spark, data, 100, texts)[EDGES]
    counted = ", ".join(f"count(*) FILTER ({text}) / count(*)" for text in conditions.values())
    known = asked(data, f"SELECT a.w, {counted} FROM a JOIN b ON a.w = b.w GROUP BY 1")
    true = {(q, w): x for w, *shares in known for q, x in zip(conditions, shares, strict=True)}
    return [row | {"true": true[row["query"], row["w"]]} for row in rows]


@pytest.mark.parametrize("query", ["theta", "rare", "within"])
def test_a_sample_is_within_its_bound(sampled: list[dict[str, Any]], query: str):
    rows = [row for row in sampled if row["query"] == query]
    assert len(rows) == 100
    assert {row["method"] for row in rows} == {"sampled"}
    off = [abs(row["selectivity"] - row["true"]) / row["error"] for row in rows]
    assert sum(one <= 1 for one in off) >= 95
    assert median(off) > 0.15, "a bound that is always much too wide says nothing"


# --- batches -------------------------------------------------------------------------------------


def _batch(number: int, watermark: int | None, **changes: Any) -> Batch:
    values: dict[str, Any] = {
        "after": START + number * SIZE, "finished": START + (number + 1) * SIZE,
        "since": START + number * SIZE if number else None, "ms": 1000.0, "cpu": 0.5,
        "memory": 100 + number, "backlog": number, "streams": {"a": Counted(10, 2, 1, None)},
        "operators": {"x": Worked(5, 7 + number, 70, 20.0)}, "results": {"counted": 6},
        "emitted": {"counted": (START, START + 2 * SIZE)},
    }  # fmt: skip
    return Batch(number, watermark, **(values | changes))


def test_batches_belong_where_their_watermark_lies(spark: SparkSession):
    batches = [
        _batch(0, None, emitted={}, results={"counted": 0}),
        _batch(1, START + SIZE - 1, cpu=None),
        _batch(2, START + SIZE, operators={}),
        _batch(3, START + 3 * SIZE),
    ]
    empty = {"a": tuples(1, 0, 0, SIZE), "b": tuples(1, 0, 0, SIZE)}
    made = gathered(spark, empty, 3, {"counted": QUERIES["counted"]}, batches)
    first, second, third = made[BATCHES]
    assert (first["batches"], first["ms"], first["cpu"], first["memory"]) == (2, 2000.0, None, 101)
    assert (first["lag"], first["backlog"], first["busy"], first["results"]) == (10.0, 1, 0.1, 6)
    assert (second["batches"], second["cpu"], second["state_rows"]) == (1, 0.5, 0)
    assert third == {"batches": 0, "ms": 0.0, "results": 0, "w": 2}
    assert made[OPERATORS] == [
        {"operator": "x", "batches": 2, "rows": 10, "state_rows": 8, "state_bytes": 70, "ms": 40.0,
         "w": 0}
    ]  # fmt: skip
    assert [(row["w"], row["groups"]) for row in made[GROUPS]] == [(0, 3.0), (1, 3.0), (2, None)]
    streams = [row for row in made[STREAMS] if row["stream"] == "a"]
    assert [row["accepted"] for row in streams] == [20, 10, 0]
    assert [row["late"] for row in streams] == [4, 2, 0]
    assert [row["rejected"] for row in streams] == [2, 1, 0]
