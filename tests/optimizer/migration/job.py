"""A job of plain tables that migrates: every operator is one DuckDB query over whole relations.

Nothing of the engine is in it.  States hold rows under `alias.column` of canonical inputs, with the
batch that brought them; what the new tuples of a batch must yield is asked of all tuples at once.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from optimizer.identity import identity
from optimizer.migration.matching import Context
from optimizer.migration.steps import CutOver, Drop, Fill, How, Parallel, Step, Track, Wait
from optimizer.plan import (
    WEIGHT,
    Combine,
    GroupBy,
    Join,
    Node,
    Plan,
    Project,
    Select,
    Source,
    applied_by,
    walk,
)
from optimizer.query import RESULT, Aggregate, ColumnRef, Expression, Predicate, Query

Bag = Counter[tuple[object, ...]]
Read = Callable[[Node], str | None]
"""The relation that holds an operator's rows, if one does."""

Rows = Mapping[str, Sequence[tuple[Any, ...]]]
"""A batch: the tuples of each stream, in the order of its columns; times in microseconds."""

SIGNED = "TIMESTAMP '1970-01-01'"
"""Stands for a window's start and end, so that every row has one value of them."""


def quoted(column: ColumnRef) -> str:
    return SIGNED if column.alias == RESULT else f'"{column.alias}.{column.name}"'


def text(expression: Expression) -> str:
    return f"({expression.sql(quoted)})"


# --- operators -----------------------------------------------------------------------------------


def sql(node: Node, read: Read) -> str:
    """An operator over what `read` knows."""
    if (relation := read(node)) is not None:
        return relation
    match node:
        case Select(below, predicate):
            return f"(SELECT * FROM {sql(below, read)} WHERE {text(predicate.expression)})"
        case Project(below, kept):
            return f"(SELECT {', '.join(map(quoted, kept))} FROM {sql(below, read)})"
        case Combine(below):
            return combined(node, sql(below, read))
        case Join(parts):
            return joined(node, [sql(part, read) for part in parts])
    raise TypeError(f"no rows of {type(node).__name__}")


def joined(node: Join, relations: Sequence[str], where: str = "TRUE") -> str:
    conditions = [text(predicate.expression) for predicate in node.predicates]
    times = {
        n.alias: f"epoch_us({quoted(ColumnRef(n.alias, n.stream.event_time))})"
        for n in walk(node)
        if isinstance(n, Source)
    }
    conditions += [
        f"{times[i]} - {times[j]} <= {node.bounds[i, j]}" for i in times for j in times if i != j
    ]
    columns = ", ".join(map(quoted, node.columns))
    source = ", ".join(f"{relation} AS p{i}" for i, relation in enumerate(relations))
    return f"(SELECT {columns} FROM {source} WHERE {where} AND {' AND '.join(conditions)})"


def combined(node: Combine, below: str) -> str:
    made = [f"count(*) AS {quoted(ColumnRef(node.alias, WEIGHT))}"]
    for one in node.partials:
        for kind, column in one.parts.items():
            made.append(
                f"{folded(one, kind, '1')} AS {quoted(ColumnRef(node.alias, f'#{column}'))}"
            )
    keys = ", ".join(map(quoted, node.keys))
    return f"(SELECT {keys}, {', '.join(made)} FROM {below} GROUP BY {keys})"


def folded(one: Aggregate, kind: str, weight: str) -> str:
    """A distributive part of an aggregate over rows that stand for `weight` tuples each."""
    value = "1" if one.argument is None else text(one.argument)
    keep = "" if one.condition is None else f" FILTER (WHERE {text(one.condition)})"
    match kind:
        case "count":
            counted = f"CASE WHEN {value} IS NULL THEN 0 ELSE {weight} END"
            return f"coalesce(sum({counted}){keep}, 0)"
        case "sum":
            return f"sum({value} * {weight}){keep}"
    return f"{kind}({value}){keep}"


def results(plan: Plan, below: str) -> str:
    """What the rows that reach the top add to the output, or to each group."""
    query, combines = plan.query, [n for n in walk(plan.root) if isinstance(n, Combine)]
    if query.grouping is None:
        return f"SELECT {', '.join(text(named.expression) for named in query.output)} FROM {below}"
    weights = {n.alias: quoted(ColumnRef(n.alias, WEIGHT)) for n in combines}
    made = []
    for one in query.grouping.aggregates:
        owner = next((n.alias for n in combines if one in n.partials), None)
        weight = " * ".join(["1", *(w for alias, w in weights.items() if alias != owner)])
        for kind, column in one.parts.items():
            if owner is None:
                made.append(folded(one, kind, f"({weight})"))
            else:
                value = quoted(ColumnRef(owner, f"#{column}"))
                over = (
                    f"sum({value} * {weight})" if kind in ("count", "sum") else f"{kind}({value})"
                )
                made.append(over)
    keys = [text(key.expression) for key in query.grouping.keys]
    keys.append(quoted(query.grouping.time))
    grouped = ", ".join(keys)
    return f"SELECT {grouped}, {', '.join(made)} FROM {below} GROUP BY {grouped}"


# --- states --------------------------------------------------------------------------------------


def inputs(plan: Plan) -> Iterator[Node]:
    """The inputs of its joins, lower ones first."""
    for node in walk(plan.root):
        if isinstance(node, Join):
            yield from node.parts


def key(node: Node) -> str:
    return identity(node).key


def retention(query: Query, node: Node) -> int:
    """How much newer than one of its tuples a partner outside may be."""
    outside = set(query.aliases) - node.aliases
    return max(max(0, query.bounds[o, i]) for i in node.aliases for o in outside)


def applied(node: Node) -> frozenset[Predicate]:
    return frozenset(predicate for below in walk(node) for predicate in applied_by(below))


def base(node: Node) -> Node:
    while isinstance(node, Select | Project):
        node = node.input
    return node


@dataclass
class Change:
    """A migration on its way."""

    query: str
    new: Plan
    steps: list[Step]
    tracked: dict[str, int] = field(default_factory=dict)
    """The boundary from which on each state has been maintained."""
    parallel: int | None = None
    """The batch since which both plans run."""
    young: int = 0


class Job:
    """Queries, their plans, states and all tuples so far."""

    def __init__(self, plans: Mapping[str, Plan]) -> None:
        self.plans = dict(plans)
        self.batch = 0
        self.watermark = 0
        self.newest = 0
        self.partial: dict[str, str] = {}
        self.change: Change | None = None
        self.kept: set[str] = set()
        self.db = duckdb.connect(config={"threads": 1})
        for name, sign in (("add", "+"), ("subtract", "-"), ("multiply", "*"), ("mod", "%")):
            self.db.execute(f"CREATE MACRO try_{name}(x, y) AS TRY(x {sign} y)")
        self.streams = {s.name: s for p in plans.values() for _, s in p.query.inputs}
        for stream in self.streams.values():
            columns = ", ".join(f'"{c.name}" {c.type}' for c in stream.columns)
            self.db.execute(f"CREATE TABLE {stream.name} ({columns}, _batch INT)")
        for plan in plans.values():
            self._create(inputs(plan))

    # --- a batch ---------------------------------------------------------------------------------

    def take(self, rows: Rows, watermark: int) -> dict[str, tuple[Bag, Bag]]:
        """Run a batch: what each query puts out, beside what it must put out."""
        self.batch += 1
        self._insert(rows)
        live = {name: readers[0][1] for name, readers in self._live().items()}
        for name, node in live.items():
            self._table(f"fresh_{name}", node, temporary=True)
            self._store(f"fresh_{name}", node, self._new(node), self.batch)
        made = {name: (self._output(name), self._expected(name)) for name in self.plans}
        for name in live:
            self.db.execute(f"INSERT INTO state_{name} FROM fresh_{name}")
            self.db.execute(f"DROP TABLE fresh_{name}")
        self.watermark = watermark
        self._purge()
        return made

    def _insert(self, rows: Rows) -> None:
        for name, tuples in rows.items():
            if tuples:
                values = ", ".join(self._literal(name, row) for row in tuples)
                self.db.execute(f"INSERT INTO {name} VALUES {values}")
            time = [c.name for c in self.streams[name].columns].index(self.streams[name].event_time)
            self.newest = max([self.newest, *(row[time] for row in tuples)])

    def _literal(self, name: str, row: Sequence[Any]) -> str:
        columns = self.streams[name].columns
        values = [
            "NULL"
            if value is None
            else f"make_timestamp({value})"
            if c.type == "TIMESTAMP"
            else f"{value}"
            for c, value in zip(columns, row, strict=True)
        ]
        return f"({', '.join(values)}, {self.batch})"

    def _output(self, name: str) -> Bag:
        plan = self.plans[name]
        change = self.change if self.change and self.change.query == name else None
        if change is None or change.parallel is None:
            return self._bag(results(plan, self._top(plan)))
        old = f"(SELECT * FROM {self._top(plan)} WHERE NOT ({self._young(plan, change.young)}))"
        return self._merged(plan, old, change)

    def _merged(self, plan: Plan, old: str, change: Change) -> Bag:
        """Both plans' output as one: both feed the same groups."""
        fresh = self._top(change.new)
        new = f"(SELECT * FROM {fresh} WHERE {self._young(change.new, change.young)})"
        made = self._bag(results(plan, old)) + self._bag(results(change.new, new))
        return regrouped(plan.query, made)

    def _young(self, plan: Plan, since: int) -> str:
        times = map(quoted, plan.query.event_times.values())
        return " AND ".join(f"epoch_us({time}) >= {since}" for time in times)

    def _expected(self, name: str) -> Bag:
        query = self.plans[name].query
        whole = Join(
            tuple(Source(alias, stream) for alias, stream in query.inputs),
            tuple(p for p in query.predicates if len(p.aliases) == 2),
            query.bounds,
            tuple(
                tuple(o for o in range(len(query.inputs)) if o != i)
                for i in range(len(query.inputs))
            ),
        )
        selects = [text(p.expression) for p in query.predicates if len(p.aliases) == 1]
        relations = [self._stream(alias, stream.name) for alias, stream in query.inputs]
        latest = " OR ".join(f"p{i}._batch = {self.batch}" for i in range(len(relations)))
        rows = joined(whole, relations, " AND ".join([f"({latest})", *selects]))
        raw = Plan.__new__(Plan)
        object.__setattr__(raw, "query", query)
        object.__setattr__(raw, "root", whole)
        return self._bag(results(raw, rows))

    def _stream(self, alias: str, name: str, where: str = "TRUE") -> str:
        names = [column.name for column in self.streams[name].columns]
        columns = ", ".join(f'"{c}" AS "{alias}.{c}"' for c in names)
        return f"(SELECT {columns}, _batch FROM {name} WHERE {where})"

    def _bag(self, query: str) -> Bag:
        return Counter(self.db.execute(query).fetchall())

    # --- new rows and states ---------------------------------------------------------------------

    def _top(self, plan: Plan) -> str:
        below = plan.root.inputs[0]
        return self._new(below.input if isinstance(below, GroupBy) else below)

    def _new(self, node: Node) -> str:
        """The rows that this batch's tuples make of an operator."""

        def read(below: Node) -> str | None:
            if isinstance(below, Source):
                return self._stream(below.alias, below.stream.name, f"_batch = {self.batch}")
            if isinstance(below, Join):
                flagged = [
                    f"(SELECT *, FALSE AS is_new FROM {self._state(part)} UNION ALL "
                    f"SELECT *, TRUE FROM {self._state(part, of='fresh')})"
                    for part in below.parts
                ]
                some = " OR ".join(f"p{i}.is_new" for i in range(len(flagged)))
                return joined(below, flagged, f"({some})")
            return None

        return sql(node, read)

    def _state(self, node: Node, until: int | None = None, of: str = "state") -> str:
        """A state, or what is new of it, under its reader's own names."""
        names = identity(node)
        columns = ", ".join(f'"{names.column(c)}" AS {quoted(c)}' for c in node.columns)
        where = "TRUE" if until is None else f"_batch <= {until}"
        return f"(SELECT {columns} FROM {of}_{names.key} WHERE {where})"

    def _create(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if key(node) not in self.kept:
                self._table(f"state_{key(node)}", node)
                self.kept.add(key(node))

    def _table(self, table: str, node: Node, *, temporary: bool = False) -> None:
        names = identity(node)
        columns = ", ".join(
            f'"{names.column(c)}" {_type(node, c)}' for c in sorted(node.columns, key=names.column)
        )
        kind = "TEMP TABLE" if temporary else "TABLE"
        self.db.execute(f"CREATE {kind} {table} ({columns}, _batch INT)")

    def _store(self, table: str, node: Node, rows: str, batch: int) -> None:
        names = identity(node)
        into = ", ".join(f'"{names.column(c)}"' for c in node.columns)
        columns = ", ".join(map(quoted, node.columns))
        self.db.execute(
            f"INSERT INTO {table} ({into}, _batch) SELECT {columns}, {batch} FROM {rows}"
        )

    def _live(self) -> dict[str, list[tuple[Query, Node]]]:
        """Every state that is maintained, with those who read it."""
        plans = list(self.plans.values())
        found: dict[str, list[tuple[Query, Node]]] = {}
        for plan in plans:
            for node in inputs(plan):
                found.setdefault(key(node), []).append((plan.query, node))
        if self.change is not None:
            both = self.change.parallel is not None
            for node in inputs(self.change.new):
                if both or key(node) in self.change.tracked or key(node) in found:
                    found.setdefault(key(node), []).append((self.change.new.query, node))
        return found

    def _purge(self) -> None:
        """As early as allowed: what no tuple as young as the watermark can join."""
        for name, readers in self._live().items():
            node = readers[0][1]
            names = identity(node)
            times = [
                f'epoch_us("{names.column(ColumnRef(n.alias, n.stream.event_time))}")'
                for n in walk(node)
                if isinstance(n, Source)
            ]
            longest = max(retention(query, reader) for query, reader in readers)
            oldest = f"least({', '.join(times)})"
            self.db.execute(f"DELETE FROM state_{name} WHERE {oldest} < {self.watermark - longest}")

    # --- a migration -----------------------------------------------------------------------------

    def context(self, name: str) -> Context:
        """What the other queries keep."""
        others = [plan for other, plan in self.plans.items() if other != name]
        available: dict[str, int] = {}
        for plan in others:
            for node in inputs(plan):
                longest = max(available.get(key(node), 0), retention(plan.query, node))
                available[key(node)] = longest
        return Context(available, dict(self.partial), name)

    def begin(self, name: str, new: Plan, steps: Sequence[Step]) -> None:
        self.change = Change(name, new, list(steps))

    def step(self) -> bool:
        """Do the next step; whether a batch must come before the one after it."""
        change = self.change
        assert change is not None
        match step := change.steps.pop(0):
            case Track((state,)):
                change.tracked[state] = self.batch
                self._create(n for n in inputs(change.new) if key(n) == state)
                return True
            case Fill(state):
                self._fill(change, step, change.tracked.get(state, self.batch))
            case Parallel(missing):
                change.parallel, change.young = self.batch, self.newest + 1
                self._create(n for n in inputs(change.new) if key(n) in missing)
                return True
            case Wait():
                query = change.new.query
                longest = max(retention(query, node) for node in inputs(change.new))
                if self.watermark < change.young + longest:
                    change.steps.insert(0, step)
                    return True
            case CutOver():
                self.plans[change.query] = change.new
                change.parallel = None
                change.tracked.clear()
            case Drop(state):
                self.db.execute(f"DROP TABLE IF EXISTS state_{state}")
                self.kept.discard(state)
                self.partial.pop(state, None)
        if not change.steps:
            self.change = None
        return False

    def _fill(self, change: Change, fill: Fill, until: int) -> None:
        """As the definition of a fill says, from the two plans alone."""
        old = [n for n in inputs(self.plans[change.query]) if key(n) in fill.sources]
        for target in (n for n in inputs(change.new) if key(n) == fill.state):
            rows = self._filled(fill, target, old, until)
            if rows is not None:
                self._create([target])
                self._store(f"state_{fill.state}", target, rows, until)
                if fill.partial:
                    self.partial[fill.state] = change.query
                return
        raise AssertionError(f"nothing to fill from: {fill}")

    def _filled(self, fill: Fill, target: Node, old: Sequence[Node], until: int) -> str | None:
        if fill.how is How.JOIN:
            below = base(target)
            if not isinstance(below, Join) or tuple(map(key, below.parts)) != fill.sources:
                return None
            states = {part: self._state(part, until) for part in below.parts}
            return sql(target, states.get)
        source = next((n for n in old if n.aliases == target.aliases), None)
        if source is None:
            return None
        if fill.how is How.EXPAND:
            weight = next(quoted(c) for c in source.columns if c.name == WEIGHT)
            missing = applied(target) - applied(source)
            return self._cut(source, target.columns, missing, until, f", unnest(range({weight}))")
        if fill.how is How.DERIVE:
            return self._cut(source, target.columns, applied(target) - applied(source), until)
        below = base(target)
        assert isinstance(below, Combine)
        inside = below.input
        rows = self._cut(source, inside.columns, applied(inside) - applied(source), until)
        return sql(target, {inside: rows}.get)

    def _cut(
        self,
        source: Node,
        columns: Sequence[ColumnRef],
        missing: frozenset[Predicate],
        until: int,
        times: str = "",
    ) -> str:
        there = set(source.columns)
        made = [quoted(c) if c in there else f"NULL AS {quoted(c)}" for c in columns]
        where = " AND ".join(["TRUE", *(text(p.expression) for p in missing)])
        return f"(SELECT {', '.join(made)} FROM {self._state(source, until)}{times} WHERE {where})"


def _type(node: Node, column: ColumnRef) -> str:
    if column.name.startswith("#"):
        return "BIGINT"
    stream = next(n.stream for n in walk(node) if isinstance(n, Source) if n.alias == column.alias)
    found = stream.column(column.name)
    assert found is not None
    return found.type


def regrouped(query: Query, made: Bag) -> Bag:
    """Rows of the same group put together, as the group-by on top of both plans does."""
    if query.grouping is None:
        return made
    kinds = [kind for one in query.grouping.aggregates for kind in one.parts]
    count = len(query.grouping.keys) + 1
    groups: dict[tuple[object, ...], list[object]] = {}
    for row in made.elements():
        values = groups.setdefault(row[:count], [None] * len(kinds))
        for i, (kind, value) in enumerate(zip(kinds, row[count:], strict=True)):
            values[i] = _merge(kind, values[i], value)
    return Counter((*group, *values) for group, values in groups.items())


def _merge(kind: str, one: object, other: object) -> object:
    known = [value for value in (one, other) if value is not None]
    if not known:
        return None
    return {"count": sum, "sum": sum, "min": min, "max": max}[kind](known)  # type: ignore[operator]
