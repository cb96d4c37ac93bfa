"""Which rows of a state share a file: those that are overdue at about the same time.

A file is given up as a whole, once its youngest row is overdue.  So rows of one file should be of
about the same time; yet a batch makes few files, whatever span of time it holds.  Where it is cut
is chosen from its rows.  Files that are there stay as they are, and are merged by and by.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from math import log

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jobs.tables.columns import UNTIL
from jobs.tables.store import DataFile, Store
from optimizer.plan import GroupBy, Node, Source, walk

MOST_FILES = 3
"""That a batch adds to a state."""

SMALL = 1_000
"""Rows; a file with fewer is merged with others of its partition."""

_SHARES = 16
"""Partitions of a state, about: few rows are kept much longer than they are needed."""

_WIDEST = 2**58
"""Microseconds: all event times that there may be lie in two partitions."""

_MOST_CELLS = 64
"""Ranges of time that are told apart in one batch."""

_GROWTH = 16
"""How many times as many rows the files of the next size have."""

Untils = NDArray[np.int64]


@dataclass(frozen=True)
class Partitioning:
    """How the rows of a batch are divided among files."""

    width: int
    """The least range of event time of a partition, in microseconds."""
    cutoff: int | None = None
    """Rows whose `@until` is no younger are overdue as soon as the batch is done."""
    step: int = 0
    """How much later the cutoff is with every batch, as far as can be told."""


@dataclass(frozen=True)
class Widths:
    """The widths of the partitions of a job's states."""

    given: Mapping[str, int] = field(default_factory=dict)
    """By stream, where the job file says so; in microseconds."""

    def of(self, node: Node, retention: int) -> int:
        """The least width for an operator's rows: a share of the time for which they are kept."""
        streams = [n.stream.name for n in walk(node) if isinstance(n, Source)]
        if given := [self.given[name] for name in streams if name in self.given]:
            return min(max(given), _WIDEST)
        span = node.grouping.size if isinstance(node, GroupBy) else 0
        return min(max(1, (retention + span) // _SHARES), _WIDEST)


# --- writing -------------------------------------------------------------------------------------


def put_partitions(
    store: Store,
    table: str,
    rows: pa.Table,
    by: Partitioning | None,
    each: Callable[..., Iterable[DataFile]] = map,
    *,
    overdue: bool = True,
) -> list[DataFile]:
    """Write rows to a file, or to one for each partition; `each` may write several side by side.

    `overdue`: also those that are; else they are listed as a file that is nowhere.
    """
    if rows.num_rows == 0:
        return []
    if by is None:
        return [store.put(table, rows)]

    def put(part: tuple[int, pa.Table]) -> DataFile:
        until, own = part
        if until == by.cutoff and not overdue:
            return DataFile("", own.num_rows, 0, until)
        return store.put(table, own, until)

    return list(each(put, list(parted(rows, by))))


def parted(rows: pa.Table, by: Partitioning) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each partition, and its `@until`; those that are overdue are one of their own."""
    untils = rows.column(UNTIL).to_numpy()
    alive = untils > by.cutoff if by.cutoff is not None else np.full(len(untils), fill_value=True)
    if by.cutoff is not None and not alive.all():
        yield by.cutoff, rows.filter(pa.array(~alive))
        rows, untils = rows.filter(pa.array(alive)), untils[alive]
    if rows.num_rows == 0:
        return
    ends, counts, cell_of = _cells(untils, by)
    last = _last_cells(_gone(ends, by), counts, enough=by.width / 4)
    for first, cell in zip([0, *(end + 1 for end in last)], last, strict=False):
        mine = (cell_of >= first) & (cell_of <= cell)
        yield int(ends[cell]), rows if mine.all() else rows.filter(pa.array(mine))


def _cells(untils: Untils, by: Partitioning) -> tuple[Untils, NDArray[np.int64], NDArray[np.int64]]:
    """The ends of the ranges of time that rows lie in, how many are in each, and each row's.

    If the cutoffs to come are wider apart, they lie in the middle of a range: they need not come
    to the microsecond.
    """
    width = by.width
    phase = (by.cutoff or 0) - width // 2 if by.step > width else 0
    while True:
        found = np.unique(
            ceiling(untils - phase, width) + phase, return_counts=True, return_inverse=True
        )
        ends, cell_of, counts = found
        if len(ends) <= _MOST_CELLS:
            return ends, counts, cell_of
        width *= 2


def ceiling(untils: Untils, width: int) -> Untils:
    """Rounded up to multiples."""
    return -(-untils // width) * width


def _gone(ends: Untils, by: Partitioning) -> NDArray[np.float64]:
    """When a file that ends there will be given up, from any time on: with one of the batches."""
    since = (ends - (by.cutoff or 0)).astype(np.float64)
    if by.cutoff is None or by.step <= 0:
        return since
    return np.ceil((since + by.width // 4) / by.step) * by.step + since / _MOST_CELLS


def _last_cells(gone: NDArray[np.float64], counts: NDArray[np.int64], enough: float) -> list[int]:
    """The last cell of each file: so that rows outlive their own cell by as little as can be.

    A file has its price: there is none more once rows outlive it by no more than `enough`, on
    average.
    """
    cells = len(gone)
    end = gone - gone[0]
    rows = np.concatenate([[0], np.cumsum(counts)]).astype(np.float64)
    time = np.concatenate([[0], np.cumsum(counts * end)])
    # kept[i, j]: for how long rows of the cells from i to j are kept as those of j are
    kept = end[None, :] * (rows[None, 1:] - rows[:-1, None]) - (time[None, 1:] - time[:-1, None])
    last: list[int] = []
    for files in range(1, min(MOST_FILES, cells) + 1):
        cuts = _cuts(cells, files)
        total = kept[cuts[:, :-1] + 1, cuts[:, 1:]].sum(axis=1)
        best = int(np.argmin(total))
        last = cuts[best, 1:].tolist()
        if total[best] <= enough * rows[-1]:
            break
    return last


@lru_cache(maxsize=MOST_FILES * _MOST_CELLS)
def _cuts(cells: int, files: int) -> NDArray[np.intp]:
    """All ways to divide cells among files: the last cell of each, behind one that there is not."""
    inner = list(combinations(range(cells - 1), files - 1))
    return np.array([(-1, *cuts, cells - 1) for cuts in inner], np.intp)


# --- merging -------------------------------------------------------------------------------------


def mergeable(
    files: Sequence[DataFile], width: int, most: int, closed: int | None = None, small: int = SMALL
) -> list[DataFile]:
    """Files of one partition that are to be one, if there are any.

    `most` alike are left alone while rows come in; of partitions that end before `closed`, no
    small one is.
    """
    partitions: dict[int, list[DataFile]] = {}
    for file in files:
        if file.until is not None:
            partitions.setdefault(-(-file.until // width), []).append(file)
    for number, found in sorted(partitions.items()):
        is_closed = closed is not None and number * width <= closed
        if len(chosen := _alike(found, 0 if is_closed else most, most, small)) > 1:
            return chosen
    return []


def _alike(files: Sequence[DataFile], few: int, most: int, small: int) -> list[DataFile]:
    """The small files of a partition, if there are more than a few, or those of another size."""
    lesser = [file for file in files if file.rows < small]
    others = [file for file in files if file.rows >= small]
    if len(lesser) > few:
        is_enough = sum(file.rows for file in lesser) >= small
        return lesser if is_enough else [*lesser, *sorted(others, key=lambda f: f.rows)[:1]]
    sizes = {file.path: int(log(file.rows / small, _GROWTH)) for file in others}
    size, count = max(Counter(sizes.values()).items(), key=lambda item: item[1], default=(0, 0))
    return [file for file in others if sizes[file.path] == size] if count > most else []
