"""Parquet files as other people write them: what DuckDB and Spark read alike, and what else is.

A file that Arrow can read to its end, with the types that all engines mean the same by, is read by
the engines from where it lies.  Any other becomes rows here: times in microseconds of UTC, and one
rejected row in the place of each that has no value, or of a whole file that cannot be read.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.sources.columns import as_declared, matched
from jobs.sources.common import DAYS, Feed, arrow_type, raw_schema
from jobs.tables.columns import REASON, ROW
from jobs.tables.paths import duck_reads

DAMAGED = "cannot be read"
"""How the reason begins for which a whole file is set aside; the row is the file's path."""

_MANY = 131_072

_CODECS = {"UNCOMPRESSED", "SNAPPY", "ZSTD", "GZIP"}
_ENCODINGS = {
    "PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "DELTA_BINARY_PACKED",
    "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
}  # fmt: skip
"""What every engine reads."""


class DamagedError(Exception):
    """What is wrong with a file that cannot be read."""


def check_schema(path: Path, feed: Feed) -> tuple[str, ...]:
    """The columns that nobody declared; complain if others are not the stream's.

    A file that cannot be read has none.
    """
    try:
        with _opened(path) as file:
            found = file.schema_arrow
    except DamagedError:
        return ()
    return matched(feed.stream, found, str(path), exact=feed.exact).ignored


def rows_if_plain(path: Path, feed: Feed) -> int | None:
    """How many rows a file has that every engine may read by itself; every page has been seen."""
    try:
        with _opened(path) as file:
            plain = duck_reads(path) and _plain(file, feed)
            if not plain or any(_odd(rows) for rows in _batches(file, path, feed)):
                return None
            return int(file.metadata.num_rows)
    except DamagedError:
        return None


def tables(path: Path, feed: Feed) -> Iterator[pa.Table]:
    """The raw rows of a file; if it cannot be read, it is one rejected row."""
    try:
        with _opened(path) as file:
            yield from [_raw(rows, path, feed) for rows in _batches(file, path, feed)]
    except DamagedError as error:
        yield set_aside(path, feed, str(error))


def names(path: Path) -> list[str] | None:
    """The columns of a file; nothing if it cannot be read."""
    try:
        with _opened(path) as file:
            return list(file.schema_arrow.names)
    except DamagedError:
        return None


def count(path: Path) -> int:
    """How many rows a file says that it has."""
    with _opened(path) as file:
        return int(file.metadata.num_rows)


def set_aside(path: Path, feed: Feed, why: str) -> pa.Table:
    """The row that stands for a file."""
    row = {REASON: f"{DAMAGED}: {why}", ROW: str(path)}
    return pa.Table.from_pylist([row], raw_schema(feed))


def fault(error: Exception) -> str:
    """Why a file cannot be read; a fault of the disk, or of rights, is none of the file's."""
    if isinstance(error, OSError) and error.errno is not None:
        raise error
    return " ".join(str(error).split())[:200]


@contextmanager
def _opened(path: Path, unit: str = "us") -> Iterator[pq.ParquetFile]:
    try:
        with pa.OSFile(str(path)) as source:
            yield pq.ParquetFile(
                source, coerce_int96_timestamp_unit=unit, page_checksum_verification=True
            )
    except (pa.ArrowException, OSError) as error:
        raise DamagedError(fault(error)) from None


# --- what engines read alike ---------------------------------------------------------------------


def _plain(file: pq.ParquetFile, feed: Feed) -> bool:
    """Whether types, codecs and encodings are those that all engines know."""
    declared = {column.name for column in feed.stream.columns}
    metadata = file.metadata
    chunks = (
        metadata.row_group(group).column(at)
        for group in range(metadata.num_row_groups)
        for at in range(metadata.num_columns)
    )
    return (
        as_declared(feed.stream, file.schema_arrow)
        and _instants(file, declared)
        and not _old_calendar(metadata.metadata or {})
        and all(
            chunk.compression in _CODECS and _ENCODINGS.issuperset(chunk.encodings)
            for chunk in chunks
            if chunk.path_in_schema in declared
        )
    )


def _old_calendar(said: dict[bytes, bytes]) -> bool:
    """Whether Spark would shift a file's days of long ago, which others take as they are."""
    old = b"org.apache.spark.legacyDateTime" in said
    return old or said.get(b"org.apache.spark.version", b"3") < b"3"


def _instants(file: pq.ParquetFile, declared: set[str]) -> bool:
    """Whether all times are microseconds of UTC, and none the twelve bytes of old."""
    kinds = [field.type for field in file.schema_arrow if field.name in declared]
    times = [kind for kind in kinds if pa.types.is_timestamp(kind)]
    old = declared.intersection(_twelve_bytes(file))
    return not old and all(kind.unit == "us" and kind.tz for kind in times)


def _twelve_bytes(file: pq.ParquetFile) -> list[str]:
    columns = map(file.schema.column, range(len(file.schema)))
    return [column.path for column in columns if column.physical_type == "INT96"]


def _odd(rows: pa.RecordBatch) -> bool:
    """Whether there is a value that not every engine reads."""
    return any(_wrong(column) for column in rows.columns)


# --- what has a value ----------------------------------------------------------------------------


def _wrong(column: pa.Array) -> set[int]:
    """Where a column has what is no value of its type: bytes that are no text, another time."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return {at for at in range(len(column)) if not _valid(column.slice(at, 1))}
    if (limits := _limits(column.type)) is None:
        return set()
    numbers = column.view(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    found = pc.min_max(numbers).as_py()
    if found["min"] is None or (found["min"] >= limits[0] and found["max"] <= limits[1]):
        return set()
    inside = pc.and_(pc.greater_equal(numbers, limits[0]), pc.less_equal(numbers, limits[1]))
    return set(pc.indices_nonzero(pc.invert(inside)).to_pylist())


def _valid(value: pa.Array) -> bool:
    try:
        value.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _limits(kind: pa.DataType) -> tuple[int, int] | None:
    """The first and the last moment of the years 1 to 9999, if a type is one of times."""
    first, last = DAYS
    if pa.types.is_date32(kind):
        return first, last
    if pa.types.is_timestamp(kind) and kind.unit in _IN_A_DAY:
        many = _IN_A_DAY[kind.unit]
        return first * many, (last + 1) * many - 1
    return None


_IN_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000}


def _raw(rows: pa.RecordBatch, path: Path, feed: Feed) -> pa.Table:
    """The rows of a file; one with what is no value is a rejected one."""
    reasons: dict[int, str] = {}
    columns = []
    for column, declared in zip(rows.columns, feed.stream.columns, strict=True):
        wrong = _wrong(column)
        reasons |= dict.fromkeys(wrong, f"{declared.name} has no value of {declared.type}")
        columns.append(_as_declared(_without(column, wrong), arrow_type(declared)))
    why = row = pa.nulls(rows.num_rows, pa.string())
    if reasons:
        why = pa.array([reasons.get(at) for at in range(rows.num_rows)], pa.string())
        row = pc.if_else(pc.is_valid(why), pa.scalar(str(path)), pa.scalar(None, pa.string()))
    return pa.Table.from_arrays([*columns, why, row], schema=raw_schema(feed))


def _without(column: pa.Array, wrong: set[int]) -> pa.Array:
    if not wrong:
        return column
    there = pa.array([at not in wrong for at in range(len(column))])
    return pc.if_else(there, column, pa.scalar(None, column.type))


def _as_declared(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A time without a zone is one of UTC; what is finer than microseconds is cut off."""
    if pa.types.is_timestamp(column.type):
        unzoned = column.cast(pa.timestamp(column.type.unit, "UTC"))
        if column.type.unit == "ns":
            unzoned = pc.floor_temporal(unzoned, unit="microsecond")
        return unzoned.cast(kind)
    return column.cast(kind)


def _batches(file: pq.ParquetFile, path: Path, feed: Feed) -> Iterator[pa.RecordBatch]:
    """The declared columns of a file, by the names that it has for them, and every page of them."""
    names = matched(feed.stream, file.schema_arrow, str(path), exact=feed.exact).names
    old = [at for at, name in enumerate(names) if name in _twelve_bytes(file)]
    if not old:
        yield from _columns(file, names)
        return
    with _opened(path, "ms") as coarse:
        pairs = zip(_columns(file, names), _columns(coarse, names), strict=True)
        yield from (_unwrapped(a, b, old) for a, b in pairs)


def _columns(file: pq.ParquetFile, names: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """In that order, and without dictionaries."""
    for rows in file.iter_batches(_MANY, columns=list(names)):
        columns = [rows.column(name) for name in names]
        plain = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in columns]
        yield pa.RecordBatch.from_arrays(plain, names=list(names))


def _unwrapped(fine: pa.RecordBatch, coarse: pa.RecordBatch, old: list[int]) -> pa.RecordBatch:
    """Times of twelve bytes reach further than microseconds do, and begin anew there."""
    for at in old:
        wrong = _wrong(coarse.column(at))
        outside = pa.array([row in wrong for row in range(fine.num_rows)])
        never = pa.scalar(-(2**63), pa.int64()).cast(fine.column(at).type)
        kept = pc.if_else(outside, never, fine.column(at))
        fine = fine.set_column(at, fine.schema.field(at), kept)
    return fine
