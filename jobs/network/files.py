"""The files of a network and of queries over it, checked field by field."""

from collections import Counter
from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from jobs.documents import (
    Document,
    Loc,
    Location,
    Model,
    Positive,
    Share,
    check,
    expected,
    read,
    wrong,
)
from jobs.errors import InputError
from jobs.words import unknown
from jobs.workloads import NotNegative, Span
from optimizer.network.load import Demand
from optimizer.network.sites import Link, Site
from optimizer.network.streams import Predicate

# --- fields --------------------------------------------------------------------------------------


def _said(name: str) -> str:
    if not name.strip():
        raise expected("a name, not blanks")
    return name


def _two(value: Any) -> Any:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise expected("a list of two")
    return tuple(value)


def _different(names: tuple[str, str]) -> tuple[str, str]:
    if names[0] == names[1]:
        raise expected("two different names")
    return names


def _listed(value: Any) -> Any:
    """Sites as a list of names are sites of which nothing more is said."""
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        if twice := next((n for n, times in Counter(value).items() if times > 1), None):
            raise expected(f"each site once; {twice!r} is there twice")
        return dict.fromkeys(value)
    return value


def _nothing(value: Any) -> Any:
    return {} if value is None else value


Name = Annotated[str, Field(strict=True), AfterValidator(_said)]
Pair = Annotated[tuple[Name, Name], BeforeValidator(_two), AfterValidator(_different)]


class SiteFields(Model):
    """A place where operators may run."""

    capacity: Annotated[int, Field(strict=True, ge=0)] | None = None
    """So many operators at most; 0: it is unfit for any."""
    load: NotNegative = 0.0
    """What every byte a second that an operator reads here costs, besides its transport."""

    def site(self) -> Site:
        """As the optimizer sees it."""
        return Site(inf if self.capacity is None else self.capacity, self.load)


class LinkFields(Model):
    """Two sites that are connected directly."""

    between: Pair = Field(description="two sites, such as [n1, n2]")
    latency: NotNegative = Field(description="what it takes from one to the other, 0 or more")
    cost: NotNegative | None = None

    def link(self) -> Link:
        """As the optimizer sees it."""
        return Link(self.between, self.latency, self.cost)


class NetworkFile(Model):
    """Sites and links."""

    sites: Annotated[
        Mapping[Name, Annotated[SiteFields, BeforeValidator(_nothing)]],
        BeforeValidator(_listed),
        Field(min_length=1),
    ] = Field(description="the sites, as a list of names or by name")
    links: tuple[LinkFields, ...] = ()
    measure: Literal["latency", "cost"] = "latency"
    """What distances are measured in."""

    @model_validator(mode="after")
    def _known_sites(self) -> Self:
        problems: dict[Loc, str] = {
            ("links", number, "between"): unknown("site", name, self.sites)
            for number, link in enumerate(self.links)
            for name in link.between
            if name not in self.sites
        }
        if problems:
            raise wrong(problems)
        return self


class StreamFields(Model):
    """A base stream and where it comes in."""

    rate: NotNegative | None = None
    """Tuples a second; what is left out, the statistics of a job that reads it say."""
    width: Positive | None = None
    """Bytes of a tuple, by default 100 or what the statistics say."""
    site: Name = Field(description="the site where it comes in")


class JoinFields(Model):
    """How many of the pairs of two streams match."""

    between: Pair = Field(description="two streams, such as [A, B]")
    selectivity: Share = Field(description="the share of pairs that match, 0 to 1")


class WhereFields(Model):
    """A predicate of a query on one of its streams."""

    stream: Name = Field(description="one of the query's streams")
    predicate: Name = Field(description="its text, such as num = 7")
    selectivity: Share = Field(description="the share of tuples that pass, 0 to 1")


class QueryFields(Model):
    """What a query joins, or which query of a job it is, and where its result goes."""

    name: Name | None = None
    streams: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    job: Location | None = None
    """A job file: what its query joins, and how much that is, the job and its statistics say."""
    query: Name | None = None
    sink: Name = Field(description="the site where its result goes")
    where: tuple[WhereFields, ...] = ()
    columns: Mapping[Name, Positive] = {}
    """Bytes kept of a stream's tuples."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        """Either everything is said here, or the job says it."""
        here: dict[Loc, str] = {}
        if self.job is None:
            if self.name is None:
                here["name",] = "missing; needed: the query's name"
            if self.streams is None:
                here["streams",] = "missing; needed: the streams that it joins, or a job"
            if self.query is not None:
                here["query",] = "only with job: it is one of that job's"
        else:
            if self.query is None:
                here["query",] = "missing; needed: which of the job's queries"
            said = {"streams": self.streams, "where": self.where, "columns": self.columns}
            here |= {(n,): "the job's query says that itself: remove it" for n in said if said[n]}
        if here:
            raise wrong(here)
        return self

    @property
    def title(self) -> str:
        """The query's name, by default as the job calls it."""
        return self.name or self.query or ""

    @property
    def joined(self) -> tuple[str, ...]:
        """The streams that are named here."""
        return self.streams or ()

    def demand(self) -> Demand:
        """As the optimizer sees it."""
        where = {
            stream: tuple(
                Predicate.of(w.predicate, w.selectivity) for w in self.where if w.stream == stream
            )
            for stream in self.joined
        }
        return Demand(self.title, self.joined, self.sink, where, dict(self.columns))


class JoinEvent(Model):
    """A site that joins the network, with its links."""

    site: Name = Field(description="the site's name")
    links: Annotated[tuple[LinkFields, ...], Field(min_length=1)] = Field(
        description="its links to sites that are there"
    )
    capacity: Annotated[int, Field(strict=True, ge=0)] | None = None
    load: NotNegative = 0.0


class Event(Model):
    """Something that happens: exactly one of these."""

    deploy: Name | None = None
    undeploy: Name | None = None
    leave: Name | None = None
    join: JoinEvent | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.model_fields_set) != 1 or self.what is None:
            raise expected("one of deploy, undeploy, leave and join")
        return self

    @property
    def kind(self) -> str:
        """Which one."""
        return next(iter(self.model_fields_set))

    @property
    def what(self) -> "str | JoinEvent | None":
        """To what it happens."""
        found: str | JoinEvent | None = getattr(self, self.kind)
        return found


class QueriesFile(Model):
    """Streams, queries over them, and what happens in which order."""

    window: Span | None = None
    streams: Annotated[Mapping[Name, StreamFields], Field(min_length=1)] = Field(
        description="the streams by name, each with its rate and site"
    )
    joins: tuple[JoinFields, ...] = ()
    queries: tuple[QueryFields, ...] = ()
    events: tuple[Event, ...] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if problems := dict(self._problems()):
            raise wrong(problems)
        return self

    def _problems(self) -> Iterator[tuple[Loc, str]]:
        pairs: set[frozenset[str]] = set()
        for number, join in enumerate(self.joins):
            for name in join.between:
                if name not in self.streams:
                    yield ("joins", number, "between"), unknown("stream", name, self.streams)
            if frozenset(join.between) in pairs:
                yield ("joins", number, "between"), "these two are joined above already"
            pairs.add(frozenset(join.between))
        names: set[str] = set()
        for number, query in enumerate(self.queries):
            if query.title in names:
                yield ("queries", number, "name"), f"a query above is called {query.title!r}, too"
            names.add(query.title)
            yield from self._query_problems(("queries", number), query)
        for number, event in enumerate(self.events or ()):
            if event.deploy is not None and event.deploy not in names:
                yield ("events", number, "deploy"), unknown("query", event.deploy, names)

    def _query_problems(self, at: Loc, query: QueryFields) -> Iterator[tuple[Loc, str]]:
        for name, times in Counter(query.joined).items():
            if name not in self.streams:
                yield (*at, "streams"), unknown("stream", name, self.streams)
            elif times > 1:
                yield (*at, "streams"), f"{name!r} is there twice; a stream joins others only"
            elif self.streams[name].rate is None:
                yield ("streams", name, "rate"), "missing; needed: tuples per second"
        for number, where in enumerate(query.where):
            if where.stream not in query.joined:
                loc = (*at, "where", number, "stream")
                yield loc, unknown("stream of this query", where.stream, query.joined)
        for name in query.columns:
            if name not in query.joined:
                yield (*at, "columns", name), unknown("stream of this query", name, query.joined)
        if len(query.joined) > 1 and self.window is None:
            yield ("window",), "missing; needed: the seconds within which streams are joined"

    def shares(self) -> dict[frozenset[str], float]:
        """The selectivities that are said here."""
        return {frozenset(join.between): join.selectivity for join in self.joins}


# --- both ----------------------------------------------------------------------------------------


def load(network: Path, queries: Path) -> tuple[NetworkFile, QueriesFile, Document, Document]:
    """Both files, and the documents that errors name."""
    first, second = read(network), read(queries)
    return check(NetworkFile, first), check(QueriesFile, second), first, second


def refuse(document: Document, loc: Loc, problem: str) -> InputError:
    """That a field of a file is wrong."""
    return InputError(problem, document.where(loc))
