"""A change of plan by the running job: asked for once, watched to its end, verified."""

from datetime import timedelta
from typing import Any

from airflow.sdk import Param, dag, get_current_context, task

from dags import registry
from dags.commands import Answer, CommandError, RefusedError, asker, midstream, skip, tell
from dags.defaults import DEFAULTS, TAGS, words
from dags.watching import WatchOperator

JOBS = registry.jobs()

PARAMS = {
    "query": Param(
        enum=registry.subjects(JOBS), title="Job / query", description="Whose plan changes."
    ),
    "plan": Param(
        None,
        type=["string", "null"],
        title="New plan",
        description="Such as ((a b) c); `midstream status JOB` shows the one that runs.",
    ),
    "migration": Param(
        "auto",
        enum=[*registry.MIGRATIONS],
        title="Migration",
        description="How; auto chooses by cost.",
    ),
    "reason": Param(
        type="string", minLength=3, title="Reason", description="Why. Kept in the history for good."
    ),
    "dry_run": Param(
        default=True, type="boolean", title="Dry run", description="Only show what would happen."
    ),
    "verify": Param(
        default=True,
        type="boolean",
        title="Verify",
        description="Afterwards, compute all results again in another way and compare.",
    ),
    "request": Param(
        None,
        type=["string", "null"],
        title="Request",
        description="Set by `reoptimize`, which has asked the job already. Leave it empty.",
    ),
}


WRONG, CANNOT_TELL = 1, 4
"""Exit codes of `midstream verify`: only the first speaks against a plan."""


@task(retries=2)
def preflight(params: dict[str, Any]) -> dict[str, str]:
    """Show what would happen, and whether it can; after a dry run, the rest is skipped."""
    job, query = registry.chosen(params["query"], JOBS)
    about = {"file": job.file, "query": query, "id": params["request"] or _id(query), "by": asker()}
    if params["request"]:
        tell("asked for already: %s", params["request"])
        return about
    if not params["plan"]:
        raise RefusedError("plan: write the plan to change to, such as ((a b) c)")
    _show(midstream(*_words(about, params, "--dry-run"), by=about["by"]).data)
    if params["dry_run"]:
        skip("this was a dry run: nothing has been asked for")
    return about


@task(retries=2)
def request(about: dict[str, str], params: dict[str, Any]) -> str:
    """Ask the job, under an id that is this run's: however often this task runs, once."""
    if not params["request"]:
        midstream(*_words(about, params, "--yes", "--id", about["id"]), by=about["by"])
    tell("asked for %s", about["id"])
    return about["id"]


@task.branch(retries=1)
def verify(about: dict[str, str], params: dict[str, Any]) -> str:
    """Compare all results with a plain join of the same input, in another engine."""
    if not params["verify"]:
        tell("not verified, as asked")
        return "finish"
    fine = (0, WRONG, CANNOT_TELL)
    found = midstream("verify", "--query", about["query"], "--", about["file"], fine=fine)
    return follows(found)


def follows(found: Answer) -> str:
    """The task that a verdict leads to; a verdict that nobody can give speaks against no plan."""
    if "verdict" not in found.data:
        raise CommandError(found.problem)
    for name in ("expected", "actual", "missing", "duplicate", "wrong"):
        if found.data[name] is not None:
            tell("%-9s %s", name, f"{found.data[name]:,}")
    for name in ("verdict", "reason", "judged"):
        if found.data[name]:
            tell("%-9s %s", name, found.data[name])
    if found.code == CANNOT_TELL:
        tell("the new plan stays: a verdict that nobody can give speaks neither for nor against it")
    return "revert" if found.code == WRONG else "finish"


@task(retries=2)
def finish(about: dict[str, str]) -> None:
    """Log to MLflow what the migration was and what it gained."""
    tell("%s", midstream("track", "--", about["file"]).data)


@task(retries=2)
def revert(about: dict[str, str]) -> None:
    """Go back to the plan before, then fail, because somebody has to look at the results."""
    words = ("--id", f"{about['id']}-back", "--reason", "results are not right")
    command = ("migration", "revert", *words, "--yes", "--watch")
    midstream(*command, "--", about["file"], about["id"], by=about["by"])
    raise RefusedError(f"{about['id']} was reverted: `midstream verify` finds wrong results")


@dag(
    schedule=None,
    max_active_runs=4,
    default_args=DEFAULTS,
    tags=[*TAGS, "migration", "on-call"],
    doc_md=words("migrate"),
    params=PARAMS,
)
def migrate() -> None:
    """Preflight, request, watch, verify, then finish or revert."""
    about = preflight()
    watch = WatchOperator(
        task_id="watch",
        file=about["file"],
        migration=request(about),
        retries=5,
        execution_timeout=timedelta(days=2),
        doc_md="Waits in the triggerer until the migration has ended; needs no worker.",
    )
    verdict = verify(about)
    watch >> verdict >> [finish(about), revert(about)]


def _id(query: str) -> str:
    """The id of this run's request, the same however often a task of it runs."""
    at = get_current_context()["dag_run"].run_after
    return f"{at:%y%m%d-%H%M%S}-{at.microsecond // 1000:03d}-{query}"


def _words(about: dict[str, str], params: dict[str, Any], *options: str) -> tuple[str, ...]:
    """The command that a form stands for."""
    return (
        *("migrate", "--query", about["query"], "--strategy", params["migration"]),
        *("--reason", params["reason"], *options, "--", about["file"], params["plan"]),
    )


def _show(found: dict[str, Any]) -> None:
    """A dry run in the task's log."""
    tell("%s: from %s to %s by %s", found["query"], found["from"], found["to"], found["strategy"])
    if found["reason"]:
        tell("%s", found["reason"])
    for word in ("kept", "rebuilt", "dropped"):
        for one in found[word]:
            tell("%-8s %s, %s rows", word, one["state"], round(one["rows"]))
    tell("the job stops for %.3g s, the cut-over after %.3g s", found["pause"], found["lasts"])
    tell("%.3g CPU before, %.3g CPU after", found["cpu"]["from"], found["cpu"]["to"])
    for check in found["checks"]:
        tell("%s %s", "+" if check["ok"] else "-", check["text"])


migrate()
