"""What is in the files of a stream: one reading of each, whoever asks, and on every engine."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.sources import csv_records, json_lines, moments, parquet, text
from jobs.sources.columns import Match
from jobs.sources.common import Feed, SourceError, raw_schema
from jobs.sources.partitions import Partition
from jobs.tables.columns import REASON

_HEAD = 1 << 20
"""So many bytes of a file are looked at for its header."""


@dataclass(frozen=True)
class Reader:
    """Reads the files of a stream, as its job file says; tasks take it along."""

    feed: Feed
    format: str
    options: Mapping[str, str]
    root: Path | None = None
    """The directory below which others may be partitions."""

    def check(self, path: Path) -> tuple[str, ...]:
        """The columns of a file that are ignored; complain if others are not the stream's."""
        if not _size(path):
            return ()
        if (partition := self.partition(path)) is not None:
            return self._within(partition).check(path)
        if self.format == "parquet":
            return parquet.check_schema(path, self.feed)
        return self._check_header(path) if self.format == "csv" and self.dialect.header else ()

    def partition(self, path: Path) -> Partition | None:
        """What the directories of a file say of it, if it lies below the stream's."""
        if self.root is None or path.parent == self.root:
            return None
        return Partition.of(self.root, path, self.feed)

    def _within(self, partition: Partition) -> "Reader":
        return replace(self, feed=partition.rest, root=None)

    def plain(self, path: Path) -> int | None:
        """How many rows a file has that every engine reads alike from where it lies."""
        if self.format != "parquet" or self.partition(path) is not None:
            return None
        return parquet.rows_if_plain(path, self.feed) if _size(path) else None

    def tables(self, path: Path) -> Iterator[pa.Table]:
        """The raw rows of a file; one that cannot be read is one rejected row."""
        if not _size(path):
            return
        if (partition := self.partition(path)) is not None:
            yield from self._filled(partition, path)
            return
        if self.format == "parquet":
            yield from parquet.tables(path, self.feed)
            return
        try:
            yield from self._texts(path)
        except (OSError, pa.ArrowException) as error:
            yield parquet.set_aside(path, self.feed, parquet.fault(error))

    def _filled(self, partition: Partition, path: Path) -> Iterator[pa.Table]:
        """The rows of a partition's file; if its directory says no value, it is a rejected one."""
        values = partition.values()
        if (why := values.column(REASON)[0].as_py()) is not None:
            yield parquet.set_aside(path, self.feed, why)
            return
        for rows in self._within(partition).tables(path):
            yield partition.filled(rows, values)

    def rows(self, path: Path) -> pa.Table:
        """All of them."""
        return pa.concat_tables([raw_schema(self.feed).empty_table(), *self.tables(path)])

    def count(self, path: Path) -> int:
        """How many there are."""
        plain = self.plain(path)
        return sum(rows.num_rows for rows in self.tables(path)) if plain is None else plain

    def stage(self, directory: Path, path: Path) -> tuple[str, int]:
        """Write the raw rows of a file to one that every engine reads."""
        target, count = directory / f"{uuid4().hex}.parquet", 0
        with pq.ParquetWriter(target, raw_schema(self.feed)) as writer:
            for rows in self.tables(path):
                writer.write_table(rows)
                count += rows.num_rows
        return str(target), count

    @property
    def dialect(self) -> csv_records.Dialect:
        """How CSV is written down."""
        said = self.options
        return csv_records.Dialect(
            separator=said.get("sep", ","),
            quote=said.get("quote", '"'),
            escape=said.get("escape", '"'),
            null=said.get("nullValue", ""),
            comment=said.get("comment", ""),
            strip=(self._is("ignoreLeadingWhiteSpace"), self._is("ignoreTrailingWhiteSpace")),
            header=self._is("header"),
            line=said.get("lineSep", ""),
            empty=said.get("emptyValue", ""),
            numbers={said[name]: number for name, number in _NUMBERS.items() if name in said},
        )

    def _is(self, option: str) -> bool:
        return self.options.get(option, "false").lower() == "true"

    @property
    def _encoding(self) -> str:
        return self.options.get("encoding", "UTF-8")

    def _texts(self, path: Path) -> Iterator[pa.Table]:
        written, own = text.text_of(path, self._encoding), moments.rules(self.options)
        if self.format == "json":
            records = json_lines.records(written, self.feed, self.options.get("lineSep", ""))
            return text.tables(self.feed, records, json_lines.RULES | own)
        return text.tables(self.feed, csv_records.records(written, self.feed, self.dialect), own)

    def _check_header(self, path: Path) -> tuple[str, ...]:
        """A header must name the declared columns; in their order, if no others may be there."""
        try:
            head = text.text_of(path, self._encoding, _HEAD)
        except (OSError, pa.ArrowException) as error:
            parquet.fault(error)
            return ()
        if not head:
            return ()
        found = csv_records.header_of(head, self.dialect)
        match = Match.of(self.feed.stream, found, str(path), exact=self.feed.exact)
        declared = [column.name for column in self.feed.stream.columns]
        if self.feed.exact and found != declared:
            raise SourceError(
                f"{path}: the header says {', '.join(found)}; "
                f"stream {self.feed.name} declares {', '.join(declared)}"
            )
        return match.ignored


_NUMBERS = {"nanValue": "nan", "positiveInf": "inf", "negativeInf": "-inf"}


def _size(path: Path) -> int:
    return path.stat().st_size
