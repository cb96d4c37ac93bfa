"""How many pairs of tuples satisfy a query's join predicates, whether its plan joins them or not.

Where all predicates are equalities, the number follows from how often each key comes up: exactly.
Other predicates are tried on pairs.  Where there are too many, both inputs are sampled, within each
key where there are keys as well; the hash that draws a tuple starts from its window, so that the
same tuples are drawn whenever the window is gathered.

The bound is that of a two-sample U-statistic: what a tuple's share of partners varies between the
tuples drawn, of either input, less what was drawn of all (Lehmann, "Elements of large-sample
theory", 6.2).  It is a little more than two standard deviations wide, for these are estimated too.
Where less than ten tuples stand out, they say little of those not drawn: then it is at least three
tuples wide, as if three more had been like them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import fsum, sqrt

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import expr

from optimizer.query import ColumnRef, Predicate, Query
from stats.counts import Counts, Values, quote, selects, sql

EXACT, SAMPLED = "exact", "sampled"

SAMPLES = tuple(2**i for i in range(11, 4, -1))
"""How many tuples of a key may be drawn of each input, the most first."""

PAIRS = 2**22
"""How many pairs of a window are tried, if so many of a key can be drawn at all."""

DEVIATIONS = 2.25
FEW, UNSEEN = 10, 3

_BITS = 52
"""Of a hash, as many as a double has without loss."""


@dataclass(frozen=True)
class Edge:
    """Two inputs of a query with predicates between them, in the order of their names."""

    query: str
    one: str
    other: str
    equalities: tuple[Predicate, ...]
    others: tuple[Predicate, ...]

    @classmethod
    def of(cls, name: str, query: Query) -> "Iterator[Edge]":
        """All of a query's."""
        for aliases, predicates in query.graph.edges.items():
            one, other = sorted(aliases)
            equal = tuple(p for p in predicates if p.sides)
            yield cls(name, one, other, equal, tuple(p for p in predicates if not p.sides))

    def keys(self, alias: str) -> Values:
        """What the equalities compare of an input."""
        return tuple(sql(predicate.side(alias)) for predicate in self.equalities)

    def values(self, alias: str) -> Values:
        """What all predicates read of an input: keys first, then columns."""
        read = {c.name for p in self.others for c in p.expression.columns if c.alias == alias}
        return (*self.keys(alias), *(quote(name) for name in sorted(read)))

    @property
    def both(self) -> list[str]:
        """The columns of a key, on either side."""
        return [f"{side}.x{i}" for side in "ab" for i in range(len(self.equalities))]

    def condition(self) -> str:
        """The predicates that are no equalities, over `a.xN` and `b.xN`."""

        def column(read: ColumnRef) -> str:
            side = "a" if read.alias == self.one else "b"
            start = len(self.equalities)
            return f"{side}.x{self.values(read.alias).index(quote(read.name), start)}"

        return " AND ".join(f"({p.expression.sql(column)})" for p in self.others)


@dataclass(frozen=True)
class Found:
    """How many of a window's pairs satisfy all of an edge's predicates, and how sure that is."""

    matches: float
    error: float = 0.0
    method: str = EXACT


Matches = dict[int, Found]
"""By the start of the window; those without a pair are not there."""


def count(spark: SparkSession, edge: Edge, query: Query, counts: Mapping[str, Counts]) -> Matches:
    """The matches of an edge; `counts` are those of the streams."""
    one, other = (_side(edge, query, counts, alias) for alias in (edge.one, edge.other))
    if not edge.others:
        return _by_keys(spark, edge, one, other)
    return _by_pairs(spark, edge, one, other)


def _side(edge: Edge, query: Query, counts: Mapping[str, Counts], alias: str) -> DataFrame:
    """An input's values after its selects; what has no key matches nothing."""
    found = counts[query.streams[alias].name].by(edge.values(alias), selects(query, alias))
    keys = range(len(edge.equalities))
    return reduce(lambda frame, i: frame.where(f"x{i} IS NOT NULL"), keys, found)


def _by_keys(spark: SparkSession, edge: Edge, one: DataFrame, other: DataFrame) -> Matches:
    """Every pair counts, where equal values have been counted together."""
    fits = " AND ".join(filter(None, [_equal(edge), edge.condition()]))
    rows = spark.sql(
        f"SELECT a.w AS w, sum(a.n * b.n) AS matches FROM {{one}} AS a JOIN {{other}} AS b "
        f"ON {fits} GROUP BY a.w",
        one=one,
        other=other,
    )
    return {row["w"]: Found(float(row["matches"])) for row in rows.collect()}


def _equal(edge: Edge) -> str:
    same = [f"a.x{i} = b.x{i}" for i in range(len(edge.equalities))]
    return " AND ".join(["a.w = b.w", *same])


# --- pairs ---------------------------------------------------------------------------------------


def _by_pairs(spark: SparkSession, edge: Edge, one: DataFrame, other: DataFrame) -> Matches:
    keys = _keys(spark, edge, one, other).persist()
    try:
        draws = _draws(spark, keys)
        crowded = _crowded(keys, draws)
        if not any(crowded.values()):
            return _by_keys(spark, edge, one, other)
        return _by_samples(spark, edge, (one, other), draws, crowded)
    finally:
        keys.unpersist()


def _keys(spark: SparkSession, edge: Edge, one: DataFrame, other: DataFrame) -> DataFrame:
    """Each key that both inputs have: of either, its tuples and how many of them differ."""
    key = ", ".join(["w", *(f"x{i}" for i in range(len(edge.equalities)))])
    counted = f"(SELECT {key}, sum(n) AS n, count(*) AS d FROM {{}} GROUP BY {key})"
    names = ["a.w AS w", *(f"{c} AS {c.replace('.x', '')}" for c in edge.both)]
    figures = [f"{side}.{figure} AS {figure}_{side}" for side in "ab" for figure in "nd"]
    return spark.sql(
        f"SELECT {', '.join([*names, *figures])} FROM {counted.format('{one}')} AS a "
        f"JOIN {counted.format('{other}')} AS b ON {_equal(edge)}",
        one=one,
        other=other,
    )


def _draws(spark: SparkSession, keys: DataFrame) -> DataFrame:
    """For each window, how many tuples of a key to draw: as many as there is time for."""
    pairs = (f"sum(least(d_a, {n}) * least(d_b, {n})) AS p{n}" for n in SAMPLES)
    found = keys.groupBy("w").agg(expr("sum(n_a * n_b) AS pairs"), *map(expr, pairs)).collect()
    chosen = [
        (row["w"], row["pairs"], next((n for n in SAMPLES if row[f"p{n}"] <= PAIRS), SAMPLES[-1]))
        for row in found
    ]
    return spark.createDataFrame(chosen, "w BIGINT, all_pairs BIGINT, draws BIGINT").hint(
        "broadcast"
    )


def _crowded(keys: DataFrame, draws: DataFrame) -> dict[int, list[Row]]:
    """For each window, the keys of which not all tuples can be tried; often there are none."""
    found: dict[int, list[Row]] = {row["w"]: [] for row in draws.collect()}
    for row in keys.join(draws, "w").where("d_a > draws OR d_b > draws").collect():
        found[row["w"]].append(row)
    return found


# --- samples -------------------------------------------------------------------------------------


def _by_samples(
    spark: SparkSession,
    edge: Edge,
    sides: tuple[DataFrame, DataFrame],
    draws: DataFrame,
    crowded: Mapping[int, Sequence[Row]],
) -> Matches:
    one, other = (_drawn(spark, edge, i, rows, draws).persist() for i, rows in enumerate(sides))
    try:
        seen = [_partners(spark, edge, side, one, other) for side in "ab"]
    finally:
        one.unpersist()
        other.unpersist()
    pairs = {row["w"]: row["all_pairs"] for row in draws.collect()}
    found = {}
    for window, rows in crowded.items():
        strata = [_stratum(edge, row, seen) for row in rows]
        whole = seen[0].get((window, True), {}).get("hits", 0)
        found[window] = _estimate(whole, pairs[window], strata)
    return found


def _drawn(
    spark: SparkSession, edge: Edge, side: int, rows: DataFrame, draws: DataFrame
) -> DataFrame:
    """The tuples drawn of an input: `n` of those with the same values, `m` of a key's `tuples`.

    All of a key's are, where few of them differ.
    """
    key = ", ".join(["w", *(f"x{i}" for i in range(len(edge.equalities)))])
    values = ", ".join(column for column in rows.columns if column != "n")
    lowest = f"CAST(draws / tuples * {2**_BITS} AS BIGINT)"
    chosen = f"xxhash64({values}, {side}, o) & {2**_BITS - 1}"
    some = f"size(filter(sequence(1L, n), o -> ({chosen}) < {lowest}))"
    counted = spark.sql(
        f"SELECT *, sum(n) OVER (PARTITION BY {key}) AS tuples, "
        f"count(*) OVER (PARTITION BY {key}) AS d FROM {{rows}} JOIN {{draws}} USING (w)",
        rows=rows,
        draws=draws,
    )
    return spark.sql(
        f"SELECT *, sum(n) OVER (PARTITION BY {key}) AS m FROM (SELECT {values}, tuples, "
        f"CASE WHEN d <= draws THEN n ELSE CAST({some} AS BIGINT) END AS n FROM {{counted}}) "
        "WHERE n > 0",
        counted=counted,
    )


Place = tuple[object, ...]
"""A window and whether all pairs of its keys were tried; else the key follows, on both sides."""


def _partners(
    spark: SparkSession, edge: Edge, side: str, one: DataFrame, other: DataFrame
) -> dict[Place, dict[str, int]]:
    """How many partners each tuple of one side has among those drawn of the other, key by key.

    Added up: of all, squared, and how many tuples have any, or all that they can.
    """
    theirs = "b" if side == "a" else "a"
    values = [c for c in (one if side == "a" else other).columns if c.startswith("x")]
    own = [f"{side}.{value}" for value in values]
    key = [f"{column} AS {column.replace('.x', '')}" for column in edge.both]
    grouped = dict.fromkeys(["a.w", *edge.both, *own, f"{side}.n", "a.m", "b.m", "whole"])
    matched = spark.sql(
        f"SELECT {', '.join(['a.w AS w', *key])}, a.m = a.tuples AND b.m = b.tuples AS whole, "
        f"{side}.n AS n, sum({theirs}.n) AS partners, a.m AS m_a, b.m AS m_b "
        f"FROM {{one}} AS a JOIN {{other}} AS b ON {_equal(edge)} AND {edge.condition()} "
        f"GROUP BY {', '.join(grouped)}",
        one=one,
        other=other,
    )
    names = [column.replace(".x", "") for column in edge.both]
    once = ["w", "whole", *(f"CASE WHEN NOT whole THEN {name} END" for name in names)]
    figures = {
        "hits": "sum(n * partners)",
        "squares": "sum(n * partners * partners)",
        "some": "sum(n)",
        "every": f"sum(CASE WHEN partners = m_{theirs} THEN n ELSE 0 END)",
        "m_a": "max(m_a)",
        "m_b": "max(m_b)",
    }
    listed = [f"{text} AS {name}" for name, text in figures.items()]
    rows = spark.sql(
        f"SELECT {', '.join([*once, *listed])} FROM {{matched}} GROUP BY {', '.join(once)}",
        matched=matched,
    ).collect()
    return {
        tuple(row[: 2 if row[1] else len(once)]): {name: row[name] for name in figures}
        for row in rows
    }


@dataclass(frozen=True)
class Sample:
    """What was drawn of one side of a key, `m` of `n` tuples, and the partners that they have."""

    n: int
    m: int
    hits: int
    squares: int
    some: int
    every: int


@dataclass(frozen=True)
class Stratum:
    """A key of which not all pairs could be tried: both sides."""

    one: Sample
    other: Sample

    @property
    def pairs(self) -> int:
        """Of all its tuples."""
        return self.one.n * self.other.n

    @property
    def matches(self) -> float:
        """What the pairs tried say of all."""
        return self.pairs * self.one.hits / (self.one.m * self.other.m)

    @property
    def sampled(self) -> Iterator[tuple[Sample, int]]:
        """Each side of which only some was drawn, and how many were drawn of the other."""
        for mine, theirs in ((self.one, self.other), (self.other, self.one)):
            if mine.m < mine.n:
                yield mine, theirs.m


def _stratum(edge: Edge, key: Row, seen: Sequence[Mapping[Place, Mapping[str, int]]]) -> Stratum:
    place = (key["w"], False, *(key[column.replace(".x", "")] for column in edge.both))
    found = [one.get(place, {}) for one in seen]
    samples = []
    for side, figures in zip("ab", found, strict=True):
        n = key[f"n_{side}"]
        usual = n if key[f"d_{side}"] <= key["draws"] else min(n, key["draws"])
        counted = (figures.get(name, 0) for name in ("hits", "squares", "some", "every"))
        samples.append(Sample(n, found[0].get(f"m_{side}", usual), *counted))
    return Stratum(*samples)


def _estimate(hits: int, pairs: int, strata: Sequence[Stratum]) -> Found:
    """The matches among so many pairs: those of the keys of which all were tried, and the others'.

    Sums are exact or correctly rounded: they do not depend on the order in which Spark adds up.
    """
    if not strata:
        return Found(float(hits))
    matches = fsum([hits, *(stratum.matches for stratum in strata)])
    variance = fsum(_variance(stratum, matches / pairs) for stratum in strata)
    return Found(matches, max(DEVIATIONS * sqrt(variance), _least(strata)), SAMPLED)


def _variance(stratum: Stratum, share: float) -> float:
    """What drawing from a key adds to the variance of the matches."""
    found = []
    for mine, others in stratum.sampled:
        partners, squares = mine.hits / others, mine.squares / others**2
        around = max(0.0, squares - 2 * share * partners + share**2 * mine.m)
        found.append((stratum.pairs / mine.m) ** 2 * around * (1 - mine.m / mine.n))
    return fsum(found)


def _least(strata: Sequence[Stratum]) -> float:
    """The smallest bound that the tuples drawn support: wide, if few of them stand out."""
    drawn = [(stratum, mine) for stratum in strata for mine, _ in stratum.sampled]
    some = sum(mine.some for _, mine in drawn)
    without = sum(mine.m - mine.every for _, mine in drawn)
    if min(some, without) >= FEW:
        return 0.0
    return float(UNSEEN * max(stratum.pairs / mine.m for stratum, mine in drawn))
