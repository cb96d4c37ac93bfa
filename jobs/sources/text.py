"""Rows as texts: what is written in a file, and what of it has values.

What cannot be read is not guessed at: it is a row that is rejected, with the reason, and the rows
around it are read.
"""

import codecs
import re
import zlib
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from jobs.sources.common import Feed
from jobs.sources.values import Rule, typed

MANY = 50_000
"""So many rows become a table at a time."""

_NO_CHARACTER = re.compile("[\ud800-\udfff]")
"""What bytes become that are no characters, and half of a pair in JSON."""

_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}

codecs.register_error("half", lambda error: ("\udcff", error.end))  # type: ignore[attr-defined]


class Record(NamedTuple):
    """A row as its file has it: its text, a text for each column, or why there is none."""

    text: str
    values: tuple[str | None, ...] = ()
    reason: str | None = None


def text_of(path: Path, encoding: str, size: int | None = None) -> str:
    """What is written in a file, or so many bytes of it, whatever it was compressed with."""
    if path.suffix == ".snappy":
        raise OSError("snappy's blocks are not read: write gzip, zstd, bzip2 or deflate")
    with pa.OSFile(str(path)) as file:
        if path.suffix == ".deflate":
            data = _inflated(file.read(), size)
        else:
            codec = _COMPRESSED.get(path.suffix)
            data = (pa.CompressedInputStream(file, codec) if codec else file).read(size)
    return str(data, encoding, "half").removeprefix("\ufeff")


def _inflated(data: bytes, size: int | None) -> bytes:
    """What Hadoop calls deflate, and others zlib."""
    inflating = zlib.decompressobj()
    try:
        found = inflating.decompress(data, size or 0)
    except zlib.error as error:
        raise OSError(str(error)) from None
    if size is None and not inflating.eof:
        raise OSError("its end is missing")
    return found


def tables(feed: Feed, records: Iterator[Record], own: Mapping[str, Rule]) -> Iterator[pa.Table]:
    """The rows of records, some at a time."""
    nothing = (None,) * len(feed.stream.columns)
    while some := [_characters(record) for record in islice(records, MANY)]:
        columns = zip(*(record.values or nothing for record in some), strict=True)
        texts = {f"#{i}": pa.array(column, pa.string()) for i, column in enumerate(columns)}
        texts["reason"] = pa.array([record.reason for record in some], pa.string())
        texts["text"] = pa.array([record.text for record in some], pa.string())
        yield typed(feed, pa.table(texts), own)


def _characters(record: Record) -> Record:
    """A record without what is no character."""
    if record.text.isascii() and "\\u" not in record.text:
        return record
    parts = (record.text, *(value for value in record.values if value), record.reason or "")
    if not any(map(_NO_CHARACTER.search, parts)):
        return record
    return Record(_NO_CHARACTER.sub("\ufffd", record.text), (), "not text in its encoding")
