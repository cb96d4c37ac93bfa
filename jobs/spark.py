"""The one place that starts Spark, and that fetches what Delta adds to it.

Delta's jars come the way Spark gets packages: `make setup` has Spark resolve delta-spark's Maven
coordinates once and keeps the jars beside the environment. Sessions name those files, so they
start two to four seconds sooner and need no network. Only Delta's own jars are kept: the rest of
what resolves is in Spark's own directory already, mostly newer, and breaks Spark when put in front.
"""

import atexit
import importlib.util
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JARS = Path(sys.prefix) / "share" / "midstream" / "jars"
JAVA = 17
SCALA = "2.13"
EXECUTOR_JVM = "-Duser.timezone=UTC"
LOG4J = Path(__file__).with_name("log4j2.properties")
DRIVER_JVM = f"{EXECUTOR_JVM} -Dlog4j2.configurationFile={LOG4J.as_uri()}"
QUICK_JVM = "-XX:TieredStopAtLevel=1"
"""Leaves Java its quick compiler only, for programs that end, or have Spark plan, before the other
pays."""

# Wherever Spark runs.
_ALWAYS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",  # what users write is text, also where it has ${...}
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": DRIVER_JVM,
    "spark.executor.extraJavaOptions": EXECUTOR_JVM,
}

# In one process: reachable from this machine only, and cut for few cores and small tables.
# Delta's and Spark's own defaults, 50 and 200 partitions, cost seconds a query here.
_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "4",
    "spark.databricks.delta.snapshotPartitions": "2",
}


class SparkUnavailableError(Exception):
    """Spark cannot start on this machine; the message says what to do."""


def session(app_name: str, **conf: str | int) -> "SparkSession":
    """Start Spark with Delta, or return the session that this process has already, with `conf` set.

    `conf` holds Spark settings by their own names and wins over the defaults. The master is
    `spark.master`, else the variable MIDSTREAM_SPARK_MASTER, else all cores of this machine.
    """
    from pyspark.sql import SparkSession

    settings = conf
    if not active():
        settings = _prepare(conf)
        _launch(settings)
    builder = SparkSession.builder.appName(app_name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    _quiet(spark)
    return spark


def _quiet(spark: "SparkSession") -> None:
    """Have only who waits for Java tell that it is gone, not every thread that talks to it."""
    server = spark.sparkContext._accumulatorServer  # noqa: SLF001  # it prints what it cannot read
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    logging.getLogger().addFilter(_is_not_py4j)  # which logs as if it were the program


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def _launch(settings: dict[str, str | int]) -> None:
    """Start Java in a session of its own, unless it is there: signals to our group are ours.

    Otherwise who ends the group, as terminals, supervisors and `kill` do, would end Java amid the
    batch that is to be finished.  Java ends once nobody holds the other end of its input.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is None:  # noqa: SLF001  # pyspark has no other way to say how
        pairs = [(key, str(value)) for key, value in settings.items()]
        own = {"start_new_session": True}
        gateway = launch_gateway(SparkConf().setAll(pairs), own)  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001


def active() -> "SparkSession | None":
    """Return the session that this process has, if it has one."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def end() -> None:
    """Stop Spark for good, with the threads through which it calls this process."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway  # noqa: SLF001  # pyspark leaves it open
    if gateway is None:
        return
    if has_ended() is None and (running := active()):
        running.stop()
    gateway.shutdown()


def has_ended(within: float = 0) -> str | None:
    """How the Java that this process started has ended, or does in so many seconds; else none."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001
    with suppress(subprocess.TimeoutExpired):
        code = process.wait(timeout=within) if process else None
        return None if code is None else _ending(code)
    return None


def _ending(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


def jars() -> list[Path]:
    """Delta's jars, of the version of the installed delta-spark."""
    found = sorted(JARS.glob(f"io.delta_*-{version('delta-spark')}.jar"))
    if not found:
        raise SparkUnavailableError(
            f"Delta {version('delta-spark')} for Spark is not in {JARS}: run `make setup`"
        )
    return found


def fetch_jars() -> list[Path]:
    """Have Spark resolve Delta's coordinates, unless its jars are there already."""
    try:
        return jars()
    except SparkUnavailableError:
        check_java()
    JARS.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ivy-", dir=JARS.parent) as ivy:
        _resolve(_coordinates(), ivy=Path(ivy))
        kept = Path(ivy) / "kept"
        kept.mkdir()
        for jar in (Path(ivy) / "jars").glob("io.delta_*.jar"):
            jar.rename(kept / jar.name)
        shutil.rmtree(JARS, ignore_errors=True)
        kept.rename(JARS)
    return jars()


def check_java() -> str:
    """Return the version of the Java that Spark will use, if it is new enough."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        raise SparkUnavailableError(
            f"'{java}' does not run: install Java {JAVA}, or set JAVA_HOME to one"
        ) from None
    found = re.search(r'version "((\d+)[^"]*)"', told)
    if found is None or int(found[2]) < JAVA:
        raise SparkUnavailableError(
            f"'{java}' is Java {found[1] if found else 'of an unknown version'}, {JAVA} or newer"
            " is needed: install it, or set JAVA_HOME to one"
        )
    return found[1]


def _prepare(conf: dict[str, str | int]) -> dict[str, str | int]:
    """Return all settings of a new session, and set the variables that only Spark's start reads."""
    check_java()
    settings: dict[str, str | int] = dict(_ALWAYS)
    settings["spark.master"] = os.environ.get("MIDSTREAM_SPARK_MASTER", "local[*]")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["LC_ALL"] = "C.UTF-8"  # else Java may not see files with names of other scripts
    if str(conf.get("spark.master", settings["spark.master"])).startswith("local"):
        settings |= _LOCAL
        os.environ["SPARK_HOME"] = str(_spark_home())
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    if not conf.keys() & {"spark.jars", "spark.jars.packages"}:
        settings["spark.jars"] = ",".join(map(str, jars()))
    if "spark.sql.warehouse.dir" not in conf:
        settings["spark.sql.warehouse.dir"] = _temporary_warehouse()
    return settings | conf


def _spark_home() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise SparkUnavailableError("pyspark is not installed: run `make setup`")
    return Path(spec.submodule_search_locations[0])


def _coordinates() -> str:
    spark = ".".join(version("pyspark").split(".")[:2])
    return f"io.delta:delta-spark_{spark}_{SCALA}:{version('delta-spark')}"


def _resolve(coordinates: str, *, ivy: Path) -> None:
    """Spark resolves packages before it runs a program; the program here prints its version."""
    home = _spark_home()
    command = [
        *(str(home / "bin" / "spark-submit"), "--packages", coordinates),
        *("--conf", f"spark.jars.ivy={ivy}"),
        *("--class", "org.apache.spark.deploy.SparkSubmit", "spark-internal", "--version"),
    ]
    done = subprocess.run(
        command,
        env={**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        log = JARS.with_name("jars.log")
        log.write_text(done.stdout)
        raise SparkUnavailableError(
            f"Spark could not fetch {coordinates}: check the network, or Maven's mirror; see {log}"
        )


def _temporary_warehouse() -> str:
    """Return a directory for tables without a path; it goes when the process does."""
    path = tempfile.mkdtemp(prefix="midstream-warehouse-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


if __name__ == "__main__":
    try:
        fetch_jars()
    except SparkUnavailableError as error:
        sys.exit(f"midstream: {error}")
