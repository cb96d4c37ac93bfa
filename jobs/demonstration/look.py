"""What can be seen of the demonstration at one moment: its job's tables, and Airflow's runs."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from time import time_ns
from typing import Any

from jobs.deciding.decisions import Decision, DecisionLog
from jobs.errors import RefusedError
from jobs.migrations import Record, records
from jobs.services.airflow import Airflow
from jobs.specs import Job
from jobs.status import status
from jobs.tables.job_store import JobStore
from jobs.tables.paths import local
from stats.store import VERDICTS, StatsStore

FINISHED = ("success", "failed")
"""States of a DAG's run after which nothing more happens."""


@dataclass(frozen=True)
class Look:
    """A moment."""

    job: Mapping[str, Any] | None = None
    """As `midstream status` has it; none before the first batch."""
    windows: Mapping[int, bool] | None = None
    """The windows that have been validated, and whether they are good."""
    decisions: tuple[Decision, ...] = ()
    migrations: tuple[Record, ...] = ()
    runs: tuple[Mapping[str, Any], ...] = ()
    """Airflow's, the newest first."""

    @property
    def decision(self) -> Decision | None:
        """The one that asked for a migration."""
        return next((one for one in self.decisions if one.request), None)

    @property
    def migration(self) -> Record | None:
        """What became of it."""
        return self.migrations[-1] if self.migrations else None


def look(job: Job, airflow: Airflow, before: Look) -> Look:
    """Look again; what cannot be seen now stays as it was."""
    storage = local(job.storage)
    try:
        seen = replace(before, job=status(job.file, time_ns() // 1000))
    except RefusedError:
        return before
    verdicts = StatsStore.of(storage).rows(VERDICTS)
    with suppress(OSError):
        seen = replace(seen, runs=tuple(airflow.runs()))
    return replace(
        seen,
        windows={row["window_start"]: row["good"] for row in verdicts},
        decisions=tuple(DecisionLog.of(storage).newest(50)),
        migrations=tuple(records(JobStore(storage))),
    )


def news(before: Look, now: Look) -> Iterator[str]:
    """What has happened between two looks, a line each."""
    if before.job is None and now.job is not None:
        yield "the job has done its first batch"
    yield from _runs(before, now)
    known = {one.id for one in before.decisions}
    for decision in now.decisions:
        if decision.id not in known:
            yield f"{decision.query}: {decision.outcome}: {'; '.join(decision.reasons)}"
    phases = {record.request.id: record.phase for record in before.migrations}
    for record in now.migrations:
        if phases.get(record.request.id) != record.phase:
            yield f"migration {record.request.id}: {record.phase}"


def _runs(before: Look, now: Look) -> Iterator[str]:
    known = {(run["dag_id"], run["dag_run_id"]): run["state"] for run in before.runs}
    for run in reversed(now.runs):
        name, state = run["dag_id"], run["state"]
        if state in FINISHED and known.get((name, run["dag_run_id"])) != state:
            yield f"Airflow: {name} {'succeeded' if state == 'success' else 'failed'}"
