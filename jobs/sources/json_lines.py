"""JSON as texts of values: RFC 8259, one object a line, nothing else."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from json import JSONDecodeError, JSONDecoder, dumps
from typing import Any, NoReturn

from jobs.sources.common import Feed
from jobs.sources.text import Record
from jobs.sources.values import BASE64, SHOWN

RULES = {"BINARY": BASE64}
"""What JSON tells in its own way."""


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


class _NoRowError(ValueError):
    """Why a line is no row."""


def records(text: str, feed: Feed, end: str = "") -> Iterator[Record]:
    """The rows of lines, by their usual ends or that one; those of blanks alone are none."""
    columns = [(c.name, c.type, _TEXTS.get(c.type, _number)) for c in feed.stream.columns]
    names = {column.name for column in feed.stream.columns} if feed.exact else None
    for line in _lines(text, end):
        if line.strip(" \t"):
            try:
                found = _object(line, names)
                yield Record(line, tuple([to(found.get(n), n, kind) for n, kind, to in columns]))
            except _NoRowError as error:
                yield Record(line, (), str(error))


def _lines(text: str, end: str) -> list[str]:
    return text.split(end) if end else _END.split(text)


_END = re.compile("\r\n|\r|\n")


def _object(line: str, names: set[str] | None) -> dict[str, Any]:
    try:
        found = _DECODER.decode(line)
    except (JSONDecodeError, RecursionError):
        raise _NoRowError("not a JSON object") from None
    if not isinstance(found, dict):
        raise _NoRowError("not a JSON object")
    if names is not None and (unknown := [name for name in found if name not in names]):
        raise _NoRowError(f"unknown field {', '.join(unknown)}")
    return found


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _NoRowError(f"field {next(n for n in names if names.count(n) > 1)} is there twice")
    return found


def _no_constant(_: str) -> NoReturn:
    raise _NoRowError("not a JSON object")


_DECODER = JSONDecoder(
    object_pairs_hook=_pairs, parse_float=_Number, parse_int=_Number, parse_constant=_no_constant
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _number(value: Any, name: str, kind: str) -> str | None:
    if value is None or type(value) is _Number:
        return value
    return _wrong(value, name, kind)


def _floating(value: Any, name: str, kind: str) -> str | None:
    if type(value) is str and value not in ("NaN", "Infinity", "-Infinity"):
        _wrong(value, name, kind)
    return value if type(value) is str else _number(value, name, kind)


def _boolean(value: Any, name: str, kind: str) -> str | None:
    if value is None or isinstance(value, bool):
        return value if value is None else str(value)
    return _wrong(value, name, kind)


def _string(value: Any, name: str, kind: str) -> str | None:
    return value if value is None or type(value) is str else _wrong(value, name, kind)


def _time(value: Any, name: str, kind: str) -> str | None:
    """A number is one of whole seconds since 1970."""
    if type(value) is not _Number:
        return _string(value, name, kind)
    try:
        return (_EPOCH + timedelta(seconds=int(value))).isoformat()
    except (ValueError, OverflowError):
        return _wrong(value, name, kind)


def _wrong(value: Any, name: str, kind: str) -> NoReturn:
    shown = value if isinstance(value, str) else dumps(value, ensure_ascii=False)
    raise _NoRowError(f"{name} is not {kind}: {shown[:SHOWN]}")


_TEXTS: Mapping[str, Callable[[Any, str, str], str | None]] = {
    "BOOLEAN": _boolean,
    "FLOAT": _floating,
    "DOUBLE": _floating,
    "DATE": _string,
    "TIMESTAMP": _time,
    "STRING": _string,
    "BINARY": _string,
}
