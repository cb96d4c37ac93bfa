"""The statements that make a new plan's states from states that are there (Zhu 12.1.3, 13, 14).

They read what the batches up to a boundary have brought, and nothing younger: later batches
maintain the new state themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from jobs.engine.lower import times
from jobs.engine.statements import (
    Scope,
    chained,
    combined,
    conditions_of,
    inside,
    least,
    parse,
    quote,
    reduced,
    scope_of,
    selected,
    with_until,
)
from jobs.tables.columns import ALWAYS, BATCH
from optimizer.identity import identity
from optimizer.migration.matching import Recipe
from optimizer.migration.steps import How
from optimizer.plan import WEIGHT, Combine, Join, Node, Source, walk
from optimizer.query import ColumnRef


@dataclass(frozen=True)
class Slice:
    """Rows of one source whose oldest event time, in microseconds, lies in `[start, end)`."""

    source: int
    start: int
    end: int


def statement(
    recipe: Recipe, boundary: int, only: Slice | None = None, since: int = ALWAYS
) -> exp.Query:
    """The rows of a state as of a boundary, or those that a slice of a source contributes.

    Of rows that young only, if it says since when.
    """
    known = [
        _known(source, boundary, only if only and only.source == at else None, since)
        for at, source in enumerate(recipe.sources)
    ]
    made = _joined(recipe, known, only) if recipe.how is How.JOIN else _derived(recipe, known[0])
    return parse(with_until(made, least(times(recipe.target))))


def _known(source: Node, boundary: int, only: Slice | None, since: int) -> str:
    conditions, oldest = [f"{quote(BATCH)} <= {boundary}"], least(times(source))
    if since > ALWAYS:
        conditions.append(f"{oldest} >= {since}")
    if only is not None:
        conditions += [f"{oldest} >= {only.start}", f"{oldest} < {only.end}"]
    return f"(SELECT * FROM state_{identity(source).key} WHERE {' AND '.join(conditions)})"


def _joined(recipe: Recipe, known: Sequence[str], only: Slice | None) -> str:
    join, predicates = reduced(recipe.target)
    assert isinstance(join, Join)
    scope = scope_of(join)
    source = chained(join, only.source if only else 0, dict(enumerate(known)))
    return selected(recipe.target, scope, source, conditions_of(join, predicates, scope, None))


def _derived(recipe: Recipe, known: str) -> str:
    base, _ = reduced(recipe.target)
    made = base.input if recipe.how is How.COMBINE and isinstance(base, Combine) else recipe.target
    scope = _padded(recipe, inside(identity(recipe.sources[0]), "s"))
    conditions = [predicate.expression.sql(scope) for predicate in recipe.selects]
    if recipe.how is How.EXPAND:
        known = _expanded(recipe.sources[0], known)
    rows = selected(made, scope, f"{known} AS s", conditions)
    if recipe.how is How.COMBINE and isinstance(base, Combine):
        return combined(base, recipe.target, rows)
    return rows


def _expanded(source: Node, known: str) -> str:
    """As many rows as each stands for."""
    (alias,) = source.aliases
    count = inside(identity(source), "k")(ColumnRef(alias, WEIGHT))
    times = f"explode(sequence(CAST(1 AS BIGINT), {count})) AS {quote('@i')}"
    return f"(SELECT *, {times} FROM {known} AS k)"


def _padded(recipe: Recipe, scope: Scope) -> Scope:
    types = {
        ColumnRef(node.alias, column.name): column.type
        for node in walk(recipe.target)
        if isinstance(node, Source)
        for column in node.stream.columns
    }
    return lambda c: f"CAST(NULL AS {types[c]})" if c in recipe.padded else scope(c)
