"""What SELECT lists: its items, * written out, and their names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from optimizer.query import ColumnRef, Expression, Named
from optimizer.sql import canonical
from optimizer.sql.expressions import reader
from optimizer.sql.functions import Kind
from optimizer.sql.schema import NAME
from optimizer.sql.scope import Scope
from optimizer.sql.text import DIALECT, Text
from optimizer.sql.typed import Typed
from optimizer.sql.types import type_of


@dataclass(frozen=True)
class Item:
    """One item of SELECT: what is written, and its name."""

    node: exp.Expr
    name: str
    star: bool = False


def plain_output(scope: Scope, select: exp.Select) -> tuple[Named, ...]:
    """The output columns of a query that aggregates nothing."""
    source = scope.source
    read = reader(scope).read
    return tuple(
        Named(item.name, stored(source, item.node, computed(scope, read(item.node))))
        for item in select_items(scope, select)
    )


def computed(scope: Scope, typed: Typed) -> Typed:
    """A DECIMAL in the type that it has: the engines would make it wider, each in its own way."""
    taken = typed.tree
    while isinstance(taken, exp.Filter | exp.Min | exp.Max):
        taken = taken.this
    if typed.kind is not Kind.DECIMAL or isinstance(taken, exp.Column | exp.Cast | exp.Sum):
        return typed
    return Typed(canonical.cast(typed.tree, type_of(typed.tree, scope.types)), typed.kind)


def stored(source: Text, node: exp.Expr, typed: Typed) -> Expression:
    """The expression, if a table can hold its value."""
    if typed.kind is Kind.INTERVAL:
        message = "a table cannot store an interval: write unix_micros(a) - unix_micros(b)"
        raise source.error(message, node)
    if typed.kind is Kind.NULL:
        raise source.error("a column of nothing but NULL has no type: CAST it", node)
    return canonical.expression(typed.tree)


def select_items(scope: Scope, select: exp.Select) -> list[Item]:
    """The items of SELECT with their names, * written out."""
    source = scope.source
    items: list[Item] = []
    for node in select.expressions:
        if (alias := _star(scope, node)) is not None:
            items += _starred(scope, alias, source.offset(node))
        else:
            items.append(_named(scope, node))
    return _qualified(source, items)


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


def _starred(scope: Scope, alias: str, at: int) -> list[Item]:
    columns = [
        ColumnRef(one.alias, column.name)
        for one in scope.inputs
        if alias in {"", one.alias}
        for column in one.stream.columns
    ]
    if not alias:
        columns = [column for column in columns if column not in scope.merged]
    return [Item(_column(column, at), column.name, star=True) for column in columns]


def _column(column: ColumnRef, at: int) -> exp.Column:
    """The column as if it were written at that offset."""
    tree = exp.column(column.name, table=column.alias)
    tree.this.meta["start"] = at
    return tree


def _named(scope: Scope, node: exp.Expr) -> Item:
    if isinstance(node, exp.Alias):
        if not NAME.fullmatch(node.alias):
            message = f"a column cannot be called {node.alias}: use letters, digits and _"
            raise scope.source.error(message, node.args["alias"])
        return Item(node.this, node.alias)
    if isinstance(node, exp.Aliases):
        raise scope.source.error("one name a column", node)
    if isinstance(node, exp.Column):
        return Item(node, scope.resolve(node).name.replace(".", "_"))
    return Item(node, words(node))


def words(node: exp.Expr) -> str:
    """A name for an expression that has none: its words, without aliases and FILTERs."""
    if isinstance(node, exp.Column) and node.table.lower() != "window":
        return str(node.name)
    tree = node.transform(lambda part: part.this if isinstance(part, exp.Filter) else part)
    for column in list(tree.find_all(exp.Column)):
        if column.table.lower() != "window":
            column.set("table", None)
    found = re.findall(r"\w+", tree.sql(DIALECT, comments=False).lower())
    name = "_".join(found) or "column"
    return name if NAME.fullmatch(name) else f"column_{name}"


def _qualified(source: Text, items: Sequence[Item]) -> list[Item]:
    """Columns of * that share a name get their alias before it; others must not share any."""
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
