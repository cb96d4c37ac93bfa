"""Bugs of what is taken in: watermarks, what is late, and what is rejected."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from jobs.engine import ingest, microbatch
from jobs.engine.ingest import Ingest, Intake
from jobs.tables.progress import BatchDecision, StreamStats


def _ingests(patch: pytest.MonkeyPatch, change: Callable[[Ingest], Ingest]) -> None:
    """Have watermarks computed as if streams were taken in otherwise."""
    real = microbatch._watermark

    def watermark(ingests: Mapping[str, Ingest], *rest: Any) -> int | None:
        return real({name: change(one) for name, one in ingests.items()}, *rest)

    patch.setattr(microbatch, "_watermark", watermark)


def lateness_is_ignored(patch: pytest.MonkeyPatch) -> None:
    """The watermark is as high as the newest tuples."""
    _ingests(patch, lambda one: replace(one, lateness=0))


def lateness_is_a_microsecond_short(patch: pytest.MonkeyPatch) -> None:
    """The watermark is a microsecond too high."""
    _ingests(patch, lambda one: replace(one, lateness=one.lateness - 1))


def idle_streams_hold_everything_up(patch: pytest.MonkeyPatch) -> None:
    """Nobody stops waiting for a silent stream."""
    _ingests(patch, lambda one: replace(one, idle_after=None))


def idle_is_a_microsecond_late(patch: pytest.MonkeyPatch) -> None:
    """A silent stream is waited for at the very moment when it should not be any more."""
    _ingests(patch, lambda one: replace(one, idle_after=one.idle_after and one.idle_after + 1))


def the_fastest_stream_leads(patch: pytest.MonkeyPatch) -> None:
    """The watermark is the maximum over the streams."""
    real = microbatch._watermark

    def fastest(ingests: Mapping[str, Any], *rest: Any) -> int | None:
        alone = [real({name: one}, *rest) for name, one in ingests.items()]
        return max((one for one in alone if one is not None), default=None)

    patch.setattr(microbatch, "_watermark", fastest)


def the_watermark_goes_back(patch: pytest.MonkeyPatch) -> None:
    """A stream that speaks again after it was idle takes the watermark with it."""
    real = microbatch._watermark

    def backwards(ingests: Any, flows: Any, clock: int, before: int | None) -> int | None:
        made = real(ingests, flows, clock, None)
        return before if made is None else made

    patch.setattr(microbatch, "_watermark", backwards)


def _flows(
    patch: pytest.MonkeyPatch, change: Callable[[StreamStats, Any, BatchDecision], StreamStats]
) -> None:
    real = ingest._flow

    def flow(row: Any, before: StreamStats | None, decision: BatchDecision) -> StreamStats:
        return change(real(row, before, decision), row, decision)

    patch.setattr(ingest, "_flow", flow)


def silence_is_not_noticed(patch: pytest.MonkeyPatch) -> None:
    """A stream that brings nothing counts as one that has spoken."""
    _flows(patch, lambda flow, _, decision: replace(flow, seen=decision.clock))


def the_newest_is_of_the_batch(patch: pytest.MonkeyPatch) -> None:
    """What a stream had brought before is forgotten."""
    _flows(patch, lambda flow, row, _: replace(flow, newest=row["newest"] or flow.newest))


def _sorts(patch: pytest.MonkeyPatch, name: str, change: Callable[[str], str]) -> None:
    """Have rows sorted by another condition, each one looked at."""
    real = getattr(ingest, name)
    patch.setattr(ingest, "_fine", lambda *_: False)
    patch.setattr(ingest, name, lambda one: change(real(one)))


def who_is_at_the_watermark_is_late(patch: pytest.MonkeyPatch) -> None:
    """A tuple is late that is as old as the watermark."""
    _sorts(patch, "_late", lambda text: text.replace("<", "<="))


def who_is_just_late_is_in_time(patch: pytest.MonkeyPatch) -> None:
    """A tuple that is a microsecond late is taken for one in time."""
    _sorts(patch, "_late", lambda text: text.replace(":watermark", ":watermark - 1"))


def the_future_begins_a_microsecond_early(patch: pytest.MonkeyPatch) -> None:
    """A tuple is rejected that is just as far ahead as it may be."""
    _sorts(patch, "_fits", lambda text: text.replace("<=", "<"))


def the_future_is_taken_in(patch: pytest.MonkeyPatch) -> None:
    """No tuple is too far ahead."""
    _sorts(patch, "_fits", lambda text: text.replace("<=", "IS NOT NULL OR TRUE OR 0 ="))


def _asides(patch: pytest.MonkeyPatch, kept: Callable[[str], bool]) -> None:
    real = ingest.take_in

    def take_in(*arguments: Any) -> Intake:
        made = real(*arguments)
        return replace(made, aside=tuple(filter(kept, made.aside)))

    patch.setattr(microbatch, "take_in", take_in)


def late_tuples_vanish(patch: pytest.MonkeyPatch) -> None:
    """What is late is in no table."""
    _asides(patch, lambda name: not name.startswith("late_"))


def rejected_rows_vanish(patch: pytest.MonkeyPatch) -> None:
    """What is rejected is in no table."""
    _asides(patch, lambda name: not name.startswith("rejected_"))


def late_tuples_join(patch: pytest.MonkeyPatch) -> None:
    """What is late is counted, and taken in like everything else."""
    real = ingest.take_in

    def take_in(backend: Any, one: Ingest, flow: StreamStats, *rest: Any) -> Intake:
        return real(backend, one, flow if flow.rejected else replace(flow, late=0), *rest)

    patch.setattr(microbatch, "take_in", take_in)
