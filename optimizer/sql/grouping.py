"""GROUP BY: keys and aggregates per window of time, and the output computed from them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from optimizer.query import (
    RESULT,
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    ColumnRef,
    Expression,
    Grouping,
    Named,
    QueryError,
)
from optimizer.sql import canonical
from optimizer.sql.durations import largest_unit, parse_duration
from optimizer.sql.expressions import reader
from optimizer.sql.output import Item, computed, select_items, stored, words
from optimizer.sql.scope import Scope
from optimizer.sql.text import Text
from optimizer.sql.typed import Typed

MOST_WINDOWS = 2_000
"""Into how many windows a row falls at most: each pane is added to as many."""

_ENDLESS = "GROUP BY needs window(ts, size): a group of an endless stream never ends"


@dataclass
class _Groups:
    """Keys and aggregates found so far, each by its canonical text."""

    keys: dict[Expression, Named] = field(default_factory=dict)
    aggregates: dict[Expression, Aggregate] = field(default_factory=dict)
    taken: set[str] = field(default_factory=lambda: {WINDOW_START, WINDOW_END})

    def name(self, wanted: str) -> str:
        """That name, numbered if it is taken."""
        name, number = wanted, 1
        while name.lower() in self.taken:
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name.lower())
        return name


def grouped_output(scope: Scope, select: exp.Select) -> tuple[Grouping, tuple[Named, ...]]:
    """The group-by and the output columns computed from it."""
    source, group = scope.source, select.args["group"]
    _check_group(source, group)
    items = select_items(scope, select)
    windows = [node for node in group.expressions if _is_window(node)]
    if len(windows) != 1:
        at = windows[1] if windows else group
        message = "GROUP BY has one window(ts, size)" if windows else _ENDLESS
        raise source.error(message, at)
    keys = [_by_name(scope, node, items) for node in group.expressions if not _is_window(node)]
    groups = _Groups()
    for node in keys:
        _add_key(scope, groups, node, items)
    read = reader(scope, aggregates=True).read
    output = []
    for item in items:
        typed = computed(scope, read(item.node))
        tree = _over_results(typed, groups, item)
        _check_results(source, tree.tree)
        output.append(Named(item.name, stored(source, item.node, tree)))
    time, size, slide = _window(scope, windows[0])
    made = tuple(groups.keys.values()), tuple(groups.aggregates.values())
    return Grouping(*made, time, size, slide), tuple(output)


def _check_group(source: Text, group: exp.Expr) -> None:
    for name, value in group.args.items():
        if value and name != "expressions":
            message = f"GROUP BY {name.upper().replace('_', ' ')} is not supported"
            raise source.error(message, source.word(name.upper().split("_")[0]))
    for node in group.expressions:
        if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
            word = type(node).__name__.upper().replace("SETS", " SETS")
            raise source.error(f"GROUP BY {word} is not supported", source.word(word))


def _is_window(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "window"


def _by_name(scope: Scope, node: exp.Expr, items: Sequence[Item]) -> exp.Expr:
    """What a key means that is the name of an output column and of no stream's."""
    if isinstance(node, exp.Column) and not node.table and not scope.candidates(node.name):
        named = [item.node for item in items if item.name.lower() == node.name.lower()]
        if named:
            return named[0]
    return node


def _add_key(scope: Scope, groups: _Groups, node: exp.Expr, items: Sequence[Item]) -> None:
    key = reader(scope).read(node)
    if not canonical.columns(key.tree):
        raise scope.source.error("a key must read a column: write out what it stands for", node)
    if RESULT in canonical.aliases(key.tree):
        raise scope.source.error("window is a key already: leave it out here", node)
    written = stored(scope.source, node, computed(scope, key))
    if written not in groups.keys:
        named = [item.name for item in items if item.node == node]
        groups.keys[written] = Named(groups.name(named[0] if named else words(node)), written)


def _over_results(typed: Typed, groups: _Groups, item: Item) -> Typed:
    """The tree over the columns that the group-by makes; aggregates are collected on the way."""
    root = exp.Paren(this=typed.tree)
    _replace(root, groups, item.name)
    return Typed(root.this, typed.kind)


def _replace(parent: exp.Expr, groups: _Groups, wanted: str = "") -> None:
    for node in list(parent.iter_expressions()):
        made = _made(node, groups, wanted or words(node))
        if made is not None:
            node.replace(exp.Column(this=exp.Identifier(this=made)))
        elif not isinstance(node, exp.Column):
            _replace(node, groups, wanted if isinstance(node, _AROUND) else "")


_AROUND = (exp.Cast, exp.SafeAdd, exp.SafeMultiply)
"""With what a sum is put together."""


def _made(node: exp.Expr, groups: _Groups, wanted: str) -> str | None:
    """The name of the key or aggregate that the node is."""
    if isinstance(node, exp.Filter | exp.AggFunc):
        written = canonical.expression(node)
        if written not in groups.aggregates:
            groups.aggregates[written] = _aggregate(node, groups.name(wanted))
        return groups.aggregates[written].name
    if canonical.columns(node):
        key = groups.keys.get(canonical.expression(node))
        return None if key is None else key.name
    return None


def _aggregate(node: exp.Expr, name: str) -> Aggregate:
    condition = None
    if isinstance(node, exp.Filter):
        condition = canonical.expression(node.expression.this)
        node = node.this
    star = isinstance(node.this, exp.Star)
    argument = None if star else canonical.expression(node.this)
    return Aggregate(name, type(node).__name__.lower(), argument, condition)


def _check_results(source: Text, tree: exp.Expr) -> None:
    for column in tree.find_all(exp.Column):
        if column.table:
            message = (
                f"{canonical.ref(column)} is neither a key of GROUP BY nor within an aggregate"
            )
            raise source.error(message, column)


def _window(scope: Scope, node: exp.Expr) -> tuple[ColumnRef, int, int]:
    """The event time, size and slide of window(ts, size, slide)."""
    source = scope.source
    time, *lengths = node.expressions or [node]
    if not 1 <= len(lengths) <= 2:
        raise source.error(
            "write window(ts, '10 minutes') or window(ts, '10 minutes', slide)", node
        )
    if not isinstance(time, exp.Column):
        raise source.error("window() is over the event time of a stream", time)
    column = scope.resolve(time)
    _check_event_time(scope, time, column)
    size, *slides = (_length(source, length) for length in lengths)
    slide = (slides or [size])[0]
    if not 0 < slide <= size:
        raise source.error("a window's slide must be positive and at most its size", node)
    if (windows := -(-size // slide)) > MOST_WINDOWS:
        message = f"a row would fall into {windows} windows, {MOST_WINDOWS} is the most"
        least, unit = largest_unit(-(-size // MOST_WINDOWS))
        raise source.error(f"{message}: slide by {least} {unit.lower()}s or more", lengths[1])
    return column, size, slide


def _check_event_time(scope: Scope, node: exp.Expr, column: ColumnRef) -> None:
    times = scope.event_times
    if column not in times:
        known = ", ".join(str(time) for time in times)
        message = f"window() is over an event time, and {column} is none: there is {known}"
        raise scope.source.error(message, node)


def _length(source: Text, node: exp.Expr) -> int:
    if not isinstance(node, exp.Literal) or not node.is_string:
        raise source.error("write a length of time as text: '10 minutes'", node)
    try:
        return parse_duration(str(node.this))
    except QueryError as error:
        raise source.error(str(error), node) from None
