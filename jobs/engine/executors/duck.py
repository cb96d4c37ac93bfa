"""DuckDB in process: states are copies in memory, loaded from their tables after a restart."""

import re
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from jobs.engine.executors import Parameters, Written
from jobs.engine.executors.filed import quoted
from jobs.engine.statements import render
from jobs.engine.store import BATCH, UNTIL, File, Store, put_partitions

_SETTINGS = """
SET TimeZone = 'UTC';
SET preserve_insertion_order = false;
SET checkpoint_threshold = '512MB';
SET disabled_optimizers = 'join_order';
CREATE MACRO timestamp_micros(t) AS make_timestamp(CAST(t AS BIGINT)) AT TIME ZONE 'UTC';
"""
"""The plan says in which order states are probed: DuckDB must not choose its own.  It tidies up
after deletions once so much has been written; by default after 16 MB, so in nearly every batch."""


_PARAMETER = re.compile(r"\$(\w+)")
"""How a parameter stands in DuckDB's text; it takes none that it does not find there."""


def connect() -> duckdb.DuckDBPyConnection:
    """A database in memory in which the engine's statements mean what they say."""
    made = duckdb.connect()
    made.execute(_SETTINGS)
    return made


class DuckExecutor:
    """Runs a batch's statements in one in-memory database; writes go on in threads, if any."""

    writes_at_once = True

    def __init__(self, writers: int = 0) -> None:
        self._connection = connect()
        self._free = Lock()
        self._pool = ThreadPoolExecutor(writers, "duck-write") if writers else None
        self._files = ThreadPoolExecutor(writers, "duck-file") if writers else None
        self._relations: set[str] = set()
        self._inputs: set[str] = set()

    def put(self, relation: str, rows: pa.Table) -> None:
        with self._free:
            self._connection.register(relation, rows)
        self._inputs.add(relation)

    def run(
        self,
        relation: str,
        statement: exp.Query,
        parameters: Parameters | None = None,
        *,
        whole: bool = False,  # noqa: ARG002
    ) -> None:
        text = render(statement, "duckdb")
        named = set(_PARAMETER.findall(text))
        given = {name: value for name, value in (parameters or {}).items() if name in named}
        self._execute(f"CREATE OR REPLACE TABLE {quoted(relation)} AS {text}", given)
        self._relations.add(relation)

    def rows(self, relation: str) -> pa.Table:
        return in_utc(self._cursor().table(relation).to_arrow_table())

    def count(self, relation: str) -> int:
        counted = self._query(f"SELECT count(*) FROM {quoted(relation)}")
        return int(counted[0][0])

    def schema(self, relation: str) -> pa.Schema:
        return in_utc(self._cursor().table(relation).limit(0).to_arrow_table()).schema

    def write(self, relation: str, store: Store, table: str, batch: int | None) -> Written:
        """Write on another thread; its cursor comes from here, for a busy connection gives none."""
        found = self._cursor().table(relation)
        if self._pool is not None:
            return self._pool.submit(self._write, found, store, table, batch).result
        files = self._write(found, store, table, batch)
        return lambda: files

    def open(self, state: str, store: Store, table: str, before: int) -> None:
        rows = store.load(table)
        self.put("_loading", rows.filter(pc.less(rows.column(BATCH), before)))
        self._execute(f"CREATE OR REPLACE TABLE {quoted(state)} AS FROM _loading")
        self._forget("_loading")

    def append(self, state: str, relation: str, batch: int) -> None:
        rows = f"SELECT *, {int(batch)} AS {BATCH} FROM {quoted(relation)}"
        with self._cursor() as beside:
            beside.execute(f"INSERT INTO {quoted(state)} BY NAME {rows}")

    def purge(self, state: str, cutoff: int) -> None:
        self._execute(f"DELETE FROM {quoted(state)} WHERE {UNTIL} <= {int(cutoff)}")

    def refresh(self, state: str, files: list[File]) -> None:
        pass

    def forget(self, state: str) -> None:
        self._execute(f"DROP TABLE IF EXISTS {quoted(state)}")

    def release(self) -> None:
        for relation in self._relations:
            self._execute(f"DROP TABLE IF EXISTS {quoted(relation)}")
        for relation in list(self._inputs):
            self._forget(relation)
        self._relations.clear()

    def close(self) -> None:
        for pool in filter(None, (self._pool, self._files)):
            pool.shutdown(cancel_futures=True)
        self._connection.close()

    def _write(
        self, relation: duckdb.DuckDBPyRelation, store: Store, table: str, batch: int | None
    ) -> list[File]:
        rows = in_utc(relation.to_arrow_table())
        if batch is not None:
            rows = rows.append_column(BATCH, pa.repeat(pa.scalar(batch, pa.int64()), rows.num_rows))
        return put_partitions(store, table, rows, self._files.map if self._files else map)

    def _forget(self, relation: str) -> None:
        with self._free:
            self._connection.unregister(relation)
        self._inputs.discard(relation)

    def _execute(self, text: str, *given: Any) -> None:
        """One call at a time: a busy connection refuses another instead of waiting."""
        with self._free:
            self._connection.execute(text, *given)

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        with self._free:
            return self._connection.cursor()

    def _query(self, text: str) -> list[Any]:
        with self._free:
            return self._connection.execute(text).fetchall()


def in_utc(rows: pa.Table) -> pa.Table:
    """DuckDB calls its time zone by another name than Delta allows."""
    fields = [
        field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))
