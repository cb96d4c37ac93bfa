"""Benchmarks: `midstream bench NAME [--json]`.

Each is a function with typer parameters, one of them `json`, that prints its own figures.
"""

BENCHES: dict[str, str] = {
    "calibration": "tests.bench.calibration:calibration",
    "collect": "tests.bench.collect:collect",
    "crash": "tests.bench.crash:crash",
    "differential": "tests.bench.differential:differential",
    "drift": "tests.bench.drift:drift",
    "durability": "tests.bench.durability:durability",
    "files": "tests.bench.files:files",
    "migration": "tests.bench.migration:migration",
    "flights": "tests.bench.flights:flights",
    "mutation": "tests.bench.mutation:mutation",
    "native-join": "tests.bench.native_join:native_join",
    "network": "tests.bench.network:network",
    "orders": "tests.bench.orders:orders",
    "placement": "tests.bench.placement:placement",
    "qualified": "tests.bench.qualified:qualified",
    "rate": "tests.bench.rate:rate",
    "search": "tests.bench.search:search",
    "simulate": "tests.bench.simulate:simulate",
    "status": "tests.bench.status:status",
    "unit-costs": "tests.bench.unit_costs:unit_costs",
    "week": "tests.bench.week:week",
}
"""Name to `module:function`, imported when it is run."""
