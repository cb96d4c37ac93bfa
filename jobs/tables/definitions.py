"""What a job's file said when its batches ran: kept beside them, for the file may be edited.

Whoever judges results later needs the queries that made them, and the streams as they were read.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from json import loads
from pathlib import Path
from typing import Any

from jobs.specs import Job

FILE = "definitions.json"
"""Its name in the storage's `control`."""


@dataclass(frozen=True)
class Definition:
    """Streams and queries from one batch on, until another definition begins."""

    since: int
    content: Mapping[str, Any]

    def of(self, job: Job) -> Job:
        """The job as it was then."""
        return job.defined(self.content)


def definitions(storage: Path) -> list[Definition]:
    """All of a storage, the oldest first."""
    path = storage / "control" / FILE
    if not path.exists():
        return []
    return [Definition(**one) for one in loads(path.read_text(encoding="utf-8"))]


def with_definition(known: list[Definition], job: Job, batch: int) -> list[dict[str, Any]]:
    """What to keep once batches from that one on run by this job."""
    before = [one for one in known if one.since < batch]
    content = job.definition
    if not before or before[-1].content != content:
        before.append(Definition(batch, content))
    return [asdict(one) for one in before]
