"""Files that appear in a directory: Parquet with its own schema, JSON and CSV line by line.

A Parquet file whose schema is not the declared one stops the job before a row of it is used.  In
JSON and CSV a line that does not fit is rejected, the others go on.
"""

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from jobs.engine.checkpoint import Part, Taken
from jobs.engine.executors.filed import Filed, quoted
from jobs.engine.ingest import REASON, ROW
from jobs.engine.sources.common import (
    Feed,
    SourceError,
    arrow_type,
    counted,
    duck_type,
    footers,
    is_there,
    known_columns,
    local,
    numbered,
    same_schema,
)
from jobs.engine.store import BATCH
from optimizer.query import Column

OPTIONS = {"maxFileAge": "36500d"}
"""Spark would leave out what is a week older than the newest file, without a word."""

_LISTING = {
    "maxFileAge", "maxFilesPerTrigger", "maxBytesPerTrigger", "latestFirst", "fileNameOnly",
    "maxCachedFiles", "pathGlobFilter", "recursiveFileLookup", "cleanSource", "sourceArchiveDir",
    "encoding",
}  # fmt: skip
"""Options about which files are read; others are about what is in them."""

_WRONG = "@malformed"
"""Where Spark puts a line that it cannot read."""

_PERMISSIVE = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _WRONG}


class FilesSource:
    """A stream of the rows of files, each taken once."""

    endless = False

    def __init__(self, feed: Feed, spec: Any) -> None:
        self._feed = feed
        self._path = local(spec.path, feed.name)
        self._format: str = spec.format
        given = {name: _text(value) for name, value in spec.options.items()}
        self._options: dict[str, str] = OPTIONS | given
        self._known: set[str] = set()
        self._known_until = -1

    def check(self) -> None:
        self.check_presence()
        if self._format != "parquet" and self._options.get("multiLine", "false") != "false":
            raise SourceError(f"stream {self._feed.name}: multiLine is not supported")

    def check_presence(self) -> None:
        is_there(self._path, self._feed.name)

    def frame(self, spark: SparkSession) -> DataFrame:
        made = {"parquet": self._parquet, "json": self._json, "csv": self._csv}
        return made[self._format](spark)

    def inspect(self, taken: Taken, batch: int) -> None:
        looks = {"parquet": self._look_at_parquet, "csv": self._look_at_csv}
        look = looks.get(self._format, _exists)
        for path in taken.files(batch, after=batch - 1):
            try:
                if path.stat().st_size:
                    look(path)
            except FileNotFoundError:
                raise SourceError(
                    f"{path} is gone, and batch {batch} of stream {self._feed.name} needs it: "
                    "bring it back and start again"
                ) from None

    @property
    def keeps(self) -> bool:
        cleans = {v.lower() for name, v in self._options.items() if name.lower() == "cleansource"}
        return cleans <= {"off"}

    @property
    def straight(self) -> bool:
        """Whether all that is to be done with a file is to read its columns."""
        return self._format == "parquet" and not self._options.keys() - OPTIONS.keys() - _LISTING

    def rows(self, taken: Taken, batch: int) -> pa.Table:
        """What a batch takes, read without Spark, if it can be read straight."""
        files = self._with_rows(taken, batch)
        names = [column.name for column in self._feed.stream.columns]
        schema = pa.schema([(c.name, arrow_type(c)) for c in self._feed.stream.columns])
        tables = [pq.ParquetFile(path).read(names).select(names).cast(schema) for path in files]
        rows = pa.concat_tables([schema.empty_table(), *tables])
        nothing = pa.nulls(rows.num_rows, pa.string())
        return rows.append_column(REASON, nothing).append_column(ROW, nothing)

    def filed(self, taken: Taken, batch: int) -> Filed:
        """What a batch takes, to be read by DuckDB wherever it is, if it can be read straight."""
        files = self._with_rows(taken, batch)
        columns = self._feed.stream.columns
        schema = pa.schema([(c.name, arrow_type(c)) for c in columns])
        texts = [pa.field(name, pa.string()) for name in (REASON, ROW)]
        nothing = [f"NULL::VARCHAR AS {quoted(name)}" for name in (REASON, ROW)]
        return Filed(
            tuple((str(path), pq.read_metadata(path).num_rows) for path in files),
            pa.schema([*schema, *texts]),
            ", ".join([*_typed(columns), *nothing]),
        )

    def frame_of(self, taken: Taken, batch: int, *, spark: SparkSession) -> DataFrame:
        """What a batch takes, to be read by Spark as often as it likes."""
        files = self._with_rows(taken, batch)
        if not files:
            return spark.createDataFrame([], self._feed.schema).selectExpr(*self._feed.as_it_is)
        paths = [f"file://{path}" for path in files]
        reader = spark.read.schema(self._feed.schema).options(**self._options)
        return reader.parquet(*paths).selectExpr(*self._feed.as_it_is)

    @staticmethod
    def _with_rows(taken: Taken, batch: int) -> list[Path]:
        return [path for path in taken.files(batch, after=batch - 1) if path.stat().st_size]

    def read_again(
        self, connection: duckdb.DuckDBPyConnection, table: str, taken: Taken, batch: int
    ) -> None:
        again = {"parquet": self._parquet_again, "json": self._json_again, "csv": self._csv_again}
        files = [path for path in taken.files(batch) if path.stat().st_size]
        again[self._format](connection, table, files)

    def again(self, spark: SparkSession, taken: Taken, parts: Sequence[Part]) -> DataFrame:
        again = {
            "parquet": self._parquet_rows, "json": self._json_rows, "csv": self._csv_rows,
        }  # fmt: skip
        files = self._files_of(taken, parts)
        return again[self._format](spark, files) if files else self._feed.none(spark)

    def count(self, spark: SparkSession, taken: Taken, parts: Sequence[Part]) -> Mapping[int, int]:
        if self._format == "parquet":
            return footers(self._files_of(taken, parts))
        return counted(self.again(spark, taken, parts))

    def _files_of(self, taken: Taken, parts: Sequence[Part]) -> dict[Path, int]:
        """The files of batches that have anything in them."""
        return {path: batch for path, batch in taken.files_of(parts).items() if self._has(path)}

    def _has(self, path: Path) -> bool:
        """Whether there is anything in a file that was taken once."""
        try:
            return path.stat().st_size > 0
        except FileNotFoundError:
            raise SourceError(
                f"{path} is gone, and the tuples of stream {self._feed.name} that it held cannot "
                "be read again: bring it back"
            ) from None

    def waiting(self, taken: Taken, batch: int) -> int | None:
        self._known |= {path.name for path in taken.files(batch, after=self._known_until)}
        self._known_until = batch
        with os.scandir(self._path) as there:
            found = (entry.name for entry in there if entry.is_file())
            return sum(name[0] not in "._" and name not in self._known for name in found)

    # --- Parquet ---------------------------------------------------------------------------------

    def _parquet(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format("parquet").schema(self._feed.schema)
        frame = reader.options(**self._options).load(str(self._path))
        return frame.selectExpr(*self._feed.as_it_is)

    def _parquet_rows(self, spark: SparkSession, files: Mapping[Path, int]) -> DataFrame:
        reader = spark.read.schema(self._feed.schema).options(**self._options)
        frame = numbered(spark, reader.parquet(*_uris(files)), files)
        return frame.selectExpr(*self._feed.as_it_is, f"`{BATCH}`")

    def _look_at_parquet(self, path: Path) -> None:
        try:
            found = pq.read_schema(path)
        except pa.ArrowInvalid:
            raise SourceError(
                f"{path} is not a whole Parquet file: put a right one in its place and start again "
                "(files must appear whole: write elsewhere, then move)"
            ) from None
        same_schema(self._feed.stream, found, str(path))

    def _parquet_again(
        self, connection: duckdb.DuckDBPyConnection, table: str, files: list[Path]
    ) -> None:
        selected = ", ".join(_typed(self._feed.stream.columns))
        if files:
            paths = [str(path) for path in files]
            connection.execute(
                f"CREATE TABLE {quoted(table)} AS "
                f"SELECT {selected}, NULL::VARCHAR AS {quoted(ROW)} FROM read_parquet({paths!r})"
            )
        else:
            _make(connection, table, self._feed, [])

    # --- JSON ------------------------------------------------------------------------------------

    def _json(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format("text").options(**self._listing)
        return self._from_lines(reader.load(str(self._path)))

    def _json_rows(self, spark: SparkSession, files: Mapping[Path, int]) -> DataFrame:
        reader = spark.read.format("text").options(**self._listing)
        return self._from_lines(numbered(spark, reader.load(_uris(files)), files), f"`{BATCH}`")

    @property
    def _listing(self) -> dict[str, str]:
        return {k: v for k, v in self._options.items() if k in _LISTING}

    def _from_lines(self, lines: DataFrame, *kept: str) -> DataFrame:
        """The tuples of lines, or why a line is none, with some more columns of these."""
        reading = {k: v for k, v in self._options.items() if k not in _LISTING}
        reading |= _PERMISSIVE
        options = ", ".join(f"'{_escape(k)}', '{_escape(v)}'" for k, v in reading.items())
        parsed = lines.where("trim(value) <> ''").selectExpr(
            "value", f"from_json(value, '{self._with_wrong}', map({options})) AS parsed", *kept
        )
        reasoned = parsed.selectExpr("*", f"{self._json_reason()} AS `{REASON}`")
        return reasoned.selectExpr(
            *(f"parsed.{column} AS {column}" for column in self._feed.columns),
            f"`{REASON}`",
            f"CASE WHEN `{REASON}` IS NOT NULL THEN value END AS `{ROW}`",
            *kept,
        )

    def _json_reason(self) -> str:
        """Why a line does not fit, naming the field."""
        columns = self._feed.stream.columns
        names = ", ".join(f"'{column.name}'" for column in columns)
        wrong = ", ".join(
            f"CASE WHEN parsed.`{c.name}` IS NULL AND get_json_object(value, '$.{c.name}') "
            f"IS NOT NULL THEN '{c.name} is not {c.type}' END"
            for c in columns
        )
        unknown = f"array_except(json_object_keys(value), array({names}))"
        return (
            "CASE WHEN json_object_keys(value) IS NULL THEN 'not a JSON object' "
            f"WHEN size({unknown}) > 0 THEN concat('unknown field ', array_join({unknown}, ', ')) "
            f"WHEN parsed.`{_WRONG}` IS NOT NULL THEN coalesce(nullif("
            f"concat_ws(', ', {wrong}), ''), 'does not fit the schema') END"
        )

    def _json_again(
        self, connection: duckdb.DuckDBPyConnection, table: str, files: list[Path]
    ) -> None:
        lines = [line for path in files for line in _lines(path) if line.strip()]
        _make(connection, "_lines", self._feed, lines)
        row = quoted(ROW)
        selected = ", ".join(
            f"{_from_json(c.name, duck_type(c))} AS {quoted(c.name)}"
            for c in self._feed.stream.columns
        )
        connection.execute(
            f"CREATE OR REPLACE TABLE {quoted(table)} AS SELECT {selected}, {row} FROM "
            f"(SELECT {row}, CASE WHEN json_valid({row}) THEN {row}::JSON END AS parsed "
            "FROM _lines); DROP TABLE _lines"
        )

    # --- CSV -------------------------------------------------------------------------------------

    def _csv(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format("csv").schema(self._with_wrong)
        frame = reader.options(**self._options, **_PERMISSIVE).load(str(self._path))
        return frame.selectExpr(*self._csv_columns)

    def _csv_rows(self, spark: SparkSession, files: Mapping[Path, int]) -> DataFrame:
        reader = spark.read.format("csv").schema(self._with_wrong)
        frame = reader.options(**self._options, **_PERMISSIVE).load(_uris(files))
        return numbered(spark, frame, files).selectExpr(*self._csv_columns, f"`{BATCH}`")

    @property
    def _with_wrong(self) -> str:
        return f"{self._feed.schema}, `{_WRONG}` STRING"

    @property
    def _csv_columns(self) -> list[str]:
        reason = (
            f"CASE WHEN `{_WRONG}` IS NOT NULL THEN 'does not fit the schema' END AS `{REASON}`"
        )
        return [*self._feed.columns, reason, f"`{_WRONG}` AS `{ROW}`"]

    def _look_at_csv(self, path: Path) -> None:
        """A header must name the declared columns, in their order: Spark goes by position."""
        if self._options.get("header", "false").lower() != "true":
            return
        declared = [column.name for column in self._feed.stream.columns]
        with path.open(encoding=self._options.get("encoding", "utf-8"), newline="") as file:
            found = next(csv.reader(file, delimiter=self._separator), declared)
        known_columns(self._feed.stream, found, str(path))
        if found != declared:
            raise SourceError(
                f"{path}: the header says {', '.join(found)}; "
                f"stream {self._feed.name} declares {', '.join(declared)}"
            )

    @property
    def _separator(self) -> str:
        return self._options.get("sep", self._options.get("delimiter", ","))

    def _csv_again(
        self, connection: duckdb.DuckDBPyConnection, table: str, files: list[Path]
    ) -> None:
        header = self._options.get("header", "false").lower() == "true"
        lines = [
            line for path in files for line in list(_lines(path))[1 if header else 0 :] if line
        ]
        columns = self._feed.stream.columns
        parsed = [_fields(line, self._separator, len(columns)) for line in lines]
        raw = {f"c{i}": pa.array([p[i] for p in parsed], pa.string()) for i in range(len(columns))}
        connection.register("_fields", pa.table(raw | {ROW: pa.array(lines, pa.string())}))
        selected = ", ".join(
            f"TRY_CAST(c{i} AS {duck_type(c)}) AS {quoted(c.name)}" for i, c in enumerate(columns)
        )
        connection.execute(
            f"CREATE OR REPLACE TABLE {quoted(table)} AS "
            f"SELECT {selected}, {quoted(ROW)} FROM _fields"
        )
        connection.unregister("_fields")


def _typed(columns: Iterable[Column]) -> list[str]:
    """Columns of a file as those that were declared."""
    return [f"CAST({quoted(c.name)} AS {duck_type(c)}) AS {quoted(c.name)}" for c in columns]


def _uris(files: Iterable[Path]) -> list[str]:
    return [f"file://{path}" for path in files]


def _exists(path: Path) -> None:
    path.stat()


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


def _lines(path: Path) -> Iterable[str]:
    """The lines as Spark counts them."""
    text = path.read_bytes().decode("utf-8", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _fields(line: str, separator: str, count: int) -> Mapping[int, str | None]:
    """The fields of a line; an empty one is null, as many as were declared."""
    found = next(csv.reader([line], delimiter=separator), [])
    return {i: found[i] if i < len(found) and found[i] != "" else None for i in range(count)}


def _from_json(name: str, kind: str) -> str:
    value = f"parsed->>'$.\"{name}\"'"
    if kind == "TIMESTAMPTZ":
        seconds = f"to_timestamp(TRY_CAST({value} AS BIGINT))"
        return f"coalesce(TRY_CAST({value} AS TIMESTAMPTZ), {seconds})"
    return f"TRY_CAST({value} AS {kind})"


def _make(connection: duckdb.DuckDBPyConnection, table: str, feed: Feed, lines: list[str]) -> None:
    """A table of lines whose columns are still null."""
    columns = ", ".join(f"{quoted(c.name)} {duck_type(c)}" for c in feed.stream.columns)
    connection.execute(
        f"CREATE OR REPLACE TABLE {quoted(table)} ({columns}, {quoted(ROW)} VARCHAR)"
    )
    connection.register("_text", pa.table({ROW: pa.array(lines, pa.string())}))
    connection.execute(f"INSERT INTO {quoted(table)} BY NAME FROM _text").fetchall()
    connection.unregister("_text")
