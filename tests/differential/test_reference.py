"""The reference itself, beside what a hand works out."""

import math
from decimal import Decimal

import pytest

from tests.bench.differential.case import Broken, Case, File, Query, Stream, Window
from tests.bench.differential.functions import FUNCTIONS, civil, days, fit
from tests.bench.differential.queries import call
from tests.bench.differential.reference import accounts, evaluate, results
from tests.bench.differential.terms import Aggregate, Column, Edge, Literal, sql

D = Decimal


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("+INTEGERINTEGER", [(2**31 - 1, "INT"), (1, "INT")], None),
        ("+INTEGERINTEGER", [(2**31 - 1, "INT"), (1, "BIGINT")], 2**31),
        ("+INTEGERINTEGER", [(127, "TINYINT"), (1, "TINYINT")], 128),
        ("negINTEGER", [(-(2**63), "BIGINT")], None),
        ("%INTEGERINTEGER", [(-7, "INT"), (3, "INT")], -1),
        ("%INTEGERINTEGER", [(-7, "INT"), (0, "INT")], None),
        ("/INTEGERINTEGER", [(1, "INT"), (4, "INT")], 0.25),
        ("*DECIMALDECIMAL", [(D("0.99"), "DECIMAL(2, 2)"), (D(10), "DECIMAL(2, 0)")], D("9.90")),
        ("*DECIMALDECIMAL", [(D(10**37), "DECIMAL(38, 0)"), (D(99), "DECIMAL(2, 0)")], None),
        ("roundDOUBLE", [(-2.5, "DOUBLE")], -3.0),
        ("roundDECIMAL", [(D("-0.5"), "DECIMAL(2, 1)")], D(-1)),
        ("floorDOUBLE", [(math.nan, "DOUBLE")], None),
        ("floorDOUBLE", [(-0.5, "DOUBLE")], -1),
        ("ceilDOUBLE", [(1e19, "DOUBLE")], None),
        ("=DOUBLEDOUBLE", [(math.nan, "DOUBLE"), (math.nan, "DOUBLE")], True),
        (">DOUBLEDOUBLE", [(math.nan, "DOUBLE"), (math.inf, "DOUBLE")], True),
        ("=DECIMALINTEGER", [(D("1.00"), "DECIMAL(3, 2)"), (1, "INT")], True),
        ("and", [(None, "BOOLEAN"), (False, "BOOLEAN")], False),
        ("and", [(None, "BOOLEAN"), (True, "BOOLEAN")], None),
        ("or", [(None, "BOOLEAN"), (True, "BOOLEAN")], True),
        ("inINTEGER", [(1, "INT"), (2, "INT"), (None, "INT")], None),
        ("inINTEGER", [(1, "INT"), (1, "INT"), (None, "INT")], True),
        ("betweenINTEGERINTEGER", [(1, "INT"), (2, "INT"), (None, "INT")], False),
        ("<=>STRINGSTRING", [(None, "STRING"), (None, "STRING")], True),
        ("trim", [("\u00a0 a ", "STRING")], "\u00a0 a"),
        ("length", [("👍🏽e\u0301", "STRING")], 4),
        ("substring", [("abc", "STRING"), (2, "INT"), (9, "INT")], "bc"),
        ("right", [("abc", "STRING"), (0, "INT")], ""),
        ("replace", [("abc", "STRING"), ("", "STRING"), ("x", "STRING")], "abc"),
        ("like", [("a\nb", "STRING"), ("a%b", "STRING")], True),
        ("like", [("ab", "STRING"), ("a__", "STRING")], False),
        ("<STRINGSTRING", [("\uffff", "STRING"), ("👍", "STRING")], True),
        ("casttextDECIMAL", [(D("-0.10"), "DECIMAL(2, 2)")], "-0.10"),
        ("castintTINYINT", [(128, "INT")], None),
        ("casttextDOUBLE", [(" 1e3 ", "STRING")], 1000.0),
        ("casttextDOUBLE", [("1_000", "STRING")], None),
        ("casttextDECIMAL(5, 2)", [("1.005", "STRING")], D("1.01")),
        ("casttextDECIMAL(5, 2)", [("999.995", "STRING")], None),
        ("castdate", [(-1, "TIMESTAMP")], -1),
        ("hour", [(-1, "TIMESTAMP")], 23),
        ("yearDATE", [(-719_162, "DATE")], 1),
        ("truncWEEK", [(0, "TIMESTAMP")], -3 * 86_400_000_000),
        ("truncQUARTER", [(-1, "TIMESTAMP")], -92 * 86_400_000_000),
        ("greatestDOUBLE", [(math.inf, "DOUBLE"), (None, "FLOAT"), (1.0, "FLOAT")], math.inf),
    ],
)
def test_a_function(name, arguments, expected):
    made = call(name, *(Literal(value, kind) for value, kind in arguments))
    assert made is not None
    assert evaluate(made, {}) == expected


def test_the_calendar_of_all_times():
    assert [civil(day) for day in (-719_162, -1, 0, 11_016, 2_932_896)] == [
        (1, 1, 1), (1969, 12, 31), (1970, 1, 1), (2000, 2, 29), (9999, 12, 31),
    ]  # fmt: skip
    assert days(2000, 3) == 11_017


def test_every_function_has_a_text():
    for function in FUNCTIONS.values():
        assert function.text(["x"] * len(function.takes), "INT")


# --- a job by hand -------------------------------------------------------------------------------

S = Stream("s", (("k", "INT"), ("t", "TIMESTAMP")), "t", 2, 10, "parquet", "s", 1)
R = Stream("r", (("t", "TIMESTAMP"), ("x", "DECIMAL(3, 1)")), "t", 0, 10, "parquet", "r", 1)


def file(stream: Stream, *rows: object) -> File:
    return File(stream.name, "f", "pyarrow", rows)  # type: ignore[arg-type]


def job(query: Query, *files: File) -> Case:
    streams = tuple(dict.fromkeys(stream for _, stream in query.inputs))
    return Case(0, streams, files, query, None, 1, 1, clock=100)


K, T, X = Column("a", "k", "INT"), Column("a", "t", "TIMESTAMP"), Column("b", "x", "DECIMAL(3, 1)")


def test_rows_are_in_time_late_or_rejected():
    query = Query((("a", S),), (), {}, {}, None, (("o", K),))
    first = file(S, (1, 20), (2, 10), (3, 111), (4, None), Broken("x"))
    made = accounts(job(query, first, file(S, (5, 17), (6, 18), (7, 110)), file(S, (8, 107))))
    assert [k for k, _ in made.streams["s"].accepted] == [1, 2, 6, 7]
    assert made.streams["s"].late == [(5, 17), (8, 107)]
    assert made.streams["s"].rejected == [(3, 111), (4, None), Broken("x")]
    assert made.watermark == 108


def test_tuples_meet_within_their_windows():
    """b at most 3 older than a, and not newer; a join with nothing else in common."""
    query = Query(
        (("a", S), ("b", R)), (), {("a", "b"): 3, ("b", "a"): 0}, {}, None, (("k", K), ("x", X))
    )
    case = job(query, file(S, (1, 10), (2, 13), (3, 14)), file(R, (10, D("0.5"))))
    assert results(case, accounts(case)) == [(1, D("0.5")), (2, D("0.5"))]
    start, _, where = query.sql.partition(" WHERE ")
    assert start == "SELECT `a`.`k` AS `k`, `b`.`x` AS `x` FROM `s` AS `a`, `r` AS `b`"
    assert where == (
        "`a`.`t` <= `b`.`t` + INTERVAL 3 MICROSECONDS AND `a`.`t` + INTERVAL 0 DAYS >= `b`.`t`"
    )


def test_windows_that_the_watermark_has_passed():
    """Windows of 4 that begin every 2; the watermark is 9."""
    total = Aggregate("sum", K, None, "BIGINT")
    output = (("s", Edge("start")), ("n", total))
    query = Query((("a", S),), (), {}, {}, None, output, (), Window("a", 4, 2))
    case = job(query, file(S, (1, 1), (10, 4), (100, 11), (None, 5)))
    assert results(case, accounts(case)) == [(-2, 1), (0, 1), (2, 10), (4, 10)]
    assert sql(total) == "sum(`a`.`k`)"
    assert "GROUP BY window(`a`.`t`, '4 MICROSECONDS', '2 MICROSECONDS')" in query.sql


def test_exact_sums_that_do_not_fit_are_null():
    whole = Column("a", "d", "DECIMAL(38, 0)")
    stream = Stream(
        "s", (("d", "DECIMAL(38, 0)"), ("t", "TIMESTAMP")), "t", 0, 10, "parquet", "s", 1
    )
    total = Aggregate("sum", whole, None, "DECIMAL(38, 0)")
    query = Query((("a", stream),), (), {}, {}, None, (("n", total),), (), Window("a", 4, 4))
    big = D(10**38 - 1)
    rows = ((big, 1), (D(1), 2), (big, 5), (D(-1), 6), (D(1), 7), (D(0), 50))
    case = job(query, file(stream, *rows))
    assert results(case, accounts(case)) == [(None,), (big,)]


def test_a_zero_of_decimals_has_no_sign():
    assert str(fit(D("-0.00"), "DECIMAL(3, 2)")) == "0.00"
