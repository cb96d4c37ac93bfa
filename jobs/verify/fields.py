"""The values in a line of text, read strictly: what a field must look like to be of its type.

Whatever readers are known to take in more than one way is a `Guess`: nobody is called wrong for it.
"""

import re
from base64 import b64decode
from binascii import Error as BinasciiError
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

from optimizer.query import Column

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SIZES = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


class UnfitError(ValueError):
    """A field is not of its column's type."""


@dataclass(frozen=True)
class Guess:
    """What a field may mean."""

    value: Any = None


class Token(str):
    """A number as it is written in JSON."""

    __slots__ = ()


Parser = Callable[[Any], Any]


def micros(moment: datetime) -> int:
    """A moment as whole microseconds since 1970."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def _whole(bits: int) -> Parser:
    def parse(text: str) -> Any:
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            return _doubtful(text, lambda: int(Decimal(text)))
        value = int(text) if len(text) < 30 else 1 << 99
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise UnfitError
        return Guess(value) if text.startswith("+") else value

    return parse


def _doubtful(text: str, meant: Callable[[], Any]) -> Guess:
    """What has spaces around it or is written in an unusual way; without digits it is nothing."""
    if not re.search(r"\d", text):
        raise UnfitError
    try:
        return Guess(meant())
    except (ValueError, ArithmeticError, InvalidOperation):
        raise UnfitError from None


_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = {"nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"}


def _double(text: str) -> Any:
    if _NUMBER.fullmatch(text):
        return float(text)
    if text.strip().lower() in _NOT_FINITE:
        value = float(text)
        return value if text in ("NaN", "Infinity", "-Infinity") else Guess(value)
    return _doubtful(text, lambda: float(text.strip().replace("_", "").rstrip("dDfF")))


def _decimal(declared: str) -> Parser:
    precision, scale = map(int, declared.removeprefix("DECIMAL").strip("()").split(","))

    def fitting(value: Decimal) -> Decimal:
        kept = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _CONTEXT)
        if abs(kept) >= Decimal(10) ** (precision - scale):
            raise UnfitError
        return kept

    def parse(text: str) -> Any:
        if not _NUMBER.fullmatch(text):
            return _doubtful(text, lambda: fitting(Decimal(text.strip())))
        try:
            value = Decimal(text)
            kept = fitting(value)
        except InvalidOperation:
            raise UnfitError from None
        return kept if kept == value and "e" not in text.lower() else Guess(kept)

    return parse


_CONTEXT = Context(prec=100)


def _boolean(text: str) -> Any:
    known = {"true": True, "false": False}
    if text in known:
        return known[text]
    if text.strip().lower() in known:
        return Guess(known[text.strip().lower()])
    raise UnfitError


_MOMENT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(Z|[+-]\d\d:\d\d)?", re.ASCII
)


def _moment(text: str) -> Any:
    """As microseconds; without a zone it is UTC."""
    if match := _MOMENT.fullmatch(text):
        return _micros_of(match)
    return _doubtful(text, lambda: _loosely(text))


def _micros_of(match: re.Match[str]) -> int:
    *numbers, fraction, zone = match.groups()
    try:
        whole = datetime(*map(int, numbers), tzinfo=UTC)  # type: ignore[misc,arg-type]
    except ValueError:
        raise UnfitError from None
    offset = 0
    if zone and zone != "Z":
        hours, minutes = int(zone[1:3]), int(zone[4:])
        if hours > 18 or minutes > 59:
            raise UnfitError
        offset = (hours * 3600 + minutes * 60) * (-1 if zone[0] == "-" else 1)
    return micros(whole) + int((fraction or "").ljust(6, "0")) - offset * 1_000_000


def _loosely(text: str) -> int | None:
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return micros(found if found.tzinfo else found.replace(tzinfo=UTC))


def _date(text: str) -> Any:
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        try:
            return date.fromisoformat(text)
        except ValueError:
            raise UnfitError from None
    return _doubtful(text, lambda: _date_loosely(text))


def _date_loosely(text: str) -> date | None:
    try:
        return datetime.fromisoformat(text.strip()).date()
    except ValueError:
        return None


def _as_it_is(text: str) -> str:
    return text


_PARSERS: Mapping[str, Parser] = {
    **{name: _whole(bits) for name, bits in SIZES.items()},
    "FLOAT": _double,
    "DOUBLE": _double,
    "BOOLEAN": _boolean,
    "TIMESTAMP": _moment,
    "DATE": _date,
    "STRING": _as_it_is,
}


def of_text(column: Column) -> Parser:
    """How a column's value is read from text."""
    if column.type == "BINARY":
        return lambda text: text.encode()
    return _decimal(column.type) if column.type.startswith("DECIMAL") else _PARSERS[column.type]


def of_json(column: Column) -> Parser:
    """How a column's value is read from what stands in JSON."""
    parse = of_text(column)
    match column.type:
        case "BOOLEAN":
            return _only(bool, lambda value: value)
        case "STRING":
            return _text_of_json
        case "BINARY":
            return _only(str, _base64)
        case "TIMESTAMP":
            return lambda value: (
                _seconds(value) if isinstance(value, Token) else _text(parse, value)
            )
        case "DATE":
            return lambda value: _text(parse, value)
        case _:
            return lambda value: _number(parse, value)


def _only(kind: type, parse: Parser) -> Parser:
    def read(value: Any) -> Any:
        if not isinstance(value, kind) or isinstance(value, Token):
            raise UnfitError
        return parse(value)

    return read


def _text(parse: Parser, value: Any) -> Any:
    return _only(str, parse)(value)


def _text_of_json(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Token):
        return value
    return Guess(str(value)) if isinstance(value, Token) else Guess()


def _number(parse: Parser, value: Any) -> Any:
    if isinstance(value, Token):
        return parse(str(value))
    if isinstance(value, float) or (isinstance(value, str) and value.lower() in _NOT_FINITE):
        return Guess(float(value))
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return Guess(_sure(parse(value)))
    raise UnfitError


def _sure(value: Any) -> Any:
    return value.value if isinstance(value, Guess) else value


def _seconds(value: Token) -> Guess:
    return _doubtful(value, lambda: int(Decimal(value) * 1_000_000))


def _base64(value: str) -> Any:
    try:
        return b64decode(value, validate=True)
    except (BinasciiError, ValueError):
        return Guess()


# --- the patterns of Java ------------------------------------------------------------------------

_LETTERS = {
    "yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S",
    "SSSSSS": "%f", "SSS": "%f", "S": "%f", "XXX": "%z", "Z": "%z", "X": "%z",
}  # fmt: skip


def by_pattern(pattern: str, column: Column) -> Parser | None:
    """A reader of times written by one of Java's patterns; none if the pattern is not known."""
    made = _python_pattern(pattern)
    if made is None:
        return None

    def parse(text: str) -> Any:
        try:
            found = datetime.strptime(text, made)  # noqa: DTZ007  # a zone is in the pattern or UTC
        except ValueError:
            return Guess(None)
        moment = found if found.tzinfo else found.replace(tzinfo=UTC)
        return moment.date() if column.type == "DATE" else micros(moment)

    return parse


def _python_pattern(pattern: str) -> str | None:
    made = ""
    for part in re.finditer(r"'[^']*'|([A-Za-z])\1*|[^A-Za-z']", pattern):
        text = part.group()
        if text.startswith("'"):
            made += text[1:-1].replace("%", "%%") or "'"
        elif part.group(1):
            if text not in _LETTERS:
                return None
            made += _LETTERS[text]
        else:
            made += text.replace("%", "%%")
    return made
