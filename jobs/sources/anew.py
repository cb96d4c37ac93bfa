"""What batches took, read once more: file by file, in Spark's tasks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from jobs.sources.checkpoint import OffsetRange
from jobs.sources.common import Feed
from jobs.tables.columns import BATCH


class FileReader(Protocol):
    """Who knows what is in a file."""

    def tables(self, path: Path) -> Iterator[pa.Table]:
        """The raw rows of a file."""

    def count(self, path: Path) -> int:
        """How many there are."""


def rows(
    spark: SparkSession, feed: Feed, reader: FileReader, files: Mapping[Path, int]
) -> DataFrame:
    """The raw rows of files, each with the batch that took it."""
    work = partial(_rows_of, reader)
    return _each(spark, files).mapInArrow(work, f"{feed.raw_schema}, `{BATCH}` BIGINT")


def counts(
    spark: SparkSession, reader: FileReader, files: Mapping[Path, int], parts: Sequence[OffsetRange]
) -> Mapping[int, int]:
    """How many raw rows each batch took."""
    work = partial(_counts_of, reader)
    found = dict.fromkeys((part.batch for part in parts), 0)
    for batch, count in (
        _each(spark, files).mapInArrow(work, "batch BIGINT, count BIGINT").collect()
    ):
        found[batch] += count
    return found


def _each(spark: SparkSession, files: Mapping[Path, int]) -> DataFrame:
    """The files of batches, and which of them took each, shared out to tasks."""
    tasks = max(1, min(len(files), spark.sparkContext.defaultParallelism))
    named = [(str(path), batch) for path, batch in files.items()]
    listed = spark.createDataFrame(named, "path STRING, batch BIGINT")
    return listed.repartition(tasks, "path")


def _rows_of(reader: FileReader, files: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in a task."""
    for file in _listed(files):
        for some in reader.tables(Path(file["path"])):
            number = pa.repeat(pa.scalar(file["batch"], pa.int64()), some.num_rows)
            yield from some.append_column(BATCH, number).to_batches()


def _counts_of(reader: FileReader, files: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in a task."""
    for file in _listed(files):
        count = reader.count(Path(file["path"]))
        yield pa.RecordBatch.from_pylist([{"batch": file["batch"], "count": count}])


def _listed(files: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for some in files:
        yield from some.to_pylist()
