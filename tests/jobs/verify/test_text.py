"""Records and values as the rules have them, with what Python's own readers say beside them."""

import csv
import gzip
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from math import inf, isnan, nextafter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from jobs.verify.fields import Token, UnfitError, of_json, of_text
from jobs.verify.text import records
from optimizer.query import Column

NOTHING = object()
"""The text has no value."""


def micros(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp()) * 1_000_000  # type: ignore[misc,arg-type]


TEXTS: list[tuple[str, str, Any]] = [
    ("BIGINT", "9223372036854775807", 2**63 - 1),
    ("BIGINT", "-9223372036854775808", -(2**63)),
    ("BIGINT", "9223372036854775808", NOTHING),
    ("BIGINT", "+007", 7),
    ("BIGINT", "1_000", NOTHING),
    ("BIGINT", "1.0", NOTHING),
    ("BIGINT", "1e3", NOTHING),
    ("BIGINT", " 1", NOTHING),
    ("BIGINT", "\u0667", NOTHING),
    ("BIGINT", "9" * 5000, NOTHING),
    ("TINYINT", "128", NOTHING),
    ("TINYINT", "-128", -128),
    ("DOUBLE", "1e3", 1000.0),
    ("DOUBLE", ".5", 0.5),
    ("DOUBLE", "5.", 5.0),
    ("DOUBLE", "1e999", NOTHING),
    ("DOUBLE", "-Infinity", -inf),
    ("DOUBLE", "INF", inf),
    ("DOUBLE", "1_0", NOTHING),
    ("DOUBLE", "0x10", NOTHING),
    ("DOUBLE", "", NOTHING),
    ("FLOAT", "16777217", 16777216.0),
    ("FLOAT", "16777217.0000000001", 16777218.0),
    ("FLOAT", "1e39", NOTHING),
    ("DECIMAL(5, 2)", "123.45", Decimal("123.45")),
    ("DECIMAL(5, 2)", "-000123.4500", Decimal("-123.45")),
    ("DECIMAL(5, 2)", "123.456", NOTHING),
    ("DECIMAL(5, 2)", "1234", NOTHING),
    ("DECIMAL(5, 2)", "1e2", NOTHING),
    ("DECIMAL(5, 2)", ".", NOTHING),
    ("DECIMAL(38, 38)", f".{'1' * 38}", Decimal(f"0.{'1' * 38}")),
    ("BOOLEAN", "TRUE", True),
    ("BOOLEAN", "yes", NOTHING),
    ("DATE", "2024-02-29", date(2024, 2, 29)),
    ("DATE", "2023-02-29", NOTHING),
    ("DATE", "2023-2-9", NOTHING),
    ("TIMESTAMP", "2024-01-02", micros(2024, 1, 2)),
    ("TIMESTAMP", "2024-01-02 03:04", micros(2024, 1, 2, 3, 4)),
    ("TIMESTAMP", "2024-01-02T03:04:05.1234567Z", micros(2024, 1, 2, 3, 4, 5) + 123456),
    ("TIMESTAMP", "2024-01-02T03:04:05+05:30", micros(2024, 1, 1, 21, 34, 5)),
    ("TIMESTAMP", "2024-01-02T03:04:05-0030", micros(2024, 1, 2, 3, 34, 5)),
    ("TIMESTAMP", "2024-01-02T03:04:05+19:00", NOTHING),
    ("TIMESTAMP", "2024-01-02T24:00:00", NOTHING),
    ("TIMESTAMP", "0001-01-01T00:00:00+01:00", NOTHING),
    ("TIMESTAMP", "9999-12-31T23:59:59.999999Z", 253402300799999999),
    ("TIMESTAMP", "1700000000", NOTHING),
    ("STRING", "", ""),
    ("BINARY", "ä", b"\xc3\xa4"),
]


@pytest.mark.parametrize(("kind", "text", "value"), TEXTS)
def test_values_of_text(kind: str, text: str, value: Any):
    if value is NOTHING:
        with pytest.raises(UnfitError):
            of_text(Column("c", kind))(text)
    else:
        found = of_text(Column("c", kind))(text)
        assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", ["NaN", "nan", "-NAN"])
def test_no_number(text: str):
    assert isnan(of_text(Column("c", "DOUBLE"))(text))


def test_floats_are_the_nearest_of_32_bits():
    """Also where the nearest of 64 bits lies just between two of them."""
    r = Random(1)
    read = of_text(Column("c", "FLOAT"))
    for _ in range(300):
        low = np.float32(r.uniform(1, 2))
        high = np.nextafter(low, np.float32(inf))
        middle = (Fraction(float(low)) + Fraction(float(high))) / 2
        between = float(middle)
        assert read(repr(nextafter(between, inf))) == float(high)
        assert read(repr(nextafter(between, -inf))) == float(low)
        digits = str(Decimal(between))
        assert read(digits + "0001") == float(high)
        assert float(digits + "0001") == between


JSON: list[tuple[str, Any, Any]] = [
    ("BIGINT", Token("7"), 7),
    ("BIGINT", Token("7.0"), NOTHING),
    ("BIGINT", "7", NOTHING),
    ("BIGINT", True, NOTHING),
    ("DOUBLE", Token("7"), 7.0),
    ("DOUBLE", "Infinity", inf),
    ("DOUBLE", "inf", NOTHING),
    ("DOUBLE", "7", NOTHING),
    ("BOOLEAN", "true", NOTHING),
    ("BOOLEAN", True, True),
    ("STRING", Token("7"), NOTHING),
    ("STRING", {}, NOTHING),
    ("STRING", "7", "7"),
    ("TIMESTAMP", Token("1700000000"), 1_700_000_000_000_000),
    ("TIMESTAMP", Token("1.5"), NOTHING),
    ("TIMESTAMP", Token("999999999999999"), NOTHING),
    ("TIMESTAMP", "2024-01-02", micros(2024, 1, 2)),
    ("DATE", Token("1"), NOTHING),
    ("BINARY", "AAE=", b"\0\1"),
    ("BINARY", "AAE", NOTHING),
    ("BINARY", "A AE=", NOTHING),
    ("DECIMAL(3, 1)", Token("1.5"), Decimal("1.5")),
]


@pytest.mark.parametrize(("kind", "found", "value"), JSON)
def test_values_of_json(kind: str, found: Any, value: Any):
    if value is NOTHING:
        with pytest.raises(UnfitError):
            of_json(Column("c", kind))(found)
    else:
        assert of_json(Column("c", kind))(found) == value


# --- files ---------------------------------------------------------------------------------------

COLUMNS = (Column("k", "BIGINT"), Column("s", "STRING"))


def read(directory: Path, data: bytes, form: str, name: str = "file", **options: str) -> list[Any]:
    """Each record's values, or the text of what is none."""
    path = directory / name
    path.write_bytes(data)
    return [r.values or r.text for r in records(path, form, COLUMNS, options)]


CSV: list[tuple[str, dict[str, str], list[Any]]] = [
    ("1,a\n2,b", {}, [(1, "a"), (2, "b")]),
    ("1,a\r\n2,b\r3,c\n\n", {}, [(1, "a"), (2, "b"), (3, "c")]),
    ('1,"a,""b"""\n2,"x\ny"\n', {}, [(1, 'a,"b"'), (2, "x\ny")]),
    ("1,\n,b\n", {}, [(1, None), (None, "b")]),
    ('1,""\n"",b\n', {}, [(1, ""), (None, "b")]),
    ('1,"a"x\n2,b', {}, ['1,"a"x', (2, "b")]),
    ('1,"a\n2,b', {}, ['1,"a', (2, "b")]),
    ('1,a"b"\n', {}, [(1, 'a"b"')]),
    ("1\n1,2,3\nx,y\n", {}, ["1", "1,2,3", "x,y"]),
    ("k,s\n1,a", {"header": "true"}, [(1, "a")]),
    ("1;a", {"sep": ";"}, [(1, "a")]),
    ("1||a|b", {"delimiter": "||"}, [(1, "a|b")]),
    ("1,'a''b'", {"quote": "'", "escape": "'"}, [(1, "a'b")]),
    (r'1,"a\"b\\"', {"escape": "\\"}, [(1, 'a"b\\')]),
    ('1,"a"', {"quote": ""}, [(1, '"a"')]),
    ("1,NA\n1,\n", {"nullvalue": "NA"}, [(1, None), (1, "")]),
    ("#x\n1,a", {"comment": "#"}, [(1, "a")]),
    (" 1, a ", {"ignoreleadingwhitespace": "true"}, [(1, "a ")]),
]


@pytest.mark.parametrize(("text", "options", "found"), CSV)
def test_csv(tmp_path: Path, text: str, options: dict[str, str], found: list[Any]):
    assert read(tmp_path, text.encode(), "csv", **options) == found


@pytest.mark.parametrize("seed", range(20))
def test_csv_as_python_writes_it(tmp_path: Path, seed: int):
    r = Random(seed)
    rows = [
        (r.randrange(100), "".join(r.choice("ab,\"\n\r'; ä") for _ in range(r.randrange(1, 8))))
        for _ in range(30)
    ]
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n").writerows(rows)
    assert read(tmp_path, written.getvalue().encode(), "csv") == rows


OBJECTS: list[tuple[str, Any]] = [
    ('{"k": 1, "s": "a"}', (1, "a")),
    (' {"s": null}\t', (None, None)),
    ('{"s": "\\ud83d\\ude00"}', (None, "😀")),
    ('{"k": 1} {"k": 2}', None),
    ('{"k": 1} x', None),
    ("{'k': 1}", None),
    ('{"k": 1, "k": 1}', None),
    ('{"k": 1, "z": 1}', None),
    ('{"k": NaN}', None),
    ("[1]", None),
    ("null", None),
    ('{"k": 1,}', None),
    ("[" * 100_000, None),
]


@pytest.mark.parametrize(("line", "values"), OBJECTS)
def test_json(tmp_path: Path, line: str, values: Any):
    assert read(tmp_path, line.encode(), "json") == [values or line]


def test_what_is_no_text(tmp_path: Path):
    assert read(tmp_path, b"1,\xff\n2,b", "csv") == ["1,\ufffd", (2, "b")]
    assert read(tmp_path, b'{"s": "\\ud800"}', "json") == ['{"s": "\\ud800"}']
    assert read(tmp_path, "1,ä".encode("latin-1"), "csv", encoding="latin-1") == [(1, "ä")]


def test_marked_and_compressed(tmp_path: Path):
    line = json.dumps({"k": 1, "s": "a"}).encode()
    assert read(tmp_path, b"\xef\xbb\xbf" + line, "json") == [(1, "a")]
    assert read(tmp_path, gzip.compress(line), "json", name="file.gz") == [(1, "a")]
