"""How error messages name what was found, what is allowed, and what was probably meant."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any


def found(value: Any) -> str:
    """A value, as short as an error message likes it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list | tuple):
        return _listed(value)
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "...")
    return str(value)


def _listed(values: Sequence[Any]) -> str:
    """Short lists as they are written."""
    if not values:
        return "an empty list"
    simple = all(isinstance(value, str | int | float) for value in values)
    return f"[{', '.join(map(str, values))}]" if simple and len(values) <= 3 else "a list"


def one_of(names: Iterable[str]) -> str:
    """`parquet, json or csv`."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def close_to(name: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant."""
    return next(iter(get_close_matches(name, list(names), n=1)), None)


def unknown(kind: str, name: str, names: Iterable[str]) -> str:
    """That there is no such thing, and what there is."""
    names = list(names)
    guess = close_to(name, names)
    hint = f"; did you mean {guess}?" if guess else ""
    return f"no {kind} is called {found(name)}; there is {', '.join(names) or 'none'}{hint}"
