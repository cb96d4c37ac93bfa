"""The queries whose plans are kept, each with the workload that it is priced under."""

from dataclasses import dataclass, field
from typing import Any

from optimizer.query import Query, Stream
from optimizer.sql import parse, parse_schema
from optimizer.window import MICROSECONDS
from optimizer.workload import Budget, Method, StreamLoad, UnitCosts, Workload

STREAMS = {
    name: Stream(name, parse_schema(schema), "ts")
    for name, schema in {
        "flights": "num STRING, gate STRING, dest STRING, terminal STRING, ts TIMESTAMP",
        "baggage": "flight STRING, status STRING, pieces INT, ts TIMESTAMP",
        "checkins": "flight STRING, status STRING, agent BIGINT, ts TIMESTAMP",
        "weather": "airport STRING, wind DOUBLE, ts TIMESTAMP",
        "trades": "symbol STRING, price DOUBLE, volume BIGINT, ts TIMESTAMP",
        "a": "k BIGINT, v DOUBLE, ts TIMESTAMP",
        "b": "k BIGINT, j BIGINT, v DOUBLE, ts TIMESTAMP",
        "c": "j BIGINT, v DOUBLE, ts TIMESTAMP",
        "d": "j BIGINT, i BIGINT, v DOUBLE, ts TIMESTAMP",
        "e": "i BIGINT, v DOUBLE, ts TIMESTAMP",
        "f": "i BIGINT, v DOUBLE, ts TIMESTAMP",
    }.items()
}


@dataclass(frozen=True)
class Case:
    """A query, one of its plans, and what it is priced under; without rates, what is assumed."""

    name: str
    sql: str
    plan: str
    rates: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Tuples a second and bytes of a tuple, by alias."""
    joins: dict[str, float] = field(default_factory=dict)
    """Selectivities by the aliases of a pair: `f b`."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Whatever else the workload says."""
    seconds: int | None = None
    """The window of all pairs, where the SQL says none."""
    budget: Budget = field(default_factory=Budget)
    picture: bool = False

    @property
    def query(self) -> Query:
        """As the SQL says."""
        window = None if self.seconds is None else self.seconds * MICROSECONDS
        return parse(self.sql, STREAMS, window)

    @property
    def workload(self) -> Workload:
        """As given, or assumed."""
        if not self.rates:
            return Workload.assume(self.query, **self.settings)
        streams = {alias: StreamLoad(*load) for alias, load in self.rates.items()}
        joins = {frozenset(pair.split()): share for pair, share in self.joins.items()}
        return Workload(streams, joins, **self.settings)


GATES = """
    SELECT f.num, f.gate, b.status AS bag, c.status AS checkin
    FROM flights f [RANGE 5 MINUTES]
    JOIN baggage b [RANGE 1 MINUTE] ON f.num = b.flight
    JOIN checkins c [RANGE 1 MINUTE] ON f.num = c.flight
"""
AIRPORT: dict[str, tuple[float, float]] = {"f": (2, 80), "b": (60, 40), "c": (25, 48)}
FLIGHTS = {"f b": 0.002, "f c": 0.002}

SIX = """
    SELECT a.v AS a, b.v AS b, c.v AS c, d.v AS d, e.v AS e, f.v AS f
    FROM a
    JOIN b ON a.k = b.k
    JOIN c ON b.j = c.j
    JOIN d ON c.j = d.j
    JOIN e ON d.i = e.i
    JOIN f ON e.i = f.i AND f.v > a.v
    WHERE d.v > 0.5
"""

MEASURED = UnitCosts(statement=5e-3, scan=1e-8, probe=1e-7, match=1e-7, write=2e-7, write_byte=1e-9)
"""Some machine's, so that plans stay as they are when the defaults are measured again."""

CASES = (
    Case("gates", GATES, "((f b) c)", AIRPORT, FLIGHTS,
         budget=Budget(cpu=1.5, bytes=2e6), picture=True),
    Case("gates-mjoin", GATES, "(f b c)", AIRPORT, FLIGHTS),
    Case("gates-moved", GATES, "((f c) b)", AIRPORT, FLIGHTS),
    Case("gates-nested-loop", GATES, "((f b) c)", AIRPORT, FLIGHTS,
         {"method": Method.NESTED_LOOP}),
    Case("gates-batch", GATES, "((f b)@db c)", AIRPORT, FLIGHTS,
         {"method": Method.BATCH, "batch": 10.0, "unit_costs": MEASURED}),
    Case("between", """
        SELECT f.num, b.pieces
        FROM flights f
        JOIN baggage b ON f.num = b.flight
         AND b.ts BETWEEN f.ts - INTERVAL 40 MINUTES AND f.ts + INTERVAL 5 MINUTES
        WHERE f.dest = 'LIS' AND b.status <> 'lost'
        """, "(f b)"),
    Case("cartesian", """
        SELECT f.num, w.wind, c.agent
        FROM flights f, weather w, checkins c
        WHERE f.num = c.flight AND f.dest = w.airport
        """, "(f (w c))", {"f": (2, 80), "w": (0.5, 24), "c": (25, 48)},
         {"f c": 0.002, "f w": 0.05}, seconds=600),
    Case("self-join", """
        SELECT x.symbol, x.price AS before, y.price AS after
        FROM trades x [RANGE 30 SECONDS]
        JOIN trades y [RANGE 0 SECONDS] ON x.symbol = y.symbol AND y.price > 1.1 * x.price
        """, "(x y)"),
    Case("statuses", """
        SELECT f.terminal, count(*) AS bags, sum(b.pieces) AS pieces, window.end AS until
        FROM flights f [RANGE 5 MINUTES]
        JOIN baggage b [RANGE 1 MINUTE] ON f.num = b.flight
        GROUP BY f.terminal, window(f.ts, '10 minutes', '2 minutes')
        """, "(f [b])", {"f": (2, 80), "b": (60, 40)}, {"f b": 0.002},
         {"groups": 5.0, "combine": {"b": 9.0}}, picture=True),
    Case("one-stream", """
        SELECT gate, count(*) AS flights, window.start AS since
        FROM flights
        WHERE terminal = 'B'
        GROUP BY gate, window(ts, '1 hour')
        """, "flights", settings={"groups": 30.0}),
    Case("six", SIX, "((a b c) ((d e) f))",
         {"a": (20, 24), "b": (35, 32), "c": (5, 24), "d": (80, 32), "e": (12, 24), "f": (3, 24)},
         {"a b": 0.01, "b c": 0.02, "c d": 0.005, "d e": 0.03, "e f": 0.1, "a f": 0.4},
         {"selects": {"d": 0.25}}, seconds=20, budget=Budget(cpu=1, tuples=5_000), picture=True),
)  # fmt: skip

MIGRATIONS = (("gates", "gates-moved"), ("gates-mjoin", "gates"))
"""Pairs of cases between which states are kept, rebuilt and dropped."""
