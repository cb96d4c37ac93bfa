"""What a storage was when its job first ran: who it is, which streams it reads, how it is laid out.

It is written once, so whoever finds it damaged or of another version can only say so.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from json import JSONDecodeError, dumps, loads
from pathlib import Path
from uuid import uuid4

from jobs.errors import RefusedError
from jobs.tables.durability import replace
from jobs.tables.lease import private
from jobs.tables.rows import read

LAYOUT = 2
"""The names and forms of what is in a storage; another number is another version's."""


@dataclass(frozen=True)
class Origin:
    """When a job first ran, in microseconds, and the order of its streams since."""

    started: int
    streams: Sequence[str]
    id: str
    """Names the storage in every commit: another one, with the same job file, is somebody else."""
    layout: int = LAYOUT

    @property
    def writer(self) -> str:
        """Who commits to tables, in the words of Delta's application transactions."""
        return f"midstream-{self.id}"


def origin(storage: Path) -> Origin | None:
    """What the storage says, if its job has run."""
    path = storage / "control" / "streams.json"
    try:
        content = loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (JSONDecodeError, UnicodeDecodeError, OSError):
        content = None
    if not isinstance(content, dict) or not {"started", "streams"} <= content.keys():
        raise RefusedError(
            f"{path} is damaged: restore it, together with the whole storage as of one time, or "
            "give the job a new storage"
        )
    if (layout := content.get("layout", 1)) != LAYOUT:
        raise RefusedError(
            f"{storage} was made by another version of midstream (layout {layout}, this one "
            f"has {LAYOUT}): go on with that version, or give the job a new storage"
        )
    return read(Origin, content, str(path), later=True)


def begun(storage: Path, streams: Iterable[str], now: int) -> Origin:
    """What the storage says, or what it says from now on."""
    known = origin(storage)
    if known is None:
        _must_be_new(storage)
        known = Origin(now, tuple(streams), uuid4().hex)
        path = storage / "control" / "streams.json"
        private(path.parent)
        replace(path, dumps(asdict(known)))
    if sorted(known.streams) != sorted(streams):
        raise RefusedError(
            f"the streams of a job cannot change: this storage has {', '.join(known.streams)}, "
            f"the job file {', '.join(streams)}; give the job another storage"
        )
    return known


def _must_be_new(storage: Path) -> None:
    if (storage / "control" / "progress").exists():
        raise RefusedError(
            f"{storage / 'control' / 'streams.json'} is not there, though its job has run: restore "
            "it, together with the whole storage as of one time, or give the job a new storage"
        )
