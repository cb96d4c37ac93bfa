"""One form for equal meanings: `b > a` is `a < b`, BETWEEN two comparisons, NOT stands innermost.

Trees hold no parentheses; `expression` writes them where they are needed, with holes for columns.
Rewriting keeps SQL's three-valued logic: unknown stays unknown.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

from sqlglot import exp

from optimizer.query import HOLE, ColumnRef, Expression
from optimizer.sql.durations import UNITS, largest_unit
from optimizer.sql.text import DIALECT

_OPERATORS = (exp.Binary, exp.Unary, exp.In)
_HOLES = re.compile(f"{HOLE}(\\d+){HOLE}")
_FLIPPED: Mapping[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.GTE: exp.LTE}


# --- text ----------------------------------------------------------------------------------------


def ref(column: exp.Column) -> ColumnRef:
    """What a bound column refers to."""
    return ColumnRef(column.table, column.name)


def columns(tree: exp.Expr) -> list[ColumnRef]:
    """The columns that it reads, each once."""
    return list(dict.fromkeys(ref(column) for column in tree.find_all(exp.Column)))


def aliases(tree: exp.Expr) -> set[str]:
    """The inputs that it reads."""
    return {column.alias for column in columns(tree)}


def expression(tree: exp.Expr) -> Expression:
    """The tree as text with holes."""
    numbered: list[ColumnRef] = []

    def hole(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        numbered.append(ref(node))
        return exp.Var(this=f"{HOLE}{len(numbered) - 1}{HOLE}")

    text = _parenthesised(tree.copy()).transform(hole).sql(DIALECT, comments=False)
    order = tuple(numbered[int(number)] for number in _HOLES.findall(text))
    return Expression(_HOLES.sub(HOLE, text), order)


def side(tree: exp.Expr) -> Expression:
    """The tree as an operand."""
    return expression(exp.Paren(this=tree.copy()) if _is_operator(tree) else tree)


def _is_operator(tree: exp.Expr) -> bool:
    negative = isinstance(tree, exp.Neg) and isinstance(tree.this, exp.Literal)
    return isinstance(tree, _OPERATORS) and not isinstance(tree, exp.Paren) and not negative


def _parenthesised(tree: exp.Expr) -> exp.Expr:
    for child in list(tree.iter_expressions()):
        _parenthesised(child)
        if _is_operator(tree) and _is_operator(child) and not _binds_tighter(child, tree):
            child.replace(exp.Paren(this=child.copy()))
    return tree


def _binds_tighter(child: exp.Expr, parent: exp.Expr) -> bool:
    if isinstance(parent, exp.Connector):
        return not isinstance(child, exp.Connector) or type(child) is type(parent)
    return False


# --- literals ------------------------------------------------------------------------------------


def number(tree: exp.Expr) -> int | Decimal | None:
    """The value of a number written out."""
    if isinstance(tree, exp.Neg):
        value = number(tree.this)
        return None if value is None else -value
    if isinstance(tree, exp.Literal) and not tree.is_string:
        text = str(tree.this)
        return int(text) if text.isdigit() else Decimal(text)
    return None


def constant(tree: exp.Expr) -> int | Decimal | str | bool | None:
    """The value of a number, a string or a truth value written out."""
    if isinstance(tree, exp.Literal) and tree.is_string:
        return str(tree.this)
    if isinstance(tree, exp.Boolean):
        return bool(tree.this)
    return number(tree)


def literal(value: int) -> exp.Expr:
    """A whole number written out."""
    written = exp.Literal.number(abs(value))
    return exp.Neg(this=written) if value < 0 else written


def cast(tree: exp.Expr, target: str, *, safe: bool = False) -> exp.Expr:
    """CAST; the safe one makes NULL of what does not fit."""
    to = exp.DataType.build(target, dialect=DIALECT)
    return exp.TryCast(this=tree, to=to, safe=True) if safe else exp.Cast(this=tree, to=to)


def interval(length: int) -> exp.Expr:
    """A length of time in microseconds written out, in its largest whole unit."""
    count, unit = largest_unit(length)
    return exp.Interval(this=exp.Literal.string(str(count)), unit=exp.Var(this=unit))


def length(tree: exp.Interval) -> int:
    """An interval written out, in microseconds."""
    return int(tree.this.this) * UNITS[tree.args["unit"].name]


# --- operators -----------------------------------------------------------------------------------


def compare(operator: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """A comparison: `<` and `<=` only, equal sides in order, constants worked out."""
    if operator in _FLIPPED:
        operator, left, right = _FLIPPED[operator], right, left
    if operator in {exp.EQ, exp.NEQ, exp.NullSafeEQ}:
        left, right = sorted((left, right), key=_order)
    if operator is not exp.NullSafeEQ and exp.Null in {type(left), type(right)}:
        return _instead(left, right, exp.Null())
    known = _compared(operator, constant(left), constant(right))
    if known is None:
        return operator(this=left, expression=right)
    return _instead(left, right, exp.Boolean(this=known))


def _instead(left: exp.Expr, right: exp.Expr, result: exp.Expr) -> exp.Expr:
    """The result, where the operands stand."""
    starts = [tree.meta["start"] for tree in (*left.walk(), *right.walk()) if "start" in tree.meta]
    result.meta["start"] = min(starts, default=0)
    return result


def _compared(operator: type[exp.Expr], left: object, right: object) -> bool | None:
    if left is None or right is None or isinstance(left, str) != isinstance(right, str):
        return None
    if operator is exp.LT:
        return bool(left < right)  # type: ignore[operator]
    if operator is exp.LTE:
        return bool(left <= right)  # type: ignore[operator]
    return (left == right) == (operator is not exp.NEQ)


def _order(tree: exp.Expr) -> tuple[bool, str, tuple[tuple[str, str], ...]]:
    """Columns before constants; names before aliases, so that renaming an alias changes little."""
    written = expression(tree)
    names = tuple((column.name, column.alias) for column in written.columns)
    return (not names, written.template, names)


def any_of(tree: exp.Expr, values: Iterable[exp.Expr]) -> exp.Expr:
    """IN: its values in order and once; a single one is an equality."""
    distinct = {expression(value): value for value in sorted(values, key=_order)}
    if len(distinct) == 1:
        return compare(exp.EQ, tree, *distinct.values())
    return exp.In(this=tree, expressions=list(distinct.values()))


def both(*trees: exp.Expr) -> exp.Expr:
    """AND."""
    return _connect(exp.And, trees)


def either(*trees: exp.Expr) -> exp.Expr:
    """OR."""
    return _connect(exp.Or, trees)


def _connect(connector: type[exp.Connector], trees: Sequence[exp.Expr]) -> exp.Expr:
    decisive = connector is exp.Or
    parts: dict[Expression, exp.Expr] = {}
    for part in (part for tree in trees for part in flat(connector, tree)):
        if isinstance(part, exp.Boolean):
            if bool(part.this) == decisive:
                return part
        else:
            parts.setdefault(expression(part), part)
    if not parts:
        return exp.Boolean(this=not decisive)
    first, *rest = parts.values()
    for part in rest:
        first = connector(this=first, expression=part)
    return first


def flat(connector: type[exp.Connector], tree: exp.Expr) -> Iterator[exp.Expr]:
    """The operands of a chain of ANDs or ORs."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, connector):
            waiting += (part.expression, part.this)
        else:
            yield part


_NEGATED: Mapping[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
}


def negate(tree: exp.Expr) -> exp.Expr:
    """NOT, moved inward as far as it goes (De Morgan)."""
    if isinstance(tree, exp.Not):
        inner: exp.Expr = tree.this
        return inner
    if isinstance(tree, exp.Boolean):
        return exp.Boolean(this=not tree.this)
    if isinstance(tree, exp.Null):
        return tree
    if isinstance(tree, exp.And):
        return either(*(negate(part) for part in flat(exp.And, tree)))
    if isinstance(tree, exp.Or):
        return both(*(negate(part) for part in flat(exp.Or, tree)))
    if type(tree) in _NEGATED:
        return compare(_NEGATED[type(tree)], tree.this, tree.expression)
    return exp.Not(this=tree)
