"""Bugs of what a batch computes: windows, joins, group-bys."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from jobs.engine import lower, microbatch, statements
from jobs.engine.microbatch import Engine
from jobs.engine.statements import FROM, TO


def _text(patch: pytest.MonkeyPatch, name: str, change: Callable[[str], str]) -> None:
    """Have a statement, or a part of one, say something else."""
    real = getattr(statements, name)

    def changed(*arguments: Any, **options: Any) -> str:
        return change(real(*arguments, **options))

    for module in (statements, lower):
        if hasattr(module, name):
            patch.setattr(module, name, changed)


def a_window_is_a_microsecond_narrow(patch: pytest.MonkeyPatch) -> None:
    """Tuples just as far apart as they may be do not meet."""
    real = statements._within
    patch.setattr(
        statements, "_within", lambda *given: (t.replace("<=", "<") for t in real(*given))
    )


def a_window_is_a_microsecond_wide(patch: pytest.MonkeyPatch) -> None:
    """Tuples meet that are a microsecond too far apart."""
    real = statements._within
    patch.setattr(statements, "_within", lambda *given: (f"{t} + 1" for t in real(*given)))


def a_window_has_one_side(patch: pytest.MonkeyPatch) -> None:
    """How much older a partner may be is not looked at."""
    real = statements._within
    patch.setattr(statements, "_within", lambda *given: list(real(*given))[::2])


def nulls_meet(patch: pytest.MonkeyPatch) -> None:
    """NULL is equal to NULL."""
    _text(patch, "chained", lambda text: text.replace(" = ", " <=> "))


def both_sides_count_what_is_new(patch: pytest.MonkeyPatch) -> None:
    """New tuples meet new partners once from either side."""
    real = statements._known
    patch.setattr(statements, "_known", lambda part, names, **_: real(part, names, with_new=True))


def no_side_counts_what_is_new(patch: pytest.MonkeyPatch) -> None:
    """New tuples never meet new partners."""
    real = statements._known
    patch.setattr(statements, "_known", lambda part, names, **_: real(part, names, with_new=False))


def a_select_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Of several selects above each other, the last is not applied."""
    real = statements.reduced

    def reduced(node: Any) -> Any:
        base, predicates = real(node)
        return base, predicates[1:]

    patch.setattr(statements, "reduced", reduced)


# --- group-by ------------------------------------------------------------------------------------


def windows_close_too_early(patch: pytest.MonkeyPatch) -> None:
    """A window is emitted while a tuple of its last microsecond may come."""
    real = Engine._emits_until

    def eager(self: Engine, *arguments: Any) -> int | None:
        until = real(self, *arguments)
        return None if until is None else until + 1

    patch.setattr(Engine, "_emits_until", eager)


def windows_wait_for_no_partner(patch: pytest.MonkeyPatch) -> None:
    """A window is emitted once the watermark passes its end, whoever may still join into it."""
    lowered = lower.lower

    def hasty(*arguments: Any) -> lower.Program:
        program = lowered(*arguments)
        outputs = (replace(o, horizon=o.horizon and 0) for o in program.outputs)
        return replace(program, outputs=tuple(outputs))

    patch.setattr(microbatch, "lower", hasty)


def a_window_is_put_out_twice(patch: pytest.MonkeyPatch) -> None:
    """The last one of a batch is the first one of the next, too."""
    _text(patch, "finished", lambda text: text.replace(f"> :{FROM}", f">= :{FROM}"))


def a_window_is_left_out(patch: pytest.MonkeyPatch) -> None:
    """One that ends where a batch's emission ends is in neither batch."""
    _text(patch, "finished", lambda text: text.replace(f"<= :{TO}", f"< :{TO}"))


def a_window_lacks_its_last_pane(patch: pytest.MonkeyPatch) -> None:
    """The pane that ends with the window is left out."""

    def shortened(text: str) -> str:
        before, _, after = text.rpartition(" <= {start}" if "{start}" in text else " <= ")
        return f"{before} < {after}"

    _text(patch, "finished", shortened)


def a_window_has_its_end(patch: pytest.MonkeyPatch) -> None:
    """A tuple at the very end of a window is in it, where aggregates look at their window."""
    real = statements.partials

    def partials(node: Any, *rest: Any) -> str:
        text = real(node, *rest)
        if not statements._by_window(node):
            return text
        before, _, after = text.rpartition(" < ")
        return f"{before} <= {after}"

    for module in (statements, lower):
        patch.setattr(module, "partials", partials)


def a_pane_is_a_slide(patch: pytest.MonkeyPatch) -> None:
    """Panes are too wide where a window is no multiple of its slide."""
    patch.setattr(statements, "_pane", lambda node: node.grouping.slide)


def times_are_rounded_towards_zero(patch: pytest.MonkeyPatch) -> None:
    """Before 1970, what belongs to one pane belongs to the next."""
    patch.setattr(statements, "_floor", lambda value, step: f"({value}) - ({value}) % {step}")


def a_combined_tuple_counts_once(patch: pytest.MonkeyPatch) -> None:
    """How many tuples of the other inputs were combined into one is forgotten."""
    real = statements._weighted

    def alone(aggregate: Any, kind: str, combines: Any, *rest: Any) -> str:
        return real(aggregate, kind, [c for c in combines if aggregate in c.partials], *rest)

    patch.setattr(statements, "_weighted", alone)


def averages_are_averaged(patch: pytest.MonkeyPatch) -> None:
    """The average of a window is that of its panes' averages."""
    real = statements._whole

    def whole(aggregate: Any, *rest: Any) -> str:
        made = real(aggregate, *rest)
        if aggregate.function != "avg":
            return made
        return made.replace("sum(", "avg(", 1).replace("sum(", "avg(", 1)

    patch.setattr(statements, "_whole", whole)


def _folds(patch: pytest.MonkeyPatch, **change: Any) -> None:
    real = statements._folded
    patch.setattr(
        statements,
        "_folded",
        lambda aggregate, kind, *rest: real(
            replace(aggregate, **change) if kind == "count" else aggregate, kind, *rest
        ),
    )


def nulls_are_counted(patch: pytest.MonkeyPatch) -> None:
    """`count(x)` is `count(*)`."""
    _folds(patch, argument=None)


def a_filter_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """An aggregate counts what its FILTER excludes."""
    _folds(patch, condition=None)


# --- slices --------------------------------------------------------------------------------------


def a_row_is_in_one_slice(patch: pytest.MonkeyPatch) -> None:
    """Partners across the end of a slice of time do not meet."""
    real = statements._Slices.cut

    def cut(self: Any, relation: str, time: str) -> str:
        return real(self, relation, time).replace(" UNION ALL SELECT 1 AS i)", ")")

    patch.setattr(statements._Slices, "cut", cut)


def slices_are_too_narrow(patch: pytest.MonkeyPatch) -> None:
    """Slices of time are narrower than partners may be apart."""
    patch.setattr(statements._Slices, "_width", property(lambda self: max(1, self.after)))
