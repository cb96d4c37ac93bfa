"""Loads and plans for output rates: the paper's, and random ones that make a fair number."""

from dataclasses import dataclass
from math import inf
from random import Random

from optimizer.cost.rate.exact import Exact
from optimizer.cost.rate.judge import Judge
from optimizer.cost.rate.load import Feed, Filter, Match, RateLoad, UnitCosts
from optimizer.cost.rate.objective import Objective
from optimizer.cost.rate.tree import Input, Meet, Node, Servers, of, order
from optimizer.plan import parse
from optimizer.window import MICROSECONDS, close, everywhere, ranges

HORIZON = 20.0


def edge(text: str) -> frozenset[str]:
    return frozenset(text.split("-"))


def load(streams, joins, bounds=None, **costs) -> RateLoad:
    """From feeds or rates by stream, and matches or selectivities by `A-B`."""
    feeds = {a: f if isinstance(f, Feed) else Feed(f) for a, f in streams.items()}
    matches = {edge(e): m if isinstance(m, Match) else Match(m) for e, m in joins.items()}
    return RateLoad(feeds, matches, UnitCosts(**costs), bounds)


def plan(text: str, load: RateLoad, servers: Servers = Servers.EACH) -> Node:
    return of(parse(text), load, servers)


def three(handling: float) -> RateLoad:
    """Figures 7 to 10: delays of 20, 2 and 10 ms, Tables 4 and 5; handling is not in print."""
    streams = {"A": Feed(50, 5_000), "B": Feed(500, 10_000), "C": Feed(100, 20_000)}
    return load(streams, {"A-B": 2e-3, "A-C": Match(5e-3, 5e-3)}, move=handling)


def five(handling: float) -> RateLoad:
    """Figures 12 to 15: rates by section 5.4, Tables 4 and 5."""
    streams = {
        "A": Feed(50, 5_000), "B": Feed(100, 10_000), "C": Feed(200 / 3, 20_000),
        "D": Feed(200, 50_000), "E": Feed(500, 100_000),
    }  # fmt: skip
    joins = {"A-B": 2e-3, "A-C": Match(5e-3, 5e-3), "B-D": 1e-4, "D-E": 1e-5}
    return load(streams, joins, move=handling)


@dataclass(frozen=True)
class Drawn:
    """A random plan, and by whom its work is done."""

    load: RateLoad
    plan: Node
    servers: Servers

    @property
    def judge(self) -> Judge:
        return Judge(self.load, Objective(by=HORIZON), self.servers)


def draw(seed: int) -> Drawn:
    """A plan of a thousand results and more: with fewer, 20 runs are no mean."""
    random = Random(seed)
    while True:
        drawn = _draw(random)
        if (drawn.judge.value(drawn.plan) or 0) >= 1_000:
            return drawn


def _draw(random: Random) -> Drawn:
    """Two to five streams, some with ends, selects, windows, and servers that are too slow."""
    names = list("ABCDE"[: random.randint(2, 5)])
    servers = random.choice(list(Servers))
    feeds = {name: _feed(random) for name in names}
    costs = UnitCosts(
        move=10 ** random.uniform(-4, -2.5),
        comp=10 ** random.uniform(-6.5, -5.5),
        nested=random.random() < 0.3,
    )
    drawn = RateLoad(feeds, {}, costs, _bounds(names, random))
    parts: list[Node] = [Input(name, order(feeds[name].selects, servers)) for name in names]
    while len(parts) > 1:
        one, other = (parts.pop(random.randrange(len(parts))) for _ in range(2))
        meet = Meet(one, other)
        drawn = _joined(drawn, meet, random)
        parts.append(meet)
    return Drawn(drawn, parts[0], servers)


def _feed(random: Random) -> Feed:
    cost = random.choice((0.0, 10 ** random.uniform(-3, -1.5)))
    selects = (Filter("slow", random.uniform(0.3, 1), cost), Filter("free", 0.8))
    rate = 10 ** random.uniform(1.7, 2.5)
    tuples = random.choice((inf, float(round(rate * random.uniform(5, 30)))))
    return Feed(rate, tuples, random.choice(((), (), selects)))


def _bounds(names, random: Random):
    kind = random.choice(("none", "one", "ranges"))
    if kind == "none":
        return None
    if kind == "one":
        return everywhere(names, random.randint(2, 15) * MICROSECONDS)
    return close(names, ranges(names, {n: random.randint(2, 15) * MICROSECONDS for n in names}))


def _joined(drawn: RateLoad, meet: Meet, random: Random) -> RateLoad:
    """With a predicate between the two, such that a fair number comes out of it."""
    pair = frozenset((min(meet.left.aliases), min(meet.right.aliases)))
    cost = random.choice((0.0, 0.0, 10 ** random.uniform(-3, -2)))
    judge = Judge(drawn, Objective(by=HORIZON))
    pairs = Exact(drawn, judge.grid(HORIZON, 65), Servers.ONE).flow(meet).made[-1]
    share = min(random.uniform(2_000, 10_000) / pairs, 0.5)
    return RateLoad(
        drawn.streams, {**drawn.joins, pair: Match(share, cost)}, drawn.costs, drawn.bounds
    )
