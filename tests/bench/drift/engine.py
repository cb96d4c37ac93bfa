"""The step once more, through the engine: real batches, states and a real migration, on DuckDB.

Statistics are counted by DuckDB over the rows of each window, exactly; everything from there on is
what `midstream reoptimize` does.  Beside it the same input without migration, and with one asked
for before the first batch that is different.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import duckdb
import yaml

from jobs import specs, streaming
from jobs.backends.duckdb.backend import DuckBackend
from jobs.deciding.candidates import best
from jobs.deciding.reoptimization import Asked, reoptimize
from jobs.engine.microbatch import Engine
from jobs.engine.migration.migrator import plan_fingerprint
from jobs.planning_task import Task
from jobs.tables.delta_store import DeltaStore
from jobs.tables.lease import lease
from jobs.tables.names import result_table
from jobs.tables.progress import Progress
from jobs.tables.requests import Request, append_request, read_events
from optimizer.drift import Policy
from optimizer.plan import Plan, as_written, to_json
from optimizer.workload import Budget
from stats.store import BATCHES, EDGES, OPERATORS, STREAMS, VERDICTS, StatsStore, Window
from tests.bench.chain import BEGAN, Chain, Values
from tests.bench.drift.simulated import STRATEGY
from tests.bench.engines import open_engine
from tests.bench.migration.run import _checksum, scratch

PARTNERS = (12.0, 0.1)
"""A tuple's partners on each key at first; after the step it is the other way round."""

PER_WINDOW = 2
"""Batches of a window of the statistics."""

POLICIES = ("never", "drift", "clairvoyant")


@dataclass
class Trip:
    """What a run came to."""

    cpu: list[float]
    sink: list[int]
    """Results that the sink held after each batch."""
    decided: list[dict[str, Any]]
    cut_overs: list[int]
    plan: str
    results: tuple[int, int]


def step(chain: Chain, batches: int, at: int) -> dict[str, Any]:
    """All three, over the same rows; selectivities are reversed before a batch."""
    orders = chain.values(PARTNERS), chain.values(PARTNERS[::-1])
    with scratch() as directory:
        chain.write(directory / "data", [orders[batch >= at] for batch in range(batches)])
        trips = {
            policy: travel(chain, directory, policy, orders, batches, at) for policy in POLICIES
        }
    after = {policy: sum(trip.cpu[at:]) for policy, trip in trips.items()}
    return {
        "step": at,
        "batches": batches,
        "decided": trips["drift"].decided,
        "cut_overs": {policy: trip.cut_overs for policy, trip in trips.items()},
        "plans": {policy: trip.plan for policy, trip in trips.items()},
        "cpu_after_step": after,
        "cpu_per_batch": {policy: median(trip.cpu[-6:]) for policy, trip in trips.items()},
        "same_results": len({trip.results for trip in trips.values()}) == 1,
        "results": trips["never"].results[0],
    }


def travel(
    chain: Chain, directory: Path, policy: str, orders: tuple[Values, Values], batches: int, at: int
) -> Trip:
    """Run all batches; the clock goes by their event time."""
    job = specs.load(job_file(chain, directory, policy, ideal(chain, orders[0])))
    asks = {at: ideal(chain, orders[1])} if policy == "clairvoyant" else {}
    return run(chain, job, batches, decides=policy == "drift", asks=asks)


def run(
    chain: Chain, job: specs.Job, batches: int, *, decides: bool, asks: Mapping[int, Plan]
) -> Trip:
    """A job over the files of the streams; before some batches, a plan is asked for."""
    storage, data = Path(job.storage), job.file.parent / "data"
    clock, store = [BEGAN], streaming.job_store(job)
    engine = Engine(
        streaming.engine_job(job), store, DuckBackend(writers=2), lambda: clock[0], writers=2
    )
    _, read = open_engine("duckdb")
    trip = Trip([], [], [], [], "", (0, 0))
    with lease(storage):
        for number in range(batches):
            clock[0] = BEGAN + (number + 1) * chain.batch * 1_000_000
            if number in asks:
                append_request(store, _known(asks[number], engine.plans["q"], clock[0]))
            inputs = {name: read(data / f"{name}-{number}.parquet") for name in chain.streams}
            began = process_time()
            done = engine.run(number, inputs)
            trip.cpu.append(process_time() - began)
            trip.sink.append(_held(store))
            if decides and (number + 1) % PER_WINDOW == 0:
                gather(chain, data, StatsStore.of(storage), number, done)
                trip.decided.append(_decided(job, number, clock[0]))
    trip.cut_overs = [event.batch for event in read_events(store) if event.phase == "done"]
    trip.plan, trip.results = str(engine.plans["q"]), _checksum(store)
    engine.close()
    return trip


def _held(store: DeltaStore) -> int:
    """The rows in the sink."""
    table = result_table("q")
    return store.table(table).to_pyarrow_dataset().count_rows() if store.exists(table) else 0


def ideal(chain: Chain, values: Values) -> Plan:
    """The best plan that a search knows."""
    query = chain.query
    task = Task("q", query, chain.workload(values), Budget(), as_written(query))
    return best(task, (), STRATEGY, Policy().near).priced.plan


def _known(plan: Plan, running: Plan, now: int) -> Request:
    """To be asked before the first batch that is different."""
    root, base = to_json(plan.root), plan_fingerprint(running)
    return Request("known", now, query="q", plan=root, base=base, strategy="moving-state")


def _decided(job: specs.Job, batch: int, now: int) -> dict[str, Any]:
    found = reoptimize(job, "q", Asked(now, "bench", "after every window"))
    return {
        "batch": batch,
        "outcome": str(found.outcome),
        "to": found.chosen if found.migrates else None,
        "reason": found.reasons[0],
    }


def job_file(chain: Chain, directory: Path, name: str, plan: Plan, **changes: Any) -> Path:
    """A job that begins with that plan; its storage is called as its file is."""
    stream = {
        "source": "files", "path": "data", "format": "parquet", "event_time": "ts",
    }  # fmt: skip
    content = {
        "job": "drift",
        "engine": "duckdb",
        "storage": name,
        "trigger": f"{chain.batch} seconds",
        "streams": {name: stream | {"schema": _schema(chain, name)} for name in chain.streams},
        "queries": {
            "q": {
                "sql": chain.sql,
                "window": f"{chain.window} seconds",
                "plan": str(plan),
            }
        },
        "statistics": {"window": f"{PER_WINDOW * chain.batch} seconds"},
        "reoptimize": {"cooldown": "2 minutes"},
    }
    path = directory / f"{name}.yaml"
    path.write_text(yaml.safe_dump(content | changes, sort_keys=False))
    return path


def _schema(chain: Chain, name: str) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in chain.stream(name).columns)


# --- statistics ----------------------------------------------------------------------------------


def gather(chain: Chain, data: Path, store: StatsStore, last: int, done: Progress) -> None:
    """What the batches up to that one say of their window."""
    numbers = range(last + 1 - PER_WINDOW, last + 1)
    length = chain.batch * 1_000_000
    window = Window(BEGAN + numbers[0] * length, BEGAN + (last + 1) * length)
    with duckdb.connect() as db:
        counts = {}
        for name in chain.streams:
            files = [str(data / f"{name}-{number}.parquet") for number in numbers]
            db.read_parquet(files).create_view(name)
            (counts[name],) = db.execute(f"SELECT count(*) FROM {name}").fetchall()[0]
        edges = [_edge(chain, db, key, counts) for key in chain.keys]
    streams = [
        {"stream": name, "rows": n, "rate": n / window.seconds, "width": 8.0 * (len(keys) + 2)}
        for (name, keys), n in zip(chain.streams.items(), counts.values(), strict=True)
    ]
    operators = [
        {"operator": key, "state_rows": work.state_rows} for key, work in done.operators.items()
    ]
    store.replace(STREAMS, window, streams)
    store.replace(EDGES, window, edges)
    store.replace(OPERATORS, window, operators)
    store.replace(BATCHES, window, [{"batches": PER_WINDOW}])
    store.replace(VERDICTS, window, [{"good": True, "reasons": [], "checked": 0}])


def _edge(
    chain: Chain, db: duckdb.DuckDBPyConnection, key: str, counts: Mapping[str, int]
) -> dict[str, Any]:
    """The share of the pairs of two streams that have the same key."""
    one, other = (name for name, keys in chain.streams.items() if key in keys)
    each = [f"(SELECT {key}, count(*) AS n FROM {name} GROUP BY 1)" for name in (one, other)]
    text = f"SELECT sum(l.n * r.n) FROM {each[0]} AS l JOIN {each[1]} AS r USING ({key})"
    (matches,) = db.execute(text).fetchall()[0]
    pairs = counts[one] * counts[other]
    return {
        "query": "q", "one": one, "other": other, "pairs": float(pairs),
        "matches": float(matches), "selectivity": float(matches) / pairs, "method": "exact",
    }  # fmt: skip
