"""Everything that may stand in an expression, and who reads it."""

from optimizer.sql.calls import CALLS
from optimizer.sql.operators import OPERATORS
from optimizer.sql.scope import Scope
from optimizer.sql.typed import Reader

HANDLERS = {**CALLS, **OPERATORS}


def reader(scope: Scope, *, aggregates: bool = False) -> Reader:
    """A reader of expressions over these streams."""
    return Reader(scope, HANDLERS, aggregates)
