"""Rows appended to a Delta table, read by Spark's own Delta source."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from json import loads
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyspark.sql import DataFrame, SparkSession

from jobs.engine.checkpoint import Part, Position, Taken, whole_versions
from jobs.engine.paths import check_table
from jobs.engine.sources.common import (
    Feed,
    SourceError,
    footers,
    is_there,
    local,
    numbered,
    same_schema,
)
from jobs.engine.sources.parquet import damage
from jobs.engine.store import BATCH
from jobs.options import options


class DeltaSource:
    """A stream of a table's rows; Delta's source refuses what is not an append."""

    endless = False
    keeps = True

    def __init__(self, feed: Feed, spec: Any) -> None:
        self._feed = feed
        self._path = check_table(local(spec.path, feed.name), SourceError)
        self._options = options("delta", spec.options)
        self._table: DeltaTable | None = None

    def check(self) -> None:
        self.check_presence()
        try:
            schema = DeltaTable(self._path).schema().to_arrow()
        except TableNotFoundError:
            raise SourceError(
                f"{self._path} of stream {self._feed.name} is not a Delta table"
            ) from None
        same_schema(self._feed.stream, pa.schema(schema), str(self._path))

    def check_presence(self) -> None:
        is_there(self._path, self._feed.name)

    def frame(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format("delta").options(**self._options)
        return reader.load(str(self._path)).selectExpr(*self._feed.as_times_fit)

    def inspect(self, taken: Taken, batch: int) -> None:
        self.check()
        part = Part(batch, taken.position(batch - 1), taken.position(batch))
        for path in self._files_of([part]):
            if path.exists() and (why := damage(path)) is not None:
                raise SourceError(
                    f"{path} of stream {self._feed.name} cannot be read: {why}: bring back the "
                    "file, which belongs to a Delta table, and start again"
                )

    def again(self, spark: SparkSession, taken: Taken, parts: Sequence[Part]) -> DataFrame:  # noqa: ARG002
        files = self._files_of(parts)
        if not files:
            return self._feed.none(spark)
        reader = spark.read.schema(self._feed.schema).option("basePath", str(self._path))
        frame = reader.option("__globPaths__", "false").parquet(*map(str, files))
        return numbered(spark, frame, files).selectExpr(*self._feed.as_times_fit, f"`{BATCH}`")

    def count(self, spark: SparkSession, taken: Taken, parts: Sequence[Part]) -> Mapping[int, int]:  # noqa: ARG002
        return footers(self._files_of(parts))

    def _files_of(self, parts: Sequence[Part]) -> dict[Path, int]:
        """The files that batches took, and which of them took each."""
        return {
            self._path / file: part.batch for part in parts for file in _between(self._path, part)
        }

    def waiting(self, taken: Taken, batch: int) -> int | None:
        if self._table is None:
            self._table = DeltaTable(self._path)
        self._table.update_incremental()
        position = taken.position(batch)
        return self._table.version() - (-1 if position is None else whole_versions(position))


@lru_cache(maxsize=4)
def _in_snapshot(path: Path, version: int) -> list[str]:
    """The files of a version in the order in which Delta's source reads a table it first meets."""
    actions = pa.table(DeltaTable(path, version=version).get_add_actions(flatten=True)).to_pylist()
    ordered = sorted(actions, key=lambda a: (a["modification_time"], a["path"]))
    return [unquote(action["path"]) for action in ordered]


def _added(path: Path, version: int) -> list[str]:
    """The files that a version added, in the order of its log; none if it is still to come."""
    log = path / "_delta_log" / f"{version:020d}.json"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    actions = [loads(line) for line in lines]
    return [
        unquote(a["add"]["path"])
        for a in actions
        if "add" in a and a["add"].get("dataChange", True)
    ]


def _between(path: Path, part: Part) -> Iterator[str]:
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
