"""Random queries over a few streams, beside the limits from which their windows were made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from optimizer.query import (
    RESULT,
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Column,
    ColumnRef,
    Expression,
    Grouping,
    Named,
    Predicate,
    Query,
    Stream,
)
from optimizer.window import close, ranges
from tests.simulation import names
from tests.simulation.dice import Dice
from tests.simulation.values import PLAIN, TIME, kind, some_type

Input = tuple[str, Stream]

Limits = Mapping[tuple[str, str], int]
"""How far, at most, the first input's tuples are newer than the second's, as the query says it."""

Inputs = Sequence[Input]
"""Streams, and what a query calls them."""


EXACT = 1000
"""Averages are of numbers up to this: of larger ones, the last digits depend on the order."""


WHOLE_SUM = "CAST(\0 AS BIGINT)"
"""How a sum of integers is put out: until then it has as many digits as there are."""


@dataclass(frozen=True)
class Asked:
    """A query, and its windows as they were written: what follows from them is the query's."""

    query: Query
    limits: Limits


def stream(r: Dice, name: str) -> Stream:
    """A stream of two keys, a small number and anything else, its columns in any order."""
    time = r.choice(["ts", "at"])
    types = [r.key, r.key, PLAIN, *([] if r.plain else [some_type(r)])]
    named = zip(names.columns(r, "kjvw"[: len(types)]), types, strict=True)
    columns = [Column(time, TIME), *(Column(*one) for one in named)]
    return Stream(name, tuple(r.sample(columns, len(columns))), time)


def ask(r: Dice, streams: Sequence[Stream], letters: str = "abcde") -> Asked:
    """A query of one to five of the streams, some of them perhaps more than once."""
    count = r.choices([1, 2, 3, 4, 5], [2, 4, 5, 3, 1])[0]
    inputs = tuple((alias, r.choice(streams)) for alias in letters[:count])
    aliases = [alias for alias, _ in inputs]
    limits = _limits(r, aliases)
    grouping = _grouping(r, inputs) if r.random() < 0.45 else None
    query = Query(
        inputs,
        _predicates(r, inputs),
        close(aliases, limits),
        _output(r, inputs) if grouping is None else _results(r, grouping),
        grouping,
    )
    return Asked(query, limits)


def like(r: Dice, asked: Asked, wider_by: Sequence[int] = (0, 0, 0, 4)) -> Asked:
    """The same query under other names, perhaps with wider windows or another output."""
    query = asked.query
    renamed = {alias: f"{alias}{alias}" for alias in query.aliases}
    wider = {pair: r.unit * r.choice(wider_by) for pair in asked.limits}
    limits = {
        (renamed[i], renamed[j]): limit + wider[i, j] for (i, j), limit in asked.limits.items()
    }
    aliases = list(renamed.values())
    inputs = tuple((renamed[alias], stream) for alias, stream in query.inputs)
    grouping = _renamed(query.grouping, renamed)
    if r.random() < 0.3:
        grouping = None
    output = tuple(Named(n.name, n.expression.rename(renamed)) for n in query.output)
    if grouping is None and (query.grouping is not None or r.random() < 0.5):
        output = _output(r, inputs)
    predicates = tuple(predicate.rename(renamed) for predicate in query.predicates)
    return Asked(Query(inputs, predicates, close(aliases, limits), output, grouping), limits)


def laxer(r: Dice, query: Query, lost: float = 0.2) -> Query:
    """Perhaps with fewer selects, so that a query alike needs rows that this one does not."""
    kept = tuple(p for p in query.predicates if len(p.aliases) == 2 or r.random() >= lost)
    return replace(query, predicates=kept)


def _renamed(grouping: Grouping | None, aliases: Mapping[str, str]) -> Grouping | None:
    if grouping is None:
        return None
    return replace(
        grouping,
        keys=tuple(Named(key.name, key.expression.rename(aliases)) for key in grouping.keys),
        aggregates=tuple(
            replace(
                a,
                argument=a.argument and a.argument.rename(aliases),
                condition=a.condition and a.condition.rename(aliases),
            )
            for a in grouping.aggregates
        ),
        time=ColumnRef(aliases[grouping.time.alias], grouping.time.name),
    )


# --- predicates and windows ----------------------------------------------------------------------


def _predicates(r: Dice, inputs: Inputs) -> tuple[Predicate, ...]:
    made = []
    for position, one in enumerate(inputs):
        if position:
            made += _joins(r, one, r.choice(inputs[:position]))
        if position > 1 and r.random() < 0.2:
            made += _joins(r, one, r.choice(inputs[:position]))
        if r.random() < 0.3:
            made.append(_select(r, one))
    return tuple({str(predicate): predicate for predicate in made}.values())


def _joins(r: Dice, one: Input, other: Input) -> list[Predicate]:
    kind = r.choices(["equal", "shifted", "theta", "none"], [10, 2, 2, 1])[0]
    if kind == "equal":
        return [Predicate.equality(*(Expression.of(_key(r, side)) for side in (one, other)))]
    left, right = _number(r, one), _number(r, other)
    if kind == "shifted":
        return [Predicate.equality(_over("try_add(\0, 1)", left), _over("coalesce(\0, 0)", right))]
    if kind == "theta" and r.random() < 0.3:
        return [Predicate(_over(r.choice(["\0 < \0", "\0 <> \0"]), _key(r, one), _key(r, other)))]
    if kind == "theta":
        return [
            Predicate(
                _over(r.choice(["\0 < \0", "try_subtract(\0, \0) <= 1", "\0 <> \0"]), left, right)
            )
        ]
    return []


def _select(r: Dice, one: Input) -> Predicate:
    if r.random() < 0.3:
        column, constant = _any(r, one)
        template = r.choice(
            ["\0 IS NOT NULL", "\0 <= \0", f"\0 <> {constant}", f"\0 >= {constant}"]
        )
        return Predicate(_over(template, *[column] * template.count("\0")))
    template = r.choice(["\0 > 1", "\0 % 3 <> 0", "\0 IS NOT NULL", "NOT \0 = 2", "\0 <= \0"])
    return Predicate(_over(template, *(_number(r, one) for _ in range(template.count("\0")))))


def _limits(r: Dice, aliases: Sequence[str]) -> Limits:
    kind = r.choice(["global", "ranges", "between"])
    if kind == "global":
        width = r.span(r.randrange(13))
        return {(i, j): width for i in aliases for j in aliases if i != j}
    if kind == "ranges":
        return ranges(aliases, {alias: r.span(r.randrange(13)) for alias in aliases})
    limits = {}
    for position, alias in enumerate(aliases[1:], start=1):
        other = r.choice(aliases[:position])
        low = r.span(r.randrange(-8, 9))
        limits[alias, other], limits[other, alias] = low + r.span(r.randrange(9)), -low
    return limits


# --- what comes out ------------------------------------------------------------------------------


def _output(r: Dice, inputs: Inputs) -> tuple[Named, ...]:
    made = names.outputs(r, r.randrange(1, 5))
    return tuple(Named(name, r.choice([_value, _anything])(r, inputs)) for name in made)


def _value(r: Dice, inputs: Inputs) -> Expression:
    """A number made of numbers."""
    template = r.choice(
        [
            "\0",
            "\0",
            "try_add(\0, \0)",
            "try_subtract(try_multiply(\0, 2), 1)",
            "coalesce(\0, -1)",
            "CASE WHEN \0 > 2 THEN \0 ELSE 0 END",
        ]
    )
    return _over(template, *(_number(r, r.choice(inputs)) for _ in range(template.count("\0"))))


def _anything(r: Dice, inputs: Inputs) -> Expression:
    """A column of any type."""
    column, constant = _any(r, r.choice(inputs))
    return _over(r.choice(["\0", "\0", f"coalesce(\0, {constant})"]), column)


def _results(r: Dice, grouping: Grouping) -> tuple[Named, ...]:
    sums = {aggregate.name for aggregate in grouping.aggregates if aggregate.function == "sum"}
    refs = [ColumnRef(RESULT, name) for name in grouping.names]
    named = [
        Named(column.name, _over(WHOLE_SUM if column.name in sums else "\0", column))
        for column in r.sample(refs, len(refs))
    ]
    first = grouping.aggregates[0]
    if first.function == "count" and r.random() < 0.6:
        count = ColumnRef(RESULT, first.name)
        named.append(Named("more", Expression("try_add(\0, 1)", (count,))))
    return tuple(named)


def _grouping(r: Dice, inputs: Inputs) -> Grouping:
    times = [ColumnRef(alias, stream.event_time) for alias, stream in inputs]
    size = r.randrange(1, 13)
    slide = r.choice([size, r.randrange(1, size + 1), max(1, size // 2)])
    aggregates = tuple(_aggregate(r, f"f{i}", inputs, times) for i in range(r.randrange(1, 4)))
    called = names.keys(r, r.choice([0, 1, 1, 2]), [one.name for one in aggregates])
    keys = tuple(Named(name, _grouped_by(r, inputs)) for name in called)
    return Grouping(keys, aggregates, r.choice(times), size * r.unit, slide * r.unit)


def _grouped_by(r: Dice, inputs: Inputs) -> Expression:
    if r.random() < 0.3:
        return Expression.of(_any(r, r.choice(inputs))[0])
    return _over(r.choice(["\0", "\0", "\0 % 2"]), _number(r, r.choice(inputs)))


def _aggregate(r: Dice, name: str, inputs: Inputs, times: Sequence[ColumnRef]) -> Aggregate:
    function = r.choice(["count", "count", "sum", "min", "max", "avg"])
    of_any = function in ("count", "min", "max") and r.random() < 0.4
    argument = (_anything if of_any else _value)(r, inputs)
    if function == "count" and r.random() < 0.5:
        return _filtered(r, Aggregate(name, function), inputs, times)
    if function == "avg":
        argument = replace(argument, template=f"try_mod({argument.template}, {EXACT})")
    return _filtered(r, Aggregate(name, function, argument), inputs, times)


def _filtered(
    r: Dice, aggregate: Aggregate, inputs: Inputs, times: Sequence[ColumnRef]
) -> Aggregate:
    kind = r.choices(["none", "own", "start", "end"], [5, 2, 1, 1])[0]
    edge = ColumnRef(RESULT, WINDOW_START if kind == "start" else WINDOW_END)
    sign = "+" if kind == "start" else "-"
    inner = f"INTERVAL '{4 * r.unit}' MICROSECOND"
    condition = {
        "none": None,
        "own": _over("\0 > 1", _number(r, r.choice(inputs))),
        "start": Expression(f"\0 < \0 {sign} {inner}", (r.choice(times), edge)),
        "end": Expression(f"\0 >= \0 {sign} {inner}", (r.choice(times), edge)),
    }[kind]
    return replace(aggregate, condition=condition)


def _number(r: Dice, one: Input) -> ColumnRef:
    return _of_type(r, one, PLAIN)


def _key(r: Dice, one: Input) -> ColumnRef:
    return _of_type(r, one, r.key)


def _of_type(r: Dice, one: Input, wanted: str) -> ColumnRef:
    alias, stream = one
    return ColumnRef(alias, r.choice([c.name for c in stream.columns if c.type == wanted]))


def _any(r: Dice, one: Input) -> tuple[ColumnRef, str]:
    """A column that is no event time, and a constant of its type."""
    alias, stream = one
    column = r.choice([c for c in stream.columns if c.name != stream.event_time])
    return ColumnRef(alias, column.name), kind(column.type).constant


def _over(template: str, *columns: ColumnRef) -> Expression:
    return Expression(template, columns)
