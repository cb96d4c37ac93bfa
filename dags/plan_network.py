"""Where jobs' operators should run on their networks, on new statistics or by hand."""

from typing import Any

from airflow.sdk import AssetAny, Param, TriggerRule, dag, get_current_context, task

from dags import registry
from dags.commands import RefusedError, asker, midstream, skip, tell
from dags.defaults import DEFAULTS, TAGS, words
from dags.news import asset, job_of

JOBS = {name: job for name, job in registry.jobs().items() if job.network}
NEWS = "those with new statistics"

BEST = "the best of all"

PARAMS = {
    "job": Param(
        NEWS,
        enum=[NEWS, *JOBS],
        title="Job",
        description="Whose network to look at. By hand, choose one.",
    ),
    "reason": Param(
        None,
        type=["string", "null"],
        title="Reason",
        description="Why you ask; needed by hand. Kept in the history for good.",
    ),
    "dry_run": Param(
        default=True,
        type="boolean",
        title="Dry run",
        description="By hand: say what would be deployed, and keep nothing.",
    ),
    "strategy": Param(
        BEST,
        enum=[BEST, *registry.NETWORKS],
        title="Strategy",
        description="How to plan and place, this time.",
    ),
    "max_cs": Param(
        "auto",
        type="string",
        pattern="^(auto|[0-9]+)$",
        title="Sites of a cluster",
        description="The most that a cluster of the hierarchy has, or auto.",
    ),
}


@task(retries=2)
def wanted(params: dict[str, Any]) -> list[list[str]]:
    """Which jobs to look at: each with its file."""
    if not _by_hand():
        events = get_current_context()["triggering_asset_events"]
        names = {job_of(asset.name) for asset in events}
        return [[job.name, job.file] for job in JOBS.values() if job.name in names]
    if not (params["reason"] or "").strip():
        raise RefusedError("reason: say why you ask, for those who read it later")
    if params["job"] == NEWS:
        raise RefusedError("job: choose whose network to look at")
    job = JOBS[params["job"]]
    return [[job.name, job.file]]


@task(
    retries=2,
    map_index_template="{{ job }}",
    doc_md="Plans one job over its network: proposes where usage has drifted; by hand it deploys.",
)
def plan(about: list[str], params: dict[str, Any]) -> dict[str, Any]:
    """Plan one job over its network: propose where usage has drifted; by hand, deploy."""
    job, file = about
    get_current_context()["job"] = job
    options = _wishes(params) if _by_hand() else ["--propose"]
    found = midstream("plan-network", *options, "--", file, by=asker(), fine=(0, 3))
    if "outcome" not in found.data:
        raise RefusedError(found.problem)
    _show(found.data)
    if found.data["outcome"] == "blocked":
        skip(found.data["reasons"][0])
    return {name: found.data[name] for name in ("id", "job", "outcome", "deployed")}


@task(retries=2, trigger_rule=TriggerRule.ALL_DONE)
def track(_planned: Any, jobs: list[list[str]]) -> None:
    """Write deployments to MLflow; while it does not answer, that is made up for later."""
    missed = []
    for _, file in jobs or ():
        found = midstream("track", "--", file).data
        for name, url in found["runs"].items():
            tell("%s: %s", name, url)
        missed += [found["missed"]] if found["missed"] else []
    if missed:
        skip(f"next time: {'; '.join(missed)}")


@task(trigger_rule=TriggerRule.ONE_FAILED)
def escalate() -> None:
    """Fail the run if something before has failed, whatever else went well."""
    raise RefusedError("see the tasks before, and failures.log")


@dag(
    schedule=AssetAny(*map(asset, JOBS)) if JOBS else None,
    max_active_runs=1,
    default_args=DEFAULTS,
    tags=[*TAGS, "decision", "on-call"],
    doc_md=words("plan_network"),
    params=PARAMS,
)
def plan_network() -> None:
    """Plan job by job, and log it."""
    jobs = wanted()
    planned = plan.expand(about=jobs)
    track(planned, jobs)
    [jobs, planned] >> escalate()


def _by_hand() -> bool:
    """Whether a person has started this run; the form is theirs."""
    return bool(get_current_context()["dag_run"].run_type != "asset_triggered")


def _wishes(params: dict[str, Any]) -> list[str]:
    """What a person has set, as the command's options."""
    found = ["--dry-run"] if params["dry_run"] else []
    found += [f"--strategy={params['strategy']}"] if params["strategy"] != BEST else []
    return [*found, f"--max-cs={params['max_cs']}", f"--reason={params['reason']}"]


def _show(found: dict[str, Any]) -> None:
    """A deployment in the task's log."""
    tell("%s: %s", found["job"], found["outcome"])
    for reason in found["reasons"]:
        tell("%s", reason)
    for one in found["candidates"]:
        tell("%-16s usage %.4g, %s joins", one["strategy"], one["usage"], one["joins"])
    for step in found["steps"]:
        where = f"{step['from']} -> {step['site']}" if "from" in step else step["site"]
        tell("%-9s %s %s, %s", step["do"], step["kind"], " ".join(step["streams"]), where)
    if found["deployed"]:
        tell("%s is in force from now on", found["id"])


plan_network()
