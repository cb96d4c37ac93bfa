"""Runs a plan over a little input and says what should have come out."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

from jobs.backends import SqlBackend
from jobs.engine.ingest import Ingest
from jobs.engine.microbatch import WINDOWS, Engine, Job
from jobs.tables.columns import REASON, ROW
from jobs.tables.names import result_table
from jobs.tables.store import Store
from optimizer.plan import Plan
from optimizer.query import Query
from optimizer.window import MICROSECONDS
from tests.jobs.engine.cases import STREAMS

BEGAN = 1_700_000_000 * MICROSECONDS
SPAN = 8 * MICROSECONDS
"""For how long events happen."""

ROWS = {1: 80, 2: 60, 3: 36, 4: 24, 5: 16}
"""How many tuples a stream has, by the number of inputs."""

_TYPES = {
    "n": pa.int64(),
    "k": pa.int64(),
    "j": pa.int64(),
    "i": pa.int32(),
    "price": pa.decimal128(8, 2),
    "weight": pa.float64(),
    "flag": pa.bool_(),
    "word": pa.string(),
    "ts": pa.timestamp("us", "UTC"),
}


@dataclass(frozen=True)
class Delivery:
    """How the same tuples arrive: in how many batches, how far out of order, how late at most."""

    batches: int
    disorder: float = 0
    lateness: float = 0


IN_ORDER = Delivery(4)
AT_ONCE = Delivery(1)
DISORDERED = Delivery(6, disorder=2, lateness=2)
LATE = Delivery(6, disorder=2, lateness=0.25)
DELIVERIES = (IN_ORDER, DISORDERED, LATE, AT_ONCE)


def tuples(query: Query, seed: int = 1, times: int = 1) -> dict[str, pa.Table]:
    """All tuples of a query's streams in event order; keys are few, and some are null.

    As many `times` as usual, for as many times as long.
    """
    r = Random(seed)
    count = ROWS[len(query.inputs)] * times
    return {s.name: _stream(r, count, SPAN * times) for s in query.streams.values()}


def _stream(r: Random, count: int, span: int) -> pa.Table:
    def some(value: Any) -> Any:
        return None if r.random() < 0.05 else value

    def price() -> str:
        return f"{r.randrange(-500, 2000) / 100:.2f}"

    times = sorted(BEGAN + r.randrange(span // 1000) * 1000 for _ in range(count))
    rows = {
        "n": list(range(count)),
        "k": [some(r.randrange(4)) for _ in times],
        "j": [some(r.randrange(3)) for _ in times],
        "i": [some(r.randrange(5)) for _ in times],
        "price": [some(price()) for _ in times],
        "weight": [some(r.randrange(16) / 4) for _ in times],
        "flag": [some(r.random() < 0.5) for _ in times],
        "word": [some(r.choice(["", "one", "two's", "drei"])) for _ in times],
        "ts": times,
    }
    texts = {"price": pa.string()}
    return pa.table(
        {c: pa.array(v, texts.get(c, _TYPES[c])).cast(_TYPES[c]) for c, v in rows.items()}
    )


def deliver(
    streams: Mapping[str, pa.Table], how: Delivery, seed: int = 2
) -> Iterator[dict[str, pa.Table]]:
    """Batches of raw rows; some may have nothing of a stream."""
    r = Random(seed)
    arrivals = {
        name: [(t + r.uniform(0, how.disorder) * 1e6 - BEGAN) / SPAN for t in _micros(rows)]
        for name, rows in streams.items()
    }
    end = max(max(times) for times in arrivals.values()) + 1e-9
    for batch in range(how.batches):
        yield {
            name: _raw(rows.filter([int(at / end * how.batches) == batch for at in arrivals[name]]))
            for name, rows in streams.items()
        }


def _micros(rows: pa.Table) -> list[int]:
    micros: list[int] = rows.column("ts").cast(pa.int64()).to_pylist()
    return micros


def _raw(rows: pa.Table) -> pa.Table:
    nothing = pa.nulls(rows.num_rows, pa.string())
    return rows.append_column(REASON, nothing).append_column(ROW, nothing)


def run(
    plan: Plan,
    store: Store,
    backend: SqlBackend,
    how: Delivery,
    convert: Callable[[pa.Table], Any] = lambda rows: rows,
) -> None:
    """Carry out all batches of one plan, every other as one that spans many windows."""
    engine = Engine(job_of(plan, how), store, backend, clock=lambda: BEGAN + SPAN)
    for number, batch in enumerate(deliver(tuples(plan.query), how)):
        if number == how.batches // 2:
            while engine.compact():
                pass
        engine.windows = 0 if number % 2 == 0 else WINDOWS
        engine.run(number, {name: convert(rows) for name, rows in batch.items()})


def job_of(plan: Plan, how: Delivery) -> Job:
    """A job of that plan alone."""
    lateness = round(how.lateness * MICROSECONDS)
    ingests = {s.name: Ingest(s, lateness) for s in plan.query.streams.values()}
    return Job("contract", ingests, {"q": plan})


def expected(query: Query, oracle: str, store: Store, how: Delivery, times: int = 1) -> pa.Table:
    """What the oracle says of all tuples that the late tables do not have."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    streams = tuples(query, times=times)
    for name, rows in streams.items():
        late = set()
        if store.exists(f"late/{name}"):
            late = set(store.load(f"late/{name}").column("n").to_pylist())
        taken = rows.filter([n not in late for n in rows.column("n").to_pylist()])
        connection.register(name, taken)
    closed = min(max(_micros(rows)) for rows in streams.values()) - round(how.lateness * 1e6)
    return connection.execute(oracle.replace(":closed", str(closed))).to_arrow_table()


def results(store: Store) -> pa.Table:
    """What the query has put out."""
    return store.load(result_table("q"))


def bag(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    """Rows as a multiset, whatever the order of the columns."""
    names = sorted(rows.column_names)
    plain = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for column in map(rows.column, names)
    ]
    values = zip(*(column.to_pylist() for column in plain), strict=True)
    return Counter(tuple(zip(names, row, strict=True)) for row in values)


def streams_of(plan: Plan) -> set[str]:
    """The names of the streams that a plan reads."""
    return {s.name for s in plan.query.streams.values()} & STREAMS.keys()
