"""What reading an expression needs and yields: a canonical tree, the kind of its value, errors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from optimizer.query import AGGREGATES
from optimizer.sql import canonical
from optimizer.sql.functions import (
    ANY,
    GENERATORS,
    NONDETERMINISTIC,
    NUMBERS,
    SCALARS,
    WIDER,
    Argument,
    Kind,
)
from optimizer.sql.scope import Scope
from optimizer.sql.text import SqlError
from optimizer.sql.types import (
    MOST,
    SHORT,
    SIGNED,
    bound,
    digits,
    largest,
    shared,
    type_of,
    types_of,
)


@dataclass(frozen=True)
class Typed:
    """A canonical tree and the kind of its value."""

    tree: exp.Expr
    kind: Kind


Handler = Callable[["Reader", exp.Expr], Typed]


@dataclass(frozen=True)
class Reader:
    """Checks expressions over a scope and brings them into canonical form, node by node."""

    scope: Scope
    handlers: Mapping[type[exp.Expr], Handler]
    aggregates: bool = False

    def read(self, node: exp.Expr) -> Typed:
        """The expression in canonical form, with its kind."""
        if (reason := _REASONS.get(type(node))) is not None:
            raise self.error(reason, node)
        handler = self.handlers.get(type(node))
        if handler is None:
            raise self.unknown(node)
        for name, value in node.args.items():
            if value and name not in _PARTS:
                raise self.error(f"{word(node)} with {name.upper()} is not supported", node)
        return handler(self, node)

    def operand(self, node: exp.Expr) -> Typed:
        """A value to compute with, as wide as Spark makes it: DuckDB would stay narrow."""
        return self.widened(self.read(node))

    def widened(self, typed: Typed) -> Typed:
        """The same value, a FLOAT as DOUBLE and a small integer as INT."""
        wide = WIDER.get(self.type(typed.tree))
        return Typed(canonical.cast(typed.tree, wide), typed.kind) if wide else typed

    def type(self, tree: exp.Expr) -> str:
        """The type of a canonical expression, empty if it does not matter which one it is."""
        return type_of(tree, self.scope.types)

    def double(self, typed: Typed) -> exp.Expr:
        """A number as the nearest DOUBLE."""
        declared = self.type(typed.tree)
        if declared == "DOUBLE":
            return typed.tree
        if not _rounded_twice(declared):
            return canonical.cast(typed.tree, "DOUBLE")
        return canonical.cast(canonical.cast(typed.tree, "STRING", safe=True), "DOUBLE", safe=True)

    def condition(self, node: exp.Expr, clause: str) -> exp.Expr:
        """A condition in canonical form."""
        typed = self.read(node)
        if typed.kind not in {Kind.BOOLEAN, Kind.NULL}:
            raise self.error(f"{clause} needs a condition, not {a(typed.kind)}", node)
        return typed.tree

    # --- kinds -----------------------------------------------------------------------------------

    def one_of(self, allowed: Argument, kind: Kind, node: exp.Expr) -> None:
        """Refuse a value of another kind."""
        if kind is Kind.NULL or kind in allowed:
            return
        if allowed == ANY:
            raise self.error(f"{word(node)} of {a(kind)} is not supported", node)
        wanted = "a number" if allowed == NUMBERS else " or ".join(map(a, allowed))
        raise self.error(f"{word(node)} needs {wanted}, not {a(kind)}", node)

    def number(self, kinds: Sequence[Kind], node: exp.Expr) -> Kind:
        """The widest of these kinds of numbers."""
        for kind in kinds:
            self.one_of(NUMBERS, kind, node)
        return self.common(kinds, node)

    def common(self, kinds: Sequence[Kind], node: exp.Expr) -> Kind:
        """The kind that all have in common."""
        known = {kind for kind in kinds if kind is not Kind.NULL}
        if len(known) <= 1:
            return known.pop() if known else Kind.NULL
        if known <= set(NUMBERS):
            return max(known, key=NUMBERS.index)
        found = " and ".join(sorted(a(kind) for kind in known))
        raise self.error(f"{word(node)} mixes {found}: CAST one of them", node)

    def comparable(self, left: Kind, right: Kind, node: exp.Expr) -> None:
        """Refuse to compare kinds that the two engines would convert each in its own way."""
        kinds, moments = {left, right}, {Kind.DATE, Kind.TIMESTAMP}
        alike = left == right or kinds <= set(NUMBERS) or kinds <= moments
        if not alike and Kind.NULL not in kinds:
            text_as_time = Kind.STRING in kinds and kinds & moments
            advice = "write TIMESTAMP '...'" if text_as_time else "CAST one of them"
            raise self.error(f"cannot compare {a(left)} with {a(right)}: {advice}", node)

    def alike(self, typed: Sequence[Typed], node: exp.Expr) -> list[Typed]:
        """Values that are compared, or of which one is taken: numbers so that one type holds all.

        Of two types of decimals Spark would cut digits, and DuckDB fail.
        """
        trees = [one.tree for one in typed if one.kind in NUMBERS]
        types = types_of(trees, self.scope.types)
        if "DOUBLE" in types:
            return [self._beside_doubles(one) for one in typed]
        held = shared(types)
        if held is not None and held.all > MOST:
            message = f"{held.all} digits are needed for {' and '.join(dict.fromkeys(types))}"
            raise self.error(f"{message}, {MOST} is the most: CAST one of them", node)
        return list(typed)

    def with_negative(self, typed: Typed) -> exp.Expr:
        """A number, NULL in place of the least of its type, which has no negative."""
        if typed.kind is not Kind.INTEGER:
            return typed.tree
        most = largest(self.type(typed.tree))
        if bound(typed.tree, self.scope.types) <= most:
            return typed.tree
        return exp.Nullif(this=typed.tree, expression=canonical.literal(-most - 1))

    def from_zero(self, typed: Typed) -> exp.Expr | None:
        """The negative of a DECIMAL of so many digits that Spark's minus sign would cut some."""
        held = digits(self.type(typed.tree))
        if typed.kind is not Kind.DECIMAL or held is None or held.all <= SIGNED:
            return None
        return exp.SafeSubtract(this=canonical.literal(0), expression=typed.tree.copy())

    def _beside_doubles(self, typed: Typed) -> Typed:
        twice = _rounded_twice(self.type(typed.tree))
        return Typed(self.double(typed), Kind.DOUBLE) if twice else typed

    # --- errors ----------------------------------------------------------------------------------

    def error(self, message: str, node: exp.Expr) -> SqlError:
        """A refusal that points at the node."""
        return self.scope.source.error(message, node)

    def unknown(self, node: exp.Expr) -> SqlError:
        """A refusal of what nobody reads."""
        if not isinstance(node, exp.Func) or isinstance(node, exp.Connector):
            return self.error(f"{word(node)} is not supported", node)
        name = self._name(node)
        at = self.scope.source.word(name.upper()) or self.scope.source.offset(node)
        return self.scope.source.error(_reason(node, name), at)

    def _name(self, node: exp.Func) -> str:
        """The function's name as written, if its place is known."""
        if "end" not in node.meta:
            return word(node).lower()
        return self.scope.source.text[node.meta["start"] : node.meta["end"] + 1].lower()


def _reason(node: exp.Func, name: str) -> str:
    if name in NONDETERMINISTIC:
        return f"{name} is not deterministic: a replayed batch would have another result"
    if name in GENERATORS:
        return f"{name} makes rows: a result has one row a match"
    if name == "window":
        return "window(ts, size) belongs in GROUP BY: write window.start or window.end"
    if isinstance(node, exp.AggFunc):
        return f"the aggregate {name} is not supported: use {', '.join(AGGREGATES)}"
    return f"there is no function {name} here: docs/sql.md lists those that exist"


def _rounded_twice(declared: str) -> bool:
    """Whether DuckDB makes a DOUBLE of it in two steps: of a DECIMAL of many digits."""
    held = digits(declared)
    return declared.startswith("DECIMAL") and held is not None and held.all > SHORT


def word(node: exp.Expr) -> str:
    """What the node is called where it is written."""
    if type(node) in SCALARS:
        return SCALARS[type(node)].name
    if type(node) in _SYMBOLS:
        return _SYMBOLS[type(node)]
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    named = isinstance(node, exp.Func) and not isinstance(node, exp.Connector)
    return node.sql_name().lower() if named else type(node).__name__.upper()  # type: ignore[attr-defined]


def a(kind: Kind) -> str:
    """The kind with its article."""
    return f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind}"


_SYMBOLS: Mapping[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.Neg: "-",
    exp.SafeAdd: "+",
    exp.SafeSubtract: "-",
    exp.SafeMultiply: "*",
    exp.DPipe: "||",
    exp.TimestampTrunc: "date_trunc",
    exp.Case: "CASE",
}

_PARTS = frozenset(
    {"this", "expression", "expressions", "table", "db", "catalog", "low", "high", "negate"}
    | {"ifs", "true", "false", "default", "to", "unit", "start", "length", "replacement"}
    | {"is_string", "big_int", "typed", "safe", "coalesce", "ignore_nulls"}
)
"""The parts of nodes that somebody reads, or that say nothing; any other would be lost."""

_REASONS: Mapping[type[exp.Expr], str] = {
    exp.Window: "window functions (OVER) are not supported: GROUP BY window(ts, size, slide)",
    exp.Placeholder: "parameters are not supported: write the value",
    exp.Parameter: "parameters are not supported: write the value",
    exp.Star: "* is a list of columns: write it alone in SELECT, or in count(*)",
    exp.Bracket: "elements of arrays and maps are not supported",
    exp.Dot: "nested columns are not supported",
    exp.RegexpLike: "RLIKE is not supported: Spark and DuckDB read patterns differently",
    exp.ILike: "ILIKE is not supported: write lower(...) LIKE",
    exp.Escape: "LIKE ... ESCAPE is not supported",
    exp.IntDiv: "DIV is not supported: write floor(a / b)",
    exp.Distinct: "DISTINCT is not supported in aggregates: it would have to remember every value",
}
