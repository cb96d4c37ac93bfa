"""A query's workload from validated windows: smoothed, with its spread, and corrected by its joins.

Newer windows count for more: the weight of one halves with every `HALF_LIFE` windows of age.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any

from optimizer.keys import Shares, keys_of, mixed
from optimizer.query import Query
from optimizer.workload import Method, StreamLoad, UnitCosts, Workload
from stats.corrections import Seen, corrections, join_figure
from stats.store import COMBINED, EDGES, GROUPS, KEYS, SELECTS, STREAMS, StatsStore, Window

HALF_LIFE = 2.0
"""In windows: after so many, what one said counts for half as much."""

MEMORY = 60
"""For so many windows a join that no longer runs still corrects estimates.

Otherwise a plan would look good again as soon as it has been left.
"""


@dataclass(frozen=True)
class Observed:
    """What validated windows say of a query, and how far to believe it.

    Figures are called `rate a`, `width a`, `select a.x > 5`, `join a-b`, `combine a` and `groups`.
    """

    workload: Workload
    windows: tuple[Window, ...]
    """What it rests on, the oldest first."""
    spread: Mapping[str, float] = field(default_factory=dict)
    """Of each figure observed, its deviation over the windows by its mean."""
    assumed: tuple[str, ...] = ()
    """The figures that no window has."""
    corrections: Mapping[str, float] = field(default_factory=dict)
    """By what selectivities were multiplied, so that estimates meet what the joins put out."""


def observed(  # noqa: PLR0913  # of what, from where, and how it is to be priced
    query: Query,
    store: StatsStore,
    windows: Sequence[Window],
    *,
    name: str,
    batch: float,
    costs: UnitCosts,
    memory: int = MEMORY,
) -> Observed:
    """The workload of a job's query, called `name` there, by windows that passed validation.

    Of the good windows before them, so many count where it is to be told what joins put out.
    """
    modest = Workload.assume(query, batch=batch, method=Method.BATCH, unit_costs=costs)
    modest = replace(modest, assumed=not windows)
    past = _past(store, windows, memory)
    said, weights = _said(query, name, store, past), _weights(past)
    smooth = {
        figure: _smoothed(recent, weights)
        for figure, found in said.items()
        if (recent := {window: found[window] for window in windows if window in found})
    }
    means = {figure: mean for figure, (mean, _) in smooth.items()}
    spread = _Spread.of(name, query, store, past)
    modest = spread.added(modest, {window: weights[window] for window in windows})
    seen = [
        Seen(
            window,
            weights[window],
            _workload(spread.added(modest, {window: 1.0}), means | _at(window, said)),
        )
        for window in past
    ]
    factors = corrections(query, _workload(modest, means), store, seen)
    return Observed(
        _workload(modest, means, factors),
        tuple(sorted(windows, key=lambda window: window.start)),
        {figure: spread for figure, (_, spread) in smooth.items()},
        tuple(figure for figure in _wanted(query) if figure not in smooth),
        factors,
    )


def _past(store: StatsStore, windows: Sequence[Window], memory: int) -> list[Window]:
    """The windows, and the good ones before them that are remembered, the oldest first."""
    newest = max((window.end for window in windows), default=0)
    good = store.good() if memory else []
    before = [window for window in good if window.end <= newest][-memory:]
    return sorted({*before, *windows}, key=lambda window: window.start)


Figures = Mapping[str, Mapping[Window, float]]
"""What windows say, by the name of the figure."""


def _wanted(query: Query) -> Iterator[str]:
    for alias in query.aliases:
        yield f"rate {alias}"
        yield f"width {alias}"
        yield from (f"select {predicate}" for predicate in query.selects(alias))
        if query.grouping is not None:
            yield f"combine {alias}"
    yield from map(join_figure, query.graph.edges)
    if query.grouping is not None:
        yield "groups"


def _said(query: Query, name: str, store: StatsStore, windows: Sequence[Window]) -> Figures:
    """Of the figures that the query has, those that windows have.

    Rows of the same figure are of predicates between the same inputs: their product counts.
    """
    wanted, by_start = set(_wanted(query)), {window.start: window for window in windows}
    said: dict[str, dict[Window, float]] = {}
    for start, figure, value in _rows(query, name, store, windows):
        if figure in wanted and value is not None and (value or not _positive(figure)):
            known = said.setdefault(figure, {})
            known[by_start[start]] = known.get(by_start[start], 1.0) * value
    return said


def _positive(figure: str) -> bool:
    """Whether zero only says that there was nothing to look at."""
    return figure.startswith(("width ", "groups"))


def _rows(
    query: Query, name: str, store: StatsStore, windows: Sequence[Window]
) -> Iterator[tuple[int, str, float | None]]:
    for row in store.rows(STREAMS, windows):
        for alias, stream in query.inputs:
            if stream.name == row["stream"]:
                yield row["window_start"], f"rate {alias}", row["rate"]
                yield row["window_start"], f"width {alias}", row["width"]
    for table in (EDGES, SELECTS, GROUPS, COMBINED):
        for row in store.rows(table, windows):
            if row["query"] == name:
                yield row["window_start"], *_figure(table, row)


def _figure(table: str, row: Mapping[str, Any]) -> tuple[str, float | None]:
    match table:
        case "edges":
            return join_figure((row["one"], row["other"])), row["selectivity"]
        case "selects":
            return f"select {row['predicate']}", row["selectivity"]
        case "combined":
            return f"combine {row['alias']}", row["rate"]
    return "groups", row["groups"]


# --- smoothing -----------------------------------------------------------------------------------


def _weights(windows: Sequence[Window]) -> dict[Window, float]:
    """How much each counts, the newest once; a gap makes those before it older."""
    return {
        window: 0.5 ** ((windows[-1].end - window.end) / (window.end - window.start) / HALF_LIFE)
        for window in windows
    }


def _smoothed(
    found: Mapping[Window, float], weights: Mapping[Window, float]
) -> tuple[float, float]:
    """The weighted mean, and the weighted deviation by it."""
    total = sum(weights[window] for window in found)
    mean = sum(weights[window] * value for window, value in found.items()) / total
    variance = sum(weights[window] * (value - mean) ** 2 for window, value in found.items()) / total
    return mean, sqrt(variance) / mean if mean else 0.0


def _at(window: Window, said: Figures) -> dict[str, float]:
    return {figure: found[window] for figure, found in said.items() if window in found}


# --- keys ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Spread:
    """How the keys of a query are spread, by their names, in each window that says so."""

    found: Mapping[str, Mapping[Window, Shares]]

    @classmethod
    def of(cls, name: str, query: Query, store: StatsStore, windows: Sequence[Window]) -> "_Spread":
        """Those of which every input had tuples in a window."""
        by_start = {window.start: window for window in windows}
        rows: dict[tuple[str, Window], list[Mapping[str, Any]]] = {}
        keys = {key.name: key for key in keys_of(query)}
        for row in store.rows(KEYS, windows) if keys else ():
            if row["query"] == name and row["rows"] and row["key"] in keys:
                rows.setdefault((row["key"], by_start[row["window_start"]]), []).append(row)
        found: dict[str, dict[Window, Shares]] = {}
        for (key, window), some in rows.items():
            if {row["alias"] for row in some} == keys[key].sides.keys():
                found.setdefault(key, {})[window] = _shares(some)
        return cls(found)

    def added(self, load: Workload, weights: Mapping[Window, float]) -> Workload:
        """The workload with them: as in each window, as far as that counts; else as it was."""
        keys = {
            key: mixed([(some[window], weights[window]) for window in weights if window in some])
            for key, some in self.found.items()
            if some.keys() & weights.keys()
        }
        return replace(load, keys={**load.keys, **keys})


def _shares(rows: Sequence[Mapping[str, Any]]) -> Shares:
    """Of a window: the heavy values one by one, and the others as if they came up alike."""
    heavy = zip(*([one["rows"] for one in row["heavy"]] for row in rows), strict=True)
    whole = {row["alias"]: row["rows"] for row in rows}
    return Shares.of(whole, heavy, [row["rest"] for row in rows], rows[0]["others"])


def _workload(
    modest: Workload, known: Mapping[str, float], factors: Mapping[str, float] | None = None
) -> Workload:
    """With the figures that are known, corrected."""
    factor = factors or {}

    def share(figure: str, otherwise: float) -> float:
        return min(1.0, known.get(figure, otherwise) * factor.get(figure, 1.0))

    def load(alias: str, otherwise: StreamLoad) -> StreamLoad:
        rate = known.get(f"rate {alias}", otherwise.rate)
        return StreamLoad(rate, known.get(f"width {alias}", otherwise.width))

    return replace(
        modest,
        streams={alias: load(alias, otherwise) for alias, otherwise in modest.streams.items()},
        joins={edge: share(join_figure(edge), s) for edge, s in modest.joins.items()},
        selects={text: share(f"select {text}", s) for text, s in modest.selects.items()},
        combine={a: known[f"combine {a}"] for a in modest.streams if f"combine {a}" in known},
        groups=known.get("groups", modest.groups),
    )
