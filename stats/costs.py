"""What units of work cost on this machine, as fitted: a Delta table with its history.

A fit is in force until the next one of the same executor.  Before the first there are the shipped
costs, measured elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError

from optimizer.workload import UnitCosts
from stats.store import TIME, StatsStore, load, readable

UNITS = ("statement", "scan", "probe", "match", "write", "write_byte")
"""The unit costs of the `batch` method: what plans differ in."""

BASE = ("batch", "take", "result")
"""What a job needs whatever its plan: for a batch, a tuple taken in, a result."""

_SCHEMA = pa.schema(
    [
        ("executor", pa.string()),
        ("name", pa.string()),
        ("value", pa.float64()),  # seconds
        ("low", pa.float64()),  # of its 90 % interval
        ("high", pa.float64()),
        ("valid_from", TIME),  # when it was fitted
        ("valid_until", TIME),  # null while in force
        ("batches", pa.int64()),  # that it rests on
        ("error", pa.float64()),  # median relative error over their windows
    ]
)


@dataclass(frozen=True)
class Costs:
    """CPU-seconds for one unit of each kind of work."""

    statement: float
    scan: float
    probe: float
    match: float
    write: float
    write_byte: float
    batch: float
    take: float
    result: float

    @property
    def units(self) -> UnitCosts:
        """Those that the cost model of plans knows."""
        return UnitCosts(**{name: getattr(self, name) for name in UNITS})

    @classmethod
    def of(cls, values: Mapping[str, float]) -> "Costs":
        """By name."""
        return cls(**{field.name: values[field.name] for field in fields(cls)})

    @property
    def values(self) -> dict[str, float]:
        """By name, the units first."""
        return {name: getattr(self, name) for name in (*UNITS, *BASE)}


SHIPPED: Mapping[str, Costs] = {
    "duckdb": Costs(
        statement=1.2e-2, scan=7e-8, probe=2e-8, match=1e-7,
        write=4e-8, write_byte=9e-9, batch=5e-2, take=1e-7, result=6e-7,
    ),
    "spark-duckdb": Costs(
        statement=9.8e-2, scan=1.1e-7, probe=8e-8, match=2.5e-7,
        write=1.4e-7, write_byte=2e-9, batch=1.7e-1, take=3.6e-7, result=6.3e-7,
    ),
    "spark": Costs(
        statement=2.8e-1, scan=4e-7, probe=2.8e-7, match=5.6e-7,
        write=5.6e-7, write_byte=1e-8, batch=1.1, take=2.5e-6, result=6.4e-6,
    ),
}  # fmt: skip
"""Measured with `midstream bench calibration`, on two cores of a slow machine."""


@dataclass(frozen=True)
class Fit:
    """Costs fitted to what was measured, and how sure that is."""

    costs: Costs
    low: Mapping[str, float]
    high: Mapping[str, float]
    """The 90 % interval of each."""
    batches: int
    error: float
    """Median relative error of what they predict for the same measurements."""


def in_force(store: StatsStore, executor: str) -> Costs | None:
    """The last ones fitted for an executor, if any ever were; shipped where a unit is newer."""
    rows = [r for r in history(store) if r["executor"] == executor and r["valid_until"] is None]
    fitted = {row["name"]: row["value"] for row in rows}
    return Costs.of(SHIPPED[executor].values | fitted) if rows else None


def known(store: StatsStore, executor: str) -> Costs:
    """The costs to reckon with: fitted, or shipped."""
    return in_force(store, executor) or SHIPPED[executor]


def history(store: StatsStore) -> list[dict[str, Any]]:
    """All that were ever in force, the oldest first; times in microseconds."""
    found = _read(store)
    for name in ("valid_from", "valid_until"):
        column = found.schema.get_field_index(name)
        found = found.set_column(column, name, found.column(name).cast(pa.int64()))
    return list(found.sort_by("valid_from").to_pylist())


def keep(store: StatsStore, executor: str, fit: Fit, at: int) -> None:
    """Put a fit in force, and what was until then into history, by one commit."""
    before = [
        row | {"valid_until": at}
        if row["executor"] == executor and row["valid_until"] is None
        else row
        for row in history(store)
    ]
    fitted = [
        {
            "executor": executor, "name": name, "value": value,
            "low": fit.low[name], "high": fit.high[name],
            "valid_from": at, "valid_until": None,
            "batches": fit.batches, "error": fit.error,
        }
        for name, value in fit.costs.values.items()
    ]  # fmt: skip
    path = store.path("costs")
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = pa.Table.from_pylist([*before, *fitted], schema=_SCHEMA)
    with readable(path):
        write_deltalake(path, rows, mode="overwrite", schema_mode="overwrite")


def _read(store: StatsStore) -> pa.Table:
    path = store.path("costs")
    with readable(path):
        try:
            return load(DeltaTable(path), _SCHEMA)
        except TableNotFoundError:
            return _SCHEMA.empty_table()
