"""What JSON and CSV mean: every expected value is written down here by hand, or by Python's csv."""

import bz2
import csv
import gzip
import io
import math
import zlib
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from os import mkfifo
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from jobs.sources.common import Feed, SourceError
from jobs.sources.reading import Reader
from jobs.tables.columns import REASON, ROW
from jobs.verify.text import records
from optimizer.query import Column, Stream

TYPES = {
    "b": "BOOLEAN", "t": "TINYINT", "k": "BIGINT", "f": "FLOAT", "v": "DOUBLE",
    "d": "DECIMAL(10, 2)", "w": "DECIMAL(38, 0)", "s": "STRING", "y": "BINARY", "day": "DATE",
    "ts": "TIMESTAMP",
}  # fmt: skip


def feed(**types: str) -> Feed:
    columns = tuple(Column(name, kind) for name, kind in types.items())
    return Feed(Stream("a", columns, "ts"), 0)


def read(path: Path, form: str, types: dict[str, str] = TYPES, **options: str) -> list[Any]:
    rows: list[Any] = Reader(feed(**types), form, options).rows(path).to_pylist()
    return rows


# --- JSON ----------------------------------------------------------------------------------------

SECOND = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)

MEANS: dict[str, dict[str, Any]] = {
    "{}": {},
    ' \t{ "k" : 1 } ': {"k": 1},
    '{"k": null, "b": true}': {"b": True},
    '{"k": -0}': {"k": 0},
    '{"k": 9223372036854775807, "t": -128}': {"k": 2**63 - 1, "t": -128},
    '{"v": 1, "f": 0.1}': {"v": 1.0, "f": pa.scalar(0.1, pa.float32()).as_py()},
    '{"v": 1E5}': {"v": 100000.0},
    '{"v": 1e-400}': {"v": 0.0},
    '{"v": "-Infinity"}': {"v": -math.inf},
    '{"d": 1.50}': {"d": Decimal("1.50")},
    '{"d": 1.5000}': {"d": Decimal("1.50")},
    '{"d": -99999999.99}': {"d": Decimal("-99999999.99")},
    '{"w": ' + "9" * 38 + "}": {"w": Decimal("9" * 38)},
    '{"s": "a\\u00e9\\n\\"漢"}': {"s": 'aé\n"漢'},
    '{"s": "\\ud83d\\ude00"}': {"s": "😀"},
    '{"s": "a\u2028b"}': {"s": "a\u2028b"},
    '{"s": ""}': {"s": ""},
    '{"\\u006b": 1}': {"k": 1},
    '{"y": "AP8="}': {"y": b"\x00\xff"},
    '{"day": "2024-02-29"}': {"day": date(2024, 2, 29)},
    '{"day": "0001-01-01"}': {"day": date(1, 1, 1)},
    '{"ts": "2023-11-14T22:13:20Z"}': {"ts": SECOND},
    '{"ts": "2023-11-14 22:13:20"}': {"ts": SECOND},
    '{"ts": "2023-11-14T22:13:20.1234569+05:30"}': {
        "ts": datetime(2023, 11, 14, 16, 43, 20, 123456, tzinfo=UTC)
    },
    '{"ts": "2023-11-14T22:13-0800"}': {"ts": datetime(2023, 11, 15, 6, 13, tzinfo=UTC)},
    '{"ts": "2023-11-14"}': {"ts": datetime(2023, 11, 14, tzinfo=UTC)},
    '{"ts": 1700000000}': {"ts": SECOND},
    '{"ts": "9999-12-31T23:59:59.999999Z"}': {
        "ts": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    },
    '{"ts": "1582-10-04T00:00:00Z"}': {"ts": datetime(1582, 10, 4, tzinfo=UTC)},
}

REJECTED = {
    "not json": "not a JSON object",
    "[1]": "not a JSON object",
    "null": "not a JSON object",
    '"k"': "not a JSON object",
    '{"k": 1} x': "not a JSON object",
    '{"k": 1}{"k": 2}': "not a JSON object",
    '{"k": 1': "not a JSON object",
    '{"k": 1,}': "not a JSON object",
    "{'k': 1}": "not a JSON object",
    "{k: 1}": "not a JSON object",
    '{"k": 01}': "not a JSON object",
    '{"k": +1}': "not a JSON object",
    '{"v": .5}': "not a JSON object",
    '{"v": NaN}': "not a JSON object",
    '{"v": -Infinity}': "not a JSON object",
    '{"k": 1} // one': "not a JSON object",
    '{"k": /* one */ 1}': "not a JSON object",
    '{"s": "a\tb"}': "not a JSON object",
    '{"s": "\\x"}': "not a JSON object",
    "[" * 100_000: "not a JSON object",
    '{"k": 1, "k": 1}': "field k is there twice",
    '{"s": {"k": 1, "k": 2}}': "field k is there twice",
    '{"K": 1}': "unknown field K",
    '{"k": 1, "z": 1}': "unknown field z",
    '{"k": "1"}': "k is not BIGINT: 1",
    '{"k": 1.0}': "k is not BIGINT: 1.0",
    '{"k": 1e3}': "k is not BIGINT: 1e3",
    '{"k": true}': "k is not BIGINT: true",
    '{"k": 9223372036854775808}': "k is not BIGINT: 9223372036854775808",
    '{"t": 128}': "t is not TINYINT: 128",
    '{"b": 1}': "b is not BOOLEAN: 1",
    '{"b": "true"}': "b is not BOOLEAN: true",
    '{"v": 1e400}': "v is not DOUBLE: 1e400",
    '{"f": 1e39}': "f is not FLOAT: 1e39",
    '{"v": "1"}': "v is not DOUBLE: 1",
    '{"v": "nan"}': "v is not DOUBLE: nan",
    '{"d": 1.505}': "d is not DECIMAL(10, 2): 1.505",
    '{"d": 100000000}': "d is not DECIMAL(10, 2): 100000000",
    '{"d": "1.5"}': "d is not DECIMAL(10, 2): 1.5",
    '{"w": 1.5}': "w is not DECIMAL(38, 0): 1.5",
    '{"s": 1}': "s is not STRING: 1",
    '{"s": {"a": 1}}': 's is not STRING: {"a": "1"}',
    '{"s": [1, null]}': 's is not STRING: ["1", null]',
    '{"s": "\\ud800"}': "not text in its encoding",
    '{"y": "AP8"}': "y is not BINARY: AP8",
    '{"day": "2023-02-29"}': "day is not DATE: 2023-02-29",
    '{"day": "0000-01-01"}': "day is not DATE: 0000-01-01",
    '{"day": 1}': "day is not DATE: 1",
    '{"ts": ""}': "ts is not TIMESTAMP: ",
    '{"ts": "now"}': "ts is not TIMESTAMP: now",
    '{"ts": "2023-11-14T24:00:00Z"}': "ts is not TIMESTAMP: 2023-11-14T24:00:00Z",
    '{"ts": "2023-11-14T22:13:60Z"}': "ts is not TIMESTAMP: 2023-11-14T22:13:60Z",
    '{"ts": "9999-12-31T23:00:00-02:00"}': "ts is not TIMESTAMP: 9999-12-31T23:00:00-02:00",
    '{"ts": 1700000000000}': "ts is not TIMESTAMP: 1700000000000",
    '{"ts": 1.5}': "ts is not TIMESTAMP: 1.5",
    '{"k": 1, "t": 300, "d": 0.001}': "t is not TINYINT: 300, d is not DECIMAL(10, 2): 0.001",
}


def test_json(tmp_path: Path):
    """One file of all: a line never spoils the one after it."""
    path = tmp_path / "x.json"
    lines = [line for pair in zip([*MEANS] * 3, REJECTED, strict=False) for line in pair]
    path.write_bytes("\r\n".join([*lines, "", "  ", *MEANS]).encode())

    rows = read(path, "json")

    empty = dict.fromkeys(TYPES)
    expected = [empty | MEANS[line] for line in lines[::2]] + [empty | m for m in MEANS.values()]
    assert [{name: row[name] for name in TYPES} for row in rows if row[REASON] is None] == expected
    wrong = {row[ROW]: row[REASON] for row in rows if row[REASON] is not None}
    assert wrong == {line: REJECTED[line] for line in lines[1::2]}
    assert len(lines) // 2 == len(REJECTED)


def test_the_column_of_another_type_is_null_and_the_others_stay(tmp_path: Path):
    path = tmp_path / "x.json"
    path.write_text('{"k": 1, "t": 300}')
    (row,) = read(path, "json")
    assert (row["k"], row["t"], row[ROW]) == (1, None, '{"k": 1, "t": 300}')


# --- CSV -----------------------------------------------------------------------------------------

TEXTS = {"s": "STRING", "k": "BIGINT", "ts": "TIMESTAMP"}
VALUES = [
    'plain', 'a "quoted" word', "a,b", "two\nlines", "two\r\nlines", '"', '""', ",", "'", "\\",
    'a\\"b', 'back\\', " spaces ", "\ttab", "é漢😀", "\u2028", "#", "NULL", "null", "NaN", "None",
    "-", "a;b", "0x1", "\x00", "=1+1", 'ends in "',
]  # fmt: skip


def by_csv(path: Path, values: list[str], **how: Any) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, **how).writerows([v, i, SECOND.isoformat()] for i, v in enumerate(values))


def frame(values: list[str]) -> pd.DataFrame:
    return pd.DataFrame({"s": values, "k": range(len(values)), "ts": [SECOND] * len(values)})


WRITERS: dict[str, Callable[[Path, list[str]], object]] = {
    "csv": by_csv,
    "csv, all in quotes": lambda path, v: by_csv(path, v, quoting=csv.QUOTE_ALL),
    "csv, texts in quotes": lambda path, v: by_csv(path, v, quoting=csv.QUOTE_NONNUMERIC),
    "csv, lines of Unix": lambda path, v: by_csv(path, v, lineterminator="\n"),
    "pandas": lambda path, v: frame(v).to_csv(path, index=False, header=False),
    "pyarrow": lambda path, v: pa_csv.write_csv(
        pa.Table.from_pandas(frame(v), preserve_index=False), path,
        pa_csv.WriteOptions(include_header=False),
    ),
    "a spreadsheet": lambda path, v: path.write_bytes(
        b"\xef\xbb\xbf" + "".join(f'"{x.replace(chr(34), chr(34) * 2)}",{i},2023-11-14 22:13:20\r\n'
        for i, x in enumerate(v)).encode()
    ),
}  # fmt: skip


@pytest.mark.parametrize("writer", WRITERS)
def test_csv_as_others_write_it(tmp_path: Path, writer: str):
    path = tmp_path / "x.csv"
    WRITERS[writer](path, VALUES)
    rows = read(path, "csv", TEXTS)
    assert [row[REASON] for row in rows] == [None] * len(VALUES)
    assert [row["s"] for row in rows] == VALUES
    assert [row["k"] for row in rows] == list(range(len(VALUES)))
    assert {row["ts"] for row in rows} == {SECOND}


def test_what_is_empty(tmp_path: Path):
    """Null without quotes, an empty text in quotes; what is no text has no empty value."""
    path = tmp_path / "x.csv"
    path.write_text('x,,\n"",1,\n,"",""\n\n')
    rows = read(path, "csv", TEXTS)
    assert [row["s"] for row in rows] == ["x", "", None]
    assert [row["k"] for row in rows] == [None, 1, None]
    assert [row[REASON] for row in rows] == [None] * 3
    path.write_text("NA,NA,\n,1,\n")
    rows = read(path, "csv", TEXTS, nullValue="NA")
    assert [(row["s"], row["k"]) for row in rows] == [(None, None), ("", 1)]


WRONG_CSV = {
    "1": "1 fields; stream a declares 3",
    "a,1,,": "4 fields; stream a declares 3",
    '"a"b,1,': "text after a closing quote",
    '"a" ,1,': "text after a closing quote",
    '"a,1,': "a quote that is not closed",
    "a,1_000,": "k is not BIGINT: 1_000",
    "a,\u0661,": "k is not BIGINT: \u0661",
    "a, 1,": "k is not BIGINT:  1",
    "a,1.0,": "k is not BIGINT: 1.0",
    "a,,20231114": "ts is not TIMESTAMP: 20231114",
    "a,,14.11.2023": "ts is not TIMESTAMP: 14.11.2023",
}


@pytest.mark.parametrize("line", WRONG_CSV)
def test_a_record_that_is_none(tmp_path: Path, line: str):
    """The ones before and after it are read."""
    path = tmp_path / "x.csv"
    path.write_text(f'5" disk,1,\n{line}\nafter,2,', encoding="utf-8")
    rows = read(path, "csv", TEXTS)
    assert [row["s"] for row in rows if row[REASON] is None] == ['5" disk', "after"]
    assert [(r[ROW], r[REASON]) for r in rows if r[REASON]] == [(line, WRONG_CSV[line])]


def test_options_of_csv(tmp_path: Path):
    path = tmp_path / "x.csv"
    path.write_text("s;k;ts\n# no row\n'it\\'s';1;\n a ; 2 ;\n")
    options = {
        "sep": ";", "quote": "'", "escape": "\\", "comment": "#", "header": "true",
        "ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true",
    }  # fmt: skip
    rows = read(path, "csv", TEXTS, **options)
    assert [(row["s"], row["k"], row[REASON]) for row in rows] == [
        ("it's", 1, None), ("a", 2, None),
    ]  # fmt: skip
    path.write_text('"a||1||\n')
    assert [row["s"] for row in read(path, "csv", TEXTS, sep="||", quote="")] == ['"a']


def test_more_options_of_csv(tmp_path: Path):
    """`verify` reads the same."""
    types = {"s": "STRING", "y": "BINARY", "v": "DOUBLE", "ts": "TIMESTAMP"}
    options = {
        "lineSep": "|", "emptyValue": "none", "nullValue": "NA", "nanValue": "-",
        "positiveInf": "++", "negativeInf": "nan",
    }  # fmt: skip
    path = tmp_path / "x.csv"
    path.write_text('"","",-,NA|-,a\r\nb,++,"1970-01-01"|"x|y",NA,nan,|,,"",""|"q')
    rows = read(path, "csv", types, **options)
    assert [(r["s"], r["y"], repr(r["v"])) for r in rows if r[REASON] is None] == [
        ("none", b"none", "nan"), ("-", b"a\r\nb", "inf"), ("x|y", None, "-inf"), ("", b"", "None"),
    ]  # fmt: skip
    assert [r[ROW] for r in rows if r[REASON]] == ['"q']
    lower = {name.lower(): value for name, value in options.items()}
    judged = list(records(path, "csv", feed(**types).stream.columns, lower))
    assert [one.values and (*one.values[:2], repr(one.values[2])) for one in judged] == [
        *((r["s"], r["y"], repr(r["v"])) for r in rows[:4]), None,
    ]  # fmt: skip


def test_ends_of_lines_in_json(tmp_path: Path):
    path = tmp_path / "x.json"
    path.write_text('{"k":\n1}|{"k": 2}')
    assert [row["k"] for row in read(path, "json", TEXTS, lineSep="|")] == [1, 2]
    judged = records(path, "json", feed(**TEXTS).stream.columns, {"linesep": "|"})
    assert [one.values for one in judged] == [(None, 1, None), (None, 2, None)]


HEADERS = {
    "s,k,ts\n": None,
    '\ufeff"s","k","ts"\r\n': None,
    "": None,
    "s,k,x,ts\n": "column x is new",
    "k,s,ts\n": "the header says k, s, ts",
    "S,k,ts\n": "column s is missing",
}


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_names_the_columns(tmp_path: Path, header: str):
    path = tmp_path / "x.csv"
    path.write_text(header + ("x,1,\n" if header else ""), encoding="utf-8")
    reader = Reader(feed(**TEXTS), "csv", {"header": "true"})
    if (message := HEADERS[header]) is None:
        reader.check(path)
        assert [row["s"] for row in reader.rows(path).to_pylist()] == (["x"] if header else [])
    else:
        with pytest.raises(SourceError, match=message):
            reader.check(path)


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, form: str):
    mkfifo(tmp_path / "x")
    reader = Reader(feed(**TEXTS), form, {"header": "true"})
    reader.check(tmp_path / "x")
    assert reader.plain(tmp_path / "x") is None
    assert reader.rows(tmp_path / "x").num_rows == 0


# --- bytes ---------------------------------------------------------------------------------------


def test_a_line_that_is_no_text_is_rejected(tmp_path: Path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"a,1,\n\xff\xfe,2,\n\xc3\xa9,3,\n")
    rows = read(path, "csv", TEXTS)
    assert [row["s"] for row in rows] == ["a", None, "é"]
    assert [row[REASON] for row in rows] == [None, "not text in its encoding", None]
    assert rows[1][ROW] == "\ufffd\ufffd,2,"


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "UTF-16", "windows-1252", "UTF-8"])
def test_encodings(tmp_path: Path, encoding: str):
    path = tmp_path / "x.csv"
    path.write_bytes("é,1,\n".encode(encoding))
    assert [row["s"] for row in read(path, "csv", TEXTS, encoding=encoding)] == ["é"]


def zstd(data: bytes) -> bytes:
    made = pa.BufferOutputStream()
    with pa.CompressedOutputStream(made, "zstd") as stream:
        stream.write(data)
    return bytes(made.getvalue())


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "x.csv.gz": gzip.compress, "x.bz2": bz2.compress, "x.deflate": zlib.compress, "x.zst": zstd,
    "two.gz": lambda data: gzip.compress(data[:7]) + gzip.compress(data[7:]),
}  # fmt: skip


@pytest.mark.parametrize("name", PACKED)
def test_compressed_files(tmp_path: Path, name: str):
    data, path = PACKED[name](b"s,k,ts\n" + b"a,1,\n" * 1000), tmp_path / name
    path.write_bytes(data)
    reader = Reader(feed(**TEXTS), "csv", {"header": "true"})
    reader.check(path)
    assert reader.count(path) == 1000
    path.write_bytes(data[: len(data) // 2])
    (row,) = read(path, "csv", TEXTS)
    assert row[REASON].startswith("cannot be read: ")
    assert row[ROW] == str(path)


def test_what_is_not_opened_is_not_taken_for_text(tmp_path: Path):
    path = tmp_path / "x.csv.snappy"
    path.write_bytes(b"a,1,\n")
    (row,) = read(path, "csv", TEXTS)
    assert row[REASON].startswith("cannot be read: snappy's blocks are not read: write gzip")


# --- against Python ------------------------------------------------------------------------------


def test_numbers_as_python_reads_them(tmp_path: Path):
    """Decimals exactly, doubles to the last bit."""
    texts = [
        *(f"{n}e{e}" for n in ("1", "-2.5", "9.87654321") for e in (-300, 22, 300)),
        *(str(x / 7) for x in range(-50, 50)), "0.1", "5e-324", "1.7976931348623157e308",
    ]  # fmt: skip
    exact = ["0.1", "-.5", "5.", "+1.50", "00012.3400", "99999999.99", "-0.00", "12345678.9"]
    path = tmp_path / "x.csv"
    path.write_text("".join(f"{x},,\n" for x in texts) + "".join(f",{x},\n" for x in exact))
    rows = read(path, "csv", {"v": "DOUBLE", "d": "DECIMAL(10, 2)", "ts": "TIMESTAMP"})
    assert [row["v"] for row in rows[: len(texts)]] == [float(x) for x in texts]
    assert [row["d"] for row in rows[len(texts) :]] == [Decimal(x) for x in exact]


def test_times_as_python_writes_them(tmp_path: Path):
    zones = [UTC, timezone(timedelta(hours=5, minutes=30)), timezone(-timedelta(hours=11))]
    moments = [
        datetime(1970, 1, 1, tzinfo=zone) + timedelta(days=days, microseconds=micros)
        for zone in zones
        for days in (-700_000, -1, 0, 19_000, 2_900_000)
        for micros in (0, 1, 999_999, 86_399_999_999)
    ]
    path = tmp_path / "x.csv"
    with io.StringIO() as text:
        for moment in moments:
            text.write(f",,{moment.isoformat()}\n,,{moment}\n")
        path.write_text(text.getvalue())
    rows = read(path, "csv", TEXTS)
    assert [row["ts"] for row in rows] == [m for moment in moments for m in (moment, moment)]
