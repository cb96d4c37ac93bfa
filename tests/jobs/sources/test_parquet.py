"""Parquet as others write it: whole, odd, or damaged."""

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.sources.common import Feed, SourceError
from jobs.sources.reading import Reader
from jobs.tables.columns import REASON, ROW
from optimizer.query import Column, Stream

READER = Reader(
    Feed(Stream("a", (Column("s", "STRING"), Column("ts", "TIMESTAMP")), "ts"), 0), "parquet", {}
)
MICROS = 1_700_000_000_123_456
MOMENT = datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC)


def write(path: Path, times: pa.Array, **how: Any) -> Path:
    texts = pa.array([f"s{i}" for i in range(len(times))])
    pq.write_table(pa.table({"s": texts, "ts": times}), path, **how)
    return path


def read(path: Path) -> list[Any]:
    rows: list[Any] = READER.rows(path).to_pylist()
    return rows


ALIKE: dict[str, tuple[pa.Array, dict[str, Any]]] = {
    "microseconds of UTC": (pa.array([MICROS], pa.timestamp("us", "UTC")), {}),
    "of another zone": (pa.array([MICROS], pa.timestamp("us", "America/New_York")), {}),
}

ODD: dict[str, tuple[pa.Array, dict[str, Any]]] = {
    "without a zone": (pa.array([MICROS], pa.timestamp("us")), {}),
    "nanoseconds": (pa.array([MICROS * 1000 + 999], pa.timestamp("ns", "UTC")), {}),
    "nanoseconds without a zone": (pa.array([MICROS * 1000], pa.timestamp("ns")), {}),
    "twelve bytes": (
        pa.array([MICROS * 1000], pa.timestamp("ns")),
        {"use_deprecated_int96_timestamps": True},
    ),
}


@pytest.mark.parametrize("name", ALIKE | ODD)
def test_the_same_moment(tmp_path: Path, name: str):
    times, how = (ALIKE | ODD)[name]
    path = write(tmp_path / "x.parquet", times, **how)
    (row,) = read(path)
    assert (row["ts"], row[REASON]) == (MOMENT, None)
    assert READER.plain(path) == (1 if name in ALIKE else None)


@pytest.mark.parametrize(
    ("said", "alike"),
    [
        ({"org.apache.spark.version": "2.4.8"}, False),
        ({"org.apache.spark.version": "4.2.0", "org.apache.spark.legacyDateTime": ""}, False),
        ({"org.apache.spark.version": "4.2.0"}, True),
    ],
)
def test_days_that_only_spark_would_shift(tmp_path: Path, said: dict[str, str], alike: bool):
    """The year 1000 is what the file says, on every engine."""
    moment = datetime(1000, 1, 1, tzinfo=UTC)
    table = pa.table({"s": ["x"], "ts": pa.array([moment], pa.timestamp("us", "UTC"))})
    path = tmp_path / "x.parquet"
    pq.write_table(table.replace_schema_metadata(said), path)
    assert [row["ts"] for row in read(path)] == [moment]
    assert READER.plain(path) == (1 if alike else None)


def test_milliseconds(tmp_path: Path):
    for zone in (None, "UTC", "Asia/Tokyo"):
        times = pa.array([MICROS // 1000], pa.timestamp("ms", zone))
        (row,) = read(write(tmp_path / "x.parquet", times))
        assert row["ts"] == datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC)


def test_before_1970_time_is_cut_downwards(tmp_path: Path):
    (row,) = read(write(tmp_path / "x.parquet", pa.array([-1], pa.timestamp("ns"))))
    assert row["ts"] == datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)


FAR = {
    "us": [2**63 - 1, -(2**63), 253_402_300_800_000_000, -62_135_596_800_000_001],
    "ms": [2**63 - 1, 253_402_300_800_000, -62_135_596_800_001],
}


@pytest.mark.parametrize("unit", FAR)
@pytest.mark.parametrize("zone", ["UTC", None])
def test_a_time_out_of_range_is_one_rejected_row(tmp_path: Path, unit: str, zone: str | None):
    times = pa.array([0, *FAR[unit], None, 1], pa.timestamp(unit, zone))
    path = write(tmp_path / "x.parquet", times)
    rows = read(path)
    far = len(FAR[unit])
    reasons = [None, *["ts has no value of TIMESTAMP"] * far, None, None]
    assert [row[REASON] for row in rows] == reasons
    assert [row[ROW] for row in rows] == [reason and str(path) for reason in reasons]
    assert [row["ts"] is None for row in rows] == [False, *[True] * far, True, False]
    assert [row["s"] for row in rows] == [f"s{i}" for i in range(len(times))]
    assert READER.plain(path) is None


def test_the_first_and_the_last_moment_are_times(tmp_path: Path):
    ends = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)]
    path = write(tmp_path / "x.parquet", pa.array(ends, pa.timestamp("us", "UTC")))
    assert [row["ts"] for row in read(path)] == ends
    assert READER.plain(path) == 2


def test_twelve_bytes_reach_further_than_microseconds(tmp_path: Path):
    """Years that wrap round in 64 bits: written by hand, as no library does."""
    path = write(
        tmp_path / "x.parquet", pa.array([0, 0], pa.timestamp("ns")),
        use_deprecated_int96_timestamps=True, compression="none", use_dictionary=False,
        write_statistics=False,
    )  # fmt: skip
    epoch = (0).to_bytes(8, "little") + (2_440_588).to_bytes(4, "little")
    far = (0).to_bytes(8, "little") + (2_440_588 + 213_503_982 * 3).to_bytes(4, "little")
    data = path.read_bytes()
    assert data.count(epoch * 2) == 1
    path.write_bytes(data.replace(epoch * 2, epoch + far))
    near, wrong = read(path)
    assert (near["ts"], near[REASON]) == (datetime(1970, 1, 1, tzinfo=UTC), None)
    assert (wrong["ts"], wrong[REASON]) == (None, "ts has no value of TIMESTAMP")


def test_bytes_that_are_no_text_are_one_rejected_row(tmp_path: Path):
    path = tmp_path / "x.parquet"
    raw = pa.array([b"good", b"\xff\xfe", None], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    times = pa.array([MICROS] * 3, pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"s": texts, "ts": times}), path)
    assert [(r["s"], r[REASON]) for r in read(path)] == [
        ("good", None), (None, "s has no value of STRING"), (None, None),
    ]  # fmt: skip
    assert READER.plain(path) is None


def damaged(data: bytes) -> dict[str, bytes]:
    half = len(data) // 2
    return {
        "torn": data[:half],
        "no footer": data[:-8],
        "no Parquet": b"PAR1 and then nothing",
        "a text": b"s,ts\n1,2\n",
        "a damaged page": data[:200] + b"\xff" * 400 + data[600:],
        "a damaged footer": data[:-60] + b"\x00" * 52 + data[-8:],
        "zeros": bytes(len(data)),
    }


@pytest.mark.parametrize("fault", damaged(bytes(2000)))
def test_a_file_that_cannot_be_read_is_one_rejected_row(tmp_path: Path, fault: str):
    path = write(tmp_path / "x.parquet", pa.array(range(2000), pa.timestamp("us", "UTC")))
    path.write_bytes(damaged(path.read_bytes())[fault])
    READER.check(path)
    assert READER.plain(path) is None
    (row,) = read(path)
    assert row[REASON].startswith("cannot be read: ")
    assert "\n" not in row[REASON]
    assert (row["s"], row["ts"], row[ROW]) == (None, None, str(path))
    assert READER.count(path) == 1


def test_no_byte_that_changes_stops_anybody(tmp_path: Path):
    """Whatever was flipped, a file has its rows or is one rejected row, each time the same."""
    path = write(tmp_path / "x.parquet", pa.array(range(500), pa.timestamp("us", "UTC")))
    good, draw = path.read_bytes(), random.Random(7)
    for _ in range(150):
        data = bytearray(good)
        for _ in range(draw.choice([1, 8, 100])):
            data[draw.randrange(len(data))] = draw.randrange(256)
        path.write_bytes(data)
        try:
            READER.check(path)
        except SourceError:
            continue  # it says that it has other columns
        rows = READER.rows(path)
        assert READER.count(path) == rows.num_rows
        assert rows.num_rows == 500 or rows.column(ROW).to_pylist() == [str(path)]


def test_a_fault_of_the_disk_is_none_of_the_file(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "x.parquet")


def test_types_of_others(tmp_path: Path):
    """Dictionaries, large texts, codecs and encodings that not every engine reads."""
    times = pa.array([MICROS], pa.timestamp("us", "UTC"))
    for texts in (
        pa.array(["x"]).dictionary_encode(),
        pa.array(["x"], pa.large_string()),
        pa.array(["x"], pa.string_view()),
    ):
        pq.write_table(pa.table({"s": texts, "ts": times}), tmp_path / "x.parquet")
        READER.check(tmp_path / "x.parquet")
        assert [row["s"] for row in read(tmp_path / "x.parquet")] == ["x"]
    path = write(tmp_path / "b.parquet", times, compression="brotli")
    assert READER.plain(path) is None
    assert len(read(path)) == 1


def test_all_types_stay_what_they_are(tmp_path: Path):
    columns = {
        "b": ("BOOLEAN", pa.bool_(), True), "t": ("TINYINT", pa.int8(), -128),
        "i": ("INT", pa.int32(), 2**31 - 1), "k": ("BIGINT", pa.int64(), -(2**63)),
        "f": ("FLOAT", pa.float32(), 0.5), "v": ("DOUBLE", pa.float64(), 0.1),
        "d": ("DECIMAL(38, 10)", pa.decimal128(38, 10), Decimal("1234567890.0123456789")),
        "y": ("BINARY", pa.binary(), b"\xff"), "day": ("DATE", pa.date32(), date(1, 1, 1)),
        "ts": ("TIMESTAMP", pa.timestamp("us", "UTC"), MOMENT),
    }  # fmt: skip
    stream = Stream("a", tuple(Column(n, kind) for n, (kind, _, _) in columns.items()), "ts")
    arrays = {name: pa.array([value, None], kind) for name, (_, kind, value) in columns.items()}
    pq.write_table(pa.table(arrays), tmp_path / "x.parquet")
    reader = Reader(Feed(stream, 0), "parquet", {})
    reader.check(tmp_path / "x.parquet")
    first, second = reader.rows(tmp_path / "x.parquet").to_pylist()
    assert {name: first[name] for name in columns} == {n: v for n, (_, _, v) in columns.items()}
    assert set(second.values()) == {None}
    assert reader.plain(tmp_path / "x.parquet") == 2


def test_the_same_column_twice(tmp_path: Path):
    table = pa.Table.from_arrays(
        [pa.array(["x"]), pa.array(["y"]), pa.array([0], pa.timestamp("us", "UTC"))],
        names=["s", "s", "ts"],
    )
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(SourceError, match="column s is there twice"):
        READER.check(tmp_path / "x.parquet")
