"""Writes runs to an MLflow server; nobody waits long for one that is not there."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import time
from typing import TYPE_CHECKING

from jobs.tracking.account import DECISION, Account

if TYPE_CHECKING:
    from mlflow import MlflowClient

PARENT = "mlflow.parentRunId"
NAME = "mlflow.runName"

MANNERS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
"""MLflow's own defaults wait for minutes, and print on standard output."""

LONGEST = 500
"""Characters of a parameter."""


class UnreachableError(Exception):
    """MLflow does not answer."""


class UnwillingError(Exception):
    """MLflow answers, but does not take what it is told."""


@contextmanager
def plainly() -> Iterator[None]:
    """MLflow's errors as one of these two, in a line."""
    from mlflow.exceptions import MlflowException, RestException

    try:
        yield
    except RestException as error:
        raise UnwillingError(_first_line(error)) from None
    except MlflowException as error:
        raise UnreachableError(_first_line(error)) from None


@dataclass(frozen=True)
class Log:
    """A job's experiment."""

    client: "MlflowClient"
    uri: str
    experiment: str

    @classmethod
    def of(cls, uri: str, job: str) -> "Log":
        """The experiment of that job, made if it is not there."""
        for name, value in MANNERS.items():
            os.environ.setdefault(name, value)
        from mlflow import MlflowClient

        client = MlflowClient(uri)
        found = client.get_experiment_by_name(job)
        made = found.experiment_id if found else client.create_experiment(job)
        return cls(client, uri, made)

    def find(self, decision: str) -> str | None:
        """The run of a decision; one that was not finished is thrown away, to be written again."""
        wanted = f"tags.`{DECISION}` = '{decision}'"
        for run in self.client.search_runs([self.experiment], wanted):
            if run.info.status == "FINISHED":
                return str(run.info.run_id)
            self.client.delete_run(run.info.run_id)
        return None

    def write(self, account: Account, at: int) -> str:
        """A run and those below it, at a time in milliseconds; finished once all of it is there."""
        run = self._run(account, at)
        for child in account.children:
            self._end(self._run(child, at, run))
        self._end(run)
        return run

    def add(self, run: str, metrics: Mapping[str, float], tags: Mapping[str, str]) -> None:
        """What became known later; said again, it changes nothing."""
        from mlflow.entities import Metric, RunTag

        now = int(time() * 1000)
        self.client.log_batch(
            run,
            metrics=[Metric(name, value, now, 0) for name, value in metrics.items()],
            tags=[RunTag(name, value) for name, value in tags.items()],
        )

    def versions(self, model: str, tag: str) -> dict[str, str]:
        """The versions of a registered model, by what a tag of theirs says."""
        found = self.client.search_model_versions(f"name = '{model}'")
        return {one.tags.get(tag, ""): str(one.version) for one in found}

    def version(
        self, model: str, directory: Path, metrics: Mapping[str, float], tags: Mapping[str, str]
    ) -> str:
        """Another version, with a run of its own that holds the directory's files."""
        from mlflow.entities import Metric

        if not self.client.search_registered_models(f"name = '{model}'"):
            self.client.create_registered_model(model)
        now = int(time() * 1000)
        run = self.client.create_run(self.experiment, now, dict(tags), model)
        id_ = run.info.run_id
        figures = [Metric(name, value, now, 0) for name, value in metrics.items()]
        self.client.log_batch(id_, figures)
        self.client.log_artifacts(id_, str(directory), "costs")
        self._end(id_)
        source = f"{run.info.artifact_uri}/costs"
        return str(self.client.create_model_version(model, source, id_, dict(tags)).version)

    def point(self, model: str, alias: str, version: str) -> None:
        """Have an alias mean that version."""
        self.client.set_registered_model_alias(model, alias, version)

    def page(self, run: str) -> str:
        """Where a person sees it."""
        return f"{shown(self.uri)}/#/experiments/{self.experiment}/runs/{run}"

    def _run(self, account: Account, at: int, parent: str | None = None) -> str:
        from mlflow.entities import Metric, Param

        tags = {**account.tags, **({PARENT: parent} if parent else {})}
        run = self.client.create_run(self.experiment, at, tags, account.name)
        id_ = str(run.info.run_id)
        metrics = [Metric(name, value, at, 0) for name, value in account.metrics.items()]
        metrics += [
            Metric(name, value, at, step)
            for name, values in account.series.items()
            for step, value in enumerate(values)
        ]
        params = [Param(name, text[:LONGEST]) for name, text in account.params.items()]
        self.client.log_batch(id_, metrics, params)
        if account.files:
            with TemporaryDirectory() as directory:
                for name, content in account.files.items():
                    _put(Path(directory) / name, content)
                self.client.log_artifacts(id_, directory)
        return id_

    def _end(self, run: str) -> None:
        self.client.set_terminated(run, "FINISHED")


def _put(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def _first_line(error: Exception) -> str:
    return shown(str(error).partition("\n")[0])[:300]


def shown(text: str) -> str:
    """Addresses without the name and password that may stand in them."""
    return re.sub(r"(?<=://)[^/\s]*@", "", text)
