"""Functions, CASE, CAST and aggregates, in canonical form.

What cannot be computed for a row is NULL: a CAST that does not fit, floor of an infinite number.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

from sqlglot import exp

from optimizer.sql import canonical
from optimizer.sql.functions import (
    CASTS,
    SCALARS,
    TRUNCATIONS,
    WIDER,
    Argument,
    Kind,
    Scalar,
    kind_of,
)
from optimizer.sql.typed import Handler, Reader, Typed, a
from optimizer.sql.types import MOST, NARROW, Digits, digits, literal_digits

# --- functions -----------------------------------------------------------------------------------


def scalar(reader: Reader, node: exp.Expr) -> Typed:
    """A function of the list, its arguments checked."""
    function = SCALARS[type(node)]
    arguments = list(node.iter_expressions())
    allowed = function.arguments * (len(arguments) if function.many else 1)
    if not arguments or len(arguments) != len(allowed):
        raise reader.error(f"{function.name} takes {_count(function)}", node)
    read = [
        _argument(reader, node, argument, kinds)
        for argument, kinds in zip(arguments, allowed, strict=True)
    ]
    kind = function.result or reader.common([argument.kind for argument in read], node)
    if (number := _NUMBERS.get(type(node))) is not None:
        return Typed(number(reader, type(node), *read), kind)
    if function.many:
        read = reader.alike(read, node)
    tree = node.copy()
    for old, new in zip(list(tree.iter_expressions()), read, strict=True):
        old.replace(new.tree)
    return Typed(canonical.cast(tree, function.cast) if function.cast else tree, kind)


def _absolute(reader: Reader, function: type[exp.Expr], value: Typed) -> exp.Expr:
    if (opposite := reader.from_zero(value)) is not None:
        return exp.Greatest(this=value.tree, expressions=[opposite])
    return function(this=reader.with_negative(value))


def _rounded(reader: Reader, function: type[exp.Expr], value: Typed) -> exp.Expr:
    """Half away from zero; the engines give a DECIMAL different types."""
    held = digits(reader.type(value.tree))
    if held is None:
        return function(this=value.tree)
    if not held.scale:
        return value.tree
    return canonical.cast(function(this=value.tree), Digits(held.whole + 1, 0).type)


def _to_whole(reader: Reader, function: type[exp.Expr], value: Typed) -> exp.Expr:
    """The BIGINT below or above, NULL if there is none."""
    if value.kind is not Kind.INTEGER:
        return canonical.cast(function(this=value.tree), "BIGINT", safe=True)
    known = reader.type(value.tree) == "BIGINT"
    return value.tree if known else canonical.cast(value.tree, "BIGINT")


_NUMBERS: Mapping[type[exp.Expr], Callable[[Reader, type[exp.Expr], Typed], exp.Expr]] = {
    exp.Abs: _absolute,
    exp.Round: _rounded,
    exp.Floor: _to_whole,
    exp.Ceil: _to_whole,
}


def _argument(reader: Reader, call: exp.Expr, node: exp.Expr, allowed: Argument) -> Typed:
    read = reader.operand(node)
    if allowed:
        reader.one_of(allowed, read.kind, call)
        return read
    value = canonical.number(read.tree)
    if not isinstance(value, int) or value < isinstance(call, exp.Substring):
        name = SCALARS[type(call)].name
        raise reader.error(f"{name} needs its positions written out as whole numbers", call)
    return read


def _count(function: Scalar) -> str:
    count = len(function.arguments)
    if function.many:
        return "at least one argument"
    return "one argument" if count == 1 else f"{count} arguments"


def date_trunc(reader: Reader, node: exp.Expr) -> Typed:
    """A time cut off to a unit."""
    unit = node.args["unit"].name.upper()
    if unit not in TRUNCATIONS:
        allowed = ", ".join(TRUNCATIONS).lower()
        raise reader.error(f"date_trunc cuts off to one of {allowed}", node)
    value = reader.read(node.this)
    reader.one_of((Kind.TIMESTAMP,), value.kind, node)
    return Typed(exp.TimestampTrunc(this=value.tree, unit=exp.Var(this=unit)), Kind.TIMESTAMP)


def unwrapped(reader: Reader, node: exp.Expr) -> Typed:
    """What sqlglot wraps around the argument of year(), month() and day()."""
    return reader.read(node.this)


# --- CASE and CAST -------------------------------------------------------------------------------


def case(reader: Reader, node: exp.Expr) -> Typed:
    """CASE, with or without a subject."""
    subject = reader.operand(node.this) if node.this else None
    conditions = [_when(reader, subject, branch) for branch in node.args["ifs"]]
    results = [reader.operand(branch.args["true"]) for branch in node.args["ifs"]]
    default = reader.operand(node.args["default"]) if node.args.get("default") else None
    *results, last = reader.alike([*results, default or _NOTHING], node)
    default = default and last
    tree = exp.Case(
        this=subject and subject.tree,
        ifs=[
            exp.If(this=condition, true=result.tree)
            for condition, result in zip(conditions, results, strict=True)
        ],
        default=default and default.tree,
    )
    every = [*results, default] if default else results
    return Typed(tree, reader.common([result.kind for result in every], node))


_NOTHING = Typed(exp.Null(), Kind.NULL)


def _when(reader: Reader, subject: Typed | None, branch: exp.Expr) -> exp.Expr:
    if subject is None:
        return reader.condition(branch.this, "WHEN")
    value = reader.operand(branch.this)
    reader.comparable(subject.kind, value.kind, branch)
    return reader.alike([subject, value], branch)[1].tree


def if_(reader: Reader, node: exp.Expr) -> Typed:
    """if(condition, x, y) is a CASE."""
    branch = exp.If(this=node.this.copy(), true=node.args["true"].copy())
    default = node.args.get("false")
    return case(reader, exp.Case(ifs=[branch], default=default and default.copy()))


def cast(reader: Reader, node: exp.Expr) -> Typed:
    """CAST where both engines agree; what does not fit is NULL."""
    assert isinstance(node, exp.Cast)
    target = node.to.sql("spark").upper()
    if isinstance(node.this, exp.Literal) and target in {"TIMESTAMP", "DATE"}:
        return _moment(reader, node, target)
    value = reader.read(node.this)
    kind = kind_of(target)
    if kind is None:
        raise reader.error(f"CAST to {target} is not supported", node)
    if value.kind is not Kind.NULL and kind not in CASTS.get(value.kind, ()):
        message = f"Spark and DuckDB differ in a CAST of {a(value.kind)} to {target}"
        if (value.kind, kind) in _INSTEAD:
            message += f": {_INSTEAD[value.kind, kind]}"
        raise reader.error(message, node)
    declared = reader.type(value.tree)
    if declared == target:
        return value
    if target == "FLOAT":
        raise reader.error("Spark and DuckDB differ in a CAST to FLOAT: write DOUBLE", node)
    return Typed(_CASTS.get((value.kind, kind), _cast)(reader, node, value, target), kind)


def _cast(reader: Reader, _: exp.Cast, value: Typed, target: str) -> exp.Expr:
    widened = (reader.type(value.tree), target)
    fits = widened in WIDER.items() or widened == ("INT", "BIGINT")
    return canonical.cast(value.tree, target, safe=not fits)


def _double(reader: Reader, _: exp.Cast, value: Typed, __: str) -> exp.Expr:
    return reader.double(value)


_NUMERAL = "([0-9]+[.]?[0-9]*|[.][0-9]+)"
_NUMERALS = {
    "DOUBLE": f"^ *([+-]?({_NUMERAL}([eE][+-]?[0-9]+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?)"
    "|[nN][aA][nN]) *;$",
    "DECIMAL": f"^ *[+-]?{_NUMERAL} *;$",
}
"""How numbers are written that both engines read, before a mark, as `$` is not the end for both."""


def _read(_: Reader, __: exp.Cast, value: Typed, target: str) -> exp.Expr:
    """The number that a text is, in ASCII's digits; NULL if it is none."""
    tree = value.tree
    marked = exp.Paren(this=exp.DPipe(this=tree, expression=exp.Literal.string(";")))
    pattern = exp.Literal.string(_NUMERALS[target.partition("(")[0]])
    written = exp.RegexpLike(this=marked, expression=pattern)
    number = canonical.cast(tree.copy(), target, safe=True)
    return exp.Case(ifs=[exp.If(this=written, true=number)])


_FIRST, _LAST = "0001-01-01", "9999-12-31"
"""The days that are written with four digits of the year."""


def _dated(_: Reader, __: exp.Cast, value: Typed, target: str) -> exp.Expr:
    """A day as text; the engines write years of other lengths differently."""
    tree = value.tree
    first, last = (canonical.cast(exp.Literal.string(day), "DATE") for day in (_FIRST, _LAST))
    within = exp.And(
        this=exp.LTE(this=first, expression=tree),
        expression=exp.LTE(this=tree.copy(), expression=last),
    )
    text = canonical.cast(tree.copy(), target, safe=True)
    return exp.Case(ifs=[exp.If(this=within, true=text)])


def _spelled(reader: Reader, node: exp.Cast, value: Typed, target: str) -> exp.Expr:
    """A DECIMAL as text, with a digit before its point."""
    tree = value.tree
    held = digits(reader.type(tree))
    if held is not None and not held.whole:
        if held.scale == MOST:
            raise reader.error(f"CAST to DECIMAL({MOST}, {MOST - 1}) before STRING", node)
        tree = canonical.cast(tree, Digits(1, held.scale).type)
    return canonical.cast(tree, target, safe=True)


_CASTS: Mapping[tuple[Kind, Kind], Callable[[Reader, exp.Cast, Typed, str], exp.Expr]] = {
    (Kind.STRING, Kind.DOUBLE): _read,
    (Kind.STRING, Kind.DECIMAL): _read,
    (Kind.DATE, Kind.STRING): _dated,
    (Kind.DECIMAL, Kind.STRING): _spelled,
    (Kind.DECIMAL, Kind.DOUBLE): _double,
    (Kind.INTEGER, Kind.DOUBLE): _double,
    (Kind.DOUBLE, Kind.DOUBLE): _double,
}


_INSTEAD = {
    (Kind.STRING, Kind.INTEGER): "cast to DECIMAL(18, 0)",
    (Kind.DECIMAL, Kind.INTEGER): "write floor() or ceil()",
    (Kind.DOUBLE, Kind.INTEGER): "write floor() or ceil()",
}


def _moment(reader: Reader, node: exp.Cast, target: str) -> Typed:
    """A timestamp or a date written out, in UTC."""
    text = str(node.this.this)
    try:
        if target == "DATE":
            day = date.fromisoformat(text)
            return Typed(canonical.cast(exp.Literal.string(day.isoformat()), target), Kind.DATE)
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise reader.error(f"not a {target.lower()}: '{text}'", node) from None
    written = exp.Literal.string(moment.isoformat(sep=" "))
    return Typed(canonical.cast(written, target), Kind.TIMESTAMP)


# --- aggregates ----------------------------------------------------------------------------------


_MISPLACED = "cannot stand here: it needs SELECT with GROUP BY window(ts, size), and does not nest"


def filtered(reader: Reader, node: exp.Expr) -> Typed:
    """An aggregate with its FILTER."""
    if not isinstance(node.this, exp.AggFunc):
        raise reader.error("FILTER belongs behind an aggregate", node)
    read = reader.read(node.this)
    condition = replace(reader, aggregates=False).condition(node.expression.this, "FILTER")
    only = exp.Where(this=condition)

    def put(part: exp.Expr) -> exp.Expr:
        wanted = isinstance(part, exp.AggFunc)
        return exp.Filter(this=part.copy(), expression=only.copy()) if wanted else part

    return Typed(_each(read.tree, put), read.kind)


def _each(tree: exp.Expr, put: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The tree with each of its aggregates put otherwise."""
    if isinstance(tree, exp.AggFunc):
        return put(tree)
    for aggregate in list(tree.find_all(exp.AggFunc)):
        aggregate.replace(put(aggregate))
    return tree


def aggregate(reader: Reader, node: exp.Expr) -> Typed:
    """An aggregate, which does not nest."""
    name = type(node).__name__.lower()
    if not reader.aggregates:
        raise reader.error(f"the aggregate {name} {_MISPLACED}", node)
    if node.this is None or node.expressions:
        raise reader.error(f"{name} takes one argument", node)
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
        return Typed(exp.Count(this=exp.Star()), Kind.INTEGER)
    inner = replace(reader, aggregates=False)
    argument = inner.read(node.this)
    if isinstance(node, exp.Count):
        return Typed(_count_of(argument.tree), Kind.INTEGER)
    if isinstance(node, exp.Sum | exp.Avg):
        reader.number((argument.kind,), node)
    if argument.kind in {Kind.NULL, Kind.INTERVAL}:
        raise reader.error(f"{name} of {a(argument.kind)} is not supported", node)
    if isinstance(node, exp.Avg):
        return Typed(_average_of(inner, argument), Kind.DOUBLE)
    if isinstance(node, exp.Sum):
        return Typed(_sum_of(inner, argument), argument.kind)
    return Typed(type(node)(this=argument.tree), argument.kind)


def _count_of(tree: exp.Expr) -> exp.Expr:
    """count(1) is count(*)."""
    return exp.Count(this=exp.Star() if canonical.constant(tree) is not None else tree)


def _sum_of(reader: Reader, argument: Typed) -> exp.Expr:
    """Exact numbers are added up exactly; NULL if the sum of integers is no BIGINT."""
    if argument.kind is Kind.INTEGER:
        return canonical.cast(exp.Sum(this=argument.tree), "BIGINT", safe=True)
    held = digits(reader.type(argument.tree))
    if held is None or held.all <= NARROW:
        return exp.Sum(this=argument.tree)
    return _sum_in_parts(argument.tree, held)


def _sum_in_parts(tree: exp.Expr, held: Digits) -> exp.Expr:
    """A sum that may pass 38 digits on its way: the last digits and those before them apart."""
    unit = Decimal(10) ** (_LAST_DIGITS - held.scale)
    low = exp.Mod(this=tree, expression=_number(unit))
    high: exp.Expr = exp.Paren(this=exp.Sub(this=tree.copy(), expression=low.copy()))
    scale = max(0, held.scale - _LAST_DIGITS)
    if unit > 1:
        high = exp.Mul(this=high, expression=_number(1 / unit))
    short = canonical.cast(high, Digits(held.all - _LAST_DIGITS - scale, scale).type)
    above: exp.Expr = exp.Sum(this=short)
    if unit > 1:
        above = exp.SafeMultiply(this=above, expression=_number(unit))
    whole = canonical.cast(above, f"DECIMAL({MOST}, {held.scale})", safe=True)
    return exp.SafeAdd(this=whole, expression=exp.Sum(this=low))


_LAST_DIGITS = MOST - NARROW


def _number(value: Decimal) -> exp.Expr:
    return canonical.cast(exp.Literal.number(f"{value:f}"), literal_digits(f"{value:f}").type)


def _average_of(reader: Reader, argument: Typed) -> exp.Expr:
    """Of exact numbers the exact sum, divided as DOUBLE: in whatever order they come."""
    held = digits(reader.type(argument.tree))
    if held is None or held.all > NARROW:
        return exp.Avg(this=reader.double(argument))
    total = Typed(exp.Sum(this=argument.tree), Kind.DECIMAL)
    count = exp.Nullif(this=_count_of(argument.tree.copy()), expression=canonical.literal(0))
    return exp.Div(this=reader.double(total), expression=count)


CALLS: Mapping[type[exp.Expr], Handler] = {
    **dict.fromkeys(SCALARS, scalar),
    exp.TimestampTrunc: date_trunc,
    exp.TsOrDsToDate: unwrapped,
    exp.Case: case,
    exp.If: if_,
    exp.Cast: cast,
    exp.TryCast: cast,
    exp.Filter: filtered,
    exp.Count: aggregate,
    exp.Sum: aggregate,
    exp.Min: aggregate,
    exp.Max: aggregate,
    exp.Avg: aggregate,
}
