"""An objective of output rates in words: what a plan gains, and which stream has changed."""

from collections.abc import Sequence
from datetime import UTC, datetime

from optimizer.cost.dual import Priced
from optimizer.cost.throughput import Throughput
from optimizer.workload import Workload

LITTLE = 0.005
"""A share of the results that is not worth a word."""

CHANGED = 1.5
"""By how much a stream must have become faster or slower to be what changed."""


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


def faster(windows: Sequence[tuple[int, Workload]]) -> str:
    """`since 09:12 baggage is 3 times as fast`: the stream that has changed most, if one has."""
    if len(windows) < 2:
        return ""
    last = windows[-1][1].streams
    first = windows[0][1].streams
    ratios = {n: last[n].rate / first[n].rate for n in last if n in first and first[n].rate}
    name = max(ratios, key=lambda n: max(ratios[n], 1 / ratios[n] if ratios[n] else 0), default="")
    if not name or 1 / CHANGED < ratios[name] < CHANGED:
        return ""
    middle = (first[name].rate * last[name].rate) ** 0.5
    up = ratios[name] > 1
    since = next(at for at, load in windows if (load.streams[name].rate > middle) == up)
    clock = datetime.fromtimestamp(since / 1e6, UTC).strftime("%H:%M")
    return f"since {clock} {name} is {ratios[name]:.2g} times as fast"
