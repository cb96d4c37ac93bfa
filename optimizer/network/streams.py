"""What a stream is made of: the base streams in it, the predicates applied, the columns kept.

That is its name: two streams of equal content are one and the same, whoever computes them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import prod

from optimizer.network.implication import implies, normal


@dataclass(frozen=True)
class Predicate:
    """A condition on one stream, and the share of its tuples that meet it."""

    name: str
    """Its text, the same for texts that differ in blanks and case only."""
    text: str = field(default="", compare=False)
    selectivity: float = field(default=1.0, compare=False)

    @classmethod
    def of(cls, text: str, selectivity: float = 1.0) -> "Predicate":
        """The predicate that a text writes."""
        return cls(normal(text), text, selectivity)


@dataclass(frozen=True)
class Part:
    """One base stream within a stream."""

    stream: str
    width: float
    """Bytes of a tuple after projection; of two that differ, the wider holds the narrower."""
    where: frozenset[Predicate] = frozenset()
    window: tuple[float, float] | None = None
    """Its range and the slide of its results, where queries differ in them."""
    columns: frozenset[tuple[str, float]] | None = None
    """The columns kept with their bytes, where they are known by name; `width` is their sum."""


@lru_cache(maxsize=65536)
def covers(one: Part, other: Part) -> bool:
    """Whether the other can be made of the one by a filter and a projection."""
    return (
        one.window == other.window
        and holds(one, other)
        and all(implied(mine, other.where) for mine in one.where)
    )


def widened(one: Part, other: Part) -> Part:
    """The least that covers both."""
    names = shared(one.where, other.where)
    where = frozenset(p for p in (*one.where, *other.where) if p.name in names)
    if one.columns is None or other.columns is None:
        width, columns = max(one.width, other.width), None
    else:
        columns = one.columns | other.columns
        width = sum(size for _, size in columns)
    return replace(one, width=width, where=where, columns=columns)


@lru_cache(maxsize=65536)
def shared(one: frozenset[Predicate], other: frozenset[Predicate]) -> frozenset[str]:
    """The names of the predicates that both meet; what share that is may change."""
    found = {p.name for p in one if implied(p, other)} | {p.name for p in other if implied(p, one)}
    return frozenset(found)


def holds(one: Part, other: Part) -> bool:
    """Whether it keeps all columns of the other; by their bytes where they have no names."""
    if one.columns is None or other.columns is None:
        return one.columns is None and one.width >= other.width
    return other.columns <= one.columns


def implied(predicate: Predicate, by: Iterable[Predicate]) -> bool:
    """Whether one of these implies it."""
    return any(implies(one.name, predicate.name) for one in by)


@dataclass(frozen=True)
class Content:
    """A stream by what it holds, its parts sorted by their names."""

    parts: tuple[Part, ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.parts)

    @cached_property
    def streams(self) -> frozenset[str]:
        """The base streams in it."""
        return frozenset(part.stream for part in self.parts)

    @cached_property
    def windows(self) -> tuple[tuple[float, float] | None, ...]:
        """Of its parts; streams that differ in them are never one another's."""
        return tuple(part.window for part in self.parts)

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """What passes of each part: equal streams may differ in it, as statistics do."""
        return tuple(prod(p.selectivity for p in part.where) for part in self.parts)

    def of(self, streams: Iterable[str]) -> "Content":
        """The part of it that holds those base streams."""
        wanted = frozenset(streams)
        if (found := self._parts.get(wanted)) is None:
            parts = tuple(part for part in self.parts if part.stream in wanted)
            self._parts[wanted] = found = interned(Content(parts))
        return found

    def covers(self, other: "Content") -> bool:
        """Whether the other can be made of it by filters and projections alone."""
        return _covers(self, other)

    def widened(self, other: "Content") -> "Content":
        """The least that covers both."""
        if (found := self._wider.get((other, other.shares))) is None:
            pairs = zip(self.parts, other.parts, strict=True)
            parts = tuple(widened(mine, theirs) for mine, theirs in pairs)
            self._wider[other, other.shares] = found = interned(Content(parts))
        return found

    # What is advertised is looked at again for every query: it remembers what came of that.

    @cached_property
    def _parts(self) -> dict[frozenset[str], "Content"]:
        return {}

    @cached_property
    def _wider(self) -> dict[tuple["Content", tuple[float, ...]], "Content"]:
        return {}


def interned(content: Content) -> Content:
    """The one that was seen before of all that are equal, with what it remembers."""
    return _first(content, content.shares)


@lru_cache(maxsize=65536)
def _first(content: Content, shares: tuple[float, ...]) -> Content:  # noqa: ARG001  # equal in both
    return content


@lru_cache(maxsize=65536)
def _covers(one: Content, other: Content) -> bool:
    return one.streams == other.streams and all(
        covers(mine, theirs) for mine, theirs in zip(one.parts, other.parts, strict=True)
    )


def filters(wide: Content, narrow: Content) -> list[tuple[str, Predicate]]:
    """What is to be applied to a stream so that only another is left: stream and predicate."""
    return [
        (theirs.stream, predicate)
        for mine, theirs in zip(wide.parts, narrow.parts, strict=True)
        for predicate in sorted(theirs.where, key=lambda p: p.name)
        if predicate not in mine.where
    ]
