"""All streams of a job as one streaming query, and each batch's rows stream by stream again.

Spark numbers the sources of a query as they stand in it, and its checkpoint knows them by these
numbers: so the order is fixed when a job first runs and kept in its storage.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial, reduce
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit, struct
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from jobs.backends.parquet_input import ParquetInput
from jobs.backends.spark.backend import gathered
from jobs.sources.checkpoint import CheckpointOffsets, OffsetRange
from jobs.sources.common import Feed
from jobs.sources.files import FilesSource
from jobs.sources.generator import GeneratorSource
from jobs.sources.registry import Source, source
from jobs.tables.columns import BATCH
from jobs.tables.origin import Origin
from optimizer.query import Stream

Rows = TypeVar("Rows")

TAG = "@stream"
"""The column that says to which stream a row of the united query belongs."""


@dataclass(frozen=True)
class InputStream:
    """A stream, where it comes from, and what the checkpoint knows of that."""

    stream: Stream
    source: Source
    taken: CheckpointOffsets

    def __post_init__(self) -> None:
        self.source.check()


def input_streams(
    origin: Origin,
    streams: Mapping[str, Stream],
    specs: Mapping[str, Any],
    checkpoint: Path,
    trigger: timedelta,
) -> list[InputStream]:
    """The streams in the order in which the streaming query reads them."""
    found = []
    for number, name in enumerate(origin.streams):
        feed = Feed(streams[name], origin.started, specs[name].exact)
        made = source(feed, specs[name])
        if isinstance(made, GeneratorSource):
            made = GeneratorSource(feed, specs[name], trigger)
        found.append(InputStream(streams[name], made, CheckpointOffsets(checkpoint, number)))
    return found


def read_in_place(
    input_streams: Iterable[InputStream],
    batch: int,
    read: Callable[[FilesSource, CheckpointOffsets, int], Rows],
) -> dict[str, Rows]:
    """A batch's rows by stream, of those that can be read from where they lie."""
    return {
        inlet.stream.name: read(inlet.source, inlet.taken, batch)
        for inlet in input_streams
        if isinstance(inlet.source, FilesSource)
    }


def read_by_spark(input_streams: Iterable[InputStream]) -> list[str]:
    """The streams whose rows come through the streaming query."""
    return [i.stream.name for i in input_streams if not isinstance(i.source, FilesSource)]


def union_of_streams(spark: SparkSession, input_streams: Sequence[InputStream]) -> DataFrame:
    """One query over all streams: a column for each whose rows it passes, null in others' rows.

    Of streams that are read from where they lie it has neither columns nor rows: Spark only finds
    out which files a batch takes.
    """
    frames = {inlet.stream.name: inlet.source.frame(spark) for inlet in input_streams}
    return _tagged(frames, read_by_spark(input_streams))


def rescued(
    spark: SparkSession, input_streams: Sequence[InputStream], batch: int
) -> DataFrame | None:
    """The rows that a batch passes, read anew if Spark cannot read a file that some are in."""
    own = [inlet for inlet in input_streams if inlet.stream.name in read_by_spark(input_streams)]
    if not any(inlet.source.damaged(inlet.taken, batch) for inlet in own):
        return None
    frames = {}
    for inlet in own:
        part = OffsetRange(batch, inlet.taken.position(batch - 1), inlet.taken.position(batch))
        frames[inlet.stream.name] = inlet.source.again(spark, inlet.taken, [part]).drop(BATCH)
    return _tagged(frames, list(frames))


def _tagged(frames: Mapping[str, DataFrame], wanted: Sequence[str]) -> DataFrame:
    types = {name: frames[name].schema for name in wanted}

    def tagged(name: str) -> DataFrame:
        row = struct(*(col(f"`{column}`") for column in frames[name].columns))
        columns = [
            (row if other == name else lit(None).cast(kind)).alias(other)
            for other, kind in types.items()
        ]
        rows = frames[name].select(lit(name).alias(TAG), *columns)
        return rows if name in types else rows.where("false")

    return reduce(DataFrame.unionAll, map(tagged, frames))


def as_files(batch: DataFrame, streams: Sequence[str], directory: Path) -> dict[str, ParquetInput]:
    """A batch's rows by stream, written by tasks to files that live as long as the batch."""
    for name in streams:
        (directory / name).mkdir(parents=True, exist_ok=True)
    written = batch.mapInArrow(partial(_spill, directory, streams), _SPILLED).collect()
    found = {}
    for name in streams:
        kind = batch.schema[name].dataType
        assert isinstance(kind, StructType)
        files = tuple((row.path, row.rows) for row in written if row.stream == name)
        found[name] = ParquetInput(files, to_arrow_schema(kind, timezone="UTC"))
    return found


_SPILLED = "stream STRING, path STRING, rows BIGINT"


def _spill(
    directory: Path, streams: Sequence[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Runs in a task."""
    for rows in gathered(batches):
        tags, written = rows.column(TAG), []
        for name in streams:
            own = _own(rows.column(name).filter(pc.equal(tags, name)))
            path = directory / name / f"{uuid4().hex}.parquet"
            if own.num_rows:
                pq.write_table(own, path)
                written.append({"stream": name, "path": str(path), "rows": own.num_rows})
        if written:
            yield pa.RecordBatch.from_pylist(written)


def as_arrow(batch: DataFrame, streams: Iterable[str]) -> dict[str, pa.Table]:
    """A batch's rows by stream, brought here at once."""
    rows = batch.toArrow()
    tags = rows.column(TAG)
    return {name: _own(rows.column(name).filter(pc.equal(tags, name))) for name in streams}


def _own(column: pa.ChunkedArray) -> pa.Table:
    fields = list(column.type)
    chunks = [
        pa.Table.from_arrays(chunk.flatten(), names=[f.name for f in fields])
        for chunk in column.chunks
    ]
    schema = pa.schema([pa.field(f.name, f.type) for f in fields])
    return pa.concat_tables([schema.empty_table(), *(chunk.cast(schema) for chunk in chunks)])


def as_frames(batch: DataFrame, streams: Iterable[str]) -> dict[str, DataFrame]:
    """A batch's rows by stream, where they are."""
    return {name: batch.where(f"`{TAG}` = '{name}'").selectExpr(f"`{name}`.*") for name in streams}
