"""What the tests share: one Spark session a process, and quiet libraries."""

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

import jobs  # noqa: F401  # switches telemetry off before any library reads the switches
from jobs.spark import DRIVER_JVM, QUICK_JVM, session
from jobs.streaming import SETTINGS

# PySpark ends a process whose main module has no file: it takes it for a run of its doctests.
# So are the workers that share out these tests, once Great Expectations looks for Spark Connect.
vars(sys.modules["__main__"]).setdefault("__file__", __file__)

# How long an example takes says more of the machine than of the code.  Each run at a desk draws
# other examples; elsewhere the verdict on a commit must not depend on the draw.
settings.register_profile("desk", deadline=None)
settings.register_profile("ci", parent=settings.get_profile("desk"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests that use Spark their mark."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start this process's one Spark session, set as a job's; tables go under a test's tmp_path."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    conf = SETTINGS | {
        "spark.sql.warehouse.dir": warehouse.as_uri(),
        # Tests warm up more than they compute: the quick compiler alone saves a quarter.
        "spark.driver.extraJavaOptions": f"{DRIVER_JVM} {QUICK_JVM}",
    }
    started = session("tests", **conf)
    yield started
    started.stop()
