"""How fast the plan searches are, and how much memory the exhaustive one takes."""

import os
import resource
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from json import dumps, loads
from pathlib import Path
from platform import machine, python_version
from random import Random
from statistics import fmean, median
from subprocess import run
from tempfile import TemporaryDirectory
from time import process_time
from typing import Annotated, Any

import typer

from jobs import show
from optimizer.cost.dual import join_cost
from optimizer.ordering import best_orders, exact_orders
from optimizer.search import COSTS
from optimizer.search import search as searched
from optimizer.search.min_state import least, min_state
from optimizer.workload import Budget, Method
from tests.bench.qualified import EXHAUSTIVE, setting
from tests.optimizer.search.cases import Case, random_case, star

ROOT = Path(__file__).parents[2]
TARGETS = {10: 5.0, 12: 60.0, 20: 0.05, 50: 2.0}
"""Seconds within which each number of streams is to be searched."""

ORDERED, MERGED, SETTINGS = (9, 12, 13, 14, 16), (9, 10, 11, 12), 20
"""Streams, and settings, in which orders and trees are compared with the optimum."""


def search(
    streams: Annotated[str, typer.Option(help="Numbers of them, with commas.")] = "10,12,20,50",
    exhaustive: Annotated[int, typer.Option(help="jtree-finder runs up to so many.")] = 12,
    runs: Annotated[int, typer.Option(help="Settings, each searched once.")] = 9,
    method: Annotated[Method, typer.Option(help="How work is counted.")] = Method.HASH,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Time of every search on random graphs with a tight budget, and memory of jtree-finder."""
    sizes = [int(n) for n in streams.split(",")]
    report = {
        "command": " ".join(["midstream bench search", *sys.argv[3:]]),
        "versions": {name: version(name) for name in ("midstream", "numba", "numpy")}
        | {"python": python_version(), "machine": f"{machine()}, {os.cpu_count()} cores"},
        "method": str(method),
        "runs": runs,
        "seconds": {n: _times(n, runs, exhaustive, method) for n in sizes},
        "jtree_finder": {n: _fresh(n, runs, method) for n in sizes if n <= exhaustive},
        "off": {
            "probe orders": {n: _off(_orders, n) for n in ORDERED},
            "min-state": {n: _off(_states, n) for n in MERGED},
        },
        "kernel": {
            "compiled_seconds": _kernel(cached=False),
            "loaded_seconds": _kernel(cached=True),
        },
    }
    if json:
        show.as_json(report)
    else:
        _show(report)
    return 0


def _times(n: int, runs: int, exhaustive: int, method: Method) -> dict[str, dict[str, float]]:
    names = [name for name in COSTS if name != EXHAUSTIVE or n <= exhaustive]
    given = [setting(n, seed, method) for seed in range(runs)]
    if n <= exhaustive:
        searched(EXHAUSTIVE, setting(3, 0, method).memo())  # loads the kernel
    return {name: _spread([_timed(name, one.memo()) for one in given]) for name in names}


def _timed(name: str, memo: Any) -> float:
    """CPU time: a search has one thread, and what else the machine does then matters less."""
    begun = process_time()
    searched(name, memo)
    return process_time() - begun


def _spread(times: Sequence[float]) -> dict[str, float]:
    return {"median": median(times), "slowest": max(times)}


def _fresh(n: int, runs: int, method: Method) -> dict[str, Any]:
    """jtree-finder in a process of its own, for its memory; without a budget it has most to do."""
    code = f"from tests.bench.search import alone; alone({n}, {runs}, {str(method)!r})"
    done = run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True, text=True)
    found: dict[str, Any] = loads(done.stdout)
    return found


def alone(n: int, runs: int, method: str) -> None:
    """Print the figures of this process as JSON."""
    given = [setting(n, seed, Method(method)) for seed in range(min(runs, 3))]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    searched(EXHAUSTIVE, setting(3, 0).memo())
    times = [_timed(EXHAUSTIVE, one.memo(Budget())) for one in given]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        dumps({"without_budget": _spread(times), "mib_before": before / 1024, "mib": peak / 1024})
    )


# --- how good they are where not all is looked at ------------------------------------------------


def _off(ratio: Callable[[int, int], float], n: int) -> dict[str, float]:
    """Times the optimum, in settings with so many streams."""
    ratios = [ratio(n, seed) for seed in range(SETTINGS)]
    return {"mean": fmean(ratios), "worst": max(ratios)}


def _orders(n: int, seed: int) -> float:
    """Work of an mjoin's probes in the orders that searches use, to that in the best orders."""
    memo = _setting(n, seed, Budget()).memo()
    parts = [memo.leaf(alias).estimate for alias in memo.query.aliases]
    best = join_cost(parts, exact_orders(parts, memo.estimator), memo.estimator)
    return join_cost(parts, best_orders(parts, memo.estimator), memo.estimator).cpu / best.cpu


def _states(n: int, seed: int) -> float:
    """Bytes of min-state's states, to the least that binary joins can have."""
    memo = _setting(n, seed, Budget(bytes=1e15)).memo()
    smallest = least(memo, [memo.leaf(alias) for alias in memo.query.aliases])
    return memo.memory(min_state(memo)) / memo.memory(smallest)


def _setting(n: int, seed: int, budget: Budget) -> Case:
    """A star in every second one, any graph in the others; states are large."""
    random = Random(seed)
    if seed % 2:
        return random_case(n, random, budget=budget)
    return star(n, random, budget)


def _kernel(*, cached: bool) -> float:
    """Seconds of the first search in a process, with the compiled kernel on disk or without."""
    code = "from tests.bench.search import first; first()"
    with TemporaryDirectory() as empty:
        environment = os.environ | ({} if cached else {"NUMBA_CACHE_DIR": empty})
        command = [sys.executable, "-c", code]
        done = run(command, cwd=ROOT, capture_output=True, check=True, text=True, env=environment)
    return float(done.stdout)


def first() -> None:
    """Print the time of a search so small that the kernel takes all of it."""
    print(_timed(EXHAUSTIVE, setting(3, 0).memo()))


def _show(report: dict[str, Any]) -> None:
    rows = [
        (
            str(n),
            name,
            f"{1000 * times['median']:,.1f}",
            f"{1000 * times['slowest']:,.1f}",
            "yes" if times["median"] <= TARGETS.get(int(n), float("inf")) else "NO",
        )
        for n, found in report["seconds"].items()
        for name, times in found.items()
    ]
    show.heading(f"CPU time in ms, {report['runs']} random graphs, {report['method']}")
    show.table(("streams", "strategy", "median", "slowest", "within the target"), rows)
    if report["jtree_finder"]:
        show.heading("jtree-finder without a budget, in a process of its own")
        exhaustive = [
            (str(n), *(f"{seconds:.2f} s" for seconds in f["without_budget"].values()),
             f"{f['mib']:.0f} MiB", f"{f['mib_before']:.0f} MiB")
            for n, f in report["jtree_finder"].items()
        ]  # fmt: skip
        show.table(("streams", "median", "slowest", "peak memory", "before"), exhaustive)
    show.heading(f"Times the optimum, {SETTINGS} settings, half of them stars")
    off = [
        (name, str(n), f"{one['mean']:.3f}", f"{one['worst']:.2f}")
        for name, found in report["off"].items()
        for n, one in found.items()
    ]
    show.table(("search", "streams", "mean", "worst"), off)
    kernel = report["kernel"]
    show.plain(
        f"Its kernel: {kernel['compiled_seconds']:.1f} s to compile, once per machine; "
        f"{kernel['loaded_seconds']:.1f} s to load in each process."
    )
    show.plain(f"{report['command']}\n{report['versions']}")
