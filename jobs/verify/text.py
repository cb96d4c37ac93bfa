"""Records of CSV and JSON as tuples, or as what is none: a strict reader of our own.

CSV as RFC 4180 says: a field may stand in quotes, quotes within are doubled, lines may go on within
quotes.  JSON: one object a line, each key once, nothing behind it.
"""

import bz2
import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from json import JSONDecodeError, loads
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from jobs.verify.fields import Parser, Token, UnfitError, of_json, of_text
from jobs.verify.verdict import CannotTellError
from optimizer.query import Column

LISTING = {
    "maxfileage", "maxfilespertrigger", "maxbytespertrigger", "latestfirst", "filenameonly",
    "maxcachedfiles", "discardcachedinputratio", "pathglobfilter", "recursivefilelookup",
    "cleansource", "sourcearchivedir",
}  # fmt: skip
"""Options about which files are read."""

READ = {
    "parquet": set[str](),
    "json": {
        "encoding", "charset", "multiline", "mode", "linesep", "timestampformat", "dateformat",
    },
    "csv": {
        "encoding", "charset", "multiline", "mode", "header", "sep", "delimiter", "quote", "escape",
        "nullvalue", "comment", "ignoreleadingwhitespace", "ignoretrailingwhitespace", "linesep",
        "emptyvalue", "nanvalue", "positiveinf", "negativeinf", "timestampformat", "dateformat",
    },
}  # fmt: skip
"""Options about what is in them that are understood here."""


@dataclass(frozen=True)
class Record:
    """What stands in a file, as a tuple; without values it is none."""

    text: str
    values: tuple[Any, ...] | None


@dataclass(frozen=True)
class Dialect:
    """How CSV is written down."""

    separator: str
    quote: str
    escape: str
    null: str
    comment: str
    leading: bool
    trailing: bool
    line: str
    empty: str
    numbers: Mapping[str, str]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "Dialect":
        """As a stream's options say, which have their names in small letters."""
        return cls(
            options.get("sep", options.get("delimiter", ",")),
            options.get("quote", '"'),
            options.get("escape", '"'),
            options.get("nullvalue", ""),
            options.get("comment", ""),
            options.get("ignoreleadingwhitespace", "").lower() == "true",
            options.get("ignoretrailingwhitespace", "").lower() == "true",
            options.get("linesep", ""),
            options.get("emptyvalue", ""),
            {options[name]: number for name, number in _NUMBERS if name in options},
        )


_NUMBERS = (("nanvalue", "nan"), ("positiveinf", "inf"), ("negativeinf", "-inf"))
"""Texts that stand for what has no digits."""


def records(
    path: Path,
    form: str,
    columns: Sequence[Column],
    options: Mapping[str, str],
    *,
    exact: bool = True,
) -> Iterator[Record]:
    """All of a file."""
    text = _written(path, options.get("encoding", options.get("charset", "utf-8")))
    read = _json if form == "json" else _csv
    found = read(text, columns, options, exact=exact)
    for record in found:
        if any(_BROKEN.search(part) for part in _texts(record)):
            yield Record(_BROKEN.sub("\ufffd", record.text), None)
        else:
            yield record


_BROKEN = re.compile("[\ud800-\udfff]")
"""What stands for bytes that are no characters, and half of a character in JSON."""


def _texts(record: Record) -> Iterator[str]:
    yield record.text
    yield from (value for value in record.values or () if isinstance(value, str))


_OPENED: Mapping[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".deflate": zlib.decompress,
    ".snappy": lambda _: _unread(),
    ".zst": lambda data: _by_arrow(data, "zstd"),
    ".lz4": lambda data: _by_arrow(data, "lz4"),
}


def _unread() -> NoReturn:
    raise EOFError


def _by_arrow(data: bytes, codec: str) -> bytes:
    return bytes(pa.CompressedInputStream(pa.BufferReader(data), codec).read())


def _written(path: Path, encoding: str) -> str:
    opened = _OPENED.get(path.suffix, bytes)(path.read_bytes())
    if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
        text = opened.decode("utf-8", errors="surrogateescape")
    else:
        text = opened.decode(encoding, errors="replace").replace("\ufffd", "\udcff")
    return text.removeprefix("\ufeff")


def _tuple(text: str, parsers: Sequence[Parser], found: Sequence[Any]) -> Record:
    try:
        values = (
            None if value is None else parse(value)
            for parse, value in zip(parsers, found, strict=True)
        )
        return Record(text, tuple(values))
    except UnfitError:
        return Record(text, None)


# --- JSON ----------------------------------------------------------------------------------------


def _json(
    text: str, columns: Sequence[Column], options: Mapping[str, str], *, exact: bool
) -> Iterator[Record]:
    names, parsers = [c.name for c in columns], [of_json(c, options) for c in columns]
    for line in _lines(text, options.get("linesep", "")):
        if line.strip(" \t"):
            found = _object(line)
            if found is None or (exact and not found.keys() <= set(names)):
                yield Record(line, None)
            else:
                yield _tuple(line, parsers, [found.get(name) for name in names])


def _lines(text: str, end: str) -> list[str]:
    return text.split(end) if end else re.split("\r\n|\r|\n", text)


def _object(line: str) -> dict[str, Any] | None:
    try:
        found = loads(
            line, object_pairs_hook=_once, parse_int=Token, parse_float=Token,
            parse_constant=_no_number,
        )  # fmt: skip
    except (JSONDecodeError, UnfitError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise UnfitError
    return found


def _no_number(_: str) -> NoReturn:
    raise UnfitError


# --- CSV -----------------------------------------------------------------------------------------


def _csv(
    text: str, columns: Sequence[Column], options: Mapping[str, str], *, exact: bool
) -> Iterator[Record]:
    dialect, parsers = Dialect.of(options), [of_text(c, options) for c in columns]
    found, places, width = _split(text, dialect), list(range(len(columns))), len(columns)
    if options.get("header", "").lower() == "true":
        _, header = next(found, ("", None))
        if header and not exact:
            names = [field.text for field in header]
            places, width = [place(names, column.name) for column in columns], len(names)
    for line, fields in found:
        if fields is None or len(fields) != width:
            yield Record(line, None)
        else:
            own = [fields[at] for at in places]
            values = [_value(f, c.type, dialect) for f, c in zip(own, columns, strict=True)]
            yield _tuple(line, parsers, values)


def place(names: Sequence[str], wanted: str) -> int:
    """Where a column stands: Spark does not tell capitals from small letters."""
    found = [at for at, name in enumerate(names) if name.lower() == wanted.lower()]
    if len(found) != 1:
        raise CannotTellError(
            f"column {wanted} is there {len(found)} times: {', '.join(names) or 'none is'}"
        )
    return found[0]


@dataclass(frozen=True)
class _Field:
    text: str
    quoted: bool = False


def _value(field: _Field, kind: str, dialect: Dialect) -> str | None:
    """An empty field in quotes is an empty text; what is no text is never empty."""
    text = field.text
    if kind in ("STRING", "BINARY") and field.quoted and not text:
        return dialect.empty
    if not field.quoted and text == dialect.null:
        return None
    if kind in ("FLOAT", "DOUBLE"):
        text = dialect.numbers.get(text, text)
    return text if text or kind in ("STRING", "BINARY") else None


def _split(text: str, dialect: Dialect) -> Iterator[tuple[str, list[_Field] | None]]:
    """Each record's text, and its fields; of what is none the first line alone."""
    at = 0
    while at < len(text):
        end = _line_end(text, at, dialect)[0]
        line = text[at:end]
        if line and not (dialect.comment and line.startswith(dialect.comment)):
            fields, stop = _fields(text, at, dialect)
            end = end if fields is None else stop
            yield text[at:end], fields
        at = _line_end(text, end, dialect)[1]


def _line_end(text: str, at: int, dialect: Dialect) -> tuple[int, int]:
    """Where the line ends, and where the next one begins."""
    if dialect.line:
        found = text.find(dialect.line, at)
        return (found, found + len(dialect.line)) if found >= 0 else (len(text), len(text))
    ends = [end for end in (text.find("\n", at), text.find("\r", at)) if end >= 0]
    end = min(ends, default=len(text))
    return end, end + (2 if text.startswith("\r\n", end) else 1)


def _fields(text: str, at: int, dialect: Dialect) -> tuple[list[_Field] | None, int]:
    """The fields of the record that begins there, and where it ends; none if it is not one."""
    fields = []
    while True:
        if dialect.quote and text.startswith(dialect.quote, at):
            field, at = _quoted(text, at + 1, dialect)
            if field is None:
                return None, at
        else:
            field, at = _bare(text, at, dialect)
        fields.append(field)
        if text.startswith(dialect.separator, at):
            at += len(dialect.separator)
        elif at >= len(text) or _line_end(text, at, dialect)[0] == at:
            return fields, at
        else:
            return None, at


def _bare(text: str, at: int, dialect: Dialect) -> tuple[_Field, int]:
    stop = text.find(dialect.separator, at)
    end = min(_line_end(text, at, dialect)[0], stop if stop >= 0 else len(text))
    field = text[at:end]
    field = field.lstrip(" \t") if dialect.leading else field
    return _Field(field.rstrip(" \t") if dialect.trailing else field), end


def _quoted(text: str, at: int, dialect: Dialect) -> tuple[_Field | None, int]:
    """What stands from there to the closing quote, and where that ends; none if there is none."""
    made = []
    while at < len(text):
        one, following = text[at], text[at + 1 : at + 2]
        if one == dialect.escape and following and following in (dialect.quote, dialect.escape):
            made.append(following)
            at += 2
        elif one == dialect.quote:
            return _Field("".join(made), quoted=True), at + 1
        else:
            made.append(one)
            at += 1
    return None, at
