"""Queries of jobs among those of a network: what their validated statistics say of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.documents import Document, Loc
from jobs.errors import InputError, RefusedError
from jobs.network.files import QueriesFile, QueryFields, refuse
from optimizer.estimate import Estimator
from optimizer.identity import stateful
from optimizer.network.load import Demand, Source, WindowLoad
from optimizer.network.streams import Predicate
from optimizer.plan import Join, Plan, walk
from optimizer.query import Query
from optimizer.workload import Workload

if TYPE_CHECKING:
    from jobs.specs import Job


@dataclass
class Resolved:
    """All queries of a file with the load that they run under."""

    file: QueriesFile
    document: Document
    sources: dict[str, Source] = field(default_factory=dict)
    joins: dict[frozenset[str], float] = field(default_factory=dict)
    demands: dict[str, Demand] = field(default_factory=dict)
    _texts: dict[frozenset[str], frozenset[str]] = field(default_factory=dict)
    """The predicates of jobs between two streams: others would make another stream."""

    @classmethod
    def of(cls, file: QueriesFile, document: Document) -> "Resolved":
        """The file's own queries, and those of jobs."""
        found = cls(file, document, joins=file.shares())
        for number, query in enumerate(file.queries):
            loc: Loc = ("queries", number)
            found.demands[query.title] = (
                query.demand() if query.job is None else found._from_job(loc, query, query.job)
            )
        for name, stream in file.streams.items():
            if stream.rate is not None:
                width = 100.0 if stream.width is None else stream.width
                found.sources[name] = Source(stream.rate, width, stream.site)
        return found

    @property
    def load(self) -> WindowLoad:
        """As the optimizer sees it."""
        return WindowLoad(self.sources, self.file.window or 0.0, self.joins)

    def _from_job(self, loc: Loc, fields: QueryFields, file: str) -> Demand:
        from jobs import specs

        job, at = specs.load(Path(file)), (*loc, "query")
        assert fields.query is not None
        try:
            plan = job.plan(fields.query)
        except InputError as error:
            raise refuse(self.document, at, error.problems[0].error) from None
        for _, stream in plan.query.inputs:
            if stream.name not in self.file.streams:
                problem = f"reads stream {stream.name}: say under streams at which site it comes in"
                raise refuse(self.document, (*loc, "job"), problem)
        self.check(at, plan)
        return self.demand(at, fields.title, fields.sink, plan, _observed(job, fields.query, plan))

    def check(self, at: Loc, plan: Plan) -> None:
        """Refuse a query that a network cannot be planned for."""
        names = [stream.name for _, stream in plan.query.inputs]
        if len(set(names)) < len(names):
            problem = "a stream joins itself there, and here it joins others only"
            raise refuse(self.document, at, problem)

    def demand(self, at: Loc, title: str, sink: str, plan: Plan, workload: Workload) -> Demand:
        """What a job's query wants; its streams and its joins are noted."""
        query = plan.query
        names = {alias: stream.name for alias, stream in query.inputs}
        for alias, name in names.items():
            self._source(name, workload, alias)
        self._connect(at, query, names, workload)
        return self._demand(at, title, sink, plan, names, workload)

    def _source(self, name: str, workload: Workload, alias: str) -> None:
        """What the file says of a stream counts, and what it leaves out the statistics say."""
        seen, said = workload.streams[alias], self.file.streams[name]
        rate = seen.rate if said.rate is None else said.rate
        self.sources.setdefault(
            name, Source(rate, seen.width if said.width is None else said.width, said.site)
        )

    def _connect(self, at: Loc, query: Query, names: Mapping[str, str], workload: Workload) -> None:
        for edge, predicates in query.graph.edges.items():
            pair = frozenset(names[alias] for alias in edge)
            texts = frozenset(str(p.rename(names)) for p in predicates)
            if self._texts.setdefault(pair, texts) != texts:
                one, other = sorted(pair)
                problem = f"joins {one} and {other} by other predicates than a query above"
                raise refuse(self.document, at, problem)
            self.joins.setdefault(pair, workload.joins[edge])

    def _demand(  # a query, and all that is known of it
        self, at: Loc, title: str, sink: str, plan: Plan, names: Mapping[str, str],
        workload: Workload,
    ) -> Demand:  # fmt: skip
        query, estimator = plan.query, Estimator(plan.query, workload)
        windows = estimator.volumes.windows
        if windows is None and len(names) > 1:
            problem = "bounds a stream's partners differently; a window for each stream is needed"
            raise refuse(self.document, at, problem)
        where = {
            names[alias]: tuple(
                Predicate.of(str(p.rename(names)), workload.select(query, p))
                for p in query.selects(alias)
            )
            for alias in query.aliases
        }
        spans = dict(zip(names.values(), windows or (), strict=False))
        return Demand(
            title, tuple(names.values()), sink, where, {},
            {name: (seconds, 0.0) for name, seconds in spans.items()},
            {names[alias]: found for alias, found in _columns(plan, estimator).items()},
        )  # fmt: skip


def _columns(plan: Plan, estimator: Estimator) -> dict[str, frozenset[tuple[str, float]]]:
    """The columns that a query keeps of each stream, with their bytes."""
    joined = any(isinstance(node, Join) for node in walk(plan.root))
    nodes = [node for node in stateful(plan.root) if joined and len(node.aliases) == 1]
    return {
        alias: frozenset((c.name, estimator.column_width(c)) for c in node.columns)
        for node in nodes
        for alias in node.aliases
    }


def _observed(job: "Job", name: str, plan: Plan) -> Workload:
    """What validated windows say; without any, nothing is made up."""
    from jobs.planning_task import from_job
    from jobs.pricing import Prices, by_windows, recent
    from jobs.tables.paths import local
    from stats.store import StatsStore

    stats = StatsStore.of(local(job.storage))
    windows = recent(job, stats.good())
    if not windows:
        problem = f"job {job.job} has no validated statistics: midstream stats collect and validate"
        raise RefusedError(problem, str(job.file))
    task = replace(from_job(job, name), start=plan.tree)
    return by_windows(job, task, stats, windows, Prices.of(job)).workload
