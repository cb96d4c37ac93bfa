"""What is in the files of a stream: one reading of each, whoever asks, and on every engine."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.engine.sources import csv_records, json_lines, parquet, text
from jobs.engine.sources.common import Feed, SourceError, known_columns, raw_schema

_HEAD = 1 << 20
"""So many bytes of a file are looked at for its header."""


@dataclass(frozen=True)
class Reader:
    """Reads the files of a stream, as its job file says; tasks take it along."""

    feed: Feed
    format: str
    options: Mapping[str, str]

    def check(self, path: Path) -> None:
        """Complain if a file has columns that are not the stream's."""
        if not _size(path):
            return
        if self.format == "parquet":
            parquet.check_schema(path, self.feed)
        elif self.format == "csv" and self.dialect.header:
            self._check_header(path)

    def plain(self, path: Path) -> int | None:
        """How many rows a file has that every engine reads alike from where it lies."""
        if self.format != "parquet":
            return None
        return parquet.rows_if_plain(path, self.feed) if _size(path) else None

    def tables(self, path: Path) -> Iterator[pa.Table]:
        """The raw rows of a file; one that cannot be read is one rejected row."""
        if not _size(path):
            return
        if self.format == "parquet":
            yield from parquet.tables(path, self.feed)
            return
        try:
            yield from self._texts(path)
        except (OSError, pa.ArrowException) as error:
            yield parquet.set_aside(path, self.feed, parquet.fault(error))

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
        )

    def _is(self, option: str) -> bool:
        return self.options.get(option, "false").lower() == "true"

    @property
    def _encoding(self) -> str:
        return self.options.get("encoding", "UTF-8")

    def _texts(self, path: Path) -> Iterator[pa.Table]:
        written = text.text_of(path, self._encoding)
        if self.format == "json":
            records = json_lines.records(written, self.feed)
            return text.tables(self.feed, records, json_lines.RULES)
        return text.tables(self.feed, csv_records.records(written, self.feed, self.dialect), {})

    def _check_header(self, path: Path) -> None:
        """A header must name the declared columns, in their order: values go by position."""
        try:
            head = text.text_of(path, self._encoding, _HEAD)
        except (OSError, pa.ArrowException) as error:
            parquet.fault(error)
            return
        declared = [column.name for column in self.feed.stream.columns]
        found = csv_records.header_of(head, self.dialect) if head else declared
        known_columns(self.feed.stream, found, str(path))
        if found != declared:
            raise SourceError(
                f"{path}: the header says {', '.join(found)}; "
                f"stream {self.feed.name} declares {', '.join(declared)}"
            )


def _size(path: Path) -> int:
    return path.stat().st_size
