"""Statistics of every job's streams, as often as its file says."""

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import dag, get_current_context, task, task_group

from dags import registry
from dags.commands import RefusedError, midstream, skip, tell
from dags.defaults import DEFAULTS, TAGS, words
from dags.news import NEWS, asset

JOBS = registry.jobs()
STEP = registry.schedule(JOBS.values())


@task(retries=2)
def due(params: dict[str, Any]) -> list[list[str]]:
    """Which jobs' turn it is, each with its file."""
    run = get_current_context()["dag_run"]
    found = registry.named(params["job"], JOBS)
    if run.run_type == "scheduled":
        found = registry.due(found, run.run_after, STEP)
    tell("%s", ", ".join(job.name for job in found) or "it is no job's turn")
    return [[job.name, job.file] for job in found]


@task(retries=2, map_index_template="{{ job }}")
def collect(about: list[str]) -> list[str]:
    """Gather the windows that are complete; it reads what the job has read, and changes nothing."""
    job, file = about
    get_current_context()["job"] = job
    found = midstream("stats", "collect", "--", file, fine=(0, 3))
    if found.refusal:
        skip(found.refusal)
    tell("%s", found.data)
    return about


@task(retries=2)
def validate(about: list[str]) -> int:
    """Judge the windows that are new; a quarantined one fails the task, as trying again would."""
    found = midstream("stats", "validate", "--", about[1], fine=(0, 3))
    if "validated" not in found.data:
        skip(found.refusal)
    for one in found.data["validated"]:
        verdict = "good" if one["good"] else "quarantined: " + "; ".join(one["reasons"])
        tell("%s, %s expectations: %s", one["start"], one["checked"], verdict)
    tell("every expectation, for a browser: %s", found.data["report"])
    if broken := [one for one in found.data["validated"] if not one["good"]]:
        reasons = "; ".join(broken[-1]["reasons"])
        raise RefusedError(f"{len(broken)} windows quarantined, the last because {reasons}")
    return len(found.data["validated"])


@task(outlets=[NEWS])
def publish(about: list[str], windows: int, *, outlet_events: Any) -> None:
    """Say that there is news of the job, so that somebody decides."""
    if not windows:
        skip("no new window")
    outlet_events[NEWS].add(asset(about[0]), extra={"windows": windows})


@task_group
def of_job(about: list[str]) -> None:
    """One job's statistics."""
    collected = collect(about)
    publish(collected, validate(collected))


@dag(
    schedule=STEP,
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULTS,
    tags=[*TAGS, "statistics"],
    doc_md=words("gather_statistics"),
    params={"job": registry.param("Of which job, when by hand.", JOBS)},
)
def gather_statistics() -> None:
    """Collect, validate and publish, a mapped task group a job."""
    of_job.expand(about=due())


gather_statistics()
