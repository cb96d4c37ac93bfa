"""`orders`: every join order of a chain of four streams, as the cost model prices it and as it ran.

The joins differ in how many partners a tuple finds, so that it matters a lot with which one a plan
begins.  The engine runs alone, without a streaming query around it; states and output are durable.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import correlation, median
from tempfile import TemporaryDirectory
from time import perf_counter, time_ns
from typing import Annotated, Any

import typer

from jobs import show
from jobs.engine.ingest import Ingest
from jobs.engine.microbatch import Engine, Job
from jobs.engine.process_usage import cpu_seconds, java
from jobs.errors import InputError
from jobs.tables.delta_store import DeltaStore
from jobs.tables.names import result_table
from optimizer.memo import Offer
from tests.bench.chain import Chain
from tests.bench.engines import check_engine, open_engine

ROOT = Path(__file__).parents[2]
PARTNERS = (10.0, 1.0, 0.05)
"""How many tuples of a partner's window a tuple meets on each key."""

BATCH = 10
"""Seconds of input in a batch."""


@dataclass(frozen=True)
class Load:
    """How much of what comes in; every stream has the same rate."""

    rate: int
    window: int
    seconds: int

    @property
    def batches(self) -> int:
        """How many there are."""
        return self.seconds // BATCH

    @property
    def chain(self) -> Chain:
        """The streams."""
        return Chain(4, self.window, self.rate, BATCH)

    @property
    def values(self) -> dict[str, int]:
        """Of each key."""
        return self.chain.values(PARTNERS)


@dataclass(frozen=True)
class Run:
    """A plan: what the model says it needs, and what it took once its windows were full."""

    plan: str
    predicted: float
    """CPU-seconds per second of input."""
    cpu: float
    """The same, measured."""
    ms: float
    """What the engine took for a batch, the median."""
    rate: float
    """Tuples per second."""
    results: int


def orders(  # typer reads options from parameters
    engine: Annotated[str, typer.Option(help="duckdb, spark or spark-duckdb.")] = "duckdb",
    rate: Annotated[int, typer.Option(help="Tuples per second and stream.")] = 5_000,
    window: Annotated[int, typer.Option(help="Seconds.")] = 30,
    seconds: Annotated[int, typer.Option(help="How much input; a batch has 10 of them.")] = 80,
    plans: Annotated[int, typer.Option(min=2, help="How many, from best to worst.")] = 5,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """The join orders of a 4-stream query, from best to worst: predicted cost and measured work."""
    check_engine(engine)
    load = Load(rate, window, seconds)
    if load.batches <= load.chain.filling:
        raise InputError("too short: the windows are not full before the end", "--seconds")
    runs = list(_runs(engine, load, plans))
    report = {
        "command": " ".join(["midstream bench orders", *sys.argv[3:]]),
        "versions": {name: version(name) for name in ("pyspark", "deltalake", "duckdb")},
        "load": asdict(load) | {"partners": dict(zip(load.chain.keys, PARTNERS, strict=True))},
        "plans": [asdict(run) for run in runs],
        "worst_to_best": _ratios(runs[-1], runs[0]),
        "rank_correlation": _rank_correlation(runs),
    }
    if json:
        show.as_json(report)
    else:
        _show(report, runs)
    return 0 if len({run.results for run in runs}) == 1 else 1


# --- running them --------------------------------------------------------------------------------


def _runs(engine: str, load: Load, count: int) -> Iterator[Run]:
    offers = load.chain.ranked(load.values)
    chosen = sorted({round(i * (len(offers) - 1) / (count - 1)) for i in range(count)})
    scratch = ROOT / ".bench"
    scratch.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=scratch) as directory:
        data = Path(directory) / "data"
        load.chain.write(data, [load.values] * load.batches)
        _run(engine, offers[0], load, data)  # what comes first would pay for everything cold
        for position in chosen:
            yield _run(engine, offers[position], load, data)


def _run(engine: str, offer: Offer, load: Load, data: Path) -> Run:
    backend, read = open_engine(engine)
    chain = load.chain
    streams = {name: Ingest(chain.stream(name)) for name in chain.streams}
    with TemporaryDirectory(dir=data.parent) as storage:
        store = DeltaStore(Path(storage))
        job = Job("orders", streams, {"q": offer.plan})
        runs = Engine(job, store, backend, lambda: time_ns() // 1000, writers=2)
        took, began, cpu = [], 0.0, 0.0
        for batch in range(load.batches):
            if batch == chain.filling:
                began, cpu = perf_counter(), _cpu()
            files = {name: read(data / f"{name}-{batch}.parquet") for name in streams}
            took.append(sum(runs.run(batch, files).ms.values()))
        elapsed, used = perf_counter() - began, _cpu() - cpu
        runs.close()
        results = sum(file.rows for file in store.files(result_table("q")))
    full = BATCH * (load.batches - chain.filling)
    return Run(
        plan=str(offer),
        predicted=offer.total.cpu,
        cpu=used / full,
        ms=median(took[chain.filling :]),
        rate=chain.tuples * (load.batches - chain.filling) / elapsed,
        results=results,
    )


def _cpu() -> float:
    return cpu_seconds() + sum(map(cpu_seconds, java()))


# --- figures -------------------------------------------------------------------------------------


def _ratios(one: Run, other: Run) -> dict[str, float]:
    return {
        "predicted": one.predicted / other.predicted,
        "cpu": one.cpu / other.cpu,
        "ms": one.ms / other.ms,
        "throughput": other.rate / one.rate,
    }


def _rank_correlation(runs: Sequence[Run]) -> float:
    """Spearman's, between what was predicted and what the engine took."""
    predicted = _ranks([run.predicted for run in runs])
    return correlation(predicted, _ranks([run.ms for run in runs]))


def _ranks(values: Sequence[float]) -> list[int]:
    return [sorted(values).index(value) for value in values]


def _show(report: Mapping[str, Any], runs: Sequence[Run]) -> None:
    columns = ("plan", "predicted", "ratio", "CPU", "ratio", "ms", "ratio", "tuples/s", "results")
    rows = []
    for run in runs:
        ratio = _ratios(run, runs[0])
        rows.append(
            (
                run.plan,
                f"{run.predicted:.3f}",
                f"{ratio['predicted']:.1f}",
                f"{run.cpu:.3f}",
                f"{ratio['cpu']:.1f}",
                f"{run.ms:,.0f}",
                f"{ratio['ms']:.1f}",
                f"{run.rate:,.0f}",
                f"{run.results:,}",
            )
        )
    show.plain(
        "CPU-seconds per second of input, predicted and measured; ms of the engine a batch\n"
    )
    show.table(columns, rows, right=" ".join(columns[1:]))
    worst = report["worst_to_best"]
    more = [runs[-1].predicted - runs[0].predicted, runs[-1].cpu - runs[0].cpu]
    show.plain(
        f"\nthe worst needs {more[0]:.3f} CPU-seconds per second more than the best as predicted, "
        f"{more[1]:.3f} as measured"
        f"\nworst to best: predicted {worst['predicted']:.1f}, CPU {worst['cpu']:.1f}, "
        f"engine {worst['ms']:.1f}, throughput {worst['throughput']:.1f}; "
        f"rank correlation of predicted and engine {report['rank_correlation']:.2f}"
    )
    versions = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    show.plain(f"{report['command']}\n{versions}")
