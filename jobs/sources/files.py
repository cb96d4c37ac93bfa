"""Files that appear in a directory: Parquet with its own schema, JSON and CSV.

Spark finds them; what is in them is read here, once and for every engine.  A file whose columns are
not the declared ones stops the job before a row of it is used.  What cannot be read is rejected: a
row, a line, or a file as a whole.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from jobs.backends.parquet_input import ParquetInput, quoted
from jobs.options import LISTING, options
from jobs.sources import anew
from jobs.sources.checkpoint import CheckpointOffsets, OffsetRange
from jobs.sources.columns import ignoring
from jobs.sources.common import (
    Feed,
    SourceError,
    duck_type,
    is_there,
    local,
    raw_schema,
)
from jobs.sources.reading import Reader
from jobs.tables.columns import REASON, ROW
from jobs.tables.paths import LITERAL, stream_pattern
from optimizer.query import Column

OPTIONS = {"maxFileAge": "36500d"}
"""Spark would leave out what is a week older than the newest file, without a word."""

_LARGE = 4 << 20
"""So many bytes of files are worth Spark's tasks."""


class FilesSource:
    """A stream of the rows of files, each taken once."""

    endless = False

    def __init__(self, feed: Feed, spec: Any) -> None:
        self._feed = feed
        self._path = local(spec.path, feed.name)
        self._format: str = spec.format
        self._options: dict[str, str] = OPTIONS | options(spec.format, spec.options)
        self._reader = Reader(
            feed, spec.format, self._options, None if self._recursive else self._path
        )
        self._ignored: set[str] = set()
        self._known: set[Path] = set()
        self._known_until = -1

    def check(self) -> None:
        self.check_presence()
        for path in self._path.iterdir() if not self._recursive else ():
            if "=" in path.name and path.is_dir():
                self._is_ours(path / "...")

    def check_presence(self) -> None:
        is_there(self._path, self._feed.name)

    def frame(self, spark: SparkSession) -> DataFrame:
        """Which files there are: their rows are read from where they lie."""
        listing = {name: value for name, value in self._options.items() if name in LISTING}
        reader = spark.readStream.format("text").schema("`@text` STRING").options(**listing)
        return reader.load(stream_pattern(self._path))

    def inspect(self, taken: CheckpointOffsets, batch: int) -> str:
        ignored: dict[str, None] = {}
        for path in taken.files(batch, after=batch - 1):
            self._is_ours(path)
            try:
                ignored |= dict.fromkeys(self._reader.check(path))
            except FileNotFoundError:
                raise SourceError(
                    f"{path} is gone, and batch {batch} of stream {self._feed.name} needs it: "
                    "bring it back and start again"
                ) from None
        new = [name for name in ignored if name not in self._ignored]
        self._ignored |= ignored.keys()
        return ignoring(self._feed.name, new) if new else ""

    def _is_ours(self, path: Path) -> None:
        """Spark looks into directories such as `k=v`: each has to name a column of the stream."""
        if path.parent == self._path or self._recursive:
            return
        if self._reader.partition(path) is None:
            raise SourceError(
                f"{path} is in a directory below that of stream {self._feed.name} that names no "
                "declared column: declare it, say recursiveFileLookup: true to read these as "
                "well, or move it away"
            )

    @property
    def _recursive(self) -> bool:
        return self._options.get("recursiveFileLookup", "false").lower() == "true"

    @property
    def keeps(self) -> bool:
        return self._options.get("cleanSource", "off").lower() == "off"

    # --- what a batch takes, for each backend ---------------------------------------------------

    def rows(self, taken: CheckpointOffsets, batch: int) -> pa.Table:
        """What a batch takes, read here."""
        files = taken.files(batch, after=batch - 1)
        return pa.concat_tables(
            [raw_schema(self._feed).empty_table(), *map(self._reader.rows, files)]
        )

    def filed(
        self, taken: CheckpointOffsets, batch: int, *, scratch: Path, spark: SparkSession
    ) -> ParquetInput:
        """What a batch takes, to be read by DuckDB wherever it is."""
        files, plain = self._files(taken, batch, scratch, spark)
        schema = raw_schema(self._feed)
        if not plain:
            return ParquetInput(files, schema)
        nothing = [f"NULL::VARCHAR AS {quoted(name)}" for name in (REASON, ROW)]
        read = ", ".join([*_typed(self._feed.stream.columns), *nothing])
        return ParquetInput(files, schema, read, tuple(c.name for c in self._feed.stream.columns))

    def frame_of(
        self, taken: CheckpointOffsets, batch: int, *, scratch: Path, spark: SparkSession
    ) -> DataFrame:
        """What a batch takes, to be read by Spark as often as it likes."""
        files, plain = self._files(taken, batch, scratch, spark)
        schema = self._feed.schema if plain else self._feed.raw_schema
        if not files:
            return spark.createDataFrame([], self._feed.raw_schema)
        paths = [path for path, _ in files]
        rows = spark.read.schema(schema).options(**LITERAL).parquet(*paths)
        return rows.selectExpr(*self._feed.as_it_is) if plain else rows

    def _files(
        self, taken: CheckpointOffsets, batch: int, scratch: Path, spark: SparkSession
    ) -> tuple[tuple[tuple[str, int], ...], bool]:
        """The files to read, with their rows: those taken if all are plain, or made of them."""
        found = [path for path in taken.files(batch, after=batch - 1) if path.stat().st_size]
        counts = [(path, self._reader.plain(path)) for path in found]
        plain = [(str(path), count) for path, count in counts if count is not None]
        if len(plain) == len(counts):
            return tuple(plain), True
        directory = scratch / self._feed.name
        rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        work = partial(self._reader.stage, directory)
        return tuple(_done(work, [path for path, _ in counts], spark)), False

    def damaged(self, taken: CheckpointOffsets, batch: int) -> bool:  # noqa: ARG002
        """Spark reads none of them."""
        return False

    def again(
        self, spark: SparkSession, taken: CheckpointOffsets, parts: Sequence[OffsetRange]
    ) -> DataFrame:
        return anew.rows(spark, self._feed, self._reader, self._taken(taken, parts))

    def count(
        self, spark: SparkSession, taken: CheckpointOffsets, parts: Sequence[OffsetRange]
    ) -> Mapping[int, int]:
        return anew.counts(spark, self._reader, self._taken(taken, parts), parts)

    def _taken(self, taken: CheckpointOffsets, parts: Sequence[OffsetRange]) -> Mapping[Path, int]:
        """The files of batches, and which of them took each."""
        files = taken.files_of(parts)
        for path in files:
            self._is_there(path)
        return files

    def _is_there(self, path: Path) -> None:
        """Whether a file that was taken once still is."""
        if not path.exists():
            raise SourceError(
                f"{path} is gone, and the tuples of stream {self._feed.name} that it held cannot "
                "be read again: bring it back"
            )

    def waiting(self, taken: CheckpointOffsets, batch: int) -> int | None:
        self._known |= set(taken.files(batch, after=self._known_until))
        self._known_until = batch
        return sum(path not in self._known and path.is_file() for path in self._present())

    def _present(self) -> Iterator[Path]:
        """The files that Spark would find."""
        for directory, below, names in os.walk(self._path):
            yield from (Path(directory, name) for name in names if _seen(name))
            below[:] = [name for name in below if _seen(name) and (self._recursive or "=" in name)]


def _done(
    work: Callable[[Path], tuple[str, int]], files: list[Path], spark: SparkSession
) -> list[tuple[str, int]]:
    """Something done with files: here, or in tasks if it is much."""
    if len(files) == 1 or sum(path.stat().st_size for path in files) < _LARGE:
        return list(map(work, files))
    context = spark.sparkContext
    tasks = min(len(files), context.defaultParallelism)
    return context.parallelize(files, tasks).map(work).collect()


def _seen(name: str) -> bool:
    """Whether Spark takes a file of that name."""
    hidden = name.startswith(".") or (name.startswith("_") and "=" not in name)
    return not hidden and not name.endswith("._COPYING_")


def _typed(columns: Iterable[Column]) -> list[str]:
    """Columns of a file as those that were declared."""
    return [f"CAST({quoted(c.name)} AS {duck_type(c)}) AS {quoted(c.name)}" for c in columns]
