"""The whole query, clause by clause: FROM, then the conditions, then what is computed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from optimizer.query import ColumnRef, Grouping, Named, Predicate, Query, QueryError, Stream
from optimizer.sql import canonical
from optimizer.sql.bounds import Limits, tighten, time_limits
from optimizer.sql.expressions import reader
from optimizer.sql.grouping import grouped_output
from optimizer.sql.output import plain_output
from optimizer.sql.predicates import NEVER, implied, predicate
from optimizer.sql.ranges import Range, take_ranges
from optimizer.sql.refuse import check_select
from optimizer.sql.scope import Scope, from_clause
from optimizer.sql.text import SqlError, Text
from optimizer.window import Bounds, WindowError, close, ranges


def parse(text: str, streams: Mapping[str, Stream], window: int | None = None) -> Query:
    """The query that the text means over these streams; `window`, in microseconds, bounds all."""
    source = Text(text)
    try:
        return _query(source, streams, window)
    except RecursionError:
        raise source.error("this is nested too deeply", 0) from None


def _query(source: Text, streams: Mapping[str, Stream], window: int | None) -> Query:
    tokens, windows = take_ranges(source)
    select = check_select(source, source.parse(tokens))
    scope = from_clause(source, select, streams)
    scope, conditions = _conditions(scope, select)
    bounded, others = _split(scope, conditions)
    tighten(bounded, _ranges(scope, windows))
    if window is not None:
        tighten(bounded, {(i, j): window for i in _names(scope) for j in _names(scope) if i != j})
    grouping, output = _computed(scope, select)
    try:
        return Query(
            inputs=tuple((i.alias, i.stream) for i in scope.inputs),
            predicates=_predicates(scope, others),
            bounds=_close(scope, bounded),
            output=output,
            grouping=grouping,
        )
    except QueryError as error:
        raise error if isinstance(error, SqlError) else source.error(str(error), 0) from None


def _computed(scope: Scope, select: exp.Select) -> tuple[Grouping | None, tuple[Named, ...]]:
    if select.args.get("group"):
        return grouped_output(replace(scope, grouped=True), select)
    return None, plain_output(scope, select)


def _names(scope: Scope) -> list[str]:
    return [one.alias for one in scope.inputs]


# --- conditions ----------------------------------------------------------------------------------


def _conditions(scope: Scope, select: exp.Select) -> tuple[Scope, list[exp.Expr]]:
    """The conjuncts of every ON, USING and WHERE; the scope with what USING merged."""
    found: list[exp.Expr] = []
    for position, join in enumerate(select.args.get("joins") or []):
        for name in join.args.get("using") or []:
            merged, condition = _using(scope.first(position + 2), name)
            scope = replace(scope, merged={**scope.merged, **merged})
            found += _conjuncts(scope, condition)
        if join.args.get("on"):
            visible = reader(scope.first(position + 2))
            found += _conjuncts(scope, visible.condition(join.args["on"], "ON"))
    if where := select.args.get("where"):
        found += _conjuncts(scope, reader(scope).condition(where.this, "WHERE"))
    return scope, found


def _using(scope: Scope, name: exp.Expr) -> tuple[dict[ColumnRef, ColumnRef], exp.Expr]:
    """Which column of the right input is which of the left, and the equality."""
    *_, right = scope.inputs
    left = scope.first(len(scope.inputs) - 1).candidates(name.name)
    other = right.column(name.name)
    if len(left) != 1 or other is None:
        message = f"USING needs {name.name} once on either side: write ON"
        raise scope.source.error(message, name)
    equal = exp.EQ(
        this=exp.column(left[0].name, table=left[0].alias),
        expression=exp.column(other.name, table=other.alias),
    )
    equal.this.this.meta.update(name.meta)
    return {other: left[0]}, reader(scope).condition(equal, "USING")


def _conjuncts(scope: Scope, condition: exp.Expr) -> Iterator[exp.Expr]:
    for part in canonical.flat(exp.And, condition):
        if isinstance(part, exp.Null):
            raise scope.source.error("a comparison with NULL is never true: write IS NULL", part)
        if isinstance(part, exp.Boolean) and not part.this:
            raise scope.source.error(NEVER, part)
        if not isinstance(part, exp.Boolean):
            yield part


def _split(scope: Scope, conditions: Sequence[exp.Expr]) -> tuple[Limits, list[exp.Expr]]:
    """The limits that the conditions set between event times, and the other conditions."""
    limits: Limits = {}
    others = []
    times = scope.event_times
    for condition in conditions:
        found = time_limits(condition, times)
        if found is False:
            raise scope.source.error(NEVER, condition)
        if found is None:
            others.append(condition)
        elif found is not True:
            tighten(limits, found)
    return limits, others


def _predicates(scope: Scope, conditions: Sequence[exp.Expr]) -> tuple[Predicate, ...]:
    """Those written, then those that follow; each once."""
    derived = implied(scope.source, conditions, scope.types)
    every = [predicate(scope.source, condition) for condition in (*conditions, *derived)]
    return tuple(dict.fromkeys(every))


# --- windows -------------------------------------------------------------------------------------


def _ranges(scope: Scope, windows: Sequence[Range]) -> Limits:
    """The limits of the [RANGE]s, each behind a stream's name or alias."""
    behind = {}
    for one in scope.inputs:
        for part in (one.node.this, one.node.args.get("alias")):
            if part is not None:
                behind[scope.source.offset(part)] = one.alias
    lengths: dict[str, int] = {}
    for window in windows:
        if (alias := behind.get(window.name)) is None:
            raise scope.source.error("a window stands behind a stream's name or alias", window.at)
        if alias in lengths:
            raise scope.source.error(f"{alias} has two windows", window.at)
        lengths[alias] = window.length
    return ranges(_names(scope), lengths)


def _close(scope: Scope, limits: Limits) -> Bounds:
    try:
        return close(_names(scope), limits)
    except WindowError as error:
        one, other = error.pair
        nodes = {i.alias: i.node for i in scope.inputs}
        later = max(error.pair, key=lambda alias: scope.source.offset(nodes[alias]))
        raise scope.source.error(_advice(scope, one, other, str(error)), nodes[later]) from None


def _advice(scope: Scope, one: str, other: str, message: str) -> str:
    if "exclude" in message:
        return f"{message}: the query would never produce a result"
    times = {alias: column for column, alias in scope.event_times.items()}
    return (
        f"nothing bounds how much later {one} may be than {other}: "
        f"write {other} [RANGE 5 MINUTES], or {times[one]} <= {times[other]} + INTERVAL 5 MINUTES, "
        "or give the query a window"
    )
