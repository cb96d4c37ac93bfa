"""What the tests share: one Spark session a run, and quiet libraries."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import jobs  # noqa: F401  # switches telemetry off before any library reads the switches
from jobs.spark import session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start Spark share one worker, and so one session."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start the one Spark session of the run; a test keeps its tables under its own tmp_path."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    started = session("tests", **{"spark.sql.warehouse.dir": warehouse.as_uri()})
    yield started
    started.stop()
