"""Files as other programs write them."""

import gzip
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tests.bench.differential import texts
from tests.bench.differential.case import Case, File, Row, Stream
from tests.bench.differential.functions import digits, kind_of

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
            r = Random(f"{case.seed} {file.name}")
            if stream.format == "parquet":
                WRITERS[file.writer](path, stream, file.rows, r)
            else:
                _text(path, stream, file, r)
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


WRITERS: dict[str, Writer] = {
    "pyarrow": _pyarrow,
    "zoned": _zoned,
    "pandas": _pandas,
    "large": _large,
}
"""Of Parquet."""


def _text(path: Path, stream: Stream, file: File, r: Random) -> None:
    made = texts.WRITERS[stream.format][file.writer].write(stream, file.rows, r).encode()
    path.write_bytes(gzip.compress(made) if path.suffix == ".gz" else made)


def names(stream: Stream) -> list[str]:
    """Who may write a stream's files."""
    if stream.format == "parquet":
        return list(WRITERS)
    return [name for name, one in texts.WRITERS[stream.format].items() if one.fits(stream)]


def told(stream: Stream, writer: str, row: Row) -> Row:
    """A row as it can be read again."""
    if stream.format == "parquet":
        return row
    one = texts.WRITERS[stream.format][writer]
    kinds = [kind for _, kind in stream.columns]
    return tuple(one.told(value, kind) for value, kind in zip(row, kinds, strict=True))


def can_hold(form: str, type_: str) -> bool:
    """Whether files of that format have values of that type."""
    return form != "csv" or type_ != "BINARY"


def breaks(stream: Stream, writer: str) -> bool:
    """Whether a single row of such a file can be broken."""
    return stream.format != "parquet" and writer != "pandas"
