"""The executors that a bench may choose from, each with its way to take the rows of a file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.backends import SqlBackend
from jobs.backends.duckdb.backend import DuckBackend
from jobs.errors import InputError

Input = Callable[[Path], Any]
"""How an executor takes the rows of a file."""


def open_engine(name: str) -> tuple[SqlBackend, Input]:
    """The executor of that name, new."""
    return _ENGINES[name]()


def check_engine(name: str) -> None:
    """Whether there is one of that name."""
    if name not in _ENGINES:
        raise InputError(f"there is no engine {name!r}: {' or '.join(_ENGINES)}", "--engine")


def _duckdb() -> tuple[SqlBackend, Input]:
    return DuckBackend(writers=2), _read


def _read(file: Path) -> pa.Table:
    return pq.read_table(file)


def _spark() -> tuple[SqlBackend, Input]:
    from jobs.backends.spark.backend import SparkBackend
    from jobs.spark import session

    spark = session("bench")
    return SparkBackend(spark), lambda file: spark.read.parquet(str(file))


def _spark_duckdb() -> tuple[SqlBackend, Input]:
    from jobs.backends.parquet_input import ParquetInput
    from jobs.backends.spark_duckdb.backend import SparkDuckBackend
    from jobs.spark import session

    def read(file: Path) -> ParquetInput:
        return ParquetInput(((str(file), pq.read_metadata(file).num_rows),), pq.read_schema(file))

    return SparkDuckBackend(session("bench")), read


_ENGINES: dict[str, Callable[[], tuple[SqlBackend, Input]]] = {
    "duckdb": _duckdb,
    "spark": _spark,
    "spark-duckdb": _spark_duckdb,
}
