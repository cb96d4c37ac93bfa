"""Conditions as predicates of one or two inputs, and the selects that equalities imply."""

from collections.abc import Iterable, Iterator

from sqlglot import exp

from optimizer.query import ColumnRef, Predicate
from optimizer.sql import canonical
from optimizer.sql.text import SqlError, Text

NEVER = "this is never true: the query would never produce a result"


def predicate(source: Text, condition: exp.Expr) -> Predicate:
    """The condition as a select or a join predicate."""
    aliases = sorted(canonical.aliases(condition))
    if not aliases:
        message = "a condition must read a stream: this one is always the same"
        raise source.error(message, condition)
    if len(aliases) > 2:
        message = (
            f"one condition over {', '.join(aliases)} is not supported: "
            "it can read two streams at most"
        )
        raise source.error(message, condition)
    if isinstance(condition, exp.EQ):
        left, right = condition.this, condition.expression
        if len(canonical.aliases(left)) == len(canonical.aliases(right)) == 1 < len(aliases):
            return Predicate.equality(canonical.side(left), canonical.side(right))
    return Predicate(canonical.expression(condition))


def implied(
    source: Text, conditions: Iterable[exp.Expr], types: dict[ColumnRef, str]
) -> list[exp.Expr]:
    """Selects that follow: with `f.num = b.flight`, `f.num = 7` holds for b.flight as well.

    Only between columns of one type, and not of floating ones, whose equality is not identity.
    """
    written = list(conditions)
    classes = _classes(written, types)
    constants: dict[ColumnRef, object] = {}
    derived: list[exp.Expr] = []
    for condition in written:
        column = _restricted(condition)
        if column is None:
            continue
        for other in classes.get(column, (column,)):
            if isinstance(condition, exp.EQ):
                value = canonical.constant(condition.expression)
                if value is not None and constants.setdefault(other, value) != value:
                    raise _contradiction(source, condition, other, constants[other])
            if other != column:
                derived.append(_about(condition, other))
    return derived


def _contradiction(source: Text, condition: exp.Expr, column: ColumnRef, value: object) -> SqlError:
    message = f"{column} would have to be {value!r} as well: the query would never produce a result"
    return source.error(message, condition)


def _classes(
    conditions: list[exp.Expr], types: dict[ColumnRef, str]
) -> dict[ColumnRef, tuple[ColumnRef, ...]]:
    """Columns that are equal in every result."""
    classes: dict[ColumnRef, tuple[ColumnRef, ...]] = {}
    for left, right in _equal_columns(conditions):
        if types.get(left) != types.get(right) or types.get(left) in {"FLOAT", "DOUBLE"}:
            continue
        merged = tuple(dict.fromkeys((*classes.get(left, (left,)), *classes.get(right, (right,)))))
        classes |= dict.fromkeys(merged, merged)
    return classes


def _equal_columns(conditions: list[exp.Expr]) -> Iterator[tuple[ColumnRef, ColumnRef]]:
    for condition in conditions:
        if isinstance(condition, exp.EQ):
            left, right = condition.this, condition.expression
            if isinstance(left, exp.Column) and isinstance(right, exp.Column):
                yield canonical.ref(left), canonical.ref(right)


def _restricted(condition: exp.Expr) -> ColumnRef | None:
    """The column that the condition compares with constants."""
    if not isinstance(condition, exp.EQ | exp.LT | exp.LTE | exp.In | exp.Like):
        return None
    read = canonical.columns(condition)
    operands = (condition.this, condition.args.get("expression"))
    plain = any(isinstance(operand, exp.Column) for operand in operands)
    return read[0] if plain and len(read) == 1 and _once(condition) else None


def _once(condition: exp.Expr) -> bool:
    return len(list(condition.find_all(exp.Column))) == 1


def _about(condition: exp.Expr, column: ColumnRef) -> exp.Expr:
    """The same condition about another column."""
    tree = condition.copy()
    for read in list(tree.find_all(exp.Column)):
        read.set("this", exp.Identifier(this=column.name))
        read.set("table", exp.Identifier(this=column.alias))
    return tree
