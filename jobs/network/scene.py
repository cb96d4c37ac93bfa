"""A job on its network: what it takes of that now, and what else strategies come to.

Nothing is carried out: what is in force is what was deployed last, and before that everything runs
at the job's own site.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from jobs.errors import InputError, RefusedError
from jobs.network import state
from jobs.network.deployments import DeploymentLog
from jobs.network.job_load import joins_of, load_of, place_of
from jobs.network.job_queries import Resolved
from jobs.network.session import LostError, Place, Session
from jobs.planning_task import from_job
from jobs.pricing import Prices, by_windows, recent
from jobs.proposals import Running
from jobs.specs import Job
from jobs.status import recent as batches
from jobs.tables.paths import local
from optimizer.network.deployment import Deployed, at_site
from optimizer.network.load import Demand, LoadError
from optimizer.network.sites import NoSiteError
from optimizer.network.states import restated
from optimizer.plan import Plan
from optimizer.workload import Workload
from stats.store import Snapshot, StatsStore, Window


@dataclass(frozen=True)
class Wish:
    """Who wants to know, when (in microseconds), why, and how to search."""

    now: int
    by: str
    why: str = ""
    strategy: str | None = None
    """Only this one; otherwise the best of all."""
    max_cs: int | None = None
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Scene:
    """A job on its network, what its streams were like, and what is in force."""

    job: Job
    place: Place
    plans: Mapping[str, Plan]
    windows: tuple[Window, ...]
    whole: Resolved
    """By all windows together."""
    by_window: tuple[Resolved, ...]

    @classmethod
    def of(cls, job: Job, wish: Wish) -> "Scene | None":
        """By the last validated windows; nothing without any."""
        place, plans = place_of(job, wish.max_cs, wish.seed), plans_of(job)
        stats = StatsStore.of(local(job.storage))
        windows = recent(job, stats.good())[-job.reoptimize.windows :]
        if not windows:
            return None
        stats = Snapshot(stats.root, since=windows[0].start)

        def look(some: Sequence[Window]) -> Resolved:
            return load_of(job, plans, dict(_workloads(job, plans, stats, some)))

        by_window = tuple(look([one]) for one in windows)
        return cls(job, place, plans, tuple(windows), look(windows), by_window)

    @cached_property
    def kept(self) -> Deployed:
        """What is in force."""
        return in_force(self.job, self.place, self.whole)

    def running(self, seen: Resolved) -> Deployed:
        """What is in force, and what never was deployed, at the job's own site."""
        found = restated(self.kept, seen.demands).knowing(seen.load)
        assert self.job.site is not None
        for name, plan in self.plans.items():
            if name not in found.demands:
                demand, joins = seen.demands[name], joins_of(plan)
                found = at_site(found, seen.load, demand, self.job.site, joins)
        return found

    def planned(self, seen: Resolved, strategy: str) -> Session:
        """All queries by a strategy, from nothing."""
        session = Session.begin(self.place, seen.load, strategy)
        try:
            for demand in seen.demands.values():
                session = session.deploy(demand)
        except (LostError, LoadError) as error:
            raise InputError(str(error), self.job.document.where(("network",))) from None
        except NoSiteError as error:
            raise RefusedError(str(error), self.job.network or "") from None
        return session

    def usage(self, deployed: Deployed, seen: Resolved) -> float:
        """Of all that travels, what several read alike once."""
        flows = deployed.shared_flows(seen.load, self.place.network)
        return sum(one.usage for one in flows)


def in_force(job: Job, place: Place, seen: Resolved) -> Deployed:
    """What was deployed last, of queries that are still the same, at sites that are there."""
    found, _ = state.read(DeploymentLog.of(local(job.storage)).root)
    for name, demand in found.demands.items():
        wanted = seen.demands.get(name)
        if wanted is None or not alike(demand, wanted):
            found = found.without(name)
    for name in Session.begin(place, seen.load, "", found).lost():
        found = found.without(name)
    return found


def plans_of(job: Job) -> dict[str, Plan]:
    """The plans that run; of what never ran, those to start with."""
    running = Running.of(job).plans if batches(local(job.storage)) else {}
    return {name: running.get(name) or job.plan(name) for name in job.queries}


def _workloads(
    job: Job, plans: Mapping[str, Plan], stats: StatsStore, windows: Sequence[Window]
) -> Iterator[tuple[str, Workload]]:
    prices = Prices.of(job)
    for name, plan in plans.items():
        task = replace(from_job(job, name), start=plan.tree)
        yield name, by_windows(job, task, stats, windows, prices).workload


def alike(one: Demand, other: Demand) -> bool:
    """Whether two demands are the same but for what statistics say."""
    return _shape(one) == _shape(other)


def _shape(demand: Demand) -> tuple[object, ...]:
    columns = {name: {c for c, _ in kept} for name, kept in demand.columns.items()}
    where = {name: set(given) for name, given in demand.where.items() if given}
    return demand.streams, demand.sink, where, dict(demand.windows), columns
