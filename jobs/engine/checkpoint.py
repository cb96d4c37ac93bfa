"""What Spark's checkpoint says a batch took from each source.

Spark notes in `offsets/B` where batch B ends in every source, one line a source in the order of
the streaming query, and in `sources/I` which files the I-th source has found.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from json import loads
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

Position = Mapping[str, Any]
"""Where a source stands, as that kind of source writes it down."""


@dataclass(frozen=True)
class Taken:
    """One source of a checkpoint, counted from zero as the query reads them."""

    checkpoint: Path
    source: int

    def position(self, batch: int) -> Position | None:
        """Where the source stands at the end of a batch; nothing if it had nothing so far."""
        log = self.checkpoint / "offsets" / str(batch)
        if batch < 0 or not log.exists():
            return None
        _version, _metadata, *ends = log.read_text(encoding="utf-8").splitlines()
        if self.source >= len(ends) or ends[self.source] == "-":
            return None
        position: Position = loads(ends[self.source])
        return position

    def files(self, batch: int, *, after: int = -1) -> list[Path]:
        """The files of the batches up to that one, or of those after another only."""
        first, last = _file_log(self.position(after)), _file_log(self.position(batch))
        return [path for number, path in self._logged(first, last) if first < number <= last]

    def _logged(self, first: int, last: int) -> Iterator[tuple[int, Path]]:
        """The entries from the last log file back to the first, or to one that sums up others."""
        log = self.checkpoint / "sources" / str(self.source)
        parts: list[list[tuple[int, Path]]] = []
        for number in range(last, first, -1):
            compact = log / f"{number}.compact"
            parts.append(_entries(compact if compact.exists() else log / str(number)))
            if compact.exists():
                break
        for part in reversed(parts):
            yield from part


def _file_log(position: Position | None) -> int:
    return -1 if position is None else int(position["logOffset"])


def _entries(log: Path) -> list[tuple[int, Path]]:
    _version, *lines = log.read_text(encoding="utf-8").splitlines()
    found = map(loads, lines)
    return [(int(f["batchId"]), Path(unquote(urlparse(f["path"]).path))) for f in found]
