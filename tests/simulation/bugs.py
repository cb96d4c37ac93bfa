"""Bugs to plant in the engine: what the simulator must find to be trusted."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from jobs.engine import lower, microbatch, migrator, statements
from jobs.engine.executors.duck import DuckExecutor
from jobs.engine.filling import Filler
from jobs.engine.ingest import ALWAYS
from jobs.engine.microbatch import Engine
from jobs.engine.migration import Migration, coming
from jobs.engine.migrator import Migrator, Turn
from jobs.engine.progress import Decision, decided
from jobs.engine.rebuild import Slice, statement
from jobs.engine.requests import Request
from jobs.engine.statements import Split
from jobs.engine.states import States
from jobs.engine.store import File, MemoryStore, Store
from optimizer.migration.matching import States as Kept
from optimizer.plan import Plan
from tests.simulation.queries import UNIT

Plant = Callable[[pytest.MonkeyPatch], None]


def writes_are_repeated(patch: pytest.MonkeyPatch) -> None:
    """A table does not know which batches it has."""
    known = MemoryStore.last_batch
    patch.setattr(
        MemoryStore,
        "last_batch",
        lambda store, table, *writer: (
            known(store, table, *writer) if table.startswith("control/") else -1
        ),
    )


def a_batch_sees_itself(patch: pytest.MonkeyPatch) -> None:
    """States are read up to the current batch, not strictly before it."""
    opened = DuckExecutor.open
    patch.setattr(
        DuckExecutor,
        "open",
        lambda self, state, store, table, before: opened(self, state, store, table, before + 1),
    )


def purged_too_early(patch: pytest.MonkeyPatch) -> None:
    """Rows are kept for half of the time."""
    lowered = lower.lower

    def forgetful(*arguments: Any) -> lower.Program:
        program = lowered(*arguments)
        operators = (replace(o, retention=o.retention // 2) for o in program.operators)
        return replace(program, operators=tuple(operators))

    patch.setattr("jobs.engine.microbatch.lower", forgetful)


def never_purged(patch: pytest.MonkeyPatch) -> None:
    """States grow for ever."""
    patch.setattr(States, "purge", lambda *_: None)


def lateness_is_ignored(patch: pytest.MonkeyPatch) -> None:
    """The watermark is as high as the newest tuples."""
    real = microbatch._watermark

    def hasty(ingests: Mapping[str, Any], *rest: Any) -> int | None:
        return real({name: replace(i, lateness=0) for name, i in ingests.items()}, *rest)

    patch.setattr(microbatch, "_watermark", hasty)


def the_fastest_stream_leads(patch: pytest.MonkeyPatch) -> None:
    """The watermark is the maximum over the streams."""
    real = microbatch._watermark

    def fastest(ingests: Mapping[str, Any], *rest: Any) -> int | None:
        alone = [real({name: ingest}, *rest) for name, ingest in ingests.items()]
        return max((one for one in alone if one is not None), default=None)

    patch.setattr(microbatch, "_watermark", fastest)


def idle_streams_hold_everything_up(patch: pytest.MonkeyPatch) -> None:
    """Nobody stops waiting for a silent stream."""
    real = microbatch._watermark

    def patient(ingests: Mapping[str, Any], *rest: Any) -> int | None:
        return real({name: replace(i, idle_after=None) for name, i in ingests.items()}, *rest)

    patch.setattr(microbatch, "_watermark", patient)


def both_sides_count_what_is_new(patch: pytest.MonkeyPatch) -> None:
    """New tuples meet new partners once from either side."""
    real = statements._known
    patch.setattr(statements, "_known", lambda part, names, **_: real(part, names, with_new=True))


def no_side_counts_what_is_new(patch: pytest.MonkeyPatch) -> None:
    """New tuples never meet new partners."""
    real = statements._known
    patch.setattr(statements, "_known", lambda part, names, **_: real(part, names, with_new=False))


def windows_close_too_early(patch: pytest.MonkeyPatch) -> None:
    """A window is emitted while one more of its tuples may come."""
    real = Engine._emits_until

    def eager(self: Engine, *arguments: Any) -> int | None:
        until = real(self, *arguments)
        return None if until is None else until + UNIT

    patch.setattr(Engine, "_emits_until", eager)


def a_replay_decides_anew(patch: pytest.MonkeyPatch) -> None:
    """An interrupted batch takes another time for its own."""
    patch.setattr(microbatch, "decided", lambda *_: None)


def a_merged_file_stays(patch: pytest.MonkeyPatch) -> None:
    """Rows of a merged file are there twice."""
    real = MemoryStore.merge

    def merge(store: MemoryStore, table: str, files: Sequence[File], name: str = "") -> None:
        real(store, table, files, name)
        store._tables[table].files.append(files[0])

    patch.setattr(MemoryStore, "merge", merge)


# --- of migrations -------------------------------------------------------------------------------


def what_an_attempt_left_is_kept(patch: pytest.MonkeyPatch) -> None:
    """States that nobody needs any more stay where they are."""
    patch.setattr(States, "keep_only", lambda *_: None)


def both_plans_run_too_briefly(patch: pytest.MonkeyPatch) -> None:
    """The old plan ends while its tuples can still join."""
    patch.setattr(Migrator, "_outlived", lambda *_: True)


def the_old_plan_puts_out_everything(patch: pytest.MonkeyPatch) -> None:
    """Results that are young altogether come from both plans."""

    def whole(split: Split | None) -> Split | None:
        return split if split and split.younger else None

    results, panes = lower._results, lower._panes
    patch.setattr(lower, "_results", lambda plan, split=None: results(plan, whole(split)))
    patch.setattr(
        lower, "_panes", lambda node, bucket, split=None: panes(node, bucket, whole(split))
    )


def a_replay_forgets_the_cut_over(patch: pytest.MonkeyPatch) -> None:
    """An interrupted batch goes on with the plan of the batch before it."""

    def forgetful(store: Store, batch: int) -> Decision | None:
        decision = decided(store, batch)
        return decision and replace(decision, plans={})

    patch.setattr(microbatch, "decided", forgetful)


def a_failing_command_is_ignored(patch: pytest.MonkeyPatch) -> None:
    """The cut-over does not wait for the command before it to succeed."""
    real = Migrator._cut_over

    def hasty(self: Migrator, m: Migration, here: Any) -> Any:
        return real(self, replace(m, request=replace(m.request, before="")), here)

    patch.setattr(Migrator, "_cut_over", hasty)


def an_aborted_plan_runs(patch: pytest.MonkeyPatch) -> None:
    """A migration that is aborted leaves its plan behind."""
    real = Migrator.turn

    def turn(self: Migrator, number: int, progress: Any, plans: Any, partial: Any) -> Turn:
        m, made = self.migration, real(self, number, progress, plans, partial)
        if m is None or not any(e.phase == "aborted" for e in made.events):
            return made
        new = coming(m.request, plans)
        return replace(made, plans={**plans, m.request.query: new})

    patch.setattr(Migrator, "turn", turn)


def a_restart_forgets_a_hold(patch: pytest.MonkeyPatch) -> None:
    """That a migration is to wait is known only to the process that was told."""
    real = Migrator._hold

    def hold(self: Migrator, request: Request) -> None:
        if request.id not in self._phases:
            real(self, request)

    patch.setattr(Migrator, "_hold", hold)


def a_restart_forgets_how_far_a_fill_was(patch: pytest.MonkeyPatch) -> None:
    """How many slices there are is known only to the process that made them."""
    real = Filler._fill

    def made_by(process: Filler) -> Counter[tuple[str, int]]:
        slices: Counter[tuple[str, int]] = vars(process).setdefault("made", Counter())
        return slices

    def fill(self: Filler, m: Migration, plans: Any, at: int, only: Slice | None) -> float:
        table = real(self, m, plans, at, only)
        made_by(self)[m.request.id, m.at] += 1
        return table

    patch.setattr(Filler, "_fill", fill)
    patch.setattr(Filler, "filled", lambda self, m: made_by(self)[m.request.id, m.at])


def slices_overlap(patch: pytest.MonkeyPatch) -> None:
    """Each slice of a state has what those before it have."""
    real = Filler._fill

    def fill(self: Filler, m: Migration, plans: Any, at: int, only: Slice | None) -> float:
        return real(self, m, plans, at, only and replace(only, start=ALWAYS))

    patch.setattr(Filler, "_fill", fill)


def a_fill_reads_what_is_younger(patch: pytest.MonkeyPatch) -> None:
    """It takes in what the batches after its boundary have brought, which is there already."""
    patch.setattr(
        "jobs.engine.filling.statement",
        lambda made, boundary, *rest: statement(made, boundary + 1, *rest),
    )


def a_fill_stops_early(patch: pytest.MonkeyPatch) -> None:
    """The youngest slice of a state is left out."""
    real = Filler._sliced

    def sliced(self: Filler, m: Migration, here: Any) -> Migration:
        made = real(self, m, here)
        return replace(made, slices=(made.slices or ())[:-1])

    patch.setattr(Filler, "_sliced", sliced)


def a_part_is_taken_for_the_whole(patch: pytest.MonkeyPatch) -> None:
    """A state that holds what one query needs serves another."""
    real = migrator.context_of
    patch.setattr(migrator, "context_of", lambda *arguments: replace(real(*arguments), partial={}))


def a_part_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """The first batch after a cut-over remembers no more which states are filled in part."""
    patch.setattr(migrator, "still_partial", lambda *_: {})


def the_first_query_decides(patch: pytest.MonkeyPatch) -> None:
    """A state that queries share is kept for as long as the first of them needs it."""
    lowered = lower.lower

    def selfish(plans: Mapping[str, Plan], *rest: Any) -> lower.Program:
        kept: dict[str, int] = {}
        for plan in plans.values():
            kept = {**Kept.of(plan).retention, **kept}
        program = lowered(plans, *rest)
        operators = (replace(o, retention=kept.get(o.key, o.retention)) for o in program.operators)
        return replace(program, operators=tuple(operators))

    patch.setattr("jobs.engine.microbatch.lower", selfish)


def a_part_maintains_what_others_share(patch: pytest.MonkeyPatch) -> None:
    """What a state of two queries is made from is filled with what one of them needs."""
    patch.setattr("optimizer.migration.matching._Matcher._below_shared", frozenset())


def what_was_dropped_once_is_selected_on(patch: pytest.MonkeyPatch) -> None:
    """A column is taken to be there as soon as a plan keeps it, though older rows have NULL."""
    patch.setattr("optimizer.migration.matching._Matcher._perhaps_padded", lambda *_: set())


def a_replay_copies_what_is_overdue(patch: pytest.MonkeyPatch) -> None:
    """What a repeated batch computes stays in memory though its file has been forgotten."""
    purge = States.purge

    def once(self: States, key: str, cutoff: int, *, again: bool = False) -> None:
        purge(self, key, cutoff)

    patch.setattr(States, "purge", once)


MIGRATION_BUGS: Mapping[Plant, int] = {
    an_aborted_plan_runs: 4,
    a_restart_forgets_a_hold: 10,
    a_restart_forgets_how_far_a_fill_was: 6,
    slices_overlap: 54,
    a_fill_reads_what_is_younger: 27,
    a_fill_stops_early: 2,
    a_part_is_taken_for_the_whole: 7,
    a_part_is_forgotten: 7,
    the_first_query_decides: 12,
    what_an_attempt_left_is_kept: 1,
    both_plans_run_too_briefly: 13,
    the_old_plan_puts_out_everything: 15,
    a_replay_forgets_the_cut_over: 0,
    a_failing_command_is_ignored: 0,
    a_part_maintains_what_others_share: 2747,
    a_replay_copies_what_is_overdue: 2716,
    what_was_dropped_once_is_selected_on: 5399,
}
"""Bugs of migrations, and a seed that finds each."""

BUGS: Mapping[Plant, int] = {
    writes_are_repeated: 2,
    a_batch_sees_itself: 18,
    purged_too_early: 6,
    never_purged: 6,
    lateness_is_ignored: 1,
    the_fastest_stream_leads: 1,
    idle_streams_hold_everything_up: 15,
    both_sides_count_what_is_new: 6,
    no_side_counts_what_is_new: 6,
    windows_close_too_early: 15,
    a_replay_decides_anew: 18,
    a_merged_file_stays: 0,
}
"""The others, likewise."""
