"""Queries as users write them, each beside the same meaning by hand over the whole input.

The oracle is plain DuckDB over tables of the streams' names; `:closed` stands for the moment until
which windows are complete.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product

from optimizer.plan import Branch, Leaf, Tree
from optimizer.query import Query, Stream
from optimizer.sql import parse, parse_schema
from optimizer.window import MICROSECONDS

SCHEMA = (
    "n BIGINT, k BIGINT, j BIGINT, i INT, price DECIMAL(8, 2), weight DOUBLE, flag BOOLEAN, "
    "word STRING, ts TIMESTAMP"
)
STREAMS = {name: Stream(name, parse_schema(SCHEMA), "ts") for name in "abcde"}


@dataclass(frozen=True)
class Case:
    """A query, what it means, and which of its plans are tried."""

    name: str
    sql: str
    oracle: str
    window: float | None = None
    """Of the whole query, in seconds."""
    combined: tuple[str, ...] = ()
    """Plans in which inputs are combined before they are joined."""

    @cached_property
    def query(self) -> Query:
        """What the text means."""
        window = None if self.window is None else round(self.window * MICROSECONDS)
        return parse(self.sql, STREAMS, window)


def within(seconds: float, *names: str) -> str:
    """One window around all pairs."""
    pairs = ((i, j) for at, i in enumerate(names) for j in names[at + 1 :])
    return " AND ".join(
        f"abs(epoch_us({i}.ts) - epoch_us({j}.ts)) <= {round(seconds * 1e6)}" for i, j in pairs
    )


CASES = (
    Case(
        "one stream",
        "SELECT n, price * 2 AS double_price, word FROM a WHERE k > 1 AND NOT flag",
        "SELECT n, price * 2 AS double_price, word FROM a WHERE k > 1 AND NOT flag",
    ),
    Case(
        "two, equal keys",
        "SELECT a.n AS an, b.n AS bn, a.price, b.flag FROM a, b WHERE a.k = b.k",
        f"SELECT a.n AS an, b.n AS bn, a.price, b.flag FROM a, b WHERE a.k = b.k"
        f" AND {within(3, 'a', 'b')}",
        3,
    ),
    Case(
        "two, theta",
        "SELECT a.n AS an, b.n AS bn FROM a, b WHERE a.i < b.i - 1 AND b.weight > 0.5",
        f"SELECT a.n AS an, b.n AS bn FROM a, b WHERE a.i < b.i - 1 AND b.weight > 0.5"
        f" AND {within(1.5, 'a', 'b')}",
        1.5,
    ),
    Case(
        "two, an interval ahead",
        "SELECT a.n AS an, b.n AS bn, b.ts AS at FROM a JOIN b ON a.k = b.k"
        " AND b.ts BETWEEN a.ts + INTERVAL 1 SECOND AND a.ts + INTERVAL 4 SECONDS",
        "SELECT a.n AS an, b.n AS bn, b.ts AS at FROM a JOIN b ON a.k = b.k"
        " AND b.ts BETWEEN a.ts + INTERVAL 1 SECOND AND a.ts + INTERVAL 4 SECONDS",
    ),
    Case(
        "a stream with itself",
        "SELECT x.n AS xn, y.n AS yn FROM a AS x, a AS y WHERE x.k = y.k AND x.i < y.i",
        f"SELECT x.n AS xn, y.n AS yn FROM a AS x, a AS y WHERE x.k = y.k AND x.i < y.i"
        f" AND {within(2, 'x', 'y')}",
        2,
    ),
    Case(
        "three, one key",
        "SELECT a.n AS an, b.n AS bn, c.n AS cn, a.word FROM a, b, c"
        " WHERE a.k = b.k AND b.k = c.k AND c.i <> 2",
        f"SELECT a.n AS an, b.n AS bn, c.n AS cn, a.word FROM a, b, c"
        f" WHERE a.k = b.k AND b.k = c.k AND c.i <> 2 AND {within(3, 'a', 'b', 'c')}",
        3,
    ),
    Case(
        "three, different keys, own ranges",
        "SELECT a.n AS an, b.n AS bn, c.n AS cn FROM a [RANGE 2 SECONDS], b [RANGE 1 SECOND],"
        " c [RANGE 3 SECONDS] WHERE a.k = b.k AND b.j = c.j",
        "SELECT a.n AS an, b.n AS bn, c.n AS cn FROM a, b, c WHERE a.k = b.k AND b.j = c.j"
        " AND b.ts <= a.ts + INTERVAL 2 SECOND AND c.ts <= a.ts + INTERVAL 2 SECOND"
        " AND a.ts <= b.ts + INTERVAL 1 SECOND AND c.ts <= b.ts + INTERVAL 1 SECOND"
        " AND a.ts <= c.ts + INTERVAL 3 SECOND AND b.ts <= c.ts + INTERVAL 3 SECOND",
    ),
    Case(
        "three, intervals in a chain",
        "SELECT a.n AS an, b.n AS bn, c.n AS cn FROM a, b, c WHERE a.k = b.k AND b.k = c.k"
        " AND b.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts + INTERVAL 2 SECONDS"
        " AND c.ts BETWEEN b.ts AND b.ts + INTERVAL 2 SECONDS",
        "SELECT a.n AS an, b.n AS bn, c.n AS cn FROM a, b, c WHERE a.k = b.k AND b.k = c.k"
        " AND b.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts + INTERVAL 2 SECOND"
        " AND c.ts BETWEEN b.ts AND b.ts + INTERVAL 2 SECOND",
    ),
    Case(
        "four, no common key",
        "SELECT a.n AS an, b.n AS bn, c.n AS cn, d.n AS dn FROM a, b, c, d"
        " WHERE a.k = b.k AND b.j = c.j AND c.i = d.i AND d.flag",
        f"SELECT a.n AS an, b.n AS bn, c.n AS cn, d.n AS dn FROM a, b, c, d"
        f" WHERE a.k = b.k AND b.j = c.j AND c.i = d.i AND d.flag"
        f" AND {within(2, 'a', 'b', 'c', 'd')}",
        2,
    ),
    Case(
        "five, theta among them",
        "SELECT a.n AS an, e.n AS en, c.weight FROM a, b, c, d, e WHERE a.k = b.k AND b.k = c.k"
        " AND c.j = d.j AND d.i = e.i AND a.i <= e.i",
        f"SELECT a.n AS an, e.n AS en, c.weight FROM a, b, c, d, e WHERE a.k = b.k AND b.k = c.k"
        f" AND c.j = d.j AND d.i = e.i AND a.i <= e.i AND {within(2, 'a', 'b', 'c', 'd', 'e')}",
        2,
    ),
    Case(
        "one stream, tumbling",
        "SELECT k, count(*) AS n, sum(price) AS total, avg(weight) AS mean, min(i) AS low,"
        " max(ts) AS last, window.end AS ends FROM a GROUP BY k, window(ts, '2 seconds')",
        "SELECT k, count(*) AS n, sum(price) AS total, avg(weight) AS mean, min(i) AS low,"
        " max(ts) AS last, time_bucket(INTERVAL 2 SECOND, ts) + INTERVAL 2 SECOND AS ends FROM a"
        " GROUP BY k, ends HAVING epoch_us(ends) <= :closed",
    ),
    Case(
        "one stream, sliding, looking at its window",
        "SELECT j, sum(i) AS total, max(weight) FILTER (WHERE ts >= window.end - INTERVAL 1 SECOND)"
        " AS recent FROM a GROUP BY j, window(ts, '3 seconds', '1 second')",
        "SELECT j, sum(i)::BIGINT AS total,"
        " max(weight) FILTER (WHERE ts >= ends - INTERVAL 1 SECOND) AS recent"
        " FROM (SELECT *, time_bucket(INTERVAL 1 SECOND, ts) + to_seconds(s) AS ends"
        " FROM a, range(1, 4) AS r(s)) GROUP BY j, ends HAVING epoch_us(ends) <= :closed",
    ),
    Case(
        "a join, tumbling",
        "SELECT a.k, count(*) AS n, sum(b.price) AS total, sum(a.i + b.i) AS both,"
        " avg(b.weight) AS mean FROM a, b WHERE a.k = b.k GROUP BY a.k, window(a.ts, '2 seconds')",
        f"SELECT a.k, count(*) AS n, sum(b.price) AS total, sum(a.i + b.i)::BIGINT AS both,"
        f" avg(b.weight) AS mean FROM a, b WHERE a.k = b.k AND {within(2, 'a', 'b')} GROUP BY a.k,"
        f" time_bucket(INTERVAL 2 SECOND, a.ts)"
        f" HAVING epoch_us(time_bucket(INTERVAL 2 SECOND, a.ts)) + 4000000 <= :closed",
        2,
        combined=("([a] b)", "(a [b])", "([a] [b])"),
    ),
    Case(
        "three joined, sliding",
        "SELECT c.j AS j, count(*) AS n, max(a.price) AS high, window.start AS begins"
        " FROM a, b, c WHERE a.k = b.k AND b.k = c.k"
        " GROUP BY c.j, window(b.ts, '2 seconds', '1 second')",
        f"SELECT c.j AS j, count(*) AS n, max(a.price) AS high,"
        f" time_bucket(INTERVAL 1 SECOND, b.ts) - to_seconds(s) AS begins"
        f" FROM a, b, c, range(2) AS r(s)"
        f" WHERE a.k = b.k AND b.k = c.k AND {within(1.5, 'a', 'b', 'c')}"
        f" GROUP BY c.j, begins HAVING epoch_us(begins) + 3500000 <= :closed",
        1.5,
        combined=("([a] b [c])", "((a [b]) c)"),
    ),
)


def trees(case: Case, most: int) -> list[Tree]:
    """Every shape of its plans, or so many evenly chosen ones."""
    found = list(_trees(case.query.aliases))
    step = max(1, -(-len(found) // most))
    return list(islice(found, 0, None, step))


def _trees(names: tuple[str, ...]) -> list[Tree]:
    """All trees of joins over these inputs, each set of parts once."""
    if len(names) == 1:
        return [Leaf(names[0])]
    return [
        Branch(parts)
        for groups in _partitions(names)
        if len(groups) > 1
        for parts in product(*map(_trees, groups))
    ]


def _partitions(names: tuple[str, ...]) -> list[tuple[tuple[str, ...], ...]]:
    """All ways to split a set."""
    if not names:
        return [()]
    first, rest = names[0], names[1:]
    found = []
    for mask in range(2 ** len(rest)):
        beside = tuple(name for at, name in enumerate(rest) if mask >> at & 1)
        others = tuple(name for name in rest if name not in beside)
        found += [((first, *beside), *groups) for groups in _partitions(others)]
    return found
