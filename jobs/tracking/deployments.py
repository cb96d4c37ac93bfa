"""A deployment over a network as an experiment's run shows it, its strategies side by side."""

from collections.abc import Iterator
from importlib.metadata import version
from json import dumps
from math import isfinite

from jobs.network.deployments import Candidate, Deployment, DeploymentLog
from jobs.specs import Job
from jobs.tracking.account import DECISION, NOTE, PACKAGES, Account, airflow, verbatim


def account(job: Job, one: Deployment, log: DeploymentLog) -> Account:
    """What there is to say of a deployment."""
    figures = one.figures
    numbers = {n: float(v) for n, v in figures.items() if isinstance(v, int | float)}
    searched = one.candidates
    return Account(
        f"{'deployed' if one.deployed else 'proposed'} over the network",
        params=dict(_params(job, one)),
        metrics=numbers | {
            "examined": float(sum(c.examined for c in searched)),
            "search_seconds": sum(c.seconds for c in searched),
            "steps": float(len(one.steps)),
        },
        series={"drift": [v for v in figures.get("drift", ()) if v is not None]},
        tags=_tags(one),
        files={"deployment.json": dumps(one.to_json(), indent=2),
               **_picture(log, one.id, one.strategy)},
        children=tuple(_child(one, candidate, log) for candidate in searched),
    )  # fmt: skip


def _params(job: Job, one: Deployment) -> Iterator[tuple[str, str]]:
    yield "found by", one.strategy
    yield "network", job.network or ""
    yield "site", job.site or ""
    for name in ("usage", "windows", "cooldown", "horizon"):
        yield f"policy.{name}", str(getattr(job.reoptimize, name))
    for query in one.queries:
        yield f"plan.{query['name']}", query["plan"]
        yield f"sites.{query['name']}", " ".join(o["site"] for o in query["operators"])
    for package in PACKAGES:
        yield f"version.{package}", version(package)


def _tags(one: Deployment) -> dict[str, str]:
    found = {
        DECISION: one.id,
        "outcome": one.outcome,
        "deployed": "yes" if one.deployed else "no",
        "by": one.by,
        "why": one.why,
        "airflow": airflow(one.by, "plan_network"),
        NOTE: _note(one),
    }
    return {name: value for name, value in found.items() if value}


def _note(one: Deployment) -> str:
    """The reasons, as MLflow shows them on top of the run's page."""
    lines = ["**deployed**" if one.deployed else "**proposed**", ""]
    lines += [f"- {reason}" for reason in one.reasons]
    asked = f"Asked by {verbatim(one.by) or 'nobody'}. {verbatim(one.why)}"
    return "\n".join([*lines, "", asked.rstrip()])


def _child(one: Deployment, candidate: Candidate, log: DeploymentLog) -> Account:
    """A strategy and what it came to, with its picture."""
    figures = {
        "usage": candidate.usage,
        "over_optimum": candidate.over_optimum,
        "examined": float(candidate.examined),
        "evaluated": float(candidate.evaluated),
        "search_seconds": candidate.seconds,
        "joins": float(candidate.joins),
    }
    taken = {"taken": "yes"} if candidate.strategy == one.strategy else {}
    return Account(
        candidate.strategy,
        params={"strategy": candidate.strategy},
        metrics={n: v for n, v in figures.items() if v is not None and isfinite(v)},
        tags={"outcome": "candidate", **taken},
        files=_picture(log, one.id, candidate.strategy),
    )


def _picture(log: DeploymentLog, id_: str, strategy: str) -> dict[str, str | bytes]:
    path = log.picture(id_, strategy)
    return {"network.svg": path.read_text(encoding="utf-8")} if path.exists() else {}
