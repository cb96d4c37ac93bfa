"""Which values of a key are heavy in the inputs of a query that it joins, three of them or more.

Heavy are those on which most pairs match.  The others are told as one figure: so many values would
make as many pairs of them if all came up alike.  So a few numbers say what a join of several
inputs comes to, whatever the keys are like; all are whole or made of such, and come out the same
whenever a window is gathered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, Row, SparkSession

from optimizer.keys import HEAVIEST, Key, Pair, alike
from optimizer.query import Query
from stats.counts import Counts, Values, selects, sql


@dataclass(frozen=True)
class Spread:
    """How a key's values are spread over an input's tuples in a window."""

    nulls: int
    heavy: Sequence[tuple[str, int]]
    """Values and their tuples, the same values for each input of the key."""
    rest: int
    """Tuples with another value."""
    others: float
    """How many other values there are, if all came up alike."""


def values(key: Key, alias: str) -> Values:
    """What a key compares of an input."""
    return tuple(map(sql, key.sides[alias]))


def count(
    spark: SparkSession, key: Key, query: Query, counts: Mapping[str, Counts]
) -> dict[int, dict[str, Spread]]:
    """By the start of the window, and by input; windows without a tuple are not there."""
    inputs = key.inputs
    frames = [
        _numbered(counts[query.streams[a].name].by(values(key, a), selects(query, a)), i, inputs)
        for i, a in enumerate(inputs)
    ]
    together = reduce(DataFrame.union, frames)
    pairs = key.pairs
    return {
        row["w"]: _spreads(row, inputs, pairs)
        for row in _heaviest(spark, together, len(key.sides[inputs[0]]), len(inputs), pairs)
    }


def _numbered(counted: DataFrame, at: int, inputs: Sequence[str]) -> DataFrame:
    """An input's tuples of each value in a column of its own."""
    columns = [f"{'n' if i == at else '0L'} AS c{i}" for i in range(len(inputs))]
    return counted.selectExpr("w", *(c for c in counted.columns if c.startswith("x")), *columns)


def _heaviest(
    spark: SparkSession, together: DataFrame, width: int, inputs: int, pairs: Sequence[Pair]
) -> list[Row]:
    """For each window its heaviest values, and the tuples and pairs of all that have one."""
    key, counted = [f"x{i}" for i in range(width)], [f"c{i}" for i in range(inputs)]
    sums = ", ".join(f"sum({c}) AS {c}" for c in counted)
    missing = " OR ".join(f"{x} IS NULL" for x in key)
    matches = " + ".join(f"c{i} * c{j}" for i, j in pairs)
    by_value = spark.sql(
        f"SELECT w, {sums}, {missing} AS missing, CAST(({', '.join(key)}) AS STRING) AS value "
        f"FROM {{together}} GROUP BY w, {', '.join(key)}",
        together=together,
    )
    figures = [f"sum({c}) FILTER (WHERE NOT missing) AS {c}" for c in (*counted, "matches")]
    figures += [f"sum({c}) FILTER (WHERE missing) AS nulls_{c}" for c in counted]
    one = f"struct(-matches AS less, value, {', '.join(counted)})"
    heavy = f"min_by({one}, {one}, {HEAVIEST}) FILTER (WHERE NOT missing AND matches > 0)"
    return spark.sql(
        f"SELECT w, {', '.join(figures)}, {heavy} AS heavy "
        f"FROM (SELECT *, {matches} AS matches FROM {{by_value}}) GROUP BY w",
        by_value=by_value,
    ).collect()


def _spreads(row: Row, inputs: Sequence[str], pairs: Sequence[Pair]) -> dict[str, Spread]:
    heavy, counted = row["heavy"] or [], [f"c{i}" for i in range(len(inputs))]
    rest = [(row[c] or 0) - sum(one[c] for one in heavy) for c in counted]
    left = (row["matches"] or 0) + sum(one["less"] for one in heavy)
    others = alike(rest, pairs, left)
    return {
        alias: Spread(
            row[f"nulls_{c}"] or 0, [(one["value"], one[c]) for one in heavy], rest[i], others
        )
        for i, (alias, c) in enumerate(zip(inputs, counted, strict=True))
    }
