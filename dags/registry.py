"""Which jobs there are, by their files: what the DAGs' forms offer, and when statistics are due."""

import os
import re
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from json import loads
from math import gcd
from pathlib import Path
from urllib.parse import quote

from airflow.sdk import Param

from jobs import specs
from jobs.errors import MidstreamError

ALL = "all jobs"
"""What a form offers beside the jobs' names."""

JOBS = "MIDSTREAM_JOBS"
"""The job files: a JSON list, as `midstream up` sets it, or separated as in PATH."""

OBJECTIVES = ("cost", "rate by 10 seconds", "first 1000 results")
"""What plans are chosen for: one of these forms."""

OBJECTIVE = r"cost|rate by [0-9]\S* .+|first [0-9]+ results?"
"""The forms; what is within them is the command's to check."""

SEARCHES = (
    "as-written", "mjoin-ordering", "min-state", "state-selection", "state-removal", "mjoin-init",
    "bjtree-init", "two-layer", "jtree-finder", "rate-max", "time-min", "exact",
)  # fmt: skip
"""How to search for a plan, the last three for an objective of output rates.

To ask the optimizer itself would make parsing the DAGs slow."""

MIGRATIONS = ("auto", "background", "moving-state", "parallel-track")
"""How to come to a plan."""

NETWORKS = (
    "exhaustive", "top-down", "bottom-up", "npc", "landmarks", "plan-then-deploy", "relaxation",
    "in-network",
)  # fmt: skip
"""How to plan over a network."""

LONGEST = 200
"""Characters of a name: Airflow has a limit."""

EVERY = timedelta(minutes=5)
"""How often to look where no job says so."""


@dataclass(frozen=True)
class Known:
    """A job, as far as the DAGs need to know it."""

    name: str
    file: str
    queries: tuple[str, ...]
    every: timedelta
    migration: str
    network: bool = False
    """Whether its file names one."""


def jobs() -> dict[str, Known]:
    """The jobs by their names; one whose file is wrong keeps its place, and its tasks say why."""
    found: dict[str, Known] = {}
    wrong: list[Path] = []
    for path in files(os.environ.get(JOBS, "")):
        known = _known(path)
        if known is None or known.name in found:
            wrong.append(path)
        else:
            found[known.name] = known
    for path in wrong:
        known = _nameless(path, found)
        found[known.name] = known
    return found


def files(listed: str) -> list[Path]:
    """The paths of a list, absolute, whatever characters are in them."""
    paths = listed.split(os.pathsep)
    with suppress(ValueError):
        read = loads(listed)
        paths = [str(one) for one in read] if isinstance(read, list) else paths
    return [Path(one).absolute() for one in paths if one]


def _known(path: Path) -> Known | None:
    try:
        job = specs.load(path)
    except (MidstreamError, ValueError, RecursionError):
        return None
    policy = job.reoptimize
    queries = tuple(job.queries)
    networked = job.network is not None
    return Known(job.job, str(path), queries, job.statistics.every, policy.migration, networked)


def _nameless(path: Path, taken: Container[str]) -> Known:
    """Under its file's name or, where a job is called so or could not be, under the whole path."""
    free = re.fullmatch("[a-z][a-z0-9-]{0,62}", path.stem) and path.stem not in taken
    name = path.stem if free else quote(os.fsencode(path))[-LONGEST:]
    return Known(name, os.fsencode(path).decode(errors="replace"), (), EVERY, "auto")


def subjects(known: Mapping[str, Known]) -> list[str]:
    """Every query of every job, as the forms offer them: `orders / paid`."""
    found = [f"{job.name} / {query}" for job in known.values() for query in job.queries]
    return found or ["no job is known: set MIDSTREAM_JOBS"]


def chosen(subject: str, known: Mapping[str, Known]) -> tuple[Known, str]:
    """The job and the query that a form names."""
    job, _, query = subject.partition(" / ")
    return known[job], query


def param(words: str, known: Mapping[str, Known]) -> Param:
    """A form's choice of one job, or of all."""
    return Param(ALL, enum=[ALL, *known], description=words)


def named(name: str, known: Mapping[str, Known]) -> list[Known]:
    """The jobs that a form names: one or all."""
    return [job for job in known.values() if name in (ALL, job.name)]


def schedule(known: Iterable[Known]) -> timedelta:
    """So often that every job's turn comes exactly when its file says."""
    seconds = [int(job.every.total_seconds()) or 1 for job in known]
    return timedelta(seconds=gcd(*seconds)) if seconds else EVERY


def due(known: Iterable[Known], now: datetime, step: timedelta) -> list[Known]:
    """The jobs whose turn comes in the step that ends now."""
    end = now.timestamp()
    begin = end - step.total_seconds()
    return [
        job
        for job in known
        if end // job.every.total_seconds() > begin // job.every.total_seconds()
    ]
