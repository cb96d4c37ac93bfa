"""Random queries and workloads, and brute force over everything that a search may propose."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from random import Random

from optimizer.cost.dual import Cost, join_cost
from optimizer.estimate import Estimate, Estimator
from optimizer.memo import Memo, Part
from optimizer.plan import Order
from optimizer.query import (
    HOLE,
    Aggregate,
    Column,
    ColumnRef,
    Expression,
    Grouping,
    Named,
    Predicate,
    Query,
    Stream,
)
from optimizer.window import MICROSECONDS, Bounds, close, everywhere, ranges
from optimizer.workload import Budget, Method, StreamLoad, Workload


@dataclass(frozen=True)
class Case:
    """A query with what it has to work on; `memo()` is a fresh one."""

    query: Query
    workload: Workload
    budget: Budget

    def memo(self, **settings) -> Memo:
        return Memo(self.query, self.workload, self.budget, **settings)

    @property
    def estimator(self) -> Estimator:
        return Estimator(self.query, self.workload)


def names(n: int) -> list[str]:
    return [chr(ord("A") + i) if n <= 26 else f"s{i:02}" for i in range(n)]


def case(
    streams: dict[str, float],
    joins: dict[str, float],
    bounds: Bounds | float = 1.0,
    *,
    budget: Budget | None = None,
    selects: dict[str, float] | None = None,
    grouped: bool = False,
    combine: dict[str, float] | None = None,
    widths: dict[str, float] | None = None,
    method: Method = Method.HASH,
) -> Case:
    """From rates by alias and selectivities by `A-B`; bounds, or one window in seconds for all."""
    edges = [frozenset(edge.split("-")) for edge in joins]
    built = []
    for alias in streams:
        keys = [Column(f"k{i}", "BIGINT") for i, edge in enumerate(edges) if alias in edge]
        built.append(
            (alias, Stream(alias, (*keys, Column("v", "DOUBLE"), Column("t", "TIMESTAMP")), "t"))
        )
    predicates = [
        Predicate.equality(*(Expression.of(ColumnRef(alias, f"k{i}")) for alias in sorted(edge)))
        for i, edge in enumerate(edges)
    ]
    predicates += [
        Predicate(Expression(f"{HOLE} > 0", (ColumnRef(a, "v"),))) for a in selects or {}
    ]
    if not isinstance(bounds, Bounds):
        bounds = everywhere(list(streams), round(bounds * MICROSECONDS))
    query = Query(
        tuple(built), tuple(predicates), bounds, *_results(list(streams), grouped=grouped)
    )
    workload = Workload(
        {
            alias: StreamLoad(rate, (widths or {}).get(alias, 100.0))
            for alias, rate in streams.items()
        },
        dict(zip(edges, joins.values(), strict=True)),
        selects or {},
        combine or {},
        groups=10.0,
        method=method,
    )
    return Case(query, workload, budget or Budget())


def _results(aliases: Sequence[str], *, grouped: bool):
    value = Expression.of(ColumnRef(aliases[-1], "v"))
    if not grouped:
        return (Named("value", value),), None
    time = ColumnRef(aliases[0], "t")
    total = Aggregate("total", "sum", value)
    grouping = Grouping((), (total,), time, 60 * MICROSECONDS, 30 * MICROSECONDS)
    return (Named("total", Expression.of(ColumnRef("", "total"))),), grouping


def tree_edges(n: int, random: Random) -> list[tuple[int, int]]:
    """A random tree over 0..n-1."""
    order = random.sample(range(n), n)
    return [(order[i], order[random.randrange(i)]) for i in range(1, n)]


def random_case(
    n: int,
    random: Random,
    *,
    cyclic: bool | None = None,
    general: bool = False,
    method: Method | None = None,
    grouped: int = 0,
    budget: Budget | None = None,
) -> Case:
    """All values at random; so many inputs as `grouped` says may be combined."""
    aliases = names(n)
    edges = {frozenset(edge) for edge in tree_edges(n, random)}
    if cyclic if cyclic is not None else random.random() < 0.5:
        pairs = [frozenset(pair) for pair in combinations(range(n), 2)]
        edges |= set(random.sample(pairs, random.randint(0, len(pairs))))
    joins = {
        "-".join(aliases[i] for i in sorted(edge)): random.choice(
            (random.random(), random.random() / 20)
        )
        for edge in sorted(edges, key=sorted)
    }
    rates = {alias: random.uniform(0.5, 20) for alias in aliases}
    selected = {alias: random.random() for alias in aliases if random.random() < 0.2}
    combined = random.sample(aliases, grouped)
    return case(
        rates,
        joins,
        _general(aliases, random) if general else _windows(aliases, random),
        budget=budget,
        selects=selected,
        grouped=bool(grouped),
        combine={alias: rates[alias] * random.uniform(0.05, 1.1) for alias in combined},
        widths={alias: random.uniform(20, 400) for alias in aliases},
        method=method or random.choice(list(Method)),
    )


def star(n: int, random: Random, budget: Budget) -> Case:
    """Every stream joined with the first; wide and narrow ones."""
    rates = {alias: random.uniform(0.5, 20) for alias in names(n)}
    joins = {f"A-{alias}": random.random() for alias in names(n)[1:]}
    widths = {alias: random.uniform(20, 400) for alias in names(n)}
    return case(rates, joins, random.randint(1, 5), widths=widths, budget=budget)


def _windows(aliases: Sequence[str], random: Random) -> Bounds:
    if random.random() < 0.5:
        return everywhere(aliases, random.randint(1, 8) * MICROSECONDS)
    windows = {alias: random.randint(1, 8) * MICROSECONDS for alias in aliases}
    return close(aliases, ranges(aliases, windows))


def _general(aliases: Sequence[str], random: Random) -> Bounds:
    """Interval joins along a tree, both ends at random."""
    limits = {}
    for i, j in tree_edges(len(aliases), random):
        low, high = sorted(random.sample(range(-3, 9), 2))
        limits[aliases[i], aliases[j]] = high * MICROSECONDS
        limits[aliases[j], aliases[i]] = -low * MICROSECONDS
    return close(aliases, limits)


# --- brute force ---------------------------------------------------------------------------------


def partitions(items: Sequence[Part]) -> Iterator[list[list[Part]]]:
    """All ways to put things into blocks."""
    if not items:
        yield []
        return
    first, *rest = items
    for size in range(len(rest) + 1):
        for chosen in combinations(rest, size):
            others = [item for item in rest if item not in chosen]
            for blocks in partitions(others):
                yield [[first, *chosen], *blocks]


def cheapest_orders(parts: Sequence[Estimate], estimator: Estimator) -> tuple[Order, ...]:
    """By trying all."""
    n = len(parts)
    default = [tuple(o for o in range(n) if o != i) for i in range(n)]

    def cost(position: int, order: Order) -> float:
        return join_cost(
            parts, [*default[:position], order, *default[position + 1 :]], estimator
        ).cpu

    return tuple(
        min((cost(position, order), order) for order in permutations(default[position]))[1]
        for position in range(n)
    )


def all_jtrees(memo: Memo, leaves: Sequence[Part]) -> list[Part]:
    """Every jtree over those inputs, each join probed in the best of all orders."""
    if len(leaves) == 1:
        return list(leaves)
    known: dict[tuple[int, ...], tuple[Order, ...]] = {}
    found: dict[tuple[int, ...], list[Part]] = {}

    def trees(items: Sequence[Part]) -> list[Part]:
        key = tuple(sorted(item.estimate.mask for item in items))
        if len(items) == 1:
            return list(items)
        if key not in found:
            found[key] = [
                join(parts)
                for blocks in partitions(items) if len(blocks) > 1
                for parts in product(*map(trees, blocks))
            ]  # fmt: skip
        return found[key]

    def join(parts: Sequence[Part]) -> Part:
        key = tuple(part.estimate.mask for part in parts)
        if key not in known:
            known[key] = cheapest_orders([part.estimate for part in parts], memo.estimator)
        return memo.join(parts, known[key])

    return trees(leaves)


def pareto(costs: Sequence[Cost], budget: Budget) -> list[tuple[float, float]]:
    """CPU and memory of those that no other one beats, near-equal ones once."""
    points = sorted((cost.cpu, cost.memory(budget)) for cost in costs)
    front: list[tuple[float, float]] = []
    for cpu, memory in points:
        if not front or memory < front[-1][1] * (1 - 1e-9):
            front.append((cpu, memory))
    return front
