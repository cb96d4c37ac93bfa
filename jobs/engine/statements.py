"""The text of a batch's statements: what an operator computes, in the names of its identity.

`in_S` holds the batch's tuples of stream S, `new_K` what the operator with identity K computes from
this batch, `state_K` what it computed before.  The text is Spark's SQL; sqlglot writes it for the
backend that runs it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

from sqlglot import exp, parse_one

from jobs.tables.columns import UNTIL
from optimizer.identity import Identity, identity
from optimizer.plan import WEIGHT, Combine, GroupBy, Join, Node, Project, Select, Source, walk
from optimizer.query import (
    RESULT,
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    ColumnRef,
    Predicate,
)
from optimizer.sql.types import digits, sum_type, type_of

Scope = Callable[[ColumnRef], str]
"""How a column is written where an expression stands."""

FROM, TO = "emitted_until", "emit_until"
"""Parameters of a statement: the ends of windows already emitted, and of those to emit now."""


@dataclass(frozen=True)
class Split:
    """Rows by their oldest tuple: of that event time or younger, or the others (Zhu 12.2.2)."""

    since: int
    younger: bool


def physical(names: Identity, column: ColumnRef) -> str:
    """What a column is called in the relations of an operator, whichever query asks."""
    canonical = f"{names.names[column.alias]}@{column.name}" if column.alias else column.name
    return canonical.replace("#", "@")


def inside(names: Identity, relation: str) -> Scope:
    """Columns in a relation of an operator."""
    return lambda column: f"{relation}.{quote(physical(names, column))}"


def quote(name: str) -> str:
    """A name as it stands in a statement."""
    return "`" + name.replace("`", "``") + "`"


@lru_cache(maxsize=256)
def parse(text: str) -> exp.Query:
    """The statement of a text in Spark's SQL; the same texts come again and again."""
    return parse_one(text, read="spark").assert_is(exp.Query)


def _micros(column: str) -> str:
    return f"unix_micros({column})"


def least(columns: Sequence[str]) -> str:
    """The smallest of some event times, in microseconds."""
    times = [_micros(column) for column in columns]
    return f"least({', '.join(times)})" if len(times) > 1 else times[0]


def _floor(value: str, step: int) -> str:
    """Rounded down to a multiple, negative values too, without leaving integers."""
    return f"({value}) - ((({value}) % {step}) + {step}) % {step}"


def with_until(rows: str, time: str) -> str:
    """Rows with what they are younger than, of which that is the time."""
    return f"SELECT *, {time} + 1 AS {quote(UNTIL)} FROM ({rows}) AS r"


# --- rows ----------------------------------------------------------------------------------------


def rows(node: Node, split: Split | None = None, *, sliced: bool = False) -> str:
    """What an operator computes from this batch, in the names of its identity.

    `sliced`: in ranges of time, for a batch that spans many windows.
    """
    base, predicates = reduced(node)
    if isinstance(base, Join):
        return " UNION ALL ".join(_branches(base, node, predicates, split, sliced=sliced))
    if isinstance(base, Combine):
        return combined(base, node, rows(base.input, split, sliced=sliced), predicates)
    if isinstance(base, Source):
        source = f"{quote(f'in_{base.stream.name}')} AS i"
        conditions = conditions_of(node, predicates, lambda c: f"i.{quote(c.name)}", split)
        return selected(node, lambda c: f"i.{quote(c.name)}", source, conditions)
    raise TypeError(f"{type(base).__name__} has no rows of its own")


def reduced(node: Node) -> tuple[Node, list[Predicate]]:
    """The operator below the selects and projects, and what these select."""
    predicates = []
    while isinstance(node, Select | Project):
        if isinstance(node, Select):
            predicates.append(node.predicate)
        node = node.input
    return node, predicates


def selected(node: Node, scope: Scope, source: str, conditions: Sequence[str]) -> str:
    """A node's columns from rows in which `scope` finds them."""
    names = identity(node)
    columns = [f"{scope(c)} AS {quote(physical(names, c))}" for c in node.columns]
    where = " AND ".join(f"({condition})" for condition in conditions)
    filtered = f" WHERE {where}" if where else ""
    return f"SELECT {', '.join(columns)} FROM {source}{filtered}"


def conditions_of(
    node: Node, predicates: Iterable[Predicate], scope: Scope, split: Split | None
) -> list[str]:
    """What rows must satisfy to be a node's."""
    conditions = [p.expression.sql(scope) for p in predicates]
    if split is not None:
        times = [scope(column) for _, column in sorted(times_of(node).items())]
        conditions.append(f"{least(times)} {'>=' if split.younger else '<'} {split.since}")
    return conditions


def _branches(
    join: Join, node: Node, predicates: Sequence[Predicate], split: Split | None, *, sliced: bool
) -> Iterator[str]:
    """The new results, once for each input: its new tuples in their order through the other states.

    Inputs before it count with what is new as well, those after it without: a disjoint union.
    """
    names = [identity(part) for part in join.parts]
    scope = scope_of(join)
    conditions = conditions_of(node, predicates, scope, split)
    for i in range(len(join.parts)):
        relations = {
            o: _known(join.parts[o], names[o], with_new=o < i) for o in join.orders[i]
        } | {i: f"new_{names[i].key}"}  # fmt: skip
        yield selected(node, scope, chained(join, i, relations, sliced=sliced), conditions)


def scope_of(join: Join) -> Scope:
    """Where a join finds a column: its i-th input is called `pi`."""
    names = [identity(part) for part in join.parts]
    position = {a: i for i, part in enumerate(join.parts) for a in part.aliases}

    def scope(column: ColumnRef) -> str:
        i = position[column.alias]
        return inside(names[i], f"p{i}")(column)

    return scope


def chained(join: Join, first: int, relations: Mapping[int, str], *, sliced: bool = False) -> str:
    """One input's rows on their way through the others, in the order that the plan says."""
    scope = scope_of(join)
    times = {alias: scope(column) for alias, column in times_of(join).items()}
    source = [f"{relations[first]} AS p{first}"]
    joined = set(join.parts[first].aliases)
    for o in join.orders[first]:
        added = join.parts[o].aliases
        conditions = [
            p.expression.sql(scope)
            for p in join.predicates
            if p.aliases & added and p.aliases <= joined | added
        ]
        conditions += _within(join, joined, added, times)
        relation = relations[o]
        if sliced:
            slices = _Slices.of(join, joined, added)
            relation = slices.cut(relation, quote(physical(identity(join.parts[o]), slices.theirs)))
            conditions.insert(0, f"({slices.number(scope(slices.ours))}) = p{o}.{quote(SLICE)}")
        together = " AND ".join(f"({condition})" for condition in conditions)
        source.append(f"JOIN {relation} AS p{o} ON {together}")
        joined |= added
    return " ".join(source)


def _known(part: Node, names: Identity, *, with_new: bool) -> str:
    if not with_new:
        return f"state_{names.key}"
    columns = ", ".join(quote(physical(names, column)) for column in part.columns)
    halves = [f"SELECT {columns} FROM {half}_{names.key}" for half in ("state", "new")]
    return f"({' UNION ALL '.join(halves)})"


def times_of(part: Node) -> dict[str, ColumnRef]:
    """The event time of each input below."""
    return {
        n.alias: ColumnRef(n.alias, n.stream.event_time)
        for n in walk(part)
        if isinstance(n, Source)
    }


def _within(
    join: Join, joined: Iterable[str], added: Iterable[str], times: Mapping[str, str]
) -> Iterator[str]:
    for a in sorted(joined):
        for b in sorted(added):
            for newer, older in ((a, b), (b, a)):
                limit = join.bounds[newer, older]
                yield f"{_micros(times[newer])} <= {_micros(times[older])} + {limit}"


# --- slices --------------------------------------------------------------------------------------

SLICE = "@slice"
"""The column of a join's input that says in which range of time a row may find partners."""


@dataclass(frozen=True)
class _Slices:
    """Ranges of time, as wide as the partners of a row are apart: those of a row lie in two.

    Rows with equal keys need not be compared with all others of a batch that spans years.
    """

    ours: ColumnRef
    theirs: ColumnRef
    before: int
    """How much older ours may be, in microseconds."""
    after: int

    @classmethod
    def of(cls, join: Join, joined: Iterable[str], added: Iterable[str]) -> "_Slices":
        """By the two event times that are closest together."""
        times, bounds = times_of(join), join.bounds
        _, a, b = min((bounds[a, b] + bounds[b, a], a, b) for a in joined for b in added)
        return cls(times[a], times[b], bounds[b, a], bounds[a, b])

    def number(self, time: str) -> str:
        """Where the slice begins in which one of our rows lies."""
        return _floor(_micros(time), self._width)

    def cut(self, relation: str, time: str) -> str:
        """Their rows, once for each slice in which ours may be."""
        time = _micros(f"c.{time}")
        first = _floor(f"{time} - {self.before}", self._width)
        last = _floor(f"{time} + {self.after}", self._width)
        begin = f"{first} + s.i * {self._width}"
        return (
            f"(SELECT c.*, {begin} AS {quote(SLICE)} FROM {relation} AS c "
            "CROSS JOIN (SELECT 0 AS i UNION ALL SELECT 1 AS i) AS s "
            f"WHERE {begin} <= {last})"
        )

    @property
    def _width(self) -> int:
        return max(1, self.before + self.after + 1)


# --- group-by ------------------------------------------------------------------------------------

SLOT = "@slot"
"""The column of a group-by's state that says to which pane, or window, a row belongs."""


def combined(node: Combine, outer: Node, below: str, predicates: Sequence[Predicate] = ()) -> str:
    """Tuples of one input, equal ones combined; `outer` says which columns are kept."""
    scope = inside(identity(node.input), "r")
    names = identity(outer)
    keys = [f"{scope(key)} AS {quote(physical(names, key))}" for key in node.keys]
    weight = ColumnRef(node.alias, WEIGHT)
    made = [f"count(*) AS {quote(physical(names, weight))}"]
    for aggregate in node.partials:
        for kind in aggregate.parts:
            value = _folded(aggregate, kind, scope, "1", node.input)
            column = _combined_column(node, aggregate, kind)
            made.append(f"{value} AS {quote(physical(names, column))}")
    where = " AND ".join(f"({p.expression.sql(scope)})" for p in predicates)
    source = f"({below}) AS r" + (f" WHERE {where}" if where else "")
    grouped = ", ".join(scope(key) for key in node.keys)
    return f"SELECT {', '.join(keys + made)} FROM {source} GROUP BY {grouped}"


def _combined_column(node: Combine, aggregate: Aggregate, kind: str) -> ColumnRef:
    return ColumnRef(node.alias, f"#{aggregate.parts[kind]}")


def partials(node: GroupBy, split: Split | None = None, *, sliced: bool = False) -> str:
    """What a batch adds to each pane: windows are put together from panes when they are emitted.

    Aggregates that look at their window's own bounds are kept by window instead.
    """
    grouping = node.grouping
    own = inside(identity(node.input), "r")
    time = _micros(own(grouping.time))
    source = f"({rows(node.input, split, sliced=sliced)}) AS r"
    slot = _floor(time, _pane(node))
    condition = ""
    if _by_window(node):
        source += f" CROSS JOIN {_windows(node)}"
        slot = f"{_floor(time, grouping.slide)} - w.i * {grouping.slide}"
        condition = f" WHERE {time} < {slot} + {grouping.size}"
    scope = _windowed(own, slot, grouping.size)
    columns = [f"{key.expression.sql(scope)} AS {quote(key.name)}" for key in grouping.keys]
    columns.append(f"{slot} AS {quote(SLOT)}")
    below = [n for n in walk(node.input) if isinstance(n, Combine)]
    for aggregate in grouping.aggregates:
        for kind in aggregate.parts:
            value = _weighted(aggregate, kind, below, scope, node.input)
            columns.append(f"{value} AS {quote(aggregate.parts[kind])}")
    keys = [key.expression.sql(scope) for key in grouping.keys if key.expression.columns]
    return (
        f"SELECT {', '.join(columns)} FROM {source}{condition} GROUP BY {', '.join([*keys, slot])}"
    )


def _windowed(own: Scope, slot: str, size: int) -> Scope:
    bounds = {
        WINDOW_START: f"timestamp_micros({slot})",
        WINDOW_END: f"timestamp_micros({slot} + {size})",
    }
    return lambda c: bounds[c.name] if c.alias == RESULT else own(c)


def _by_window(node: GroupBy) -> bool:
    read = [e for aggregate in node.grouping.aggregates for e in aggregate.expressions]
    return any(column.alias == RESULT for e in read for column in e.columns)


def _pane(node: GroupBy) -> int:
    return gcd(node.grouping.size, node.grouping.slide)


def _windows(node: GroupBy) -> str:
    count = -(-node.grouping.size // node.grouping.slide)
    return f"(VALUES {', '.join(f'({i})' for i in range(count))}) AS w(i)"


def _weighted(
    aggregate: Aggregate, kind: str, combines: Sequence[Combine], scope: Scope, below: Node
) -> str:
    """A partial aggregate over joined rows, each counting for as many as were combined into it."""
    own = next((c for c in combines if aggregate in c.partials), None)
    others = [c for c in combines if c is not own]
    weight = " * ".join(scope(ColumnRef(c.alias, WEIGHT)) for c in others) or "1"
    if own is None:
        return _folded(aggregate, kind, scope, weight, below)
    value = scope(_combined_column(own, aggregate, kind))
    if kind in ("min", "max"):
        return f"{kind}({value})"
    return _added(value, weight, _sum_type(aggregate, kind, below))


def _folded(aggregate: Aggregate, kind: str, scope: Scope, weight: str, below: Node) -> str:
    value = aggregate.argument.sql(scope) if aggregate.argument else "1"
    if aggregate.condition is not None:
        value = f"CASE WHEN {aggregate.condition.sql(scope)} THEN {value} END"
    if kind in ("min", "max"):
        return f"{kind}({value})"
    if kind == "count":
        counted = f"CASE WHEN ({value}) IS NOT NULL THEN {weight} ELSE 0 END"
        return f"CAST(sum({counted}) AS BIGINT)"
    declared = _argument_type(aggregate, below)
    return _added(_wide_enough(value, declared, weight), weight, _sum_type(aggregate, kind, below))


def _wide_enough(value: str, declared: str, weight: str) -> str:
    """A value of that type as it is added up: Spark lets a sum of BIGINTs overflow in silence."""
    held = digits(declared)
    if held is None:
        return f"CAST({value} AS DOUBLE)"
    if declared.startswith("DECIMAL"):
        return value
    short = declared != "BIGINT" and weight == "1"
    return f"CAST({value} AS {'BIGINT' if short else held.type})"


def _added(value: str, weight: str, wide: str) -> str:
    """The sum of values that count so many times each."""
    return f"CAST(sum({value if weight == '1' else f'{value} * {weight}'}) AS {wide})"


def _sum_type(aggregate: Aggregate, kind: str, below: Node) -> str:
    """The type in which to add up: the widest of its family, so that backends agree."""
    return "BIGINT" if kind == "count" else sum_type(_argument_type(aggregate, below))


def _argument_type(aggregate: Aggregate, below: Node) -> str:
    """The type of what is added up; an average is of doubles."""
    if aggregate.function == "avg" or aggregate.argument is None:
        return "DOUBLE"
    sources = {n.alias: n.stream for n in walk(below) if isinstance(n, Source)}
    types = {ColumnRef(a, c.name): c.type for a, stream in sources.items() for c in stream.columns}
    text = aggregate.argument.sql(lambda c: f"{quote(c.alias)}.{quote(c.name)}")
    return type_of(parse(f"SELECT {text} AS x").selects[0].this, types)


def finished(node: GroupBy) -> str:
    """The aggregates of the windows that end between two moments, from the panes kept and new."""
    grouping = node.grouping
    key = identity(node).key
    kept = [key.name for key in grouping.keys]
    kept += [column for a in grouping.aggregates for column in a.parts.values()]
    columns = ", ".join(map(quote, [*kept, SLOT]))
    known = " UNION ALL ".join(f"SELECT {columns} FROM {half}_{key}" for half in ("state", "new"))
    source, start = f"({known}) AS p", f"p.{quote(SLOT)}"
    fits = ""
    if not _by_window(node):
        source += f" CROSS JOIN {_windows(node)}"
        fits = f" AND {start} + {_pane(node)} <= {{start}} + {grouping.size}"
        start = f"{_floor(start, grouping.slide)} - w.i * {grouping.slide}"
        fits = fits.format(start=start)
    end = f"{start} + {grouping.size}"
    keys = [f"p.{quote(key.name)}" for key in grouping.keys]
    made = [f"{_whole(a, node.input)} AS {quote(a.name)}" for a in grouping.aggregates]
    made.append(f"timestamp_micros({start}) AS {quote(WINDOW_START)}")
    made.append(f"timestamp_micros({end}) AS {quote(WINDOW_END)}")
    return (
        f"SELECT {', '.join([*keys, *made])} FROM {source}"
        f" WHERE {end} > :{FROM} AND {end} <= :{TO}{fits}"
        f" GROUP BY {', '.join([*keys, start])}"
    )


def _whole(aggregate: Aggregate, below: Node) -> str:
    parts = {kind: f"p.{quote(aggregate.parts[kind])}" for kind in aggregate.parts}
    match aggregate.function:
        case "count":
            return f"CAST(sum({parts['count']}) AS BIGINT)"
        case "avg":
            return f"sum({parts['sum']}) / sum({parts['count']})"
        case "sum":
            kind_of = _sum_type(aggregate, "sum", below)
            return f"CAST(sum({parts['sum']}) AS {kind_of})"
        case function:
            return f"{function}({parts[function]})"


# --- dialects ------------------------------------------------------------------------------------
