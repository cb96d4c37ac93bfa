"""A window's statistics, each row beside the figures that it must agree with.

What spans several tables or windows becomes a column here, so that an expectation about one column
can judge it.  A figure that cannot be compared is null, and nulls are not judged.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any

import pandas as pd
import pyarrow as pa

from optimizer.query import Predicate, Query
from stats.store import (
    BATCHES,
    COLUMNS,
    COMBINED,
    EDGES,
    GATHERED,
    GROUPS,
    KEYS,
    OPERATORS,
    SELECTS,
    STREAMS,
    Window,
)

HISTORY = 10
"""To how many windows before it a window is compared."""
ENOUGH = 3
"""With fewer of them there is no history yet."""

Row = Mapping[str, Any]
Rows = Mapping[str, Sequence[Row]]
"""The rows of each table."""


@dataclass(frozen=True)
class Delay:
    """For how long the next window to gather has been complete, and for how long it may be."""

    seconds: float
    limit: float

    @property
    def too_long(self) -> bool:
        """Whether what is known is too old."""
        return self.seconds > self.limit


@dataclass(frozen=True)
class Expected:
    """What a job's statistics must tell of, and how far the gathering is behind."""

    streams: Sequence[str]
    queries: Mapping[str, Query]
    delay: Delay | None = None

    @cached_property
    def subjects(self) -> dict[str, set[str]]:
        """What each table must have a row of."""
        queries = self.queries.items()
        return {
            STREAMS: set(self.streams),
            COLUMNS: {
                f"{query.streams[alias].name}.{side.sql(lambda column: column.name)}"
                for query in self.queries.values()
                for predicate in query.predicates
                for side in predicate.sides or ()
                for alias in side.aliases
            },
            EDGES: {
                _edge(name, *sorted(edge)) for name, query in queries for edge in query.graph.edges
            },
            SELECTS: {
                f"{predicate} in {name}" for name, query in queries for predicate in _selects(query)
            },
            GROUPS: {name for name, query in queries if query.grouping},
        }

    def stream(self, query: str, alias: str) -> str | None:
        """The stream behind a query's input."""
        known = self.queries.get(query)
        return known.streams[alias].name if known and alias in known.streams else None

    def filtered(self, query: str, alias: str) -> bool:
        """Whether the query has predicates on that input alone."""
        known = self.queries.get(query)
        return known is not None and bool(known.selects(alias))


def _selects(query: Query) -> Iterable[Predicate]:
    return (predicate for predicate in query.predicates if len(predicate.aliases) == 1)


def _edge(query: str, one: str, other: str) -> str:
    return f"{one}-{other} in {query}"


def figures(
    window: Window, rows: Rows, past: Sequence[Row], expected: Expected, *, newest: bool
) -> dict[str, list[dict[str, Any]]]:
    """A window's rows with what they must agree with; `past` are streams in the last windows.

    A table that cannot be read is not in `rows`: nothing has to agree with it.
    """
    workers = len(rows[OPERATORS]) if OPERATORS in rows else None
    batches = rows[BATCHES][0]["batches"] if rows.get(BATCHES) else None
    rows = {table: rows.get(table, ()) for table in GATHERED}
    sizes = {row["stream"]: row["rows"] for row in rows[STREAMS]}
    delay = expected.delay if newest else None
    return {
        STREAMS: [_stream(row, window, past) for row in rows[STREAMS]],
        COLUMNS: [_column(row, sizes) for row in rows[COLUMNS]],
        EDGES: [_joined(row, sizes, expected) for row in rows[EDGES]],
        KEYS: [_key(row) for row in rows[KEYS]],
        SELECTS: [_selected(row, sizes, expected) for row in rows[SELECTS]],
        GROUPS: [{**row, "subject": row["query"]} for row in rows[GROUPS]],
        COMBINED: [
            {**row, "subject": f"{row['alias']} in {row['query']}"} for row in rows[COMBINED]
        ],
        OPERATORS: [
            {**row, "subject": row["operator"], "of": batches,
             "batches_beyond": _less(row["batches"], batches)} for row in rows[OPERATORS]
        ],
        BATCHES: [
            {**row, "subject": "the job", "delay": delay.seconds if delay else None,
             "limit": delay.limit if delay else None,
             "late_by": delay.seconds - delay.limit if delay else None,
             "operators": workers if (row["batches"] or 0) > 0 else None}
            for row in rows[BATCHES]
        ],
    }  # fmt: skip


def presences(
    window: Window, rows: Mapping[str, Sequence[Row]], expected: Expected
) -> dict[str, list[dict[str, Any]]]:
    """What each table must have a row of, and whether it has; what else is there does no harm.

    Groups are counted as batches put them out: without a batch there is nothing to count.
    """
    idle = any(row["batches"] == 0 for row in rows.get(BATCHES, ()))
    there = {
        table: {row["subject"]: row["subject"] for row in some} for table, some in rows.items()
    }
    return {
        table: [
            {"window_start": window.start, "subject": one, "there": there[table].get(one)}
            for one in sorted(subjects)
        ]
        for table, subjects in expected.subjects.items()
        if not (idle and table == GROUPS)
    }


def frame(table: str, rows: Sequence[Row]) -> pd.DataFrame:
    """Figures as floats, so that a column that is unknown throughout is still one of figures."""
    content = pd.DataFrame(rows)
    texts = {field.name for field in GATHERED[table] if pa.types.is_string(field.type)}
    kept = {"window_start", "subject", "there", "stream", "heavy"} | texts
    return content.astype({name: "float64" for name in content.columns if name not in kept})


# --- streams -------------------------------------------------------------------------------------


def _stream(row: Row, window: Window, past: Sequence[Row]) -> dict[str, Any]:
    return {
        **row,
        "subject": row["stream"],
        "seconds": window.seconds,
        "found": _over(row["rows"], window.seconds),
        "rate_off": _off(row["rate"], _over(row["rows"], window.seconds)),
        "told": _sum(row["accepted"], row["late"], row["rejected"]),
        "unaccounted": _less(row["taken"], _sum(row["accepted"], row["late"], row["rejected"])),
        "rows_lacking": _less(row["least"], row["rows"]),
        "rows_beyond": _less(row["rows"], row["most"]),
        **_width(row, [before for before in past if before["stream"] == row["stream"]]),
    }


def _width(row: Row, before: Sequence[Row]) -> dict[str, float | None]:
    known = [r["width"] for r in before if r["width"]]
    usual = median(known) if len(known) >= ENOUGH else None
    now = row["width"] if (row["width"] or 0) > 0 else None
    return {"width_before": usual, "width_by_before": _over(now, usual)}


# --- columns, selects, edges ---------------------------------------------------------------------


def _column(row: Row, sizes: Mapping[str, Any]) -> dict[str, Any]:
    size = sizes.get(row["stream"])
    heavy = [one["rows"] for one in row["heavy"] or ()]
    return {
        **row,
        "subject": f"{row['stream']}.{row['value']}",
        "stream_rows": size,
        "rows_off": _less(row["rows"], size),
        "beyond": _less(_sum(row["nulls"], row["distinct"]), row["rows"]),
        "heavy_rows": sum(heavy),
        "heavy_beyond": _less(_sum(row["nulls"], *heavy), row["rows"]),
    }


def _key(row: Row) -> dict[str, Any]:
    heavy = [one["rows"] for one in row["heavy"] or ()]
    counted = _sum(row["nulls"], row["rest"], *heavy)
    return {
        **row,
        "subject": f"{row['alias']} by {row['key']} in {row['query']}",
        "heavy_rows": sum(heavy),
        "rows_off": _less(row["rows"], counted),
    }


def _selected(row: Row, sizes: Mapping[str, Any], expected: Expected) -> dict[str, Any]:
    stream = expected.stream(row["query"], row["alias"])
    size = sizes.get(stream) if stream else None
    share = _over(row["passed"], row["rows"])
    return {
        **row,
        "subject": f"{row['predicate']} in {row['query']}",
        "stream": stream,
        "stream_rows": size,
        "rows_off": _less(row["rows"], size),
        "beyond": _less(row["passed"], row["rows"]),
        "found": share,
        "selectivity_off": _off(row["selectivity"], share),
    }


def _joined(row: Row, sizes: Mapping[str, Any], expected: Expected) -> dict[str, Any]:
    query = row["query"]
    streams = [expected.stream(query, row[end]) for end in ("one", "other")]
    one, other = (sizes.get(stream) if stream else None for stream in streams)
    every = None if one is None or other is None else one * other
    filtered = any(expected.filtered(query, row[end]) for end in ("one", "other"))
    pairs, selectivity = row["pairs"], row["selectivity"]
    found = selectivity * pairs if _is(selectivity) and _is(pairs) else None
    return {
        **row,
        "subject": _edge(query, row["one"], row["other"]),
        "one_rows": one,
        "other_rows": other,
        "pairs_off": None if filtered else _off(pairs, every),
        "pairs_beyond": _less(pairs, every) if filtered else None,
        "found": found,
        "matches_off": _off(row["matches"], found),
        "selectivity_if_pairs": selectivity if pairs else 0,
        "error_if_exact": row["error"] if row["method"] == "exact" else None,
    }


# --- figures that may be unknown -----------------------------------------------------------------


def _is(value: Any) -> bool:
    return value is not None


def _sum(*values: Any) -> Any:
    return None if None in values else sum(values)


def _less(value: Any, other: Any) -> Any:
    return value - other if _is(value) and _is(other) else None


def _over(value: Any, other: Any) -> Any:
    return value / other if _is(value) and other else None


def _off(value: Any, other: Any) -> Any:
    """By how much of the other a figure differs from it."""
    if not _is(value) or not _is(other):
        return None
    return abs(value - other) / max(abs(other), 1e-300) if value != other else 0.0
