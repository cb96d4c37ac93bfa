"""Random queries over a few streams, beside the limits from which their windows were made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

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

UNIT = 250_000
"""Times are mostly multiples of this, so that tuples often meet at the very edge of a window."""

Limits = Mapping[tuple[str, str], int]
"""How far, at most, the first input's tuples are newer than the second's, as the query says it."""

NUMBERS = ("k", "j", "v")


@dataclass(frozen=True)
class Asked:
    """A query, and its windows as they were written: what follows from them is the query's."""

    query: Query
    limits: Limits


def stream(r: Random, name: str) -> Stream:
    """A stream of small numbers, its columns in any order."""
    time = r.choice(["ts", "at"])
    columns = [Column(time, "TIMESTAMP"), *(Column(c, "BIGINT") for c in NUMBERS)]
    return Stream(name, tuple(r.sample(columns, len(columns))), time)


def ask(r: Random, streams: Sequence[Stream], aliases: str = "abcde") -> Asked:
    """A query of one to five of the streams, some of them perhaps more than once."""
    count = r.choices([1, 2, 3, 4, 5], [2, 4, 5, 3, 1])[0]
    inputs = tuple((alias, r.choice(streams)) for alias in aliases[:count])
    names = [alias for alias, _ in inputs]
    limits = _limits(r, names)
    grouping = _grouping(r, inputs) if r.random() < 0.45 else None
    query = Query(
        inputs,
        _predicates(r, names),
        close(names, limits),
        _output(r, names) if grouping is None else _results(r, grouping),
        grouping,
    )
    return Asked(query, limits)


def like(r: Random, asked: Asked, wider_by: Sequence[int] = (0, 0, 0, 4 * UNIT)) -> Asked:
    """The same query under other names, perhaps with wider windows or another output."""
    query = asked.query
    names = {alias: f"{alias}{alias}" for alias in query.aliases}
    wider = {pair: r.choice(wider_by) for pair in asked.limits}
    limits = {(names[i], names[j]): limit + wider[i, j] for (i, j), limit in asked.limits.items()}
    aliases = list(names.values())
    grouping = _renamed(query.grouping, names)
    if r.random() < 0.3:
        grouping = None
    output = tuple(Named(n.name, n.expression.rename(names)) for n in query.output)
    if grouping is None and (query.grouping is not None or r.random() < 0.5):
        output = _output(r, aliases)
    inputs = tuple((names[alias], stream) for alias, stream in query.inputs)
    predicates = tuple(predicate.rename(names) for predicate in query.predicates)
    return Asked(Query(inputs, predicates, close(aliases, limits), output, grouping), limits)


def laxer(r: Random, query: Query, lost: float = 0.2) -> Query:
    """Perhaps with fewer selects, so that a query alike needs rows that this one does not."""
    kept = tuple(p for p in query.predicates if len(p.aliases) == 2 or r.random() >= lost)
    return replace(query, predicates=kept)


def _renamed(grouping: Grouping | None, names: Mapping[str, str]) -> Grouping | None:
    if grouping is None:
        return None
    return replace(
        grouping,
        keys=tuple(Named(key.name, key.expression.rename(names)) for key in grouping.keys),
        aggregates=tuple(
            replace(
                a,
                argument=a.argument and a.argument.rename(names),
                condition=a.condition and a.condition.rename(names),
            )
            for a in grouping.aggregates
        ),
        time=ColumnRef(names[grouping.time.alias], grouping.time.name),
    )


# --- predicates and windows ----------------------------------------------------------------------


def _predicates(r: Random, names: Sequence[str]) -> tuple[Predicate, ...]:
    made = []
    for position, alias in enumerate(names):
        if position:
            made += _joins(r, alias, r.choice(names[:position]))
        if position > 1 and r.random() < 0.2:
            made += _joins(r, alias, r.choice(names[:position]))
        if r.random() < 0.3:
            made.append(_select(r, alias))
    return tuple({str(predicate): predicate for predicate in made}.values())


def _joins(r: Random, alias: str, other: str) -> list[Predicate]:
    left, right = _number(r, alias), _number(r, other)
    kind = r.choices(["equal", "shifted", "theta", "none"], [10, 2, 2, 1])[0]
    if kind == "equal":
        name = r.choice(["k", "j"])
        return [Predicate.equality(_column(alias, name), _column(other, name))]
    if kind == "shifted":
        return [Predicate.equality(_over("\0 + 1", left), _over("coalesce(\0, 0)", right))]
    if kind == "theta":
        return [
            Predicate(_over(r.choice(["\0 < \0", "abs(\0 - \0) <= 1", "\0 <> \0"]), left, right))
        ]
    return []


def _select(r: Random, alias: str) -> Predicate:
    template = r.choice(["\0 > 1", "\0 % 3 <> 0", "\0 IS NOT NULL", "NOT \0 = 2", "\0 <= \0"])
    return Predicate(_over(template, *(_number(r, alias) for _ in range(template.count("\0")))))


def _limits(r: Random, names: Sequence[str]) -> Limits:
    kind = r.choice(["global", "ranges", "between"])
    if kind == "global":
        width = UNIT * r.randrange(13)
        return {(i, j): width for i in names for j in names if i != j}
    if kind == "ranges":
        return ranges(names, {name: UNIT * r.randrange(13) for name in names})
    limits = {}
    for position, name in enumerate(names[1:], start=1):
        other = r.choice(names[:position])
        low = r.randrange(-8, 9)
        high = low + r.randrange(9)
        limits[name, other], limits[other, name] = high * UNIT, -low * UNIT
    return limits


# --- what comes out ------------------------------------------------------------------------------


def _output(r: Random, names: Sequence[str]) -> tuple[Named, ...]:
    return tuple(Named(f"o{i}", _value(r, names)) for i in range(r.randrange(1, 5)))


def _value(r: Random, names: Sequence[str]) -> Expression:
    template = r.choice(
        [
            "\0",
            "\0",
            "\0 + \0",
            "\0 * 2 - 1",
            "coalesce(\0, -1)",
            "CASE WHEN \0 > 2 THEN \0 ELSE 0 END",
        ]
    )
    return _over(template, *(_number(r, r.choice(names)) for _ in range(template.count("\0"))))


def _results(r: Random, grouping: Grouping) -> tuple[Named, ...]:
    refs = [ColumnRef(RESULT, name) for name in grouping.names]
    named = [Named(column.name, Expression.of(column)) for column in r.sample(refs, len(refs))]
    if grouping.aggregates and r.random() < 0.3:
        count = ColumnRef(RESULT, grouping.aggregates[0].name)
        named.append(Named("more", Expression("\0 + 1", (count,))))
    return tuple(named)


def _grouping(r: Random, inputs: Sequence[tuple[str, Stream]]) -> Grouping:
    names = [alias for alias, _ in inputs]
    times = [ColumnRef(alias, stream.event_time) for alias, stream in inputs]
    size = r.randrange(1, 13)
    slide = r.choice([size, r.randrange(1, size + 1), max(1, size // 2)])
    keys = tuple(Named(f"g{i}", _key(r, names)) for i in range(r.choice([0, 1, 1, 2])))
    aggregates = tuple(_aggregate(r, f"f{i}", names, times) for i in range(r.randrange(1, 4)))
    return Grouping(keys, aggregates, r.choice(times), size * UNIT, slide * UNIT)


def _key(r: Random, names: Sequence[str]) -> Expression:
    return _over(r.choice(["\0", "\0", "\0 % 2"]), _number(r, r.choice(names)))


def _aggregate(r: Random, name: str, names: Sequence[str], times: Sequence[ColumnRef]) -> Aggregate:
    function = r.choice(["count", "count", "sum", "min", "max", "avg"])
    argument = None if function == "count" and r.random() < 0.5 else _value(r, names)
    kind = r.choices(["none", "own", "start", "end"], [5, 2, 1, 1])[0]
    edge = ColumnRef(RESULT, WINDOW_START if kind == "start" else WINDOW_END)
    sign = "+" if kind == "start" else "-"
    condition = {
        "none": None,
        "own": _over("\0 > 1", _number(r, r.choice(names))),
        "start": Expression(f"\0 < \0 {sign} INTERVAL '1' SECOND", (r.choice(times), edge)),
        "end": Expression(f"\0 >= \0 {sign} INTERVAL '1' SECOND", (r.choice(times), edge)),
    }[kind]
    return Aggregate(name, function, argument, condition)


def _number(r: Random, alias: str) -> ColumnRef:
    return ColumnRef(alias, r.choice(NUMBERS))


def _column(alias: str, name: str) -> Expression:
    return Expression.of(ColumnRef(alias, name))


def _over(template: str, *columns: ColumnRef) -> Expression:
    return Expression(template, columns)
