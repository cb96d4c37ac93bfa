"""Housekeeping of every job's tables, once a night."""

from typing import Any

from airflow.sdk import CronTriggerTimetable, Param, dag, get_current_context, task

from dags import registry
from dags.commands import midstream, tell
from dags.defaults import DEFAULTS, TAGS, words

JOBS = registry.jobs()
ALL = "all jobs"


@task(retries=2)
def chosen(params: dict[str, Any]) -> list[list[str]]:
    """Whose tables, each job with its file."""
    return [[job.name, job.file] for job in JOBS.values() if params["job"] in (ALL, job.name)]


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
    for one in midstream("maintain", file, *dry).data["tables"]:
        tell("%s", one)


@dag(
    schedule=CronTriggerTimetable("17 3 * * *", timezone="UTC"),
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULTS,
    tags=[*TAGS, "maintenance"],
    doc_md=words("maintain"),
    params={
        "job": Param(ALL, enum=[ALL, *JOBS], description="Whose tables, when by hand."),
        "dry_run": Param(default=False, type="boolean", description="Only say what would be done."),
    },
)
def maintain() -> None:
    """Compact, vacuum and forget, job by job."""
    tidy.expand(about=chosen())


maintain()
