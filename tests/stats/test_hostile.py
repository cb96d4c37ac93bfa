"""Statistics of streams whose names and values nobody would choose, on machines of any zone.

What is counted is compared with plain Python; that nothing is said to be wrong, too.
"""

import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from math import inf, nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from jobs.commands.stats.collect import SETTINGS
from optimizer.query import Stream
from optimizer.sql import parse, parse_schema
from stats.collect import Input, Subject, collect
from stats.frames import Expected
from stats.store import COLUMNS, COMBINED, EDGES, GATHERED, STREAMS, StatsStore, Window
from stats.validate import validate
from stats.windows import Batch, Counted, Worked

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
SIZE = 10 * SECOND
LEAST, MOST = -(2**63), 2**63 - 1

OWN = ("w", "second", "n", "x0", "s0", "p0", "t0", "width", "values", "missing", "value", "less",
       "tuples", "draws", "all_pairs", "d", "m", "o", "whole", "rows", "window", "stream", "heavy",
       "größe", "a__b", "_from", "_until", "_w", "_batch", "partners", "hits")  # fmt: skip
"""What statistics call things themselves, or once did."""

TYPES: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "big": ("BIGINT", pa.int64(), [LEAST, MOST, 0, None]),
    "tiny": ("TINYINT", pa.int8(), [-128, 127, None, 0]),
    "real": ("DOUBLE", pa.float64(), [nan, inf, -inf, -0.0]),
    "single": ("FLOAT", pa.float32(), [nan, inf, 1.5, None]),
    "exact": ("DECIMAL(38, 10)", pa.decimal128(38, 10),
              [Decimal("9999999999999999999999999999.9999999999"), Decimal(0), None, Decimal(-1)]),
    "text": ("STRING", pa.string(), ["", "'\"`\\", "\u0000\u202e🜚", None]),
    "bits": ("BINARY", pa.binary(), [b"", b"\x00\xff", None, b"a"]),
    "day": ("DATE", pa.date32(), [date(1, 1, 1), date(9999, 12, 31), None, date(1970, 1, 1)]),
    "yes": ("BOOLEAN", pa.bool_(), [True, False, None, True]),
    "null": ("STRING", pa.string(), [None] * 4),
}  # fmt: skip

COLUMNS_OF = {
    **dict.fromkeys(OWN, TYPES["big"][:2]),
    **{name: kind[:2] for name, kind in TYPES.items()},
    "ts": ("TIMESTAMP", pa.timestamp("us", "UTC")),
}
SCHEMA = ", ".join(f"`{name}` {kind}" for name, (kind, _) in COLUMNS_OF.items())
STREAMS_OF = {n: Stream(n, parse_schema(SCHEMA), "ts") for n in ("stream", "w", "größe")}

QUERIES = {
    "window": "SELECT a.w FROM stream a JOIN w b ON "
    + " AND ".join(f"a.`{name}` = b.`{name}`" for name in OWN)
    + " WHERE a.`x0` >= 0 AND b.`values` IS NOT NULL",
    **{
        f"by_{name}": f"SELECT a.w FROM stream a JOIN w b ON a.`{name}` = b.`{name}`"
        for name in TYPES
    },
    "sums": "SELECT a.w FROM stream a JOIN w b ON a.big + 1 = b.big - 1 AND a.tiny < b.tiny"
    " JOIN größe c ON b.`größe` * 2 = c.`größe` WHERE a.big / b.big > 0 OR a.big > 0",
    "threes": "SELECT a.w FROM stream a JOIN w b ON a.bits = b.bits JOIN größe c ON b.bits = c.bits"
    + "".join(f" AND {x}.`{name}` = {y}.`{name}`" for name in OWN for x, y in ("ab", "bc")),
    "grouped": "SELECT a.w, count(*) AS n FROM stream a JOIN w b ON a.w = b.w"
    " GROUP BY a.w, window(a.ts, '10 seconds')",
}


def table(count: int) -> pa.Table:
    """Four kinds of rows in turn, one a second; the numbers of statistics' own names are equal."""
    values: dict[str, list[Any]] = {name: [i % 4 for i in range(count)] for name in OWN}
    values |= {name: [kind[2][i % 4] for i in range(count)] for name, kind in TYPES.items()}
    values["ts"] = [START + i * SECOND for i in range(count)]
    fields = [(name, kind) for name, (_, kind) in COLUMNS_OF.items()]
    whole = pa.table(values, schema=pa.schema(fields))
    return whole.append_column("@batch", pa.array([0] * count, pa.int64()))


@pytest.fixture
def gathers(spark: SparkSession) -> SparkSession:
    """A session set as that of `stats collect`."""
    session = spark.newSession()
    for name, value in SETTINGS.items():
        if session.conf.isModifiable(name):
            session.conf.set(name, value)
    return session


def test_names_and_values_that_nobody_would_choose(gathers: SparkSession, tmp_path: Path):
    streams = {"stream": table(20), "w": table(12), "größe": table(0)}
    windows = [Window(START + i * SIZE, START + (i + 1) * SIZE) for i in range(3)]
    queries = {name: parse(text, STREAMS_OF, 5 * SECOND) for name, text in QUERIES.items()}
    counted = {n: Counted(rows.num_rows, 0, 0, START + 29 * SECOND if rows.num_rows else None)
               for n, rows in streams.items()}  # fmt: skip
    batch = Batch(0, None, START, 0, None, 1.0, 0.1, 1, 0, counted, {"k": Worked(1, 1, 1, 1.0)},
                  {}, {})  # fmt: skip
    inputs = {
        name: Input(STREAMS_OF[name], gathers.createDataFrame(rows), {0: rows.num_rows})
        for name, rows in streams.items()
    }
    found = collect(gathers, Subject(windows, windows[0], inputs, queries, [batch]))

    first = found[EDGES][windows[0]]
    ten = [i % 4 for i in range(10)]
    same = {
        "by_big": lambda a, b: a == b and a != 3,
        "by_real": lambda a, b: a == b,
        "by_text": lambda a, b: a == b and a != 3,
        "by_exact": lambda a, b: a == b and a != 2,
        "by_bits": lambda a, b: a == b and a != 2,
        "by_yes": lambda a, b: (a in (0, 3)) == (b in (0, 3)) and 2 not in (a, b),
        "by_null": lambda a, b: False,
        "grouped": lambda a, b: a == b,
    }
    for query, matches in same.items():
        (edge,) = [row for row in first if row["query"] == query]
        expected = sum(matches(a, b) for a, b in product(ten, ten))
        assert (edge["pairs"], edge["matches"]) == (100, expected), query
    (joined,) = [row for row in first if row["query"] == "window"]
    assert joined["matches"] == sum(a == b for a, b in product(ten, ten))
    heavy = {
        row["value"]: {one["value"]: one["rows"] for one in row["heavy"]}
        for row in found[COLUMNS][windows[0]]
        if row["stream"] == "stream"
    }
    assert heavy["big"] == {str(LEAST): 3, str(MOST): 3, "0": 2}
    assert heavy["values"] == {str(key): n for key, n in Counter(ten).items()}
    rows = {row["stream"]: row["rows"] for row in found[STREAMS][windows[1]]}
    assert rows == {"stream": 10, "w": 2, "größe": 0}
    (left, _) = found[COMBINED][windows[0]]
    assert left["rate"] == 1.0

    store = StatsStore.of(tmp_path)
    for name in GATHERED:
        store.replace_all(name, found[name])
    verdicts = validate(store, Expected(tuple(STREAMS_OF), queries), at=0)
    assert [verdict.reasons for verdict in verdicts] == [[], [], []]


# --- zones of the machine ------------------------------------------------------------------------

WINDOWS = """
from datetime import datetime, UTC
from pathlib import Path
from stats.store import STREAMS, BATCHES, VERDICTS, StatsStore, Window
from stats.validate import validate
from stats.frames import Expected
from stats.report import render
from stats.costs import SHIPPED, Fit, history, keep
store = StatsStore.of(Path({directory!r}))
hour = 3_600_000_000
for start in {starts!r}:
    window = Window(start, start + hour)
    store.replace(STREAMS, window, [{{"stream": "a", "rows": 3600, "rate": 1.0, "taken": 3600,
        "accepted": 3600, "late": 0, "rejected": 0}}])
    store.replace(BATCHES, window, [{{"batches": 0}}])
verdicts = validate(store, Expected(("a",), {{}}), at=7)
keep(store, "duckdb", Fit(SHIPPED["duckdb"], SHIPPED["duckdb"].values, SHIPPED["duckdb"].values,
     1, 0.1), at=8)
judged = [row["at"].timestamp() for row in store.rows(VERDICTS)]
print([w.start for w in store.good()], [v.reasons for v in verdicts],
      {{row["valid_from"] for row in history(store)}}, judged)
print([line for line in render(store, "j").split("<") if line.startswith("time>20")])
"""

HOUR = 3600 * SECOND
CHANGES = {
    "America/New_York": datetime(2023, 11, 5, 4, tzinfo=UTC),
    "Australia/Lord_Howe": datetime(2024, 4, 6, 13, tzinfo=UTC),
    "Asia/Kathmandu": datetime(2024, 1, 1, tzinfo=UTC),
}
"""Zones, and when clocks there are set back: an hour, half of one, never."""


@pytest.mark.parametrize("zone", CHANGES)
def test_windows_around_a_change_of_clocks_are_told_apart(tmp_path: Path, zone: str):
    """On a machine of that zone, six hours in a row stay six, and are written in UTC."""
    began = CHANGES[zone]
    starts = [int(began.timestamp()) * SECOND + number * HOUR for number in range(6)]
    program = tmp_path / "program.py"
    program.write_text(WINDOWS.format(directory=str(tmp_path), starts=starts))
    paths = {"TZ": zone, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, str(program)], env=os.environ | paths, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    figures, page = done.stdout.splitlines()
    assert figures == f"{starts} {[[]] * 6} {{8}} {[7e-06] * 6}"
    written = [datetime.fromtimestamp(s / SECOND, UTC).strftime("%Y-%m-%d %H") for s in starts]
    assert [line[5:18] for line in eval(page)] == written[::-1]
