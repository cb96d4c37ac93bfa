"""Which columns are a stream's: by name in any case, of a type that holds them, or exactly."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.sources.columns import ignoring, matched
from jobs.sources.common import Feed, SourceError
from jobs.sources.reading import Reader
from jobs.tables.columns import REASON
from jobs.verify import parquet as judge
from jobs.verify.text import records
from optimizer.query import Column, Stream

MOMENT = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
TIMES = pa.array([MOMENT], pa.timestamp("us", "UTC"))


def stream(**types: str) -> Stream:
    columns = tuple(Column(name, kind) for name, kind in types.items())
    return Stream("a", columns, columns[-1].name)


def reader(form: str, exact: Any = False, options: Any = (), **types: str) -> Reader:
    return Reader(Feed(stream(**types), 0, exact), form, dict(options))


# --- Parquet -------------------------------------------------------------------------------------

WIDER: list[tuple[str, pa.DataType, Any, Any]] = [
    ("SMALLINT", pa.int8(), -128, -128),
    ("INT", pa.uint16(), 65_535, 65_535),
    ("BIGINT", pa.int32(), -(2**31), -(2**31)),
    ("BIGINT", pa.uint32(), 2**32 - 1, 2**32 - 1),
    ("FLOAT", pa.float16(), np.float16(0.5), 0.5),
    ("FLOAT", pa.int16(), -32_768, -32_768.0),
    ("DOUBLE", pa.float32(), 0.5, 0.5),
    ("DOUBLE", pa.int32(), 2**31 - 1, 2.0**31 - 1),
    ("DECIMAL(10, 0)", pa.int32(), -(2**31), Decimal(-(2**31))),
    ("DECIMAL(22, 2)", pa.uint64(), 2**64 - 1, Decimal(2**64 - 1)),
    ("DECIMAL(12, 3)", pa.decimal128(10, 2), Decimal("1.25"), Decimal("1.250")),
    ("BINARY", pa.binary(2), b"\xff\x00", b"\xff\x00"),
    ("STRING", pa.null(), None, None),
    ("STRING", pa.dictionary(pa.int8(), pa.large_string()), "x", "x"),
]

NARROWER = [
    ("INT", pa.int64()), ("INT", pa.uint32()), ("TINYINT", pa.uint8()), ("FLOAT", pa.float64()),
    ("FLOAT", pa.int32()), ("DOUBLE", pa.int64()), ("DECIMAL(9, 0)", pa.int32()),
    ("DECIMAL(12, 1)", pa.decimal128(10, 2)), ("DECIMAL(10, 3)", pa.decimal128(10, 2)),
    ("BIGINT", pa.float64()), ("STRING", pa.int32()), ("STRING", pa.binary()),
    ("BINARY", pa.string()), ("TIMESTAMP", pa.date32()), ("DATE", pa.timestamp("us")),
    ("TIMESTAMP", pa.int64()), ("BIGINT", pa.bool_()), ("STRING", pa.list_(pa.string())),
]  # fmt: skip


@pytest.mark.parametrize(("declared", "kind", "value", "wanted"), WIDER, ids=str)
def test_a_type_that_holds_all_of_anothers_values(
    tmp_path: Path, declared: str, kind: pa.DataType, value: Any, wanted: Any
):
    values = pa.array([value], kind.value_type if pa.types.is_dictionary(kind) else kind)
    column = values.dictionary_encode() if pa.types.is_dictionary(kind) else values
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"v": column, "ts": TIMES}), path)
    one = reader("parquet", v=declared, ts="TIMESTAMP")
    assert one.check(path) == ()
    (row,) = one.rows(path).to_pylist()
    assert (row["v"], row["ts"], row[REASON]) == (wanted, MOMENT, None)
    assert judge.read(path, one.feed.stream.columns).num_rows == 1
    strict = reader("parquet", exact=True, v=declared, ts="TIMESTAMP")
    if not pa.types.is_dictionary(kind):
        assert one.plain(path) is None
        with pytest.raises(SourceError, match="column v is "):
            strict.check(path)


@pytest.mark.parametrize(("declared", "kind"), NARROWER, ids=str)
def test_a_type_that_does_not(declared: str, kind: pa.DataType):
    with pytest.raises(SourceError, match="here: column x is "):
        matched(stream(x=declared), pa.schema([("x", kind)]), "here", exact=False)


def test_columns_that_nobody_declared(tmp_path: Path):
    """Files with other columns are read from where they lie."""
    path = tmp_path / "x.parquet"
    more = {"n": [{"a": [1]}], "z": pa.array([1], pa.timestamp("ns")), "": ["index"]}
    pq.write_table(pa.table(more | {"ts": TIMES, "k": pa.array([7])}), path)
    one = reader("parquet", k="BIGINT", ts="TIMESTAMP")
    assert one.check(path) == ("n", "z", "")
    assert one.plain(path) == 1
    assert [(r["k"], r["ts"]) for r in one.rows(path).to_pylist()] == [(7, MOMENT)]
    with pytest.raises(SourceError, match="column n is new; stream a declares k, ts"):
        reader("parquet", exact=True, k="BIGINT", ts="TIMESTAMP").check(path)


def test_names_in_another_case(tmp_path: Path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"TS": TIMES, "ÉTÉ": ["x"]}), path)
    one = reader("parquet", été="STRING", ts="TIMESTAMP")
    assert one.check(path) == ()
    assert one.plain(path) is None
    assert [(r["été"], r["ts"]) for r in one.rows(path).to_pylist()] == [("x", MOMENT)]
    with pytest.raises(SourceError, match="column été is missing"):
        reader("parquet", exact=True, été="STRING", ts="TIMESTAMP").check(path)
    pq.write_table(pa.table({"k": ["x"], "K": ["y"], "ts": TIMES}), path)
    with pytest.raises(SourceError, match="column k is there twice, as k and K: rename one"):
        reader("parquet", k="STRING", ts="TIMESTAMP").check(path)


def test_what_duckdb_calls_the_number_of_a_row_is_not_declared(tmp_path: Path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"File_Row_Number": [1], "ts": TIMES}), path)
    assert reader("parquet", ts="TIMESTAMP").plain(path) is None


def test_what_is_said():
    assert ignoring("a", ["x"]) == (
        "stream a: column x is not declared, and ignored (columns: exact would stop here)"
    )
    assert ignoring("a", ["x", ""]).startswith('stream a: columns x, "" are not declared')


# --- CSV and JSON --------------------------------------------------------------------------------

TYPES = {"k": "BIGINT", "s": "STRING", "ts": "TIMESTAMP"}
HEADED = {"header": "true"}


def test_a_header_names_columns_in_any_order_and_case(tmp_path: Path):
    """As pandas writes its index, and a spreadsheet its mark, quotes and ends of lines."""
    path = tmp_path / "x.csv"
    path.write_bytes(
        '\ufeff"","TS",S,"x,y",K\r\n0,2023-11-14T22:13:20,"a ""b""\r\n",q,1\r\n1,2\r\n'.encode()
    )
    one = reader("csv", options=HEADED, **TYPES)
    assert one.check(path) == ("", "x,y")
    rows = one.rows(path).to_pylist()
    assert [(r["k"], r["s"], r["ts"], r[REASON]) for r in rows] == [
        (1, 'a "b"\r\n', MOMENT, None), (None, None, None, "2 fields; the header has 5"),
    ]  # fmt: skip
    judged = list(records(path, "csv", one.feed.stream.columns, HEADED, exact=False))
    micros = int(MOMENT.timestamp()) * 1_000_000
    assert [one.values for one in judged] == [(1, 'a "b"\r\n', micros), None]


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("k,s,x", "column ts is missing"),
        ("k,K,s,ts", "column k is there twice, as k and K"),
        ("k,s,s,ts", "column s is there twice"),
        ('"k,s,ts', "column k is missing"),
    ],
)
def test_a_header_that_does_not_name_them(tmp_path: Path, header: str, says: str):
    path = tmp_path / "x.csv"
    path.write_text(f"{header}\n")
    with pytest.raises(SourceError, match=says):
        reader("csv", options=HEADED, **TYPES).check(path)


def test_fields_of_json_that_nobody_declared(tmp_path: Path):
    path = tmp_path / "x.json"
    path.write_text('{"k": 1, "z": {"deep": [1]}}\n{"K": 1}\n{"k": 1, "z": 1, "z": 1}')
    rows = reader("json", **TYPES).rows(path).to_pylist()
    assert [(r["k"], r[REASON]) for r in rows] == [
        (1, None), (None, None), (None, "field z is there twice"),
    ]  # fmt: skip
    judged = records(path, "json", stream(**TYPES).columns, {}, exact=False)
    assert [one.values for one in judged] == [(1, None, None), (None, None, None), None]
