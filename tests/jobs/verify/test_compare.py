"""The comparison, held to bugs planted in results, and its tests to bugs planted in it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import inf, nan
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from jobs.verify import compare as comparing
from jobs.verify import near
from jobs.verify.compare import Shape, compare
from jobs.verify.expected import column, reach
from jobs.verify.near import ABSOLUTE, RELATIVE, Counts, Row, close

Rows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """Rows that should be there, those that are, and what to say of them."""

    expected: Rows
    actual: Rows
    missing: int = 0
    duplicate: int = 0
    wrong: int = 0
    near: tuple[int, ...] = ()
    reaches: tuple[float, ...] = ()
    """What was added up for the computed doubles, in every expected row."""

    @property
    def counts(self) -> Counts:
        return Counts(self.missing, self.duplicate, self.wrong)


SOME = [(i, f"s{i % 3}", i / 4) for i in range(6)]
BIG = 1e300

CASES: dict[str, Case] = {
    "the same in another order": Case(SOME, SOME[::-1]),
    "nothing at all": Case([], []),
    "all lost": Case(SOME, [], missing=6),
    "all made up": Case([], SOME, wrong=6),
    "one lost": Case(SOME, SOME[1:], missing=1),
    "one twice": Case(SOME, [*SOME, SOME[0]], duplicate=1),
    "one that is twice lost once": Case([*SOME, SOME[0]], SOME, missing=1),
    "one wrong": Case(SOME, [*SOME[1:], (0, "s1", 0.0)], missing=1, wrong=1),
    "the last column wrong": Case(SOME, [*SOME[1:], (0, "s0", 0.25)], missing=1, wrong=1),
    "null for a value": Case(SOME, [*SOME[1:], (0, None, 0.0)], missing=1, wrong=1),
    "nulls": Case([(None, None)] * 2, [(None, None)] * 2),
    "values of two rows swapped": Case(
        [(1, 1.0), (2, 2.0)], [(1, 2.0), (2, 1.0)], missing=2, wrong=2, near=(1,)
    ),
    "computed doubles of two rows swapped": Case(
        [(1, 1.0, 5.0), (1, 2.0, 6.0)], [(1, 1.0, 6.0), (1, 2.0, 5.0)],
        missing=2, wrong=2, near=(1, 2),
    ),
    "carried doubles are exact": Case([(1.0,)], [(1.0 + 1e-12,)], missing=1, wrong=1),
    "last digits": Case([(1, 1.0)], [(1, 1.0 + 1e-12)], near=(1,)),
    "more than last digits": Case([(1, 1.0)], [(1, 1.0 + 1e-6)], missing=1, wrong=1, near=(1,)),
    "near, and one more": Case([(1, 1.0)], [(1, 1.0 + 1e-12)] * 2, duplicate=1, near=(1,)),
    "near, and one less": Case([(1, 1.0)] * 2, [(1, 1.0 + 1e-12)], missing=1, near=(1,)),
    "a sum near zero": Case([(1, 1e-17)], [(1, -3e-17)], near=(1,), reaches=(1.0,)),
    "a sum near zero of small values": Case(
        [(1, 1e-17)], [(1, -3e-17)], missing=1, wrong=1, near=(1,), reaches=(1e-8,)
    ),
    "a sum of large values that is not zero": Case(
        [(1, 0.0)], [(1, 1e-3)], missing=1, wrong=1, near=(1,), reaches=(1e6,)
    ),
    "infinity for a large value": Case([(1, BIG)], [(1, inf)], missing=1, wrong=1, near=(1,)),
    "a large value for infinity": Case([(1, inf)], [(1, BIG)], missing=1, wrong=1, near=(1,)),
    "the other infinity": Case([(1, inf)], [(1, -inf)], missing=1, wrong=1, near=(1,)),
    "infinite and not a number": Case([(inf,), (nan,)], [(nan,), (inf,)], near=(0,)),
    "what was added up was infinite": Case(
        [(1, 1.0)], [(1, 2.0)], missing=1, wrong=1, near=(1,), reaches=(inf,)
    ),
    "zero for not a number": Case([(nan,)], [(0.0,)], missing=1, wrong=1, near=(0,)),
    "null for not a number": Case([(nan,)], [(None,)], missing=1, wrong=1, near=(0,)),
    "null computed": Case([(1, None)], [(1, None)], near=(1,)),
    "zero for null": Case([(1, None)], [(1, 0.0)], missing=1, wrong=1, near=(1,)),
    "zeros of both signs": Case([(0.0,), (-0.0,)], [(-0.0,), (0.0,)]),
    "zeros of both signs, computed": Case([(0.0, 1)], [(-0.0, 1)], near=(0,)),
    "bytes": Case([(b"\x00a",)], [(b"\x00b",)], missing=1, wrong=1),
    "only doubles": Case([(1.0,), (2.0,)], [(2.0 + 1e-13,), (1.0 - 1e-13,)], near=(0,)),
    # Sorted by the first double, the rows of this pair stand crosswise.
    "crosswise within the tolerance": Case(
        [(1, 1.0, 5.0), (1, 1.0 + 1e-12, 7.0)], [(1, 1.0, 7.0), (1, 1.0 + 1e-12, 5.0)],
        near=(1, 2),
    ),
    # The middle row may be either of two: whoever takes it first leaves another without.
    "a chain": Case(
        [(0.9e-12,), (0.0,)], [(0.9e-12,), (1.8e-12,)], near=(0,), reaches=(1.0,)
    ),
    "one more near and one wrong": Case(
        [(1, 1.0), (1, 9.0)], [(1, 1.0 + 1e-12), (1, 1.0 - 1e-12), (1, 9.0), (1, 4.0)],
        duplicate=1, wrong=1, near=(1,),
    ),
    "one more near in another group": Case(
        [(1, 1.0), (2, 1.0)], [(1, 1.0 + 1e-12), (1, 1.0), (2, 1.0)], duplicate=1, near=(1,)
    ),
}  # fmt: skip


DUCK = duckdb.connect(config={"threads": 1})


def found(case: Case) -> Counts:
    width = len((*case.expected, *case.actual)[0])
    reaches = case.near[: len(case.reaches)]
    kinds = [
        pa.array([row[i] for row in (*case.expected, *case.actual)]).type for i in range(width)
    ]
    for table, rows in (("@expected", case.expected), ("@actual", case.actual)):
        columns = {column(i): pa.array([r[i] for r in rows], kinds[i]) for i in range(width)}
        for i, added in zip(reaches, case.reaches, strict=True):
            columns[reach(i)] = pa.array([added] * len(rows), pa.float64())
        DUCK.register("rows", pa.table({name.strip('"'): c for name, c in columns.items()}))
        DUCK.execute(f'CREATE OR REPLACE TABLE "{table}" AS FROM rows')
    return compare(DUCK, Shape(width, case.near, reaches))


def told(case: Case) -> bool:
    return not (case.expected or case.actual) or found(case) == case.counts


@pytest.mark.parametrize("name", CASES)
def test_planted(name: str):
    case = CASES[name]
    if case.expected or case.actual:
        assert found(case) == case.counts


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].near])
def test_planted_in_a_large_group(name: str):
    """Among more rows than are matched with each other, which share all exact values."""
    case = CASES[name]
    first = (case.expected or case.actual)[0]
    others = [
        tuple(i * 1e9 if c in case.near else value for c, value in enumerate(first))
        for i in range(1, comparing.GROUP)
    ]
    large = Case([*others, *case.expected], [*others, *case.actual], *(
        case.missing, case.duplicate, case.wrong), case.near, case.reaches)  # fmt: skip
    if name != "a chain":  # there is no more than a greedy pairing then
        assert found(large) == case.counts


# --- bugs planted in the judge -------------------------------------------------------------------


def _greedy(partners: Sequence[Sequence[int]]) -> dict[int, int]:
    paired: dict[int, int] = {}
    for left, choices in enumerate(partners):
        free = [right for right in choices if right not in paired]
        if free:
            paired[free[0]] = left
    return paired


def _loose(one: float | None, other: float | None, reached: float = 0.0) -> bool:
    return one == other or abs((one or 0) - (other or 0)) <= RELATIVE * max(
        abs(one or 0), abs(other or 0)
    )


def _nth(one: Row, other: Row) -> bool:
    return close(one.values[0], other.values[0], one.reaches[0])


MUTANTS: dict[str, tuple[tuple[Any, str, Any], ...]] = {
    "a tolerance of a thousandth": (
        (near, "RELATIVE", 1e-3), (comparing, "RELATIVE", 1e-3),
    ),
    "no relative tolerance": ((near, "RELATIVE", 0.0), (comparing, "RELATIVE", 0.0)),
    "no absolute tolerance": ((near, "ABSOLUTE", 0.0), (comparing, "ABSOLUTE", 0.0)),
    "an absolute tolerance of a thousandth": (
        (near, "ABSOLUTE", 1e-3), (comparing, "ABSOLUTE", 1e-3),
    ),
    "the last column is not looked at": (
        (Shape, "columns", property(lambda s: [column(i) for i in range(max(1, s.width - 1))])),
    ),
    "the first column is not looked at": (
        (Shape, "columns", property(lambda s: [column(i) for i in range(1, s.width)] or ['"@0"'])),
    ),
    "nothing has to be exact": ((Shape, "exact", property(lambda _: [])),),
    "whoever comes first takes what it likes": ((near, "matched", _greedy),),
    "infinities and nulls are numbers like others": ((near, "close", _loose),),
    "only the first double is looked at": ((near, "same", _nth),),
    "every double is as good as another": ((near, "close", lambda *_: True),),
    "nobody is like anybody": ((near, "close", lambda *_: False),),
    "what is left is not looked at": ((comparing, "_by_group", lambda *_: []),),
    "what is left over is not counted": ((comparing, "count", lambda *_: Counts()),),
    "n-th rows are paired whatever they are": ((comparing, "_near", lambda *_: "TRUE"),),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_a_bug_in_the_comparison_is_found(name: str, monkeypatch: pytest.MonkeyPatch):
    for owner, attribute, instead in MUTANTS[name]:
        monkeypatch.setattr(owner, attribute, instead)
    assert not all(_survives(case) for case in CASES.values())


def _survives(case: Case) -> bool:
    try:
        return told(case)
    except duckdb.Error:
        return False


# --- pairs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_as_many_pairs_as_there_can_be(seed: int):
    """Against every way to pair a few rows."""
    r = Random(seed)
    step = 0.7 * ABSOLUTE

    def rows(count: int) -> list[Row]:
        return [
            Row(tuple(r.randrange(5) * step for _ in range(2)), (1.0, 1.0)) for _ in range(count)
        ]

    expected, actual = rows(r.randrange(6)), rows(r.randrange(6))
    most = _most(expected, actual)
    counted = near.count(expected, actual)
    assert counted.missing == len(expected) - most
    assert counted.duplicate + counted.wrong == len(actual) - most


def _most(expected: Sequence[Row], actual: Sequence[Row]) -> int:
    few, many = sorted((expected, actual), key=len)
    fits: Callable[[Row, Row], bool] = lambda one, other: all(  # noqa: E731
        abs((x or 0) - (y or 0)) <= ABSOLUTE for x, y in zip(one.values, other.values, strict=True)
    )
    return max((sum(map(fits, few, chosen)) for chosen in permutations(many, len(few))), default=0)
