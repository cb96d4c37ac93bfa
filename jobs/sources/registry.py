"""Where streams come from.  A source is one file and one line here.

A source makes a streaming DataFrame of raw rows, looks at what a batch is about to take before
anything uses it, and can read the rows of some batches again, as statistics are made.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from jobs.sources.checkpoint import CheckpointOffsets, OffsetRange
from jobs.sources.common import Feed
from jobs.sources.delta_table import DeltaSource
from jobs.sources.files import FilesSource
from jobs.sources.generator import GeneratorSource
from jobs.sources.kafka import KafkaSource


class Source(Protocol):
    """One stream's origin."""

    endless: bool
    """Whether it can never be caught up with."""

    @property
    def keeps(self) -> bool:
        """Whether what a batch took is still there when Spark has noted the batch as done."""

    def check(self) -> None:
        """Complain if it cannot deliver: its directory is not there, its schema is another."""

    def check_presence(self) -> None:
        """Complain if what was there is there no more; cheap enough to be asked all the time."""

    def frame(self, spark: SparkSession) -> DataFrame:
        """The stream's columns, `@reason` and `@row`, without end."""

    def inspect(self, taken: CheckpointOffsets, batch: int) -> str:
        """Complain if what that batch takes does not have the stream's schema; else what is new.

        That is what a person should hear once, and is empty mostly.
        """

    def damaged(self, taken: CheckpointOffsets, batch: int) -> bool:
        """Whether a file that a batch takes through Spark cannot be read, so Spark must not try."""

    def again(
        self, spark: SparkSession, taken: CheckpointOffsets, parts: Sequence[OffsetRange]
    ) -> DataFrame:
        """What batches in a row took: the columns, `@reason`, `@row` and `@batch`."""

    def count(
        self, spark: SparkSession, taken: CheckpointOffsets, parts: Sequence[OffsetRange]
    ) -> Mapping[int, int]:
        """How many rows each of these batches took; those without any need not be there."""

    def waiting(self, taken: CheckpointOffsets, batch: int) -> int | None:
        """How many files or versions that batch has left; nothing if that cannot be said."""


SOURCES: Mapping[str, Callable[[Feed, Any], Source]] = {
    "files": FilesSource,
    "delta": DeltaSource,
    "generator": GeneratorSource,
    "kafka": KafkaSource,
}


def source(feed: Feed, spec: Any) -> Source:
    """The source of a stream as the job file describes it."""
    return SOURCES[spec.source](feed, spec)
