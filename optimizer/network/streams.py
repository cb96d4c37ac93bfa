"""What a stream is made of: the base streams in it, the predicates applied, the columns kept.

That is its name: two streams of equal content are one and the same, whoever computes them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

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


@lru_cache(maxsize=65536)
def widened(one: Part, other: Part) -> Part:
    """The least that covers both."""
    shared = {p for p in one.where if implied(p, other.where)}
    shared |= {p for p in other.where if implied(p, one.where)}
    if one.columns is None or other.columns is None:
        width, columns = max(one.width, other.width), None
    else:
        columns = one.columns | other.columns
        width = sum(size for _, size in columns)
    return replace(one, width=width, where=frozenset(shared), columns=columns)


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

    @cached_property
    def streams(self) -> frozenset[str]:
        """The base streams in it."""
        return frozenset(part.stream for part in self.parts)

    @cached_property
    def windows(self) -> tuple[tuple[float, float] | None, ...]:
        """Of its parts; streams that differ in them are never one another's."""
        return tuple(part.window for part in self.parts)

    def of(self, streams: Iterable[str]) -> "Content":
        """The part of it that holds those base streams."""
        wanted = frozenset(streams)
        return Content(tuple(part for part in self.parts if part.stream in wanted))

    def covers(self, other: "Content") -> bool:
        """Whether the other can be made of it by filters and projections alone."""
        return self.streams == other.streams and all(
            covers(mine, theirs) for mine, theirs in zip(self.parts, other.parts, strict=True)
        )

    def widened(self, other: "Content") -> "Content":
        """The least that covers both."""
        pairs = zip(self.parts, other.parts, strict=True)
        return Content(tuple(widened(mine, theirs) for mine, theirs in pairs))


def filters(wide: Content, narrow: Content) -> list[tuple[str, Predicate]]:
    """What is to be applied to a stream so that only another is left: stream and predicate."""
    return [
        (theirs.stream, predicate)
        for mine, theirs in zip(wide.parts, narrow.parts, strict=True)
        for predicate in sorted(theirs.where, key=lambda p: p.name)
        if predicate not in mine.where
    ]
