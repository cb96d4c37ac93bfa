"""Keys that three inputs and more are joined on, and what their joins come to if keys are skewed.

That a-b and b-c match says how often a-b-c does only if all keys come up alike: a key that is heavy
in all three counts by the product of its shares, which pairs know nothing of.  With Zipf's keys
the product of the pairs' selectivities falls behind by a further factor with each input.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isfinite, prod

from optimizer.query import Expression, Query

Edge = frozenset[str]
"""Two inputs that an equality connects."""

Sides = Mapping[str, tuple[Expression, ...]]
"""What a key compares of each input."""

FEWEST = 3
"""Inputs with a key in common: of two the pair's own selectivity says it all."""

Pair = tuple[int, int]
"""Two inputs that an equality connects, by their positions."""

HEAVIEST = 16
"""How many values of a key are told one by one: with Zipf 1.2 less than a percent is lost by 8."""

LEAST = 1e-9
"""No set is said to match less often, by its pairs, than that: nothing is divided by 0."""


@dataclass(frozen=True)
class Key:
    """What three inputs or more are joined on: the sides of the equalities that connect them."""

    sides: Sides
    """Several of each input, where every pair is compared by as many."""
    edges: frozenset[Edge]

    @property
    def inputs(self) -> list[str]:
        """Those that are joined on it, in order."""
        return sorted(self.sides)

    @property
    def pairs(self) -> list[Pair]:
        """Of these, those that an equality connects."""
        return [
            (i, j)
            for (i, one), (j, other) in combinations(enumerate(self.inputs), 2)
            if frozenset((one, other)) in self.edges
        ]

    @property
    def name(self) -> str:
        """Such as `a.k = b.k = c.k`."""
        return " = ".join(", ".join(map(str, sides)) for _, sides in sorted(self.sides.items()))


@dataclass(frozen=True)
class Shares:
    """Of a key's values the share of each input's tuples that have them, heavy ones by themselves.

    `values` are how many there are that are as frequent as each other, and their share in every
    input: of one such value, not of them together.
    """

    inputs: tuple[str, ...]
    values: tuple[tuple[float, tuple[float, ...]], ...]

    def __post_init__(self) -> None:
        for count, shares in self.values:
            if len(shares) != len(self.inputs):
                raise ValueError(f"{len(shares)} shares of {len(self.inputs)} inputs")
            if not (isfinite(count) and count >= 0 and all(0 <= share <= 1 for share in shares)):
                raise ValueError(
                    f"not a number of values, and shares within 0..1: {count} {shares}"
                )

    @classmethod
    def of(
        cls, rows: Mapping[str, int], heavy: Iterable[Sequence[int]], rest: Sequence[int], n: float
    ) -> "Shares":
        """Of so many rows of each input: those of heavy values, and the rest, of `n` others."""
        whole = list(rows.values())

        def each(some: Sequence[int], values: float = 1.0) -> tuple[float, tuple[float, ...]]:
            return values, tuple(a / of / values for a, of in zip(some, whole, strict=True))

        return cls(tuple(rows), (*map(each, heavy), *([each(rest, n)] if n else [])))

    def matching(self, inputs: Iterable[str]) -> float:
        """The share of those inputs' combinations that have the same value in all of them."""
        at = [self.inputs.index(alias) for alias in inputs]
        return sum(count * prod([shares[i] for i in at]) for count, shares in self.values)


def alike(rest: Sequence[int], pairs: Iterable[tuple[int, int]], matches: int) -> float:
    """How many values make so many matches of those rows of each input, if all come up alike."""
    return sum(rest[i] * rest[j] for i, j in pairs) / matches if matches else 0.0


def mixed(some: Sequence[tuple[Shares, float]]) -> Shares:
    """As at several times, each as far as it counts: what is heavy then need not be now."""
    whole = sum(weight for _, weight in some)
    inputs = some[0][0].inputs
    return Shares(
        inputs,
        tuple(
            (count * weight / whole, tuple(values[one.inputs.index(alias)] for alias in inputs))
            for one, weight in some
            for count, values in one.values
        ),
    )


def keys_of(query: Query) -> tuple[Key, ...]:
    """The keys that connect three inputs of a query or more."""
    return tuple(_keys(query))


def _keys(query: Query) -> Iterator[Key]:
    """Edges that compare the same classes of sides, as far as they hang together."""
    classes = _classes(query)
    alike: dict[tuple[str, ...], dict[Edge, Sides]] = {}
    for edge, predicates in query.graph.edges.items():
        compared = sorted({classes[str(p.sides[0])]: p for p in predicates if p.sides}.items())
        sides = {alias: tuple(p.side(alias) for _, p in compared) for alias in edge}
        alike.setdefault(tuple(name for name, _ in compared), {})[edge] = sides
    for compared_by, edges in alike.items():
        for part in _components(edges) if compared_by else ():
            inside = frozenset(edge for edge in edges if edge <= part)
            key = Key({alias: s for e in inside for alias, s in edges[e].items()}, inside)
            if len(part) >= FEWEST and all(edges[e][a] == key.sides[a] for e in inside for a in e):
                yield key


def _classes(query: Query) -> dict[str, str]:
    """For each side of an equality the name of those that are equal to it, or to such a one."""
    pairs = [frozenset(map(str, p.sides)) for p in query.predicates if p.sides]
    return {side: min(part) for part in _components(pairs) for side in part}


def _components(edges: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """What edges connect."""
    parts: list[frozenset[str]] = []
    for edge in edges:
        touched = [part for part in parts if part & edge]
        parts = [part for part in parts if not part & edge]
        parts.append(edge.union(*touched))
    return parts


class Lift:
    """How many times more often than its pairs say the inputs of a set match, by one key."""

    def __init__(self, key: Key, shares: Shares) -> None:
        self._key, self._shares = key, shares
        self._pairs = {edge: shares.matching(edge) for edge in key.edges}
        self._known: dict[frozenset[str], float] = {}

    def of(self, inputs: frozenset[str]) -> float:
        """1 where the key connects less than three of them."""
        inputs = inputs.intersection(self._key.sides)
        if len(inputs) < FEWEST:
            return 1.0
        if inputs not in self._known:
            edges = [edge for edge in self._key.edges if edge <= inputs]
            parts = [part for part in _components(edges) if len(part) >= FEWEST]
            self._known[inputs] = prod(map(self._part, parts))
        return self._known[inputs]

    def _part(self, inputs: frozenset[str]) -> float:
        expected = prod(matching for edge, matching in self._pairs.items() if edge <= inputs)
        return max(LEAST, self._shares.matching(inputs) / expected) if expected else 1.0
