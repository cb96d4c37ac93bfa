"""The exact model: what a plan has made by each time, its servers working in order of arrival.

A part of a plan is known by how far each of its streams has been seen: it has put out its share of
the combinations of what was seen.  A server that is behind sees all that is below it as of an
earlier time, tau(t); what is above sees no more than that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np

from optimizer.cost.rate.load import Filter, RateLoad
from optimizer.cost.rate.servers import Floats, Progress, progress
from optimizer.cost.rate.tree import Input, Meet, Node, Servers
from optimizer.cost.rate.volumes import volume

Until = Mapping[str, Floats]
"""How far each stream has been seen, in seconds, at each time."""


@dataclass(frozen=True)
class Late:
    """An operator that cannot keep up, and since when."""

    operator: str
    since: float


@dataclass(frozen=True)
class Flow:
    """What a part of a plan has put out by each time."""

    until: Until
    share: float
    """Of the combinations, how many are put out."""
    made: Floats
    """Tuples."""
    work: Floats
    """Seconds of work that all operators so far have had to do."""
    late: tuple[Late, ...] = ()


class Exact:
    """One load on one grid of times, from zero on; parts of plans are computed once."""

    def __init__(self, load: RateLoad, times: Floats, servers: Servers = Servers.EACH) -> None:
        self.load = load
        self.times = times
        self.servers = servers
        self._nothing = np.zeros_like(times)
        self._flows: dict[Node, Flow] = {}
        self._arrived: dict[frozenset[str], Floats] = {}

    def run(self, plan: Node) -> Flow:
        """What the whole plan has made by each time."""
        flow = self.flow(plan)
        if self.servers is Servers.EACH:
            return flow
        found = progress(self.times, flow.work)
        until = self._as_of(flow.until, found.tau)
        late = () if found.behind is None else (Late("the server", found.behind),)
        return Flow(until, flow.share, self._made(flow.share, until), flow.work, late)

    def flow(self, node: Node) -> Flow:
        """What a part puts out; where all share a server, what it would if that were fast."""
        if node not in self._flows:
            entered = self._joined(node) if isinstance(node, Meet) else self._arriving(node)
            selects = ((select, f"{node}: {select.name}") for select in node.selects)
            self._flows[node] = reduce(self._selected, selects, entered)
        return self._flows[node]

    def _arriving(self, node: Input) -> Flow:
        until = {node.alias: self.times}
        return Flow(until, 1.0, self._made(1.0, until), self._nothing)

    def _selected(self, flow: Flow, given: tuple[Filter, str]) -> Flow:
        select, label = given
        return self._handled(flow, select.cost * flow.made, select.selectivity, label)

    def _joined(self, node: Meet) -> Flow:
        left, right = self.flow(node.left), self.flow(node.right)
        until = {**left.until, **right.until}
        share, extra = self._predicates(node)
        work = (self.load.costs.tuple + extra) * (left.made + right.made)
        if self.load.costs.pair:
            work = work + self.load.costs.pair * self._made(left.share * right.share, until)
        both = Flow(until, left.share * right.share, self._nothing, left.work + right.work,
                    left.late + right.late)  # fmt: skip
        return self._handled(both, work, share, str(node))

    def _predicates(self, node: Meet) -> tuple[float, float]:
        """What share of the pairs matches, and the seconds more that each input takes."""
        crossing = self.load.between(node.left.aliases, node.right.aliases)
        applied = [match for edge, match in crossing if edge not in node.lifted]
        return prod(match.selectivity for match in applied), sum(match.cost for match in applied)

    def _handled(self, flow: Flow, work: Floats, share: float, label: str) -> Flow:
        """Behind a server with that work."""
        found = self._progress(work)
        late = () if found.behind is None else (Late(label, found.behind),)
        until, share = self._as_of(flow.until, found.tau), flow.share * share
        made = self._made(share, until)
        return Flow(until, share, made, flow.work + work, flow.late + late)

    def _progress(self, work: Floats) -> Progress:
        if self.servers is Servers.ONE:
            return Progress(self.times, None)
        return progress(self.times, work)

    def _as_of(self, until: Until, tau: Floats) -> Until:
        if tau is self.times:
            return until
        return {
            name: tau if seen is self.times else np.interp(tau, self.times, seen)
            for name, seen in until.items()
        }

    def _made(self, share: float, until: Until) -> Floats:
        """That share of the combinations, within their windows, of what has been seen."""
        if any(seen is not self.times for seen in until.values()):
            return share * self._combinations(until)
        names = frozenset(until)
        if names not in self._arrived:
            self._arrived[names] = self._combinations(until)
        return share * self._arrived[names]

    def _combinations(self, until: Until) -> Floats:
        feeds = self.load.streams
        seen = {name: np.minimum(at, feeds[name].end) for name, at in until.items()}
        return prod(feeds[name].rate for name in until) * volume(seen, self.load.bounds)
