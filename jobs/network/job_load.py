"""A job over its network: the sites of its file, and what its queries make the streams carry."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from jobs.documents import check, read
from jobs.errors import InputError, Problem
from jobs.network.files import NetworkFile, QueriesFile, StreamFields
from jobs.network.job_queries import Resolved
from jobs.network.session import Place
from jobs.specs import Job
from jobs.words import unknown
from optimizer.network.deployment import Joined
from optimizer.plan import Join, Plan, walk
from optimizer.workload import Workload


def place_of(job: Job, max_cs: int | None = None, seed: int = 0) -> Place:
    """The network that a job's file names, if it has all sites that the job is to be at."""
    assert job.network is not None
    file = check(NetworkFile, read(Path(job.network)))
    problems = [
        Problem(unknown("site", site, file.sites), job.document.where(loc))
        for loc, site in job.sites
        if site not in file.sites
    ]
    if problems:
        raise InputError(problems[0].error, problems[0].where, more=problems[1:])
    return Place.of_file(file, max_cs, seed)


def load_of(job: Job, plans: Mapping[str, Plan], workloads: Mapping[str, Workload]) -> Resolved:
    """What a job's queries want, under a workload each."""
    assert job.site is not None
    sites = {name: spec.site or job.site for name, spec in job.streams.items()}
    file = QueriesFile(streams={name: StreamFields(site=site) for name, site in sites.items()})
    found = Resolved(file, job.document)
    for name, plan in plans.items():
        at = ("queries", name, "sql")
        found.check(at, plan)
        sink = job.queries[name].sink.site or job.site
        found.demands[name] = found.demand(at, name, sink, plan, workloads[name])
    return found


def joins_of(plan: Plan) -> Iterator[Joined]:
    """The joins of a plan by their streams, each after what it reads; one that passes on if none.

    Whatever a job computes goes through where it runs.
    """
    names = {alias: stream.name for alias, stream in plan.query.inputs}

    def streams(aliases: frozenset[str]) -> frozenset[str]:
        return frozenset(names[alias] for alias in aliases)

    found = [
        (streams(frozenset(node.aliases)), tuple(streams(frozenset(p.aliases)) for p in node.parts))
        for node in walk(plan.root)
        if isinstance(node, Join)
    ]
    everything = frozenset(names.values())
    yield from found or [(everything, (everything,))]
