"""Statistics of a job's windows, gathered from what it read and from what its batches noted.

Each stream is read once.  What comes out depends on the windows alone, not on what is gathered
together: sums are of whole numbers, or correctly rounded, and samples start from their window.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from optimizer.keys import Key, keys_of
from optimizer.plan import Combine, Leaf, input_of
from optimizer.query import Expression, Query, Stream
from optimizer.window import MICROSECONDS
from stats import edges as pairs
from stats import keys as shared
from stats.counts import (
    BATCH,
    Counts,
    Selects,
    Values,
    conjunction,
    during,
    quote,
    selects,
    sql,
    window_start,
)
from stats.edges import Edge
from stats.frequencies import frequencies
from stats.store import (
    BATCHES,
    COLUMNS,
    COMBINED,
    EDGES,
    GROUPS,
    KEYS,
    OPERATORS,
    SELECTS,
    STREAMS,
    Window,
)
from stats.windows import Batch, Limits, home

Placed = Iterator[tuple[Window, dict[str, Any]]]
"""Rows, each with its window."""

Tables = Mapping[str, Mapping[Window, list[dict[str, Any]]]]
"""For each table, the rows of each window."""


@dataclass(frozen=True)
class Input:
    """A stream: the tuples taken in, each with its batch, and for each batch how many were read."""

    stream: Stream
    rows: DataFrame
    taken: Mapping[int, int]


@dataclass(frozen=True)
class Subject:
    """What is looked at: windows that follow each other, and all that belongs to them."""

    windows: Sequence[Window]
    first: Window
    """Of all windows: it has the batches before the first watermark."""
    inputs: Mapping[str, Input]
    queries: Mapping[str, Query]
    batches: Sequence[Batch]

    @cached_property
    def homes(self) -> dict[Window, list[Batch]]:
        """The batches that belong to each window."""
        size = self.first.end - self.first.start
        found: dict[Window, list[Batch]] = {window: [] for window in self.windows}
        for batch in self.batches:
            found.get(home(batch, self.first, size), []).append(batch)
        return found

    @property
    def keys(self) -> Iterator[tuple[str, Key, Query]]:
        """What three inputs of a query or more are joined on, with the query's name."""
        for name, query in self.queries.items():
            for key in keys_of(query):
                yield name, key, query

    @property
    def edges(self) -> Iterator[tuple[Edge, Query]]:
        """Each pair of inputs with predicates between them."""
        for name, query in self.queries.items():
            for edge in Edge.of(name, query):
                yield edge, query

    def aliases(self, stream: str) -> Iterator[tuple[str, Query, str]]:
        """Where a stream is an input: the query's name, the query, and its name there."""
        for name, query in self.queries.items():
            for alias, one in query.inputs:
                if one.name == stream:
                    yield name, query, alias

    def sides(self, stream: str) -> dict[str, Expression]:
        """What equalities compare of a stream, by how it is written."""
        found = {}
        for _, query, alias in self.aliases(stream):
            for predicate in query.predicates:
                if predicate.sides and alias in predicate.aliases:
                    side = predicate.side(alias)
                    found[side.sql(lambda column: column.name)] = side
        return found


def collect(spark: SparkSession, subject: Subject) -> Tables:
    """All statistics of some windows."""
    counts = {name: _counts(subject, name) for name in subject.inputs}
    try:
        totals = {name: _totals(counts[name], subject.windows) for name in counts}
        made = {
            STREAMS: _streams(subject, totals),
            COLUMNS: _columns(subject, counts),
            EDGES: _edges(spark, subject, counts, totals),
            KEYS: _keys(spark, subject, counts, totals),
            SELECTS: _selects(subject, totals),
            COMBINED: _combined(subject),
            GROUPS: _groups(subject),
            OPERATORS: _operators(subject),
            BATCHES: _batches(subject),
        }
        return {table: _sorted(subject.windows, rows) for table, rows in made.items()}
    finally:
        for one in counts.values():
            one.forget()


def _sorted(windows: Sequence[Window], rows: Placed) -> dict[Window, list[dict[str, Any]]]:
    """Rows by window, those of a window as they come; windows without any as well."""
    found: dict[Window, list[dict[str, Any]]] = {window: [] for window in windows}
    for window, row in rows:
        found[window].append(row)
    return found


# --- tuples --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Totals:
    """What a stream has in a window: tuples, their bytes, and how many pass which selects."""

    rows: int = 0
    width: int = 0
    inside: int = 0
    """Those in whole seconds, of which there may be none."""
    squares: int = 0
    """The numbers of tuples in each of these, squared and added up."""
    passed: Mapping[Selects, int] = field(default_factory=dict)

    def passing(self, conditions: Selects) -> int:
        """How many satisfy all of these."""
        return self.passed.get(conditions, 0) if conditions else self.rows


def _counts(subject: Subject, name: str) -> Counts:
    one = subject.inputs[name]
    sets: list[Values] = [(sql(side),) for side in subject.sides(name).values()]
    filters: list[Selects] = []
    for query_name, query, alias in subject.aliases(name):
        filters += [(sql(predicate.expression),) for predicate in query.selects(alias)]
        filters.append(selects(query, alias))
        sets += [
            edge.values(alias)
            for edge in Edge.of(query_name, query)
            if alias in (edge.one, edge.other)
        ]
        sets += [shared.values(key, alias) for key in keys_of(query) if alias in key.sides]
    return Counts.of(one.rows, one.stream, subject.windows, sets, filters)


def _totals(counts: Counts, windows: Sequence[Window]) -> dict[int, Totals]:
    whole = (windows[0].end - windows[0].start) // MICROSECONDS
    inside = f"CASE WHEN second < {whole} THEN n ELSE 0 END"
    figures = ("n", "width", inside, f"{inside} * {inside}")
    sums = [f"sum({figure}) AS t{i}" for i, figure in enumerate(figures)]
    sums += [f"sum({counts.passed(one)}) AS p{i}" for i, one in enumerate(counts.selects)]
    found = counts.seconds.groupBy("w").agg(*map(expr, sums))
    return {
        row["w"]: Totals(
            row["t0"],
            row["t1"],
            row["t2"],
            row["t3"],
            {one: row[f"p{i}"] for i, one in enumerate(counts.selects)},
        )
        for row in found.collect()
    }


def _streams(subject: Subject, totals: Mapping[str, Mapping[int, Totals]]) -> Placed:
    limits = {name: Limits.of(subject.batches, name) for name in subject.inputs}
    for window in subject.windows:
        for name, one in subject.inputs.items():
            found = totals[name].get(window.start, Totals())
            counted = [
                batch.streams[name] for batch in subject.homes[window] if name in batch.streams
            ]
            yield (
                window,
                {
                    "stream": name,
                    "rows": found.rows,
                    "rate": found.rows / window.seconds,
                    "burstiness": _burstiness(found, int(window.seconds)),
                    "width": found.width / found.rows if found.rows else None,
                    "taken": sum(one.taken.get(batch.number, 0) for batch in subject.homes[window]),
                    "accepted": sum(count.accepted for count in counted),
                    "late": sum(count.late for count in counted),
                    "rejected": sum(count.rejected for count in counted),
                    "least": limits[name].least(window),
                    "most": limits[name].most(window),
                },
            )


def _burstiness(found: Totals, seconds: int) -> float | None:
    """The variance of the tuples in a second by their mean; not without two seconds and a tuple."""
    if seconds < 2 or not found.inside:
        return None
    spread = found.squares * seconds - found.inside**2
    return spread / ((seconds - 1) * found.inside)


def _columns(subject: Subject, counts: Mapping[str, Counts]) -> Placed:
    for name in subject.inputs:
        written = {(sql(side),): text for text, side in subject.sides(name).items()}
        for values, text in sorted(written.items(), key=lambda item: item[1]):
            found = frequencies(counts[name].by(values))
            for window in subject.windows:
                yield window, {"stream": name, "value": text, **found.of(window.start)}


def _selects(subject: Subject, totals: Mapping[str, Mapping[int, Totals]]) -> Placed:
    for window in subject.windows:
        for name, query in subject.queries.items():
            for alias, stream in query.inputs:
                found = totals[stream.name].get(window.start, Totals())
                for predicate in query.selects(alias):
                    passed = found.passing((sql(predicate.expression),))
                    yield (
                        window,
                        {
                            "query": name,
                            "alias": alias,
                            "predicate": str(predicate),
                            "rows": found.rows,
                            "passed": passed,
                            "selectivity": passed / found.rows if found.rows else None,
                        },
                    )


def _edges(
    spark: SparkSession,
    subject: Subject,
    counts: Mapping[str, Counts],
    totals: Mapping[str, Mapping[int, Totals]],
) -> Placed:
    for edge, query in subject.edges:
        matches = pairs.count(spark, edge, query, counts)
        for window in subject.windows:
            one, other = (
                totals[query.streams[alias].name]
                .get(window.start, Totals())
                .passing(selects(query, alias))
                for alias in (edge.one, edge.other)
            )
            found, all_pairs = matches.get(window.start, pairs.Found(0.0)), one * other
            yield (
                window,
                {
                    "query": edge.query,
                    "one": edge.one,
                    "other": edge.other,
                    "pairs": float(all_pairs),
                    "matches": found.matches,
                    "selectivity": found.matches / all_pairs if all_pairs else None,
                    "error": found.error / all_pairs if all_pairs else None,
                    "method": found.method,
                },
            )


def _keys(
    spark: SparkSession,
    subject: Subject,
    counts: Mapping[str, Counts],
    totals: Mapping[str, Mapping[int, Totals]],
) -> Placed:
    for name, key, query in subject.keys:
        found = shared.count(spark, key, query, counts)
        for window in subject.windows:
            for alias, spread in found.get(window.start, {}).items():
                rows = totals[query.streams[alias].name].get(window.start, Totals())
                yield (
                    window,
                    {
                        "query": name,
                        "key": key.name,
                        "alias": alias,
                        "rows": rows.passing(selects(query, alias)),
                        "nulls": spread.nulls,
                        "heavy": [{"value": v, "rows": n} for v, n in spread.heavy],
                        "rest": spread.rest,
                        "others": spread.others,
                    },
                )


def _combined(subject: Subject) -> Placed:
    for name, query in subject.queries.items():
        if query.grouping is None:
            continue
        for alias, stream in query.inputs:
            node = input_of(query, Leaf(alias, combined=True))
            assert isinstance(node, Combine)
            left = _left(subject, stream, selects(query, alias), [c.name for c in node.keys])
            for window in subject.windows:
                rate = left.get(window.start, 0) / window.seconds
                yield window, {"query": name, "alias": alias, "rate": rate}


def _left(
    subject: Subject, stream: Stream, conditions: Selects, keys: Sequence[str]
) -> dict[int, int]:
    """How many different tuples a window's batches have, as far as their joins can tell."""
    rows = during(subject.inputs[stream.name].rows, stream, subject.windows)
    start = f"{window_start(stream, subject.windows)} AS `@window`"
    different = rows.where(conjunction(conditions)).selectExpr(
        start, quote(BATCH), *map(quote, keys)
    )
    left = different.distinct().groupBy("`@window`").count().collect()
    return {row["@window"]: row["count"] for row in left}


# --- batches -------------------------------------------------------------------------------------


def _groups(subject: Subject) -> Placed:
    """A batch puts out whole windows of a query, a row for each group.

    Nothing is known where none was put out: no batch ran, or none that ended one.
    """
    for window, batches in subject.homes.items():
        for name, query in subject.queries.items():
            if query.grouping is None:
                continue
            size, slide = query.grouping.size, query.grouping.slide
            known = [batch for batch in batches if name in batch.emitted]
            ends = [[(end - size) // slide for end in batch.emitted[name]] for batch in known]
            emitted = sum(after - before for before, after in ends)
            groups = sum(batch.results.get(name, 0) for batch in known)
            yield window, {"query": name, "groups": groups / emitted if emitted else None}


def _operators(subject: Subject) -> Placed:
    for window, batches in subject.homes.items():
        for key in sorted({key for batch in batches for key in batch.operators}):
            work = [batch.operators[key] for batch in batches if key in batch.operators]
            last = batches[-1].operators.get(key)
            yield (
                window,
                {
                    "operator": key,
                    "batches": len(work),
                    "rows": sum(one.rows for one in work),
                    "state_rows": last.state_rows if last else 0,
                    "state_bytes": last.state_bytes if last else 0,
                    "ms": fsum(one.ms for one in work),
                },
            )


def _batches(subject: Subject) -> Placed:
    for window, batches in subject.homes.items():
        yield (
            window,
            {
                "batches": len(batches),
                "ms": fsum(batch.ms for batch in batches),
                "results": sum(sum(batch.results.values()) for batch in batches),
                **(_used(batches) if batches else {}),
            },
        )


def _used(batches: Sequence[Batch]) -> dict[str, Any]:
    """What can be said of batches if there are any."""
    last = batches[-1]
    cpu = [batch.cpu for batch in batches if batch.cpu is not None]
    memory = [batch.memory for batch in batches if batch.memory is not None]
    follow = [batch for batch in batches if batch.since is not None]
    passed = sum(batch.finished - (batch.since or 0) for batch in follow)
    worked = fsum(batch.ms for batch in follow) * MICROSECONDS / 1000
    return {
        "cpu": fsum(cpu) if len(cpu) == len(batches) else None,
        "memory": max(memory, default=None),
        "state_rows": sum(work.state_rows for work in last.operators.values()),
        "state_bytes": sum(work.state_bytes for work in last.operators.values()),
        "lag": None if last.after is None else (last.finished - last.after) / MICROSECONDS,
        "backlog": last.backlog,
        "busy": worked / passed if passed > 0 else None,
    }
