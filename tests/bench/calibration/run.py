"""Runs a plan on the engine, without a streaming query around it, and measures its CPU time."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import time_ns

import pyarrow.parquet as pq

from jobs.engine.ingest import Ingest
from jobs.engine.microbatch import Engine, Job
from jobs.engine.process_usage import meter
from jobs.tables.delta_store import DeltaStore
from jobs.tables.names import result_table
from optimizer.memo import Offer
from optimizer.workload import UnitCosts
from stats.calibrate import Measurement, work
from tests.bench.calibration.loads import Load
from tests.bench.engines import open_engine


@dataclass(frozen=True)
class Run:
    """A plan of a load, and what it took once its windows were full."""

    load: str
    plan: str
    seconds: float
    """Of input."""
    measured: Measurement
    results: int

    @property
    def cpu(self) -> float:
        """CPU-seconds per second of input."""
        return self.measured.cpu / self.seconds


def run(load: Load, engine: str, count: int, directory: Path, seed: int) -> Iterator[Run]:
    """So many plans of a load, over the same tuples; what comes first warms up, and is left out."""
    for name in load.rates:
        for batch in range(load.filling + load.batches):
            path = directory / f"{load.name}-{name}-{batch}.parquet"
            pq.write_table(load.batch_of(name, batch, seed), path)
    offers = load.plans(count)
    _run(load, offers[0], engine, directory)
    for offer in offers:
        yield _run(load, offer, engine, directory)


def _run(load: Load, offer: Offer, engine: str, directory: Path) -> Run:
    executor, read = open_engine(engine)
    streams = {name: Ingest(load.stream(name)) for name in load.rates}
    with TemporaryDirectory(dir=directory) as storage:
        store, measure = DeltaStore(Path(storage)), meter()
        job = Job("calibration", streams, {"q": offer.plan})
        runs = Engine(job, store, executor, lambda: time_ns() // 1000, writers=2)
        cpu = results = 0.0
        for batch in range(load.filling + load.batches):
            inputs = {n: read(directory / f"{load.name}-{n}-{batch}.parquet") for n in streams}
            before = measure().cpu
            progress = runs.run(batch, inputs)
            if batch >= load.filling:
                cpu += measure().cpu - before
                results += progress.results["q"]
        runs.close()
        put_out = sum(file.rows for file in store.files(result_table("q")))
    seconds = float(load.batch * load.batches)
    done = work({"q": offer.plan}, {"q": load.workload(UnitCosts())})
    base = {"batch": load.batches, "take": load.rate * seconds, "result": results}
    amounts = {unit: amount * seconds for unit, amount in done.items()} | base
    return Run(load.name, str(offer), seconds, Measurement(amounts, cpu, load.batches), put_out)
