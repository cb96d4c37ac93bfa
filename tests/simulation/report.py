"""A failed case in words: what differed, and the query, plan and schedule that made it differ."""

from collections.abc import Iterator

from jobs.engine.ingest import Ingest
from jobs.tables.requests import Request
from optimizer.plan import Join, Plan, from_json, tree_of, walk
from tests.simulation import oracle
from tests.simulation.case import Batch, Case
from tests.simulation.run import Outcome


def replay(seed: int, *, migrations: bool) -> str:
    """The command that runs one seed again."""
    return f"midstream bench simulate --seeds {seed}..{seed}" + " --migrations" * migrations


def report(case: Case, outcome: Outcome) -> str:
    """All there is to know, with the command that says it again."""
    return "\n".join(_lines(case, outcome))


def _lines(case: Case, outcome: Outcome) -> Iterator[str]:
    migrations = any(batch.wishes for batch in case.batches)
    yield f"seed {case.seed} fails; run it again: {replay(case.seed, migrations=migrations)}"
    for difference in outcome.differences:
        yield f"  {difference}"
    for name, plan in case.job.plans.items():
        yield f"  query {name}: {oracle.sql(plan.query, case.limits[name], None)}"
        yield f"  plan of {name}: {plan}{_orders(plan)}"
    yield f"  partitions in us: {dict(case.job.widths.given)}; the clock begins at {case.began}"
    for name, ingest in case.job.streams.items():
        yield f"  stream {name}: {_stream(ingest)}"
    for number, batch in enumerate(case.batches):
        events = outcome.events[number] if number < len(outcome.events) else ()
        for wish in batch.wishes:
            yield f"  asked: {_wish(case, wish)}"
        yield f"  batch {number}: {_batch(batch, events)}"


def _wish(case: Case, wish: Request) -> str:
    if wish.plan is None:
        return f"{wish.id}: {wish.kind} {wish.target}"
    plan = from_json(case.job.plans[wish.query].query, dict(wish.plan))
    more = "".join(
        f", {name} {value}"
        for name, value in (
            ("proof", wish.proof), ("held", wish.hold), ("at batch", wish.at_batch),
            ("limit", wish.limit), ("before", wish.before), ("after", wish.after),
            ("made against", wish.base),
        )
        if value
    )  # fmt: skip
    return f"{wish.id}: {wish.strategy} of {wish.query} to {plan}{_orders(plan)}{more}"


def _orders(plan: Plan) -> str:
    joins = [node for node in walk(plan.root) if isinstance(node, Join)]
    return "".join(f"; {tree_of(node)} probes {node.orders}" for node in joins)


def _stream(ingest: Ingest) -> str:
    columns = ", ".join(column.name for column in ingest.stream.columns)
    idle = "never" if ingest.idle_after is None else f"after {ingest.idle_after}"
    return f"({columns}), lateness {ingest.lateness}, idle {idle}, ahead {ingest.ahead}"


def _batch(batch: Batch, events: tuple[str, ...]) -> str:
    parts = [
        f"{name}: {' '.join(map(str, rows))}" for name, rows in batch.rows.items() if rows
    ] or ["nothing"]
    parts += [f"a crash {event}" for event in events]
    parts += ["a restart"] if batch.restart else []
    parts += [f"a table {batch.loss}"] if batch.restart and batch.loss else []
    parts += ["others write to the results"] if batch.guests else []
    parts += ["handed over again"] if batch.again else []
    return f"{batch.pause} us later; {'; '.join(parts)}"
