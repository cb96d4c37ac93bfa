"""The steps of a migration, as plain data: their whole vocabulary (Zhu 12 to 14, and our own).

A state is named by the key of its identity.  What a step does is the engine's business; that the
steps in their order lose no result is the strategies'.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any


class Refused(ValueError):  # noqa: N818
    """A migration that cannot be done this way, and why."""


class StepError(ValueError):
    """Data that is not a step."""


class How(StrEnum):
    """What a state is made from."""

    JOIN = "join"
    """The new plan's own lower states (Zhu 12.1.3)."""

    DERIVE = "derive"
    """A state of the old plan over the same inputs: filtered, projected, padded (Zhu 13)."""

    COMBINE = "combine"
    """An input's own tuples in the old plan, now combined: a group-by pushed down (Zhu 14)."""

    EXPAND = "expand"
    """Combined tuples in the old plan, now as many as each stands for: a group-by pulled up."""


@dataclass(frozen=True)
class Keep:
    """The state is there already: nothing is copied."""

    state: str


@dataclass(frozen=True)
class Fill:
    """Compute a state as of the boundary from the states that it names."""

    state: str
    how: How
    sources: tuple[str, ...]
    partial: bool = False
    """Whether its rows from before hold only what this query needs, not all that the key says."""


@dataclass(frozen=True)
class Track:
    """From the next batch on, the running job maintains these states as well."""

    states: tuple[str, ...]


@dataclass(frozen=True)
class Parallel:
    """From the next batch on both plans run, the new one over tuples past the slowest stream.

    The old plan drops the results all of whose tuples are that young (Zhu 12.2.2).
    """

    states: tuple[str, ...]


@dataclass(frozen=True)
class Wait:
    """Until no tuple that the old plan is left with can join any more."""


@dataclass(frozen=True)
class Prove:
    """Both plans compute so many batches in full, and must agree."""

    batches: int


@dataclass(frozen=True)
class CutOver:
    """The new plan is the running one."""


@dataclass(frozen=True)
class Drop:
    """Nobody needs the state any more."""

    state: str


Step = Keep | Fill | Track | Parallel | Wait | Prove | CutOver | Drop
Steps = tuple[Step, ...]

STEPS: Mapping[str, type[Step]] = {
    "keep": Keep,
    "fill": Fill,
    "track": Track,
    "parallel": Parallel,
    "wait": Wait,
    "prove": Prove,
    "cut-over": CutOver,
    "drop": Drop,
}


def with_proof(steps: Sequence[Step], batches: int) -> Steps:
    """The same, but for so many batches the new plan shadows the old one before the cut-over.

    States that were filled all at once must be maintained meanwhile.
    """
    if batches < 1:
        return tuple(steps)
    proof: list[Step] = [Prove(batches)]
    filled = tuple(step.state for step in steps if isinstance(step, Fill))
    if filled and not any(isinstance(step, Track) for step in steps):
        proof.insert(0, Track(filled))
    at = steps.index(CutOver())
    return (*steps[:at], *proof, *steps[at:])


# --- JSON ----------------------------------------------------------------------------------------

_NAMES = {kind: name for name, kind in STEPS.items()}


def to_json(step: Step) -> dict[str, Any]:
    """The step as plain data."""
    values = {field.name: getattr(step, field.name) for field in fields(step)}
    return {"step": _NAMES[type(step)]} | {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
    }


def from_json(data: Mapping[str, Any]) -> Step:
    """The step that `to_json` wrote."""
    kind = STEPS.get(data.get("step", ""))
    if kind is None:
        raise StepError(f"{data.get('step')!r} is not one of {', '.join(STEPS)}")
    given = {name: value for name, value in data.items() if name != "step"}
    if unknown := given.keys() - {field.name for field in fields(kind)}:
        raise StepError(f"{data['step']} has no {min(unknown)}")
    try:
        return kind(**{name: _value(name, value) for name, value in given.items()})
    except TypeError:
        raise StepError(f"{data['step']} lacks a field: {dict(data)}") from None


def _value(name: str, value: Any) -> Any:
    match name, value:
        case "state", str():
            return value
        case "how", str() if value in set(How):
            return How(value)
        case (("sources" | "states"), list()) if all(isinstance(one, str) for one in value):
            return tuple(value)
        case "partial", bool():
            return value
        case "batches", int() if value > 0 and not isinstance(value, bool):
            return value
    raise StepError(f"{name} cannot be {value!r}")
