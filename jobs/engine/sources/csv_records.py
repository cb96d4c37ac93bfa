"""CSV as texts of values: RFC 4180, with the separators and quotes that the job file says."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, repeat

from jobs.engine.sources.common import Feed
from jobs.engine.sources.text import Record

_END = re.compile(r"[\r\n]")


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
        return re.compile(f"(?:(?!{re.escape(self.separator)})[^\r\n])*")


def records(text: str, feed: Feed, dialect: Dialect) -> Iterator[Record]:
    """The rows of records, which may go on over several lines within quotes."""
    columns = feed.stream.columns
    texts = [column.type in ("STRING", "BINARY") for column in columns]
    for line, fields, why in islice(_split(text, dialect), int(dialect.header), None):
        if why or len(fields) != len(columns):
            expected = f"{len(fields)} fields; stream {feed.name} declares {len(columns)}"
            yield Record(line, (), why or expected)
        else:
            values = map(_value, fields, texts, repeat(dialect.null))
            yield Record(line, tuple(values))


def header_of(text: str, dialect: Dialect) -> list[str]:
    """The names that the first record has, or its text if it is none."""
    line, fields, why = next(_split(text, dialect), ("", [""], None))
    return [line] if why else [str(field) for field in fields]


def _value(field: str, is_text: bool, null: str) -> str | None:  # noqa: FBT001  # mapped
    """An empty field in quotes is an empty text; what is no text is never empty."""
    if type(field) is str and field == null:
        return None
    return field if field or is_text else None


def _split(text: str, dialect: Dialect) -> Iterator[tuple[str, list[str], str | None]]:
    """Each record: its text, its fields, or why its first line is none."""
    position = 0
    while position < len(text):
        stop = _stop(text, position)
        line = text[position:stop]
        if not line or (dialect.comment and line.startswith(dialect.comment)):
            pass
        elif dialect.quote and dialect.quote in line:
            try:
                fields, stop = _fields(text, position, dialect)
                yield text[position:stop], fields, None
            except _NoRecordError as error:
                yield line, [], str(error)
        else:
            yield line, [dialect.stripped(one) for one in line.split(dialect.separator)], None
        position = stop + (2 if text.startswith("\r\n", stop) else 1)


def _stop(text: str, position: int) -> int:
    """Where a line ends."""
    found = _END.search(text, position)
    return found.start() if found else len(text)


def _fields(text: str, position: int, dialect: Dialect) -> tuple[list[str], int]:
    """The fields of a record that begins there, and where it ends."""
    fields: list[str] = []
    while True:
        field, position = _field(text, position, dialect)
        fields.append(field)
        if text.startswith(dialect.separator, position):
            position += len(dialect.separator)
        elif position == len(text) or text[position] in "\r\n":
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
