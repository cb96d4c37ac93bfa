"""What plans are chosen for, as people write it: cost, rate by 10 seconds, first 1000 results."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optimizer.cost.rate.objective import Objective

COST = "cost"
"""The plan that needs least, within the budget."""

FORMS = "cost, rate by 10 seconds or first 1000 results"

_BY = re.compile(r"rate by (\S.*)")
_FIRST = re.compile(r"first (\d+) results?")


def objective(text: str) -> "Objective | None":
    """What a text says; nothing for the cost.  Anything else is a `ValueError`."""
    from optimizer.cost.rate.objective import Objective

    plain = " ".join(text.split())
    if plain == COST:
        return None
    if by := _BY.fullmatch(plain):
        return Objective(by=_seconds(by[1]))
    if first := _FIRST.fullmatch(plain):
        return Objective(first=float(first[1]))
    raise ValueError(f"no objective: {text}")


def _seconds(text: str) -> float:
    from optimizer.query import QueryError
    from optimizer.sql import parse_duration
    from optimizer.window import MICROSECONDS

    try:
        return parse_duration(text) / MICROSECONDS
    except QueryError as error:
        raise ValueError(str(error)) from None
