"""What must come out of a case, worked out row by row in plain Python.

Nothing here knows the engine, the optimizer, SQL or DuckDB: rows are lists, queries are terms.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import localcontext
from functools import cmp_to_key
from typing import Any

from tests.bench.differential.case import Broken, Case, Query, Row, Stream, Window, closed
from tests.bench.differential.functions import EXACT, FUNCTIONS, compare, fit, kind_of
from tests.bench.differential.terms import (
    Aggregate,
    Call,
    Column,
    Edge,
    Literal,
    Term,
    Value,
    aliases,
    parts,
)

Known = Mapping[Term, Value]
"""What columns, keys, aggregates and edges of windows are in a row."""

# --- expressions ---------------------------------------------------------------------------------


def evaluate(term: Term, known: Known) -> Value:
    """What a term is where these are known."""
    if term in known:
        return known[term]
    match term:
        case Literal(value):
            return value
        case Call(function, arguments, kind):
            values = [evaluate(argument, known) for argument in arguments]
            types = [argument.type for argument in arguments]
            return FUNCTIONS[function].value(values, types, kind)
    raise LookupError(f"nobody knows {term}")


# --- what is taken in ----------------------------------------------------------------------------


OLDEST, NEWEST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and the last microsecond of the years 1 to 9999: other times are no times."""


@dataclass
class Account:
    """Where every row of a stream belongs."""

    accepted: list[Row] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)
    rejected: list[Row | Broken] = field(default_factory=list)
    newest: int | None = None

    def take(self, stream: Stream, row: Row | Broken, clock: int, watermark: int | None) -> None:
        """Sort a row of a batch that began at that time with that watermark."""
        time = None if isinstance(row, Broken) else row[stream.at]
        if isinstance(row, Broken) or not isinstance(time, int) or time > clock + stream.ahead:
            told = time is None or (isinstance(time, int) and OLDEST <= time <= NEWEST)
            self.rejected.append(row if told else Broken(str(row)))
            return
        if time < OLDEST:
            self.rejected.append(Broken(str(row)))
            return
        self.newest = time if self.newest is None else max(time, self.newest)
        late = watermark is not None and time < watermark
        (self.late if late else self.accepted).append(row)


@dataclass
class Accounts:
    """All streams, and the watermark in the end."""

    streams: dict[str, Account]
    watermark: int | None = None


def accounts(case: Case) -> Accounts:
    """Sort all rows, batch by batch."""
    made = Accounts({stream.name: Account() for stream in case.streams})
    batches = {stream.name: case.batches(stream) for stream in case.streams}
    for number in range(case.count):
        for stream in case.streams:
            for file in batches[stream.name][number : number + 1]:
                for row in (row for one in file for row in one.rows):
                    made.streams[stream.name].take(stream, row, case.clock, made.watermark)
        made.watermark = _watermark(case, made)
    return made


def _watermark(case: Case, made: Accounts) -> int | None:
    """The least that any stream promises; it never goes back."""
    promises = [
        newest - stream.lateness
        for stream in case.streams
        if (newest := made.streams[stream.name].newest) is not None
    ]
    if len(promises) < len(case.streams):
        return made.watermark
    return max(min(promises), *[w for w in [made.watermark] if w is not None], -(2**63))


# --- joins ---------------------------------------------------------------------------------------


def joined(query: Query, made: Accounts) -> list[Known]:
    """All combinations of accepted rows that the conditions and the windows let meet."""
    found: list[dict[Term, Value]] = [{}]
    for position, (alias, stream) in enumerate(query.inputs):
        names = set(query.aliases[: position + 1])
        now = [c for c in query.on if aliases(c) <= names and alias in aliases(c)]
        limits = {p: v for p, v in query.limits.items() if alias in p and set(p) <= names}
        rows = [_row(alias, stream, row) for row in made.streams[stream.name].accepted]
        found = [
            both
            for one in found
            for row in rows
            if _within(query, both := one | row, limits)
            and all(evaluate(condition, both) is True for condition in now)
        ]
    return list(found)


def _row(alias: str, stream: Stream, row: Row) -> dict[Term, Value]:
    return {
        Column(alias, name, kind): value
        for (name, kind), value in zip(stream.columns, row, strict=True)
    }


def _within(query: Query, known: Known, limits: Mapping[tuple[str, str], int]) -> bool:
    times = {alias: known.get(query.time(alias)) for alias in query.aliases}
    return all(times[newer] - times[older] <= limit for (newer, older), limit in limits.items())  # type: ignore[operator]


# --- groups --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Near:
    """A sum of doubles, and how far off it may be: the order of adding up is nobody's business."""

    value: float
    slack: float


def grouped(query: Query, grouping: Window, rows: Sequence[Known], until: int) -> Iterator[Known]:
    """Each group of each window that ends up to there."""
    groups: dict[tuple[Any, ...], list[Known]] = {}
    for row in rows:
        values = tuple(evaluate(key, row) for key in query.keys)
        for start in _starts(grouping, row[query.time(grouping.alias)]):
            if start + grouping.size <= until:
                groups.setdefault((start, *map(same, values)), []).append(row)
    for (start, *_), members in groups.items():
        edges: dict[Term, Value] = {Edge("start"): start, Edge("end"): start + grouping.size}
        known = edges | {key: evaluate(key, members[0]) for key in query.keys}
        for _, item in query.output:
            for part in parts(item):
                if isinstance(part, Aggregate):
                    known[part] = _aggregated(part, [member | edges for member in members])  # type: ignore[operator]
        yield known


def _starts(grouping: Window, time: Any) -> range:
    """Where the windows begin that hold this time: at multiples of the slide."""
    last = time // grouping.slide * grouping.slide
    first = (time - grouping.size) // grouping.slide * grouping.slide + grouping.slide
    return range(first, last + 1, grouping.slide)


def same(value: Value) -> object:
    """What equal values have in common; NaN is equal to itself."""
    if isinstance(value, float):
        return ("NaN",) if math.isnan(value) else value + 0.0
    return value if value is not None else ("NULL",)


def _aggregated(one: Aggregate, rows: Sequence[Known]) -> Any:
    if one.only is not None:
        rows = [row for row in rows if evaluate(one.only, row) is True]
    if one.argument is None:
        return len(rows)
    values = [v for row in rows if (v := evaluate(one.argument, row)) is not None]
    match one.function:
        case "count":
            return len(values)
        case "min" | "max":
            ordered = sorted(values, key=cmp_to_key(compare))
            return ordered[0 if one.function == "min" else -1] if values else None
    if not values:
        return None
    if one.function == "sum" and kind_of(one.argument.type) != "DOUBLE":
        return fit(sum(values[1:], values[0]), one.type)
    return _inexact([float(value) for value in values], average=one.function == "avg")


def _inexact(values: Sequence[float], *, average: bool) -> Near:
    by = len(values) if average else 1
    absolute = sum(map(abs, values))
    if all(map(math.isfinite, values)) and math.isfinite(2 * absolute):
        return Near(math.fsum(values) / by, 1e-12 * len(values) * absolute / by)
    if all(map(math.isfinite, values)):
        return Near(math.nan, math.inf)
    return Near(sum(values), 0.0)


# --- results -------------------------------------------------------------------------------------


def results(case: Case, made: Accounts) -> list[tuple[Any, ...]]:
    """All that the query puts out until the watermark in the end."""
    query = case.query
    with localcontext(EXACT):
        rows = joined(query, made)
        if query.grouping is not None:
            until = -(2**63) if made.watermark is None else made.watermark - wait(query)
            rows = list(grouped(query, query.grouping, rows, until))
        return [tuple(evaluate(term, row) for _, term in query.output) for row in rows]


def wait(query: Query) -> int:
    """How much newer than the tuple that decides the window any of its partners may be."""
    assert query.grouping is not None
    limits, alias = closed(query.aliases, query.limits), query.grouping.alias
    return max([0, *(int(limits[other, alias]) for other in query.aliases if other != alias)])


def count(rows: Sequence[Row]) -> Counter[tuple[object, ...]]:
    """Rows as a multiset."""
    return Counter(tuple(map(same, row)) for row in rows)
