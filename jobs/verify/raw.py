"""A stream's rows as its batches took them, read again by a route that the engine does not use.

Every row has its batch, its event time in microseconds, whether it is a tuple at all, and, where it
is none or was text, what stands for it: its line, or the path of its file.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from jobs.specs import DeltaStream, FilesStream, GeneratorStream
from jobs.tables.columns import BATCH
from jobs.verify import made, parquet, tables
from jobs.verify.fields import FIRST, LAST, UnfitError, of_text
from jobs.verify.past import Found, Past, Position, Stretch, found
from jobs.verify.text import LISTING, READ, Record, place, records
from jobs.verify.verdict import CannotTellError
from optimizer.query import Column, Stream

TIME, LINE, FITS = "@time", "@line", "@fits"
"""What is known of a row beside its columns."""

MANY = 50_000
"""So many lines become rows at a time."""

_ARROW = {
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
    return _ARROW[column.type]


def schema(stream: Stream) -> pa.Schema:
    """A stream's columns, and what is known beside them."""
    columns = [(column.name, arrow_type(column)) for column in stream.columns]
    known = [(BATCH, pa.int64()), (TIME, pa.int64()), (LINE, pa.string())]
    return pa.schema([*columns, *known, (FITS, pa.bool_())])


def parts(past: Past, name: str) -> Iterator["Part"]:
    """All that was taken of a stream, definition by definition."""
    for stretch in past.stretches:
        spec = stretch.job.streams[name]
        if type(spec) not in _KINDS:
            raise CannotTellError(f"stream {name} cannot be read a second time")
        yield _KINDS[type(spec)](past, stretch, name, spec)


@dataclass
class Part:
    """A stream's rows in batches that ran by the same definition."""

    past: Past
    stretch: Stretch
    name: str
    spec: Any
    changed: list[Path] = field(default_factory=list)
    """Files that are not any more what they were when Spark found them."""
    sources: int = 0
    """How many files they came from; none if they were made up."""

    @cached_property
    def stream(self) -> Stream:
        """The stream as it was then."""
        return self.stretch.job.stream(self.name)

    def rows(self) -> Iterator[pa.Table]:
        """Some at a time."""
        raise NotImplementedError

    def positions(self) -> Iterator[tuple[int, Position | None, Position]]:
        """The batches that took anything: from where to where."""
        for number in range(max(self.stretch.first, self.past.begin), self.stretch.last + 1):
            before = self.past.position(self.name, number - 1)
            after = self.past.position(self.name, number)
            if after is not None and after != before:
                yield number, before, after

    def complete(self, rows: pa.Table, batch: int, path: str | None = None) -> pa.Table:
        """Rows of a source whose rows have types of their own; `path` stands for what is none."""
        columns = [_as(rows.column(c.name), c, self.name) for c in self.stream.columns]
        fits = _fitting(columns, rows.num_rows) if path else _always(rows.num_rows)
        time = columns[self._at].cast(pa.int64())
        line = pc.if_else(fits, pa.scalar(None, pa.string()), pa.scalar(path, pa.string()))
        known = [_all(batch, rows.num_rows, pa.int64()), time, line, fits]
        kept = [_where(fits, column) for column in columns]
        return pa.table([*kept, *known], schema=schema(self.stream))

    def _records(self, found: Sequence[Record], batch: int) -> pa.Table:
        nothing = (None,) * len(self.stream.columns)
        columns = zip(*(record.values or nothing for record in found), strict=True)
        arrays = [
            _column(list(values), arrow_type(c))
            for values, c in zip(columns, self.stream.columns, strict=True)
        ]
        known = [
            _all(batch, len(found), pa.int64()),
            arrays[self._at].cast(pa.int64()),
            pa.array([record.text for record in found], pa.string()),
            pa.array([record.values is not None for record in found], pa.bool_()),
        ]
        return pa.table([*arrays, *known], schema=schema(self.stream))

    @property
    def _at(self) -> int:
        """Where the event time stands."""
        return [column.name for column in self.stream.columns].index(self.stream.event_time)


def _all(value: Any, count: int, kind: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), count)


def _always(count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value=True), count)


def _as(column: pa.ChunkedArray, declared: Column, stream: str) -> pa.Array:
    """A column as it was declared: a time without a zone is UTC, finer ones are cut off."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    whole = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    try:
        if pa.types.is_timestamp(whole.type):
            return _instant(whole)
        return whole.cast(arrow_type(declared))
    except pa.ArrowInvalid as error:
        raise CannotTellError(f"column {declared.name} of stream {stream}: {error}") from None


_PER = {"s": 1_000_000, "ms": 1_000, "us": 1}


def _instant(column: pa.Array) -> pa.Array:
    """Microseconds of UTC; what does not fit into them is as far as can be, and no time at all."""
    numbers = column.view(pa.int64())
    if column.type.unit == "ns":
        rest = pc.subtract(numbers, pc.multiply(pc.divide(numbers, 1000), 1000))
        below = pc.if_else(pc.less(rest, 0), 1, 0)
        numbers = pc.subtract(pc.divide(numbers, 1000), below)
    else:
        per = _PER[column.type.unit]
        most = (2**63 - 1) // per
        numbers = pc.multiply(pc.min_element_wise(pc.max_element_wise(
            numbers, -most, skip_nulls=False), most, skip_nulls=False), per)  # fmt: skip
    return numbers.cast(pa.int64()).view(pa.timestamp("us", "UTC"))


def _fitting(columns: list[pa.Array], count: int) -> pa.Array:
    """Which rows have a value of its type, or none, in every column."""
    fits = _always(count)
    for column in columns:
        if pa.types.is_timestamp(column.type):
            fits = pc.and_(fits, _between(column.view(pa.int64()), FIRST, LAST))
        elif pa.types.is_date(column.type):
            day = 86_400_000_000
            fits = pc.and_(fits, _between(column.view(pa.int32()), FIRST // day, LAST // day))
        elif pa.types.is_string(column.type) and not _is_text(column):
            fits = pc.and_(fits, pa.array([_is_text(column.slice(i, 1)) for i in range(count)]))
    return fits


def _between(numbers: pa.Array, low: int, high: int) -> pa.Array:
    inside = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
    return pc.fill_null(inside, pa.scalar(value=True))


def _is_text(column: pa.Array) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _where(fits: pa.Array, column: pa.Array) -> pa.Array:
    """A column without the values of rows that are none."""
    return (
        column
        if pc.all(fits).as_py() in (True, None)
        else pc.if_else(fits, column, pa.scalar(None, column.type))
    )


class _Files(Part):
    """Files: Parquet as Arrow reads it, text as we do."""

    def rows(self) -> Iterator[pa.Table]:
        form = self.spec.format
        known = found(self.past, self.name)
        taken = [
            (batch, one)
            for batch, before, after in self.positions()
            for number in range(_entry(before) + 1, _entry(after) + 1)
            for one in _logged(known, number, self.name)
        ]
        self._are_there([one for _, one in taken])
        self.sources += len(taken)
        options = self._options(form)
        for batch, one in taken:
            if one.path.stat().st_size:
                yield from self._file(one.path, form, options, batch)

    def _file(
        self, path: Path, form: str, options: Mapping[str, str], batch: int
    ) -> Iterator[pa.Table]:
        """A file's rows, or what stands for it if its directories say what is no value."""
        try:
            told = {} if options.get("recursivefilelookup") == "true" else self._told(path)
        except UnfitError:
            yield self._records([Record(str(path), None)], batch)
            return
        own = [column for column in self.stream.columns if column.name not in told]
        if form == "parquet":
            yield self._parquet(path, own, told, batch)
        else:
            yield from self._text(path, form, options, batch, own, told)

    def _told(self, path: Path) -> dict[str, Any]:
        """The values that directories such as `day=2024-01-01` have of columns."""
        told = {}
        for directory in path.parent.relative_to(self.spec.path).parts:
            name, _, value = directory.partition("=")
            column = self.stream.columns[
                place([c.name for c in self.stream.columns], unquote(name))
            ]
            null = value == "__HIVE_DEFAULT_PARTITION__"
            told[column.name] = None if null else of_text(column)(unquote(value))
        return told

    def _parquet(
        self, path: Path, own: Sequence[Column], told: Mapping[str, Any], batch: int
    ) -> pa.Table:
        """The rows of a file; of one that cannot be read to its end, a row that stands for it."""
        try:
            rows = parquet.read(path, own)
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            return self._records([Record(str(path), None)], batch)
        for column in self.stream.columns:
            if column.name in told:
                value = _column([told[column.name]], arrow_type(column))
                rows = rows.append_column(column.name, pa.repeat(value[0], rows.num_rows))
        return self.complete(rows, batch, str(path))

    def _text(
        self,
        path: Path,
        form: str,
        options: Mapping[str, str],
        batch: int,
        own: Sequence[Column],
        told: Mapping[str, Any],
    ) -> Iterator[pa.Table]:
        found = iter(records(path, form, own, options, exact=self.spec.exact))
        try:
            while some := [self._whole(one, own, told) for one in islice(found, MANY)]:
                yield self._records(some, batch)
        except (EOFError, OSError, zlib.error, pa.ArrowException) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            yield self._records([Record(str(path), None)], batch)

    def _whole(self, one: Record, own: Sequence[Column], told: Mapping[str, Any]) -> Record:
        """A record with what its directories say."""
        if one.values is None or not told:
            return one
        known = dict(zip([c.name for c in own], one.values, strict=True)) | dict(told)
        return Record(one.text, tuple(known[column.name] for column in self.stream.columns))

    def _are_there(self, taken: Iterable[Found]) -> None:
        gone = [one.path for one in taken if not one.path.is_file()]
        if gone:
            raise CannotTellError(
                f"{len(gone)} of the files of stream {self.name} that batches took "
                f"{'is' if len(gone) == 1 else 'are'} gone: {', '.join(map(str, gone[:3]))}"
                f"{', ...' if len(gone) > 3 else ''}"
            )
        self.changed += [
            one.path for one in taken if one.path.stat().st_mtime_ns // 10**6 != one.modified
        ]

    def _options(self, form: str) -> dict[str, str]:
        given = {
            name.lower(): str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in self.spec.options.items()
        }
        for name in given.keys() - LISTING - READ[form]:
            raise CannotTellError(
                f"stream {self.name} is read with the option {name}, which verify does not know"
            )
        return given


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


def _entry(position: Position | None) -> int:
    return -1 if position is None else int(position["logOffset"])


def _logged(known: Mapping[int, list[Found]], number: int, stream: str) -> list[Found]:
    if number not in known:
        raise CannotTellError(
            f"checkpoint/sources does not say any more what entry {number} of stream {stream} was"
        )
    return known[number]


class _Versions(Part):
    """Rows appended to a Delta table."""

    def rows(self) -> Iterator[pa.Table]:
        strange = {name.lower() for name in self.spec.options} - LISTING
        if strange:
            raise CannotTellError(
                f"stream {self.name} is read with the option {min(strange)}, "
                "which verify does not know"
            )
        table = tables.Source(Path(self.spec.path), self.name)
        beginning = self._beginning()
        for batch, before, after in self.positions():
            for file in table.between(beginning, before, after):
                self.sources += 1
                rows = table.read(file, self.stream.columns)
                if rows is None:
                    yield self._records([Record(str(table.place(file)), None)], batch)
                else:
                    yield self.complete(rows, batch)

    def _beginning(self) -> Position | None:
        """The first position of all batches."""
        found = (batch.taken.get(self.name) for batch in self.past.batches)
        return next((position for position in found if position is not None), None)


class _Made(Part):
    """What the generator makes."""

    def rows(self) -> Iterator[pa.Table]:
        for batch, before, after in self.positions():
            at = made.ticks(self.spec, _offset(before), _offset(after))
            columns = {
                c.name: pa.array(made.times(self.past.started, at)).cast(pa.timestamp("us", "UTC"))
                if c.name == self.stream.event_time
                else made.typed(c, made.numbers(self.spec, self.name, c.name, at))
                for c in self.stream.columns
            }
            yield self.complete(pa.table(columns), batch)


def _offset(position: Position | None) -> int:
    return 0 if position is None else int(position["offset"])


_KINDS: Mapping[type, type[Part]] = {
    FilesStream: _Files,
    DeltaStream: _Versions,
    GeneratorStream: _Made,
}
