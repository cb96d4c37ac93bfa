"""Random queries: conditions, windows, expressions and aggregates over a few streams."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import inf
from random import Random

from tests.bench.differential.case import Query, Stream, Window, closed
from tests.bench.differential.functions import (
    FUNCTIONS,
    NUMBERS,
    SIZES,
    decimal,
    digits,
    kind_of,
    wide,
)
from tests.bench.differential.terms import (
    Aggregate,
    Call,
    Column,
    Edge,
    Literal,
    Term,
    Value,
    aliases,
    columns,
    parts,
)
from tests.bench.differential.values import ALIASES, COLUMNS, WORDS, some

KINDS = (*NUMBERS, "STRING", "BOOLEAN", "DATE", "TIMESTAMP", "BINARY")


def draw(r: Random, streams: Sequence[Stream], unit: int) -> Query:
    """A query of all the streams, or of one of them twice."""
    chosen = list(streams)
    if len(chosen) < 3 and r.random() < 0.25:
        chosen.append(r.choice(chosen))
    names = _aliases(r, chosen)
    inputs = tuple(zip(names, chosen, strict=True))
    scope = Scope(
        r,
        tuple(Column(a, n, kind) for a, s in inputs for n, kind in s.columns),
        frozenset(Column(a, s.time, "TIMESTAMP") for a, s in inputs),
    )
    between, ranges, window = _windows(r, names, unit)
    if not possible(names, between, ranges):
        between, ranges, window = {}, {}, unit
    on = tuple(_conditions(scope, names))
    style = r.randrange(3)
    if r.random() < 0.4:
        keys, grouping, output = _grouped(scope, names, unit, dict(inputs))
        return Query(inputs, on, between, ranges, window, output, keys, grouping, style)
    output = _named(r, [scope.result() for _ in range(r.randrange(1, 6))])
    return Query(inputs, on, between, ranges, window, output, style=style)


def _aliases(r: Random, streams: Sequence[Stream]) -> list[str]:
    names = [stream.name for stream in streams]
    if len(set(names)) == len(names) and "window" not in names and r.random() < 0.4:
        return names
    return some(r, [name for name in ALIASES if name != "window"], len(streams))


def _named(r: Random, terms: Sequence[Term]) -> tuple[tuple[str, Term], ...]:
    return tuple(zip(some(r, COLUMNS, len(terms)), terms, strict=True))


# --- windows -------------------------------------------------------------------------------------


def _windows(
    r: Random, names: Sequence[str], unit: int
) -> tuple[dict[tuple[str, str], int], dict[str, int], int | None]:
    """Pairs, ranges and a window for all, such that every two inputs are bounded."""
    between: dict[tuple[str, str], int] = {}
    if len(names) == 1:
        return between, {}, r.choice([None, unit])
    kind = r.choice(["window", "ranges", "between", "mixed"])
    ranges = {}
    if kind in {"ranges", "mixed"}:
        ranges = {name: max(1, _length(r, unit)) for name in names}
    if kind in {"between", "mixed"}:
        for position, name in enumerate(names[1:], start=1):
            other = r.choice(names[:position])
            low = _length(r, unit) * r.choice([-1, -1, 1])
            high = max(low, 0) + _length(r, unit)
            between |= {(name, other): high, (other, name): -low}
    return between, ranges, max(1, _length(r, unit)) if kind == "window" else None


def possible(
    names: Sequence[str], between: Mapping[tuple[str, str], int], ranges: Mapping[str, int]
) -> bool:
    """Whether there are event times that all limits allow."""
    said = {(i, j): min(between.get((i, j), inf), ranges.get(j, inf)) for i in names for j in names}
    known = closed(names, said)
    return all(known[i, j] + known[j, i] >= 0 for i, j in known)


def _length(r: Random, unit: int) -> int:
    """A length of time at which tuples meet, or just do not."""
    return max(0, unit * r.choice([0, 1, 2, 5, 12]) + r.choice([0, 0, -1, 1]))


# --- conditions ----------------------------------------------------------------------------------


def _conditions(scope: "Scope", names: Sequence[str]) -> Iterator[Term]:
    r = scope.r
    for position, name in enumerate(names[1:], start=1):
        other = r.choice(names[:position])
        for _ in range(r.choices([0, 1, 2], [2, 8, 1])[0]):
            yield from scope.of(name, other).meeting(name, other)
    for name in names:
        if r.random() < 0.25:
            yield from scope.of(name).selecting()


@dataclass(frozen=True)
class Scope:
    """The columns that a term may read."""

    r: Random
    columns: tuple[Column, ...]
    times: frozenset[Column]
    """The event times: comparisons of two of them are windows, which are drawn by themselves."""

    def of(self, *names: str) -> "Scope":
        """Those of these inputs alone."""
        return Scope(self.r, tuple(c for c in self.columns if c.alias in names), self.times)

    def meeting(self, one: str, other: str) -> Iterator[Term]:
        """A condition between two inputs, mostly an equality that holds now and then."""
        pairs = [
            (a, b)
            for a in self.of(one).columns
            for b in self.of(other).columns
            if kind_of(a.type) == kind_of(b.type)
        ]
        if pairs and self.r.random() < 0.7:
            a, b = self.r.choice(pairs)
            sign = self.r.choice(["=", "=", "=", "<=>", "<>", "<="])
            found: Term | None = call(f"{sign}{kind_of(a.type)}{kind_of(b.type)}", a, b)
        else:
            found = self.exact("BOOLEAN", 2)
        made = found
        if made is not None and aliases(made) == {one, other} and not self._bounds(made):
            yield from [made] if _reads(made) else []

    def _bounds(self, condition: Term) -> bool:
        return any(
            isinstance(part, Call)
            and part.arguments[-1:]
            and part.arguments[0].type == "TIMESTAMP"
            and len(aliases(part)) > 1
            and columns(part) <= self.times
            for part in parts(condition)
        )

    def selecting(self) -> Iterator[Term]:
        """A condition on one input."""
        made = self.exact("BOOLEAN", 2)
        if _reads(made):
            yield made

    def result(self) -> Term:
        """What a query may put out."""
        return self.term(self.r.choice(KINDS), self.r.choice([0, 1, 2, 3]))

    def exact(self, kind: str, depth: int) -> Term:
        """A term that has one value, down to the last bit."""
        made = self.term(kind, depth)
        return made if is_exact(made) else self.leaf(kind)

    def term(self, kind: str, depth: int) -> Term:
        """A term of that kind, so many calls deep at most."""
        if depth == 0 or self.r.random() < 0.15:
            return self.leaf(kind)
        for _ in range(8):
            name = self.r.choice(MAKERS[kind])
            made = call(name, *(self._argument(a, depth - 1) for a in FUNCTIONS[name].takes))
            if made is not None:
                return made
        return self.leaf(kind)

    def _argument(self, kind: str, depth: int) -> Term:
        r = self.r
        match kind:
            case "count":
                return Literal(r.randrange(4), "INT")
            case "place":
                return Literal(r.randrange(1, 4), "INT")
            case "pattern":
                return Literal(r.choice(["%", "a%", "%b", "_", "a_", "%a%", "", "__%"]), "STRING")
            case "length":
                micros = r.choice([1, 1000, 10**6, 86_400_000_000]) * r.randrange(1, 5)
                return Literal(micros, "INTERVAL")
            case "numeral":
                known = Literal(r.choice(NUMERALS), "STRING")
                return known if r.random() < 0.5 else self.leaf("STRING")
            case "ascii":
                return Literal(r.choice(["aBc", "Zz", "", "x'Y"]), "STRING")
        return self.term(kind, depth)

    def leaf(self, kind: str) -> Term:
        """A column, or a value written out."""
        found = [c for c in self.columns if kind_of(c.type) == kind]
        if found and self.r.random() < 0.8:
            return self.r.choice(found)
        return written(self.r, kind)


def _reads(condition: Term) -> bool:
    """Whether each part that must hold reads a column: others are always the same."""
    if isinstance(condition, Call) and condition.function == "and":
        return all(map(_reads, condition.arguments))
    if isinstance(condition, Call) and condition.function.startswith("between"):
        value, *limits = condition.arguments
        return all(columns(value) | columns(limit) for limit in limits)
    return bool(columns(condition))


def call(name: str, *arguments: Term) -> Call | None:
    """A call, if there is such a one of these types."""
    function = FUNCTIONS[name]
    type_ = function.type([argument.type for argument in arguments])
    return None if type_ is None else Call(name, arguments, type_)


def is_exact(term: Term) -> bool:
    """Whether nothing in it is rounded by each engine in its own way."""
    for part in parts(term):
        if isinstance(part, Call) and part.type == "DOUBLE":
            types = {kind_of(argument.type) for argument in part.arguments}
            if "DECIMAL" in types:
                return False
    return True


def written(r: Random, kind: str) -> Term:
    """A value written out."""
    return Literal(*_written(r, kind))


def _written(r: Random, kind: str) -> tuple[Value, str]:
    match kind:
        case "INTEGER":
            number = r.choice([0, 1, 2, 3, 7, -1, 2**31 - 1, 2**31, 2**40])
            return number, "INT" if -(2**31) <= number < 2**31 else "BIGINT"
        case "DECIMAL":
            text = r.choice(["0.5", "1.0", "2.25", "0.001", "12345.6789"])
            places = len(text) - text.index(".") - 1
            return Decimal(text), decimal(max(len(text) - 1, places), places) or ""
        case "DOUBLE":
            return r.choice([0.0, 1.0, 0.5, 1e3, 2.5e-3]), "DOUBLE"
        case "STRING":
            return r.choice(WORDS), "STRING"
        case "BOOLEAN":
            return r.random() < 0.5, "BOOLEAN"
        case "DATE":
            return r.choice([0, -1, 19_000, 19_782, -719_162]), "DATE"
        case "TIMESTAMP":
            return r.choice([0, -1, 1_700_000_000_000_000, 1_710_054_000_000_000]), "TIMESTAMP"
    return None, "BINARY"


def _makers() -> dict[str, list[str]]:
    """The functions that make each kind of value."""
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name, function in FUNCTIONS.items():
        example = [_EXAMPLES.get(kind, kind) for kind in function.takes]
        made = function.type(example)
        if made is not None:
            found[kind_of(made)].append(name)
    return found


NUMERALS = (
    "1", " 7.5 ", "+.5", "-2.", "1e3", "1_000", "0x1F", "٣", "NaN", "-inf", "Infinity", "", " ",
    "1.005", "99999.995", "1d", "1,5", "--1", "\t1",
)  # fmt: skip
"""Texts that are numbers, and some that only look like them."""

_EXAMPLES = {
    "INTEGER": "INT", "DECIMAL": "DECIMAL(5, 2)", "count": "INT", "place": "INT", "ascii": "STRING",
    "pattern": "STRING", "numeral": "STRING", "length": "INTERVAL",
}  # fmt: skip
MAKERS = _makers()


# --- groups --------------------------------------------------------------------------------------

Grouped = tuple[tuple[Term, ...], Window, tuple[tuple[str, Term], ...]]


def _grouped(scope: Scope, names: Sequence[str], unit: int, streams: dict[str, Stream]) -> Grouped:
    r = scope.r
    alias = r.choice(list(names))
    size = max(1, unit * r.randrange(1, 9))
    slide = r.choice([size, size, max(1, size // 2), max(1, size // 3)])
    keys = tuple(dict.fromkeys(_keys(scope)))
    time = Column(alias, streams[alias].time, "TIMESTAMP")
    aggregates = [_aggregate(scope, time, unit) for _ in range(r.randrange(1, 5))]
    items: list[Term] = [*keys, *(_over(r, one) for one in aggregates)]
    items += [Edge(name) for name in ("start", "end") if r.random() < 0.4]
    r.shuffle(items)
    return keys, Window(alias, size, slide), _named(r, items)


def _keys(scope: Scope) -> Iterator[Term]:
    for _ in range(scope.r.choice([0, 1, 1, 2])):
        key = scope.exact(scope.r.choice(KINDS), scope.r.choice([0, 0, 1]))
        if columns(key):
            yield key


def _aggregate(scope: Scope, time: Column, unit: int) -> Aggregate:
    r = scope.r
    function = r.choice(["count", "sum", "min", "max", "avg"])
    only = None
    if r.random() < 0.3:
        only = scope.exact("BOOLEAN", 1)
        if r.random() < 0.4:
            edge, sign = r.choice([("end", "minus"), ("start", "plus")])
            moved = Call(sign, (Edge(edge), Literal(unit, "INTERVAL")), "TIMESTAMP")
            only = call(">=TIMESTAMPTIMESTAMP", time, moved)
        elif not columns(only):
            only = None
    if function == "count" and r.random() < 0.5:
        return Aggregate("count", None, only, "BIGINT")
    numeric = function in {"sum", "avg"}
    argument = scope.exact(r.choice(NUMBERS if numeric else KINDS), r.choice([0, 0, 1, 2]))
    if not columns(argument):
        argument = scope.r.choice(scope.columns)
        if numeric and kind_of(argument.type) not in NUMBERS:
            return Aggregate("count", argument, only, "BIGINT")
    return Aggregate(function, argument, only, _aggregate_type(function, argument.type))


def _aggregate_type(function: str, type_: str) -> str:
    match function:
        case "count":
            return "BIGINT"
        case "avg":
            return "DOUBLE"
        case "sum" if type_ in SIZES:
            return "BIGINT"
        case "sum" if kind_of(type_) == "DECIMAL":
            return f"DECIMAL(38, {digits(type_)[1]})"
        case "sum":
            return "DOUBLE"
    return type_


def _over(r: Random, one: Aggregate) -> Term:
    """An aggregate, or what is computed from it."""
    inexact = one.function == "avg" or (one.function == "sum" and wide(one.type) == "DOUBLE")
    if inexact or one.type not in SIZES or r.random() < 0.7:
        return one
    return (
        call(r.choice(["+", "*"]) + "INTEGERINTEGER", one, Literal(r.randrange(1, 4), "INT")) or one
    )
