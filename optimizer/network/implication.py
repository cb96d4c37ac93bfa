"""When one predicate implies another: equal texts, and comparisons of a column with a number."""

import re
from functools import lru_cache
from math import inf

_COMPARED = re.compile(r"([\w.]+) (=|<=|>=|<|>) ([-+]?\d+(?:\.\d+)?)")
_BETWEEN = re.compile(r"([\w.]+) between ([-+]?\d+(?:\.\d+)?) and ([-+]?\d+(?:\.\d+)?)")
_TOKEN = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|<=|>=|<>|!=|[=<>]|[-+]?[\w.]+|\S")

Limits = tuple[str, float, bool, float, bool]
"""A column, its least value and whether that belongs to it, its largest one likewise."""


@lru_cache(maxsize=65536)
def normal(text: str) -> str:
    """The predicate with one blank between its words; words in lower case, quotes as they are."""
    return " ".join(t if t[0] in "'\"" else t.lower() for t in _TOKEN.findall(text))


@lru_cache(maxsize=65536)
def implies(one: str, other: str) -> bool:
    """Whether all that passes the one also passes the other; both as `normal` writes them."""
    if one == other:
        return True
    narrow, wide = _limits(one), _limits(other)
    return narrow is not None and wide is not None and _within(narrow, wide)


def _within(narrow: Limits, wide: Limits) -> bool:
    column, low, has_low, high, has_high = narrow
    outer, least, has_least, most, has_most = wide
    above = low > least or (low == least and (has_least or not has_low))
    below = high < most or (high == most and (has_most or not has_high))
    return column == outer and above and below


def _limits(text: str) -> Limits | None:
    if match := _BETWEEN.fullmatch(text):
        return match[1], float(match[2]), True, float(match[3]), True
    if not (match := _COMPARED.fullmatch(text)):
        return None
    column, sign, value = match[1], match[2], float(match[3])
    if sign == "=":
        return column, value, True, value, True
    if sign[0] == "<":
        return column, -inf, False, value, sign == "<="
    return column, value, sign == ">=", inf, False
