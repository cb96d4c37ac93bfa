"""What the sources share: the stream that they feed, its types, and one kind of error."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast

from jobs.engine.ingest import REASON, ROW
from jobs.engine.paths import of_uri
from jobs.engine.store import BATCH
from jobs.errors import MidstreamError
from optimizer.query import Column, Stream


class SourceError(MidstreamError):
    """A source cannot deliver, or delivers something else than was declared."""


DAYS = -719_162, 2_932_896
"""The first and the last day since 1970 of the years 1 to 9999, which all engines tell alike."""


@dataclass(frozen=True)
class Feed:
    """A stream to feed; `started` is when the job first ran, in microseconds."""

    stream: Stream
    started: int

    @property
    def name(self) -> str:
        """The stream's."""
        return self.stream.name

    @property
    def schema(self) -> str:
        """As Spark's readers take it."""
        return ", ".join(f"`{c.name}` {c.type}" for c in self.stream.columns)

    @property
    def raw_schema(self) -> str:
        """The same, with why a row is none and what that was."""
        return f"{self.schema}, `{REASON}` STRING, `{ROW}` STRING"

    @property
    def columns(self) -> list[str]:
        """The columns, quoted for Spark."""
        return [f"`{column.name}`" for column in self.stream.columns]

    @property
    def as_it_is(self) -> list[str]:
        """The raw rows of a source whose rows always fit their schema."""
        nothing = [f"CAST(NULL AS STRING) AS `{name}`" for name in (REASON, ROW)]
        return [*self.columns, *nothing]

    @property
    def as_times_fit(self) -> list[str]:
        """The raw rows of a source in which only a time may be one of no year from 1 to 9999."""
        kinds = {f"`{column.name}`": column.type for column in self.stream.columns}
        times = {name: kind for name, kind in kinds.items() if kind in ("DATE", "TIMESTAMP")}
        columns = [
            f"CASE WHEN {_fits(name)} THEN CAST({name} AS {kind}) END AS {name}"
            if name in times
            else name
            for name, kind in kinds.items()
        ]
        wrong = ", ".join(
            f"CASE WHEN NOT {_fits(name)} THEN '{name[1:-1]} has no value of {kind}' END"
            for name, kind in times.items()
        )
        reason = f"nullif(concat_ws(', ', {wrong}), '') AS `{REASON}`"
        return [*columns, reason, f"CAST(NULL AS STRING) AS `{ROW}`"]

    def none(self, spark: SparkSession) -> DataFrame:
        """The raw rows of no batches."""
        return spark.createDataFrame([], f"{self.raw_schema}, `{BATCH}` BIGINT")


def _fits(name: str) -> str:
    """Whether a column of times has a day that all engines tell alike; null if it has none."""
    return f"unix_date(CAST({name} AS DATE)) BETWEEN {DAYS[0]} AND {DAYS[1]}"


_ARROW = {
    "BOOLEAN": pa.types.is_boolean,
    "TINYINT": pa.types.is_int8,
    "SMALLINT": pa.types.is_int16,
    "INT": pa.types.is_int32,
    "BIGINT": pa.types.is_int64,
    "FLOAT": pa.types.is_float32,
    "DOUBLE": pa.types.is_float64,
    "DATE": pa.types.is_date32,
    "STRING": lambda t: t in (pa.string(), pa.large_string(), pa.string_view()),
    "BINARY": lambda t: t in (pa.binary(), pa.large_binary(), pa.binary_view()),
    "TIMESTAMP": pa.types.is_timestamp,
}
"""How a column's type looks to Arrow, which reads the schemas of files."""

_DUCK = {"STRING": "VARCHAR", "BINARY": "BLOB", "TIMESTAMP": "TIMESTAMPTZ"}


def duck_type(column: Column) -> str:
    """What DuckDB calls a column's type."""
    return _DUCK.get(column.type, column.type)


_ARROW_OF = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
}


def arrow_type(column: Column) -> pa.DataType:
    """What Arrow calls a column's type."""
    if column.type.startswith("DECIMAL"):
        precision, scale = map(int, column.type.removeprefix("DECIMAL").strip("()").split(","))
        return pa.decimal128(precision, scale)
    return _ARROW_OF[column.type]


def raw_schema(feed: Feed) -> pa.Schema:
    """A stream's raw rows: its columns, why a row is none, and what that was."""
    columns = [(column.name, arrow_type(column)) for column in feed.stream.columns]
    return pa.schema([*columns, (REASON, pa.string()), (ROW, pa.string())])


def same_schema(stream: Stream, found: pa.Schema, where: str) -> None:
    """Complain about the first column that is new, missing or of another type."""
    for column in stream.columns:
        if column.name not in found.names:
            raise SourceError(
                f"{where}: column {column.name} is missing; stream {stream.name} declares it as "
                f"{column.type}, the data has {', '.join(found.names) or 'no columns'}"
            )
        kind = _plain(found.field(found.names.index(column.name)).type)
        if found.names.count(column.name) > 1:
            raise SourceError(f"{where}: column {column.name} is there twice")
        if not _is(kind, column.type):
            raise SourceError(
                f"{where}: column {column.name} is {kind}; "
                f"stream {stream.name} declares it as {column.type}"
            )
    known_columns(stream, found.names, where)


def known_columns(stream: Stream, found: Iterable[str], where: str) -> None:
    """Complain about the first column that nobody declared."""
    declared = {column.name for column in stream.columns}
    for name in found:
        if name not in declared:
            raise SourceError(
                f"{where}: column {name} is new; stream {stream.name} declares "
                f"{', '.join(column.name for column in stream.columns)}"
            )


def _plain(kind: pa.DataType) -> pa.DataType:
    """What a value is, however often Arrow keeps it."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is(kind: pa.DataType, declared: str) -> bool:
    if declared.startswith("DECIMAL"):
        return (
            bool(pa.types.is_decimal(kind))
            and declared == f"DECIMAL({kind.precision}, {kind.scale})"
        )
    return bool(_ARROW[declared](kind))


def local(path: str, stream: str) -> Path:
    """A path of this machine."""
    if "://" in path:
        raise SourceError(f"stream {stream}: {path} is not on a local disk, which is not supported")
    return Path(path)


def is_there(path: Path, stream: str) -> None:
    """Complain if a directory is not there, or not any more."""
    if not path.is_dir():
        raise SourceError(
            f"the directory {path} of stream {stream} is not there: "
            "bring it back (or correct `path`) and start again"
        )


_FILE = "@file"


def numbered(spark: SparkSession, frame: DataFrame, files: Mapping[Path, int]) -> DataFrame:
    """The rows of files, each with the batch that took its file.

    Every file has one, and only one: an outer join over distinct files says so, and Spark leaves it
    out where nobody asks for the batch.
    """
    uris = {uri: files[of_uri(uri)] for uri in frame.inputFiles()}
    known = [(uri.replace("file://", "file:", 1), batch) for uri, batch in uris.items()]
    batches = spark.createDataFrame(known, f"`{_FILE}` STRING, `{BATCH}` BIGINT").dropDuplicates(
        [_FILE]
    )
    named = frame.selectExpr("*", f"_metadata.file_path AS `{_FILE}`")
    return named.join(broadcast(batches), _FILE, "left").drop(_FILE)


def footers(files: Mapping[Path, int]) -> dict[int, int]:
    """How many rows the Parquet files of each batch have, as these themselves say."""
    found = dict.fromkeys(files.values(), 0)
    for path, batch in files.items():
        found[batch] += pq.read_metadata(path).num_rows
    return found


def counted(rows: DataFrame) -> dict[int, int]:
    """How many raw rows each batch has."""
    return {row[BATCH]: row["count"] for row in rows.groupBy(BATCH).count().collect()}
