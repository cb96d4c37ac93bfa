"""Made-up tuples: a function of the job's start, the seed and the second that they belong to.

Spark's rate source counts seconds, everything else is arithmetic on whole numbers.  So what was
generated can be generated again from the offset alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any
from zlib import crc32

from pyspark.sql import DataFrame, SparkSession

from jobs.sources.checkpoint import CheckpointOffsets, OffsetRange, Position
from jobs.sources.common import Feed, counted
from jobs.tables.columns import BATCH
from optimizer.query import Column

TICK = timedelta(seconds=1)
"""What one row of Spark's rate source becomes."""

DIFFERENT = 1000
"""How many values a column has when the job file does not say."""

_PRIME = 2**31 - 1
"""x to the fifth is a permutation modulo this prime, and scatters what stands in a row."""

_SECOND, _TUPLE = 1_000_003, 48_271


class GeneratorSource:
    """A stream that never ends, at the rate and from the keys that the job file says."""

    endless = True
    keeps = True

    def __init__(self, feed: Feed, spec: Any, trigger: timedelta = TICK) -> None:
        self._feed = feed
        self._spec = spec.generator
        self._ticks = max(1, round(trigger / TICK))

    def check(self) -> None:
        """Nothing can be missing."""

    def check_presence(self) -> None:
        """Nothing can go missing."""

    def frame(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format("rate-micro-batch")
        ticks = reader.options(
            rowsPerBatch=str(self._ticks), numPartitions="1", startTimestamp="0"
        ).load()
        return self._tuples(ticks)

    def _tuples(self, ticks: DataFrame, *kept: str) -> DataFrame:
        """The tuples of some seconds, with some more columns of these."""
        counted = ticks.selectExpr("value AS tick", f"{self._count()} AS many", *kept)
        made = counted.where("many > 0").selectExpr(
            "tick", "many", "explode(sequence(CAST(0 AS BIGINT), many - 1)) AS n", *kept
        )
        drawn = made.selectExpr("tick", "many", "n", *self._drawn(), *kept)
        values = drawn.selectExpr(*self._values(), *kept)
        return values.selectExpr(*self._feed.as_it_is, *kept)

    def inspect(self, taken: CheckpointOffsets, batch: int) -> str:  # noqa: ARG002
        """What is made up has the right schema."""
        return ""

    def damaged(self, taken: CheckpointOffsets, batch: int) -> bool:  # noqa: ARG002
        return False

    def again(
        self,
        spark: SparkSession,
        taken: CheckpointOffsets,  # noqa: ARG002
        parts: Sequence[OffsetRange],
    ) -> DataFrame:
        spans = [(part.batch, _ticks(part.start), _ticks(part.end)) for part in parts]
        batches = spark.createDataFrame(spans, f"`{BATCH}` BIGINT, first BIGINT, last BIGINT")
        ticks = batches.where("first < last").selectExpr(
            f"`{BATCH}`", "explode(sequence(first, last - 1)) AS value"
        )
        return self._tuples(ticks.repartition("value"), f"`{BATCH}`")

    def count(
        self,
        spark: SparkSession,
        taken: CheckpointOffsets,
        parts: Sequence[OffsetRange],
    ) -> Mapping[int, int]:
        return counted(self.again(spark, taken, parts))

    def waiting(self, taken: CheckpointOffsets, batch: int) -> int | None:
        """Nothing waits before it is made."""

    # --- Spark's SQL ------------------------------------------------------------------------------

    def _count(self, tick: str = "value") -> str:
        """How many tuples a second has; fractions add up over several seconds."""

        def made(rate: float) -> str:
            milli = round(rate * 1000)
            until, since = f"({tick} + 1) * {milli}", f"{tick} * {milli}"
            return f"CAST(floor({until} / 1000.0D) - floor({since} / 1000.0D) AS BIGINT)"

        return _by_second(tick, made(self._spec.rate), self._shifted("rate", made))

    def _shifted(self, name: str, text: Any) -> Iterator[tuple[int, str]]:
        """From which second on a property is another."""
        for shift in self._spec.drift:
            value = getattr(shift, name)
            if value:
                yield shift.after // TICK, text(value)

    def _drawn(self) -> Iterator[str]:
        """For every column but the event time a number below the prime, and different each time."""
        for i, column in self._columns():
            salt = crc32(f"{self._spec.seed}/{self._feed.name}/{column.name}".encode()) % _PRIME
            x = f"(tick * {_SECOND} + n * {_TUPLE} + {salt}) % {_PRIME}"
            yield f"{x} AS x{i}"

    def _values(self) -> Iterator[str]:
        micros = TICK // timedelta(microseconds=1)
        within = f"CAST(floor(n * {micros}D / many) AS BIGINT)"
        time = f"{self._feed.started} + tick * {micros} + {within}"
        for i, column in self._columns():
            square = f"((x{i} * x{i}) % {_PRIME})"
            drawn = f"((({square} * {square}) % {_PRIME}) * x{i}) % {_PRIME}"
            yield f"{_typed(f'({drawn}) % {self._keys(column)}', column)} AS `{column.name}`"
        yield f"timestamp_micros({time}) AS `{self._feed.stream.event_time}`"

    def _keys(self, column: Column) -> str:
        """How many values a column has, second by second."""

        def many(keys: Any) -> str:
            return str(keys.get(column.name, self._spec.keys.get(column.name, DIFFERENT)))

        shifts = [
            (shift.after // TICK, many(shift.keys))
            for shift in self._spec.drift
            if column.name in shift.keys
        ]
        return _by_second("tick", many(self._spec.keys), iter(shifts))

    def _columns(self) -> Iterator[tuple[int, Column]]:
        for i, column in enumerate(self._feed.stream.columns):
            if column.name != self._feed.stream.event_time:
                yield i, column


def _ticks(position: Position | None) -> int:
    """How many seconds have been made."""
    return 0 if position is None else int(position["offset"])


def _by_second(tick: str, first: str, shifts: Iterator[tuple[int, str]]) -> str:
    """The first value, or that of the last shift which has come."""
    newest_first = sorted(shifts, reverse=True)
    later = [f"WHEN {tick} >= {since} THEN {value}" for since, value in newest_first]
    return f"(CASE {' '.join(later)} ELSE {first} END)" if later else first


def _typed(number: str, column: Column) -> str:
    if column.type == "BOOLEAN":
        return f"({number}) % 2 = 0"
    if column.type == "DATE":
        return f"date_add(DATE '2020-01-01', CAST({number} AS INT))"
    if column.type == "TIMESTAMP":
        return f"timestamp_micros(({number}) * 1000000)"
    if column.type == "BINARY":
        return f"CAST(CAST({number} AS STRING) AS BINARY)"
    return f"CAST({number} AS {column.type})"
