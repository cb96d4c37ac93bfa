"""What happens to a network, event by event, each checked against what is there by then."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from jobs.documents import Document, Loc
from jobs.errors import RefusedError
from jobs.network.files import Event, JoinEvent, QueriesFile, refuse
from jobs.network.session import LostError, Session
from jobs.words import unknown
from optimizer.network.load import Demand, LoadError
from optimizer.network.sites import NoSiteError, Site

Told = Callable[[int, int], None]


@dataclass
class Script:
    """A file's events, carried out one after another."""

    file: QueriesFile
    document: Document
    session: Session
    demands: Mapping[str, Demand]
    happened: list[dict[str, Any]] = field(default_factory=list)

    def catch_up(self) -> None:
        """Plan again what a state holds on sites that the network file no longer names."""
        for name, demand in self.session.deployed.demands.items():
            for stream in demand.streams:
                if stream not in self.session.load.sources:
                    problem = f"query {name!r} runs and reads {stream!r}: give its rate and site"
                    raise refuse(self.document, ("streams",), problem)
        with self._refusing(("streams",)):
            self.session, again = self.session.again()
        if again:
            self.happened.append({"state": "read", "replanned": again})

    def run(self, told: Told = lambda _done, _total: None) -> Session:
        """Carry out all of them; by default all queries are deployed in their order."""
        steps = list(self._steps())
        for done, (loc, event) in enumerate(steps):
            told(done, len(steps))
            with self._refusing(loc):
                again = self._happen(loc, event)
            self.happened.append({event.kind: _name(event), "replanned": again})
        return self.session

    @contextmanager
    def _refusing(self, loc: Loc) -> Iterator[None]:
        """What cannot be planned is answered with the field that asks for it."""
        try:
            yield
        except LostError as error:
            raise refuse(self.document, loc, str(error)) from None
        except LoadError as error:
            raise refuse(self.document, loc, f"{error}: lower rates or the window") from None
        except NoSiteError as error:
            raise RefusedError(str(error), self.document.where(loc)) from None

    def _steps(self) -> Iterator[tuple[Loc, Event]]:
        if self.file.events is not None:
            for number, event in enumerate(self.file.events):
                yield ("events", number, event.kind), event
            return
        for number, query in enumerate(self.file.queries):
            running = self.session.deployed.demands.get(query.title)
            if running is None:
                yield ("queries", number), Event(deploy=query.title)
            elif not same(running, self.demands[query.title]):
                problem = f"another query called {query.title!r} runs already: undeploy it first"
                raise refuse(self.document, ("queries", number, "name"), problem)

    def _happen(self, loc: Loc, event: Event) -> list[str]:
        again: list[str] = []
        match event.kind, event.what:
            case "deploy", str(name):
                self._deploy(loc, name)
            case "undeploy", str(name):
                self._running(loc, name)
                self.session = self.session.undeploy(name)
            case "leave", str(name):
                again = self._leave(loc, name)
            case _, JoinEvent() as joining:
                self._join(loc, joining)
        return again

    def _deploy(self, loc: Loc, name: str) -> None:
        if name in self.session.deployed.demands:
            raise refuse(self.document, loc, f"query {name!r} is deployed already")
        number = next(n for n, q in enumerate(self.file.queries) if q.title == name)
        try:
            self.session = self.session.deploy(self.demands[name])
        except LostError as error:
            raise refuse(self.document, self._place(number), str(error)) from None

    def _place(self, number: int) -> Loc:
        """The field that says where: a stream's site, or else the sink's."""
        query, sites = self.file.queries[number], self.session.place.sites
        for name in self.demands[query.title].streams:
            if query.sink in sites and (self.file.streams[name].site not in sites):
                return ("streams", name, "site")
        return ("queries", number, "sink")

    def _running(self, loc: Loc, name: str) -> None:
        there = self.session.deployed.demands
        if name not in there:
            raise refuse(self.document, loc, unknown("deployed query", name, there))

    def _leave(self, loc: Loc, name: str) -> list[str]:
        sites = self.session.place.sites
        if name not in sites:
            raise refuse(self.document, loc, unknown("site", name, sites))
        if len(sites) == 1:
            raise refuse(self.document, loc, f"{name!r} is the last site")
        self._check_needed(loc, name)
        self.session, again = self.session.leave(name)
        return again

    def _check_needed(self, loc: Loc, site: str) -> None:
        """What comes in or goes out at a site cannot be planned elsewhere."""
        for query, demand in self.session.deployed.demands.items():
            if demand.sink == site:
                raise refuse(self.document, loc, f"the sink of {query!r} stands there: undeploy it")
            for name in demand.streams:
                if self.session.load.sources[name].site == site:
                    problem = f"stream {name} of {query!r} comes in there: undeploy the query"
                    raise refuse(self.document, loc, problem)

    def _join(self, loc: Loc, joining: JoinEvent) -> None:
        sites = self.session.place.sites
        if joining.site in sites:
            problem = f"a site is called {joining.site!r} already"
            raise refuse(self.document, (*loc, "site"), problem)
        for number, link in enumerate(joining.links):
            at = (*loc, "links", number, "between")
            if joining.site not in link.between:
                raise refuse(self.document, at, f"one of the two must be {joining.site!r}")
            for name in link.between:
                if name not in {*sites, joining.site}:
                    raise refuse(self.document, at, unknown("site", name, sites))
        site = Site(float("inf") if joining.capacity is None else joining.capacity, joining.load)
        links = [link.link() for link in joining.links]
        self.session = self.session.join(joining.site, site, links)


def same(running: Demand, asked: Demand) -> bool:
    """Whether they want the same, however it was written."""
    return _plain(running) == _plain(asked)


def _plain(demand: Demand) -> Demand:
    where = {name: given for name, given in demand.where.items() if given}
    return replace(demand, where=where, widths=dict(demand.widths), windows=dict(demand.windows))


def _name(event: Event) -> str:
    return event.join.site if event.join is not None else str(event.what)
