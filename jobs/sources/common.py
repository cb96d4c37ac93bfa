"""What the sources share: the stream that they feed, its types, and one kind of error."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from jobs.errors import MidstreamError
from jobs.tables.columns import BATCH, REASON, ROW
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
    exact: bool = True
    """Whether files and tables may have no columns but the declared ones."""

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
    def as_declared(self) -> list[str]:
        """The raw rows of a source in which only a time may be one of no year from 1 to 9999."""
        kinds = {f"`{column.name}`": column.type for column in self.stream.columns}
        times = {name: kind for name, kind in kinds.items() if kind in ("DATE", "TIMESTAMP")}
        columns = [
            f"CASE WHEN {_fits(name)} THEN CAST({name} AS {kind}) END AS {name}"
            if name in times
            else f"CAST({name} AS {kind}) AS {name}"
            for name, kind in kinds.items()
        ]
        wrong = ", ".join(
            f"CASE WHEN NOT {_fits(name)} THEN '{name[1:-1]} has no value of {kind}' END"
            for name, kind in times.items()
        )
        reason = f"nullif(concat_ws(', ', {wrong}), '') AS `{REASON}`"
        return [*columns, reason, f"CAST(NULL AS STRING) AS `{ROW}`"]


def _fits(name: str) -> str:
    """Whether a column of times has a day that all engines tell alike; null if it has none."""
    return f"unix_date(CAST({name} AS DATE)) BETWEEN {DAYS[0]} AND {DAYS[1]}"


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


def counted(rows: DataFrame) -> dict[int, int]:
    """How many raw rows each batch has."""
    return {row[BATCH]: row["count"] for row in rows.groupBy(BATCH).count().collect()}
