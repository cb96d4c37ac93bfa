"""The inner loops of jtree-finder, compiled: partitions of a subset, probe orders, Pareto fronts.

A front's points stand in arrays, the least CPU first and so the most memory first; a point knows
the blocks of the partition that it came from and which point of each block's own front it took.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from optimizer.search.jtree_finder.tables import Floats, Tables

Ints = NDArray[np.int64]

EQUAL = 1e-12
"""Points that differ by less, relatively, differ by rounding only."""


class Pool(NamedTuple):
    """The fronts of all subsets, one behind the other."""

    first: Ints
    """By subset: where its front begins."""
    points: Ints
    """By subset: how many points it has."""
    cpu: Floats
    memory: Floats
    blocks: NDArray[np.int32]
    picks: NDArray[np.int32]


class Front(NamedTuple):
    """A front that grows: `row` says where in `blocks` and `picks` a point's origin is written."""

    cpu: Floats
    memory: Floats
    row: Ints
    blocks: NDArray[np.int32]
    picks: NDArray[np.int32]
    used: Ints
    """How many points there are, and how many rows are written."""


class Scratch(NamedTuple):
    """By set of blocks: what has reached it, what it costs from there, and its streams."""

    flow: Floats
    still: Floats
    union: Ints


class Fronts:
    """The Pareto fronts of all subsets, grown one subset after the other."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        n = tables.full.bit_length()
        self._pool = _pool(tables.full + 1, 4 * (tables.full + 1), n)
        self._used = 0
        for i in range(n):
            self._add(1 << i, tables.leaf_cpu[[1 << i]], np.zeros(1), _rows(1, n), _rows(1, n))

    def grow(self, mask: int, limit: int) -> Iterator[int]:
        """Fill the subset's front; yields how many partitions were examined, every so often."""
        front, first = _front(64, self._tables.full.bit_length()), mask
        while first:
            front, first, examined = _grow(mask, first, limit, front, self._pool, self._tables)
            yield int(examined)
        points, _ = front.used
        rows = front.row[:points]
        self._add(
            mask, front.cpu[:points], front.memory[:points], front.blocks[rows], front.picks[rows]
        )

    def count(self, mask: int) -> int:
        """How many points a subset's front has."""
        return int(self._pool.points[mask])

    def blocks(self, mask: int, point: int) -> list[tuple[int, int]]:
        """The partition that a point came from, and the point of each block's front."""
        row = int(self._pool.first[mask]) + point
        pairs = zip(self._pool.blocks[row], self._pool.picks[row], strict=True)
        return [(int(block), int(pick)) for block, pick in pairs if block]

    def _add(self, mask: int, cpu: Floats, memory: Floats, *origins: NDArray[np.int32]) -> None:
        begin, end = self._used, self._used + len(cpu)
        if end > len(self._pool.cpu):
            self._pool = _grown(self._pool, 2 * end)
        pool = self._pool
        pool.first[mask], pool.points[mask] = begin, len(cpu)
        pool.cpu[begin:end], pool.memory[begin:end] = cpu, memory
        pool.blocks[begin:end], pool.picks[begin:end] = origins
        self._used = end


def _rows(count: int, n: int) -> NDArray[np.int32]:
    return np.zeros((count, n), dtype=np.int32)


def _pool(subsets: int, points: int, n: int) -> Pool:
    first, count = np.zeros(subsets, dtype=np.int64), np.zeros(subsets, dtype=np.int64)
    return Pool(
        first, count, np.zeros(points), np.zeros(points), _rows(points, n), _rows(points, n)
    )


def _grown(pool: Pool, points: int) -> Pool:
    """The same with room for more."""
    larger = _pool(len(pool.first), points, pool.blocks.shape[1])
    arrays: Iterable[tuple[NDArray[Any], NDArray[Any]]] = zip(pool, larger, strict=True)
    for old, new in arrays:
        new[: len(old)] = old
    return larger


def _front(points: int, n: int) -> Front:
    row = np.zeros(points, dtype=np.int64)
    used = np.zeros(2, dtype=np.int64)
    return Front(np.zeros(points), np.zeros(points), row, _rows(points, n), _rows(points, n), used)


# --- compiled ------------------------------------------------------------------------------------


@njit(cache=True)
def _grow(
    mask: int, first: int, limit: int, front: Front, pool: Pool, tables: Tables
) -> tuple[Front, int, int]:
    """Examine partitions of the subset: those whose first block is `first`, or comes after it.

    A block is taken off together with the lowest stream that is left, so each partition comes once;
    the largest block first, so that the front is soon good enough to rule out most of the others.
    Returns the front, the first block to go on with (0: none), and how many were examined.
    """
    n = pool.blocks.shape[1]
    left, untried = np.zeros(n + 1, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
    cpu, memory = np.zeros(n + 1), np.zeros(n + 1)
    chosen = np.zeros(n, dtype=np.int64)
    scratch = Scratch(np.zeros(1 << n), np.zeros(1 << n), np.zeros(1 << n, dtype=np.int64))
    limits = _limits(mask, tables)
    examined, level = 0, 0
    left[0], untried[0], cpu[0] = mask, first, tables.result * tables.rate[mask]
    while level >= 0:
        block = untried[level]
        if block == 0:
            level -= 1
            continue
        if level == 0 and examined >= limit:
            return front, block, examined
        rest = left[level] ^ block
        untried[level] = _next(block, left[level])
        if block == mask or pool.points[block] == 0:
            continue
        cpu[level + 1] = cpu[level] + tables.keep[block] + tables.probing[block]
        cpu[level + 1] += pool.cpu[pool.first[block]]
        memory[level + 1] = memory[level] + tables.memory[block]
        memory[level + 1] += pool.memory[pool.first[block] + pool.points[block] - 1]
        least_cpu = cpu[level + 1] + tables.rest_cpu[rest]
        least_memory = memory[level + 1] + tables.rest_memory[rest]
        if least_cpu > limits[0] or least_memory > limits[1]:
            continue
        if _beaten(front.cpu, front.memory, front.used[0], least_cpu, least_memory):
            continue
        chosen[level] = block
        if rest:
            level += 1
            left[level], untried[level] = rest, rest
        else:
            examined += 1
            front = _take(chosen[: level + 1], limits, front, pool, tables, scratch)
    return front, 0, examined


@njit(cache=True)
def _next(block: int, left: int) -> int:
    """The next smaller block with the same lowest stream, out of those left; 0 after the last."""
    low = left & -left
    if block == low:
        return 0
    return low | (((block ^ low) - 1) & (left ^ low))


@njit(cache=True)
def _limits(mask: int, tables: Tables) -> tuple[float, float]:
    """What a plan of the subset may cost, so that the others can still be joined with it."""
    if mask == tables.full:
        return tables.budget_cpu, tables.budget_memory
    others = tables.full ^ mask
    cpu = tables.keep[mask] + tables.probing[mask] + tables.rest_cpu[others]
    cpu += tables.result * tables.rate[tables.full]
    memory = tables.memory[mask] + tables.rest_memory[others]
    return tables.budget_cpu - cpu, tables.budget_memory - memory


@njit(cache=True)
def _take(
    chosen: Ints,
    limits: tuple[float, float],
    front: Front,
    pool: Pool,
    tables: Tables,
    scratch: Scratch,
) -> Front:
    """Add to the front what a partition offers: every choice among its blocks' own fronts."""
    count = len(chosen)
    cpu, memory, inside_cpu, inside_memory = 0.0, 0.0, 0.0, 0.0
    for block in chosen:
        cpu += tables.keep[block] + tables.scan * (count - 1) * tables.size[block]
        memory += tables.memory[block]
        inside_cpu += pool.cpu[pool.first[block]]
        inside_memory += pool.memory[pool.first[block] + pool.points[block] - 1]
    least_memory = memory + inside_memory
    least_cpu = cpu + inside_cpu + _outer_steps(chosen, tables)
    if least_cpu > limits[0] or _beaten(
        front.cpu, front.memory, front.used[0], least_cpu, least_memory
    ):
        return front
    cpu += _probes(chosen, tables, scratch)
    least_cpu = cpu + inside_cpu
    if least_cpu > limits[0] or _beaten(
        front.cpu, front.memory, front.used[0], least_cpu, least_memory
    ):
        return front
    picks = np.zeros(count, dtype=np.int64)
    while True:
        point_cpu, point_memory = cpu, memory
        for i in range(count):
            point = pool.first[chosen[i]] + picks[i]
            point_cpu += pool.cpu[point]
            point_memory += pool.memory[point]
        if point_cpu <= limits[0] and point_memory <= limits[1]:
            front = _with_room(front)
            _insert(front, point_cpu, point_memory, chosen, picks)
        turned = 0
        while turned < count:
            picks[turned] += 1
            if picks[turned] < pool.points[chosen[turned]]:
                break
            picks[turned] = 0
            turned += 1
        if turned == count:
            return front


@njit(cache=True)
def _outer_steps(chosen: Ints, tables: Tables) -> float:
    """What the probes need at least: each input's cheapest first step, and all last steps."""
    union = 0
    for block in chosen:
        union |= block
    work = float(tables.result * tables.rate[union])
    if len(chosen) == 2 or not tables.alike:
        return work
    for block in chosen:
        least = np.inf
        for other in chosen:
            if other != block:
                step = tables.match * tables.size[block | other]
                least = min(least, step + tables.size[block] * tables.toll[other])
        work += tables.pace[block] * least
    return work


@njit(cache=True)
def _probes(chosen: Ints, tables: Tables, scratch: Scratch) -> float:
    """The work of all probes, each input's in its best order, but for the scans."""
    count = len(chosen)
    flow, still, unions = scratch
    for subset in range(1, 1 << count):
        last = 0
        while not subset >> last & 1:
            last += 1
        unions[subset] = unions[subset & (subset - 1)] | chosen[last]
    work = 0.0
    if tables.alike:
        for subset in range(1, 1 << count):
            flow[subset] = tables.size[unions[subset]]
        _cheapest(flow, 0, chosen, tables, still)
        for i in range(count):
            work += tables.pace[chosen[i]] * still[1 << i]
        return work
    for i in range(count):
        _reached(1 << i, chosen[i], count, tables, unions, flow)
        _cheapest(flow, 1 << i, chosen, tables, still)
        work += still[1 << i]
    return work


@njit(cache=True)
def _reached(
    start: int, newest: int, count: int, tables: Tables, unions: Ints, flow: Floats
) -> None:
    """The flow of one input's new tuples into each set of blocks that contains it."""
    for subset in range(1, 1 << count):
        if subset & start:
            union, arrival = unions[subset], 0.0
            for stream in range(tables.arrival.shape[1]):
                if newest >> stream & 1:
                    arrival += tables.arrival[union, stream]
            flow[subset] = tables.factor[union] * arrival


@njit(cache=True)
def _cheapest(flow: Floats, start: int, chosen: Ints, tables: Tables, still: Floats) -> None:
    """For each set of blocks that contains the start: what joining the others costs from there."""
    count = len(chosen)
    everything = (1 << count) - 1
    still[everything] = 0.0
    for subset in range(everything - 1, 0, -1):
        if subset & start != start:
            continue
        least = np.inf
        for i in range(count):
            if not subset >> i & 1:
                after = subset | 1 << i
                cost = tables.match * flow[after] + flow[subset] * tables.toll[chosen[i]]
                least = min(least, cost + still[after])
        still[subset] = least


@njit(cache=True)
def _beaten(cpus: Floats, memories: Floats, points: int, cpu: float, memory: float) -> bool:
    """Whether a point of a front needs no more of either resource."""
    low, high = 0, points
    while low < high:
        middle = (low + high) // 2
        if cpus[middle] <= cpu * (1 + EQUAL):
            low = middle + 1
        else:
            high = middle
    return bool(low > 0 and memories[low - 1] <= memory * (1 + EQUAL))


@njit(cache=True)
def _insert(front: Front, cpu: float, memory: float, chosen: Ints, picks: Ints) -> None:
    """Take a point in, and throw out those that it beats."""
    points = front.used[0]
    if _beaten(front.cpu, front.memory, points, cpu, memory):
        return
    begin = int(np.searchsorted(front.cpu[:points], cpu, side="left"))
    end = begin
    while end < points and front.memory[end] >= memory:
        end += 1
    _shift(front, begin, end, points)
    row = front.used[1]
    front.cpu[begin], front.memory[begin], front.row[begin] = cpu, memory, row
    front.used[0], front.used[1] = points + begin + 1 - end, row + 1
    front.blocks[row], front.picks[row] = 0, 0
    for i in range(len(chosen)):
        front.blocks[row, i], front.picks[row, i] = chosen[i], picks[i]


@njit(cache=True)
def _shift(front: Front, begin: int, end: int, points: int) -> None:
    """Make of the points from begin to end exactly one place."""
    if end == begin:
        for i in range(points, begin, -1):
            front.cpu[i], front.memory[i] = front.cpu[i - 1], front.memory[i - 1]
            front.row[i] = front.row[i - 1]
    else:
        for i in range(end, points):
            to = i + begin + 1 - end
            front.cpu[to], front.memory[to] = front.cpu[i], front.memory[i]
            front.row[to] = front.row[i]


@njit(cache=True)
def _with_room(front: Front) -> Front:
    """The same front with room for a point more; rows that no point needs any more are dropped."""
    points = front.used[0]
    if points < len(front.cpu) and front.used[1] < len(front.blocks):
        return front
    room, n = 4 * points + 64, front.blocks.shape[1]
    larger = Front(
        np.zeros(room),
        np.zeros(room),
        np.arange(room),
        np.zeros((room, n), dtype=np.int32),
        np.zeros((room, n), dtype=np.int32),
        np.array([points, points]),
    )
    larger.cpu[:points], larger.memory[:points] = front.cpu[:points], front.memory[:points]
    for i in range(points):
        larger.blocks[i], larger.picks[i] = front.blocks[front.row[i]], front.picks[front.row[i]]
    return larger
