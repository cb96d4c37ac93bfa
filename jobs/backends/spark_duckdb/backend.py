"""DuckDB in Spark's tasks: a batch is a few jobs of Spark's, in whose tasks DuckDB joins the rows.

A join distributes over the parts of one of its inputs.  So each task reads what is new of a batch
whole, its share of what it meets, and writes what it finds to files of its own; together the tasks
write what one alone would.  What an operator above needs of it, it reads from these files: there is
one job for each level of the plan, and nothing is shuffled.

What was run is put off until somebody waits for what was written: so operators that do not need
each other's rows share a job.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from pathlib import Path
from threading import RLock
from typing import ClassVar

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from sqlglot import exp

from jobs.backends import Parameters, Written
from jobs.backends.duckdb.backend import connect, in_utc
from jobs.backends.parquet_input import ParquetInput, Share, StateFiles, location_of, quoted
from jobs.tables.columns import BATCH
from jobs.tables.delta_store import DeltaStore
from jobs.tables.partitions import Partitioning, put_partitions
from jobs.tables.store import DataFile, Store
from optimizer.sql.meaning import DUCKDB, meant

SHARED = "@"
"""Ends the name under which a task finds its share of a relation."""


@dataclass(frozen=True)
class _Text:
    """A statement as DuckDB takes it: over all rows, and over a task's share of them."""

    all: str
    share: str | None
    """None: it cannot be computed in parts, and one task does it."""
    reads_for_all: frozenset[str]
    reads_for_share: frozenset[str]
    simple: bool
    """Whether it is no work to speak of, so that whoever needs its rows computes them again."""

    def reads(self, name: str) -> frozenset[str]:
        """What is needed to read it by that name."""
        return self.reads_for_share if name.endswith(SHARED) else self.reads_for_all

    def define(self, connection: duckdb.DuckDBPyConnection, name: str, share: Share | None) -> None:
        """Let a connection read its rows by that name."""
        text = self.all if share is None else self.share
        if text is None and share is not None and share.task > 0:
            text = f"SELECT * FROM ({self.all}) LIMIT 0"
        connection.execute(f"CREATE TEMP VIEW {quoted(name)} AS {text or self.all}")


_Relation = ParquetInput | _Text


@dataclass(frozen=True)
class _Target:
    """Where the rows of a relation go."""

    relation: str
    location: Path
    batch: int | None
    by: Partitioning | None

    @property
    def share(self) -> str:
        """What a task calls its part of them."""
        return self.relation + SHARED


@dataclass
class _Wanted:
    """A relation to be written, and the files once that is done."""

    target: _Target
    files: list[DataFile] | None = None


@dataclass
class SparkDuckBackend:
    """Runs a batch's statements in the tasks of a Spark session."""

    writes_at_once: ClassVar[bool] = False

    session: SparkSession
    _states: dict[str, StateFiles] = field(default_factory=dict)
    _relations: dict[str, _Relation] = field(default_factory=dict)
    _wanted: dict[str, _Wanted] = field(default_factory=dict)
    _free: RLock = field(default_factory=RLock)

    @property
    def tasks(self) -> int:
        """How many run at a time."""
        return self.session.sparkContext.defaultParallelism

    def put(self, relation: str, rows: ParquetInput) -> None:
        self._relations[relation] = rows

    def also(self, relation: str, rows: str) -> None:
        self._relations[relation] = self._relations[rows]

    def run(
        self,
        relation: str,
        statement: exp.Query,
        parameters: Parameters | None = None,
        *,
        whole: bool = False,
    ) -> None:
        self._relations[relation] = _text(statement, tuple((parameters or {}).items()), whole=whole)

    def rows(self, relation: str) -> pa.Table:
        with self._here(relation) as connection:
            return in_utc(connection.sql(f"FROM {quoted(relation)}").to_arrow_table())

    def count(self, relation: str) -> int:
        with self._here(relation) as connection:
            found = connection.execute(f"SELECT count(*) FROM {quoted(relation)}").fetchall()
        return int(found[0][0])

    def schema(self, relation: str) -> pa.Schema:
        with self._here(relation) as connection:
            return in_utc(
                connection.sql(f"FROM {quoted(relation)} LIMIT 0").to_arrow_table()
            ).schema

    def write(
        self,
        relation: str,
        store: Store,
        table: str,
        batch: int | None,
        by: Partitioning | None = None,
    ) -> Written:
        wanted = _Wanted(_Target(relation, location_of(store, table), batch, by))
        self._wanted[relation] = wanted
        return partial(self._written, wanted)

    def open(self, state: str, store: Store, table: str, before: int) -> None:
        self._states[state] = StateFiles.of(store, table, before)

    def append(self, state: str, relation: str, batch: int) -> None:
        pass

    def purge(self, state: str, cutoff: int) -> None:
        self._states[state].purge(cutoff)

    def refresh(self, state: str, files: list[DataFile]) -> None:
        self._states[state].refresh(files)

    def forget(self, state: str) -> None:
        del self._states[state]

    def release(self) -> None:
        self._relations.clear()
        self._wanted.clear()

    def close(self) -> None:
        self.release()

    # --- who needs what --------------------------------------------------------------------------

    def _relation(self, name: str) -> _Relation:
        if (known := self._states.get(name)) is None:
            return self._relations[name]
        return ParquetInput.of(known.location, known.files, known.schema, known.before)

    def _below(self, name: str) -> dict[str, _Relation]:
        """A relation, or a share of it, and all that it is made of, each after what it reads."""
        found: dict[str, _Relation] = {}

        def visit(name: str) -> None:
            relation = self._relation(name.removesuffix(SHARED))
            if isinstance(relation, _Text):
                for other in relation.reads(name) - found.keys():
                    visit(other)
            found[name] = relation

        visit(name)
        return found

    @contextmanager
    def _here(self, relation: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection of this process that knows a relation."""
        with self._free, _database(None).cursor() as connection:
            for name, one in self._below(relation).items():
                one.define(connection, name, None)
            yield connection

    # --- jobs ------------------------------------------------------------------------------------

    def _written(self, wanted: _Wanted) -> list[DataFile]:
        """Carry out whatever is put off, until these rows are written."""
        with self._free:
            while wanted.files is None:
                self._carry_out([one for one in self._wanted.values() if self._ready(one)])
        return wanted.files

    def _ready(self, wanted: _Wanted) -> bool:
        """Whether all is written that it would be dear to compute again."""
        below = self._below(wanted.target.share)
        dear = {n for n, one in below.items() if isinstance(one, _Text) and not one.simple}
        waits = {n.removesuffix(SHARED) for n in dear} & self._wanted.keys()
        return wanted.files is None and waits <= {wanted.target.relation}

    def _carry_out(self, together: list[_Wanted]) -> None:
        """One job of Spark's."""
        relations: dict[str, _Relation] = {}
        for wanted in together:
            relations |= self._below(wanted.target.share)
        work = partial(_task, relations, [one.target for one in together], self.tasks)
        context = self.session.sparkContext
        found = context.parallelize(range(self.tasks), self.tasks).mapPartitions(work).collect()
        for at, wanted in enumerate(together):
            wanted.files = [file for number, file in found if number == at]
            self._settle(wanted)

    def _settle(self, wanted: _Wanted) -> None:
        """From now on the rows are read from where they were written."""
        name = wanted.target.relation
        made = self._relations[name]
        if isinstance(made, _Text) and not made.simple:
            files = wanted.files or []
            location = wanted.target.location
            first = next((location / file.path for file in files), None)
            schema = self.schema(name) if first is None else pq.read_schema(first)
            self._relations[name] = ParquetInput.of(location, files, schema)


# --- in a task -----------------------------------------------------------------------------------


@cache
def _database(threads: int | None) -> duckdb.DuckDBPyConnection:
    """One for each process that runs tasks, which Spark uses again and again."""
    made = connect()
    if threads is not None:
        made.execute(f"SET threads = {threads}")
    return made


def _task(
    relations: Mapping[str, _Relation], targets: list[_Target], tasks: int, numbers: Iterable[int]
) -> Iterator[tuple[int, DataFile]]:
    """One task's share of all that is to be written."""
    for number in numbers:
        with _database(1).cursor() as connection:
            for name, relation in relations.items():
                share = Share(number, tasks) if name.endswith(SHARED) else None
                relation.define(connection, name, share)
            for at, target in enumerate(targets):
                for file in _write(connection, target):
                    yield at, file


def _write(connection: duckdb.DuckDBPyConnection, target: _Target) -> list[DataFile]:
    rows = in_utc(connection.sql(f"FROM {quoted(target.share)}").to_arrow_table())
    if target.batch is not None:
        batch = pa.repeat(pa.scalar(target.batch, pa.int64()), rows.num_rows)
        rows = rows.append_column(BATCH, batch)
    store = DeltaStore(target.location.parent)
    return put_partitions(store, target.location.name, rows, target.by)


# --- statements ----------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _text(statement: exp.Query, parameters: tuple[tuple[str, int], ...], *, whole: bool) -> _Text:
    filled = exp.replace_placeholders(statement, **dict(parameters)) if parameters else statement
    reads = _names(filled)
    parts = not whole and filled.find(exp.Except, exp.Intersect) is None
    share = _shared(filled.copy()) if parts else None
    kept = any(name.startswith("state_") for name in reads)
    return _Text(
        meant(filled, DUCKDB).sql(dialect=DUCKDB),
        meant(share, DUCKDB).sql(dialect=DUCKDB) if share else None,
        reads,
        _names(share) if share else reads,
        simple=not kept and filled.find(exp.Join, exp.Group) is None,
    )


def _names(query: exp.Expr) -> frozenset[str]:
    return frozenset(table.name for table in query.find_all(exp.Table) if table.name)


def _shared(query: exp.Expr) -> exp.Expr:
    """A statement over a share: of what the first join adds, or else of what is read."""
    if isinstance(query, exp.Subquery):
        _shared(query.this)
        return query
    if isinstance(query, exp.SetOperation):
        _shared(query.left)
        _shared(query.right)
        return query
    joins = query.args.get("joins") or []
    for source in [*(join.this for join in joins[:1]), query.args["from_"].this]:
        if source.find(exp.Table):
            _share(source)
            break
    return query


def _share(source: exp.Expr) -> None:
    if isinstance(source, exp.Table):
        source.set("this", exp.to_identifier(source.name + SHARED, quoted=True))
    else:
        _shared(source.this)
