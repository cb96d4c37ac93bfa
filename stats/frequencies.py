"""How a column's values are spread: how many there are, and which come up most.

Most values come up about as often as each other, so how many come up how often is a short list.  It
says what a value must reach to be among the heaviest, and only those that do are compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

HEAVIEST = 10
"""How many of a column's values are named."""


@dataclass(frozen=True)
class Often:
    """So many values of a window come up `n` times; or tuples have no value, so many times."""

    n: int
    values: int
    missing: bool


@dataclass(frozen=True)
class Frequencies:
    """A column in all windows, by their start."""

    often: Mapping[int, Sequence[Often]]
    heavy: Mapping[int, Sequence[Mapping[str, Any]]]

    def of(self, window: int) -> dict[str, Any]:
        """The figures of a window."""
        often = self.often.get(window, ())
        return {
            "rows": sum(one.n * one.values for one in often),
            "nulls": sum(one.n for one in often if one.missing),
            "distinct": sum(one.values for one in often if not one.missing),
            "heavy": self.heavy.get(window, []),
        }


def frequencies(counted: DataFrame) -> Frequencies:
    """The figures of a column whose values have been counted: `w`, `x0` and `n`."""
    often: dict[int, list[Often]] = {}
    for row in counted.groupBy("w", "n", expr("x0 IS NULL AS missing")).count().collect():
        often.setdefault(row["w"], []).append(Often(row["n"], row["count"], row["missing"]))
    least = min(map(_least, often.values()), default=0)
    return Frequencies(often, dict(_heaviest(counted.where(f"n >= {least}"))))


def _least(often: Sequence[Often]) -> int:
    """How often the last of the heaviest comes up."""
    left = HEAVIEST
    for one in sorted(often, key=lambda one: -one.n):
        left -= 0 if one.missing else one.values
        if left <= 0:
            return one.n
    return 0


def _heaviest(counted: DataFrame) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The values that come up most, window by window; of those as frequent, the smallest first."""
    values = counted.where("x0 IS NOT NULL").selectExpr("w", "n", "CAST(x0 AS STRING) AS value")
    pair = "struct(-n AS less, value)"
    found = values.groupBy("w").agg(expr(f"min_by({pair}, {pair}, {HEAVIEST}) AS heavy"))
    for row in found.collect():
        yield row["w"], [{"value": one["value"], "rows": -one["less"]} for one in row["heavy"]]
