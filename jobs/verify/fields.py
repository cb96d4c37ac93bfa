"""The values of a line of text, read by the documented rules: what has no value is no tuple.

Written in plain Python, while the engine has its texts read by DuckDB.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from math import inf, isinf, isnan, nan
from types import MappingProxyType
from typing import Any

import numpy as np

from optimizer.query import Column

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
LAST = (datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
"""The first and the last moment of the years 1 to 9999, in microseconds: others are none."""

BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


class UnfitError(ValueError):
    """A text that has no value of its column's type."""


class Token(str):
    """A number as it is written in JSON."""

    __slots__ = ()


Parser = Callable[[Any], Any]


def of_text(column: Column, options: Mapping[str, str] = MappingProxyType({})) -> Parser:
    """How a column's value is read from text; options have their names in small letters."""
    pattern = options.get(
        {"DATE": "dateformat", "TIMESTAMP": "timestampformat"}.get(column.type, "")
    )
    if pattern is not None:
        return Pattern(pattern).day if column.type == "DATE" else Pattern(pattern).moment
    match column.type:
        case whole if whole in BITS:
            return lambda text: _whole(text, BITS[whole])
        case "FLOAT" | "DOUBLE":
            return _float if column.type == "FLOAT" else _double
        case "BOOLEAN":
            return _boolean
        case "DATE":
            return _date
        case "TIMESTAMP":
            return _moment
        case "STRING":
            return lambda text: text
        case "BINARY":
            return lambda text: text.encode()
    precision, scale = map(int, column.type.removeprefix("DECIMAL").strip("()").split(","))
    return lambda text: _decimal(text, precision, scale)


def of_json(column: Column, options: Mapping[str, str] = MappingProxyType({})) -> Parser:
    """How a column's value is read from what stands in JSON."""
    parse = of_text(column, options)
    match column.type:
        case "BOOLEAN":
            return _truth
        case "STRING" | "DATE":
            return lambda value: parse(_text(value))
        case "BINARY":
            return _base64
        case "TIMESTAMP" if "timestampformat" in options:
            return lambda value: parse(_text(value))
        case "TIMESTAMP":
            return lambda value: _seconds(value) if _is_number(value) else parse(_text(value))
        case "FLOAT" | "DOUBLE":
            return lambda value: parse(value if value in _NAMED else _number(value))
        case _:
            return lambda value: parse(_number(value))


# --- numbers -------------------------------------------------------------------------------------

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_NAMED = ("NaN", "Infinity", "-Infinity")
"""What JSON tells as text, because it has no numbers for it."""


def _whole(text: str, bits: int) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise UnfitError
    digits = text.lstrip("+-").lstrip("0")
    value = int(text) if len(digits) < 20 else 1 << 64
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise UnfitError
    return value


def _double(text: str) -> float:
    """A number too large is no infinity: it has no value."""
    if _NOT_FINITE.fullmatch(text):
        return nan if "n" in text.lower().strip("+-")[:1] else -inf if text[0] == "-" else inf
    if not _NUMBER.fullmatch(text) or isinf(value := float(text)):
        raise UnfitError
    return value


def _float(text: str) -> float:
    """The nearest of 32 bits; rounding one of 64 bits again would now and then miss it."""
    value = _double(text)
    if isinf(value) or isnan(value):
        return value
    with np.errstate(over="ignore"):
        near = np.float32(value)
    low, high = np.nextafter(near, np.float32(-inf)), np.nextafter(near, np.float32(inf))
    for other in (low, high):
        if (float(near) + float(other)) / 2 == value and (exact := Decimal(text)) != Decimal(value):
            near = max(near, other) if exact > Decimal(value) else min(near, other)
            break
    if np.isinf(near):
        raise UnfitError
    return float(near)


def _decimal(text: str, precision: int, scale: int) -> Decimal:
    """No digit may be lost, and exponents are not read."""
    match = re.fullmatch(r"[+-]?([0-9]*)(\.([0-9]*))?", text)
    if match is None or not (match[1] or match[3]):
        raise UnfitError
    whole, fraction = match[1].lstrip("0"), (match[3] or "").rstrip("0")
    if len(fraction) > scale or len(whole) > precision - scale:
        raise UnfitError
    return Decimal(text)


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise UnfitError
    return text.lower() == "true"


# --- times ---------------------------------------------------------------------------------------

_MOMENT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"([T ](\d\d):(\d\d)(:(\d\d)(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?",
    re.ASCII,
)


def _moment(text: str) -> int:
    """In microseconds, finer ones cut off; without a zone it is one of UTC."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise UnfitError
    year, month, day, hour, minute, second = (int(match[n] or 0) for n in (1, 2, 3, 5, 6, 8))
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise UnfitError from None
    finer = int((match[9] or ".")[1:7].ljust(6, "0"))
    micros = (moment - EPOCH) // timedelta(microseconds=1) + finer - _offset(match[10] or "Z")
    if not FIRST <= micros <= LAST:
        raise UnfitError
    return micros


def _offset(zone: str) -> int:
    if zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    if hours > 18 or minutes > 59:
        raise UnfitError
    return (hours * 60 + minutes) * (-60_000_000 if zone[0] == "-" else 60_000_000)


def _date(text: str) -> date:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise UnfitError
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UnfitError from None


_PATTERN = {
    "y": r"(?P<y>\d{4})", "u": r"(?P<y>\d{4})", "M": r"(?P<M>\d\d?)", "d": r"(?P<d>\d\d?)",
    "H": r"(?P<H>\d\d?)", "h": r"(?P<h>\d\d?)", "m": r"(?P<m>\d\d?)", "s": r"(?P<s>\d\d?)",
    "a": r"(?P<a>[AaPp][Mm])",
}  # fmt: skip
_OFFSETS = {1: r"[+-]\d\d(\d\d)?", 2: r"[+-]\d{4}", 3: r"[+-]\d\d:\d\d"}


class Pattern:
    """A pattern of dates and times as Spark writes them, which the job file has checked."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        """The pattern letter by letter, as a regular expression."""
        made, rest = "", self._pattern
        while rest:
            one, count = rest[0], len(rest) - len(rest.lstrip(rest[0]))
            if one == "'":
                end = 2 if rest.startswith("''") else re.match("'(?:[^']|'')+'", rest).end()  # type: ignore[union-attr]
                made += re.escape("'" if end == 2 else rest[1 : end - 1].replace("''", "'"))
                rest = rest[end:]
            elif one.isalpha():
                made, rest = made + self._letters(one, count), rest[count:]
            else:
                made += {"[": "(?:", "]": ")?"}.get(one, re.escape(one))
                rest = rest[1:]
        return re.compile(made, re.ASCII)

    @staticmethod
    def _letters(one: str, count: int) -> str:
        if one == "S":
            return rf"(?P<S>\d{{1,{count}}})"
        if one in "XxZ":
            offset = _OFFSETS[2 if one == "Z" else count]
            return f"(?P<zone>{'Z|' if one == 'X' else ''}{offset})"
        found = _PATTERN[one]
        if one in "yu" and count == 2:
            return r"(?P<short>\d\d)"
        return found.replace(r"\d\d?", r"\d\d") if count == 2 else found

    def _parts(self, text: str) -> dict[str, str]:
        match = self._regex.fullmatch(text)
        if match is None:
            raise UnfitError
        return {name: part for name, part in match.groupdict().items() if part is not None}

    def day(self, text: str) -> date:
        """The day of a text."""
        parts = self._parts(text)
        self._hour(parts)
        year = int(parts.get("y") or "20" + parts["short"])
        try:
            return date(year, int(parts["M"]), int(parts["d"]))
        except ValueError:
            raise UnfitError from None

    def moment(self, text: str) -> int:
        """The moment of a text, in microseconds."""
        parts, day = self._parts(text), self.day(text)
        clock = f"{self._hour(parts):02}:{parts.get('m', '0'):0>2}:{parts.get('s', '0'):0>2}"
        finer = f".{parts['S']}" if "S" in parts else ""
        return _moment(f"{day.isoformat()} {clock}{finer}{parts.get('zone', '')}")

    @staticmethod
    def _hour(parts: Mapping[str, str]) -> int:
        if "h" not in parts:
            return int(parts.get("H", 0))
        if not 1 <= int(parts["h"]) <= 12:
            raise UnfitError
        return int(parts["h"]) % 12 + (12 if parts["a"].upper() == "PM" else 0)


# --- what JSON tells in its own way --------------------------------------------------------------


def _is_number(value: Any) -> bool:
    return isinstance(value, Token)


def _number(value: Any) -> str:
    if not _is_number(value):
        raise UnfitError
    return str(value)


def _text(value: Any) -> str:
    if _is_number(value) or not isinstance(value, str):
        raise UnfitError
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise UnfitError
    return value


def _seconds(value: Token) -> int:
    if not re.fullmatch(r"-?[0-9]{1,15}", value) or not FIRST <= int(value) * 1_000_000 <= LAST:
        raise UnfitError
    return int(value) * 1_000_000


def _base64(value: Any) -> bytes:
    try:
        return b64decode(_text(value), validate=True)
    except ValueError:
        raise UnfitError from None
