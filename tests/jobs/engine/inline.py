"""Spark's scheduling without Spark: tasks run here, one after another, on what would be sent."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.cloudpickle import dumps, loads

from jobs.backends.spark_duckdb.backend import SparkDuckBackend


@dataclass
class Inline:
    """As much of a session as tasks need."""

    defaultParallelism: int  # noqa: N815  # Spark's word
    jobs: int = 0
    _numbers: Iterable[int] = ()
    _work: Callable[[Iterable[int]], Iterable[Any]] = iter

    @property
    def sparkContext(self) -> "Inline":  # noqa: N802
        return self

    def parallelize(self, numbers: Iterable[int], _slices: int) -> "Inline":
        self._numbers = numbers
        return self

    def mapPartitions(self, work: Callable[[Iterable[int]], Iterable[Any]]) -> "Inline":  # noqa: N802
        self._work = work
        return self

    def collect(self) -> list[Any]:
        self.jobs += 1
        sent = dumps(self._work)
        return [row for number in self._numbers for row in loads(sent)([number])]


def backend(tasks: int) -> SparkDuckBackend:
    """One that shares a batch out among so many tasks."""
    return SparkDuckBackend(Inline(tasks))  # type: ignore[arg-type]
