"""The variables of programs that Midstream starts: what any program needs, and what you name.

Nobody's password reaches a job, a hook or a task's command because it happened to be there: the
services' own never do, and the user's do where `MIDSTREAM_PASS_ENV` names them.
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

PASS = "MIDSTREAM_PASS_ENV"  # noqa: S105  # a variable's name
"""Further variables for jobs, hooks and tasks: names or patterns such as `AWS_*`, by commas."""

NEEDED = (
    *("HOME", "USER", "LOGNAME", "SHELL", "PATH", "PWD", "TMPDIR", "TERM", "LANG", "LANGUAGE"),
    *("LC_*", "TZ", "XDG_*", "LD_LIBRARY_PATH", "MALLOC_*", "VIRTUAL_ENV", "CONDA_PREFIX"),
    *("PYTHON*", "JAVA_*", "JDK_*", "_JAVA_OPTIONS", "SPARK_*", "PYSPARK_*", "HADOOP_*"),
    *("NUMBA_*", "OMP_*", "SSL_CERT_*", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("DO_NOT_TRACK", "GX_ANALYTICS_ENABLED", "MLFLOW_DISABLE_TELEMETRY", "MIDSTREAM_*"),
)

OURS = ("AIRFLOW_*", "AIRFLOW__*", "_AIRFLOW_*", "__AIRFLOW_*", "MLFLOW_*", "_MLFLOW_*")
"""The services' own, which no job and no hook gets, whatever is named."""

_SECRET = re.compile("SECRET|PASSWORD|PASSWD|TOKEN|CREDENTIAL|PRIVATE|_KEY", re.IGNORECASE)

TRACKS = ("MLFLOW_*", "AIRFLOW__API__BASE_URL")
"""What a command needs besides that tells MLflow something."""


def needed(environment: Mapping[str, str]) -> dict[str, str]:
    """What any program needs."""
    return {
        name: value
        for name, value in environment.items()
        if _fits(name, NEEDED) and not _SECRET.search(name)
    }


def passed(environment: Mapping[str, str]) -> dict[str, str]:
    """What a job, a hook or a task's command gets."""
    named = [one.strip() for one in environment.get(PASS, "").split(",") if one.strip()]
    more = {
        name: value
        for name, value in environment.items()
        if _fits(name, named) and not _fits(name, OURS)
    }
    return needed(environment) | more


def tracking(environment: Mapping[str, str]) -> dict[str, str]:
    """What a command gets that tells MLflow something."""
    more = {name: value for name, value in environment.items() if _fits(name, TRACKS)}
    return passed(environment) | more


def _fits(name: str, patterns: tuple[str, ...] | list[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
