"""Queries, workloads and trees for the optimizer's tests: by hand, at random, by hypothesis."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from random import Random

from hypothesis import strategies as st

from optimizer.plan import Branch, Leaf, Order, Tree
from optimizer.query import (
    RESULT,
    WINDOW_END,
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
from optimizer.workload import Method, StreamLoad, Workload

Edge = tuple[str, str]


# --- queries -------------------------------------------------------------------------------------


def stream(name: str, *columns: str) -> Stream:
    """A stream of numbers with its event time `ts`."""
    return Stream(name, (*(Column(c, "BIGINT") for c in columns), Column("ts", "TIMESTAMP")), "ts")


def ref(text: str) -> ColumnRef:
    """`a.x` as a column."""
    alias, name = text.split(".")
    return ColumnRef(alias, name)


def column(text: str) -> Expression:
    """`a.x` as an expression."""
    return Expression.of(ref(text))


def equal(left: str, right: str) -> Predicate:
    """`a.x = b.x`."""
    return Predicate.equality(column(left), column(right))


def less(left: str, right: str) -> Predicate:
    """`a.x < b.x`."""
    return Predicate(Expression("\0 < \0", (ref(left), ref(right))))


def where(text: str, condition: str = "> 5") -> Predicate:
    """`a.x > 5`."""
    return Predicate(Expression(f"\0 {condition}", (ref(text),)))


def window(names: Sequence[str], seconds: float) -> Bounds:
    """One window for all pairs."""
    return everywhere(names, round(seconds * MICROSECONDS))


def cql(windows: Mapping[str, float]) -> Bounds:
    """`[RANGE n SECONDS]` behind each stream."""
    microseconds = {name: round(seconds * MICROSECONDS) for name, seconds in windows.items()}
    return close(list(windows), ranges(list(windows), microseconds))


def between(names: Sequence[str], intervals: Mapping[Edge, tuple[float, float]]) -> Bounds:
    """`b.ts BETWEEN a.ts + low AND a.ts + high` for each pair (a, b) given."""
    limits: dict[Edge, int] = {}
    for (a, b), (low, high) in intervals.items():
        limits[b, a] = round(high * MICROSECONDS)
        limits[a, b] = round(-low * MICROSECONDS)
    return close(names, limits)


def joined(
    names: Sequence[str],
    edges: Iterable[Edge],
    bounds: Bounds | float = 10,
    *,
    selects: Sequence[Predicate] = (),
    streams: Mapping[str, Stream] | None = None,
    grouping: Grouping | None = None,
) -> Query:
    """A query that joins on `k` along the edges and emits every `v`, or the group-by."""
    inputs = tuple((n, (streams or {}).get(n) or stream(n, "k", "v", "w")) for n in names)
    predicates = (*(equal(f"{a}.k", f"{b}.k") for a, b in edges), *selects)
    output = tuple(Named(f"{n}_v", column(f"{n}.v")) for n in names)
    if grouping is not None:
        output = tuple(Named(n, Expression.of(ColumnRef(RESULT, n))) for n in grouping.names)
    limits = bounds if isinstance(bounds, Bounds) else window(names, bounds)
    return Query(inputs, predicates, limits, output, grouping)


def counts(key: str, *aggregates: Aggregate, size: float = 60, slide: float = 60) -> Grouping:
    """`GROUP BY key, window(...)`, by default with `count(*)`."""
    alias = ref(key).alias
    return Grouping(
        (Named("key", column(key)),),
        aggregates or (Aggregate("n", "count"),),
        ColumnRef(alias, "ts"),
        round(size * MICROSECONDS),
        round(slide * MICROSECONDS),
    )


def total(name: str, argument: str) -> Aggregate:
    """`sum(a.x)`."""
    return Aggregate(name, "sum", column(argument))


ENDS = Named("ends", Expression.of(ColumnRef(RESULT, WINDOW_END)))


# --- workloads -----------------------------------------------------------------------------------


def workload(
    rates: Mapping[str, float],
    joins: Mapping[Edge, float],
    *,
    method: Method = Method.HASH,
    **settings: object,
) -> Workload:
    """Rates by stream, selectivities by pair."""
    streams = {name: StreamLoad(rate) for name, rate in rates.items()}
    edges = {frozenset(edge): selectivity for edge, selectivity in joins.items()}
    return Workload(streams, edges, method=method, **settings)  # type: ignore[arg-type]


# --- trees ---------------------------------------------------------------------------------------


def every_tree(names: Sequence[str]) -> Iterator[Tree]:
    """All jtrees: every partition of the names, and of each of its blocks."""
    yield from _every_tree(tuple(names))


@cache
def _every_tree(names: tuple[str, ...]) -> tuple[Tree, ...]:
    if len(names) == 1:
        return (Leaf(names[0]),)
    return tuple(
        Branch(parts)
        for blocks in _partitions(names)
        if len(blocks) > 1
        for parts in _choices([_every_tree(block) for block in blocks])
    )


def every_bjtree(names: Sequence[str]) -> Iterator[Tree]:
    """All binary trees, bushy ones too."""
    return (tree for tree in every_tree(names) if _binary(tree))


def _binary(tree: Tree) -> bool:
    return isinstance(tree, Leaf) or (len(tree.parts) == 2 and all(map(_binary, tree.parts)))


def _partitions(names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], ...]]:
    if not names:
        yield ()
        return
    first, rest = names[0], names[1:]
    for count in range(len(rest) + 1):
        for others in combinations(rest, count):
            left = tuple(name for name in rest if name not in others)
            for blocks in _partitions(left):
                yield ((first, *others), *blocks)


def _choices(options: Sequence[Sequence[Tree]]) -> Iterator[tuple[Tree, ...]]:
    if not options:
        yield ()
        return
    for head in options[0]:
        for tail in _choices(options[1:]):
            yield (head, *tail)


def shuffled(tree: Tree, random: Random) -> Tree:
    """The same tree, the parts of its joins in another order, the probe orders along with them."""
    if isinstance(tree, Leaf):
        return tree
    places = list(range(len(tree.parts)))
    random.shuffle(places)
    new = {old: position for position, old in enumerate(places)}
    parts = tuple(shuffled(tree.parts[old], random) for old in places)
    orders = tuple(tuple(new[other] for other in tree.orders[old]) for old in places)
    return Branch(parts, orders, tree.place)


def random_tree(names: Sequence[str], random: Random, *, width: int = 4) -> Tree:
    """Some jtree of joins of up to so many inputs, probed in random orders."""
    trees: list[Tree] = [Leaf(name) for name in names]
    while len(trees) > 1:
        random.shuffle(trees)
        count = random.randint(2, min(width, len(trees)))
        parts, trees = trees[:count], trees[count:]
        trees.append(Branch(tuple(parts), random_orders(count, random)))
    return trees[0]


def random_orders(count: int, random: Random) -> tuple[Order, ...]:
    """For each input, some order of the others."""
    return tuple(
        tuple(random.sample([o for o in range(count) if o != i], count - 1)) for i in range(count)
    )


# --- at random -----------------------------------------------------------------------------------


def names_of(count: int) -> list[str]:
    """A, B, C, ..."""
    return [chr(ord("A") + position) for position in range(count)]


def random_edges(names: Sequence[str], random: Random, *, more: float = 0.2) -> list[Edge]:
    """A connected graph: a random tree, and each other pair with that probability."""
    tree = {(random.choice(names[:i]), names[i]) for i in range(1, len(names))}
    others = {pair for pair in combinations(names, 2) if random.random() < more}
    return sorted(tree | others)


def random_case(
    count: int, random: Random, *, method: Method = Method.HASH, seconds: float = 5
) -> tuple[Query, Workload]:
    """A query and its workload as in Zhu-Raghavan 6.1: rates 1-100, selectivities within (0, 1)."""
    names = names_of(count)
    edges = random_edges(names, random)
    query = joined(names, edges, seconds)
    rates = {name: random.uniform(1, 100) for name in names}
    joins = {edge: random.uniform(0.001, 0.999) for edge in edges}
    return query, workload(rates, joins, method=method)


@st.composite
def bounds(draw: st.DrawFn, names: Sequence[str]) -> Bounds:
    """One window, CQL's ranges, or intervals along a random tree of the streams."""
    seconds = st.integers(1, 30)
    kind = draw(st.sampled_from(("window", "ranges", "intervals")))
    if kind == "window":
        return window(names, draw(seconds))
    if kind == "ranges":
        return cql({name: draw(seconds) for name in names})
    intervals = {}
    for position in range(1, len(names)):
        low = draw(st.integers(-20, 10))
        partner = names[draw(st.integers(0, position - 1))]
        intervals[partner, names[position]] = (low, low + draw(seconds))
    return between(names, intervals)


@st.composite
def cases(
    draw: st.DrawFn, low: int = 2, high: int = 6, *, local: bool = True
) -> tuple[Query, Workload]:
    """Queries with connected or unconnected join graphs, and workloads for them."""
    names = names_of(draw(st.integers(low, high)))
    pairs = list(combinations(names, 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=2 * len(names)))
    limits = draw(bounds(names)) if local else window(names, draw(st.integers(1, 30)))
    rates = {name: draw(st.floats(0.1, 100)) for name in names}
    joins = {edge: draw(st.floats(0.001, 1)) for edge in edges}
    method = draw(st.sampled_from(Method))
    return joined(names, edges, limits), workload(rates, joins, method=method)


@st.composite
def trees(draw: st.DrawFn, names: Sequence[str]) -> Tree:
    """Some jtree over the names, with some probe orders."""
    return random_tree(names, draw(st.randoms(use_true_random=False)))
