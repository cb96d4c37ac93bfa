"""Files as other programs write them."""

import bz2
import gzip
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tests.bench.differential import texts
from tests.bench.differential.case import Case, File, Row, Stream
from tests.bench.differential.functions import digits, kind_of
from tests.bench.differential.layouts import dressed

Writer = Callable[[Path, Stream, Sequence[Any], Random], None]

ARROW = {
    "BOOLEAN": pa.bool_(), "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(),
    "BIGINT": pa.int64(), "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "STRING": pa.string(),
    "BINARY": pa.binary(), "DATE": pa.date32(), "TIMESTAMP": pa.timestamp("us", "UTC"),
}  # fmt: skip


def arrow_type(type_: str) -> pa.DataType:
    """What Arrow calls a type."""
    return pa.decimal128(*digits(type_)) if kind_of(type_) == "DECIMAL" else ARROW[type_]


def array(values: Sequence[Any], type_: str) -> pa.Array:
    """Values as Arrow holds them."""
    plain = {"DATE": pa.int32(), "TIMESTAMP": pa.int64()}.get(type_)
    if plain is not None:
        return pa.array(values, plain).cast(arrow_type(type_))
    return pa.array(values, arrow_type(type_))


def table(stream: Stream, rows: Sequence[Row]) -> pa.Table:
    """A stream's rows."""
    columns = {
        name: array([row[at] for row in rows], kind)
        for at, (name, kind) in enumerate(stream.columns)
    }
    return pa.table(columns)


def write(case: Case, root: Path) -> None:
    """All files of a case, each a second younger than the one before."""
    for stream in case.streams:
        directory = root / stream.directory
        directory.mkdir(parents=True)
        for at, file in enumerate(f for f in case.files if f.stream == stream.name):
            path = directory / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            r = Random(f"{case.seed} {file.name}")
            shown, rows = dressed(stream, file.rows, r)
            if stream.format == "parquet":
                WRITERS[file.writer](path, shown, rows, r)
            else:
                _text(path, shown, replace(file, rows=tuple(rows)), r)
            os.utime(path, (1_700_000_000 + at, 1_700_000_000 + at))


# --- Parquet -------------------------------------------------------------------------------------


def _pyarrow(path: Path, stream: Stream, rows: Sequence[Any], r: Random) -> None:
    made = table(stream, rows)
    if r.random() < 0.3:
        made = made.select(r.sample(made.column_names, made.num_columns))
    pq.write_table(
        made, path, compression=r.choice(["snappy", "zstd", "none", "gzip"]),
        use_dictionary=r.random() < 0.5, row_group_size=r.choice([1, 7, None]),
        data_page_version=r.choice(["1.0", "2.0"]), store_schema=r.random() < 0.7,
        write_statistics=r.random() < 0.7,
    )  # fmt: skip


def _zoned(path: Path, stream: Stream, rows: Sequence[Any], r: Random) -> None:
    """The same instants, said to be of another zone; or of none, which is UTC."""
    zone = r.choice([None, "Asia/Kathmandu", "America/New_York", "+05:30"])
    made = table(stream, rows)
    fields = [
        field.with_type(pa.timestamp("us", zone)) if pa.types.is_timestamp(field.type) else field
        for field in made.schema
    ]
    if zone is None:
        made = made.cast(pa.schema(fields))
    else:
        made = pa.table([c.cast(f.type) for c, f in zip(made.columns, fields, strict=True)],
                        schema=pa.schema(fields))  # fmt: skip
    pq.write_table(made, path)


def _pandas(path: Path, stream: Stream, rows: Sequence[Any], r: Random) -> None:
    frame = table(stream, rows).to_pandas(types_mapper=pd.ArrowDtype)
    frame.to_parquet(path, index=False, row_group_size=r.choice([5, None]))


def _large(path: Path, stream: Stream, rows: Sequence[Any], r: Random) -> None:
    """Texts as large ones, repeated values as a dictionary's."""
    made, fields = table(stream, rows), []
    for field in made.schema:
        large = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(field.type)
        fields.append(field.with_type(large or field.type))
    pq.write_table(made.cast(pa.schema(fields)), path, version=r.choice(["2.4", "2.6"]))


def _nanos(path: Path, stream: Stream, rows: Sequence[Any], r: Random) -> None:
    """Times in nanoseconds, or in twelve bytes, as far as these reach."""
    made = table(stream, rows)
    old = all(abs(time) < NANOS for row in rows for time in _times(stream, row))
    if old:
        kind = pa.timestamp("ns", r.choice([None, "UTC", "Asia/Kathmandu"]))
        for at, (name, type_) in enumerate(stream.columns):
            if type_ == "TIMESTAMP":
                finer = [
                    None if row[at] is None else row[at] * 1000 + r.randrange(1000) for row in rows
                ]
                made = made.set_column(at, name, pa.array(finer, pa.int64()).cast(kind))
    pq.write_table(made, path, use_deprecated_int96_timestamps=old and r.random() < 0.5)


def _millis(path: Path, stream: Stream, rows: Sequence[Any], r: Random) -> None:
    """Times in milliseconds."""
    zone, made = r.choice([None, "UTC", "America/New_York"]), table(stream, rows)
    for at, (name, type_) in enumerate(stream.columns):
        if type_ == "TIMESTAMP":
            coarse = [None if row[at] is None else row[at] // 1000 for row in rows]
            kind = pa.timestamp("ms", zone)
            made = made.set_column(at, name, pa.array(coarse, pa.int64()).cast(kind))
    pq.write_table(made, path)


def _narrow(path: Path, stream: Stream, rows: Sequence[Any], r: Random) -> None:
    """Values in types that just hold them; texts in dictionaries."""
    made = table(stream, rows)
    for at, (name, type_) in enumerate(stream.columns):
        fits = [column for kind in narrower(type_) if (column := _held(made.column(at), kind))]
        if fits and r.random() < 0.8:
            made = made.set_column(at, name, r.choice(fits))
    pq.write_table(made, path, compression=r.choice(["snappy", "zstd", "gzip"]))


def _held(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """A column in another type, if nothing is lost."""
    try:
        held = column.dictionary_encode() if pa.types.is_dictionary(kind) else column.cast(kind)
        same = repr(held.cast(column.type).to_pylist()) == repr(column.to_pylist())
    except (pa.ArrowException, ValueError):
        return None
    return held if same else None


NANOS = 9_000_000_000_000_000
"""So many microseconds from 1970 nanoseconds reach."""


LEAST = -(2**63) // 1000 + 1
"""The first millisecond that has microseconds."""


def _times(stream: Stream, row: Row) -> Sequence[int]:
    kinds = [kind for _, kind in stream.columns]
    return [v for v, kind in zip(row, kinds, strict=True) if kind == "TIMESTAMP" and v is not None]  # type: ignore[misc]


BYTES, SHORTS = [pa.int8(), pa.uint8()], [pa.int16(), pa.uint16()]
INTS = [*BYTES, *SHORTS, pa.int32(), pa.uint32()]


def narrower(type_: str) -> list[pa.DataType]:
    """Types of which each value is one of that type."""
    if type_.startswith("DECIMAL"):
        precision, scale = digits(type_)
        room = {3: BYTES, 5: SHORTS, 10: INTS[4:], 19: [pa.int64()]}
        whole = [
            kind for many, kinds in room.items() if many <= precision - scale for kind in kinds
        ]
        less = [pa.decimal128(precision - 1, scale)] if precision - 1 >= max(scale, 1) else []
        return [pa.null(), *whole, *less]
    return [pa.null(), *{
        "SMALLINT": BYTES, "INT": BYTES + SHORTS, "BIGINT": INTS,
        "FLOAT": [*BYTES, *SHORTS, pa.float16()], "DOUBLE": [*INTS, pa.float16(), pa.float32()],
        "STRING": [pa.dictionary(pa.int32(), pa.string())], "BINARY": [pa.binary(1), pa.binary(2)],
    }.get(type_, [])]  # fmt: skip


WRITERS: dict[str, Writer] = {
    "pyarrow": _pyarrow,
    "zoned": _zoned,
    "pandas": _pandas,
    "large": _large,
    "nanos": _nanos,
    "millis": _millis,
    "narrow": _narrow,
}
"""Of Parquet."""


def _text(path: Path, stream: Stream, file: File, r: Random) -> None:
    text = texts.WRITERS[stream.format][file.writer].write(stream, file.rows, r)
    made = text.encode(str(dict(stream.options).get("encoding", "utf-8")))
    path.write_bytes(PACKERS.get(path.suffix, bytes)(made))


def _members(data: bytes) -> bytes:
    """Two files of gzip, one behind the other, are one."""
    middle = len(data) // 2
    return gzip.compress(data[:middle]) + gzip.compress(data[middle:])


PACKERS = {
    ".gz": _members,
    ".bz2": bz2.compress,
    ".zst": lambda data: _arrow(data, "zstd"),
}


def _arrow(data: bytes, codec: str) -> bytes:
    made = pa.BufferOutputStream()
    with pa.CompressedOutputStream(made, codec) as stream:
        stream.write(data)
    return bytes(made.getvalue())


def names(stream: Stream) -> list[str]:
    """Who may write a stream's files."""
    if stream.format == "parquet":
        return [name for name in WRITERS if name != "narrow" or not stream.exact]
    return [name for name, one in texts.WRITERS[stream.format].items() if one.fits(stream)]


def told(stream: Stream, writer: str, row: Row) -> Row:
    """A row as it can be read again."""
    kinds = [kind for _, kind in stream.columns]
    if writer == "millis":
        return tuple(
            max(value // 1000, LEAST) * 1000
            if kind == "TIMESTAMP" and isinstance(value, int)
            else value
            for value, kind in zip(row, kinds, strict=True)
        )
    if stream.format == "parquet":
        return row
    one = texts.WRITERS[stream.format][writer]
    return tuple(
        _told(stream, one.told(_legible(stream, value), kind), kind)
        for value, kind in zip(row, kinds, strict=True)
    )


def _legible(stream: Stream, value: Any) -> Any:
    """In CSV bytes are those of a text."""
    legible = stream.format == "csv" and isinstance(value, bytes)
    return value.decode(errors="replace").encode() if legible else value


def _told(stream: Stream, value: Any, kind: str) -> Any:
    """An empty text is what the options say."""
    empty = dict(stream.options).get("emptyValue", "")
    if kind not in {"STRING", "BINARY"} or value not in ("", b""):
        return value
    return str(empty) if kind == "STRING" else str(empty).encode()


def breaks(stream: Stream, writer: str) -> bool:
    """Whether a single row of such a file can be broken."""
    return stream.format != "parquet" and writer != "pandas"
