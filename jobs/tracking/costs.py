"""The unit costs fitted for a job as versions of a registered model; one of them is in use."""

from collections.abc import Mapping
from itertools import groupby
from json import dumps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from jobs.specs import Job
from jobs.status import moment
from jobs.tables.paths import local
from stats.costs import history
from stats.store import StatsStore

if TYPE_CHECKING:
    from jobs.tracking.mlflow_log import Log

ALIAS = "in-use"
"""Of the version by which plans are priced now."""

FITTED = "fitted"
"""The tag by which a fit is found again."""


def register(job: Job, mlflow: "Log") -> None:
    """Make a version of each fit that has none, and point at the one in force."""
    for executor, fits in groupby(_fits(job), key=lambda fit: str(fit["executor"])):
        model = f"{job.job} unit costs on {executor}"
        known = mlflow.versions(model, FITTED)
        for fit in fits:
            version = known.get(fit[FITTED]) or _version(mlflow, model, fit)
            if fit["in_force"]:
                mlflow.point(model, ALIAS, version)


def _fits(job: Job) -> list[dict[str, Any]]:
    """Every fit as one value, those of an executor together, the oldest first."""
    rows = history(StatsStore.of(local(job.storage)))
    when = sorted(rows, key=lambda row: (row["executor"], row["valid_from"]))
    return [
        _fit(executor, at, list(of_fit))
        for (executor, at), of_fit in groupby(
            when, key=lambda row: (row["executor"], row["valid_from"])
        )
    ]


def _fit(executor: str, at: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    names = ("value", "low", "high")
    return {
        "executor": executor,
        FITTED: moment(at),
        "in_force": rows[0]["valid_until"] is None,
        "batches": rows[0]["batches"],
        "error": rows[0]["error"],
        "seconds": {row["name"]: {name: row[name] for name in names} for row in rows},
    }


def _version(mlflow: "Log", model: str, fit: Mapping[str, Any]) -> str:
    metrics = {name: unit["value"] for name, unit in fit["seconds"].items()}
    figures = metrics | {"batches": float(fit["batches"]), "error": fit["error"]}
    with TemporaryDirectory() as directory:
        (Path(directory) / "costs.json").write_text(dumps(fit, indent=2), encoding="utf-8")
        return mlflow.version(model, Path(directory), figures, {FITTED: fit[FITTED]})
