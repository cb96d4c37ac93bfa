"""From a plan to the statements that carry out one batch of it.

Each operator whose rows are needed more than once, or kept, becomes one statement over named
relations: `in_S` holds the batch's tuples of stream S, `new_K` what the operator with identity K
computes from this batch, `state_K` what it computed before.  The text is Spark's SQL; sqlglot
writes it for the executor that runs it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import gcd

from sqlglot import exp, parse_one
from sqlglot.optimizer.annotate_types import annotate_types

from jobs.engine.store import UNTIL
from optimizer.identity import Identity, identity
from optimizer.plan import (
    WEIGHT,
    Combine,
    Emit,
    GroupBy,
    Join,
    Node,
    Plan,
    Project,
    Select,
    Source,
    walk,
)
from optimizer.query import (
    RESULT,
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    ColumnRef,
    Expression,
    Predicate,
    Query,
)

Scope = Callable[[ColumnRef], str]
"""How a column is written where an expression stands."""

FROM, TO = "emitted_until", "emit_until"
"""Parameters of a statement: the ends of windows already emitted, and of those to emit now."""


@dataclass(frozen=True)
class Operator:
    """One statement of a batch, and what becomes of its rows."""

    key: str
    node: Node
    statement: exp.Query
    content: str
    kept: bool = False
    retention: int = 0
    """How long after its time (`_until`) a kept row may still be needed, in microseconds."""

    @property
    def relation(self) -> str:
        """What it computes from this batch."""
        return f"new_{self.key}"

    @property
    def state(self) -> str:
        """What it computed from the batches before."""
        return f"state_{self.key}"


@dataclass(frozen=True)
class Output:
    """What a query puts out in a batch; `horizon` is its windows' lag behind the watermark."""

    query: str
    statement: exp.Query
    horizon: int | None = None


@dataclass(frozen=True)
class Program:
    """The statements of a batch, in an order in which each finds what it reads."""

    operators: tuple[Operator, ...]
    outputs: tuple[Output, ...]


def lower(plans: Mapping[str, Plan], bucket: int) -> Program:
    """The program of a job's queries; what two of them both need is computed and kept once.

    `bucket` is the width, in microseconds, of the event-time partitions of the states.
    """
    operators: dict[str, Operator] = {}
    outputs = []
    for name, plan in plans.items():
        for node in walk(plan.root):
            for operator in _operators(plan.query, node, bucket):
                known = operators.get(operator.key)
                kept = max(operator.retention, known.retention if known else 0)
                operators[operator.key] = replace(known or operator, retention=kept)
        outputs.append(_output(name, plan))
    return Program(tuple(operators.values()), tuple(outputs))


def _operators(query: Query, node: Node, bucket: int) -> Iterator[Operator]:
    if isinstance(node, Join):
        for part in node.parts:
            names = identity(part)
            partners = [alias for alias in query.aliases if alias not in part.aliases]
            kept = max(query.bounds.retention(alias, partners) for alias in part.aliases)
            times = [physical(names, query.event_times[alias]) for alias in sorted(part.aliases)]
            statement = _with_until(_rows(part), _least(times), bucket)
            yield Operator(names.key, part, statement, names.content, kept=True, retention=kept)
    elif isinstance(node, GroupBy):
        names = identity(node)
        end = f"{_quote(_SLOT)} + {node.grouping.size}"
        statement = _with_until(_partials(node), end, bucket)
        wait = _wait(query, node)
        yield Operator(names.key, node, statement, names.content, kept=True, retention=wait)


def _output(name: str, plan: Plan) -> Output:
    emit = plan.root
    if not isinstance(emit, Emit):
        raise TypeError("a plan ends by emitting its query's columns")
    scope = _inside(identity(emit.input), "r")
    columns = [f"{o.expression.sql(scope)} AS {_quote(o.name)}" for o in emit.output]
    grouped = next((n for n in walk(emit) if isinstance(n, GroupBy)), None)
    if grouped is None:
        rows, horizon = _rows(emit.input), None
    else:
        rows, horizon = _finished(grouped), _wait(plan.query, grouped)
    return Output(name, parse(f"SELECT {', '.join(columns)} FROM ({rows}) AS r"), horizon)


def _wait(query: Query, grouped: GroupBy) -> int:
    """How long after a window's end one of its tuples may still find partners."""
    alias = grouped.grouping.time.alias
    return query.bounds.retention(alias, [a for a in query.aliases if a != alias])


# --- names and text ------------------------------------------------------------------------------


def physical(names: Identity, column: ColumnRef) -> str:
    """What a column is called in the relations of an operator, whichever query asks."""
    canonical = f"{names.names[column.alias]}__{column.name}" if column.alias else column.name
    return canonical.replace("#", "_")


def _inside(names: Identity, relation: str) -> Scope:
    return lambda column: f"{relation}.{_quote(physical(names, column))}"


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@lru_cache(maxsize=256)
def parse(text: str) -> exp.Query:
    """The statement of a text in Spark's SQL; the same texts come in every batch."""
    """The statement of that text; parsing is slow, and a restart meets the same texts again."""
    return parse_one(text, read="spark").assert_is(exp.Query)


def _micros(column: str) -> str:
    return f"unix_micros({column})"


def _least(columns: Sequence[str]) -> str:
    times = [_micros(_quote(column)) for column in columns]
    return f"least({', '.join(times)})" if len(times) > 1 else times[0]


def _floor(value: str, step: int) -> str:
    """Rounded down to a multiple, negative values too, without leaving integers."""
    return f"({value}) - ((({value}) % {step}) + {step}) % {step}"


def _with_until(rows: str, time: str, bucket: int) -> exp.Query:
    return parse(f"SELECT *, {_floor(time, bucket)} + {bucket} AS {UNTIL} FROM ({rows}) AS r")


# --- rows ----------------------------------------------------------------------------------------


def _rows(node: Node) -> str:
    """What an operator computes from this batch, in the names of its identity."""
    base, predicates = _base(node)
    if isinstance(base, Join):
        return " UNION ALL ".join(_branches(base, node, predicates))
    if isinstance(base, Combine):
        return _combined(base, node)
    if isinstance(base, Source):
        return _select(
            node,
            predicates,
            lambda c: f"i.{_quote(c.name)}",
            f"{_quote(f'in_{base.stream.name}')} AS i",
        )
    raise TypeError(f"{type(base).__name__} has no rows of its own")


def _base(node: Node) -> tuple[Node, list[Predicate]]:
    """The operator below the selects and projects, and what these select."""
    predicates = []
    while isinstance(node, Select | Project):
        if isinstance(node, Select):
            predicates.append(node.predicate)
        node = node.input
    return node, predicates


def _select(node: Node, predicates: Iterable[Predicate], scope: Scope, source: str) -> str:
    names = identity(node)
    columns = [f"{scope(c)} AS {_quote(physical(names, c))}" for c in node.columns]
    where = " AND ".join(f"({p.expression.sql(scope)})" for p in predicates)
    filtered = f" WHERE {where}" if where else ""
    return f"SELECT {', '.join(columns)} FROM {source}{filtered}"


def _branches(join: Join, node: Node, predicates: Sequence[Predicate]) -> Iterator[str]:
    """The new results, once for each input: its new tuples in their order through the other states.

    Inputs before it count with what is new as well, those after it without: a disjoint union.
    """
    names = [identity(part) for part in join.parts]
    position = {a: i for i, part in enumerate(join.parts) for a in part.aliases}
    times = {a: c for part in join.parts for a, c in _times(part).items()}

    def scope(column: ColumnRef) -> str:
        i = position[column.alias]
        return _inside(names[i], f"p{i}")(column)

    for i, order in enumerate(join.orders):
        source = [f"new_{names[i].key} AS p{i}"]
        joined = set(join.parts[i].aliases)
        for o in order:
            added = join.parts[o].aliases
            conditions = [
                p.expression.sql(scope)
                for p in join.predicates
                if p.aliases & added and p.aliases <= joined | added
            ]
            conditions += _within(join, joined, added, {a: scope(c) for a, c in times.items()})
            known = _known(join.parts[o], names[o], with_new=o < i)
            source.append(f"JOIN {known} AS p{o} ON {' AND '.join(f'({c})' for c in conditions)}")
            joined |= added
        yield _select(node, predicates, scope, " ".join(source))


def _known(part: Node, names: Identity, *, with_new: bool) -> str:
    if not with_new:
        return f"state_{names.key}"
    columns = ", ".join(_quote(physical(names, column)) for column in part.columns)
    halves = [f"SELECT {columns} FROM {half}_{names.key}" for half in ("state", "new")]
    return f"({' UNION ALL '.join(halves)})"


def _times(part: Node) -> dict[str, ColumnRef]:
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


# --- group-by ------------------------------------------------------------------------------------

_SLOT = "_slot"
"""The column of a group-by's state that says to which pane, or window, a row belongs."""


def _combined(node: Combine, outer: Node) -> str:
    """A batch's tuples of one input, equal ones combined."""
    inside = _inside(identity(node.input), "r")
    names = identity(outer)
    keys = [f"{inside(key)} AS {_quote(physical(names, key))}" for key in node.keys]
    weight = ColumnRef(node.alias, WEIGHT)
    made = [f"count(*) AS {_quote(physical(names, weight))}"]
    for aggregate in node.partials:
        for kind in aggregate.parts:
            value = _folded(aggregate, kind, inside, "1", node.input)
            column = _combined_column(node, aggregate, kind)
            made.append(f"{value} AS {_quote(physical(names, column))}")
    grouped = ", ".join(inside(key) for key in node.keys)
    return f"SELECT {', '.join(keys + made)} FROM ({_rows(node.input)}) AS r GROUP BY {grouped}"


def _combined_column(node: Combine, aggregate: Aggregate, kind: str) -> ColumnRef:
    return ColumnRef(node.alias, f"#{aggregate.parts[kind]}")


def _partials(node: GroupBy) -> str:
    """What a batch adds to each pane: windows are put together from panes when they are emitted.

    Aggregates that look at their window's own bounds are kept by window instead.
    """
    grouping = node.grouping
    inside = _inside(identity(node.input), "r")
    time = _micros(inside(grouping.time))
    source = f"({_rows(node.input)}) AS r"
    slot = _floor(time, _pane(node))
    condition = ""
    if _by_window(node):
        source += f" CROSS JOIN {_windows(node)}"
        slot = f"{_floor(time, grouping.slide)} - w.i * {grouping.slide}"
        condition = f" WHERE {time} < {slot} + {grouping.size}"
    scope = _windowed(inside, slot, grouping.size)
    columns = [f"{key.expression.sql(scope)} AS {_quote(key.name)}" for key in grouping.keys]
    columns.append(f"{slot} AS {_quote(_SLOT)}")
    combined = [n for n in walk(node.input) if isinstance(n, Combine)]
    for aggregate in grouping.aggregates:
        for kind in aggregate.parts:
            value = _weighted(aggregate, kind, combined, scope, node.input)
            columns.append(f"{value} AS {_quote(aggregate.parts[kind])}")
    keys = [key.expression.sql(scope) for key in grouping.keys if key.expression.columns]
    return (
        f"SELECT {', '.join(columns)} FROM {source}{condition} GROUP BY {', '.join([*keys, slot])}"
    )


def _windowed(inside: Scope, slot: str, size: int) -> Scope:
    bounds = {
        WINDOW_START: f"timestamp_micros({slot})",
        WINDOW_END: f"timestamp_micros({slot} + {size})",
    }
    return lambda c: bounds[c.name] if c.alias == RESULT else inside(c)


def _by_window(node: GroupBy) -> bool:
    read = [e for aggregate in node.grouping.aggregates for e in aggregate.expressions]
    return any(column.alias == RESULT for e in read for column in e.columns)


def _pane(node: GroupBy) -> int:
    return gcd(node.grouping.size, node.grouping.slide)


def _windows(node: GroupBy) -> str:
    count = -(-node.grouping.size // node.grouping.slide)
    return f"(VALUES {', '.join(f'({i})' for i in range(count))}) AS w(i)"


def _weighted(
    aggregate: Aggregate, kind: str, combined: Sequence[Combine], scope: Scope, below: Node
) -> str:
    """A partial aggregate over joined rows, each counting for as many as were combined into it."""
    own = next((c for c in combined if aggregate in c.partials), None)
    others = [c for c in combined if c is not own]
    weight = " * ".join(scope(ColumnRef(c.alias, WEIGHT)) for c in others) or "1"
    if own is None:
        return _folded(aggregate, kind, scope, weight, below)
    value = scope(_combined_column(own, aggregate, kind))
    if kind in ("min", "max"):
        return f"{kind}({value})"
    return f"CAST(sum({value} * {weight}) AS {_sum_type(aggregate, kind, below)})"


def _folded(aggregate: Aggregate, kind: str, scope: Scope, weight: str, below: Node) -> str:
    value = aggregate.argument.sql(scope) if aggregate.argument else "1"
    if aggregate.condition is not None:
        value = f"CASE WHEN {aggregate.condition.sql(scope)} THEN {value} END"
    if kind in ("min", "max"):
        return f"{kind}({value})"
    if kind == "count":
        counted = f"CASE WHEN ({value}) IS NOT NULL THEN {weight} ELSE 0 END"
        return f"CAST(sum({counted}) AS BIGINT)"
    wide = _sum_type(aggregate, kind, below)
    return f"CAST(sum(CAST({value} AS {wide}) * {weight}) AS {wide})"


def _sum_type(aggregate: Aggregate, kind: str, below: Node) -> str:
    """The type in which to add up: the widest of its family, so that executors agree."""
    if kind == "count":
        return "BIGINT"
    if aggregate.function == "avg" or aggregate.argument is None:
        return "DOUBLE"
    kind_of = _type_of(aggregate.argument, below)
    if kind_of.is_type(*exp.DataType.INTEGER_TYPES):
        return "BIGINT"
    if kind_of.is_type("decimal"):
        scale = kind_of.expressions[1].name if len(kind_of.expressions) > 1 else "0"
        return f"DECIMAL(38, {scale})"
    return "DOUBLE"


def _type_of(expression: Expression, below: Node) -> exp.DataType:
    sources = {n.alias: n.stream for n in walk(below) if isinstance(n, Source)}
    schema: dict[str, object] = {
        alias: {c.name: c.type for c in stream.columns} for alias, stream in sources.items()
    }
    text = expression.sql(lambda c: f"{_quote(c.alias)}.{_quote(c.name)}")
    tables = ", ".join(map(_quote, sources))
    query = parse(f"SELECT {text} AS x FROM {tables}")
    typed = annotate_types(query, schema=schema, dialect="spark")
    return typed.selects[0].type or exp.DataType.build("double")


def _finished(node: GroupBy) -> str:
    """The aggregates of the windows that end between two moments, from the panes kept and new."""
    grouping = node.grouping
    key = identity(node).key
    kept = [key.name for key in grouping.keys]
    kept += [column for a in grouping.aggregates for column in a.parts.values()]
    columns = ", ".join(map(_quote, [*kept, _SLOT]))
    known = " UNION ALL ".join(f"SELECT {columns} FROM {half}_{key}" for half in ("state", "new"))
    source, start = f"({known}) AS p", f"p.{_quote(_SLOT)}"
    fits = ""
    if not _by_window(node):
        source += f" CROSS JOIN {_windows(node)}"
        fits = f" AND {start} + {_pane(node)} <= {{start}} + {grouping.size}"
        start = f"{_floor(start, grouping.slide)} - w.i * {grouping.slide}"
        fits = fits.format(start=start)
    end = f"{start} + {grouping.size}"
    keys = [f"p.{_quote(key.name)}" for key in grouping.keys]
    made = [f"{_whole(a, node.input)} AS {_quote(a.name)}" for a in grouping.aggregates]
    made.append(f"timestamp_micros({start}) AS {_quote(WINDOW_START)}")
    made.append(f"timestamp_micros({end}) AS {_quote(WINDOW_END)}")
    return (
        f"SELECT {', '.join([*keys, *made])} FROM {source}"
        f" WHERE {end} > :{FROM} AND {end} <= :{TO}{fits}"
        f" GROUP BY {', '.join([*keys, start])}"
    )


def _whole(aggregate: Aggregate, below: Node) -> str:
    parts = {kind: f"p.{_quote(aggregate.parts[kind])}" for kind in aggregate.parts}
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


@lru_cache(maxsize=256)
def render(statement: exp.Query, dialect: str) -> str:
    """The text of a statement for an executor; parameters stay as they are."""
    return statement.sql(dialect=dialect)
