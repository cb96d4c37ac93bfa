"""The options of streams: what each kind of source and file takes, and how Spark spells it.

Light to import, as the job file is read with it.
"""

import codecs
import re
from collections.abc import Callable, Mapping
from typing import Any

from jobs.words import close_to, found

Check = Callable[[str], str | None]
"""What is allowed, if a value is not."""


def _truth(value: str) -> str | None:
    return None if value.lower() in ("true", "false") else "true or false"


def _count(value: str) -> str | None:
    return None if value.isdecimal() and int(value) > 0 else "a whole number above zero"


def _text(value: str) -> str | None:
    return None if value else "some text"


def _any(_: str) -> str | None:
    return None


def _character(value: str) -> str | None:
    return None if len(value) == 1 and value not in "\r\n" else "one character"


def _character_or_none(value: str) -> str | None:
    return None if not value else _character(value)


def _separator(value: str) -> str | None:
    fits = value and not set(value) & set("\r\n")
    return None if fits else "what stands between two fields"


WORDS = "''"
"""A quote in a pattern of dates and times."""

MOMENT = re.compile(
    r"(?P<letters>([A-Za-z])\2*)|(?P<optional>[\[\]])|''|'(?:[^']|'')+'|[^A-Za-z'\[\]{}#]+"
)
"""The parts of a pattern of dates and times, as Spark writes them."""

_LETTERS = re.compile("yyyy|uuuu|yy|[Md]{1,2}|[Hhms]{1,2}|a|S{1,9}|[XxZ]{1,3}")


def _moment(value: str) -> str | None:
    """Each letter once, and all that a day needs; a clock of twelve hours says which half."""
    parts = list(MOMENT.finditer(value))
    letters = [part["letters"] for part in parts if part["letters"]]
    kinds = "".join("y" if one[0] == "u" else one[0] for one in letters)
    zones = sum(kinds.count(zone) for zone in "XxZ")
    whole = "".join(part[0] for part in parts) == value
    known = all(_LETTERS.fullmatch(one) and len({*one}) == 1 for one in letters)
    once = len({*kinds}) == len(kinds) and zones < 2 and not {*"Hh"} <= {*kinds}
    day = {*"yMd"} <= {*kinds} and ("h" in kinds) == ("a" in kinds)
    if whole and known and once and day and _balanced(value):
        return None
    return "a pattern such as dd.MM.yyyy HH:mm:ss, of yyyy M d H h a m s S X x Z, each once"


def _balanced(value: str) -> bool:
    """Whether brackets open and close, and what a day needs is in none."""
    depth = 0
    for part in MOMENT.finditer(value):
        depth += {"[": 1, "]": -1}.get(part[0], 0)
        if depth < 0 or (depth and part[0][0] in "yuMdHha"):
            return False
    return depth == 0


def _encoding(value: str) -> str | None:
    try:
        known = codecs.lookup(value)._is_text_encoding  # noqa: SLF001
    except (LookupError, ValueError):
        known = False
    return None if known else "an encoding such as UTF-8"


def _only(*values: str) -> Check:
    return lambda value: None if value.lower() in values else " or ".join(values)


LISTING: Mapping[str, Check] = {
    "maxFilesPerTrigger": _count,
    "maxBytesPerTrigger": _text,
    "maxFileAge": _text,
    "maxCachedFiles": _count,
    "discardCachedInputRatio": _text,
    "latestFirst": _truth,
    "fileNameOnly": _truth,
    "pathGlobFilter": _text,
    "recursiveFileLookup": _truth,
    "cleanSource": _only("off", "archive", "delete"),
    "sourceArchiveDir": _text,
}
"""About which files are read: Spark looks for them."""

_MOMENTS: Mapping[str, Check] = {"timestampFormat": _moment, "dateFormat": _moment}

_CSV: Mapping[str, Check] = {
    "sep": _separator,
    "header": _truth,
    "quote": _character_or_none,
    "escape": _character,
    "nullValue": _any,
    "emptyValue": _any,
    "nanValue": _text,
    "positiveInf": _text,
    "negativeInf": _text,
    "comment": _character,
    "ignoreLeadingWhiteSpace": _truth,
    "ignoreTrailingWhiteSpace": _truth,
    **_MOMENTS,
    "lineSep": _text,
    "encoding": _encoding,
    "multiLine": _truth,
    "mode": _only("permissive"),
}

_DELTA: Mapping[str, Check] = {
    "maxFilesPerTrigger": _count,
    "maxBytesPerTrigger": _text,
    "startingVersion": _text,
    "startingTimestamp": _text,
    "ignoreDeletes": _truth,
    "failOnDataLoss": _truth,
}

KNOWN: Mapping[str, Mapping[str, Check]] = {
    "parquet": LISTING,
    "json": {
        **LISTING,
        **_MOMENTS,
        "lineSep": _text,
        "encoding": _encoding,
        "multiLine": _only("false"),
        "mode": _only("permissive"),
    },
    "csv": {**LISTING, **_CSV},
    "delta": _DELTA,
    "generator": {},
}
"""What a stream takes, by its format or else its source."""

_ALSO = {"delimiter": "sep", "charset": "encoding"}
"""What Spark knows by two names."""

SPARK = (
    "allowBackslashEscapingAnyCharacter", "allowComments", "allowNonNumericNumbers",
    "allowNumericLeadingZeros", "allowSingleQuotes", "allowUnquotedControlChars",
    "allowUnquotedFieldNames", "charToEscapeQuoteEscaping", "columnNameOfCorruptRecord",
    "columnPruning", "compression", "dateFormat", "datetimeRebaseMode", "dropFieldIfAllNull",
    "emptyValue", "enableDateTimeParsingFallback", "enforceSchema", "excludeRegex",
    "ignoreChanges", "ignoreCorruptFiles", "ignoreMissingFiles", "ignoreNullFields", "inferSchema",
    "int96RebaseMode", "lineSep", "locale", "maxCharsPerColumn", "maxColumns", "mergeSchema",
    "modifiedAfter", "modifiedBefore", "multiLine", "nanValue", "negativeInf", "positiveInf",
    "preferDate", "prefersDecimal", "primitivesAsString", "readChangeFeed", "readChangeData",
    "rowTag", "samplingRatio", "schemaTrackingLocation", "skipChangeCommits", "timeFormat",
    "timeZone", "timestampFormat", "timestampNTZFormat", "unescapedQuoteHandling",
    "withEventTimeOrder", "wholetext", "mode", "encoding", "header", "sep", "quote", "escape",
)  # fmt: skip
"""What Spark knows for some format, to be told from what nobody knows."""


INSTEAD: Mapping[str, str] = {
    "mergeSchema": "leave it out: `schema` says which columns there are, and each file is read "
    "for itself",
    "inferSchema": "leave it out: `schema` says the types",
    "enforceSchema": "leave it out: a header's names count; `columns: exact` wants their order too",
    "ignoreCorruptFiles": "leave it out: a file that cannot be read is set aside anyway",
    "ignoreMissingFiles": "leave it out: a file that a batch took has to stay",
    "compression": "leave it out: the end of a file's name says it",
    "columnNameOfCorruptRecord": "leave it out: what is no row is in rejected/STREAM",
    "timeZone": "leave it out: a time without a zone is one of UTC",
    "int96RebaseMode": "leave it out: days are what the file says",
    "datetimeRebaseMode": "leave it out: days are what the file says",
    "timestampNTZFormat": "write timestampFormat",
}
"""What to write in place of an option that Spark has."""


def options(kind: str, given: Mapping[str, Any]) -> dict[str, str]:
    """Options as Spark spells them, with their values as texts; wrong ones as they are."""
    names = {name.lower(): name for name in KNOWN.get(kind, {})}
    names |= {other.lower(): one for other, one in _ALSO.items() if one in KNOWN.get(kind, {})}
    return {names.get(name.lower(), name): _written(value) for name, value in given.items()}


def problems(kind: str, given: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong with options, by the name that each was given by."""
    wrong: dict[str, str] = {}
    for name, value in given.items() if kind in KNOWN else ():
        ((spelt, text),) = options(kind, {name: value}).items()
        if (fault := _fault(kind, spelt, text)) is not None:
            wrong[name] = fault
    return wrong


def _fault(kind: str, name: str, value: str) -> str | None:
    known = KNOWN[kind]
    if name in known:
        allowed = known[name](value)
        return None if allowed is None else f"found {found(value)}; allowed: {allowed}"
    there = ", ".join(known) or "none"
    if name.lower() in {one.lower() for one in SPARK}:
        instead = {one.lower(): said for one, said in INSTEAD.items()}.get(name.lower())
        return f"not supported for {kind}{f': {instead}' if instead else ''}; allowed: {there}"
    guess = close_to(name.lower(), [one.lower() for one in known])
    meant = next((one for one in known if one.lower() == guess), None)
    return f"unknown option; {f'did you mean {meant}? ' if meant else ''}allowed: {there}"


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
