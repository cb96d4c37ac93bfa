"""By what to multiply selectivities so that estimates meet what the parts of a query put out.

The estimator takes selectivities to be independent of each other.  Where a part of the query (an
input as selected, a join of some inputs) has run, what it put out tells whether they are.  Parts
are looked at from the smallest; the predicates that no smaller one has accounted for share, in
equal factors, what the estimate of this one is still wrong by.  A selectivity never exceeds 1.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from optimizer.estimate import Estimator
from optimizer.identity import identity
from optimizer.plan import Leaf, Node, input_of, join_of
from optimizer.query import Query
from optimizer.workload import Workload
from stats.store import BATCHES, OPERATORS, STREAMS, StatsStore, Window

LEAST = 100.0
"""Tuples, put out or expected: chance alone moves what fewer say by more than a tenth."""


@dataclass(frozen=True)
class Seen:
    """A window, how much it counts, and the workload as it was then."""

    window: Window
    weight: float
    workload: Workload


def corrections(
    query: Query, load: Workload, store: StatsStore, seen: Sequence[Seen]
) -> dict[str, float]:
    """The factors of the workload's selectivities, by figure, where something ran that tells."""
    ran = _Ran(query, load, store, seen)
    factors: dict[str, float] = {}
    for node in _parts(query):
        terms = _terms(query, load, node)
        fresh = {figure: s for figure, s in terms.items() if figure not in factors}
        known = prod(factors[figure] for figure in terms.keys() - fresh.keys())
        if fresh and known and (ratio := ran.ratio(node)) is not None:
            factors |= _shared(ratio / known, fresh)
    return factors


def join_figure(edge: Iterable[str]) -> str:
    """What the selectivity between two inputs is called."""
    return f"join {'-'.join(sorted(edge))}"


def _shared(factor: float, selectivities: Mapping[str, float]) -> dict[str, float]:
    """A factor for each, together that one; what a selectivity cannot take the others do."""
    shares: dict[str, float] = {}
    for figure in sorted(selectivities, key=selectivities.__getitem__, reverse=True):
        share = factor ** (1 / (len(selectivities) - len(shares)))
        shares[figure] = min(share, 1 / selectivities[figure])
        factor /= shares[figure] or 1.0
    return shares


def _terms(query: Query, load: Workload, node: Node) -> dict[str, float]:
    """The selectivities on which it depends how much a part puts out."""
    edges = [edge for edge in query.graph.edges if edge <= node.aliases]
    selects = [p for alias in sorted(node.aliases) for p in query.selects(alias)]
    return {join_figure(edge): load.joins[edge] for edge in edges} | {
        f"select {predicate}": load.select(query, predicate) for predicate in selects
    }


def _parts(query: Query) -> Iterator[Node]:
    """Every connected set of inputs, the smallest first, as one join: identity knows no others."""
    inputs = {alias: input_of(query, Leaf(alias)) for alias in query.aliases}
    yield from inputs.values()
    for count in range(2, len(inputs)):
        for aliases in combinations(inputs, count):
            if _connected(query, aliases):
                yield join_of(query, tuple(inputs[alias] for alias in aliases))


def _connected(query: Query, aliases: Sequence[str]) -> bool:
    inside, reached, fresh = set(aliases), set[str](), {aliases[0]}
    while fresh:
        reached |= fresh
        fresh = {n for alias in fresh for n in query.graph.neighbours(alias)} & inside - reached
    return reached == inside


class _Ran:
    """What the parts put out in each window, beside what the estimator expects of them."""

    def __init__(
        self, query: Query, load: Workload, store: StatsStore, seen: Sequence[Seen]
    ) -> None:
        self._query = query
        self._seen = seen
        estimator = Estimator(query, load)
        self._estimators = {one.window: estimator.under(one.workload) for one in seen}
        self._began = min((window.start for window in store.windows()), default=0)
        windows = [one.window for one in seen]
        self._streams = {(r["window_start"], r["stream"]): r for r in store.rows(STREAMS, windows)}
        batches = {row["window_start"]: row["batches"] for row in store.rows(BATCHES, windows)}
        self._rows = {
            (row["window_start"], row["operator"]): row["rows"]
            for row in store.rows(OPERATORS, windows)
            if row["batches"] == batches.get(row["window_start"])
        }
        """Of operators that ran in all of a window's batches."""

    def ratio(self, node: Node) -> float | None:
        """What it put out by what was expected; nothing where there is too little of both."""
        key = identity(node).key
        found = expected = most = 0.0
        for one in self._seen:
            rows = self._rows.get((one.window.start, key))
            if rows is not None and self._filled(node, one.window):
                guess = self._estimators[one.window].node(node).rate * self._seconds(node, one)
                found += one.weight * rows
                expected += one.weight * guess
                most += max(rows, guess)
        return found / expected if expected and most >= LEAST else None

    def _filled(self, node: Node, window: Window) -> bool:
        """Whether earlier windows filled its states: until then less comes out than will."""
        bounds = self._query.bounds.restrict(sorted(node.aliases))
        return window.start >= self._began + bounds.longest

    def _seconds(self, node: Node, one: Seen) -> float:
        """Of input in the window's batches: a job that catches up takes more than a window has."""
        names = {self._query.streams[alias].name for alias in node.aliases}
        rows = [self._streams.get((one.window.start, name)) for name in names]
        there = [row for row in rows if row and row["rows"] and row["accepted"] is not None]
        taken, came = sum(row["accepted"] for row in there), sum(row["rows"] for row in there)
        return one.window.seconds * taken / came if came else 0.0
