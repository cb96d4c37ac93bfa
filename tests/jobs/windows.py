"""Statistics of a job, written by hand: what its tables would hold had it been observed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optimizer.workload import UnitCosts
from stats.costs import BASE, UNITS, Costs, Fit, keep
from stats.store import (
    BATCHES,
    EDGES,
    OPERATORS,
    SELECTS,
    STREAMS,
    VERDICTS,
    StatsStore,
    Window,
)

MINUTE = 60_000_000


def price(storage: Path) -> None:
    """Have work cost what the cost model says by default, whatever was measured on machines."""
    units = {name: getattr(UnitCosts(), name) for name in UNITS}
    values = units | dict.fromkeys(BASE, 0.0)
    fit = Fit(Costs.of(values), values, values, batches=1, error=0.0)
    keep(StatsStore.of(storage), "duckdb", fit, at=0)


def window(start: int, number: int) -> Window:
    """The window of that number, a minute each."""
    begins = start // MINUTE * MINUTE + number * MINUTE
    return Window(begins, begins + MINUTE)


def write(
    storage: Path,
    at: Window,
    query: str,
    rates: Mapping[str, float],
    joins: Mapping[tuple[str, str], float],
    *,
    selects: Mapping[str, float] | None = None,
    states: Mapping[str, int] | None = None,
    good: bool = True,
    **batches: Any,
) -> None:
    """A window of a query whose inputs are called as their streams are."""
    store = StatsStore.of(storage)
    streams = [
        {"stream": name, "rows": round(rate * 60), "rate": rate, "width": 40.0}
        for name, rate in rates.items()
    ]
    edges = [
        {"query": query, "one": one, "other": other, "selectivity": s, "method": "exact"}
        for (one, other), s in joins.items()
    ]
    chosen = [
        {"query": query, "alias": text[0], "predicate": text, "selectivity": s}
        for text, s in (selects or {}).items()
    ]
    operators = [{"operator": key, "state_rows": rows} for key, rows in (states or {}).items()]
    store.replace(STREAMS, at, streams)
    store.replace(EDGES, at, edges)
    store.replace(SELECTS, at, chosen)
    store.replace(OPERATORS, at, operators)
    store.replace(BATCHES, at, [{"batches": 6, **batches}])
    reasons = [] if good else ["broken for this test"]
    store.replace(VERDICTS, at, [{"good": good, "reasons": reasons, "checked": 10}])
