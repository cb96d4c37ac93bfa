"""What a query computes: plain columns, or keys and aggregates per window of time."""

import re
from collections.abc import Mapping, Sequence
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
from optimizer.sql.durations import parse_duration
from optimizer.sql.expressions import Expressions, Typed
from optimizer.sql.functions import Kind
from optimizer.sql.schema import NAME
from optimizer.sql.scope import Scope
from optimizer.sql.text import Text

_ENDLESS = "GROUP BY needs window(ts, size): a group of an endless stream never ends"


@dataclass(frozen=True)
class Item:
    """One item of SELECT: what is written, and its name."""

    node: exp.Expr
    name: str
    star: bool = False


# --- SELECT without GROUP BY ---------------------------------------------------------------------


def plain_output(scope: Scope, select: exp.Select) -> tuple[Named, ...]:
    """The output columns of a query that aggregates nothing."""
    source = scope.source
    reader = Expressions(scope)
    named = []
    for item in _items(scope, select):
        aggregate = item.node.find(exp.AggFunc)
        if aggregate is not None and not _is_window_function(item.node):
            message = "an aggregate needs GROUP BY window(ts, size): a stream never ends"
            raise source.error(message, aggregate)
        named.append(Named(item.name, _stored(source, item, reader.read(item.node))))
    return tuple(named)


def _is_window_function(node: exp.Expr) -> bool:
    return node.find(exp.Window) is not None


def _stored(source: Text, item: Item, typed: Typed) -> Expression:
    if typed.kind is Kind.INTERVAL:
        message = "a table cannot store an interval: write unix_micros(a) - unix_micros(b)"
        raise source.error(message, item.node)
    if typed.kind is Kind.NULL:
        raise source.error("a column of nothing but NULL has no type: CAST it", item.node)
    return canonical.expression(typed.tree)


def _items(scope: Scope, select: exp.Select) -> list[Item]:
    """The items of SELECT with their names, * written out."""
    items: list[Item] = []
    for node in select.expressions:
        if (alias := _star(scope, node)) is not None:
            items += _starred(scope, alias)
        else:
            items.append(_named(scope, node))
    return _qualified(scope.source, items)


def _star(scope: Scope, node: exp.Expr) -> str | None:
    """The alias of `alias.*`, empty for `*`; None for anything else."""
    star = node.this if isinstance(node, exp.Column) else node
    if not isinstance(star, exp.Star):
        return None
    if any(star.args.values()):
        raise scope.source.error("* EXCEPT and * REPLACE are not supported: list the columns", node)
    if not isinstance(node, exp.Column):
        return ""
    found = scope.find(node.table)
    if found is None:
        raise scope.source.error(f"no stream is called {node.table} here", node)
    return found.alias


def _starred(scope: Scope, alias: str) -> list[Item]:
    columns = [
        ColumnRef(one.alias, column.name)
        for one in scope.inputs
        if alias in {"", one.alias}
        for column in one.stream.columns
    ]
    if not alias:
        columns = [column for column in columns if column not in scope.merged]
    return [
        Item(exp.column(column.name, table=column.alias), column.name, star=True)
        for column in columns
    ]


def _named(scope: Scope, node: exp.Expr) -> Item:
    if isinstance(node, exp.Alias):
        if not NAME.fullmatch(node.alias):
            message = f"a column cannot be called {node.alias}: use letters, digits and _"
            raise scope.source.error(message, node.args["alias"])
        return Item(node.this, node.alias)
    if isinstance(node, exp.Aliases):
        raise scope.source.error("one name a column", node)
    return Item(node, scope.resolve(node).name if isinstance(node, exp.Column) else _words(node))


def _words(node: exp.Expr) -> str:
    """A name for an expression that has none: its words, without aliases of streams."""
    if isinstance(node, exp.Column) and node.table.lower() != "window":
        return str(node.name)
    tree = node.copy()
    for column in list(tree.find_all(exp.Column)):
        if column.table.lower() != "window":
            column.set("table", None)
    words = re.findall(r"\w+", tree.sql("spark", comments=False).lower())
    name = "_".join(words) or "column"
    return name if NAME.fullmatch(name) else f"column_{name}"


def _qualified(source: Text, items: Sequence[Item]) -> list[Item]:
    """Columns of * that share a name get their alias before it; any other repeated name is refused."""
    names = [item.name.lower() for item in items]
    named = []
    for item in items:
        if item.star and names.count(item.name.lower()) > 1:
            table = item.node.args["table"].name
            named.append(Item(item.node, f"{table}_{item.name}", star=True))
        else:
            named.append(item)
    seen: set[str] = set()
    for item in named:
        if item.name.lower() in seen:
            message = f"two output columns are called {item.name}: rename one with AS"
            raise source.error(message, item.node)
        seen.add(item.name.lower())
    return named


# --- GROUP BY ------------------------------------------------------------------------------------


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
    items = _items(scope, select)
    windows = [node for node in group.expressions if _is_window(node)]
    if len(windows) != 1:
        at = windows[1] if windows else group
        message = "GROUP BY has one window(ts, size)" if windows else _ENDLESS
        raise source.error(message, at)
    keys = [_by_name(scope, node, items) for node in group.expressions if not _is_window(node)]
    groups = _Groups()
    for node in keys:
        _add_key(scope, groups, node, items)
    reader = Expressions(scope, aggregates=True)
    output = []
    for item in items:
        tree = _over_results(reader.read(item.node), groups, item)
        _check_results(source, tree.tree)
        output.append(Named(item.name, _stored(source, item, tree)))
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
            raise source.error(f"GROUP BY {word} is not supported", source.word(word.split()[0]))


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
    key = Expressions(scope).read(node)
    if not canonical.columns(key.tree):
        raise scope.source.error("a key must read a column: write out what it stands for", node)
    if RESULT in canonical.aliases(key.tree):
        raise scope.source.error("window is a key already: leave it out here", node)
    written = _stored(scope.source, Item(node, ""), key)
    if written not in groups.keys:
        named = [item.name for item in items if item.node == node]
        groups.keys[written] = Named(groups.name(named[0] if named else _words(node)), written)


def _over_results(typed: Typed, groups: _Groups, item: Item) -> Typed:
    """The tree over the columns that the group-by makes; aggregates are collected on the way."""
    root = exp.Paren(this=typed.tree)
    _replace(root, groups, item.name)
    return Typed(root.this, typed.kind)


def _replace(parent: exp.Expr, groups: _Groups, wanted: str = "") -> None:
    for node in list(parent.iter_expressions()):
        made = _made(node, groups, wanted or _words(node))
        if made is not None:
            node.replace(exp.Column(this=exp.Identifier(this=made)))
        elif not isinstance(node, exp.Column):
            _replace(node, groups)


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
    size, *slide = (_length(source, length) for length in lengths)
    if not 0 < (slide or [size])[0] <= size:
        raise source.error("a window's slide must be positive and at most its size", node)
    return column, size, (slide or [size])[0]


def _check_event_time(scope: Scope, node: exp.Expr, column: ColumnRef) -> None:
    times: Mapping[ColumnRef, str] = scope.event_times()
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
