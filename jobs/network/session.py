"""A network and what runs on it, while queries come and go and sites join and leave."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter

from jobs.network import topology
from jobs.network.files import NetworkFile
from optimizer.network.deployment import Deployed, Key, Kind
from optimizer.network.hierarchy import Builder, Hierarchy, Levels
from optimizer.network.load import Demand, Load, Question
from optimizer.network.planning import BY_LEVELS, Planned, best_of, place, planned
from optimizer.network.sites import Link, Matrix, Network, Site
from optimizer.network.task import Task


class LostError(ValueError):
    """A query cannot run any more, or not yet: a stream or its sink is nowhere, or out of reach."""


@dataclass(frozen=True, eq=False)
class Place:
    """Sites, links, and what follows from them."""

    sites: Mapping[str, Site]
    links: Sequence[Link]
    measure: str
    seed: int
    network: Network
    choices: tuple[Levels, ...]
    """Hierarchies; where there are several, each query is planned by all of them."""

    @classmethod
    def of(
        cls, sites: Mapping[str, Site], links: Sequence[Link], measure: str = "latency",
        *, max_cs: int | None = None, seed: int = 0,
    ) -> "Place":  # fmt: skip
        """Compute the distances and the clusters."""
        net = topology.network(sites, links, measure)
        choices = tuple(Levels(one, net) for one in topology.hierarchies(net, max_cs, seed))
        return cls(sites, links, measure, seed, net, choices)

    @classmethod
    def of_file(cls, file: NetworkFile, max_cs: int | None = None, seed: int = 0) -> "Place":
        """What a network's file says."""
        sites = {name: fields.site() for name, fields in file.sites.items()}
        links = [link.link() for link in file.links]
        return cls.of(sites, links, file.measure, max_cs=max_cs, seed=seed)

    @property
    def levels(self) -> Levels:
        """The hierarchy, the first where there are several."""
        return self.choices[0]

    @cached_property
    def coordinates(self) -> Matrix:
        """The sites in the space of `relaxation`."""
        return topology.coordinates(self.network.distances, self.seed)

    def joined(self, name: str, site: Site, links: Iterable[Link]) -> "Place":
        """With one more site, in the cluster that it is nearest to."""
        sites, more = {**self.sites, name: site}, (*self.links, *links)
        net = topology.network(sites, more, self.measure)
        return self._mended(net, sites, more, lambda one, old: one.join(old, name))

    def left(self, name: str) -> "Place":
        """Without a site and its links."""
        sites = {one: site for one, site in self.sites.items() if one != name}
        links = tuple(link for link in self.links if name not in link.between)
        net = topology.network(sites, links, self.measure)
        return self._mended(net, sites, links, lambda one, old: one.leave(old, name))

    def _mended(
        self, net: Network, sites: Mapping[str, Site], links: Sequence[Link],
        mend: Callable[[Builder, Hierarchy], Hierarchy],
    ) -> "Place":  # fmt: skip
        """With every hierarchy mended, not built anew."""
        choices = tuple(
            Levels(mend(topology.builder(net, old.max_cs, self.seed), old), net)
            for old in (levels.hierarchy for levels in self.choices)
        )
        return Place(sites, links, self.measure, self.seed, net, choices)


@dataclass(frozen=True, eq=False)
class Session:
    """A place, the load, what is deployed, and the latest plan of each query."""

    place: Place
    load: Load
    strategy: str
    deployed: Deployed
    plans: Mapping[str, tuple[Planned, float]]
    """The latest plan of each query that was planned here, and the seconds that took."""
    known: Mapping[str, float]
    """Of each query that was deployed before, the exact least when it was planned."""
    clock: Callable[[], float] = perf_counter
    """By which planning is timed."""

    @classmethod
    def begin(
        cls, place: Place, load: Load, strategy: str, deployed: Deployed | None = None,
        optima: Mapping[str, float] | None = None,
    ) -> "Session":  # fmt: skip
        """What runs already, with the base streams advertised."""
        known = (deployed or Deployed()).knowing(load)
        return cls(place, load, strategy, known, {}, optima or {})

    def deploy(self, demand: Demand) -> "Session":
        """Plan, place and deploy a query."""
        self._check(demand)
        choices = self.place.choices if self.strategy in BY_LEVELS else self.place.choices[:1]
        begun = self.clock()
        tasks = [self._task(demand, levels) for levels in choices]
        placed = [place(self.strategy, task) for task in tasks]
        seconds = self.clock() - begun
        done = best_of([planned(self.strategy, *each) for each in zip(tasks, placed, strict=True)])
        return replace(
            self,
            deployed=done.after,
            plans={**self.plans, demand.name: (done, seconds)},
        )

    def _task(self, demand: Demand, levels: Levels) -> Task:
        question = Question(self.load, demand)
        return Task(question, self.deployed, levels, lambda: self.place.coordinates)

    def _check(self, demand: Demand) -> None:
        there, net = self.place.sites, self.place.network
        if demand.sink not in there:
            raise LostError(f"the sink's site {demand.sink!r} is not there")
        for name in demand.streams:
            site = self.load.sources[name].site
            if site not in there:
                raise LostError(f"stream {name} comes in at {site!r}, which is not there")
            if not net.reaches(site, demand.sink):
                raise LostError(f"no path leads from {site!r}, the site of {name}, to the sink")

    def undeploy(self, query: str) -> "Session":
        """Stop a query; operators that others read go on."""
        return replace(self, deployed=self.deployed.without(query))

    def join(self, name: str, site: Site, links: Iterable[Link]) -> "Session":
        """A site joins; nothing moves because of it."""
        return replace(self, place=self.place.joined(name, site, links))

    def leave(self, name: str) -> tuple["Session", list[str]]:
        """A site leaves, and the queries that depend on what stood there are planned again."""
        return replace(self, place=self.place.left(name)).again()

    def again(self) -> tuple["Session", list[str]]:
        """Plan again what stands on sites that are not there."""
        lost = self.lost()
        demands = [self.deployed.demands[query] for query in lost]
        found = self
        for query in lost:
            found = found.undeploy(query)
        for demand in demands:
            found = found.deploy(demand)
        return found, lost

    def lost(self) -> list[str]:
        """The queries that read, over any way, what stands on a site that is not there."""
        nodes = self.deployed.nodes
        gone: dict[Key, bool] = {}

        def is_gone(key: Key) -> bool:
            if key not in gone:
                node = nodes[key]
                away = node.site not in self.place.sites and key.kind is not Kind.BASE
                gone[key] = away or any(is_gone(read.source) for read in node.reads)
            return gone[key]

        return [name for name in self.deployed.demands if is_gone(self.deployed.sinks[name])]

    @property
    def optima(self) -> dict[str, float]:
        """Of each query that is deployed, the exact least when it was planned."""
        return {
            name: self.plans[name][0].optimum if name in self.plans else self.known.get(name, 0.0)
            for name in self.deployed.demands
        }

    @property
    def usage(self) -> float:
        """Of all that runs."""
        return self.deployed.usage(self.load, self.place.network)
