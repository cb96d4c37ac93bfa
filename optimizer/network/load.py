"""What streams carry, and how much of it a query's joins put out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from math import isfinite, prod
from typing import Protocol

from optimizer.network.streams import Content, Part, Predicate, interned


class LoadError(ValueError):
    """Figures that are beyond any number."""


@dataclass(frozen=True)
class Source:
    """A base stream: tuples a second, bytes of each, the site where it comes in."""

    rate: float
    width: float
    site: str


@dataclass(frozen=True)
class Demand:
    """A query: what it wants, and where."""

    name: str
    streams: tuple[str, ...]
    sink: str
    where: Mapping[str, tuple[Predicate, ...]] = field(default_factory=dict)
    widths: Mapping[str, float] = field(default_factory=dict)
    """Bytes kept of a stream's tuples; all of them where nothing is said."""
    windows: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """A stream's range and slide, where the load counts with them."""
    columns: Mapping[str, frozenset[tuple[str, float]]] = field(default_factory=dict)
    """The columns kept of a stream with their bytes, where these are known by name."""


Known = dict[tuple[Content, tuple[float, ...]], float]
"""The bytes a second of streams, by what they hold and by what passes of it."""


class Load(Protocol):
    """Base streams, and what any stream made of them carries."""

    @property
    def sources(self) -> Mapping[str, Source]:
        """The base streams by name."""
        ...

    @property
    def known(self) -> Known:
        """The bytes a second of each stream that somebody has asked for."""
        ...

    def rate(self, content: Content) -> float:
        """Tuples a second."""
        ...

    def connected(self, one: str, other: str) -> bool:
        """Whether a predicate joins the two."""
        ...


@dataclass(frozen=True)
class WindowLoad:
    """Streams joined within one window: k W^(k-1) times the product of rates and selectivities."""

    sources: Mapping[str, Source]
    window: float
    joins: Mapping[frozenset[str], float] = field(default_factory=dict)
    known: Known = field(default_factory=dict, compare=False, repr=False)
    """The bytes a second of each stream that somebody has asked for."""

    def rate(self, content: Content) -> float:
        """Tuples a second that newly combine, whichever of the k comes last."""
        return admitted(self._windows(content)) * self._matching(content)

    def held(self, content: Content) -> float:
        """Tuples that are alive at once: each stream's within its window."""
        return prod(self._windows(content)) * self._matching(content)

    def _windows(self, content: Content) -> list[float]:
        return [part.window[0] if part.window else self.window for part in content.parts]

    def _matching(self, content: Content) -> float:
        """The product of rates and selectivities."""
        alone = [self.sources[p.stream].rate * passing(p) for p in content.parts]
        shares = [self.joins.get(frozenset(two), 1.0) for two in combinations(content.streams, 2)]
        return prod(alone) * prod(shares)

    def connected(self, one: str, other: str) -> bool:
        """Whether a predicate joins the two."""
        return frozenset((one, other)) in self.joins


def admitted(windows: Sequence[float]) -> float:
    """Seconds to the power k - 1: any of the k may come last, the others within their windows."""
    if len(set(windows)) == 1:
        return len(windows) * float(windows[0]) ** (len(windows) - 1)
    return sum(prod([*windows[:i], *windows[i + 1 :]]) for i in range(len(windows)))


def passing(part: Part) -> float:
    """The share of a base stream's tuples that pass its predicates."""
    return prod(predicate.selectivity for predicate in part.where)


def width(content: Content) -> float:
    """Bytes of a tuple."""
    return sum(part.width for part in content.parts)


def volume(load: Load, content: Content) -> float:
    """Bytes a second."""
    key = content, content.shares
    if (found := load.known.get(key)) is None:
        load.known[key] = found = _volume(load, content)
    return found


def _volume(load: Load, content: Content) -> float:
    try:
        found = load.rate(content) * width(content)
    except OverflowError:
        found = float("inf")
    if not isfinite(found):
        raise LoadError(f"the stream of {', '.join(sorted(content.streams))} is beyond any number")
    return found


def wanted(load: Load, demand: Demand) -> Content:
    """The content of a query's result."""
    parts = (
        Part(
            name,
            kept(demand, name, load.sources[name].width),
            frozenset(demand.where.get(name, ())),
            demand.windows.get(name),
            demand.columns.get(name),
        )
        for name in sorted(demand.streams)
    )
    return Content(tuple(parts))


def kept(demand: Demand, stream: str, whole: float) -> float:
    """The bytes that a query keeps of a stream's tuples."""
    if stream in demand.columns:
        return sum(size for _, size in demand.columns[stream])
    return min(demand.widths.get(stream, whole), whole)


@dataclass(frozen=True)
class Question:
    """A query's streams as bits: what each set of them carries, and which are connected."""

    load: Load
    demand: Demand

    @cached_property
    def content(self) -> Content:
        """All of it."""
        return interned(wanted(self.load, self.demand))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The streams by bit."""
        return self.demand.streams

    @property
    def everything(self) -> int:
        """The mask of all streams."""
        return (1 << len(self.names)) - 1

    @cached_property
    def contents(self) -> Mapping[int, Content]:
        """What each set of streams holds."""
        return {mask: self.content.of(self.members(mask)) for mask in range(1, self.everything + 1)}

    @cached_property
    def volumes(self) -> tuple[float, ...]:
        """Bytes a second of each set of streams, by mask."""
        return (0.0, *(volume(self.load, self.contents[m]) for m in range(1, self.everything + 1)))

    def members(self, mask: int) -> list[str]:
        """The streams of a mask."""
        return [name for bit, name in enumerate(self.names) if mask >> bit & 1]

    def mask(self, streams: Iterable[str]) -> int:
        """The mask of those streams."""
        return sum(1 << self.names.index(name) for name in streams)

    def components(self, mask: int) -> list[int]:
        """Those of its streams that predicates connect, each as a mask."""
        found, left = [], mask
        while left:
            part = self._reached(left & -left, mask)
            found.append(part)
            left &= ~part
        return found

    def _reached(self, start: int, within: int) -> int:
        reached, fresh = start, start
        while fresh:
            near = [self.neighbours[bit] for bit in range(len(self.names)) if fresh >> bit & 1]
            fresh = 0
            for others in near:
                fresh |= others & within & ~reached
            reached |= fresh
        return reached

    @cached_property
    def neighbours(self) -> tuple[int, ...]:
        """By bit, the streams that a predicate connects with it."""
        return tuple(
            sum(
                1 << bit
                for bit, other in enumerate(self.names)
                if other != name and self.load.connected(name, other)
            )
            for name in self.names
        )
