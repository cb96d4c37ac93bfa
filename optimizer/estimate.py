"""From a plan and a workload to rates and state sizes, bottom-up.

An operator's output is a set of combined tuples.  How many come into being per second, and how many
are alive, is the product of the rates and selectivities below it (its *factor*) times the volume of
the relative event times that its windows admit.  Selectivities are those of pairs; where more than
two inputs are joined on one key, and it is known how that is spread, its *lift* is part of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from optimizer.keys import Lift, keys_of
from optimizer.plan import (
    Combine,
    Emit,
    GroupBy,
    Join,
    Node,
    Plan,
    Project,
    Select,
    Source,
)
from optimizer.query import ColumnRef, Grouping, Query
from optimizer.window import MICROSECONDS, Bounds, WindowError, close, volume
from optimizer.workload import Workload

Mask = int
"""A set of the query's inputs: bit i stands for the i-th alias."""


class Volumes:
    """What the windows admit for each set of inputs, in seconds to its size or one less."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._count = len(bounds.names)
        self._arrivals: dict[tuple[Mask, int], float] = {}
        self._held: dict[Mask, float] = {0: 1.0}

    @cached_property
    def windows(self) -> tuple[float, ...] | None:
        """Each input's window in seconds, where its partners bound it alike (CQL, one window)."""
        rows, n = self._bounds.matrix, self._count
        columns = [{rows[o][s] for o in range(n) if o != s} for s in range(n)]
        if n < 2 or any(len(column) != 1 or min(column) <= 0 for column in columns):
            return None
        return tuple(column.pop() / MICROSECONDS for column in columns)

    def arrival(self, mask: Mask, newest: Mask) -> float:
        """Combinations whose newest tuple, the one that completes them, is one of those inputs'."""
        if self.windows is not None:
            windows = self.windows
            return self.held(mask) * sum(1 / windows[m] for m in bits(newest))
        return sum(self._arrival(mask, m) for m in bits(newest))

    def _arrival(self, mask: Mask, newest: int) -> float:
        if (mask, newest) not in self._arrivals:
            names = [self._bounds.names[i] for i in bits(mask)]
            last = self._bounds.names[newest]
            limits = {(i, j): self._bounds[i, j] for i in names for j in names if i != j}
            limits |= {(i, last): min(0, limits[i, last]) for i in names if i != last}
            self._arrivals[mask, newest] = self._volume(names, limits)
        return self._arrivals[mask, newest]

    def held(self, mask: Mask) -> float:
        """Combinations alive: each tuple young enough for some partner still to come."""
        if mask not in self._held:
            windows = self.windows
            self._held[mask] = (
                self._alive(mask) if windows is None else prod(windows[i] for i in bits(mask))
            )
        return self._held[mask]

    def _alive(self, mask: Mask) -> float:
        names = [self._bounds.names[i] for i in bits(mask)]
        partners = [name for name in self._bounds.names if name not in names]
        limits = {(i, j): self._bounds[i, j] for i in names for j in names if i != j}
        for name in names:
            limits["", name] = self._bounds.retention(name, partners)
            limits[name, ""] = 0
        return self._volume(["", *names], limits)

    @staticmethod
    def _volume(names: list[str], limits: Mapping[tuple[str, str], int]) -> float:
        try:
            bounds = close(names, limits)
        except WindowError:  # no tuples can ever be that young, or that far apart
            return 0.0
        return volume(bounds.matrix) / float(MICROSECONDS) ** (len(names) - 1)


def bits(mask: Mask) -> list[int]:
    """The positions of the inputs in a set."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


@dataclass(frozen=True)
class Estimate:
    """What an operator puts out: tuples per second, tuples alive if kept, bytes of each."""

    mask: Mask
    factor: float
    rate: float
    held: float
    width: float

    @property
    def held_bytes(self) -> float:
        """The size of the state."""
        return self.held * self.width


class Estimator:
    """Estimates the operators of one query's plans under one workload.

    With bounds of its own, as if the query's windows were those.
    """

    def __init__(self, query: Query, workload: Workload, bounds: Bounds | None = None) -> None:
        workload.check(query)
        self.query = query
        self.workload = workload
        self.volumes = Volumes(bounds or query.bounds)
        keys = {key.name: key for key in keys_of(query)} if workload.keys else {}
        self.lifts = [Lift(keys[name], shares) for name, shares in workload.keys.items()]
        self._lifted: dict[Mask, float] = {}
        self._bit = {alias: 1 << position for position, alias in enumerate(query.aliases)}

    def under(self, workload: Workload) -> "Estimator":
        """The same query under another workload: its windows admit what they did."""
        other = Estimator(self.query, workload)
        other.volumes = self.volumes
        return other

    def plan(self, plan: Plan) -> dict[Node, Estimate]:
        """The estimates of all operators of a plan."""
        found: dict[Node, Estimate] = {}
        self._visit(plan.root, found)
        return found

    def node(self, node: Node) -> Estimate:
        """The estimate of one operator."""
        return self._visit(node, {})

    def join(self, parts: Sequence[Estimate], columns: Iterable[ColumnRef]) -> Estimate:
        """What a join of these puts out, if those columns are kept of it."""
        return self.joined(parts, self._width(columns))

    def joined(self, parts: Sequence[Estimate], width: float) -> Estimate:
        """What a join of these puts out, in tuples of that width."""
        mask, factor = parts[0].mask, parts[0].factor
        for part in parts[1:]:
            factor *= part.factor * self.crossing(mask, part.mask)
            mask |= part.mask
        return self._combined(mask, factor, width)

    def group(self, inside: Estimate, grouping: Grouping) -> Estimate:
        """What a group-by puts out, and keeps: its groups, for each window that is open."""
        groups = self.workload.groups
        rate = groups * MICROSECONDS / grouping.slide
        held = groups * grouping.size / grouping.slide
        return Estimate(inside.mask, inside.factor, rate, held, 8.0 * len(grouping.names))

    def crossing(self, one: Mask, other: Mask) -> float:
        """The selectivity between two sets of inputs: of pairs, and of keys that these share."""
        return self._between(one, other) * self.lift(one, other)

    def lift(self, *parts: Mask) -> float:
        """How many times more often these match each other than their pairs' selectivities say."""
        if not self.lifts:
            return 1.0
        return self._lift(sum(parts)) / prod(map(self._lift, parts))

    def _lift(self, mask: Mask) -> float:
        if mask not in self._lifted:
            inputs = frozenset(self.query.aliases[i] for i in bits(mask))
            self._lifted[mask] = prod(lift.of(inputs) for lift in self.lifts)
        return self._lifted[mask]

    def _between(self, one: Mask, other: Mask) -> float:
        if one.bit_count() > other.bit_count():
            one, other = other, one
        return prod(
            selectivity
            for i in bits(one)
            for bit, selectivity in self._neighbours[i]
            if other & bit
        )

    def connected(self, one: Mask, other: Mask) -> bool:
        """Whether any predicate is between two sets of inputs."""
        return any(bit & other for i in bits(one) for bit, _ in self._neighbours[i])

    def partners(self, masks: Sequence[Mask]) -> list[dict[int, float]]:
        """For each set of inputs, its selectivity against those others it has predicates with.

        By pairs alone: what a key adds that three share, `lift` says.
        """
        owner = {i: position for position, mask in enumerate(masks) for i in bits(mask)}
        found: list[dict[int, float]] = [{} for _ in masks]
        for i, position in owner.items():
            for bit, selectivity in self._neighbours[i]:
                other = owner.get(bit.bit_length() - 1, position)
                if other != position:
                    found[position][other] = found[position].get(other, 1.0) * selectivity
        return found

    @cached_property
    def _neighbours(self) -> list[list[tuple[Mask, float]]]:
        """For each input, the bits of those it has predicates with, and the selectivities."""
        found: list[list[tuple[Mask, float]]] = [[] for _ in self.query.aliases]
        for edge in self.query.graph.edges:
            one, other = sorted(edge, key=self._bit.__getitem__)
            selectivity = self.workload.selectivity(one, other)
            found[self._bit[one].bit_length() - 1].append((self._bit[other], selectivity))
            found[self._bit[other].bit_length() - 1].append((self._bit[one], selectivity))
        return found

    def _visit(self, node: Node, found: dict[Node, Estimate]) -> Estimate:
        if node not in found:
            below = [self._visit(part, found) for part in node.inputs]
            found[node] = self._estimate(node, below)
        return found[node]

    def _estimate(self, node: Node, below: list[Estimate]) -> Estimate:
        match node:
            case Source(alias):
                rate = self.workload.streams[alias].rate
                return self._combined(self._bit[alias], rate, self._width(node.columns))
            case Select(_, predicate):
                (inside,) = below
                factor = inside.factor * self.workload.select(self.query, predicate)
                return self._combined(inside.mask, factor, inside.width)
            case Combine():
                (inside,) = below
                left = min(inside.factor, self.workload.combine.get(node.alias, inside.factor))
                return self._combined(inside.mask, left, self._width(node.columns))
            case Join():
                return self.join(below, node.columns)
            case GroupBy(_, grouping):
                return self.group(below[0], grouping)
            case Project():
                (inside,) = below
                return self._combined(inside.mask, inside.factor, self._width(node.columns))
            case Emit():
                return below[0]
        raise TypeError(f"unknown operator {type(node).__name__}")

    def _combined(self, mask: Mask, factor: float, width: float) -> Estimate:
        rate = factor * self.volumes.arrival(mask, mask)
        return Estimate(mask, factor, rate, factor * self.volumes.held(mask), width)

    def _width(self, columns: Iterable[ColumnRef]) -> float:
        return sum(map(self.column_width, columns))

    def column_width(self, column: ColumnRef) -> float:
        """The stream's observed width, shared among its columns by the size of their types."""
        return self._column_widths.get(column) or 8.0 * self._shares.get(column.alias, 1.0)

    @cached_property
    def _shares(self) -> dict[str, float]:
        """Observed bytes of a stream for each byte that the types of its columns take."""
        sizes = {a: sum(type_size(c.type) for c in s.columns) for a, s in self.query.inputs}
        return {alias: self.workload.streams[alias].width / size for alias, size in sizes.items()}

    @cached_property
    def _column_widths(self) -> dict[ColumnRef, float]:
        return {
            ColumnRef(alias, column.name): type_size(column.type) * self._shares[alias]
            for alias, stream in self.query.inputs
            for column in stream.columns
        }


_SIZES = {"BOOLEAN": 1, "TINYINT": 1, "BYTE": 1, "SMALLINT": 2, "SHORT": 2, "INT": 4, "INTEGER": 4,
          "FLOAT": 4, "REAL": 4, "DATE": 4, "STRING": 16, "BINARY": 16, "DECIMAL": 16}  # fmt: skip


def type_size(type_name: str) -> float:
    """The bytes that a value of a SQL type takes, roughly."""
    return float(_SIZES.get(type_name.partition("(")[0].strip().upper(), 8))
