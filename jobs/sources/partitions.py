"""Hive's partitions: directories such as `day=2024-01-01` that have a column's value in their name.

A directory names a column that the stream declares, or the file is not the stream's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from jobs.sources.columns import alike
from jobs.sources.common import Feed, raw_schema
from jobs.sources.values import typed
from jobs.tables.columns import REASON, ROW
from optimizer.query import Column

NULL = "__HIVE_DEFAULT_PARTITION__"
"""What a directory says where a value is null."""


@dataclass(frozen=True)
class Partition:
    """What is said of a file as a whole of a stream's columns, and what is left to the file."""

    feed: Feed
    told: Mapping[str, str | None]

    @classmethod
    def of(cls, root: Path, file: Path, feed: Feed) -> "Partition | None":
        """Nothing, if a directory names no column of the stream, or one that another named."""
        told: dict[str, str | None] = {}
        for directory in file.parent.relative_to(root).parts:
            name, _, value = directory.partition("=")
            column = _column(feed, unquote(name))
            if not value or column is None or column.name in told:
                return None
            told[column.name] = None if value == NULL else unquote(value)
        return cls(feed, told) if len(told) < len(feed.stream.columns) else None

    @property
    def rest(self) -> Feed:
        """The columns that are in the file; who reads them does not ask for the event time."""
        return _with(self.feed, [c for c in self.feed.stream.columns if c.name not in self.told])

    def values(self) -> pa.Table:
        """One row of what the directories say, and why it is none."""
        own = [column for column in self.feed.stream.columns if column.name in self.told]
        texts = {f"#{at}": pa.array([self.told[c.name]], pa.string()) for at, c in enumerate(own)}
        nothing = {name: pa.nulls(1, pa.string()) for name in ("reason", "text")}
        return typed(_with(self.feed, own), pa.table(texts | nothing), {})

    def filled(self, rows: pa.Table, values: pa.Table) -> pa.Table:
        """A file's rows, with what its directories say."""
        columns = [
            pa.repeat(values.column(c.name)[0], rows.num_rows)
            if c.name in self.told
            else rows.column(c.name)
            for c in self.feed.stream.columns
        ]
        known = [rows.column(name) for name in (REASON, ROW)]
        return pa.Table.from_arrays([*columns, *known], schema=raw_schema(self.feed))


def _column(feed: Feed, name: str) -> Column | None:
    found = (c for c in feed.stream.columns if c.name == name)
    others = (c for c in feed.stream.columns if not feed.exact and alike(c.name, name))
    return next(found, next(others, None))


def _with(feed: Feed, columns: list[Column]) -> Feed:
    return replace(
        feed, stream=replace(feed.stream, columns=tuple(columns), event_time=columns[0].name)
    )
