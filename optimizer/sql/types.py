"""The types of canonical expressions: Spark's, but exact decimals instead of rounded ones.

A sum, difference or product of decimals has all its digits; what needs more than 38 is NULL.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from optimizer.query import ColumnRef
from optimizer.sql import canonical
from optimizer.sql.text import DIALECT

MOST = 38
"""Digits of a DECIMAL at most."""

SHORT = 18
"""Digits of a DECIMAL at most that DuckDB keeps in 64 bits."""

SIGNED = 34
"""Digits of a DECIMAL at most that Spark keeps when it changes a sign."""

NARROW = 28
"""Digits of a DECIMAL of which ten thousand million can be added up with `MOST`."""

_WHOLE = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
_LARGEST = {"TINYINT": 2**7 - 1, "SMALLINT": 2**15 - 1, "INT": 2**31 - 1, "BIGINT": 2**63 - 1}
_DECIMAL = re.compile(r"DECIMAL\((\d+), (\d+)\)")

Types = Mapping[ColumnRef, str]


@dataclass(frozen=True)
class Digits:
    """How many digits a number may have before and behind its point."""

    whole: int
    scale: int

    @property
    def all(self) -> int:
        """Before and behind it."""
        return self.whole + self.scale

    @property
    def type(self) -> str:
        """The DECIMAL of that many digits, or of as many as there can be."""
        return f"DECIMAL({max(1, min(MOST, self.all))}, {self.scale})"

    def __or__(self, other: "Digits") -> "Digits":
        """What holds either."""
        return Digits(max(self.whole, other.whole), max(self.scale, other.scale))


def digits(declared: str) -> Digits | None:
    """The digits of a whole number's or a DECIMAL's type."""
    if declared in _WHOLE:
        return Digits(_WHOLE[declared], 0)
    if found := _DECIMAL.fullmatch(declared):
        return Digits(int(found[1]) - int(found[2]), int(found[2]))
    return None


def literal_digits(text: str) -> Digits:
    """The digits of a number written out."""
    _, written, exponent = Decimal(text).as_tuple()
    scale = max(0, -int(exponent))
    significant = len("".join(map(str, written)).lstrip("0"))
    return Digits(max(0, significant - scale), scale)


def type_of(tree: exp.Expr, columns: Types) -> str:
    """The type of a canonical expression, empty if it does not matter which one it is."""
    if isinstance(tree, exp.Column):
        return columns.get(canonical.ref(tree), "")
    if isinstance(tree, exp.Cast):
        return tree.to.sql(DIALECT).upper()
    if isinstance(tree, exp.Literal):
        return "STRING" if tree.is_string else _literal(str(tree.this))
    if isinstance(tree, exp.Count):
        return "BIGINT"
    if isinstance(tree, exp.Sum):
        return sum_type(type_of(tree.this, columns))
    if isinstance(tree, exp.Div | exp.Avg):
        return "DOUBLE"
    if isinstance(tree, _SAME):
        return type_of(tree.this, columns)
    if (combine := _COMBINED.get(type(tree))) is not None or is_remainder(tree):
        return (combine or remainder)(types_of(_parts(tree), columns))
    return ""


def types_of(trees: Sequence[exp.Expr], columns: Types) -> list[str]:
    """The types of values that meet: beside decimals, whole numbers written out are as long."""
    types = [_tight(tree, columns) for tree in trees]
    if not any(declared.startswith("DECIMAL") for declared in types):
        return types
    values = [canonical.number(tree) for tree in trees]
    return [
        Digits(len(str(abs(value))), 0).type if isinstance(value, int) else declared
        for declared, value in zip(types, values, strict=True)
    ]


def _tight(tree: exp.Expr, columns: Types) -> str:
    """The type, before it was widened only to compute with it."""
    declared = type_of(tree, columns)
    if isinstance(tree, exp.Cast) and declared.startswith("DECIMAL"):
        inner, outer = digits(type_of(tree.this, columns)), digits(declared)
        if inner and outer and inner.scale == outer.scale and inner.all < outer.all:
            return inner.type
    return declared


_SAME = (exp.Neg, exp.Abs, exp.Paren, exp.Min, exp.Max, exp.Filter, exp.Nullif, exp.Round)
"""What has the type of its (first) argument."""


def is_remainder(tree: exp.Expr) -> bool:
    """`%`, also as the function that yields NULL where the divisor is zero."""
    remaining = isinstance(tree, exp.Anonymous) and tree.name.lower() == "try_mod"
    return remaining or isinstance(tree, exp.Mod)


def _parts(tree: exp.Expr) -> list[exp.Expr]:
    """The values that an expression has one of, or computes with."""
    if isinstance(tree, exp.Case):
        default = tree.args.get("default")
        return [branch.args["true"] for branch in tree.args["ifs"]] + ([default] if default else [])
    return list(tree.iter_expressions())


def _literal(text: str) -> str:
    if text.isdigit():
        fits = [name for name in ("INT", "BIGINT") if int(text) <= _LARGEST[name]]
        return fits[0] if fits else Digits(len(text), 0).type
    return "DOUBLE" if "e" in text.lower() else literal_digits(text).type


# --- several -------------------------------------------------------------------------------------


def common(declared: Sequence[str]) -> str:
    """The type that holds the values of all."""
    known = [name for name in declared if name]
    if not known or "DOUBLE" in known or "FLOAT" in known:
        return "DOUBLE" if known else ""
    if set(known) <= _WHOLE.keys():
        return max((*known, "INT"), key=_WHOLE.__getitem__)
    held = shared(known)
    return known[0] if held is None else held.type


def shared(declared: Sequence[str]) -> Digits | None:
    """The digits that hold the values of all these types of exact numbers."""
    held = Digits(0, 0)
    for one in map(digits, declared):
        if one is None:
            return None
        held |= one
    return held


def total(declared: Sequence[str]) -> str:
    """The type of a sum or difference."""
    return _exact(declared, lambda one, other: Digits((one | other).whole + 1, (one | other).scale))


def product(declared: Sequence[str]) -> str:
    """The type of a product."""
    return _exact(
        declared, lambda one, other: Digits(one.whole + other.whole, one.scale + other.scale)
    )


def remainder(declared: Sequence[str]) -> str:
    """The type of `%`."""
    return _exact(
        declared,
        lambda one, other: Digits(min(one.whole, other.whole), max(one.scale, other.scale)),
    )


def _exact(declared: Sequence[str], combine: Callable[[Digits, Digits], Digits]) -> str:
    widest = common(declared)
    one, other = (digits(name) for name in declared)
    if not widest.startswith("DECIMAL") or one is None or other is None:
        return widest
    return combine(one, other).type


def sum_type(declared: str) -> str:
    """The type in which values are added up: exact ones in as many digits as there are."""
    held = digits(declared)
    return "DOUBLE" if held is None else f"DECIMAL({MOST}, {held.scale})"


_COMBINED: Mapping[type[exp.Expr], Callable[[Sequence[str]], str]] = {
    exp.Add: total,
    exp.Sub: total,
    exp.SafeAdd: total,
    exp.SafeSubtract: total,
    exp.Mul: product,
    exp.SafeMultiply: product,
    exp.Coalesce: common,
    exp.Greatest: common,
    exp.Least: common,
    exp.Case: common,
}

# --- how large a whole number can be --------------------------------------------------------------


def largest(declared: str) -> int:
    """The largest value of a type of whole numbers."""
    return _LARGEST[declared]


def bound(tree: exp.Expr, columns: Types) -> int:
    """No value of this expression over whole numbers is larger, nor its negative."""
    value = canonical.number(tree)
    if isinstance(value, int):
        return abs(value)
    if isinstance(tree, exp.Nullif):
        most = largest(type_of(tree, columns))
        return most if canonical.number(tree.expression) == -most - 1 else most + 1
    if isinstance(tree, exp.Neg | exp.Abs):
        return bound(tree.this, columns)
    if isinstance(tree, exp.Add | exp.Sub):
        return bound(tree.this, columns) + bound(tree.expression, columns)
    if isinstance(tree, exp.Mul):
        return bound(tree.this, columns) * bound(tree.expression, columns)
    if isinstance(tree, exp.Cast) and type(tree.this) in _SMALL:
        return _SMALL[type(tree.this)]
    declared = [type_of(tree, columns)]
    if isinstance(tree, exp.Cast):
        declared.append(type_of(tree.this, columns))
    return min(_LARGEST.get(name, 2**63 - 1) for name in declared) + 1


_SMALL: Mapping[type[exp.Expr], int] = {
    exp.Month: 12,
    exp.Day: 31,
    exp.DayOfMonth: 31,
    exp.Hour: 23,
    exp.Minute: 59,
    exp.Second: 59,
    exp.Year: 300_000,
}
