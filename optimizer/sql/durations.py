"""Lengths of time as people write them: `5 minutes`, `1 hour 30 minutes`, `500 ms`."""

import re
from decimal import Decimal

from optimizer.query import QueryError

UNITS = {
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
"""Microseconds of each unit, the longest first."""

_SHORT = {"D": "DAY", "H": "HOUR", "MIN": "MINUTE", "SEC": "SECOND", "S": "SECOND"} | {
    "MS": "MILLISECOND",
    "US": "MICROSECOND",
}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")
_LONGEST = 10_000 * 365 * UNITS["DAY"]


def parse_duration(text: str) -> int:
    """Microseconds of `5 minutes`; a QueryError says what cannot be read."""
    total, end = 0, 0
    for part in _PART.finditer(text):
        if part.start() != end:
            break
        end = part.end()
        total += microseconds(part[1], part[2])
    if not end or end != len(text):
        raise QueryError(f"not a length of time: '{text}': write a number and a unit: '5 minutes'")
    return total


def microseconds(number: str, unit: str) -> int:
    """The length of that many units."""
    try:
        exact = Decimal(number) * _unit(unit)
    except ArithmeticError:
        raise QueryError(f"not a number: {number}") from None
    if exact != int(exact):
        raise QueryError(f"{number} {unit} is not a whole number of microseconds")
    if abs(exact) > _LONGEST:
        raise QueryError(f"{number} {unit} is longer than 10000 years")
    return int(exact)


def _unit(name: str) -> int:
    upper = name.upper()
    known = _SHORT.get(upper) or next((u for u in UNITS if upper in {u, u + "S"}), None)
    if known is not None:
        return UNITS[known]
    if upper in {"WEEK", "WEEKS"}:
        return 7 * UNITS["DAY"]
    if upper.removesuffix("S") in {"MONTH", "QUARTER", "YEAR"}:
        raise QueryError(f"a {upper.removesuffix('S').lower()} has no fixed length: write days")
    allowed = ", ".join(f"{unit.lower()}s" for unit in UNITS)
    raise QueryError(f"{name} is not a unit of time: write weeks, {allowed}")


def largest_unit(length: int) -> tuple[int, str]:
    """The number and the longest unit that write this length of time exactly."""
    unit = next(unit for unit, micros in UNITS.items() if length % micros == 0)
    return length // UNITS[unit], unit if length else "SECOND"
