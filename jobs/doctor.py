"""What this machine has of what Midstream needs, and what to do about the rest.

Quick, as it looks at files and at installed versions and imports none of the libraries.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shlex import quote

from jobs.spark import SCALA, SparkUnavailableError, check_java, jars

LOCK = Path(__file__).parents[1] / "infra" / "requirements.txt"
PACKAGES = (
    "pyspark",
    "delta-spark",
    "deltalake",
    "duckdb",
    "apache-airflow",
    "mlflow",
    "great-expectations",
)
HERE = ".midstream/*"
"""Where jobs keep their tables unless they say otherwise."""
OTHERS = 0o077
GIB = 1024**3
DISK = 1 * GIB
MEMORY = 4 * GIB


@dataclass(frozen=True)
class Check:
    """One thing looked at: what was found and, where that is not enough, what to do."""

    name: str
    ok: bool
    found: str
    advice: str = ""


def checks(directory: Path | None = None, storages: Sequence[Path] = ()) -> list[Check]:
    """Look at everything; `directory` is where jobs will keep their tables, by default here.

    `storages` are those of jobs that were named; without any, those that are here.
    """
    return [
        _python(),
        _java(),
        _disk(directory or Path.cwd()),
        _memory(),
        *_packages(),
        _jars(),
        _graphviz(),
        *map(_storage, storages or sorted((directory or Path.cwd()).glob(HERE))),
    ]


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    supported = (3, 11) <= sys.version_info[:2] < (3, 15)
    advice = "" if supported else "install Python 3.11 to 3.14, then `make setup`"
    return Check("Python", supported, found, advice)


def _java() -> Check:
    try:
        return Check("Java", ok=True, found=check_java())
    except SparkUnavailableError as error:
        return Check("Java", ok=False, found="none to use", advice=str(error))


def _disk(directory: Path) -> Check:
    free = shutil.disk_usage(directory).free
    advice = "" if free >= DISK else f"make room: tables and checkpoints need {_gib(DISK)} at least"
    return Check("disk", not advice, f"{_gib(free)} free in {directory}", advice)


def _memory() -> Check:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    advice = "" if total >= MEMORY else f"Spark, Airflow and MLflow together need {_gib(MEMORY)}"
    return Check("memory", not advice, _gib(total), advice)


def _packages() -> Iterator[Check]:
    locked = _locked()
    for name in PACKAGES:
        try:
            found = version(name)
        except PackageNotFoundError:
            yield Check(name, ok=False, found="not installed", advice="run `make setup`")
            continue
        wanted = locked.get(name, found)
        advice = "" if found == wanted else f"{wanted} is the tested version: run `make setup`"
        yield Check(name, not advice, found, advice)


def _locked() -> dict[str, str]:
    """Return the versions of the lock; without one, as outside a checkout, any version will do."""
    if not LOCK.exists():
        return {}
    return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", LOCK.read_text(), flags=re.MULTILINE))


def _jars() -> Check:
    name = "Delta's jars for Spark"
    try:
        return Check(name, ok=True, found=f"{len(jars())} for Scala {SCALA}")
    except (SparkUnavailableError, PackageNotFoundError) as error:
        return Check(name, ok=False, found="not fetched", advice=str(error))


def _graphviz() -> Check:
    """Plans are drawn without it too, only less well."""
    if found := shutil.which("dot"):
        return Check("Graphviz", ok=True, found=found)
    advice = "optional, for pictures of plans (Debian, Ubuntu: apt-get install graphviz)"
    return Check("Graphviz", ok=True, found="not installed", advice=advice)


def _storage(directory: Path) -> Check:
    """New ones are their owner's alone; who has opened one, or has an old one, may want that."""
    try:
        mode = directory.stat().st_mode & 0o777
    except OSError as error:
        return Check("storage", ok=True, found=f"{directory}: {error.strerror}")
    advice = f"others on this machine may look into it: chmod 700 {quote(str(directory))}"
    found = f"{directory}, mode {mode:03o}"
    return Check("storage", ok=True, found=found, advice=advice if mode & OTHERS else "")


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"
