"""The processes of a case, one after another, and all that befalls them and their tables."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import ClassVar

import pyarrow as pa

from jobs.backends.duckdb.backend import DuckBackend
from jobs.engine.inline_compaction import Limits, tidy
from jobs.engine.microbatch import Engine, Job
from jobs.errors import MidstreamError
from jobs.tables.memory_store import _MemoryTable
from jobs.tables.names import result_table
from jobs.tables.partitions import Widths
from jobs.tables.progress import last
from jobs.tables.requests import append_request
from jobs.tables.store import WRITER
from tests.simulation import oracle, wishes
from tests.simulation.case import Batch, Case, relation
from tests.simulation.dice import UNIT
from tests.simulation.faults import PAST, At, Crash, Crashes, FaultyStore
from tests.simulation.oracle import Bag

DOWN = 20
"""How many units it takes until another process stands in for one that crashed."""

LOOK = 1000
"""How much time passes between two looks at the clock, as the watch by which states are rebuilt
has it."""

LIMITS = Limits(files=2, small=3, replaced=1, batches=2, recent=1)
"""Even a short run has files to merge."""

WIDTHS = (1, 1, 4)
"""How many times as wide the partitions of states are that a process makes."""

WINDOWS = (0, 8)
"""How many windows a batch may span before it is joined in slices of time."""

POWER_CUTS = 0.5
"""How often the machine is gone, and not the process alone."""

OTHERS = (WRITER, "midstream-other")
"""Other jobs: one from a time when a storage had no identity, and one that has its own."""

MANY = 4
"""Files of results that whoever reads them makes one of."""

BATCHES_AGO = 3
"""How old a storage is that somebody puts back."""


class Simulation:
    """The processes of a case, one after another, and what outlives them: store and clock."""

    def __init__(self, case: Case) -> None:
        self.crashes = Crashes()
        self.store = FaultyStore(writer=f"midstream-{case.seed}", event=self.crashes)
        self.guests: dict[str, Bag] = {query: Bag() for query in case.job.plans}
        """For each query, the rows of its table that others have written."""
        self.events: list[list[str]] = []
        self.now = case.began
        self.engine: Engine | None = None
        self._watch = 0
        self._unit = case.unit
        self._job = case.job
        self._pace = case.pace
        self._interval = case.interval / UNIT
        self._chance = Random(case.seed)
        self._layouts = Random(f"layouts of {case.seed}")
        self._past: list[Mapping[str, _MemoryTable]] = []
        self._inputs: Mapping[str, pa.Table] = {}
        if case.history:
            self._begin_with_others(case)

    def carry_out(self, number: int, batch: Batch) -> None:
        """Deliver a batch until it is done."""
        self.now += batch.pause
        self.events.append(self.crashes.trace)
        for wish in batch.wishes:
            append_request(self.store, wish)
        self.store.sync()
        streams = self._job.streams
        self._inputs = {
            name: relation(streams[name].stream, rows) for name, rows in batch.rows.items()
        }
        for at in (*batch.crashes, None):
            if self._attempt(number, at):
                break
            self.now += DOWN * self._unit
        self.crashes.plan(None)
        self.events[-1], self.crashes.trace = self.crashes.trace, []

    def hand_over(self, number: int, batch: Batch) -> Iterator[str]:
        """Do what befalls a batch that is done; what went unnoticed of it."""
        self._past.append(self.store.saved())
        if batch.guests:
            self._visit(number)
        if batch.restart:
            self._end()
            if batch.loss:
                yield from self._lose(batch.loss)
        if batch.again:
            self._attempt(number, None)

    def _attempt(self, number: int, at: At | None) -> bool:
        """Whether the process lived to see the batch done."""
        self.crashes.plan(at)
        try:
            engine = self._running()
            engine.run(number, self._inputs)
            tidy(engine, lambda: True, LIMITS)
        except Crash:
            self._end()
            return False
        return True

    def _end(self) -> None:
        """The process is gone, and perhaps the machine."""
        self.stop()
        if self._chance.random() < POWER_CUTS:
            self.store.cut_power(self._chance)

    def _running(self) -> Engine:
        if self.engine is None:
            backend = _Executor.empty()
            try:
                self.engine = Engine(
                    self._with_other_widths(),
                    self.store,
                    backend,
                    self._clock,
                    step=self.crashes,
                    timer=self._timer,
                    hook=self._hook,
                    interval=self._interval,
                )
                self.engine.windows = self._layouts.choice(WINDOWS)
            except BaseException:
                backend.close()
                raise
        return self.engine

    def _with_other_widths(self) -> Job:
        """The job as somebody may have edited it: how its states are laid out is no matter."""
        times = self._layouts.choice(WIDTHS)
        given = {name: width * times for name, width in self._job.widths.given.items()}
        return replace(self._job, widths=Widths(given))

    # --- what others do --------------------------------------------------------------------------

    def _begin_with_others(self, case: Case) -> None:
        """Have tables of results there already, with rows that other jobs have written."""
        for query, schema in oracle.schemas(case).items():
            self.store.create(result_table(query), schema)
        self.store.sync()
        self._visit(-1)

    def _visit(self, number: int) -> None:
        """Have another job write to the results under the job's next number, and readers merge."""
        for query in self.guests:
            table = result_table(query)
            columns = self.store.schema(table).names
            row = pa.Table.from_pylist([dict.fromkeys(columns)], self.store.schema(table))
            for writer in OTHERS:
                self.store.commit(table, [self.store.put(table, row)], number + 1, writer)
                self.guests[query][(None,) * len(columns)] += 1
            if len(files := self.store.files(table)) > MANY:
                self.store.merge(table, files)
        self.store.sync()

    def _lose(self, how: str) -> Iterator[str]:
        """Have something happen to a table, which whoever starts the job must be told."""
        progress, saved = last(self.store), self.store.saved()
        if not progress.tables:
            return
        table = self._chance.choice(sorted(progress.tables))
        version = progress.tables[table].version
        if how == PAST:
            table = result_table(self._chance.choice(sorted(self.guests)))
            if len(self._past) < BATCHES_AGO or self.store.last_batch(table) < progress.batch:
                return
            self.store.restore({**self._past[-BATCHES_AGO], table: saved[table]})
        elif self.store.may_lose(table, how, version):
            self.store.lose(table, how, version)
        else:
            return
        yield from self._refused(table, how)
        self.store.restore(saved)

    def _refused(self, table: str, how: str) -> Iterator[str]:
        self.crashes.plan(None)
        try:
            self._running()
        except MidstreamError as error:
            if table not in str(error):
                yield f"{table} was {how}, and nobody says so: {error}"
            return
        self.stop()
        yield f"{table} was {how}, and the job went on"

    def stop(self) -> None:
        """End the process; nothing of it survives but what it stored."""
        if self.engine is not None:
            self.engine.close()
            self.engine = None

    def _clock(self) -> int:
        self._watch += LOOK
        self.now += max(1, self._unit * LOOK // UNIT)
        return self.now

    def _timer(self) -> float:
        self._watch += self._pace
        return self._watch / UNIT

    def _hook(self, command: str, about: Mapping[str, str]) -> None:
        if command:
            self.crashes(f"hook {about['MIDSTREAM_PHASE']}")
            wishes.hook(command, about)


class _Executor(DuckBackend):
    """One thread: enough for small inputs, quicker to start, and the same every time.

    Making a database takes longer than a batch, so what a process leaves is wiped and used again.
    """

    few = 3
    _idle: ClassVar[list["_Executor"]] = []

    def __init__(self) -> None:
        super().__init__()
        self._connection.execute("SET threads = 1")

    @classmethod
    def empty(cls) -> "_Executor":
        """One that knows nothing."""
        return cls._idle.pop() if cls._idle else cls()

    def close(self) -> None:
        self.release()
        for state in list(self._states):
            self.forget(state)
        for (table,) in self._query("SELECT table_name FROM duckdb_tables()"):
            self._connection.execute(f'DROP TABLE "{table}"')
        self._idle.append(self)
