"""`unit-costs`: what the `batch` method's units of work cost, by least squares over measurements.

Each join is what one input of a binary join does in a batch: its new tuples probe the other's
state.  Sizes vary independently, so that what a statement, a scanned tuple, a probing tuple, a
match and a written tuple cost can be told apart.  CPU time counts, of all threads, as a budget
does.  The shipped defaults of `UnitCosts` come from here.
"""

import json as json_text
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path
from statistics import median
from time import process_time
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LinearRegression

from jobs.backends.duckdb.backend import DuckBackend
from jobs.engine.statements import parse
from jobs.tables.delta_store import DeltaStore

STATES = (1_000, 100_000, 400_000, 1_600_000)
NEWS = (1_000, 50_000, 300_000)
MATCHES = (0.02, 1.0, 4.0)
"""Matches per new tuple."""
WRITES = tuple(product((1_000, 50_000, 200_000), (2, 6)))
"""Tuples, and columns of each."""


@dataclass(frozen=True)
class Fit:
    """CPU-seconds per unit of each kind of work, and how well they explain what was measured."""

    costs: dict[str, float]
    error: float
    """The median relative error of the fit."""


def unit_costs(
    *,
    repeats: Annotated[int, typer.Option(help="Runs of each join; the median counts.")] = 5,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Measure the unit costs of the `batch` method on the DuckDB executor."""
    joins, writes = measure_joins(repeats), measure_writes(repeats)
    figures = {
        "costs": joins.costs | writes.costs,
        "median_relative_error": {"joins": joins.error, "writes": writes.error},
        "command": " ".join(["midstream", "bench", "unit-costs", *sys.argv[3:]]),
        "versions": {name: version(name) for name in ("duckdb", "deltalake", "pyarrow")},
    }
    if json:
        typer.echo(json_text.dumps(figures, indent=2))
        return
    table = Table("unit", "seconds", box=None)
    for name, cost in (joins.costs | writes.costs).items():
        table.add_row(name, f"{cost:.2e}")
    console = Console()
    console.print(table)
    console.print(f"median relative error: joins {joins.error:.0%}, writes {writes.error:.0%}")


def measure_joins(repeats: int) -> Fit:
    """Statement, scan, probe and match, from joins of all sizes."""
    work: list[tuple[float, ...]] = []
    seconds = []
    for state, new, matches in product(STATES, NEWS, MATCHES):
        rows, took = _join(state, new, matches, repeats)
        work.append((1.0, state, new, rows))
        seconds.append(took)
    return fit(("statement", "scan", "probe", "match"), work, seconds)


def measure_writes(repeats: int) -> Fit:
    """Writing a tuple and a byte of it, from files of several sizes, commits left out."""
    work: list[tuple[float, ...]] = []
    seconds = []
    for rows, columns in WRITES:
        work.append((1.0, rows, rows * columns * 8.0))
        seconds.append(_write(rows, columns, repeats))
    fitted = fit(("commit", "write", "write_byte"), work, seconds)
    return Fit({k: v for k, v in fitted.costs.items() if k != "commit"}, fitted.error)


def fit(names: tuple[str, ...], work: Sequence[tuple[float, ...]], seconds: Sequence[float]) -> Fit:
    """Costs that are not negative, each measurement counting by its relative error."""
    amounts, took = np.array(work), np.array(seconds)
    relative = LinearRegression(fit_intercept=False, positive=True)
    costs = relative.fit(amounts / took[:, None], np.ones(len(took))).coef_
    errors = np.abs(amounts @ costs - took) / took
    return Fit(dict(zip(names, map(float, costs), strict=True)), float(np.median(errors)))


def _join(state: int, new: int, matches: float, repeats: int) -> tuple[int, float]:
    """The matches of one join, and the seconds that it takes."""
    keys = max(1, round(max(state, 1) / matches))
    backend = DuckBackend()
    backend.put("given_state", _tuples(state, keys, seed=1))
    backend.run("state", parse("SELECT * FROM given_state"))
    backend.put("given_new", _tuples(new, keys, seed=2))
    backend.run("new", parse("SELECT * FROM given_new"))
    statement = parse(
        "SELECT n.k, n.ts, n.v, s.ts AS ts2, s.v AS v2 FROM new AS n JOIN state AS s ON n.k = s.k "
        "AND unix_micros(n.ts) <= unix_micros(s.ts) + 60000000 "
        "AND unix_micros(s.ts) <= unix_micros(n.ts) + 60000000"
    )
    backend.run("result", statement)
    took = [_timed(lambda: backend.run("result", statement)) for _ in range(repeats)]
    rows = backend.count("result")
    backend.close()
    return rows, median(took)


def _write(rows: int, columns: int, repeats: int) -> float:
    """The seconds to write and commit one file of a state."""
    data = _tuples(rows, rows, seed=3).select(["k"])
    for position in range(columns - 1):
        data = data.append_column(f"c{position}", data.column("k"))
    with tempfile.TemporaryDirectory() as directory:
        store = DeltaStore(Path(directory))
        store.create("state", data.schema)
        batches = iter(range(repeats + 1))

        def write() -> None:
            store.commit("state", [store.put("state", data)], next(batches))

        write()
        return median(_timed(write) for _ in range(repeats))


def _tuples(count: int, keys: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    times = 1_700_000_000_000_000 + random.integers(0, 30_000_000, count)
    return pa.table(
        {
            "k": pa.array(random.integers(0, keys, count)),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "v": pa.array(random.integers(0, 1_000_000, count)),
        }
    )


def _timed(action: Callable[[], object]) -> float:
    began = process_time()
    action()
    return process_time() - began
