"""Bugs of batches: what is decided, and what a process knows that takes over."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from jobs.engine import microbatch
from jobs.tables import progress
from jobs.tables.progress import BatchDecision, Progress


def a_replay_decides_anew(patch: pytest.MonkeyPatch) -> None:
    """An interrupted batch takes another time for its own."""
    patch.setattr(microbatch, "decided", lambda *_: None)


def a_replay_takes_all_for_new(patch: pytest.MonkeyPatch) -> None:
    """What an interrupted batch has committed counts as part of the states once more."""
    real = microbatch._Batch

    def batch(number: int, decision: BatchDecision, *, fresh: bool) -> microbatch._Batch:
        return real(number, decision, fresh=fresh or True)

    patch.setattr(microbatch, "_Batch", batch)


def _remembers(patch: pytest.MonkeyPatch, change: Mapping[str, Any]) -> None:
    """Have a process that takes over know less of what was done."""
    real = progress.last

    def last(store: Any) -> Progress:
        return replace(real(store), **change)

    patch.setattr(microbatch, "last", last)


def a_restart_forgets_the_watermark(patch: pytest.MonkeyPatch) -> None:
    """A process that takes over begins without one."""
    _remembers(patch, {"watermark": None})


def a_restart_forgets_the_streams(patch: pytest.MonkeyPatch) -> None:
    """A process that takes over does not know how far each stream was."""
    _remembers(patch, {"streams": {}})


def a_restart_forgets_what_was_put_out(patch: pytest.MonkeyPatch) -> None:
    """A process that takes over does not know which windows are done."""
    _remembers(patch, {"emitted": {}})
