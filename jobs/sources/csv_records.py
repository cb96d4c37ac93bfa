"""CSV as texts of values: RFC 4180, with the separators and quotes that the job file says."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat

from jobs.sources.columns import Match
from jobs.sources.common import Feed
from jobs.sources.text import Record


class _Quoted(str):
    """A field that stood in quotes."""

    __slots__ = ()


class _NoRecordError(ValueError):
    """Why a line is no record."""


@dataclass(frozen=True)
class Dialect:
    """How records are written down; empty is what there is not."""

    separator: str = ","
    quote: str = '"'
    escape: str = '"'
    null: str = ""
    comment: str = ""
    strip: tuple[bool, bool] = (False, False)
    header: bool = False
    line: str = ""
    """What ends a line, if not any end of lines does."""
    empty: str = ""
    """The text that two quotes are."""
    numbers: Mapping[str, str] = field(default_factory=dict)
    """What stands for numbers that have no digits."""

    def unescaped(self, inner: str) -> str:
        """What stands between two quotes."""
        if self.quote == self.escape:
            return inner.replace(self.quote * 2, self.quote)
        q, e = re.escape(self.quote), re.escape(self.escape)
        return re.sub(f"{e}([{q}{e}])", r"\1", inner)

    def stripped(self, bare: str) -> str:
        """A field without the blanks that do not count."""
        leading, trailing = self.strip
        bare = bare.lstrip(" \t") if leading else bare
        return bare.rstrip(" \t") if trailing else bare

    @cached_property
    def in_quotes(self) -> re.Pattern[str]:
        """A field in quotes."""
        q, e = re.escape(self.quote), re.escape(self.escape)
        inner = f"[^{q}]|{q}{q}" if q == e else f"[^{q}{e}]|{e}[{q}{e}]|{e}(?!{q})"
        return re.compile(f"{q}((?:{inner})*+){q}")

    @cached_property
    def bare(self) -> re.Pattern[str]:
        """A field without quotes."""
        if not self.line:
            return re.compile(f"(?:(?!{re.escape(self.separator)})[^\r\n])*")
        stop = f"{re.escape(self.separator)}|{re.escape(self.line)}"
        return re.compile(f"(?:(?!{stop})(?s:.))*")

    @cached_property
    def end(self) -> re.Pattern[str]:
        """The end of a line."""
        return re.compile(re.escape(self.line) if self.line else "\r\n|\r|\n")


def records(text: str, feed: Feed, dialect: Dialect) -> Iterator[Record]:
    """The rows of records, which may go on over several lines within quotes."""
    found = _split(text, dialect)
    header = next(found, ("", [], None))[1] if dialect.header else []
    places, width, wanted = _places(header, feed)
    kinds = [_kind(column.type) for column in feed.stream.columns]
    for line, fields, why in found:
        if why or len(fields) != width:
            yield Record(line, (), why or f"{len(fields)} fields; {wanted}")
        else:
            picked = map(fields.__getitem__, places)
            yield Record(line, tuple(map(_value, picked, kinds, repeat(dialect))))


def _places(header: Sequence[str], feed: Feed) -> tuple[Sequence[int], int, str]:
    """Where each column stands, how many fields a record has, and who says so."""
    declared = len(feed.stream.columns)
    if feed.exact or not header:
        return range(declared), declared, f"stream {feed.name} declares {declared}"
    names = Match.of(feed.stream, header, "the header", exact=False).names
    return [header.index(name) for name in names], len(header), f"the header has {len(header)}"


def header_of(text: str, dialect: Dialect) -> list[str]:
    """The names that the first record has, or its text if it is none."""
    line, fields, why = next(_split(text, dialect), ("", [""], None))
    return [line] if why else [str(field) for field in fields]


_TEXT, _FLOATING, _OTHER = range(3)


def _kind(declared: str) -> int:
    """What an empty field is, and one that says that there is no number, depends on."""
    if declared in ("STRING", "BINARY"):
        return _TEXT
    return _FLOATING if declared in ("FLOAT", "DOUBLE") else _OTHER


def _value(field: str, kind: int, dialect: Dialect) -> str | None:
    """An empty field in quotes is an empty text; what is no text is never empty."""
    if not field and type(field) is _Quoted:
        return dialect.empty if kind == _TEXT else None
    if type(field) is str and field == dialect.null:
        return None
    if kind == _FLOATING:
        return dialect.numbers.get(field, field) or None
    return field if field or kind == _TEXT else None


def _split(text: str, dialect: Dialect) -> Iterator[tuple[str, list[str], str | None]]:
    """Each record: its text, its fields, or why its first line is none."""
    position = 0
    while position < len(text):
        end = dialect.end.search(text, position)
        stop = end.start() if end else len(text)
        line = text[position:stop]
        if not line or (dialect.comment and line.startswith(dialect.comment)):
            pass
        elif dialect.quote and dialect.quote in line:
            try:
                fields, stop = _fields(text, position, dialect)
                end = dialect.end.match(text, stop)
                yield text[position:stop], fields, None
            except _NoRecordError as error:
                yield line, [], str(error)
        else:
            yield line, [dialect.stripped(one) for one in line.split(dialect.separator)], None
        position = end.end() if end else len(text)


def _fields(text: str, position: int, dialect: Dialect) -> tuple[list[str], int]:
    """The fields of a record that begins there, and where it ends."""
    fields: list[str] = []
    while True:
        field, position = _field(text, position, dialect)
        fields.append(field)
        if text.startswith(dialect.separator, position):
            position += len(dialect.separator)
        elif position == len(text) or dialect.end.match(text, position):
            return fields, position
        else:
            raise _NoRecordError("text after a closing quote")


def _field(text: str, position: int, dialect: Dialect) -> tuple[str, int]:
    if not text.startswith(dialect.quote, position):
        found = dialect.bare.match(text, position)
        assert found is not None
        return dialect.stripped(found[0]), found.end()
    found = dialect.in_quotes.match(text, position)
    if found is None:
        raise _NoRecordError("a quote that is not closed")
    return _Quoted(dialect.unescaped(found[1])), found.end()
