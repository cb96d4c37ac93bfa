"""Deployments of a job over its network: what was proposed or deployed, when, why and by whom.

One row each, kept for good; `midstream plan-network JOB` makes them, and `midstream reoptimize`.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from json import loads
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from jobs.tables import command_log
from jobs.tables.damage import whole
from jobs.tables.rows import read

_SCHEMA = pa.schema([
    ("id", pa.string()), ("at", pa.int64()), ("outcome", pa.string()), ("key", pa.string()),
    ("content", pa.string()),
])  # fmt: skip


class Outcome(StrEnum):
    """What comes of looking at a job's network."""

    DEPLOY = "deploy"
    HOLD = "hold"
    BLOCKED = "blocked"
    """Nothing is known of the streams, or they cannot be planned."""


@dataclass(frozen=True)
class Candidate:
    """What a strategy came to, over all queries of the job."""

    strategy: str
    usage: float
    over_optimum: float | None
    """Above the sum of each query's exact least, in turn; none where that is not looked for."""
    examined: int
    evaluated: int
    seconds: float
    joins: int


@dataclass(frozen=True)
class Deployment:
    """What was decided about a job's places, from what; plain values throughout."""

    id: str
    at: int
    job: str
    outcome: str
    reasons: tuple[str, ...]
    strategy: str = ""
    """The one that found it."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """running_usage, usage, drift (by window), moved_bytes, filled_bytes, kept_bytes, transfer,
    payback_seconds; empty without windows."""
    candidates: tuple[Candidate, ...] = ()
    queries: tuple[Mapping[str, Any], ...] = ()
    """What is to run, as `plan-network` prints it."""
    states: tuple[Mapping[str, Any], ...] = ()
    steps: tuple[Mapping[str, Any], ...] = ()
    windows: tuple[tuple[int, int], ...] = ()
    by: str = ""
    why: str = ""
    deployed: bool = False
    """Whether it was deployed; otherwise it was proposed."""
    key: str = ""
    """Equal for those that would do the same for the same reason."""

    def to_json(self) -> dict[str, Any]:
        """As programs read it."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Deployment":
        """What `to_json` wrote."""
        candidates = tuple(read(Candidate, one, WHERE, later=True) for one in data["candidates"])
        several = {n: tuple(data[n]) for n in ("reasons", "queries", "states", "steps")}
        windows = tuple((start, end) for start, end in data["windows"])
        content = {**data, **several, "candidates": candidates, "windows": windows}
        return read(cls, content, WHERE, later=True)


WHERE = "network/log"


@dataclass(frozen=True)
class DeploymentLog:
    """A job's deployments, and what is in force, under its storage."""

    root: Path

    @classmethod
    def of(cls, storage: Path) -> "DeploymentLog":
        """Where a job that keeps to that directory has them."""
        return cls(storage / "network")

    @property
    def path(self) -> Path:
        """The table, for whoever reads Delta."""
        return self.root / "log"

    def alone(self) -> AbstractContextManager[None]:
        """Let nobody else decide meanwhile: two who look at the same windows propose once."""
        return command_log.alone(self.root)

    def picture(self, id_: str, strategy: str) -> Path:
        """What a strategy would deploy."""
        return self.root / "pictures" / id_ / f"{strategy}.svg"

    def record(self, one: Deployment) -> None:
        """Append a deployment."""
        command_log.append(self.path, _SCHEMA, one.to_json())

    def all(self) -> list[Deployment]:
        """All of them, the oldest first."""
        return sorted(self._all(), key=lambda one: (one.at, one.id))

    def _all(self) -> Iterator[Deployment]:
        with whole(self.path):
            if not DeltaTable.is_deltatable(str(self.path)):
                return
            rows = pa.table(DeltaTable(self.path).to_pyarrow_table(columns=["content"]))
            for text in rows.column("content").to_pylist():
                yield Deployment.from_json(loads(text))

    def repeated(self, key: str) -> Deployment | None:
        """The one that proposes the same, if nothing has been deployed since."""
        for one in reversed(self.all()):
            if one.key == key or one.deployed:
                return None if one.deployed else one
        return None

    def latest(self) -> Deployment | None:
        """The one that is in force."""
        return next((one for one in reversed(self.all()) if one.deployed), None)
