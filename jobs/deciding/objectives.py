"""An objective of output rates in words: what a plan gains, and what has changed."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import log

from optimizer.cost.dual import Cost, Priced
from optimizer.cost.throughput import Throughput
from optimizer.explain import compact
from optimizer.migration.cost import spell
from optimizer.workload import Workload

LITTLE = 0.005
"""A share of the results that is not worth a word."""

CHANGED = 1.5
"""By how much a rate or a selectivity must have grown or shrunk to be what changed."""


def ahead(throughput: Throughput, running: Priced, chosen: Priced) -> str:
    """`((f c) b) has 18 % more results by 10 s`; nothing if it has no more."""
    gained = throughput.slowness(running.total) / throughput.slowness(chosen.total) - 1
    if gained < LITTLE:
        return ""
    objective = throughput.objective
    if objective.by is not None:
        return f"{chosen.plan} has {gained:.0%} more results by {objective.by:g} s"
    sooner = 1 - 1 / (1 + gained)
    return f"{chosen.plan} has the {objective} {sooner:.0%} sooner"


def makes(throughput: Throughput, total: Cost) -> str:
    """`24 k results by 10 s`: what a plan of that cost makes of the objective."""
    value, objective = throughput.value(total), throughput.objective
    if objective.by is not None:
        return f"{compact(value or 0.0)} results {objective}"
    return f"the {objective} {'never' if value is None else f'within {spell(value)}'}"


def changed(windows: Sequence[tuple[int, Workload]]) -> str:
    """`since 09:12 baggage is 3 times as fast`: what has changed most, if anything has by much."""
    if len(windows) < 2:
        return ""
    courses = [(text, values) for text, values in _courses([load for _, load in windows])
               if min(values[0], values[-1]) > 0]  # fmt: skip
    text, values = max(courses, key=lambda one: abs(log(_ratio(one[1]))), default=("", [1.0]))
    if 1 / CHANGED < _ratio(values) < CHANGED:
        return ""
    middle, up = (values[0] * values[-1]) ** 0.5, _ratio(values) > 1
    since = next(at for (at, _), one in zip(windows, values, strict=True) if (one > middle) == up)
    clock = datetime.fromtimestamp(since / 1e6, UTC).strftime("%H:%M")
    times = _ratio(values)
    return f"since {clock} {text.format(f'{times:,.0f}' if times >= 10 else f'{times:.2g}')}"


def _courses(loads: Sequence[Workload]) -> Iterator[tuple[str, list[float]]]:
    """The figures of streams and joins by window, and what to say where one has changed."""
    for name in loads[-1].streams:
        if all(name in load.streams for load in loads):
            yield f"{name} is {{}} times as fast", [load.streams[name].rate for load in loads]
    for edge in loads[-1].joins:
        if all(edge in load.joins for load in loads):
            both = " and ".join(sorted(edge))
            yield f"{both} match {{}} times as often", [load.joins[edge] for load in loads]


def _ratio(values: Sequence[float]) -> float:
    return values[-1] / values[0]
