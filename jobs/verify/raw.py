"""A stream's rows as its batches took them, read again by a route that the engine does not use.

Every row has its batch, its event time in microseconds, and, where it was text, the line it came
from, whether that can be read, and whether it can be read in one way only.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.engine.store import BATCH
from jobs.specs import DeltaStream, FilesStream, GeneratorStream
from jobs.verify import made, tables
from jobs.verify.past import Found, Past, Position, Stretch, found
from jobs.verify.text import LISTING, READ, Line, Reader
from jobs.verify.verdict import CannotTellError
from optimizer.query import Column, Stream

TIME, LINE, FITS, SURE = "@time", "@line", "@fits", "@sure"
"""What is known of a row beside its columns."""

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
    return pa.schema([*columns, *known, (FITS, pa.bool_()), (SURE, pa.bool_())])


@dataclass(frozen=True)
class Taken:
    """What was taken of a stream, and what has become of where it came from."""

    parts: list[pa.Table]
    sources: int
    """How many files it came from; none if it was made up."""
    changed: tuple[Path, ...] = ()
    """Files that are not any more what they were when Spark found them."""


def read(past: Past, name: str) -> Taken:
    """All rows of a stream, batch by batch."""
    parts: list[pa.Table] = []
    changed: list[Path] = []
    sources = 0
    for stretch in past.stretches:
        spec = stretch.job.streams[name]
        one: _Part
        match spec:
            case FilesStream():
                one = _Files(past, stretch, name, spec)
            case DeltaStream():
                one = _Versions(past, stretch, name, spec)
            case GeneratorStream():
                one = _Made(past, stretch, name, spec)
            case _:
                raise CannotTellError(f"stream {name} cannot be read a second time")
        parts += one.parts()
        changed += one.changed
        sources += one.sources
    return Taken(parts, sources, tuple(changed))


@dataclass
class _Part:
    """A stream's rows in batches that ran by the same definition."""

    past: Past
    stretch: Stretch
    name: str
    spec: Any
    changed: list[Path] = field(default_factory=list)
    sources: int = 0

    @cached_property
    def stream(self) -> Stream:
        """The stream as it was then."""
        return self.stretch.job.stream(self.name)

    def parts(self) -> Iterator[pa.Table]:
        """The rows, some at a time."""
        raise NotImplementedError

    def positions(self) -> Iterator[tuple[int, Position | None, Position]]:
        """The batches that took anything: from where to where."""
        for number in range(self.stretch.first, self.stretch.last + 1):
            before = self.past.position(self.name, number - 1)
            after = self.past.position(self.name, number)
            if after is not None and after != before:
                yield number, before, after

    def complete(self, rows: pa.Table, batch: int) -> pa.Table:
        """Rows of a source whose rows have types of their own."""
        columns = [_as(rows.column(c.name), c, self.name) for c in self.stream.columns]
        time = columns[[c.name for c in self.stream.columns].index(self.stream.event_time)]
        count = rows.num_rows
        known = [_all(batch, count, pa.int64()), time.cast(pa.int64())]
        known += [pa.nulls(count, pa.string()), *[_all(True, count, pa.bool_())] * 2]  # noqa: FBT003
        return pa.table([*columns, *known], schema=schema(self.stream))


def _all(value: Any, count: int, kind: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), count)


def _as(column: pa.ChunkedArray, declared: Column, stream: str) -> pa.ChunkedArray:
    """A column as it was declared; a time without a zone is UTC."""
    wanted = arrow_type(declared)
    try:
        if pa.types.is_timestamp(column.type):
            naive = pa.timestamp(column.type.unit)
            return column.cast(naive).cast(pa.timestamp("us")).cast(wanted)
        return column.cast(wanted)
    except pa.ArrowInvalid as error:
        raise CannotTellError(f"column {declared.name} of stream {stream}: {error}") from None


class _Files(_Part):
    """Files: Parquet as Arrow reads it, text as we do."""

    def parts(self) -> Iterator[pa.Table]:
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
        reader = Reader(self.name, self.stream.columns, self._options(form))
        for batch, one in taken:
            if one.path.stat().st_size == 0:
                continue
            if form == "parquet":
                yield self.complete(pq.ParquetFile(one.path).read(), batch)
            else:
                yield self._lines(reader.lines(one.path, form), batch)

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

    def _lines(self, lines: Iterable[Line], batch: int) -> pa.Table:
        columns = self.stream.columns
        found = list(lines)
        nothing = (None,) * len(columns)
        rows = [line.values or nothing for line in found]
        arrays = [_column([row[i] for row in rows], arrow_type(c)) for i, c in enumerate(columns)]
        time = arrays[[c.name for c in columns].index(self.stream.event_time)].cast(pa.int64())
        known = [
            _all(batch, len(rows), pa.int64()),
            time,
            pa.array([line.text for line in found], pa.string()),
            pa.array([line.values is not None for line in found], pa.bool_()),
            pa.array([line.sure for line in found], pa.bool_()),
        ]
        return pa.table([*arrays, *known], schema=schema(self.stream))


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


class _Versions(_Part):
    """Rows appended to a Delta table."""

    def parts(self) -> Iterator[pa.Table]:
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
                yield self.complete(table.read(file), batch)

    def _beginning(self) -> Position | None:
        """The first position of all batches."""
        found = (batch.taken.get(self.name) for batch in self.past.batches)
        return next((position for position in found if position is not None), None)


class _Made(_Part):
    """What the generator makes."""

    def parts(self) -> Iterator[pa.Table]:
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
