"""What a job's own tables say of its workload: rates, shares selected, how many keys there are.

Enough for the dry run of a migration where nobody gives a workload.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import duckdb

from jobs.engine.paths import files_of, read_parquet
from jobs.engine.statements import inside, parse, render
from jobs.engine.states import table_of
from jobs.engine.store import DeltaStore
from optimizer.identity import identity
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
        sides = [p.sides for p in predicates if p.sides]
        found = [n for pair in sides if (n := _keys(pair, leaves, store))]
        if found:
            joins[edge] = 1 / max(found)
    return replace(modest, streams=streams, selects=selects, joins=joins, assumed=False)


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


def _keys(
    sides: tuple[Expression, Expression], leaves: Mapping[str, Node], store: DeltaStore
) -> int:
    """How many values the side with more of them has now."""
    counts = [0]
    for side in sides:
        (alias,) = side.aliases
        if alias in leaves:
            counts.append(_distinct(side, leaves[alias], store))
    return max(counts)


def _distinct(side: Expression, leaf: Node, store: DeltaStore) -> int:
    table = table_of(identity(leaf).key)
    files = files_of(store.table(table)) if store.exists(table) else []
    if not files:
        return 0
    value = side.sql(inside(identity(leaf), "s"))
    counted = render(parse(f"SELECT approx_count_distinct({value}) AS n FROM s"), "duckdb")
    with suppress(duckdb.Error), duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(f"CREATE TEMP VIEW s AS FROM {read_parquet(files)}")
        (found,) = connection.execute(counted).fetchall()[0]
        return int(found)
    return 0
