"""What a job's own tables say of its workload: rates, shares selected, how often keys come up.

Enough for the dry run of a migration where nobody gives a workload.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import duckdb

from jobs.backends.duckdb.backend import connect, duck_text
from jobs.engine.statements import inside, parse
from jobs.tables.delta_store import DeltaStore
from jobs.tables.names import state_table
from jobs.tables.paths import files_of, read_parquet
from optimizer.identity import identity
from optimizer.keys import HEAVIEST, Key, Shares, alike, keys_of
from optimizer.migration.matching import States
from optimizer.plan import Combine, Node, Plan, walk
from optimizer.query import Expression
from optimizer.window import MICROSECONDS
from optimizer.workload import Method, StreamLoad, Workload

Batches = Sequence[Mapping[str, Any]]
"""The progress of the last batches, the newest first."""


def observed(plan: Plan, store: DeltaStore, batches: Batches, batch: float) -> Workload:
    """The workload of a running plan; what cannot be seen is assumed.

    Rates are by event time, which is what windows are about.
    """
    query, newest = plan.query, batches[0]
    modest = Workload.assume(query, batch=batch, method=Method.BATCH)
    streams, selects = dict(modest.streams), dict(modest.selects)
    leaves = _leaves(plan)
    for alias, stream in query.inputs:
        rows = sum(one["streams"][stream.name]["rows"] for one in batches[:-1])
        ends = [one["streams"][stream.name]["newest"] for one in (batches[-1], newest)]
        if rows and None not in ends and ends[1] > ends[0]:
            streams[alias] = StreamLoad(rows * MICROSECONDS / (ends[1] - ends[0]))
            if query.selects(alias) and alias in leaves:
                selects |= _share(plan, alias, rows, _written(leaves[alias], batches[:-1]))
    joins = dict(modest.joins)
    for edge, predicates in query.graph.edges.items():
        found = _selectivity([p.sides for p in predicates if p.sides], leaves, store)
        joins[edge] = joins[edge] if found is None else found
    keys = {key.name: shares for key in keys_of(query) if (shares := _spread(key, leaves, store))}
    return replace(modest, streams=streams, selects=selects, joins=joins, keys=keys, assumed=False)


def _leaves(plan: Plan) -> dict[str, Node]:
    """The state that holds each input's own tuples, where there is one."""
    nodes = [node for same in States.of(plan).nodes.values() for node in same]
    return {
        alias: node
        for node in nodes
        for alias in node.aliases
        if len(node.aliases) == 1 and not any(isinstance(n, Combine) for n in walk(node))
    }


def _written(node: Node, batches: Batches) -> int:
    work = [one["operators"].get(identity(node).key) for one in batches]
    return sum(one["rows"] for one in work if one)


def _share(plan: Plan, alias: str, rows: int, kept: int) -> dict[str, float]:
    """The share of a stream that its selects leave, spread evenly over them."""
    selects = plan.query.selects(alias)
    each = min(1.0, kept / rows) ** (1 / len(selects))
    return {str(predicate): each for predicate in selects}


def _selectivity(
    equal: Sequence[tuple[Expression, Expression]], leaves: Mapping[str, Node], store: DeltaStore
) -> float | None:
    """The share of the pairs that are there whose keys are equal: heavy keys meet heavy ones."""
    sides: dict[str, list[str]] = {}
    for pair in equal:
        for side in pair:
            (alias,) = side.aliases
            if alias in leaves:
                value = side.sql(inside(identity(leaves[alias]), "s"))
                sides.setdefault(alias, []).append(value)
    if len(sides) != 2:
        return None
    with suppress(duckdb.Error), connect() as connection:
        for name, (alias, values) in zip("ab", sides.items(), strict=True):
            _count(connection, name, leaves[alias], values, store)
        return _shared(connection, len(equal))
    return None


def _spread(key: Key, leaves: Mapping[str, Node], store: DeltaStore) -> Shares | None:
    """How a key's values are spread over the tuples that are there, if all its inputs' are."""
    with suppress(duckdb.Error, KeyError), connect() as connection:
        for at, alias in enumerate(key.inputs):
            names = inside(identity(leaves[alias]), "s")
            values = [side.sql(names) for side in key.sides[alias]]
            _count(connection, f"s{at}", leaves[alias], values, store)
        return _shares(connection, key)
    return None


def _shares(connection: duckdb.DuckDBPyConnection, key: Key) -> Shares | None:
    """Heavy are the values on which most pairs match; the others are told together."""
    counted = [f"c{at}" for at in range(len(key.inputs))]
    _together(connection, key, counted)

    def asked(text: str) -> list[tuple[int, ...]]:
        return connection.execute(text).fetchall()

    whole = {alias: asked(f"SELECT sum(n) FROM s{i}")[0][0] for i, alias in enumerate(key.inputs)}
    if not all(whole.values()):
        return None
    columns = ", ".join(counted)
    best = f"FROM v WHERE matches > 0 ORDER BY matches DESC, {columns} LIMIT {HEAVIEST}"
    heavy = asked(f"SELECT {columns}, matches {best}")
    ((*rest, left),) = asked(
        f"SELECT {', '.join(f'sum({c})' for c in (*counted, 'matches'))} FROM v"
    )
    for *some, matches in heavy:
        rest, left = [r - c for r, c in zip(rest, some, strict=True)], left - matches
    return Shares.of(whole, [some for *some, _ in heavy], rest, alike(rest, key.pairs, left))


def _together(connection: duckdb.DuckDBPyConnection, key: Key, counted: Sequence[str]) -> None:
    """How often each value comes up in every input, and how many pairs match on it, as `v`."""
    values = [f"k{at}" for at in range(len(key.sides[key.inputs[0]]))]
    there = " AND ".join(f"{value} IS NOT NULL" for value in values)
    sides = (
        f"SELECT {', '.join(values)}, n AS {c} FROM s{at} WHERE {there}"
        for at, c in enumerate(counted)
    )
    sums = ", ".join(f"coalesce(sum({c}), 0)::HUGEINT AS {c}" for c in counted)
    matches = " + ".join(f"{counted[i]} * {counted[j]}" for i, j in key.pairs)
    connection.execute(
        f"CREATE TABLE v AS SELECT *, {matches} AS matches FROM (SELECT {', '.join(values)}, "
        f"{sums} FROM ({' UNION ALL BY NAME '.join(sides)}) GROUP BY ALL)"
    )


def _count(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    leaf: Node,
    values: Sequence[str],
    store: DeltaStore,
) -> None:
    """How often each key comes up, as a table of that name."""
    table = state_table(identity(leaf).key)
    files = files_of(store.table(table)) if store.exists(table) else []
    connection.execute(f"CREATE VIEW s AS FROM {read_parquet(files)}")
    keys = ", ".join(f"{value} AS k{at}" for at, value in enumerate(values))
    text = duck_text(parse(f"SELECT {keys} FROM s"))
    connection.execute(f"CREATE TABLE {name} AS SELECT *, count(*) AS n FROM ({text}) GROUP BY ALL")
    connection.execute("DROP VIEW s")


def _shared(connection: duckdb.DuckDBPyConnection, keys: int) -> float | None:
    """Of all pairs; at least one, for that none is there yet does not mean that none will be."""
    equal = " AND ".join(f"a.k{at} = b.k{at}" for at in range(keys))
    pairs = "(SELECT sum(n) FROM a)::DOUBLE * (SELECT sum(n) FROM b)"
    met = f"SELECT coalesce(sum(a.n::DOUBLE * b.n), 0) FROM a JOIN b ON {equal}"
    ((met_by, all_),) = connection.execute(f"SELECT ({met}), {pairs}").fetchall()
    return min(1.0, max(1.0, met_by) / all_) if all_ else None
