"""Columns, literals and operators, in canonical form.

Where Spark would stop the whole job for one row, a division by zero, the canonical form yields NULL
in both engines.
"""

import re
from collections.abc import Mapping

from sqlglot import exp

from optimizer.query import HOLE, RESULT, QueryError
from optimizer.sql import canonical
from optimizer.sql.durations import microseconds, parse_duration
from optimizer.sql.functions import Kind, kind_of
from optimizer.sql.typed import Handler, Reader, Typed

_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)

# --- leaves --------------------------------------------------------------------------------------


def column(reader: Reader, node: exp.Expr) -> Typed:
    """A column, its names spelled as declared."""
    assert isinstance(node, exp.Column)
    if isinstance(node.this, exp.Star):
        return reader.read(node.this)
    scope = reader.scope
    ref = scope.resolve(node)
    name = _located(reader, node, exp.Identifier(this=ref.name))
    tree = exp.Column(this=name, table=exp.Identifier(this=ref.alias) if ref.alias else None)
    declared = "TIMESTAMP" if ref.alias == RESULT else scope.types[ref]
    kind = kind_of(declared)
    if kind is None:
        raise reader.error(f"{ref} has the type {declared}, which is not supported", node)
    return Typed(tree, kind)


def literal(reader: Reader, node: exp.Expr) -> Typed:
    """A text or a number."""
    text = str(node.this)
    if isinstance(node, exp.Literal) and node.is_string:
        if HOLE in text:
            raise reader.error("a NUL character is not supported in text", node)
        return Typed(node.copy(), Kind.STRING)
    if not _NUMBER.fullmatch(text):
        raise reader.error(f"not a number: {text}", node)
    if text.isdigit():
        return Typed(node.copy(), Kind.INTEGER)
    return Typed(node.copy(), Kind.DOUBLE if "e" in text.lower() else Kind.DECIMAL)


def boolean(reader: Reader, node: exp.Expr) -> Typed:
    """TRUE or FALSE."""
    return Typed(_located(reader, node, exp.Boolean(this=node.this)), Kind.BOOLEAN)


def null(reader: Reader, node: exp.Expr) -> Typed:
    """NULL, of any kind."""
    return Typed(_located(reader, node, exp.Null()), Kind.NULL)


def _located(reader: Reader, node: exp.Expr, tree: exp.Expr) -> exp.Expr:
    """The tree, where the node stands."""
    tree.meta["start"] = reader.scope.source.offset(node)
    return tree


def interval(reader: Reader, node: exp.Expr) -> Typed:
    """A constant length of time, in its largest whole unit."""
    value, unit = node.this, node.args.get("unit")
    negative = isinstance(value, exp.Neg)
    value = value.this if negative else value
    if not isinstance(value, exp.Literal) or isinstance(unit, exp.IntervalSpan):
        raise reader.error("write an interval as INTERVAL 5 MINUTES", node)
    text = str(value.this).strip()
    try:
        length = microseconds(text, unit.name) if unit else parse_duration(text)
    except QueryError as error:
        raise reader.error(str(error), node) from None
    return Typed(canonical.interval(-length if negative else length), Kind.INTERVAL)


def paren(reader: Reader, node: exp.Expr) -> Typed:
    """What stands within; text gets parentheses where it needs them."""
    return reader.read(node.this)


# --- conditions ----------------------------------------------------------------------------------


def negation(reader: Reader, node: exp.Expr) -> Typed:
    """NOT."""
    return Typed(canonical.negate(reader.condition(node.this, "NOT")), Kind.BOOLEAN)


def connector(reader: Reader, node: exp.Expr) -> Typed:
    """AND, OR."""
    assert isinstance(node, exp.And | exp.Or)
    conjunction = isinstance(node, exp.And)
    word = "AND" if conjunction else "OR"
    parts = [reader.condition(part, word) for part in canonical.flat(type(node), node)]
    return Typed((canonical.both if conjunction else canonical.either)(*parts), Kind.BOOLEAN)


def comparison(reader: Reader, node: exp.Expr) -> Typed:
    """Equal, less, and so on."""
    assert isinstance(node, exp.Binary)
    operator = type(node)
    if operator is exp.NullSafeNEQ:
        same = _compared(reader, node, exp.NullSafeEQ, node.this, node.expression)
        return Typed(canonical.negate(same), Kind.BOOLEAN)
    return Typed(_compared(reader, node, operator, node.this, node.expression), Kind.BOOLEAN)


def between(reader: Reader, node: exp.Expr) -> Typed:
    """BETWEEN is two comparisons."""
    value, low, high = (node.args[name] for name in ("this", "low", "high"))
    above = _compared(reader, node, exp.LTE, low, value)
    below = _compared(reader, node, exp.LTE, value, high)
    return Typed(canonical.both(above, below), Kind.BOOLEAN)


def _compared(
    reader: Reader, node: exp.Expr, operator: type[exp.Expr], one: exp.Expr, other: exp.Expr
) -> exp.Expr:
    """The comparison; what has one type is compared as it is."""
    left, right = reader.read(one), reader.read(other)
    reader.comparable(left.kind, right.kind, node)
    if reader.type(left.tree) != reader.type(right.tree):
        left, right = reader.widened(left), reader.widened(right)
    return canonical.compare(operator, left.tree, right.tree)


def within(reader: Reader, node: exp.Expr) -> Typed:
    """IN a list."""
    value = reader.operand(node.this)
    listed = [reader.operand(item) for item in node.expressions]
    if not listed:
        raise reader.error("IN needs a list of values", node)
    for item in listed:
        reader.comparable(value.kind, item.kind, node)
    return Typed(canonical.any_of(value.tree, [i.tree for i in listed]), Kind.BOOLEAN)


def identity(reader: Reader, node: exp.Expr) -> Typed:
    """IS NULL, IS TRUE, IS FALSE."""
    assert isinstance(node, exp.Is)
    value, wanted = reader.read(node.this), node.expression
    if isinstance(wanted, exp.Boolean):
        reader.one_of((Kind.BOOLEAN,), value.kind, node)
    elif not isinstance(wanted, exp.Null):
        raise reader.error("IS needs NULL, TRUE or FALSE", node)
    return Typed(exp.Is(this=value.tree, expression=wanted.copy()), Kind.BOOLEAN)


def like(reader: Reader, node: exp.Expr) -> Typed:
    """LIKE a pattern written out; only Spark takes backslashes for escapes."""
    assert isinstance(node, exp.Like)
    value, pattern = reader.read(node.this), reader.read(node.expression)
    reader.one_of((Kind.STRING,), value.kind, node)
    written = canonical.constant(pattern.tree)
    if not isinstance(written, str) or "\\" in written:
        raise reader.error("LIKE needs a pattern written out, without backslashes", node)
    tree = exp.Like(this=value.tree, expression=pattern.tree)
    return Typed(canonical.negate(tree) if node.args.get("negate") else tree, Kind.BOOLEAN)


# --- arithmetic ----------------------------------------------------------------------------------

_TIMES: Mapping[tuple[type[exp.Expr], Kind, Kind], Kind] = {
    (exp.Add, Kind.TIMESTAMP, Kind.INTERVAL): Kind.TIMESTAMP,
    (exp.Add, Kind.INTERVAL, Kind.TIMESTAMP): Kind.TIMESTAMP,
    (exp.Add, Kind.INTERVAL, Kind.INTERVAL): Kind.INTERVAL,
    (exp.Sub, Kind.TIMESTAMP, Kind.INTERVAL): Kind.TIMESTAMP,
    (exp.Sub, Kind.INTERVAL, Kind.INTERVAL): Kind.INTERVAL,
    (exp.Sub, Kind.TIMESTAMP, Kind.TIMESTAMP): Kind.INTERVAL,
}


def arithmetic(reader: Reader, node: exp.Expr) -> Typed:
    """Sums, differences and products."""
    assert isinstance(node, exp.Binary)
    left, right = reader.operand(node.this), reader.operand(node.expression)
    kind = _TIMES.get((type(node), left.kind, right.kind))
    if kind is None:
        kind = reader.number((left.kind, right.kind), node)
    return Typed(canonical.arithmetic(type(node), left.tree, right.tree), kind)


def division(reader: Reader, node: exp.Expr) -> Typed:
    """`/` divides as DOUBLE, `%` is the remainder; NULL where the divisor is zero."""
    assert isinstance(node, exp.Binary)
    left, right = reader.operand(node.this), reader.operand(node.expression)
    kind = reader.number((left.kind, right.kind), node)
    divisor = right.tree
    if not canonical.number(divisor):
        divisor = exp.Nullif(this=divisor, expression=canonical.literal(0))
    if isinstance(node, exp.Mod):
        return Typed(exp.Mod(this=left.tree, expression=divisor), kind)
    exact = left.kind is not Kind.DOUBLE
    dividend = canonical.cast(left.tree, "DOUBLE") if exact else left.tree
    return Typed(exp.Div(this=dividend, expression=divisor), Kind.DOUBLE)


def negative(reader: Reader, node: exp.Expr) -> Typed:
    """`-x`."""
    value = reader.operand(node.this)
    kind = reader.number((value.kind,), node)
    if isinstance(value.tree, exp.Neg):
        return Typed(value.tree.this, kind)
    return Typed(exp.Neg(this=value.tree), kind)


def concatenation(reader: Reader, node: exp.Expr) -> Typed:
    """`||` and concat(): NULL if any part is."""
    parts = node.expressions if isinstance(node, exp.Concat) else list(node.iter_expressions())
    read = [reader.read(part) for part in parts]
    for part in read:
        reader.one_of((Kind.STRING,), part.kind, node)
    first, *rest = (part.tree for part in read)
    for tree in rest:
        first = exp.DPipe(this=first, expression=tree)
    return Typed(first, Kind.STRING)


OPERATORS: Mapping[type[exp.Expr], Handler] = {
    exp.Column: column,
    exp.Literal: literal,
    exp.Boolean: boolean,
    exp.Null: null,
    exp.Interval: interval,
    exp.Paren: paren,
    exp.Not: negation,
    exp.And: connector,
    exp.Or: connector,
    exp.EQ: comparison,
    exp.NEQ: comparison,
    exp.LT: comparison,
    exp.LTE: comparison,
    exp.GT: comparison,
    exp.GTE: comparison,
    exp.NullSafeEQ: comparison,
    exp.NullSafeNEQ: comparison,
    exp.Between: between,
    exp.In: within,
    exp.Is: identity,
    exp.Like: like,
    exp.Add: arithmetic,
    exp.Sub: arithmetic,
    exp.Mul: arithmetic,
    exp.Div: division,
    exp.Mod: division,
    exp.Neg: negative,
    exp.DPipe: concatenation,
    exp.Concat: concatenation,
}
