"""Functions, CASE, CAST and aggregates, in canonical form.

Where Spark would stop the whole job for one row, a value that does not fit its CAST, the canonical
form yields NULL in both engines.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime

from sqlglot import exp

from optimizer.sql import canonical
from optimizer.sql.functions import (
    CASTS,
    NUMBERS,
    SCALARS,
    TRUNCATIONS,
    WIDER,
    Argument,
    Kind,
    Scalar,
    kind_of,
)
from optimizer.sql.typed import Handler, Reader, Typed, a

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
    tree = node.copy()
    for old, new in zip(list(tree.iter_expressions()), read, strict=True):
        old.replace(new.tree)
    kind = function.result or reader.common([argument.kind for argument in read], node)
    return Typed(canonical.cast(tree, function.cast) if function.cast else tree, kind)


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


def _when(reader: Reader, subject: Typed | None, branch: exp.Expr) -> exp.Expr:
    if subject is None:
        return reader.condition(branch.this, "WHEN")
    value = reader.operand(branch.this)
    reader.comparable(subject.kind, value.kind, branch)
    return value.tree


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
    fits = WIDER.get(declared) == target or (target == "DOUBLE" and value.kind in NUMBERS)
    return Typed(canonical.cast(value.tree, target, safe=not fits), kind)


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
    except ValueError:
        raise reader.error(f"not a {target.lower()}: '{text}'", node) from None
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    written = exp.Literal.string(moment.isoformat(sep=" "))
    return Typed(canonical.cast(written, target), Kind.TIMESTAMP)


# --- aggregates ----------------------------------------------------------------------------------


_MISPLACED = "cannot stand here: it needs SELECT with GROUP BY window(ts, size), and does not nest"


def filtered(reader: Reader, node: exp.Expr) -> Typed:
    """An aggregate with its FILTER."""
    read = reader.read(node.this)
    if not isinstance(read.tree, exp.AggFunc):
        raise reader.error("FILTER belongs behind an aggregate", node)
    condition = replace(reader, aggregates=False).condition(node.expression.this, "FILTER")
    return Typed(exp.Filter(this=read.tree, expression=exp.Where(this=condition)), read.kind)


def aggregate(reader: Reader, node: exp.Expr) -> Typed:
    """An aggregate, which does not nest."""
    name = type(node).__name__.lower()
    if not reader.aggregates:
        raise reader.error(f"the aggregate {name} {_MISPLACED}", node)
    if node.this is None or node.expressions:
        raise reader.error(f"{name} takes one argument", node)
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
        return Typed(exp.Count(this=exp.Star()), Kind.INTEGER)
    argument = replace(reader, aggregates=False).read(node.this)
    if isinstance(node, exp.Count):
        return _count_of(argument)
    if isinstance(node, exp.Sum | exp.Avg):
        reader.number((argument.kind,), node)
    if argument.kind in {Kind.NULL, Kind.INTERVAL}:
        raise reader.error(f"{name} of {a(argument.kind)} is not supported", node)
    if isinstance(node, exp.Avg):
        return _average_of(argument)
    return Typed(type(node)(this=argument.tree), argument.kind)


def _count_of(argument: Typed) -> Typed:
    """count(1) is count(*)."""
    constant = canonical.constant(argument.tree) is not None
    return Typed(exp.Count(this=exp.Star() if constant else argument.tree), Kind.INTEGER)


def _average_of(argument: Typed) -> Typed:
    """As DOUBLE: Spark would average a DECIMAL as DECIMAL."""
    exact = argument.kind is Kind.DECIMAL
    tree = canonical.cast(argument.tree, "DOUBLE") if exact else argument.tree
    return Typed(exp.Avg(this=tree), Kind.DOUBLE)


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
