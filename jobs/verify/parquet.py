"""Parquet files as others write them: the declared columns, whatever these are called there."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.verify.fields import FIRST, LAST
from jobs.verify.text import place
from optimizer.query import Column


def read(path: Path, wanted: Sequence[Column]) -> pa.Table:
    """Columns of a file, by the names that they were declared by."""
    with _opened(path, "us") as found:
        there = found.schema_arrow.names
        names = [there[place(there, column.name)] for column in wanted]
        rows = found.read(names)
        old = {one.path for one in _columns(found) if one.physical_type == "INT96"}
    columns = dict(zip(names, map(rows.column, names), strict=True))
    if old := old & set(names):
        with _opened(path, "ms") as found:
            coarse = found.read(sorted(old))
        columns |= {name: _not_begun_anew(columns[name], coarse.column(name)) for name in old}
    return pa.table({c.name: columns[name] for c, name in zip(wanted, names, strict=True)})


@contextmanager
def _opened(path: Path, unit: str) -> Iterator[pq.ParquetFile]:
    with path.open("rb") as file:
        yield pq.ParquetFile(
            file, coerce_int96_timestamp_unit=unit, page_checksum_verification=True
        )


def _columns(file: pq.ParquetFile) -> list[Any]:
    return [file.schema.column(at) for at in range(len(file.schema))]


def _not_begun_anew(fine: pa.ChunkedArray, coarse: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times of twelve bytes in microseconds, where these reach so far; others are no times."""
    millis = coarse.cast(pa.int64())
    inside = pc.and_(pc.greater_equal(millis, FIRST // 1000), pc.less_equal(millis, LAST // 1000))
    return pc.if_else(inside, fine, pa.scalar(2**63 - 1, pa.int64()).cast(fine.type))
