"""Rows appended to a Delta table, read by Spark's own Delta source."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from json import loads
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyspark.sql import DataFrame, SparkSession

from jobs.options import options
from jobs.sources import anew, parquet
from jobs.sources.checkpoint import CheckpointOffsets, OffsetRange, Position, whole_versions
from jobs.sources.columns import Match, alike, ignoring, matched
from jobs.sources.common import Feed, SourceError, is_there, local
from jobs.sources.partitions import Partition
from jobs.tables.columns import REASON, ROW
from jobs.tables.paths import check_table

Told = Mapping[str, str | None]
"""What a table's log says of the columns of a file."""


class DeltaSource:
    """A stream of a table's rows; Delta's source refuses what is not an append."""

    endless = False
    keeps = True

    def __init__(self, feed: Feed, spec: Any) -> None:
        self._feed = feed
        self._path = check_table(local(spec.path, feed.name), SourceError)
        self._options = options("delta", spec.options)
        self._table: DeltaTable | None = None
        self._ignored: set[str] = set()

    def check(self) -> None:
        self._match()

    def _match(self) -> Match:
        self.check_presence()
        schema = pa.schema(self._snapshot().schema().to_arrow())
        return matched(self._feed.stream, schema, str(self._path), exact=self._feed.exact)

    def _snapshot(self) -> DeltaTable:
        try:
            return DeltaTable(self._path)
        except TableNotFoundError:
            raise SourceError(
                f"{self._path} of stream {self._feed.name} is not a Delta table"
            ) from None

    def check_presence(self) -> None:
        is_there(self._path, self._feed.name)

    def frame(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format("delta").options(**self._options)
        return reader.load(str(self._path)).selectExpr(*self._feed.as_declared)

    def inspect(self, taken: CheckpointOffsets, batch: int) -> str:  # noqa: ARG002
        ignored = self._match().ignored
        new = [name for name in ignored if name not in self._ignored]
        self._ignored.update(ignored)
        return ignoring(self._feed.name, new) if new else ""

    def damaged(self, taken: CheckpointOffsets, batch: int) -> bool:
        part = OffsetRange(batch, taken.position(batch - 1), taken.position(batch))
        if part.start is None and self._options.keys() & {"startingVersion", "startingTimestamp"}:
            return False  # nobody knows where it began: Spark says what is wrong
        reader, files = self._files_of([part])
        wrong = [path for path in files if path.exists() and reader.damage(path) is not None]
        if wrong and (strange := _strange(self._snapshot())):
            raise SourceError(
                f"{wrong[0]} of stream {self._feed.name} cannot be read: "
                f"{reader.damage(wrong[0])}: bring back the file, which belongs to a table with "
                f"{strange}, and start again"
            )
        return bool(wrong)

    def again(
        self,
        spark: SparkSession,
        taken: CheckpointOffsets,  # noqa: ARG002
        parts: Sequence[OffsetRange],
    ) -> DataFrame:
        return anew.rows(spark, self._feed, *self._files_of(parts))

    def count(
        self,
        spark: SparkSession,
        taken: CheckpointOffsets,  # noqa: ARG002
        parts: Sequence[OffsetRange],
    ) -> Mapping[int, int]:
        return anew.counts(spark, *self._files_of(parts), parts)

    def _files_of(self, parts: Sequence[OffsetRange]) -> "tuple[TableReader, dict[Path, int]]":
        """The files that batches took, and which of them took each; and who reads them."""
        found = [(part, file) for part in parts for file in _between(self._path, part)]
        told = {str(self._path / file): said for _, (file, said) in found}
        files = {self._path / file: part.batch for part, (file, _) in found}
        return TableReader(replace(self._feed, exact=False), told), files

    def waiting(self, taken: CheckpointOffsets, batch: int) -> int | None:
        if self._table is None:
            self._table = DeltaTable(self._path)
        self._table.update_incremental()
        position = taken.position(batch)
        return self._table.version() - (-1 if position is None else whole_versions(position))


@dataclass(frozen=True)
class TableReader:
    """Reads the files of a table as its log tells of them."""

    feed: Feed
    told: Mapping[str, Told]
    """The values of a file's partition."""

    def tables(self, path: Path) -> Iterator[pa.Table]:
        """The raw rows of a file; one that cannot be read is one rejected row."""
        names = parquet.names(path)
        partition = self._partition(path, names or ())
        if names is None or not partition.told:
            found = parquet.tables(path, self.feed)
        elif len(partition.told) == len(self.feed.stream.columns):
            found = iter([_nothing(parquet.count(path))])
        else:
            found = parquet.tables(path, partition.rest)
        values = partition.values() if partition.told else None
        for rows in found:
            whole = rows if names is None or values is None else partition.filled(rows, values)
            yield _as_tables_tell(whole)

    def count(self, path: Path) -> int:
        """How many there are."""
        return sum(rows.num_rows for rows in self.tables(path))

    def damage(self, path: Path) -> str | None:
        """Why a file cannot be read to its end, if it cannot."""
        for rows in self.tables(path):
            for reason in rows.column(REASON).unique().to_pylist():
                if reason is not None and reason.startswith(parquet.DAMAGED):
                    return str(reason).removeprefix(f"{parquet.DAMAGED}: ")
        return None

    def _partition(self, path: Path, names: Sequence[str]) -> Partition:
        """What the file itself does not say; a column that came later is null in it."""
        said = self.told[str(path)]
        told: dict[str, str | None] = {}
        for column in self.feed.stream.columns:
            values = [value for name, value in said.items() if alike(name, column.name)]
            if values or not any(alike(name, column.name) for name in names):
                told[column.name] = next(iter(values), None) or None
        return Partition(self.feed, told)


def _nothing(count: int) -> pa.Table:
    """So many rows of which a file says nothing."""
    return pa.table({name: pa.nulls(count, pa.string()) for name in (REASON, ROW)})


def _as_tables_tell(rows: pa.Table) -> pa.Table:
    """A path stands for a file as a whole, not for a row of it."""
    reasons = rows.column(REASON)
    if reasons.null_count == rows.num_rows:
        return rows
    damaged = pc.starts_with(reasons, parquet.DAMAGED)
    row = pc.if_else(damaged, rows.column(ROW), pa.scalar(None, pa.string()))
    return rows.set_column(rows.schema.get_field_index(ROW), ROW, row)


_STRANGE = {"deletionVectors", "columnMapping"}


def _strange(table: DeltaTable) -> str:
    """What of a table its files do not tell."""
    return ", ".join(sorted(_STRANGE & set(table.protocol().reader_features or ())))


File = tuple[str, Told]


@lru_cache(maxsize=4)
def _in_snapshot(path: Path, version: int) -> list[File]:
    """The files of a version in the order in which Delta's source reads a table it first meets."""
    actions = pa.table(DeltaTable(path, version=version).get_add_actions(flatten=True)).to_pylist()
    ordered = sorted(actions, key=lambda a: (a["modification_time"], a["path"]))
    prefix = "partition."
    return [
        (
            unquote(action["path"]),
            {
                name.removeprefix(prefix): None if value is None else str(value)
                for name, value in action.items()
                if name.startswith(prefix)
            },
        )
        for action in ordered
    ]


def _added(path: Path, version: int) -> list[File]:
    """The files that a version added, in the order of its log; none if it is still to come."""
    log = path / "_delta_log" / f"{version:020d}.json"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    actions = [loads(line) for line in lines]
    return [
        (unquote(a["add"]["path"]), a["add"].get("partitionValues") or {})
        for a in actions
        if "add" in a and a["add"].get("dataChange", True)
    ]


def _between(path: Path, part: OffsetRange) -> Iterator[File]:
    """The files from one position to another, in the order in which Delta's source reads them."""
    if part.end is None:
        return
    start, end = part.start or _beginning(part.end), part.end
    done, last = int(start["reservoirVersion"]), int(end["reservoirVersion"])
    first, until = _index(start), _index(end)
    if start["isStartingVersion"]:
        files = _in_snapshot(path, done)
        yield from files[first : until if end["isStartingVersion"] else None]
        if end["isStartingVersion"]:
            return
        done, first = done + 1, 0
    for version in range(done, last + 1):
        yield from _added(path, version)[first : until if version == last else None]
        first = 0


def _beginning(end: Position) -> Position:
    """Where a source stood that has taken a table as it found it: before all of its files."""
    version = int(end["reservoirVersion"])
    found = version if end["isStartingVersion"] else version - 1
    return {"reservoirVersion": found, "index": -1, "isStartingVersion": True}


def _index(position: Position) -> int:
    """How many files of the position's own version have been taken."""
    return max(0, int(position["index"]) + 1)
