"""Phases of a migration, by the words that tables and people have for them."""

from enum import StrEnum


class Phase(StrEnum):
    """Where a migration stands; `HOOK` is none of its own: the command after it has failed."""

    REQUESTED = "requested"
    WAITING = "waiting"
    BUILDING = "building"
    TRACKING = "tracking"
    PROVING = "proving"
    READY = "ready"
    DONE = "done"
    ABORTED = "aborted"
    REFUSED = "refused"
    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"
    HOOK = "hook"


FINAL = (Phase.DONE, Phase.ABORTED, Phase.REFUSED, Phase.SUPERSEDED, Phase.CANCELLED)
"""Phases after which nothing more happens."""
