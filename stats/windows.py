"""Which windows of a job are complete, and which of its batches belong to each.

A batch belongs to the window in which the watermark lies that was in force when it began.  Times
are in microseconds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from stats.store import Window


@dataclass(frozen=True)
class Counted:
    """What a batch counted of a stream; `newest` is the largest event time seen until then."""

    accepted: int
    late: int
    rejected: int
    newest: int | None


@dataclass(frozen=True)
class Worked:
    """What a batch did for an operator."""

    rows: int
    state_rows: int
    state_bytes: int
    ms: float


@dataclass(frozen=True)
class Batch:
    """A batch that is done, as far as statistics go."""

    number: int
    watermark: int | None
    """In force when it began; none before every stream has spoken."""
    after: int | None
    """The watermark of the next one."""
    finished: int
    since: int | None
    """When the one before was done."""
    ms: float
    cpu: float | None
    memory: int | None
    backlog: int | None
    streams: Mapping[str, Counted]
    operators: Mapping[str, Worked]
    results: Mapping[str, int]
    emitted: Mapping[str, tuple[int, int]]
    """For each query with windows, the end of those emitted before, and after."""

    def aside(self, stream: str) -> int:
        """How many tuples of a stream were not accepted."""
        counted = self.streams.get(stream)
        return counted.late + counted.rejected if counted else 0


def at(time: int, size: int) -> Window:
    """The window that has a moment."""
    start = time - time % size
    return Window(start, start + size)


def complete(first: int | None, reached: int | None, size: int) -> list[Window]:
    """The windows that are complete: from the first watermark's to the last that one has passed."""
    if first is None or reached is None:
        return []
    return [Window(start, start + size) for start in range(first - first % size, reached, size)
            if start + size <= reached]  # fmt: skip


def within(windows: Iterable[Window], since: int | None, until: int | None) -> list[Window]:
    """The windows that share some time with a range."""
    return [
        window
        for window in windows
        if (since is None or window.end > since) and (until is None or window.start < until)
    ]


def home(batch: Batch, first: Window, size: int) -> Window:
    """The window to which a batch belongs; the first, before there is a watermark."""
    return first if batch.watermark is None else at(batch.watermark, size)


def stretches(windows: Sequence[Window], most: int) -> Iterator[list[Window]]:
    """Windows one after another without a gap, not too many at a time."""
    found: list[Window] = []
    for window in windows:
        if found and (found[-1].end != window.start or len(found) == most):
            yield found
            found = []
        found.append(window)
    if found:
        yield found


def portions(
    windows: Sequence[Window], rows: Mapping[Window, int], most: int
) -> Iterator[list[Window]]:
    """The same with not too many rows at a time, but for a window that has more."""
    found: list[Window] = []
    for window in windows:
        if found and sum(rows.get(w, 0) for w in (*found, window)) > most:
            yield found
            found = []
        found.append(window)
    if found:
        yield found


def holds(batch: Batch, stream: str, windows: Sequence[Window]) -> bool:
    """Whether a batch may have taken in tuples of a stream with an event time in those windows."""
    counted = batch.streams.get(stream)
    newest = None if counted is None else counted.newest
    in_time = batch.watermark is None or batch.watermark < windows[-1].end
    return in_time and newest is not None and newest >= windows[0].start


@dataclass(frozen=True)
class Limits:
    """How many tuples of a stream windows must have and can have, by what batches counted.

    Whatever a stream does, these hold: a batch that moved its newest event time on accepted a tuple
    of that time, and a tuple of a window came with a batch that began before the window was over
    and had seen an event time past its start.
    """

    stream: str
    batches: Sequence[Batch]
    moved: Sequence[int]
    """The event times that were the newest after a batch, and not before it."""

    @classmethod
    def of(cls, batches: Sequence[Batch], stream: str) -> "Limits":
        """Of batches that follow each other; what was the newest before the first is not known."""
        told = [batch for batch in batches if stream in batch.streams]
        moved = [
            newest
            for before, batch in pairwise(told)
            if (newest := batch.streams[stream].newest) != before.streams[stream].newest
            and newest is not None
            and (batch.watermark is None or newest >= batch.watermark)
        ]
        return cls(stream, told, moved)

    def least(self, window: Window) -> int:
        """So many it has at least."""
        return sum(window.start <= time < window.end for time in self.moved)

    def most(self, window: Window) -> int:
        """So many it has at most."""
        return sum(
            batch.streams[self.stream].accepted
            for batch in self.batches
            if holds(batch, self.stream, [window])
        )
