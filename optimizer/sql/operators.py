"""Columns, literals and operators, in canonical form.

What cannot be computed for a row is NULL: a division by zero, a number that its type does not have.
"""

import re
from collections.abc import Callable, Mapping
from math import inf
from operator import add, mul, sub

from sqlglot import exp

from optimizer.query import HOLE, RESULT, QueryError
from optimizer.sql import canonical
from optimizer.sql.durations import microseconds, parse_duration
from optimizer.sql.functions import Kind, kind_of
from optimizer.sql.typed import Handler, Reader, Typed
from optimizer.sql.types import (
    MOST,
    SHORT,
    Digits,
    bound,
    digits,
    is_remainder,
    largest,
    literal_digits,
    type_of,
    types_of,
)

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
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise reader.error("half of a surrogate pair is no text", node)
        return Typed(node.copy(), Kind.STRING)
    if not _NUMBER.fullmatch(text):
        raise reader.error(f"not a number: {text[:MOST]}", node)
    if "e" in text.lower():
        if float(text) == inf:
            raise reader.error(f"{text[:MOST]} is more than a DOUBLE can hold", node)
        return Typed(node.copy(), Kind.DOUBLE)
    if literal_digits(text).all > MOST:
        raise reader.error(f"a number has at most {MOST} digits", node)
    return _exact(node, text)


def _exact(node: exp.Expr, text: str) -> Typed:
    """A number without an exponent; DuckDB would compute with a large one in a type of its own."""
    if not text.isdigit():
        return Typed(node.copy(), Kind.DECIMAL)
    if int(text) <= largest("BIGINT"):
        return Typed(node.copy(), Kind.INTEGER)
    return Typed(canonical.cast(node.copy(), literal_digits(text).type), Kind.DECIMAL)


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
        left, right = reader.alike([reader.widened(left), reader.widened(right)], node)
    return canonical.compare(operator, left.tree, right.tree)


def within(reader: Reader, node: exp.Expr) -> Typed:
    """IN a list."""
    value = reader.operand(node.this)
    listed = [reader.operand(item) for item in node.expressions]
    if not listed:
        raise reader.error("IN needs a list of values", node)
    for item in listed:
        reader.comparable(value.kind, item.kind, node)
    value, *listed = reader.alike([value, *listed], node)
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
    """Sums, differences and products: NULL where the type has no such number."""
    operator = _PLAIN.get(type(node), type(node))
    left, right = reader.operand(node.this), reader.operand(node.expression)
    if (kind := _TIMES.get((operator, left.kind, right.kind))) is not None:
        return Typed(_moved(operator, left.tree, right.tree), kind)
    kind = reader.number((left.kind, right.kind), node)
    match kind:
        case Kind.INTEGER:
            tree = _of_integers(reader, operator, left.tree, right.tree)
        case Kind.DECIMAL:
            tree = _of_decimals(reader, node, operator, left, right)
        case _:
            left, right = reader.alike([left, right], node)
            tree = operator(this=left.tree, expression=right.tree)
    return Typed(tree, kind)


_TRIED: Mapping[type[exp.Expr], type[exp.Expr]] = {
    exp.Add: exp.SafeAdd,
    exp.Sub: exp.SafeSubtract,
    exp.Mul: exp.SafeMultiply,
}
_PLAIN = {tried: plain for plain, tried in _TRIED.items()}


def _moved(operator: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """A time moved by an interval, what lies between two times, or intervals put together."""
    if isinstance(left, exp.Interval) and isinstance(right, exp.Interval):
        sign = 1 if operator is exp.Add else -1
        return canonical.interval(canonical.length(left) + sign * canonical.length(right))
    apart = exp.Interval not in {type(left), type(right)}
    return (_TRIED[operator] if apart else operator)(this=left, expression=right)


def _of_integers(
    reader: Reader, operator: type[exp.Expr], left: exp.Expr, right: exp.Expr
) -> exp.Expr:
    """Tried only where it may fail; small numbers written out are worked out."""
    tree, types = operator(this=left, expression=right), reader.scope.types
    limit = largest(type_of(tree, types))
    one, other = canonical.number(left), canonical.number(right)
    if bound(tree, types) > limit:
        return _TRIED[operator](this=left, expression=right)
    if isinstance(one, int) and isinstance(other, int):
        return canonical.literal(_VALUES[operator](one, other))
    return tree


_VALUES: Mapping[type[exp.Expr], Callable[[int, int], int]] = {
    exp.Add: add,
    exp.Sub: sub,
    exp.Mul: mul,
}


def _of_decimals(
    reader: Reader, node: exp.Expr, operator: type[exp.Expr], left: Typed, right: Typed
) -> exp.Expr:
    """DuckDB counts the digits of a product from those of its factors, unless both are short."""
    one, other = map(digits, types_of([left.tree, right.tree], reader.scope.types))
    if one is None or other is None:
        return operator(this=left.tree, expression=right.tree)
    if operator is not exp.Mul:
        reader.alike([left, right], node)
        held = Digits((one | other).whole + 1, (one | other).scale)
    else:
        held = Digits(one.whole + other.whole, one.scale + other.scale)
    if held.scale > MOST:
        message = f"a product with {held.scale} digits behind the point, {MOST} is the most"
        raise reader.error(f"{message}: CAST a factor to a DECIMAL of fewer", node)
    first = left.tree
    if held.all > SHORT >= max(one.all, other.all):
        first = canonical.cast(first, f"DECIMAL({SHORT + 1}, {one.scale})")
    tried = held.all > MOST
    return (_TRIED[operator] if tried else operator)(this=first, expression=right.tree)


def division(reader: Reader, node: exp.Expr) -> Typed:
    """`/` divides as DOUBLE, `%` is the remainder; NULL where the divisor is zero."""
    operands = node.expressions if is_remainder(node) and node.expressions else None
    one, other = operands or (node.this, node.expression)
    left, right = reader.operand(one), reader.operand(other)
    kind = reader.number((left.kind, right.kind), node)
    if is_remainder(node):
        left, right = reader.alike([left, right], node)
        return Typed(_remainder(kind, left.tree, right.tree), kind)
    divisor = reader.alike([Typed(exp.Literal.number("1e0"), Kind.DOUBLE), right], node)[1].tree
    return Typed(exp.Div(this=reader.double(left), expression=_not_zero(divisor)), Kind.DOUBLE)


def called(reader: Reader, node: exp.Expr) -> Typed:
    """try_mod, which is `%`."""
    if is_remainder(node) and len(node.expressions) == 2:
        return division(reader, node)
    raise reader.unknown(node)


def _remainder(kind: Kind, value: exp.Expr, divisor: exp.Expr) -> exp.Expr:
    if kind is Kind.INTEGER and canonical.number(divisor) in {None, 0, -1}:
        return exp.Anonymous(this="TRY_MOD", expressions=[value, divisor])
    if kind is Kind.DECIMAL:
        value, divisor = _measured(value), _measured(divisor)
    return exp.Mod(this=value, expression=_not_zero(divisor))


def _measured(tree: exp.Expr) -> exp.Expr:
    """A number written out, as long as it is: DuckDB takes it for longer."""
    if not isinstance(tree, exp.Literal):
        return tree
    return canonical.cast(tree, literal_digits(str(tree.this)).type)


def _not_zero(divisor: exp.Expr) -> exp.Expr:
    if canonical.number(divisor.this if isinstance(divisor, exp.Cast) else divisor):
        return divisor
    return exp.Nullif(this=divisor, expression=canonical.literal(0))


def negative(reader: Reader, node: exp.Expr) -> Typed:
    """`-x`."""
    value = reader.operand(node.this)
    kind = reader.number((value.kind,), node)
    if (least := _least(node.this)) is not None:
        return Typed(least, Kind.INTEGER)
    if isinstance(value.tree, exp.Neg) and kind is not Kind.INTEGER:
        return Typed(value.tree.this, kind)
    if isinstance(number := canonical.number(value.tree), int):
        return Typed(canonical.literal(-number), kind)
    return Typed(reader.from_zero(value) or exp.Neg(this=reader.with_negative(value)), kind)


def _least(node: exp.Expr) -> exp.Expr | None:
    """The least INT or BIGINT: what stands behind its sign is none."""
    text = node.name if isinstance(node, exp.Literal) and not node.is_string else ""
    for name in ("INT", "BIGINT"):
        if text == str(largest(name) + 1):
            return canonical.cast(exp.Neg(this=exp.Literal.number(text)), name)
    return None


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
    exp.SafeAdd: arithmetic,
    exp.SafeSubtract: arithmetic,
    exp.SafeMultiply: arithmetic,
    exp.Div: division,
    exp.Mod: division,
    exp.Anonymous: called,
    exp.Neg: negative,
    exp.DPipe: concatenation,
    exp.Concat: concatenation,
}
