"""Which decisions MLflow has been told, and what it is still to be told: a small file of the job's.

MLflow may be away for as long as it likes: decisions are made without it, and told when it is back.
"""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from json import dumps, loads
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.deciding.decisions import Decision, DecisionLog
from jobs.errors import RefusedError
from jobs.migrations import Record, Watched, records
from jobs.network.deployments import Deployment, DeploymentLog
from jobs.specs import Job
from jobs.tables.lease import private
from jobs.tables.paths import local
from jobs.tracking.account import account
from jobs.tracking.costs import register
from jobs.tracking.deployments import account as deployment_account
from jobs.tracking.outcome import Outcome, outcome, settled

if TYPE_CHECKING:
    from jobs.tracking.mlflow_log import Log

URI = "MLFLOW_TRACKING_URI"
"""Where MLflow is; `midstream up` sets it for all that it starts."""

MOST = 500
"""Decisions to look back over."""


@dataclass
class Ledger:
    """By decision: its run, and whether all has been said of it."""

    path: Path
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, storage: Path) -> "Ledger":
        """A job's."""
        path = storage / "reoptimize" / "tracked.json"
        return cls(path, loads(path.read_text(encoding="utf-8")) if path.exists() else {})

    def note(self, decision: str, run: str, *, complete: bool) -> None:
        """Remember a run."""
        self.runs[decision] = {"run": run, "complete": complete}
        self.runs = dict(sorted(self.runs.items())[-2 * MOST :])  # ids sort by time
        draft = self.path.with_suffix(".draft")
        draft.write_text(dumps(self.runs), encoding="utf-8")
        draft.replace(self.path)

    def waits(self, decision: str) -> bool:
        """Whether there is something to say."""
        return not self.runs.get(decision, {}).get("complete", False)


@dataclass(frozen=True)
class Told:
    """What came of telling."""

    runs: Mapping[str, str]
    """The pages of the runs, by decision."""
    waiting: int = 0
    missed: str = ""
    """Why they wait."""


def catch_up(job: Job) -> Told:
    """Tell MLflow of every decision that it does not know, and what became of those it does."""
    uri = os.environ.get(URI)
    if not uri:
        raise RefusedError(f"where is MLflow? Set {URI}; `midstream up` starts one")
    storage = local(job.storage)
    with _alone(storage):
        return _catch_up(job, uri, storage)


@contextmanager
def _alone(storage: Path) -> Iterator[None]:
    """Let nobody else tell the same meanwhile."""
    place = storage / "reoptimize"
    private(place)
    with (place / "tracked.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _catch_up(job: Job, uri: str, storage: Path) -> Told:
    from jobs.tracking.mlflow_log import Log, UnreachableError, UnwillingError, plainly

    ledger, log = Ledger.of(storage), DecisionLog.of(storage)
    waiting = [one for one in log.newest(MOST) if ledger.waits(one.id)]
    places = DeploymentLog.of(storage)
    deployments = [one for one in places.all()[-MOST:] if ledger.waits(one.id)]
    runs: dict[str, str] = {}
    missed = ""
    try:
        with plainly():
            mlflow = Log.of(uri, job.job)
        watched = Watched.of(job.file)
        known = {record.request.id: record for record in records(watched.store)}
        for one in waiting:
            try:
                with plainly():
                    record = known.get(one.request)
                    runs[one.id] = _tell(job, one, mlflow, ledger, watched, record)
            except UnwillingError as error:  # the others may be welcome
                missed = str(error)
        for deployment in deployments:
            with plainly():
                runs[deployment.id] = _tell_deployment(job, deployment, mlflow, ledger, places)
        with plainly():
            register(job, mlflow)
    except (UnreachableError, UnwillingError) as error:
        missed = str(error)
    return Told(runs, len(waiting) + len(deployments) - len(runs), missed)


def _tell(  # what a decision has to do with
    job: Job,
    decision: Decision,
    mlflow: "Log",
    ledger: Ledger,
    watched: Watched,
    record: Record | None,
) -> str:
    """Write one decision, or what became of it, and remember that."""
    run = ledger.runs.get(decision.id, {}).get("run") or mlflow.find(decision.id)
    if run is None:
        run = mlflow.write(account(job, decision), decision.at // 1000)
    complete = record is None or settled(watched, record)
    if record is not None and record.ended:
        came = outcome(job, watched, record, decision)
        mlflow.add(run, came.figures, _became(record, came))
    ledger.note(decision.id, run, complete=complete and decision.approval != "waits")
    return mlflow.page(run)


def _tell_deployment(
    job: Job, one: Deployment, mlflow: "Log", ledger: Ledger, places: DeploymentLog
) -> str:
    """Write a deployment over the job's network."""
    run = mlflow.find(one.id) or mlflow.write(deployment_account(job, one, places), one.at // 1000)
    ledger.note(one.id, run, complete=True)
    return mlflow.page(run)


def _became(record: Record, came: Outcome) -> dict[str, str]:
    """Of the migration that the decision asked for."""
    last = record.events[-1]
    return {
        "migration": record.request.id,
        "migration.phase": record.phase,
        "migration.batch": str(last.batch),
        "migration.strategy": record.request.strategy,
        **({"measured": str(came.gain)} if came.gain else {}),
    }
