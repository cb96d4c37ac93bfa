"""DuckDB in process: states are kept in memory, and loaded from their tables after a restart."""

import re
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from threading import Lock
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from jobs.backends import Parameters, Written
from jobs.backends.duckdb.segments import FEW, StateSegments
from jobs.backends.duckdb.spilled import spilled
from jobs.backends.parquet_input import quoted
from jobs.tables.columns import BATCH
from jobs.tables.partitions import Partitioning, put_partitions
from jobs.tables.store import DataFile, Store
from optimizer.sql.meaning import DUCKDB, meant

_SETTINGS = """
SET GLOBAL TimeZone = 'UTC';
SET preserve_insertion_order = false;
SET checkpoint_threshold = '1TB';
SET disabled_optimizers = 'join_order,build_side_probe_side';
CREATE MACRO timestamp_micros(t) AS make_timestamp(CAST(t AS BIGINT)) AT TIME ZONE 'UTC';
"""
"""The plan says in which order states are probed: DuckDB must not choose its own.  Nor need it tidy
up after deletions, which takes longer than a batch: there are none, tables go as a whole."""


_PARAMETER = re.compile(r"\$(\w+)")
"""How a parameter stands in DuckDB's text; it takes none that it does not find there."""


def connect() -> duckdb.DuckDBPyConnection:
    """A database in memory in which the engine's statements mean what they say."""
    made = duckdb.connect(config={"temp_directory": spilled()})
    made.execute(_SETTINGS)
    return made


class DuckBackend:
    """Runs a batch's statements in one in-memory database; writes go on in threads, if any."""

    writes_at_once = True
    few = FEW
    """Tables of a state's copy that become one."""

    def __init__(self, writers: int = 0) -> None:
        self._connection = connect()
        self._free = Lock()
        self._pool = ThreadPoolExecutor(writers, "duck-write") if writers else None
        self._files = ThreadPoolExecutor(writers, "duck-file") if writers else None
        self._relations: set[str] = set()
        self._inputs: dict[str, pa.Table] = {}
        self._states: dict[str, StateSegments] = {}

    def put(self, relation: str, rows: pa.Table) -> None:
        with self._free:
            self._connection.register(relation, rows)
        self._inputs[relation] = rows

    def also(self, relation: str, rows: str) -> None:
        self.put(relation, self._inputs[rows])

    def run(
        self,
        relation: str,
        statement: exp.Query,
        parameters: Parameters | None = None,
        *,
        whole: bool = False,  # noqa: ARG002
    ) -> None:
        text = duck_text(statement)
        self._show()
        named = set(_PARAMETER.findall(text))
        given = {name: value for name, value in (parameters or {}).items() if name in named}
        self._execute(f"CREATE OR REPLACE TABLE {quoted(relation)} AS {text}", given)
        self._relations.add(relation)

    def rows(self, relation: str) -> pa.Table:
        self._show()
        return in_utc(self._cursor().table(relation).to_arrow_table())

    def count(self, relation: str) -> int:
        self._show()
        counted = self._query(f"SELECT count(*) FROM {quoted(relation)}")
        return int(counted[0][0])

    def schema(self, relation: str) -> pa.Schema:
        return in_utc(self._cursor().table(relation).limit(0).to_arrow_table()).schema

    def write(
        self,
        relation: str,
        store: Store,
        table: str,
        batch: int | None,
        by: Partitioning | None = None,
    ) -> Written:
        """Write on another thread; its cursor comes from here, for a busy connection gives none."""
        found = self._cursor().table(relation)
        if self._pool is not None:
            return self._pool.submit(self._write, found, store, table, batch, by).result
        files = self._write(found, store, table, batch, by)
        return lambda: files

    def open(self, state: str, store: Store, table: str, before: int) -> None:
        rows = store.load(table)
        self.forget(state)
        self.put("_loading", rows.filter(pc.less(rows.column(BATCH), before)))
        self._states[state] = StateSegments(state, self._query, self.few)
        self._states[state].load("_loading")
        self._forget("_loading")

    def append(self, state: str, relation: str, batch: int) -> None:
        self._states[state].add(relation, batch)
        self._relations.remove(relation)

    def purge(self, state: str, cutoff: int) -> None:
        self._states[state].purge(cutoff)

    def refresh(self, state: str, files: list[DataFile]) -> None:
        pass

    def forget(self, state: str) -> None:
        if state in self._states:
            self._states.pop(state).drop()

    def release(self) -> None:
        self._merge()
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
        self,
        relation: duckdb.DuckDBPyRelation,
        store: Store,
        table: str,
        batch: int | None,
        by: Partitioning | None,
    ) -> list[DataFile]:
        rows = in_utc(relation.to_arrow_table())
        if batch is not None:
            rows = rows.append_column(BATCH, pa.repeat(pa.scalar(batch, pa.int64()), rows.num_rows))
        each = self._files.map if self._files else map
        return put_partitions(store, table, rows, by, each, overdue=False)

    def _merge(self) -> None:
        """Some of the states whose tables are many: all at once would make one batch longer."""
        fullest = sorted(self._states.values(), key=lambda state: -len(state.alike))
        for state in fullest[: 1 + len(fullest) // FEW]:
            state.merge()

    def _show(self) -> None:
        for state in self._states.values():
            state.show()

    def _forget(self, relation: str) -> None:
        with self._free:
            self._connection.unregister(relation)
        self._inputs.pop(relation, None)

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


@lru_cache(maxsize=256)
def duck_text(statement: exp.Query) -> str:
    """In DuckDB's words, with what comes first, a batch's tuples, on the right of each join.

    That is the side that DuckDB builds if it may not choose.  It would choose wrong: a view of
    tables is for it as large as the largest of them.
    """
    turned = meant(statement, DUCKDB)
    for select in reversed(list(turned.find_all(exp.Select))):
        joins = select.args.get("joins") or []
        if joins and all(join.args.get("on") and not join.side for join in joins):
            source = select.args["from_"].this
            for join in joins:
                first = join.this
                first.set("joins", [exp.Join(this=source, on=join.args["on"])])
                source = exp.Subquery(this=first)
            select.set("joins", [])
            select.set("from_", exp.From(this=source))
    return turned.sql("duckdb")


def in_utc(rows: pa.Table) -> pa.Table:
    """DuckDB calls its time zone by another name than Delta allows."""
    fields = [
        field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))
