"""How often each plan search finds a qualified plan (Zhu 8.2, Zhu-Raghavan 6)."""

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import median
from time import process_time
from typing import Annotated, Any

import typer

from jobs import show
from optimizer.memo import Memo
from optimizer.query import Column, ColumnRef, Expression, Named, Predicate, Query, Stream
from optimizer.search import COSTS, search
from optimizer.window import MICROSECONDS, everywhere
from optimizer.workload import Budget, Method, StreamLoad, Workload

WINDOW = 0.05
"""Seconds.  A probe then finds 50 * 0.05 * 0.5 = 1.3 partners on average, so that results neither
explode nor vanish with more streams; a hundredth of the rates in a window of 5 s is the same."""

EXHAUSTIVE = "jtree-finder"
SCATTERED = (3, 5, 10)
STRATEGIES = tuple(name for name in COSTS if name != "as-written")


@dataclass(frozen=True)
class Setting:
    """A query, its workload and a budget between what the mjoin and the bjtree need."""

    query: Query
    workload: Workload
    budget: Budget

    def memo(self, budget: Budget | None = None) -> Memo:
        return Memo(self.query, self.workload, budget or self.budget)


@dataclass(frozen=True)
class Outcome:
    """What a strategy came to in one setting; shares are of the budget."""

    qualified: bool
    seconds: float
    cpu: float
    memory: float


def setting(n: int, seed: int, method: Method = Method.HASH) -> Setting:
    """Rates of 1 to 100, selectivities within (0, 1), a random connected graph; the budget, too.

    Each resource's budget lies about between what the mjoin and the bjtree need, up to a tenth of
    the difference below and a fifth above, so that neither is often enough.
    """
    random = Random(f"{n} {seed}")
    names = [f"s{i}" for i in range(n)]
    rates = {name: StreamLoad(random.uniform(1, 100)) for name in names}
    edges = {frozenset(e): random.random() or 0.5 for e in _edges(names, random)}
    workload = Workload(rates, edges, method=method)
    free = Setting(_query(names, list(edges)), workload, Budget())
    ends = [search(name, free.memo()).chosen.total for name in ("mjoin-ordering", "min-state")]
    cpu = _between([end.cpu for end in ends], random)
    tuples = max(
        _between([end.tuples for end in ends], random), 1.0001 * min(e.tuples for e in ends)
    )
    return Setting(free.query, workload, Budget(cpu=cpu, tuples=tuples))


def _between(ends: Sequence[float], random: Random) -> float:
    low, high = min(ends), max(ends)
    return max(low + random.uniform(-0.1, 1.2) * (high - low), low / 2)


def _edges(names: Sequence[str], random: Random) -> list[tuple[str, str]]:
    """A random tree, and so many more pairs that graphs from trees to half of all pairs occur."""
    order = random.sample(names, len(names))
    tree = [(order[random.randrange(i)], order[i]) for i in range(1, len(order))]
    density = random.random() / 2
    linked = {frozenset(edge) for edge in tree}
    pairs = (pair for pair in combinations(names, 2) if frozenset(pair) not in linked)
    return [*tree, *(pair for pair in pairs if random.random() < density)]


def _query(names: Sequence[str], edges: Sequence[frozenset[str]]) -> Query:
    keys = [Column(f"k{i}", "BIGINT") for i in range(len(edges))]
    columns = {
        name: tuple(key for key, edge in zip(keys, edges, strict=True) if name in edge)
        for name in names
    }
    time = Column("t", "TIMESTAMP")
    streams = tuple((name, Stream(name, (*columns[name], time), "t")) for name in names)
    predicates = tuple(
        Predicate.equality(*(Expression.of(ColumnRef(name, key.name)) for name in sorted(edge)))
        for key, edge in zip(keys, edges, strict=True)
    )
    output = Named("t", Expression.of(ColumnRef(names[0], "t")))
    return Query(streams, predicates, everywhere(names, round(WINDOW * MICROSECONDS)), (output,))


# --- the benchmark -------------------------------------------------------------------------------


def qualified(  # noqa: PLR0917  # typer reads options from parameters
    settings: Annotated[int, typer.Option(help="How many for each number of streams.")] = 100,
    smallest: Annotated[int, typer.Option("--from", help="Streams.")] = 3,
    largest: Annotated[int, typer.Option("--to", help="Streams.")] = 20,
    exhaustive: Annotated[int, typer.Option(help="jtree-finder runs up to so many streams.")] = 8,
    method: Annotated[Method, typer.Option(help="How work is counted.")] = Method.HASH,
    figures: Annotated[
        Path | None, typer.Option(help="Draw the figures into this directory.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """How often each search finds a plan within the budget, how fast, and what that plan needs."""
    outcomes = {}
    for n in range(smallest, largest + 1):
        names = STRATEGIES if n <= exhaustive else [s for s in STRATEGIES if s != EXHAUSTIVE]
        outcomes[n] = _outcomes(n, settings, names, method)
        if not json:
            show.err.print(f"{n} of {largest} streams", style="dim")
    report = _report(outcomes, method)
    if figures is not None:
        _draw(outcomes, figures, method)
    if json:
        show.as_json(report)
    else:
        _show(report)
    return 0


def _outcomes(
    n: int, settings: int, names: Iterable[str], method: Method
) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = defaultdict(list)
    for seed in range(settings):
        given = setting(n, seed, method)
        for name in names:
            found[name].append(_outcome(name, given))
    return found


def _outcome(name: str, given: Setting) -> Outcome:
    """CPU time: a search has one thread, and what else the machine does then matters less."""
    memo = given.memo()
    begun = process_time()
    result = search(name, memo)
    seconds = process_time() - begun
    cpu, memory = memo.shares(result.chosen.total)
    return Outcome(result.qualified, seconds, cpu, memory)


def _report(outcomes: dict[int, dict[str, list[Outcome]]], method: Method) -> dict[str, Any]:
    return {
        "command": " ".join(["midstream bench qualified", *sys.argv[3:]]),
        "versions": {name: version(name) for name in ("midstream", "numba", "numpy")},
        "method": str(method),
        "streams": {n: _row(found) for n, found in outcomes.items()},
        "false_no_plan": {name: _missed(outcomes, name) for name in STRATEGIES},
    }


def _row(found: dict[str, list[Outcome]]) -> dict[str, Any]:
    """Percentages are of the settings that have a qualified plan, as far as anyone knows."""
    known = [any(one.qualified for one in each) for each in zip(*found.values(), strict=True)]
    return {
        "settings": len(known),
        "with_a_plan": sum(known),
        "exhaustive": EXHAUSTIVE in found,
        "qualified_percent": {
            name: 100 * sum(o.qualified for o in each) / max(1, sum(known))
            for name, each in found.items()
        },
        "milliseconds": {
            name: 1000 * median(o.seconds for o in each) for name, each in found.items()
        },
    }


def _missed(outcomes: dict[int, dict[str, list[Outcome]]], name: str) -> dict[str, int]:
    """Where jtree-finder ran: how often the strategy says that there is no plan, and there is."""
    ran = [found for found in outcomes.values() if EXHAUSTIVE in found]
    pairs = [p for found in ran for p in zip(found[EXHAUSTIVE], found[name], strict=True)]
    with_plan = [other for best, other in pairs if best.qualified]
    return {"missed": sum(not o.qualified for o in with_plan), "of": len(with_plan)}


def _show(report: dict[str, Any]) -> None:
    rows, times = [], []
    for n, row in report["streams"].items():
        known = f"{row['with_a_plan']}/{row['settings']}" + (
            "" if row["exhaustive"] else " or more"
        )
        rows.append((str(n), known, *(_cell(row["qualified_percent"], s, "%") for s in STRATEGIES)))
        times.append((str(n), *(_cell(row["milliseconds"], s, "") for s in STRATEGIES)))
    show.heading(f"Settings whose plan each strategy finds, {report['method']}")
    show.table(("streams", "with a plan", *STRATEGIES), rows)
    show.heading("Search time, median, milliseconds")
    show.table(("streams", *STRATEGIES), times)
    show.heading("False 'no plan', where jtree-finder knows better")
    missed = report["false_no_plan"].items()
    show.table(
        ("strategy", "missed", "of", "share"),
        [
            (s, str(m["missed"]), str(m["of"]), f"{m['missed'] / max(1, m['of']):.1%}")
            for s, m in missed
        ],
    )
    show.plain(f"{report['command']}\n{report['versions']}")


def _cell(values: dict[str, float], strategy: str, unit: str) -> str:
    if strategy not in values:
        return "-"
    value = values[strategy]
    return f"{value:.0f}{unit}" if unit else f"{value:.1f}"


# --- figures -------------------------------------------------------------------------------------

LOOKS = {
    "mjoin-ordering": ("tab:gray", ":", "x"),
    "min-state": ("tab:brown", ":", "+"),
    "state-selection": ("tab:purple", "-.", "."),
    "state-removal": ("tab:pink", "-.", "."),
    "mjoin-init": ("tab:blue", "-", "o"),
    "bjtree-init": ("tab:orange", "-", "s"),
    "two-layer": ("tab:green", "-", "^"),
    "jtree-finder": ("black", "--", "*"),
}


def _draw(outcomes: dict[int, dict[str, list[Outcome]]], directory: Path, method: Method) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "midstream"
    directory.mkdir(parents=True, exist_ok=True)
    rows = {n: _row(found) for n, found in outcomes.items()}
    _lines(
        rows,
        "qualified_percent",
        "settings with a plan: found, %",
        directory / f"qualified-{method}.svg",
    )
    _lines(rows, "milliseconds", "median search time, ms", directory / f"search-time-{method}.svg")
    _scatter(outcomes, directory / f"scatter-{method}.svg")


def _lines(rows: dict[int, dict[str, Any]], what: str, label: str, path: Path) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    figure, axes = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
    for name, (colour, style, _) in LOOKS.items():
        points = [(n, row[what][name]) for n, row in rows.items() if name in row[what]]
        if points:
            axes.plot(*zip(*points, strict=True), style, color=colour, label=name)
    axes.set(xlabel="streams", ylabel=label)
    if what == "milliseconds":
        axes.set_yscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", frameon=False)
    _save(figure, path)


def _scatter(outcomes: dict[int, dict[str, list[Outcome]]], path: Path) -> None:
    """The qualified plans of the two climbs from either end, in shares of the budget."""
    import matplotlib.pyplot as plt

    sizes = [n for n in SCATTERED if n in outcomes]
    if not sizes:
        return
    figure, panels = plt.subplots(
        1, len(sizes), figsize=(3.6 * len(sizes), 3.6), layout="constrained", squeeze=False
    )
    for axes, n in zip(panels[0], sizes, strict=True):
        for name in ("mjoin-init", "bjtree-init", "two-layer"):
            colour, _, marker = LOOKS[name]
            found = [o for o in outcomes[n][name] if o.qualified]
            axes.scatter([o.memory for o in found], [o.cpu for o in found], 16, colour, marker,
                         alpha=0.6, label=name if n == sizes[0] else None)  # fmt: skip
        axes.set(title=f"{n} streams", xlabel="share of the memory", xlim=(0, 1.02), ylim=(0, 1.02))
    panels[0][0].set_ylabel("share of the CPU")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
