"""Expressions checked and brought into canonical form: what may be written, and what kind it has.

Where Spark would stop the whole job for one row (a division by zero, a number that does not fit its
CAST) the canonical form yields NULL, in both engines.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from sqlglot import exp

from optimizer.query import AGGREGATES, RESULT, ColumnRef, QueryError
from optimizer.sql import canonical
from optimizer.sql.durations import microseconds, parse_duration
from optimizer.sql.functions import (
    CASTS,
    COUNT,
    GENERATORS,
    NONDETERMINISTIC,
    NUMBERS,
    SCALARS,
    TRUNCATIONS,
    Argument,
    Kind,
    Scalar,
    kind_of,
)
from optimizer.sql.scope import Scope
from optimizer.sql.text import SqlError

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_AGGREGATES: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Min: "min",
    exp.Max: "max",
    exp.Avg: "avg",
}
_REASONS: dict[type[exp.Expr], str] = {
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


@dataclass(frozen=True)
class Typed:
    """A canonical tree and the kind of its value."""

    tree: exp.Expr
    kind: Kind


class Expressions:
    """Checks and rewrites the expressions of one query."""

    def __init__(self, scope: Scope, *, aggregates: bool = False):
        self.scope = scope
        self.source = scope.source
        self.types = scope.types()
        self.aggregates = aggregates

    def condition(self, node: exp.Expr, clause: str) -> exp.Expr:
        """A condition in canonical form."""
        typed = self.read(node)
        if typed.kind not in {Kind.BOOLEAN, Kind.NULL}:
            raise self._error(f"{clause} needs a condition, not {_a(typed.kind)}", node)
        return typed.tree

    def read(self, node: exp.Expr) -> Typed:
        """The expression in canonical form, with its kind."""
        if type(node) in _REASONS:
            raise self._error(_REASONS[type(node)], node)
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            return handler(self, node)
        if type(node) in SCALARS:
            return self._scalar(node, SCALARS[type(node)])
        if type(node) in _AGGREGATES:
            return self._aggregate(node)
        raise self._unknown(node)

    # --- leaves ----------------------------------------------------------------------------------

    def _column(self, node: exp.Expr) -> Typed:
        assert isinstance(node, exp.Column)
        if isinstance(node.this, exp.Star):
            raise self._error(_REASONS[exp.Star], node)
        ref = self.scope.resolve(node)
        kind = Kind.TIMESTAMP if ref.alias == RESULT else kind_of(self.types[ref])
        return Typed(self._bound(ref, node), kind)

    def _bound(self, ref: ColumnRef, node: exp.Expr) -> exp.Expr:
        name = exp.Identifier(this=ref.name)
        name.meta["start"] = self.source.offset(node)
        return exp.Column(this=name, table=exp.Identifier(this=ref.alias) if ref.alias else None)

    def _literal(self, node: exp.Expr) -> Typed:
        assert isinstance(node, exp.Literal)
        text = str(node.this)
        if node.is_string:
            if "\0" in text:
                raise self._error("a NUL character is not supported in text", node)
            return Typed(node.copy(), Kind.STRING)
        if text.isdigit():
            return Typed(node.copy(), Kind.INTEGER)
        return Typed(node.copy(), Kind.DOUBLE if "e" in text.lower() else Kind.DECIMAL)

    def _boolean(self, node: exp.Expr) -> Typed:
        return Typed(node.copy(), Kind.BOOLEAN)

    def _null(self, node: exp.Expr) -> Typed:
        return Typed(node.copy(), Kind.NULL)

    def _interval(self, node: exp.Expr) -> Typed:
        value, unit = node.this, node.args.get("unit")
        negative = isinstance(value, exp.Neg)
        value = value.this if negative else value
        if not isinstance(value, exp.Literal) or isinstance(unit, exp.IntervalSpan):
            raise self._error("write an interval as INTERVAL 5 MINUTES", node)
        try:
            text = str(value.this).strip()
            length = microseconds(text, unit.name) if unit else parse_duration(text)
        except (QueryError, ArithmeticError) as error:
            message = str(error) if isinstance(error, QueryError) else f"not a number: {value.this}"
            raise self._error(message, node) from None
        return Typed(canonical.interval(-length if negative else length), Kind.INTERVAL)

    # --- operators -------------------------------------------------------------------------------

    def _paren(self, node: exp.Expr) -> Typed:
        return self.read(node.this)

    def _not(self, node: exp.Expr) -> Typed:
        return Typed(canonical.negate(self.condition(node.this, "NOT")), Kind.BOOLEAN)

    def _connector(self, node: exp.Expr) -> Typed:
        assert isinstance(node, exp.And | exp.Or)
        word = "AND" if isinstance(node, exp.And) else "OR"
        parts = [self.condition(part, word) for part in canonical.flat(type(node), node)]
        join = canonical.both if isinstance(node, exp.And) else canonical.either
        return Typed(join(*parts), Kind.BOOLEAN)

    def _comparison(self, node: exp.Expr) -> Typed:
        assert isinstance(node, exp.Binary)
        left, right = self.read(node.this), self.read(node.expression)
        self._comparable(left.kind, right.kind, node)
        if isinstance(node, exp.NullSafeNEQ):
            same = canonical.compare(exp.NullSafeEQ, left.tree, right.tree)
            return Typed(canonical.negate(same), Kind.BOOLEAN)
        return Typed(canonical.compare(type(node), left.tree, right.tree), Kind.BOOLEAN)

    def _between(self, node: exp.Expr) -> Typed:
        if node.args.get("symmetric"):
            raise self._error("BETWEEN SYMMETRIC is not supported: order the bounds", node)
        value, low, high = (self.read(node.args[name]) for name in ("this", "low", "high"))
        self._comparable(value.kind, low.kind, node)
        self._comparable(value.kind, high.kind, node)
        above = canonical.compare(exp.LTE, low.tree, value.tree)
        below = canonical.compare(exp.LTE, value.tree.copy(), high.tree)
        return Typed(canonical.both(above, below), Kind.BOOLEAN)

    def _in(self, node: exp.Expr) -> Typed:
        value = self.read(node.this)
        listed = [self.read(item) for item in node.expressions]
        if not listed:
            raise self._error("IN needs a list of values", node)
        for item in listed:
            self._comparable(value.kind, item.kind, node)
        return Typed(canonical.any_of(value.tree, [i.tree for i in listed]), Kind.BOOLEAN)

    def _is(self, node: exp.Expr) -> Typed:
        assert isinstance(node, exp.Is)
        value = self.read(node.this)
        if isinstance(node.expression, exp.Boolean):
            self._one_of((Kind.BOOLEAN,), value.kind, node)
        elif not isinstance(node.expression, exp.Null):
            raise self._error("IS needs NULL, TRUE or FALSE", node)
        return Typed(exp.Is(this=value.tree, expression=node.expression.copy()), Kind.BOOLEAN)

    def _like(self, node: exp.Expr) -> Typed:
        assert isinstance(node, exp.Like)
        value, pattern = self.read(node.this), self.read(node.expression)
        self._one_of((Kind.STRING,), value.kind, node)
        written = canonical.constant(pattern.tree)
        if not isinstance(written, str) or "\\" in written:
            message = (
                "LIKE needs a pattern written out, without backslashes: the engines differ there"
            )
            raise self._error(message, node)
        return Typed(exp.Like(this=value.tree, expression=pattern.tree), Kind.BOOLEAN)

    def _arithmetic(self, node: exp.Expr) -> Typed:
        assert isinstance(node, exp.Binary)
        left, right = self.read(node.this), self.read(node.expression)
        kind = self._arithmetic_kind(node, left.kind, right.kind)
        return Typed(canonical.arithmetic(type(node), left.tree, right.tree), kind)

    def _arithmetic_kind(self, node: exp.Expr, left: Kind, right: Kind) -> Kind:
        times = {
            (exp.Add, Kind.TIMESTAMP, Kind.INTERVAL): Kind.TIMESTAMP,
            (exp.Add, Kind.INTERVAL, Kind.TIMESTAMP): Kind.TIMESTAMP,
            (exp.Add, Kind.INTERVAL, Kind.INTERVAL): Kind.INTERVAL,
            (exp.Sub, Kind.TIMESTAMP, Kind.INTERVAL): Kind.TIMESTAMP,
            (exp.Sub, Kind.INTERVAL, Kind.INTERVAL): Kind.INTERVAL,
            (exp.Sub, Kind.TIMESTAMP, Kind.TIMESTAMP): Kind.INTERVAL,
        }
        if (kind := times.get((type(node), left, right))) is not None:  # type: ignore[call-overload]
            return Kind(kind)
        return self._number((left, right), node)

    def _division(self, node: exp.Expr) -> Typed:
        assert isinstance(node, exp.Binary)
        left, right = self.read(node.this), self.read(node.expression)
        kind = self._number((left.kind, right.kind), node)
        divisor = right.tree
        if not canonical.number(divisor):
            divisor = exp.Nullif(this=divisor, expression=canonical.literal(0))
        if isinstance(node, exp.Mod):
            return Typed(exp.Mod(this=left.tree, expression=divisor), kind)
        whole = left.kind is not Kind.DOUBLE
        dividend = _cast(left.tree, "DOUBLE") if whole else left.tree
        return Typed(exp.Div(this=dividend, expression=divisor), Kind.DOUBLE)

    def _negative(self, node: exp.Expr) -> Typed:
        value = self.read(node.this)
        kind = self._number((value.kind,), node)
        if isinstance(value.tree, exp.Neg):
            return Typed(value.tree.this, kind)
        return Typed(exp.Neg(this=value.tree), kind)

    def _concatenation(self, node: exp.Expr) -> Typed:
        assert isinstance(node, exp.Binary)
        return self._concatenated([node.this, node.expression], node)

    def _concatenated(self, nodes: Sequence[exp.Expr], node: exp.Expr) -> Typed:
        parts = [self.read(part) for part in nodes]
        for part in parts:
            self._one_of((Kind.STRING,), part.kind, node)
        first, *rest = (part.tree for part in parts)
        for part_tree in rest:
            first = exp.DPipe(this=first, expression=part_tree)
        return Typed(first, Kind.STRING)

    # --- functions -------------------------------------------------------------------------------

    def _scalar(self, node: exp.Expr, function: Scalar) -> Typed:
        if isinstance(node, exp.Concat):
            return self._concatenated(node.expressions, node)
        arguments = _arguments(node)
        expected = function.arguments
        if function.many:
            expected = expected * max(len(arguments), 1)
        if len(arguments) != len(expected) or node.args.get("position"):
            raise self._error(f"{function.name} takes {_count(function)}", node)
        typed = [
            self._argument(function, argument, allowed, node)
            for argument, allowed in zip(arguments, expected, strict=True)
        ]
        kind = function.result or self._common([t.kind for t in typed], node)
        tree = node.copy()
        for old, new in zip(_arguments(tree), typed, strict=True):
            old.replace(new.tree)
        return Typed(_cast(tree, function.cast) if function.cast else tree, kind)

    def _argument(
        self, function: Scalar, node: exp.Expr, allowed: Argument, call: exp.Expr
    ) -> Typed:
        typed = self.read(node)
        if allowed is COUNT or not allowed:
            value = canonical.number(typed.tree)
            if not isinstance(value, int) or value < (function.name == "substring"):
                raise self._error(f"{function.name} needs positions written out as numbers", call)
        else:
            self._one_of(allowed, typed.kind, call)
        return typed

    def _date_trunc(self, node: exp.Expr) -> Typed:
        assert isinstance(node, exp.TimestampTrunc)
        unit = node.args["unit"].name.upper()
        if unit not in TRUNCATIONS:
            allowed = ", ".join(TRUNCATIONS).lower()
            raise self._error(f"date_trunc cuts off to one of {allowed}", node)
        value = self.read(node.this)
        self._one_of((Kind.TIMESTAMP,), value.kind, node)
        return Typed(exp.TimestampTrunc(this=value.tree, unit=exp.Var(this=unit)), Kind.TIMESTAMP)

    def _case(self, node: exp.Expr) -> Typed:
        subject = node.this and self.read(node.this)
        branches: list[exp.Expr] = []
        results: list[Typed] = []
        for branch in node.args["ifs"]:
            if subject:
                when = self.read(branch.this)
                self._comparable(subject.kind, when.kind, branch)
                condition = when.tree
            else:
                condition = self.condition(branch.this, "WHEN")
            results.append(self.read(branch.args["true"]))
            branches.append(exp.If(this=condition, true=results[-1].tree))
        default = node.args.get("default")
        if default is not None:
            results.append(self.read(default))
        kind = self._common([result.kind for result in results], node)
        tree = exp.Case(
            this=subject.tree if subject else None,
            ifs=branches,
            default=results[-1].tree if default is not None else None,
        )
        return Typed(tree, kind)

    def _if(self, node: exp.Expr) -> Typed:
        return self._case(exp.Case(ifs=[node.copy()], default=node.args.get("false")))

    def _cast(self, node: exp.Expr) -> Typed:
        assert isinstance(node, exp.Cast)
        target = node.to.sql("spark").upper()
        if isinstance(node.this, exp.Literal) and target in {"TIMESTAMP", "DATE"}:
            return self._moment(node, target)
        value = self.read(node.this)
        try:
            kind = kind_of(target)
        except KeyError:
            raise self._error(f"CAST to {target} is not supported", node) from None
        if value.kind is not Kind.NULL and kind not in CASTS.get(value.kind, ()):
            raise self._error(f"CAST of {_a(value.kind)} to {target} {_CAST_ADVICE}", node)
        return Typed(_cast(value.tree, target, safe=True), kind)

    def _moment(self, node: exp.Cast, target: str) -> Typed:
        """A timestamp or date written out, in UTC."""
        text = str(node.this.this)
        try:
            if target == "DATE":
                return Typed(_cast_text(date.fromisoformat(text).isoformat(), target), Kind.DATE)
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise self._error(f"not a {target.lower()}: '{text}'", node) from None
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
        return Typed(_cast_text(moment.isoformat(sep=" "), target), Kind.TIMESTAMP)

    def _to_date(self, node: exp.Expr) -> Typed:
        """What sqlglot wraps around the argument of year(), month() and day()."""
        return self.read(node.this)

    # --- aggregates ------------------------------------------------------------------------------

    def _filter(self, node: exp.Expr) -> Typed:
        if type(node.this) not in _AGGREGATES:
            raise self._error("FILTER belongs behind an aggregate", node)
        aggregate = self.read(node.this)
        inner = Expressions(self.scope)
        condition = inner.condition(node.expression.this, "FILTER")
        where = exp.Where(this=condition)
        return Typed(exp.Filter(this=aggregate.tree, expression=where), aggregate.kind)

    def _aggregate(self, node: exp.Expr) -> Typed:
        name = _AGGREGATES[type(node)]
        if not self.aggregates:
            raise self._error(f"the aggregate {name} cannot stand here", node)
        if node.expressions:
            raise self._error(f"{name} takes one argument", node)
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            return Typed(exp.Count(this=exp.Star()), Kind.INTEGER)
        if node.this is None:
            raise self._error("count needs * or an argument", node)
        return self._aggregated(node, name, Expressions(self.scope).read(node.this))

    def _aggregated(self, node: exp.Expr, name: str, argument: Typed) -> Typed:
        if name == "count":
            counted = exp.Star() if canonical.constant(argument.tree) is not None else argument.tree
            return Typed(exp.Count(this=counted), Kind.INTEGER)
        if name in {"sum", "avg"}:
            self._number((argument.kind,), node)
        if argument.kind in {Kind.NULL, Kind.INTERVAL}:
            raise self._error(f"{name} of {_a(argument.kind)} is not supported", node)
        if name == "avg":
            tree = argument.tree
            exact = argument.kind is Kind.DECIMAL
            return Typed(exp.Avg(this=_cast(tree, "DOUBLE") if exact else tree), Kind.DOUBLE)
        return Typed(type(node)(this=argument.tree), argument.kind)

    # --- kinds -----------------------------------------------------------------------------------

    def _number(self, kinds: Sequence[Kind], node: exp.Expr) -> Kind:
        for kind in kinds:
            self._one_of(NUMBERS, kind, node)
        return self._common(kinds, node)

    def _one_of(self, allowed: Argument, kind: Kind, node: exp.Expr) -> None:
        if kind is not Kind.NULL and kind not in allowed:
            wanted = "a number" if set(allowed) == set(NUMBERS) else " or ".join(map(_a, allowed))
            raise self._error(f"{_word(node)} needs {wanted}, not {_a(kind)}", node)

    def _comparable(self, left: Kind, right: Kind, node: exp.Expr) -> None:
        moments = {Kind.DATE, Kind.TIMESTAMP}
        alike = left == right or {left, right} <= set(NUMBERS) or {left, right} <= moments
        if not alike and Kind.NULL not in {left, right}:
            message = f"cannot compare {_a(left)} with {_a(right)}: CAST one of them"
            if Kind.STRING in {left, right} and {left, right} & moments:
                message = f"cannot compare {_a(left)} with {_a(right)}: write TIMESTAMP '...'"
            raise self._error(message, node)

    def _common(self, kinds: Sequence[Kind], node: exp.Expr) -> Kind:
        """The kind that all have in common."""
        known = {kind for kind in kinds if kind is not Kind.NULL}
        if len(known) <= 1:
            return known.pop() if known else Kind.NULL
        if known <= set(NUMBERS):
            return max(known, key=NUMBERS.index)
        found = " and ".join(sorted(_a(kind) for kind in known))
        raise self._error(f"{_word(node)} mixes {found}: CAST one of them", node)

    # --- errors ----------------------------------------------------------------------------------

    def _error(self, message: str, node: exp.Expr) -> SqlError:
        return self.source.error(message, self._at(node))

    def _at(self, node: exp.Expr) -> int:
        if "start" in node.meta or any("start" in part.meta for part in node.walk()):
            return self.source.offset(node)
        parent = node.parent
        return self._at(parent) if parent is not None else 0

    def _unknown(self, node: exp.Expr) -> SqlError:
        name = _function_name(node)
        if name is None:
            return self._error(f"{_word(node)} is not supported", node)
        at = self.source.word(name.upper()) or self._at(node)
        if name in NONDETERMINISTIC:
            reason = f"{name} is not deterministic: a replayed batch would have another result"
        elif name in GENERATORS:
            reason = f"{name} makes rows: a result has one row a match"
        elif name == "window":
            reason = "window(ts, size, slide) belongs in GROUP BY: write window.start or window.end"
        elif isinstance(node, exp.AggFunc):
            reason = f"the aggregate {name} is not supported: use {', '.join(AGGREGATES)}"
        else:
            reason = f"there is no function {name} here: docs/sql.md lists those that exist"
        return self.source.error(reason, at)


_CAST_ADVICE = "is not supported: Spark and DuckDB differ there"


def _cast(tree: exp.Expr, target: str, *, safe: bool = False) -> exp.Expr:
    to = exp.DataType.build(target, dialect="spark")
    return exp.TryCast(this=tree, to=to, safe=True) if safe else exp.Cast(this=tree, to=to)


def _cast_text(text: str, target: str) -> exp.Expr:
    return _cast(exp.Literal.string(text), target)


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    """The arguments in the order written."""
    return list(node.iter_expressions())


def _count(function: Scalar) -> str:
    if function.many:
        return "at least one argument"
    count = len(function.arguments)
    return "one argument" if count == 1 else f"{count} arguments"


def _function_name(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    if isinstance(node, exp.Func) and not isinstance(node, exp.Connector):
        return str(node.meta.get("name") or node.sql_name()).lower()
    return None


def _word(node: exp.Expr) -> str:
    """What the node is called where it is written."""
    if type(node) in SCALARS:
        return SCALARS[type(node)].name
    return _function_name(node) or _SYMBOLS.get(type(node)) or type(node).__name__.upper()


_SYMBOLS: Mapping[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.Neg: "-",
    exp.DPipe: "||",
    exp.TimestampTrunc: "date_trunc",
}


def _a(kind: Kind) -> str:
    return f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind}"


_HANDLERS: dict[type[exp.Expr], Callable[[Expressions, exp.Expr], Typed]] = {
    exp.Column: Expressions._column,
    exp.Literal: Expressions._literal,
    exp.Boolean: Expressions._boolean,
    exp.Null: Expressions._null,
    exp.Interval: Expressions._interval,
    exp.Paren: Expressions._paren,
    exp.Not: Expressions._not,
    exp.And: Expressions._connector,
    exp.Or: Expressions._connector,
    exp.Between: Expressions._between,
    exp.In: Expressions._in,
    exp.Is: Expressions._is,
    exp.Like: Expressions._like,
    exp.Add: Expressions._arithmetic,
    exp.Sub: Expressions._arithmetic,
    exp.Mul: Expressions._arithmetic,
    exp.Div: Expressions._division,
    exp.Mod: Expressions._division,
    exp.Neg: Expressions._negative,
    exp.DPipe: Expressions._concatenation,
    exp.TimestampTrunc: Expressions._date_trunc,
    exp.Case: Expressions._case,
    exp.If: Expressions._if,
    exp.Cast: Expressions._cast,
    exp.TryCast: Expressions._cast,
    exp.TsOrDsToDate: Expressions._to_date,
    exp.Filter: Expressions._filter,
} | dict.fromkeys(_COMPARISONS, Expressions._comparison)
