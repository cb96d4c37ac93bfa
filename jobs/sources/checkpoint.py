"""What Spark's checkpoint says a batch took from each source.

Spark notes in `offsets/B` where batch B ends in every source, one line a source in the order of
the streaming query, in `sources/I` which files the I-th source has found, and in `commits/B` that
batch B is done.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from json import loads
from pathlib import Path
from typing import Any

from jobs.tables.damage import whole
from jobs.tables.paths import of_uri

Position = Mapping[str, Any]
"""Where a source stands, as that kind of source writes it down."""


@dataclass(frozen=True)
class OffsetRange:
    """What a batch took of a source: from one position to another."""

    batch: int
    start: Position | None
    end: Position | None


@dataclass(frozen=True)
class CheckpointOffsets:
    """One source of a checkpoint, counted from zero as the query reads them."""

    checkpoint: Path
    source: int

    def knows(self, batch: int) -> bool:
        """Whether the checkpoint still says what a batch took."""
        return (self.checkpoint / "offsets" / str(batch)).exists()

    def position(self, batch: int) -> Position | None:
        """Where the source stands at the end of a batch; nothing if it had nothing so far."""
        log = self.checkpoint / "offsets" / str(batch)
        if batch < 0 or not log.exists():
            return None
        with whole(log):
            _version, _metadata, *ends = log.read_text(encoding="utf-8").splitlines()
            if self.source >= len(ends) or ends[self.source] == "-":
                return None
            position: Position = loads(ends[self.source])
            return position

    def files(self, batch: int, *, after: int = -1) -> list[Path]:
        """The files of the batches up to that one, or of those after another only."""
        first, last = _file_log(self.position(after)), _file_log(self.position(batch))
        return [path for number, path in self._logged(first, last) if first < number <= last]

    def files_of(self, parts: Sequence[OffsetRange]) -> dict[Path, int]:
        """The files of batches that follow each other, and which of them took each."""
        numbers = {
            number: part.batch
            for part in parts
            for number in range(_file_log(part.start) + 1, _file_log(part.end) + 1)
        }
        if not numbers:
            return {}
        entries = self._logged(min(numbers) - 1, max(numbers))
        return {path: numbers[number] for number, path in entries if number in numbers}

    def _logged(self, first: int, last: int) -> Iterator[tuple[int, Path]]:
        """The entries from the last log file back to the first, or to one that sums up others."""
        parts: list[list[tuple[int, Path]]] = []
        for number in range(last, first, -1):
            log = self._log(number)
            parts.append(_entries(log))
            if log.suffix == _SUMS_UP:
                break
        for part in reversed(parts):
            yield from part

    def _log(self, number: int) -> Path:
        """The log file that has such a number's entries: Spark drops those that a later sums up."""
        log = self.checkpoint / "sources" / str(self.source)
        for name in (f"{number}{_SUMS_UP}", str(number)):
            if (log / name).exists():
                return log / name
        later = [int(path.stem) for path in log.glob(f"*{_SUMS_UP}")]
        return log / f"{min((n for n in later if n > number), default=number)}{_SUMS_UP}"


_SUMS_UP = ".compact"


def rewind_unfinished_batch(checkpoint: Path, done: int) -> None:
    """Have Spark ask again for the batch after the last one that was done.

    The process may have died amid that batch when Spark had noted it as done, and had perhaps
    noted where the next one ends, of which nobody has seen anything.  Killed in here, it begins
    here again: the note that the batch is done goes last.
    """
    _take_back_torn(checkpoint, done)
    if not (checkpoint / "commits" / str(done + 1)).exists():
        return
    if (checkpoint / "commits" / str(done + 2)).exists():
        return  # more is missing than a crash can explain; the engine says so
    for log in (checkpoint / "offsets" / str(done + 2), checkpoint / "commits" / str(done + 1)):
        log.with_name(f".{log.name}.crc").unlink(missing_ok=True)
        log.unlink(missing_ok=True)


def noted(checkpoint: Path, batch: int) -> Iterator[Path]:
    """The files in which Spark has noted what a batch takes, and those that it stands on."""
    yield checkpoint / "metadata"
    yield checkpoint / "offsets" / str(batch)
    yield checkpoint / "commits" / str(batch - 1)
    for source in sorted((checkpoint / "sources").glob("*")):
        logs = [log for log in source.iterdir() if not log.name.startswith(".")]
        yield from sorted(logs, key=lambda log: log.stat().st_mtime_ns)[-_RECENT:]


_RECENT = 2
"""Log files of a source that a batch may have brought: its own, and one that sums up others."""


def _take_back_torn(checkpoint: Path, done: int) -> None:
    """Remove what a power cut has torn: notes of batches that were never handed to the engine.

    Those of a batch that was are on the disk before the engine notes anything of it.
    """
    logs = [checkpoint / kind / str(done + n) for kind in ("commits", "offsets") for n in (0, 1, 2)]
    logs += [log for log in (checkpoint / "sources").glob("*/*") if not log.name.startswith(".")]
    torn = [log for log in logs if log.exists() and not _is_whole(log)]
    if not torn:
        return
    for log in (*torn, checkpoint / "offsets" / str(done + 1)):
        log.unlink(missing_ok=True)


def _is_whole(log: Path) -> bool:
    text = log.read_bytes()
    return text.startswith(b"v") and b"\0" not in text


def whole_versions(position: Position) -> int:
    """The last version of a Delta table of which everything has been taken."""
    whole = int(position["index"]) < 0 and not position["isStartingVersion"]
    return int(position["reservoirVersion"]) - whole


def _file_log(position: Position | None) -> int:
    return -1 if position is None else int(position["logOffset"])


def _entries(log: Path) -> list[tuple[int, Path]]:
    with whole(log):
        _version, *lines = log.read_text(encoding="utf-8").splitlines()
        found = map(loads, lines)
        return [(int(f["batchId"]), of_uri(f["path"])) for f in found]
