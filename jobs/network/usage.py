"""What one plan of a job takes of its network, site by site, for `midstream explain`."""

from collections.abc import Iterator
from typing import Any

from jobs.network import told
from jobs.network.job_load import joins_of, load_of, place_of
from jobs.network.scene import in_force
from jobs.specs import Job
from optimizer.network.deployment import Deployed, Flow, Kind, at_site
from optimizer.network.sites import Network
from optimizer.network.states import restated
from optimizer.picture.sites import SiteUsage
from optimizer.plan import Plan
from optimizer.workload import Workload


def usage(job: Job, name: str, plan: Plan, workload: Workload, *, asked: bool) -> dict[str, Any]:
    """By the deployment in force; a plan that was asked for runs at the job's own site."""
    place, seen = place_of(job), load_of(job, {name: plan}, {name: workload})
    kept = Deployed() if asked else in_force(job, place, seen)
    deployed = restated(kept, seen.demands).knowing(seen.load)
    if not kept.demands:
        assert job.site is not None
        deployed = at_site(deployed, seen.load, seen.demands[name], job.site, joins_of(plan))
    flows = deployed.shared_flows(seen.load, place.network)
    return {
        "measure": place.measure,
        "deployed": bool(kept.demands),
        "usage": sum(one.usage for one in flows),
        "sites": list(_sites(deployed, flows)),
        "flows": [_flow(one, place.network) for one in flows if one.start != one.end],
    }


def _sites(deployed: Deployed, flows: list[Flow]) -> Iterator[dict[str, Any]]:
    """Every site that something stands at; a flow counts where it is read."""
    read = {one.source for node in deployed.derived() for one in node.reads}
    there = [n for k, n in deployed.nodes.items() if k.kind is not Kind.BASE or k in read]
    for site in dict.fromkeys(node.site for node in there):
        away = [one for one in flows if one.start != one.end]
        yield {
            "site": site,
            **{f"{kind}s": _held(there, site, kind) for kind in Kind},
            "bytes_in": sum(one.bytes for one in away if one.end == site),
            "bytes_out": sum(one.bytes for one in away if one.start == site),
            "usage": sum(one.usage for one in flows if one.end == site),
        }


def _held(there: list[Any], site: str, kind: Kind) -> list[list[str]]:
    here = [node for node in there if node.site == site and node.key.kind is kind]
    return [sorted(node.content.streams) for node in here]


def _flow(one: Flow, network: Network) -> dict[str, Any]:
    return {
        "streams": sorted(one.read.content.streams),
        "where": told.where(one.read.content),
        "from": one.start,
        "to": one.end,
        "path": network.path(one.start, one.end),
        "bytes_per_s": one.bytes,
        "usage": one.usage,
    }


def drawn(found: dict[str, Any]) -> list[SiteUsage]:
    """The same for the picture."""
    return [
        SiteUsage(
            one["site"],
            [f"{kind} {' '.join(held)}" for kind in ("stream", "join", "result")
             for held in one[_LISTS[kind]]],
            one["bytes_in"], one["bytes_out"], one["usage"],
        )
        for one in found["sites"]
    ]  # fmt: skip


_LISTS = {"stream": "bases", "join": "operators", "result": "sinks"}
