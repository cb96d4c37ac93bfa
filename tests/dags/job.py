"""A job that makes up its input and starts with the wrong join order, so that there is a drift."""

from pathlib import Path
from typing import Any

import yaml

SECONDS = 10
"""Of a window of statistics, and of the query's."""

QUERY = "paid"
WRONG = "((o v) p)"
"""Few customers order much and look at much: joining those two first makes many pairs."""


def write(directory: Path, **changes: Any) -> Path:
    """The job file; `changes` are fields in place of the usual ones."""
    path = directory / f"{changes.get('job', 'shop')}.yaml"
    path.write_text(yaml.safe_dump(_content(path.stem) | changes, sort_keys=False))
    return path


def _content(name: str) -> dict[str, Any]:
    return {
        "job": name,
        "engine": "duckdb",
        "storage": name,
        "trigger": "2 seconds",
        "streams": {
            "orders": _stream("id BIGINT, customer BIGINT", 100, 1, id=2000, customer=10),
            "payments": _stream("order_id BIGINT, paid DOUBLE", 60, 2, order_id=2000),
            "visits": _stream("customer BIGINT, page STRING", 20, 3, customer=10),
        },
        "queries": {
            QUERY: {
                "sql": f"SELECT o.id, p.paid, v.page FROM orders o [RANGE {SECONDS} SECONDS]"
                f" JOIN payments p [RANGE {SECONDS} SECONDS] ON o.id = p.order_id"
                f" JOIN visits v [RANGE {SECONDS} SECONDS] ON o.customer = v.customer",
                "plan": WRONG,
            }
        },
        "statistics": {"window": f"{SECONDS} seconds", "every": "2 minutes"},
        "reoptimize": {"drift": 0.1, "windows": 2, "cooldown": "1 second", "horizon": "1 hour"},
    }


def _stream(columns: str, rate: int, seed: int, **keys: int) -> dict[str, Any]:
    return {
        "source": "generator",
        "generator": {"rate": rate, "keys": keys, "seed": seed},
        "schema": f"{columns}, ts TIMESTAMP",
        "event_time": "ts",
        "lateness": "1 second",
    }
