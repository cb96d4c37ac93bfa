"""The paper's two workloads (4.1.1), made up again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod
from random import Random

from jobs.network.generate import transit_stub
from jobs.network.session import Place
from optimizer.network.load import Demand, Known, Load, Source, WindowLoad
from optimizer.network.sites import Link, Site
from optimizer.network.streams import Content, Part, Predicate

Given = tuple[Load, list[Demand]]


def place(sites: int, seed: int, max_cs: int | None = 32) -> Place:
    """A transit-stub network and its clusters."""
    made = transit_stub(sites, seed)
    links = [Link((one["between"][0], one["between"][1]), one["latency"]) for one in made["links"]]
    return Place.of(dict.fromkeys(made["sites"], Site()), links, max_cs=max_cs, seed=seed)


def stubs(where: Place) -> list[str]:
    """The sites at which streams come in and results go out."""
    return [name for name in where.sites if name.startswith("s")]


# --- synthetic -----------------------------------------------------------------------------------

WINDOW = 10.0
RATES, SELECTIVITIES = (1.0, 20.0), (0.0005, 0.01)
"""Uniform: tuples a second, and the share of pairs that match."""


def synthetic(
    sites: Sequence[str], seed: int, queries: int, joins: tuple[int, int] = (2, 5),
    streams: int = 10,
) -> Given:  # fmt: skip
    """Streams joined in a random connected graph; queries over connected parts of it."""
    dice = Random(seed)
    names = [f"S{i}" for i in range(streams)]
    sources = {n: Source(round(dice.uniform(*RATES), 2), 100.0, dice.choice(sites)) for n in names}
    edges = {frozenset((names[dice.randrange(i)], names[i])) for i in range(1, streams)}
    edges |= {frozenset(two) for two in combinations(names, 2) if dice.random() < 0.3}
    shares = {edge: dice.uniform(*SELECTIVITIES) for edge in sorted(edges, key=sorted)}
    demands = []
    for number in range(queries):
        found = _connected(dice, names, edges, dice.randint(*joins) + 1)
        demands.append(Demand(f"q{number}", tuple(found), dice.choice(sites)))
    return WindowLoad(sources, WINDOW, shares), demands


def _connected(
    dice: Random, names: Sequence[str], edges: set[frozenset[str]], size: int
) -> list[str]:
    found = [dice.choice(names)]
    while len(found) < size:
        near = sorted({n for e in edges for n in e if len(e & set(found)) == 1} - set(found))
        found.append(dice.choice(near))
    return found


# --- enterprise ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Feed:
    """One of Fig. 5's sources: how many tuples come in its period, and how many for each key."""

    tuples: float
    period: float
    per_key: float
    keys: tuple[str, ...]


FEEDS: Mapping[str, Feed] = {
    "flights": Feed(1500, 300, 1, ("flight", "dest")),
    "check-ins": Feed(240, 60, 2, ("flight",)),
    "baggage": Feed(500, 60, 4, ("flight",)),
    "weather": Feed(450, 300, 1, ("dest",)),
    "sales": Feed(70, 60, 1, ("dest",)),
}
DESTS = 450
"""As many destinations as weather is told of."""
GATES, TERMINALS, CARRIERS = 60, 5, 4
"""Flights that gate agents ask for, terminals with displays, and carriers: 1 in 4 is DL."""


@dataclass(frozen=True)
class SlideLoad:
    """Results are computed once a slide, over what is in the ranges then.

    Two streams with n and m different keys match in one pair of max(n, m): the smaller set of keys
    is within the larger.  A filter on a key leaves as many keys fewer.
    """

    sources: Mapping[str, Source]
    feeds: Mapping[str, Feed] = field(default_factory=lambda: FEEDS)
    known: Known = field(default_factory=dict, compare=False, repr=False)

    def rate(self, content: Content) -> float:
        """Tuples a second: the base stream's own, or a result's tuples by its slide."""
        if len(content.parts) == 1:
            (part,) = content.parts
            return self.sources[part.stream].rate * _passing(part)
        found = prod(self._held(part) for part in content.parts)
        for key in ("flight", "dest"):
            counts = sorted(self._keys(part, key) for part in content.parts if self._has(part, key))
            found /= prod(max(1.0, count) for count in counts[1:])
        return found / max(part.window[1] for part in content.parts if part.window)

    def connected(self, one: str, other: str) -> bool:
        """Whether they have a key in common."""
        return bool(set(self.feeds[one].keys) & set(self.feeds[other].keys))

    def _has(self, part: Part, key: str) -> bool:
        return key in self.feeds[part.stream].keys

    def _held(self, part: Part) -> float:
        assert part.window is not None
        return self.sources[part.stream].rate * part.window[0] * _passing(part)

    def _keys(self, part: Part, key: str) -> float:
        feed = self.feeds[part.stream]
        count = feed.tuples / feed.per_key
        return min(count, DESTS if key == "dest" else count) * _passing(part)


def _passing(part: Part) -> float:
    return prod(predicate.selectivity for predicate in part.where)


def enterprise(sites: Sequence[str], seed: int, queries: int) -> Given:
    """80 % gate agents, 15 % terminals, 5 % ad-hoc monitoring, in random order."""
    dice = Random(seed)
    sources = {
        name: Source(feed.tuples / feed.period, 100.0, dice.choice(sites))
        for name, feed in FEEDS.items()
    }
    demands = []
    for number in range(queries):
        kind = dice.choices((_gate, _terminal, _monitoring), (80, 15, 5))[0]
        demands.append(kind(dice, f"q{number}", dice.choice(sites)))
    return SlideLoad(sources), demands


MINUTE = 60.0


def _gate(dice: Random, name: str, sink: str) -> Demand:
    """Q1: one flight's gate, bags and check-ins; the flight's number reaches all three streams."""
    flight = dice.randrange(GATES)
    keys = {n: FEEDS[n].tuples / FEEDS[n].per_key for n in ("flights", "baggage", "check-ins")}
    where = {n: (Predicate.of(f"num = {flight}", 1 / count),) for n, count in keys.items()}
    windows = {n: (5 * MINUTE if n == "flights" else MINUTE, MINUTE) for n in keys}
    return Demand(name, tuple(keys), sink, where, {}, windows)


def _terminal(dice: Random, name: str, sink: str) -> Demand:
    """Q2: a terminal's flights of one carrier, with weather, check-ins and bags."""
    terminal = dice.randrange(TERMINALS)
    where = {
        "flights": (
            Predicate.of(f"terminal = {terminal}", 1 / TERMINALS),
            Predicate.of("carrier_code = 'DL'", 1 / CARRIERS),
        )
    }
    ranges = {"flights": 5, "weather": 5, "check-ins": 1, "baggage": 1}
    windows = {stream: (minutes * MINUTE, MINUTE) for stream, minutes in ranges.items()}
    return Demand(name, tuple(ranges), sink, where, {}, windows)


def _monitoring(dice: Random, name: str, sink: str) -> Demand:
    """Any combination of the sources, ranges and slides of one to five minutes."""
    streams = tuple(dice.sample(sorted(FEEDS), dice.randint(2, 5)))
    slide = dice.randint(1, 5) * MINUTE
    windows = {stream: (dice.randint(1, 5) * MINUTE, slide) for stream in streams}
    return Demand(name, streams, sink, {}, {}, windows)
