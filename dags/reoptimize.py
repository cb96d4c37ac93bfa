"""Whether the running plans are still the right ones, on new statistics or by hand."""

from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import AssetAny, Param, TriggerRule, dag, get_current_context, task

from dags import registry
from dags.commands import RefusedError, asker, midstream, skip, tell
from dags.defaults import DEFAULTS, TAGS, words
from dags.news import asset, job_of

JOBS = registry.jobs()
NEWS = "those with new statistics"

FILE = "as the job file says"

PARAMS = {
    "query": Param(
        NEWS,
        enum=[NEWS, *registry.subjects(JOBS)],
        title="Job / query",
        description="Whose plan to look at. By hand, choose one.",
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
        description="By hand: decide, but do nothing.",
    ),
    "force": Param(
        default=False,
        type="boolean",
        title="Force",
        description="Migrate to the best plan, whatever the thresholds say.",
    ),
    "strategy": Param(
        FILE,
        enum=[FILE, *registry.SEARCHES],
        title="Strategy",
        description="How to search for a plan.",
    ),
    "objective": Param(
        FILE,
        type="string",
        pattern=rf"^({FILE}|{registry.OBJECTIVE})$",
        examples=[FILE, *registry.OBJECTIVES],
        title="Objective",
        description="What a plan is for, this time; other numbers will do.",
    ),
    "migration": Param(
        FILE,
        enum=[FILE, *registry.MIGRATIONS],
        title="Migration",
        description="How to come to it, this time.",
    ),
    "approve": Param(
        None,
        type=["string", "null"],
        title="Approve",
        description="The id of a decision that waits for you. Leave empty otherwise.",
    ),
}


@task(retries=2)
def wanted(params: dict[str, Any]) -> list[list[str]]:
    """Which queries to look at: each with its job's file."""
    if not _by_hand():
        events = get_current_context()["triggering_asset_events"]
        names = {job_of(asset.name) for asset in events}
        return [[j.file, q] for j in JOBS.values() if j.name in names for q in j.queries]
    if not (params["reason"] or "").strip():
        raise RefusedError("reason: say why you ask, for those who read it later")
    if params["query"] == NEWS:
        raise RefusedError("query: choose whose plan to look at")
    if params["approve"] and params["dry_run"]:
        raise RefusedError("dry run: to approve is to act, so switch it off")
    job, query = registry.chosen(params["query"], JOBS)
    return [[job.file, query]]


@task(
    retries=2,
    map_index_template="{{ query }}",
    doc_md="Decides about one query, and asks the job to migrate if that is what comes of it.",
)
def decide(about: list[str], params: dict[str, Any]) -> dict[str, Any]:
    """Decide about one query, and ask the job to migrate if that is what comes of it."""
    file, query = about
    get_current_context()["query"] = query
    words = ("--query", query, *(_wishes(params) if _by_hand() else ()))
    if params["approve"]:
        words = ("--approve", params["approve"])
    because = ("--reason", params["reason"]) if params["reason"] else ()
    found = midstream("reoptimize", *words, *because, "--", file, by=asker(), fine=(0, 3))
    if not isinstance(found.data, list):
        raise RefusedError(found.problem)
    (decision,) = found.data
    _show(decision)
    if decision["outcome"] == "blocked":
        why = decision["reasons"][-1]
        if params["force"]:
            raise RefusedError(why)
        skip(why)
    return {name: decision[name] for name in ("id", "job", "query", "outcome", "request")} | {
        "because": decision["reasons"][0]
    }


@task(retries=2, trigger_rule=TriggerRule.ALL_DONE)
def track(_decided: Any, queries: list[list[str]]) -> None:
    """Write what was decided to MLflow; while it does not answer, that is made up for later."""
    missed = []
    for file in sorted({file for file, _ in queries or ()}):
        found = midstream("track", "--", file).data
        for name, url in found["runs"].items():
            tell("%s: %s", name, url)
        missed += [found["missed"]] if found["missed"] else []
    if missed:
        skip(f"next time: {'; '.join(missed)}")


@task(retries=2, trigger_rule=TriggerRule.ALL_DONE)
def started(decisions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs of `migrate` that the decisions ask for, each under the decision's own name."""
    return [
        {
            "trigger_run_id": f"decision__{one['request']}",
            "conf": {
                "query": f"{one['job']} / {one['query']}",
                "request": one["request"],
                "reason": f"decision {one['id']}: {one['because']}",
                "dry_run": False,
            },
        }
        for one in decisions or ()
        if one["request"]
    ]


@task(trigger_rule=TriggerRule.ONE_FAILED)
def escalate() -> None:
    """Fail the run if something before has failed, whatever else went well."""
    raise RefusedError("see the tasks before, and failures.log")


@dag(
    schedule=AssetAny(*map(asset, JOBS)) if JOBS else None,
    max_active_runs=1,
    default_args=DEFAULTS,
    tags=[*TAGS, "decision", "on-call"],
    doc_md=words("reoptimize"),
    params=PARAMS,
)
def reoptimize() -> None:
    """Decide query by query, log it, and follow the migrations that were asked for."""
    queries = wanted()
    decisions = decide.expand(about=queries)
    track(decisions, queries)
    [queries, decisions] >> escalate()
    TriggerDagRunOperator.partial(
        task_id="follow",
        trigger_dag_id="migrate",
        skip_when_already_exists=True,
        retries=2,
        doc_md="Starts `migrate` once for each migration that was asked for.",
    ).expand_kwargs(started(decisions))


def _by_hand() -> bool:
    """Whether a person has started this run; the form is theirs."""
    return bool(get_current_context()["dag_run"].run_type != "asset_triggered")


def _wishes(params: dict[str, Any]) -> list[str]:
    """What a person has set, as the command's options."""
    switches = [f"--{name.replace('_', '-')}" for name in ("dry_run", "force") if params[name]]
    chosen = ("strategy", "objective", "migration")
    return switches + [f"--{name}={params[name]}" for name in chosen if params[name] != FILE]


def _show(found: dict[str, Any]) -> None:
    """A decision in the task's log."""
    to = f" -> {found['chosen']}" if found["outcome"] == "migrate" else ""
    tell("%s: %s, %s%s", found["query"], found["outcome"], found["running"], to)
    for reason in found["reasons"]:
        tell("%s", reason)
    for one in found["candidates"]:
        within = "" if one["qualified"] else ", outside the budget"
        tell("%-16s %s, %.3g CPU%s", one["strategy"], one["plan"], one["cpu"], within)
    for reason in found.get("deployment", {}).get("reasons", ()):
        tell("its network: %s", reason)
    if found["approval"] == "waits":
        tell("%s waits for a person: start this again with Approve %s", found["id"], found["id"])
    if found["request"]:
        tell("asked for %s", found["request"])


reoptimize()
