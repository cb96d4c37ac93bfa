"""The query over all input, computed stretch by stretch."""

from collections import Counter
from datetime import UTC, datetime
from random import Random

import duckdb
import pyarrow as pa
import pytest

from jobs.verify.expected import Scope, statements
from optimizer.query import Column, Stream
from optimizer.sql import parse

SECOND = 1_000_000
WINDOW = 10 * SECOND
SPAN = 100
"""Seconds over which tuples lie; also before 1970."""


def stream(name: str) -> Stream:
    return Stream(name, (Column("k", "BIGINT"), Column("ts", "TIMESTAMP")), "ts")


STREAMS = {name: stream(name) for name in "abc"}
SQL = "SELECT a.k, a.ts AS at, b.ts AS bt, c.ts AS ct FROM a, b, c WHERE a.k = b.k AND b.k = c.k"


def moment(micros: int) -> datetime:
    return datetime.fromtimestamp(micros // SECOND, UTC).replace(microsecond=micros % SECOND)


def rows(random: Random, count: int, first: int) -> list[tuple[int, int]]:
    """Keys, and times that are often just a window apart."""
    steps = [0, WINDOW, WINDOW + 1, 2 * WINDOW, 3 * WINDOW - 1]
    times = (first + random.randrange(SPAN) * SECOND + random.choice(steps) for _ in range(count))
    return [(random.randrange(3), time) for time in times]


@pytest.mark.parametrize("first", [0, -60 * SECOND])
@pytest.mark.parametrize("seed", range(4))
def test_stretches_put_together_are_the_whole(first, seed):
    random = Random(seed)
    made = {name: rows(random, 60, first) for name in STREAMS}
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, found in made.items():
        table = pa.table(
            {
                "k": pa.array([key for key, _ in found], pa.int64()),
                "ts": pa.array([time for _, time in found], pa.timestamp("us", "UTC")),
                "@time": pa.array([time for _, time in found], pa.int64()),
            }
        )
        connection.register("_rows", table)
        connection.execute(f'CREATE TABLE "input@{name}" AS FROM _rows')
    texts = list(statements(connection, Scope(parse(SQL, STREAMS, WINDOW), None)))
    found = [row for text in texts for row in connection.execute(text).fetchall()]
    expected = [
        (key, moment(at), moment(bt), moment(ct))
        for key, at in made["a"]
        for other, bt in made["b"]
        for third, ct in made["c"]
        if key == other == third and max(at, bt, ct) - min(at, bt, ct) <= WINDOW
    ]
    assert len(texts) > 5
    assert expected
    assert Counter(found) == Counter(expected)


def test_without_input_there_is_nothing():
    connection = duckdb.connect()
    for name in STREAMS:
        connection.execute(
            f'CREATE TABLE "input@{name}" (k BIGINT, ts TIMESTAMPTZ, "@time" BIGINT)'
        )
    (statement,) = statements(connection, Scope(parse(SQL, STREAMS, WINDOW), None))
    assert connection.execute(statement).fetchall() == []
