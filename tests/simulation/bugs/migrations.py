"""Bugs of migrations, and of states that queries share."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from jobs.engine import lower, microbatch
from jobs.engine.migration import migrator
from jobs.engine.migration.backfill import Backfiller
from jobs.engine.migration.definition import Migration, target_plan
from jobs.engine.migration.migrator import Migrator, Turn
from jobs.engine.migration.rebuild import Slice, statement
from jobs.engine.statements import Split
from jobs.engine.states import States
from jobs.tables.columns import ALWAYS
from jobs.tables.progress import BatchDecision, decided, latest
from jobs.tables.requests import Request
from jobs.tables.store import Store
from optimizer.migration.matching import States as Kept
from optimizer.plan import Plan


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
    patch.setattr(
        lower, "_results", lambda plan, split=None, **how: results(plan, whole(split), **how)
    )
    patch.setattr(lower, "_panes", lambda node, split=None, **how: panes(node, whole(split), **how))


def a_replay_forgets_the_cut_over(patch: pytest.MonkeyPatch) -> None:
    """An interrupted batch goes on with the plan of the batch before it."""

    def forgetful(store: Store, batch: int) -> BatchDecision | None:
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
        new = target_plan(m.request, plans)
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
    real = Backfiller._fill

    def made_by(process: Backfiller) -> Counter[tuple[str, int]]:
        slices: Counter[tuple[str, int]] = vars(process).setdefault("made", Counter())
        return slices

    def fill(self: Backfiller, m: Migration, *rest: Any) -> float:
        table = real(self, m, *rest)
        made_by(self)[m.request.id, m.at] += 1
        return table

    patch.setattr(Backfiller, "_fill", fill)
    patch.setattr(Backfiller, "filled", lambda self, m: made_by(self)[m.request.id, m.at])


def slices_overlap(patch: pytest.MonkeyPatch) -> None:
    """Each slice of a state has what those before it have."""
    real = Backfiller._fill

    def fill(self: Backfiller, m: Any, made: Any, plans: Any, at: int, only: Any = None) -> float:
        return real(self, m, made, plans, at, only and replace(only, start=ALWAYS))

    patch.setattr(Backfiller, "_fill", fill)


def _filled_by(patch: pytest.MonkeyPatch, change: Callable[..., Any]) -> None:
    """Have states filled by another statement."""
    patch.setattr("jobs.engine.migration.backfill.statement", change)


def a_fill_reads_what_is_younger(patch: pytest.MonkeyPatch) -> None:
    """It takes in what the batches after its boundary have brought, which is there already."""
    _filled_by(patch, lambda made, boundary, *rest: statement(made, boundary + 1, *rest))


def a_fill_misses_the_last_batch(patch: pytest.MonkeyPatch) -> None:
    """What the batch before its boundary has brought is left out."""
    _filled_by(patch, lambda made, boundary, *rest: statement(made, boundary - 1, *rest))


def a_fill_forgets_selects(patch: pytest.MonkeyPatch) -> None:
    """A state gets the rows that its plan does not select, too."""
    _filled_by(patch, lambda made, *rest: statement(replace(made, selects=()), *rest))


def slices_share_their_edge(patch: pytest.MonkeyPatch) -> None:
    """What is just as old as where a slice ends is in the next one, too."""

    def filled(made: Any, boundary: int, only: Slice | None, since: int) -> Any:
        return statement(made, boundary, only and replace(only, end=only.end + 1), since)

    _filled_by(patch, filled)


def slices_leave_a_gap(patch: pytest.MonkeyPatch) -> None:
    """What is just as old as where a slice begins is in none."""

    def filled(made: Any, boundary: int, only: Slice | None, since: int) -> Any:
        return statement(made, boundary, only and replace(only, start=only.start + 1), since)

    _filled_by(patch, filled)


def a_fill_is_taken_for_done(patch: pytest.MonkeyPatch) -> None:
    """The cut-over does not wait for the slices that are missing."""
    patch.setattr(Backfiller, "lacks", lambda *_: False)


def what_an_attempt_filled_stays(patch: pytest.MonkeyPatch) -> None:
    """A state is filled beside what an interrupted attempt has left in it."""
    patch.setattr(Backfiller, "_fill_whole", lambda self, m, plans: self._fill(m, m.step, plans, 0))


def nobody_maintains_what_is_built(patch: pytest.MonkeyPatch) -> None:
    """Batches add nothing to the states of the plan to come."""
    real = Migrator.changes

    def changes(self: Migrator, plans: Any) -> Any:
        made = real(self, plans)
        return {name: replace(change, tracked=frozenset()) for name, change in made.items()}

    patch.setattr(Migrator, "changes", changes)


def a_parallel_track_begins_empty(patch: pytest.MonkeyPatch) -> None:
    """The new plan lacks tuples that came before it and are young enough for it."""
    patch.setattr(Backfiller, "fill_young", lambda *_: None)


def both_plans_run_a_microsecond_too_briefly(patch: pytest.MonkeyPatch) -> None:
    """The old plan ends while its youngest tuples can just join."""
    real = Migrator._outlived

    def outlived(self: Migrator, m: Any, plans: Any, watermark: int | None) -> bool:
        return real(self, m, plans, None if watermark is None else watermark + 1)

    patch.setattr(Migrator, "_outlived", outlived)


def a_restart_forgets_a_migration(patch: pytest.MonkeyPatch) -> None:
    """A process that takes over does not know what is under way."""

    def forgetful(store: Store) -> BatchDecision | None:
        decision = latest(store)
        return decision and replace(decision, migration=None)

    patch.setattr(microbatch, "latest", forgetful)


def a_migration_does_not_wait_for_its_batch(patch: pytest.MonkeyPatch) -> None:
    """One that is asked for from a batch on begins at once."""
    real = Migrator._begin

    def begin(self: Migrator, here: Any) -> Any:
        self._waiting[:] = [replace(request, at_batch=None) for request in self._waiting]
        return real(self, here)

    patch.setattr(Migrator, "_begin", begin)


def a_hold_is_ignored(patch: pytest.MonkeyPatch) -> None:
    """A migration that is to wait is done."""
    real = Migrator._advance
    patch.setattr(
        Migrator, "_advance", lambda self, m, here: real(self, replace(m, held=False), here)
    )


def a_fill_stops_early(patch: pytest.MonkeyPatch) -> None:
    """The youngest slice of a state is left out."""
    real = Backfiller._sliced

    def sliced(self: Backfiller, m: Migration, here: Any) -> Migration:
        made = real(self, m, here)
        return replace(made, slices=(made.slices or ())[:-1])

    patch.setattr(Backfiller, "_sliced", sliced)


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
