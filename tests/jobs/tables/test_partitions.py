"""Few files a batch, none of which outlives its rows by more than must be."""

from itertools import combinations
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as some

from jobs.tables import partitions
from jobs.tables.columns import UNTIL
from jobs.tables.partitions import MOST_FILES, SMALL, Partitioning, Widths, mergeable, parted
from jobs.tables.store import DataFile
from optimizer.plan import GroupBy, Join, build, parse, walk
from optimizer.window import MICROSECONDS, everywhere
from tests.optimizer.builders import counts, joined

WIDTH = 10
FAR = 250_000_000_000_000_000
"""Microseconds from 1970 to the last year that there may be, about."""

untils = some.lists(some.integers(-400, 400) | some.integers(-FAR, FAR), min_size=1, max_size=40)


def rows(*values: int) -> pa.Table:
    return pa.table({UNTIL: pa.array(values, pa.int64()), "n": range(len(values))})


def files_of(values: list[int], by: Partitioning) -> list[tuple[int, list[int]]]:
    return [(until, own.column(UNTIL).to_pylist()) for until, own in parted(rows(*values), by)]


@given(untils, some.integers(1, 50))
def test_each_row_is_in_one_file_that_outlives_it(values: list[int], width: int):
    found = files_of(values, Partitioning(width))
    assert sorted(value for _, own in found for value in own) == sorted(values)
    assert len(found) <= MOST_FILES
    for until, own in found:
        assert max(own) <= until
    ends = [until for until, _ in found]
    assert ends == sorted(set(ends))


@given(untils, some.integers(-400, 400))
def test_what_is_overdue_is_apart(values: list[int], cutoff: int):
    found = dict(files_of(values, Partitioning(WIDTH, cutoff)))
    overdue = [value for value in values if value <= cutoff]
    assert sorted(found.pop(cutoff, [])) == sorted(overdue)
    assert all(until > cutoff for until in found)
    assert len(found) <= MOST_FILES


@given(some.lists(some.integers(0, 150), min_size=1, max_size=40))
def test_no_other_cuts_keep_rows_for_a_shorter_time(values: list[int]):
    """Against all ways to cut the cells into so many files; one more is not worth its price."""
    cells = sorted({-(-value // WIDTH) * WIDTH for value in values})
    cell_of = [-(-value // WIDTH) * WIDTH for value in values]

    def waste(last: tuple[int, ...]) -> int:
        return sum(min(end for end in last if end >= cell) - cell for cell in cell_of)

    def least(files: int) -> int:
        return min(waste((*cut, cells[-1])) for cut in combinations(cells[:-1], files - 1))

    enough = len(values) * WIDTH / 4
    fine = [n for n in range(1, min(MOST_FILES, len(cells)) + 1) if least(n) <= enough]
    found = tuple(until for until, _ in files_of(values, Partitioning(WIDTH)))
    assert len(found) == (fine[0] if fine else MOST_FILES)
    assert waste(found) == least(len(found))


def test_a_tuple_far_ahead_has_a_file_of_its_own():
    """It must not keep the others."""
    crowd = list(range(1, 101))
    found = files_of([*crowd, 3_600_000], Partitioning(WIDTH))
    assert found[-1] == (3_600_000, [3_600_000])
    assert found[-2][0] == 100


def test_a_batch_of_years_is_in_few_files():
    found = files_of(list(range(0, 10_000_000, 100)), Partitioning(WIDTH))
    assert len(found) == MOST_FILES
    assert [len(own) for _, own in found] == pytest.approx([33_333] * 3, rel=0.05)


@pytest.mark.parametrize("span", [7, 100, 310, 500, 990, 1_700, 10_000])
def test_few_rows_are_kept_beyond_their_time(span: int):
    """However long batches are beside the 1,000 for which rows are kept.

    Rows come up to 20 late, and the watermark is where the youngest of them is.
    """
    random, life = Random(span), 1_000
    kept: list[tuple[int, list[int]]] = []
    overdue = needed = 0
    for batch in range(max(20, 5 * life // span)):
        times = [
            batch * span + random.randrange(span) - random.randrange(20)
            for _ in range(max(10, min(span, 500)))
        ]
        cutoff = max(times) - 20 - life
        made = files_of(times, Partitioning(life // 16, cutoff, span))
        kept = [(until, own) for until, own in [*kept, *made] if until > cutoff]
        old = sum(time <= cutoff for _, own in kept for time in own)
        overdue, needed = overdue + old, needed + sum(len(own) for _, own in kept) - old
    assert overdue < 0.1 * (overdue + needed)


# --- widths --------------------------------------------------------------------------------------


def test_a_state_has_some_partitions_whatever_its_window():
    query = joined("abc", [("a", "b"), ("b", "c")], everywhere("abc", 3600 * MICROSECONDS))
    parts = [
        part
        for node in walk(build(query, parse("((a b) c)")).root)
        if isinstance(node, Join)
        for part in node.parts
    ]
    assert {Widths().of(part, 3600 * MICROSECONDS) for part in parts} == {225 * MICROSECONDS}
    assert Widths().of(parts[0], 0) == 1


def test_the_job_may_say_the_width():
    widths = Widths({"a": 60, "b": 70})
    plan = build(joined("abc", [("a", "b"), ("b", "c")]), parse("((a b) c)"))
    found = {
        "".join(sorted(part.aliases)): widths.of(part, 1600)
        for node in walk(plan.root)
        if isinstance(node, Join)
        for part in node.parts
    }
    assert found == {"a": 60, "b": 70, "c": 100, "ab": 70}


def test_a_width_beyond_all_times_is_as_good_as_any():
    plan = build(joined("ab", [("a", "b")]), parse("(a b)"))
    part = next(node for node in walk(plan.root) if isinstance(node, Join)).parts[0]
    given = 86_400 * MICROSECONDS * 999_999_999
    for widths, kept in ((Widths({"a": given, "b": given}), 10), (Widths(), 16 * given)):
        by = Partitioning(widths.of(part, kept), cutoff=-FAR, step=FAR)
        assert len(files_of([-FAR + 1, 0, FAR], by)) <= MOST_FILES


def test_panes_are_kept_for_their_window_too():
    grouping = counts("a.k")
    plan = build(joined("ab", [("a", "b")], grouping=grouping), parse("(a b)"))
    (group,) = (node for node in walk(plan.root) if isinstance(node, GroupBy))
    assert Widths().of(group, 1600) == (1600 + grouping.size) // 16


# --- merging -------------------------------------------------------------------------------------


def file(name: str, count: int, until: int) -> DataFile:
    return DataFile(name, count, count, until)


def merged(*given_: DataFile, most: int = 4, closed: int | None = None) -> set[str]:
    return {one.path for one in mergeable(given_, WIDTH, most, closed)}


def test_small_files_wait_until_there_are_many():
    few = [file(str(n), 10, 20) for n in range(4)]
    assert merged(*few) == set()
    assert merged(*few, file("4", 10, 20)) == {"0", "1", "2", "3", "4"}


def test_of_a_partition_that_gets_no_more_rows_none_is_small():
    few = [file("a", 10, 20), file("b", 10, 15)]
    assert merged(*few, closed=19) == set()
    assert merged(*few, closed=20) == {"a", "b"}
    assert merged(file("a", 10, 20), closed=20) == set()
    beside = [file("a", 10, 20), file("large", 9 * SMALL, 20), file("less", 2 * SMALL, 20)]
    assert merged(*beside, closed=20) == {"a", "less"}


def test_partitions_are_not_merged():
    apart = [file(str(until), 10, until) for until in range(10, 110, 10)]
    assert merged(*apart, most=1, closed=1000) == set()


def test_older_narrower_partitions_are_brought_along():
    narrow = [file(str(until), 10, until) for until in range(11, 21)]
    assert merged(*narrow) == {str(until) for until in range(11, 21)}


def test_large_files_are_merged_with_those_of_their_size():
    """So that no row is written again and again."""
    large = [file(f"l{n}", 100 * SMALL, 20) for n in range(5)]
    less = [file(f"s{n}", 2 * SMALL, 20) for n in range(4)]
    assert merged(*large, *less) == {f"l{n}" for n in range(5)}
    assert merged(*large[:4], *less) == set()


def test_ends_are_exact_far_from_1970():
    values = np.array([-FAR, -11, -10, -1, 0, 1, 10, 11, FAR + 3], dtype=np.int64)
    assert partitions.ceiling(values, 10).tolist() == [
        -(-int(value) // 10) * 10 for value in values
    ]
