"""Housekeeping of every job's tables, once a night."""

from typing import Any

from airflow.sdk import CronTriggerTimetable, Param, dag, get_current_context, task

from dags import registry
from dags.commands import midstream, skip, tell
from dags.defaults import DEFAULTS, TAGS, words

JOBS = registry.jobs()


@task(retries=2)
def chosen(params: dict[str, Any]) -> list[list[str]]:
    """Whose tables, each job with its file."""
    return [[job.name, job.file] for job in registry.named(params["job"], JOBS)]


@task(
    retries=1,
    max_active_tis_per_dag=1,
    map_index_template="{{ job }}",
    doc_md="Tidies up one job's tables; where this is interrupted, the next time does the rest.",
)
def tidy(about: list[str], params: dict[str, Any]) -> None:
    """Tidy up one job's tables; where this is interrupted, the next time does the rest."""
    job, file = about
    get_current_context()["job"] = job
    dry = ("--dry-run",) if params["dry_run"] else ()
    for one in midstream("maintain", *dry, "--", file).data["tables"]:
        tell("%s", one)


@task(
    retries=1,
    max_active_tis_per_dag=1,
    map_index_template="{{ job }}",
    doc_md="Fits the unit costs to what the job's batches took; skipped where too little is known.",
)
def calibrate(about: list[str], params: dict[str, Any]) -> None:
    """Fit the unit costs by which plans are priced."""
    job, file = about
    get_current_context()["job"] = job
    dry = ("--dry-run",) if params["dry_run"] else ()
    found = midstream("stats", "calibrate", *dry, "--", file, fine=(0, 3))
    if found.refusal:
        skip(found.refusal)
    for name, cost in found.data["costs"].items():
        tell("%-10s %.2e s, before %.2e", name, cost["value"], cost["before"])
    tell("wrong by %.0f %%, before by %.0f %%",
         100 * found.data["error"], 100 * found.data["error_before"])  # fmt: skip


@dag(
    schedule=CronTriggerTimetable("17 3 * * *", timezone="UTC"),
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULTS,
    tags=[*TAGS, "maintenance"],
    doc_md=words("maintain"),
    params={
        "job": registry.param("Whose tables, when by hand.", JOBS),
        "dry_run": Param(default=False, type="boolean", description="Only say what would be done."),
    },
)
def maintain() -> None:
    """Calibrate, compact, vacuum and forget, job by job."""
    jobs = chosen()
    calibrate.expand(about=jobs)
    tidy.expand(about=jobs)


maintain()
