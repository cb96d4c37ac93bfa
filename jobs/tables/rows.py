"""Values that rows of control tables hold as JSON, whichever version has written them.

A field that is missing has its default.  Without a default, or with a field that this version does
not know, the row says something else than this version would read in it.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from json import loads
from pathlib import Path
from typing import Any, TypeVar

from jobs.errors import RefusedError
from jobs.tables.damage import whole

Value = TypeVar("Value")


def said(text: str, where: str) -> dict[str, Any]:
    """The JSON of a row."""
    with whole(Path(where)):
        content = loads(text)
        if not isinstance(content, dict):
            raise TypeError("a row is empty or torn")
        return content


def read(
    kind: type[Value], content: Mapping[str, Any], where: str, *, later: bool = False
) -> Value:
    """What a row of that table says; with `later`, fields of a later version do no harm."""
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    missing = [name for name, field in known.items() if name not in content and _needed(field)]
    if missing:
        raise RefusedError(_words(where, "lacks", missing, "an earlier or later one"))
    if not later and (more := [name for name in content if name not in known]):
        raise RefusedError(_words(where, "has", more, "a newer one"))
    return kind(**{name: value for name, value in content.items() if name in known})


def _needed(field: "Field[Any]") -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _words(where: str, verb: str, names: list[str], version: str) -> str:
    return (
        f"{where} {verb} {', '.join(names)}: it was written by another version of midstream, "
        f"{version}; go on with that one, or give the job another storage"
    )
