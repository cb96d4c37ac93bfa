"""CSV and JSON as other programs write them, and what of each row can be told from the file.

A reader cannot know what a writer has lost: Python's csv writes NULL and an empty text alike,
pandas NaN as nothing.  So each writer says what its file means.
"""

import base64
import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

import pandas as pd

from tests.bench.differential.case import Broken, Row, Stream
from tests.bench.differential.functions import kind_of
from tests.bench.differential.terms import Value

Line = Row | Broken
Told = Callable[[Value, str], Value]

SEPARATORS = (",", ",", ";", "\t", "|", "::")
ZONES = ("", "Z", "+00:00", "+05:45", "-03:30", "+1245")


MOMENTS: dict[str, Callable[[datetime], str]] = {
    "dd.MM.yyyy HH:mm:ss.SSSSSS": lambda t: f"{t:%d.%m.}{t.year:04}{t: %H:%M:%S.%f}",
    "yyyy/M/d'T'H-m-ss[.SSSSSS]XXX": lambda t: (
        f"{t.year:04}/{t.month}/{t.day}T{t.hour}-{t.minute}-{t:%S}"
        f"{f'.{t:%f}' if t.microsecond else ''}Z"
    ),
    "'on' yyyyMMdd 'at' h:mm:ss.SSSSSS a": lambda t: (
        f"on {t.year:04}{t:%m%d} at {(t.hour + 11) % 12 + 1}:{t:%M:%S.%f} "
        f"{'am' if t.hour < 12 else 'PM'}"
    ),
}
"""Patterns of times, and how times are written by each."""

DAYS: dict[str, Callable[[date], str]] = {
    "d.M.yyyy": lambda day: f"{day.day}.{day.month}.{day.year:04}",
    "uuuuMMdd": lambda day: f"{day.year:04}{day.month:02}{day.day:02}",
}

PLAIN = {"header", "sep", "recursiveFileLookup"}
"""Options under which everybody's files can be read."""


@dataclass(frozen=True)
class Texts:
    """A writer of text files."""

    write: Callable[[Stream, Sequence[Line], Random], str]
    told: Told = lambda value, _: value
    """What a value is when it is read again."""
    fits: Callable[[Stream], bool] = lambda _: True


# --- values --------------------------------------------------------------------------------------


def text(value: Value, kind: str, r: Random) -> str:
    """A value as most programs write it."""
    match kind_of(kind):
        case "BOOLEAN":
            return str(value) if r.random() < 0.5 else str(value).lower()
        case "DECIMAL":
            return format(value, "f")
        case "DOUBLE":
            return repr(value)
        case "DATE":
            assert isinstance(value, int)
            return str(date(1970, 1, 1) + timedelta(days=value))
        case "TIMESTAMP":
            assert isinstance(value, int)
            return moment(value, r)
    if isinstance(value, bytes):
        return value.decode()
    return value if isinstance(value, str) else repr(value)


def as_asked(value: Value, kind: str, r: Random, options: dict[str, Any]) -> str:
    """A value as a stream's options say."""
    if kind == "TIMESTAMP" and (pattern := options.get("timestampFormat")):
        return MOMENTS[pattern](datetime(1970, 1, 1) + timedelta(microseconds=value))  # type: ignore[arg-type]  # noqa: DTZ001
    if kind == "DATE" and (pattern := options.get("dateFormat")):
        return DAYS[pattern](date(1970, 1, 1) + timedelta(days=value))  # type: ignore[arg-type]
    if isinstance(value, float) and not math.isfinite(value):
        names = {"nan": "nanValue", "inf": "positiveInf", "-inf": "negativeInf"}
        return str(options.get(names[repr(value)], repr(value)))
    return text(value, kind, r)


def moment(micros: int, r: Random) -> str:
    """A time in ISO form, in any zone in which it has four digits of a year; none means UTC."""
    zone = r.choice(ZONES) if abs(micros) < 60_000_000_000_000_000 else "Z"
    shift = {"+05:45": 20_700, "-03:30": -12_600, "+1245": 45_900}.get(zone, 0)
    told = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros, seconds=shift)
    return told.replace(tzinfo=None).isoformat(sep=r.choice("T ")) + zone


def spoiled(r: Random, stream: Stream, row: Row) -> Broken:
    """A line that is no tuple."""
    if stream.format == "csv":
        separator: str = _options(stream).get("sep", ",")
        return Broken(separator.join(["x"] * (len(row) + r.choice([-1, 1]))))
    name = stream.columns[0][0]
    known, time = json.dumps(name), json.dumps(stream.time)
    return Broken(
        r.choice(
            [
                "[]", "7", '"text"', "null", "{", "{}}", "{'a': 1}", '{"a" 1}', "nonsense",
                f'{{{known}: null, {known}: null}}', f'{{{known}: {{}}}}', f'{{{known}: [1]}}',
                '{"no such field": 1}', f'{{{time}: "yesterday"}}', f'{{{time}: true}}',
                f'{{{known}: NaN}}', f'{{{time}: "2024-13-01"}}', f'{{{time}: "0000-01-01"}}',
            ]
        )
    )  # fmt: skip


# --- CSV -----------------------------------------------------------------------------------------


def _options(stream: Stream) -> dict[str, Any]:
    return dict(stream.options)


def _csv(dialect: str) -> Texts:
    """Python's csv module in one of its dialects; `unix` puts everything in quotes."""

    def write(stream: Stream, rows: Sequence[Line], r: Random) -> str:
        made, separator = io.StringIO(), _options(stream).get("sep", ",")
        writer = csv.writer(made, dialect, delimiter=separator)
        if _options(stream).get("header"):
            writer.writerow([name for name, _ in stream.columns])
        for row in rows:
            if isinstance(row, Broken):
                made.write(row.text + writer.dialect.lineterminator)
            else:
                kinds = [kind for _, kind in stream.columns]
                values = zip(row, kinds, strict=True)
                writer.writerow([None if v is None else text(v, k, r) for v, k in values])
        return made.getvalue()

    told = _empty_for_null if dialect == "unix" else _null_for_empty
    return Texts(write, told, _one_character)


def _null_for_empty(value: Value, _: str) -> Value:
    return None if value in ("", b"") else value


def _empty_for_null(value: Value, kind: str) -> Value:
    empty: dict[str, Value] = {"STRING": "", "BINARY": b""}
    return empty.get(kind) if value is None else value


def _by_hand(stream: Stream, rows: Sequence[Line], r: Random) -> str:
    """RFC 4180 to the letter, or as options say: texts in quotes, NULL as nothing."""
    options = _options(stream)
    separator = options.get("sep", ",")
    lines = [row.text if isinstance(row, Broken) else _record(stream, row, r) for row in rows]
    if options.get("header"):
        lines.insert(0, separator.join(_quoted(name, options) for name, _ in stream.columns))
    if "comment" in options:
        lines.insert(r.randrange(len(lines) + 1), "# no row")
    mark = "\ufeff" if lines and "encoding" not in options and r.random() < 0.2 else ""
    ends = [options["lineSep"]] if "lineSep" in options else ["\r\n", "\n"]
    return mark + "".join(line + r.choice(ends) for line in lines)


def _record(stream: Stream, row: Row, r: Random) -> str:
    options, fields = _options(stream), []
    for (_, kind), value in zip(stream.columns, row, strict=True):
        if value is None:
            fields.append(str(options.get("nullValue", "")))
        elif kind in {"STRING", "BINARY"}:
            fields.append(_quoted(text(value, kind, r), options))
        else:
            before, after = ("ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace")
            told = as_asked(value, kind, r, options)
            fields.append(f"{_blank(r, options, before)}{told}{_blank(r, options, after)}")
    return str(options.get("sep", ",")).join(fields)


def _blank(r: Random, options: dict[str, Any], name: str) -> str:
    return r.choice(["", " ", "  "]) if options.get(name) else ""


def _quoted(told: str, options: dict[str, Any]) -> str:
    quote, escape = options.get("quote", '"'), options.get("escape", '"')
    if quote != escape:
        told = told.replace(escape, escape * 2)
    return f"{quote}{told.replace(quote, escape + quote)}{quote}"


def _pandas_csv(stream: Stream, rows: Sequence[Line], r: Random) -> str:
    frame = _frame(stream, rows, r)
    options = _options(stream)
    return frame.to_csv(
        index=False, header=bool(options.get("header")), sep=options.get("sep", ","),
        lineterminator="\r\n",
    )  # fmt: skip


def _frame(stream: Stream, rows: Sequence[Line], r: Random) -> pd.DataFrame:
    columns = {}
    for at, (name, kind) in enumerate(stream.columns):
        values: list[Any] = [row[at] for row in rows if not isinstance(row, Broken)]
        if kind_of(kind) in {"DECIMAL", "DATE", "TIMESTAMP", "BINARY"}:
            values = [None if value is None else text(value, kind, r) for value in values]
        columns[name] = pd.Series(values, dtype="float64" if kind_of(kind) == "DOUBLE" else object)
    return pd.DataFrame(columns)


def _pandas_told(value: Value, _: str) -> Value:
    lost = isinstance(value, float) and math.isnan(value)
    return None if lost or value in ("", b"") else value


# --- JSON ----------------------------------------------------------------------------------------


def _json(stream: Stream, rows: Sequence[Line], r: Random) -> str:
    """Objects as JSON allows them: escapes or none, fields in any order or left out."""
    lines = [row.text if isinstance(row, Broken) else _object(stream, row, r) for row in rows]
    ends = (
        [_options(stream)["lineSep"]] if "lineSep" in _options(stream) else ["\n", "\r\n", "\n\n"]
    )
    return "".join(line + r.choice(ends) for line in lines)


def _object(stream: Stream, row: Row, r: Random) -> str:
    fields = []
    ascii_only, blank = r.random() < 0.5, r.choice(["", " "])
    for (name, kind), value in zip(stream.columns, row, strict=True):
        if value is not None or r.random() < 0.5:
            token = _formatted(value, kind, r, _options(stream)) or _token(
                value, kind, r, ascii_only=ascii_only
            )
            fields.append(f"{json.dumps(name, ensure_ascii=ascii_only)}:{blank}{token}")
    return "{" + f",{blank}".join(r.sample(fields, len(fields))) + "}"


def _formatted(value: Value, kind: str, r: Random, options: dict[str, Any]) -> str:
    """A date or time that looks as options say."""
    pattern = {"DATE": "dateFormat", "TIMESTAMP": "timestampFormat"}.get(kind, "")
    if value is None or pattern not in options:
        return ""
    return json.dumps(as_asked(value, kind, r, options))


def _token(value: Value, kind: str, r: Random, *, ascii_only: bool) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case bytes():
            return json.dumps(base64.b64encode(value).decode())
        case float() if math.isnan(value):
            return '"NaN"'
        case float() if math.isinf(value):
            return '"Infinity"' if value > 0 else '"-Infinity"'
        case str():
            return json.dumps(value, ensure_ascii=ascii_only)
        case int() if kind == "TIMESTAMP" and value % 1_000_000 == 0 and r.random() < 0.3:
            return str(value // 1_000_000)
    told = text(value, kind, r)
    return json.dumps(told) if kind in {"DATE", "TIMESTAMP"} else told


def _pandas_json(stream: Stream, rows: Sequence[Line], r: Random) -> str:
    frame = _frame(stream, rows, r)
    told: str = frame.to_json(orient="records", lines=True, double_precision=15)
    return told if len(frame) else ""


def _finite(value: Value, _: str) -> Value:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _no_decimals(stream: Stream) -> bool:
    return _plain(stream) and all(
        kind_of(kind) not in {"DECIMAL", "BINARY"} for _, kind in stream.columns
    )


def _one_character(stream: Stream) -> bool:
    return _plain(stream) and len(_options(stream).get("sep", ",")) == 1


def _plain(stream: Stream) -> bool:
    return _options(stream).keys() <= PLAIN


WRITERS: dict[str, dict[str, Texts]] = {
    "csv": {
        "csv excel": _csv("excel"),
        "csv unix": _csv("unix"),
        "rfc4180": Texts(_by_hand),
        "pandas": Texts(_pandas_csv, _pandas_told, _one_character),
    },
    "json": {
        "json": Texts(_json),
        "pandas": Texts(_pandas_json, _finite, _no_decimals),
    },
}
