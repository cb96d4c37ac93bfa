"""A migration under way: what was asked for, its steps, where it stands; part of decisions."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from jobs.tables.columns import ALWAYS
from jobs.tables.phases import Phase
from jobs.tables.requests import Request
from jobs.tables.rows import read
from optimizer.migration.steps import CutOver, Fill, Prove, Step, Track, Wait, from_json, to_json
from optimizer.plan import Node, Plan, Source, walk
from optimizer.plan import from_json as plan_from_json

_WHERE = "the migration under way in control/decisions"


@dataclass(frozen=True)
class Migration:
    """A migration under way, and where it stands."""

    request: Request
    steps: tuple[Step, ...]
    began: int
    at: int = 0
    """The step under way."""
    boundary: int = -1
    """The batch after which it began to take effect."""
    tracked: tuple[str, ...] = ()
    since: int | None = None
    shown: bool = False
    held: bool = False
    source: int = 0
    slices: tuple[int, ...] | None = None
    """Event times, ascending, that end the slices of that source: the state is filled by them."""
    lacking: tuple[str, ...] = ()
    """States of a parallel track whose rows of before are only what this query needs."""

    @property
    def step(self) -> Step:
        """What is being done."""
        return self.steps[self.at]

    @property
    def phase(self) -> Phase:
        """What people call it."""
        match self.step:
            case Wait():
                return Phase.TRACKING
            case Prove():
                return Phase.PROVING
            case CutOver():
                return Phase.READY
        return Phase.BUILDING

    @property
    def early(self) -> bool:
        """Whether nothing has been done so far of what may be done between two batches."""
        return self.boundary < 0 and any(isinstance(step, Track) for step in self.steps[self.at :])

    @property
    def touched(self) -> tuple[str, ...]:
        """States whose tables may be there on its behalf."""
        ahead = [step.state for step in self.steps if isinstance(step, Fill)] if self.early else []
        return (*self.tracked, *ahead)

    @property
    def partial(self) -> tuple[str, ...]:
        """States whose older rows are only what this query needs."""
        filled = (step.state for step in self.steps if isinstance(step, Fill) and step.partial)
        return (*self.lacking, *filled)

    def to_json(self) -> dict[str, Any]:
        """As a decision holds it."""
        return asdict(replace(self, steps=())) | {"steps": [to_json(step) for step in self.steps]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Migration":
        """What `to_json` wrote."""
        slices = data.get("slices")
        content = {
            **data,
            "request": read(Request, data["request"], _WHERE),
            "steps": tuple(map(from_json, data["steps"])),
            "tracked": tuple(data.get("tracked", ())),
            "lacking": tuple(data.get("lacking", ())),
            "slices": None if slices is None else tuple(slices),
        }
        return read(cls, content, _WHERE)


def completed(node: Node, newest: Mapping[str, int | None]) -> int:
    """The event time after which no combination of an operator's inputs is there."""
    names = {source.stream.name for source in walk(node) if isinstance(source, Source)}
    times = [time for name, time in newest.items() if name in names]
    return min((ALWAYS if time is None else time for time in times), default=ALWAYS)


def begin_track(
    found: Mapping[Node, Fill | None], newest: Mapping[str, int | None], watermark: int | None
) -> tuple[int, list[Fill]]:
    """From when on a parallel track takes tuples, and the states that are filled with younger ones.

    It is just past the newest of the slowest stream, if that still counts, and past all that a
    state might hold of which younger rows cannot be made.
    """
    slowest = min((time for time in newest.values() if time is not None), default=ALWAYS)
    unsure = [completed(node, newest) for node, fill in found.items() if fill is None]
    since = max(slowest, ALWAYS if watermark is None else watermark, *unsure) + 1
    return since, [
        fill for node, fill in found.items() if fill and completed(node, newest) >= since
    ]


def target_plan(request: Request, plans: Mapping[str, Plan]) -> Plan:
    """The plan to which a request migrates its query."""
    return plan_from_json(plans[request.query].query, dict(request.plan or {}))
