"""Runs a case with the engine's own code and says where it differs from what the oracle says."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from json import loads
from typing import Any

import pyarrow as pa

from jobs.engine.migration.definition import Migration
from jobs.engine.statements import SLOT, physical
from jobs.engine.states import relation_of
from jobs.tables.columns import BATCH, REASON, ROW, UNTIL, WATERMARK
from jobs.tables.names import DECISIONS, MIGRATIONS, PROGRESS, REQUESTS, result_table, state_table
from jobs.tables.partitions import Widths
from jobs.tables.progress import BatchDecision, history, latest
from optimizer.identity import identity, states
from optimizer.plan import Combine, GroupBy, Join, Node, Plan, Source, from_json, walk
from optimizer.query import ColumnRef
from tests.simulation import oracle, promises
from tests.simulation.case import Case
from tests.simulation.faults import FaultyStore
from tests.simulation.oracle import Bag
from tests.simulation.processes import WIDTHS, Simulation

SHOWN = 5
"""How many rows of a difference are told."""


@dataclass(frozen=True)
class Difference:
    """Something that is not as it must be."""

    what: str
    missing: Bag = field(default_factory=Bag)
    extra: Bag = field(default_factory=Bag)

    def __str__(self) -> str:
        parts = [self.what]
        for kind, rows in (("missing", self.missing), ("extra", self.extra)):
            if rows:
                some = ", ".join(str(row) for row in list(rows.elements())[:SHOWN])
                more = ", ..." if rows.total() > SHOWN else ""
                parts.append(f"{rows.total()} {kind}: {some}{more}")
        return "; ".join(parts)


@dataclass(frozen=True)
class Outcome:
    """How a case ended; `events` are what its crashes interrupted, batch by batch."""

    differences: tuple[Difference, ...]
    events: tuple[tuple[str, ...], ...]


def run(case: Case) -> Outcome:
    """Carry out a case and compare all that it left."""
    simulation = Simulation(case)
    differences = tuple(_carried_out(case, simulation))
    return Outcome(differences, tuple(map(tuple, simulation.events)))


def goes_wrong(case: Case) -> bool:
    """Whether anything differs; what comes after the first difference is not looked at."""
    return any(True for _ in _carried_out(case, Simulation(case)))


def _carried_out(case: Case, simulation: Simulation) -> Iterator[Difference]:
    try:
        for number, batch in enumerate(case.batches):
            simulation.carry_out(number, batch)
            yield from _so_far(replace(case, batches=case.batches[: number + 1]), simulation)
            yield from map(Difference, simulation.hand_over(number, batch))
        yield from _differences(case, simulation)
    except Exception as error:  # noqa: BLE001  # whatever it is, the engine should not have raised it
        yield Difference(f"{type(error).__name__}: {error}")
    finally:
        simulation.stop()


# --- comparison ----------------------------------------------------------------------------------


def _so_far(case: Case, simulation: Simulation) -> Iterator[Difference]:
    """What a cut-over or a fill has made wrong, before another batch or process hides it."""
    if _has_migrated(simulation.store):
        yield from _incomplete(case, simulation)
    if any(batch.wishes for batch in case.batches):
        yield from _copies(simulation)


def _differences(case: Case, simulation: Simulation) -> Iterator[Difference]:
    store = simulation.store
    made = history(store)
    if [progress.batch for progress in made] != list(range(len(case.batches))):
        yield Difference(f"batches done: {[progress.batch for progress in made]}")
        return
    accounts = oracle.accounts(case, _clocks(store))
    watermarks = [progress.watermark for progress in made]
    if watermarks != accounts.watermarks:
        yield Difference(f"watermarks are {watermarks} instead of {accounts.watermarks}")
    yield from _intake(case, store, accounts)
    for query in case.job.plans:
        expected = oracle.results(case, query, accounts)
        yield from _results(query, store, expected, simulation.guests[query])
        if sum(progress.results[query] for progress in made) != expected.num_rows:
            yield Difference(f"the progress miscounts the results of {query}")
    yield from _overdue(case, store, accounts.watermarks)
    yield from _incomplete(case, simulation)
    yield from _tables(case, simulation)
    yield from _copies(simulation)
    yield from map(Difference, promises.broken(case, store))


def _results(
    query: str, store: FaultyStore, expected: pa.Table, others: Bag
) -> Iterator[Difference]:
    """The rows as multisets, and the types of the columns."""
    names, actual = expected.column_names, store.load(result_table(query))
    types = [str(actual.schema.field(name).type) for name in names]
    wanted = [str(expected.schema.field(name).type) for name in names]
    if types != wanted:
        yield Difference(f"columns of {query} are {types} instead of {wanted}")
    yield from _compared(
        f"results of {query}", oracle.bag(actual, names), oracle.bag(expected, names) + others
    )


def _compared(what: str, actual: Bag, expected: Bag) -> Iterator[Difference]:
    if actual != expected:
        yield Difference(what, expected - actual, actual - expected)


def _bag(store: FaultyStore, table: str, names: Sequence[str]) -> Bag:
    return oracle.bag(store.load(table), names) if store.exists(table) else Bag()


def _clocks(store: FaultyStore) -> list[int]:
    """When each batch began: the first attempt to say so has decided it."""
    rows = store.load(DECISIONS).sort_by("batch")
    return [loads(content)["clock"] for content in rows.column("content").to_pylist()]


def _intake(case: Case, store: FaultyStore, accounts: oracle.Accounts) -> Iterator[Difference]:
    """Each row accepted, late or rejected, once; what is accepted shows in the results."""
    flows = [progress.streams for progress in history(store)]
    for name, ingest in case.job.streams.items():
        account, columns = accounts.streams[name], [c.name for c in ingest.stream.columns]
        late = _bag(store, f"late/{name}", [*columns, WATERMARK])
        rejected = _bag(store, f"rejected/{name}", [*columns, REASON, ROW])
        yield from _compared(f"late tuples of {name}", late, account.late)
        yield from _compared(f"rejected rows of {name}", rejected, account.rejected)
        sent = sum(len(batch.rows[name]) for batch in case.batches)
        accepted = sum(flow[name].rows for flow in flows)
        if accepted + late.total() + rejected.total() != sent:
            yield Difference(
                f"{sent} rows of {name} became {accepted} accepted, {late.total()} late and "
                f"{rejected.total()} rejected"
            )


def _has_migrated(store: FaultyStore) -> bool:
    """Whether the last batch was the first or second of a plan."""
    return any(event["phase"] == "done" for done in history(store)[-2:] for event in done.events)


def _incomplete(case: Case, simulation: Simulation) -> Iterator[Difference]:
    """A state that is whole holds each row that may still be needed, once.

    Of tuples that were combined, and of panes, the results have to tell.
    """
    store = simulation.store
    decision, accounts = latest(store), oracle.accounts(case, _clocks(store))
    assert decision is not None
    for name, plan in _plans(case, decision).items():
        for node, keep in _states(plan):
            key = identity(node).key
            owner, _ = decision.partial.get(key, ("", 0))
            if owner == name or any(isinstance(n, Combine | GroupBy) for n in walk(node)):
                continue
            physicals = [physical(identity(node), column) for column in node.columns]
            actual = oracle.bag(store.load(state_table(key)), physicals)
            expected = oracle.bag(
                oracle.content(case, name, node, accounts), [str(c) for c in node.columns]
            )
            times = [
                at for at, c in enumerate(node.columns) if c in plan.query.event_times.values()
            ]
            since = None if accounts.watermark is None else accounts.watermark - keep
            yield from _compared(
                f"state {key} of {name} after batch {len(case.batches) - 1}",
                _younger(actual, times, since),
                _younger(expected, times, since),
            )


def _younger(rows: Mapping[tuple[Any, ...], int], times: Sequence[int], since: int | None) -> Bag:
    """Rows none of whose times is earlier than that: their partners may be just in time."""
    return Bag(
        {
            row: count
            for row, count in rows.items()
            if since is None or all(row[at] >= since for at in times)
        }
    )


def _overdue(
    case: Case, store: FaultyStore, watermarks: Sequence[int | None]
) -> Iterator[Difference]:
    """Files whose rows the last batch could not need any more, or that go too early or too late.

    They are dropped with that batch's commit, unless they were filled just before.  A plan before
    this one may have kept rows for longer, and so in wider partitions.
    """
    if len(watermarks) < 2 or (watermark := watermarks[-2]) is None:
        return
    widest = Widths({name: max(WIDTHS) * width for name, width in case.job.widths.given.items()})
    longest = max(plan.query.bounds.longest for plan in case.job.plans.values())
    for table, (node, keep) in _kept(case, store).items():
        needed_from, width = _needed_from(node), widest.of(node, longest)
        for file in store.files(table) if store.exists(table) else ():
            until, filled = file.until or 0, any((table, file.until) in f for f in store.filled)
            if until + keep <= watermark and not filled:
                yield Difference(f"{table} still has {file}, {keep} past: {watermark}")
            rows = oracle.in_micros(store.read(table, [file])).to_pylist()
            youngest = max(map(needed_from, rows))
            if not youngest < until <= youngest + 1 + width:
                yield Difference(f"{table} has {file}, whose youngest row is of {youngest}")


def _kept(case: Case, store: FaultyStore) -> dict[str, tuple[Node, int]]:
    """Each table of a state, an operator that fills it, and for how long any query needs a row."""
    decision = latest(store)
    assert decision is not None
    queries = {name: plan.query for name, plan in case.job.plans.items()}
    plans = [*_plans(case, decision).values()]
    needed = {f"state/{key}" for plan in plans for key in states(plan.root)}
    if decision.migration is not None:
        request = decision.migration["request"]
        plans.append(from_json(queries[request["query"]], request["plan"]))
        needed |= {f"state/{key}" for key in Migration.from_json(decision.migration).touched}
    kept: dict[str, tuple[Node, int]] = {}
    for plan in plans:
        for node, keep in _states(plan):
            table = f"state/{identity(node).key}"
            _, known = kept.get(table, (node, 0))
            kept[table] = node, max(keep, known)
    return {table: found for table, found in kept.items() if table in needed}


def _plans(case: Case, decision: BatchDecision) -> dict[str, Plan]:
    """Those that a decision says, for each query."""
    return {
        name: from_json(plan.query, decision.plans[name]) for name, plan in case.job.plans.items()
    }


def _states(plan: Plan) -> Iterator[tuple[Node, int]]:
    bounds, aliases = plan.query.bounds, plan.query.aliases
    for node in walk(plan.root):
        if isinstance(node, GroupBy):
            yield node, oracle.wait(plan.query)
        if isinstance(node, Join):
            for part in node.parts:
                others = [alias for alias in aliases if alias not in part.aliases]
                yield part, max(0, *(bounds[o, a] for a in part.aliases for o in others))


def _needed_from(node: Node) -> Callable[[Mapping[str, int]], int]:
    """The time from which a row's retention counts: its smallest, or its last window's end."""
    if isinstance(node, GroupBy):
        size = node.grouping.size
        return lambda row: row[SLOT] + size
    names = identity(node)
    times = [ColumnRef(n.alias, n.stream.event_time) for n in walk(node) if isinstance(n, Source)]
    found = [physical(names, column) for column in node.columns if column in times]
    return lambda row: min(row[time] for time in found)


def _tables(case: Case, simulation: Simulation) -> Iterator[Difference]:
    """Nothing but the tables that somebody reads."""
    known = {DECISIONS, PROGRESS, REQUESTS, MIGRATIONS, *_kept(case, simulation.store)}
    known |= {result_table(query) for query in case.job.plans}
    known |= {f"{kind}/{stream}" for kind in ("late", "rejected") for stream in case.job.streams}
    if orphans := [table for table in simulation.store.tables() if table not in known]:
        yield Difference(f"tables that nobody reads: {', '.join(orphans)}")


def _copies(simulation: Simulation) -> Iterator[Difference]:
    """The executor's copy of each state is what its files hold, but for rows that are overdue."""
    engine = simulation.engine
    if engine is None:
        return
    for operator in engine.program.operators:
        if operator.kept:
            key, cutoff = operator.key, engine.states.cutoff(operator.key)
            stored = simulation.store.read(state_table(key), engine.states.files[key])
            copied = engine.backend.rows(relation_of(key))
            names = [name for name in stored.column_names if name not in (BATCH, UNTIL)]
            needed = [_needed(rows, names, operator.node, cutoff) for rows in (copied, stored)]
            yield from _compared(f"the copy of {relation_of(key)}", *needed)
            if more := oracle.bag(copied, names) - oracle.bag(stored, names):
                yield Difference(f"the copy of {relation_of(key)} alone has {more}")


def _needed(rows: pa.Table, names: Sequence[str], node: Node, cutoff: int) -> Bag:
    """The rows that are not overdue."""
    needed_from = _needed_from(node)
    alive = [needed_from(row) >= cutoff for row in oracle.in_micros(rows).to_pylist()]
    return oracle.bag(rows.filter(pa.array(alive, pa.bool_())), names)
