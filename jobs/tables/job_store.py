"""Where a job keeps what: everything under its storage, but for results that go elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jobs.tables.delta_store import DeltaStore
from jobs.tables.origin import origin


@dataclass
class JobStore(DeltaStore):
    """The tables of a job; `elsewhere` names those that are not under its storage."""

    elsewhere: Mapping[str, Path] = field(default_factory=dict)
    durable: bool = True

    def __post_init__(self) -> None:
        if known := origin(self.root):
            self.writer = known.writer

    def path(self, table: str) -> Path:
        return self.elsewhere.get(table) or super().path(table)

    def _places(self) -> list[Path]:
        return [*super()._places(), *self.elsewhere.values()]


def checkpoint(storage: Path) -> Path:
    """Spark's own."""
    return storage / "checkpoint"
