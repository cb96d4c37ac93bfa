"""What was decided about a job's plans, when, why and by whom: one row a decision, kept for good.

What a person says of a decision that waits is another row of the same id; the last one counts.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from enum import StrEnum
from json import loads
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from jobs.tables import command_log
from jobs.tables.damage import whole
from jobs.tables.rows import read
from optimizer.cost.dual import gain
from optimizer.drift import Outcome

_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("at", pa.int64()),
        ("query", pa.string()),
        ("outcome", pa.string()),
        ("key", pa.string()),
        ("approval", pa.string()),
        ("request", pa.string()),
        ("content", pa.string()),
    ]
)

WHERE = "reoptimize/decisions"


class Approval(StrEnum):
    """Whether a person has to agree, and what they said."""

    NOT_NEEDED = "not needed"
    WAITS = "waits"
    APPROVED = "approved"
    REJECTED = "rejected"


@dataclass(frozen=True)
class Candidate:
    """The plan that a search strategy came to."""

    strategy: str
    plan: str
    cpu: float
    """CPU-seconds a second, under the workload of all windows together."""
    memory_tuples: float
    memory_bytes: float
    qualified: bool
    examined: int
    seconds: float
    """How long the search took."""
    results_by: float | None = None
    seconds_to: float | None = None
    """What it makes of the job's objective, if that is one of output rates."""


@dataclass(frozen=True)
class Decision:
    """What was decided about a query, from what, and what came of it; plain values throughout."""

    id: str
    at: int
    """When, in microseconds."""
    job: str
    query: str
    outcome: str
    trigger: str
    """The first that fired; none, or a person."""
    reasons: tuple[str, ...]
    figures: Mapping[str, Any]
    """running_cpu, chosen_cpu, drift (by window), gain_per_hour, migration_work, payback_seconds;
    empty without windows."""
    running: str
    """The plan that runs, as people write it."""
    running_plan: Mapping[str, Any]
    """The same as JSON."""
    candidates: tuple[Candidate, ...]
    chosen: str
    """The plan to migrate to."""
    chosen_plan: Mapping[str, Any]
    strategy: str
    """The search that found it, or `library`."""
    migration: str
    """The strategy by which to migrate; empty where there is nothing to migrate."""
    workload: Mapping[str, Any]
    """As a workload file has it: `midstream optimize --workload` reads it."""
    windows: tuple[tuple[int, int], ...]
    """Those that it rests on: their starts and ends, in microseconds."""
    library: str
    """The signature by which the plan was found in the library; empty without a hit."""
    by: str
    why: str
    forced: bool
    dry_run: bool
    key: str
    """Equal for decisions that would do the same for the same reason."""
    approval: str = Approval.NOT_NEEDED
    answered_by: str = ""
    answered_why: str = ""
    answered_at: int = 0
    request: str = ""
    """The migration that was asked for."""

    @property
    def gain(self) -> float:
        """The share of the CPU that the plan chosen is to save."""
        return gain(self.figures["running_cpu"], self.figures["chosen_cpu"])

    @property
    def migrates(self) -> bool:
        """Whether it says to migrate."""
        return self.outcome == Outcome.MIGRATE

    @property
    def stays(self) -> bool:
        """Whether the running plan is the one to take."""
        return self.chosen_plan == self.running_plan

    @property
    def gated(self) -> bool:
        """Whether a person has to agree, or has said something."""
        return self.approval != Approval.NOT_NEEDED

    def is_about(self, running: Mapping[str, Any], chosen: Mapping[str, Any]) -> bool:
        """Whether it is about going from that plan to that one."""
        return (self.running_plan, self.chosen_plan) == (running, chosen)

    def to_json(self) -> dict[str, Any]:
        """As programs read it."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Decision":
        """What `to_json` wrote."""
        candidates = (read(Candidate, one, WHERE, later=True) for one in data["candidates"])
        content = {
            **data,
            "reasons": tuple(data["reasons"]),
            "candidates": tuple(candidates),
            "windows": tuple((start, end) for start, end in data["windows"]),
        }
        return read(cls, content, WHERE, later=True)


@dataclass(frozen=True)
class DecisionLog:
    """A job's decisions, a Delta table under its storage."""

    root: Path

    @classmethod
    def of(cls, storage: Path) -> "DecisionLog":
        """Where a job that keeps to that directory has them."""
        return cls(storage / "reoptimize")

    @property
    def path(self) -> Path:
        """The table, for whoever reads Delta."""
        return self.root / "decisions"

    def alone(self) -> AbstractContextManager[None]:
        """Let nobody else decide meanwhile: two who look at the same windows ask once."""
        return command_log.alone(self.root)

    def record(self, decision: Decision) -> None:
        """Append a decision, or what has become of it."""
        command_log.append(self.path, _SCHEMA, decision.to_json())

    def newest(self, count: int) -> list[Decision]:
        """The last so many as they stand, the oldest first."""
        return self._find("true", count)[-count:]

    def get(self, id_: str) -> Decision | None:
        """The one of that id."""
        return next(iter(self._find(f"id = '{_quoted(id_)}'")), None)

    def repeated(self, key: str) -> Decision | None:
        """The one that would do the same for the same reason, if something came of it."""
        found = self._find(f"key = '{_quoted(key)}'")
        return next((one for one in found if one.request or one.gated), None)

    def gated(self, query: str) -> list[Decision]:
        """Those of a query that a person has to agree to, or has."""
        where = f"query = '{_quoted(query)}' AND approval <> '{Approval.NOT_NEEDED}'"
        return self._find(where)

    def asked(self, query: str) -> Decision | None:
        """The last of a query that led to a migration."""
        found = self._find(f"query = '{_quoted(query)}' AND request <> ''")
        return found[-1] if found else None

    def _find(self, where: str, count: int | None = None) -> list[Decision]:
        """Decisions as they stand; of `count` ids at least."""
        if not DeltaTable.is_deltatable(str(self.path)):
            return []
        limit = "" if count is None else f" LIMIT {3 * count}"
        text = f"SELECT content FROM decisions WHERE {where} ORDER BY at DESC{limit}"
        with whole(self.path):
            known = QueryBuilder().register("decisions", DeltaTable(self.path))
            contents = pa.table(known.execute(text).read_all()).column("content").to_pylist()
            found = [Decision.from_json(loads(content)) for content in contents]
        stands = {one.id: one for one in sorted(found, key=_stands)}
        return sorted(stands.values(), key=lambda one: (one.at, one.id))


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def _stands(decision: Decision) -> tuple[int, bool, bool]:
    """Of two rows of a decision, the later one is that which says more."""
    answered = decision.approval in (Approval.APPROVED, Approval.REJECTED)
    return decision.at, answered, bool(decision.request)
