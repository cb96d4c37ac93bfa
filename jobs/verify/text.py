"""Lines of CSV and JSON as tuples, or as what nobody can read: a strict reader of our own.

CSV as RFC 4180 says: a field may stand in quotes, quotes within are doubled.  JSON: one object a
line, each key once, nothing behind it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from json import JSONDecodeError, loads
from pathlib import Path
from typing import Any

from jobs.verify.fields import Guess, Parser, Token, UnfitError, by_pattern, of_json, of_text
from jobs.verify.verdict import CannotTellError
from optimizer.query import Column

LISTING = {
    "maxfileage", "maxfilespertrigger", "maxbytespertrigger", "latestfirst", "filenameonly",
    "maxcachedfiles", "pathglobfilter", "recursivefilelookup", "cleansource", "sourcearchivedir",
}  # fmt: skip
"""Options about which files are read."""

READ = {
    "json": {"encoding", "charset", "linesep", "timestampformat", "dateformat", "multiline"},
    "csv": {
        "encoding", "charset", "linesep", "timestampformat", "dateformat", "multiline", "header",
        "sep", "delimiter", "quote", "escape", "nullvalue", "emptyvalue", "comment",
    },
    "parquet": {"mergeschema"},
}  # fmt: skip
"""Options about what is in them that are understood here."""


@dataclass(frozen=True)
class Line:
    """A line as a tuple; without values nobody can read it.  Unsure ones may be read otherwise."""

    text: str
    values: tuple[Any, ...] | None
    sure: bool = True


@dataclass(frozen=True)
class Reader:
    """How a stream's lines are read."""

    name: str
    columns: Sequence[Column]
    options: Mapping[str, str]
    """By their names in small letters."""

    def lines(self, path: Path, form: str) -> Iterator[Line]:
        """All lines of a file that have anything in them."""
        data = path.read_bytes()
        encoding = self.options.get("encoding", self.options.get("charset", "utf-8"))
        text = data.decode(encoding, errors="replace")
        marked = text.startswith("\ufeff")
        found = iter(self._split(text.removeprefix("\ufeff")))
        if form == "csv" and self.options.get("header") == "true":
            next(found, None)
            marked = False
        one = self._from_json() if form == "json" else self._from_csv()
        for line in found:
            if line.strip() if form == "json" else line and not self._is_comment(line):
                made = one(line)
                unsure = marked or "\ufffd" in line
                yield Line(made.text, made.values, sure=False) if unsure else made
                marked = False

    def _split(self, text: str) -> list[str]:
        if "linesep" in self.options:
            return text.split(self.options["linesep"])
        return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    def _is_comment(self, line: str) -> bool:
        return bool(self.options.get("comment")) and line.startswith(self.options["comment"])

    def _parser(self, column: Column, parse: Parser) -> Parser:
        option = {"TIMESTAMP": "timestampformat", "DATE": "dateformat"}.get(column.type)
        if option is None or option not in self.options:
            return parse
        made = by_pattern(self.options[option], column)
        if made is None:
            raise CannotTellError(
                f"stream {self.name}: verify cannot read times written as {self.options[option]}"
            )
        return made

    # --- JSON ------------------------------------------------------------------------------------

    def _from_json(self) -> Any:
        parsers = {c.name: self._parser(c, of_json(c)) for c in self.columns}
        return partial(_from_json, parsers)

    # --- CSV -------------------------------------------------------------------------------------

    def _from_csv(self) -> Any:
        parsers = [self._parser(c, of_text(c)) for c in self.columns]
        sep = self.options.get("sep", self.options.get("delimiter", ","))
        quote = self.options.get("quote", '"')
        escape = self.options.get("escape", quote)
        null = self.options.get("nullvalue", "")
        split = partial(_fields, sep=sep, quote=quote, escape=escape)
        return partial(_from_csv, parsers, split, null, self.options.get("emptyvalue", ""))


class _RepeatedError(ValueError):
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _RepeatedError
    return found


def _from_json(parsers: Mapping[str, Parser], text: str) -> Line:
    try:
        found = loads(text, object_pairs_hook=_once, parse_int=Token, parse_float=Token)
    except (JSONDecodeError, _RepeatedError, RecursionError):
        return Line(text, None)
    if not isinstance(found, dict):
        return Line(text, None)
    if unknown := found.keys() - parsers.keys():
        known = {name.lower() for name in parsers}
        return Line(text, None, sure=not any(name.lower() in known for name in unknown))
    return _line(text, list(parsers.values()), [found.get(name) for name in parsers])


def _from_csv(parsers: Sequence[Parser], split: Any, null: str, empty: str, text: str) -> Line:
    fields, sure = split(text)
    if len(fields) != len(parsers):
        return Line(text, None, sure)
    values = [_value(field, quoted, null, empty) for field, quoted in fields]
    line = _line(text, parsers, values)
    doubtful = any(quoted and field in (null, "") for field, quoted in fields)
    return Line(text, line.values, line.sure and sure and not doubtful)


def _value(field: str, quoted: bool, null: str, empty: str) -> str | None:  # noqa: FBT001
    if quoted and not field:
        return empty
    return None if field == null or not field else field


def _fields(text: str, sep: str, quote: str, escape: str) -> tuple[list[tuple[str, bool]], bool]:
    """The fields of a line and whether each was quoted; and whether there is but one way."""
    fields: list[tuple[str, bool]] = []
    sure, at = True, 0
    while True:
        if quote and text.startswith(quote, at):
            field, at, closed = _quoted(text, at + len(quote), quote, escape)
            rest = text.find(sep, at)
            behind = text[at : rest if rest >= 0 else len(text)]
            sure = sure and closed and not behind
            fields.append((field + behind, True))
            at += len(behind)
        else:
            end = text.find(sep, at)
            end = len(text) if end < 0 else end
            field = text[at:end]
            sure = sure and (not quote or quote not in field) and field == field.strip()
            fields.append((field, False))
            at = end
        if at >= len(text):
            return fields, sure
        at += len(sep)


def _quoted(text: str, at: int, quote: str, escape: str) -> tuple[str, int, bool]:
    """A quoted field from behind its quote: what it says, where it ends, whether it does."""
    made = ""
    while at < len(text):
        if text[at] == escape and text[at + 1 : at + 2] in (quote, escape):
            made += text[at + 1]
            at += 2
        elif text[at] == quote:
            return made, at + 1, True
        else:
            made += text[at]
            at += 1
    return made, at, False


def _line(text: str, parsers: Sequence[Parser], found: Sequence[Any]) -> Line:
    values, sure = [], True
    try:
        for parse, value in zip(parsers, found, strict=True):
            read = None if value is None else parse(value)
            sure = sure and not isinstance(read, Guess)
            values.append(read.value if isinstance(read, Guess) else read)
    except UnfitError:
        return Line(text, None)
    return Line(text, tuple(values), sure)
