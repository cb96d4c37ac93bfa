"""One micro-batch after another: take in, run the program, write, commit what was done.

Everything here is the same for every backend and every store.  A batch may be interrupted
anywhere and run again: what it decided is read back, what it committed is skipped, what it reads
lies strictly before it.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import sha256
from time import perf_counter
from typing import Any

import pyarrow as pa
from sqlglot import exp

from jobs.backends import SqlBackend
from jobs.engine.ingest import Ingest, Intake, summarise, take_in
from jobs.engine.lower import Operator, Output, Program, Proof, lower
from jobs.engine.migration.definition import Migration
from jobs.engine.migration.hooks import run_hook
from jobs.engine.migration.migrator import Migrator
from jobs.engine.statements import FROM, TO, parse, quote
from jobs.engine.states import States
from jobs.tables.columns import ALWAYS, BATCH
from jobs.tables.inventory import check, check_sink
from jobs.tables.names import (
    DECISIONS,
    PROGRESS,
    late_table,
    rejected_table,
    result_table,
    state_table,
)
from jobs.tables.partitions import SMALL, Partitioning, Widths
from jobs.tables.progress import (
    BatchDecision,
    BatchResources,
    Noted,
    OperatorStats,
    Progress,
    StreamStats,
    decided,
    last,
    latest,
    record,
)
from jobs.tables.store import DataFile, Store
from optimizer.plan import Plan, from_json, to_json
from optimizer.query import Query


class EngineError(RuntimeError):
    """The job cannot go on, and what to do about it."""


@dataclass(frozen=True)
class Job:
    """What runs: the streams taken in, and a plan for each query."""

    name: str
    streams: Mapping[str, Ingest]
    plans: Mapping[str, Plan]
    widths: Widths = field(default_factory=Widths)
    """How much event time a partition of a state holds."""


@dataclass
class _Batch:
    """What is known of the batch under way."""

    number: int
    decision: BatchDecision
    fresh: bool
    """Whether nobody has tried it before, so that nothing of it can be in any table."""
    flows: dict[str, StreamStats] = field(default_factory=dict)
    watermark: int | None = None
    span: int = 0
    """From which event time to which its rows are, in microseconds."""
    written: dict[str, list[DataFile]] = field(default_factory=dict)
    begun: list[Callable[[], object]] = field(default_factory=list)
    put_off: list[Callable[[], None]] = field(default_factory=list)
    """Commits that go on beside the statements, and those that begin in the end."""
    useless: dict[str, list[DataFile]] = field(default_factory=dict)
    """What has been written of a table that is overdue with this batch."""
    versions: dict[str, int] = field(default_factory=dict)
    """Of the tables that have another one since, or that an interrupted run may have changed."""
    rows: dict[str, int] = field(default_factory=dict)
    """What each table gets of this batch, also where an interrupted run of it wrote that."""
    took: dict[str, float] = field(default_factory=dict)
    """Milliseconds, by phase and by operator."""


@dataclass(frozen=True)
class _Write:
    """A relation that becomes part of a table; without files, it did in an interrupted run."""

    relation: str
    table: str
    files: Callable[[], list[DataFile]] | None
    by: Partitioning | None = None

    def overdue(self, file: DataFile) -> bool:
        """Whether nobody will need a file of it."""
        cutoff = self.by.cutoff if self.by else None
        return cutoff is not None and file.until is not None and file.until <= cutoff


class Engine:
    """Runs a job's batches on a backend, over a store."""

    def __init__(  # noqa: PLR0913  # most of the last ones are what simulations replace
        self,
        job: Job,
        store: Store,
        backend: SqlBackend,
        clock: Callable[[], int],
        *,
        step: Callable[[str], None] = lambda _: None,
        writers: int = 0,
        timer: Callable[[], float] = perf_counter,
        hook: Callable[[str, Mapping[str, str]], None] = run_hook,
        look: Callable[[int], BatchResources] = lambda _: BatchResources(),
        interval: float = 0.0,
    ):
        self.job = job
        self.store = store
        self.backend = backend
        store.settle()
        self.progress = last(store)
        self.states = States(store, backend, step)
        self._migrator = Migrator(
            store, backend, self.states, job.widths, clock, hook, timer, interval
        )
        self._partial: Mapping[str, tuple[str, int]] = {}
        self._clock = clock
        self._step = step
        self._timer = timer
        self._look = look
        self._pool = ThreadPoolExecutor(writers) if writers else None
        decision = latest(store)
        self.plans = _resumed(job, self.progress, decision.plans if decision else {})
        self.program = Program((), ())
        self._lowered: tuple[Mapping[str, Plan], Migration | None] | None = None
        self.windows = WINDOWS
        """How many times what is kept a batch may span before it is joined in slices of time."""
        self._sliced: Program | None = None
        self._untidy = False
        self._sinks = set(self.progress.tables)
        """Tables whose columns are known to be those of what is written."""
        self._adopt(decision)
        self._tidy(decision)

    def run(self, number: int, inputs: Mapping[str, Any]) -> Progress:
        """Carry out one batch; `inputs` are each stream's rows, as the backend takes them."""
        if number <= self.progress.batch:
            return self.progress
        if number != self.progress.batch + 1:
            raise EngineError(
                f"batch {number} follows batch {self.progress.batch}: the job's storage and "
                "Spark's checkpoint are not of one run; restore both or start with a new storage"
            )
        began = self._timer()
        known = decided(self.store, number)
        batch = _Batch(number, known or self._decide(number), fresh=known is None)
        noted = self._begin(partial(self._note, batch))
        with self._timed(batch, "ingest"):
            intakes = self._ingest(batch, inputs)
            noted()
        self._adopt(batch.decision)
        for relation in [name for intake in intakes for name in intake.aside]:
            self._write(batch, relation, relation.replace("_", "/", 1))
        with self._timed(batch, "operators"):
            program = self._program(batch)
            for operator in program.operators:
                self._operate(batch, operator)
        with self._timed(batch, "results"):
            emitted = {output.query: self._emit(batch, output) for output in program.outputs}
        wrong = [self._compare(batch, proof) for proof in program.proofs]
        with self._timed(batch, "write"):
            self._settle(batch)
        self.progress = self._done(batch, emitted, "; ".join(filter(None, wrong)))
        self._step("progress")
        noted = self._begin(self._note_progress)
        self._advance(batch)
        noted()
        self._tidy(batch.decision)
        self._migrator.work(self.progress, self.plans, self._timer() - began)
        return self.progress

    def compact(self, most: int = 1, *, closed: bool = True, small: int = SMALL) -> bool:
        """Merge the files of a state that has more than so many alike, if there is one.

        `closed`: of partitions that get no more rows, all that are small.
        """
        until = self.progress.watermark if closed else None
        return any(
            self.states.compact(
                operator.key, self._width(operator), most, until, small, self.progress.batch
            )
            for operator in self._kept
            if operator.key in self.states.files
        )

    def sweep(self, batches: int) -> None:
        """Remove the files of states that were replaced so many batches ago or before."""
        self.states.sweep(self.progress.batch - batches)

    def close(self) -> None:
        """Give back threads and memory."""
        if self._pool is not None:
            self._pool.shutdown()
        self.backend.close()

    # --- the phases of a batch -------------------------------------------------------------------

    def _decide(self, number: int) -> BatchDecision:
        turn = self._migrator.turn(number, self.progress, self.plans, self._partial)
        return BatchDecision(
            number,
            self._clock(),
            {name: to_json(plan.root) for name, plan in turn.plans.items()},
            turn.migration.to_json() if turn.migration else None,
            turn.partial,
            [asdict(event) for event in turn.events],
        )

    def _note(self, batch: _Batch) -> None:
        """What a batch has decided comes before anything that it writes or removes."""
        if batch.fresh:
            self._step("decide")
            self.store.sync()
            record(self.store, DECISIONS, batch.decision)
            self.store.sync()

    def _note_progress(self) -> None:
        """What a batch has written comes before the row that says that it is done."""
        record(self.store, PROGRESS, self.progress)
        self.store.sync()

    def _adopt(self, decision: BatchDecision | None) -> None:
        """Run what a decision says from now on."""
        if decision is not None:
            found = decision.migration
            self._migrator.adopt(Migration.from_json(found) if found else None)
            self._partial = {key: (q, until) for key, (q, until) in decision.partial.items()}
            self.plans = _resumed(self.job, self.progress, decision.plans)
        wanted = self.plans, self._migrator.migration
        if wanted == self._lowered and not (decision and decision.events):
            return
        begins = self._lowered is None
        self._lowered, self._untidy, self._sliced = wanted, True, None
        self.program = lower(self.plans, self._migrator.changes(self.plans))
        if begins:
            check(self.store, self.progress, self._tables)
        for operator in self._kept:
            if operator.key not in self.states.files:
                self.states.open(operator.key, before=self.progress.batch + 1)
        self._purge(self.progress.watermark)

    def _tidy(self, decision: BatchDecision | None) -> None:
        """Remove what nobody needs any more, and say what has happened: no result waits for it."""
        if self._untidy:
            self.states.keep_only(operator.key for operator in self._kept)
            if decision is not None:
                self._migrator.report(decision.events, decision.batch)
            self._untidy = False

    def _ingest(self, batch: _Batch, inputs: Mapping[str, Any]) -> list[Intake]:
        self._step("ingest")
        ingests = self.job.streams
        for name, rows in inputs.items():
            self.backend.put(f"raw_{name}", rows)
        before = self.progress.watermark
        batch.flows, batch.span = summarise(self.backend, ingests, self.progress, batch.decision)
        batch.watermark = _watermark(ingests, batch.flows, batch.decision.clock, before)
        return [
            take_in(self.backend, ingest, batch.flows[name], before, batch.decision)
            for name, ingest in ingests.items()
        ]

    def _program(self, batch: _Batch) -> Program:
        """The statements of a batch: in slices of time, if it spans many times what is kept."""
        kept = max((operator.retention for operator in self._kept), default=0)
        if batch.span <= self.windows * kept:
            return self.program
        if self._sliced is None:
            self._sliced = lower(self.plans, self._migrator.changes(self.plans), sliced=True)
        return self._sliced

    def _operate(self, batch: _Batch, operator: Operator) -> None:
        self._step(f"operator:{operator.key}")
        with self._timed(batch, operator.key):
            self.backend.run(operator.relation, operator.statement)
            if operator.kept:
                if operator.key not in self.states.files:
                    self.states.create(operator.key, operator.relation, batch.number)
                by = self._partitioning(batch, operator)
                self._write(batch, operator.relation, state_table(operator.key), by)

    def _partitioning(self, batch: _Batch, operator: Operator) -> Partitioning:
        if batch.watermark is None:
            return Partitioning(self._width(operator))
        before = self.progress.watermark
        step = 0 if before is None else batch.watermark - before
        return Partitioning(self._width(operator), batch.watermark - operator.retention, step)

    def _width(self, operator: Operator) -> int:
        return self.job.widths.of(operator.node, operator.retention)

    def _emit(self, batch: _Batch, output: Output) -> int | None:
        relation = output.relation
        until = self._emits_until(batch, output)
        parameters = None
        if until is not None:
            parameters = {FROM: self.progress.emitted.get(output.query, ALWAYS), TO: until}
        whole = output.horizon is not None
        self.backend.run(relation, output.statement, parameters, whole=whole)
        self._write(batch, relation, result_table(output.query), mark=False)
        return until

    def _emits_until(self, batch: _Batch, output: Output) -> int | None:
        """The end of the windows that this batch completes."""
        if output.horizon is None:
            return None
        done = self.progress.emitted.get(output.query, ALWAYS)
        return done if batch.watermark is None else max(done, batch.watermark - output.horizon)

    def _write(
        self,
        batch: _Batch,
        relation: str,
        table: str,
        by: Partitioning | None = None,
        *,
        mark: bool = True,
    ) -> None:
        """Begin to write a relation, unless an interrupted run of this batch has committed it.

        `mark` has each row say which batch wrote it.
        """
        store, files = self.store, None
        if not store.exists(table):
            self._create(relation, table, mark=mark)
        elif not mark and table not in self._sinks:
            check_sink(store, table, self.backend.schema(relation))
        self._sinks.add(table)
        if batch.fresh or store.last_batch(table) < batch.number:
            self._step(f"write:{table}")
            files = self.backend.write(relation, store, table, batch.number if mark else None, by)
        commit = partial(self._commit, batch, _Write(relation, table, files, by))
        if files is not None and self.backend.writes_at_once:
            batch.begun.append(self._begin(commit))
        else:
            batch.put_off.append(commit)

    def _create(self, relation: str, table: str, *, mark: bool) -> None:
        schema = self.backend.schema(relation)
        if mark:
            schema = schema.append(pa.field(BATCH, pa.int64()))
        self.store.create(table, schema)

    def _compare(self, batch: _Batch, proof: Proof) -> str:
        """How the results of the plan to come differ from those of the one that runs."""
        relation = proof.relation
        self._step(relation)
        with self._timed(batch, relation):
            self.backend.run(relation, proof.statement)
            self.backend.run("different", differing(self.backend, proof.same_as, relation))
            (row,) = self.backend.rows("different").to_pylist()
        return f"{row['n']:,} results of {proof.query} differ" if row["n"] else ""

    def _settle(self, batch: _Batch) -> None:
        """Wait until all that has been computed is in its table."""
        for done in [*batch.begun, *map(self._begin, batch.put_off)]:
            done()
        self.store.sync()

    def _begin(self, work: Callable[[], None]) -> Callable[[], object]:
        """Have something done beside the statements, or at once; what is returned waits for it."""
        if self._pool is not None:
            return self._pool.submit(work).result
        work()
        return lambda: None

    def _commit(self, batch: _Batch, write: _Write) -> None:
        """Bring what has been written into its table."""
        made, gone = (write.files(), self.states.overdue(write.table)) if write.files else ([], [])
        files = [file for file in made if not write.overdue(file)]
        batch.useless[write.table] = [f for f in made if f.path and write.overdue(f)]
        if files or gone:
            self._step(f"commit:{write.table}")
            version = self.store.commit(write.table, files, batch.number, gone=gone)
            self.states.replaced(batch.number, write.table, gone)
            batch.versions[write.table] = version
        elif write.files is None:
            batch.versions[write.table] = self.store.version(write.table)
        batch.written[write.table] = files
        batch.rows[write.table] = (
            sum(file.rows for file in made) if write.files else self.backend.count(write.relation)
        )

    def _done(self, batch: _Batch, emitted: Mapping[str, int | None], wrong: str) -> Progress:
        operators = {}
        for operator in self.program.operators:
            files = batch.written.get(state_table(operator.key), [])
            kept = [*self.states.files.get(operator.key, []), *files]
            operators[operator.key] = OperatorStats(
                rows=batch.rows.get(state_table(operator.key), 0),
                state_rows=sum(file.rows for file in kept),
                state_bytes=sum(file.bytes for file in kept),
                ms=round(batch.took[operator.key], 3),
            )
        return Progress(
            batch=batch.number,
            watermark=batch.watermark,
            streams=batch.flows,
            operators=operators,
            results={o.query: batch.rows[result_table(o.query)] for o in self.program.outputs},
            emitted={query: until for query, until in emitted.items() if until is not None},
            plans={name: to_json(plan.root) for name, plan in self.plans.items()},
            tables=self._noted(batch, operators),
            queries={name: fingerprint(plan.query) for name, plan in self.plans.items()},
            ms={phase: round(batch.took[phase], 3) for phase in _PHASES},
            migration=self._migration(batch, wrong),
            events=batch.decision.events,
            finished=self._clock(),
            **asdict(self._look(batch.number)),
        )

    def _noted(self, batch: _Batch, operators: Mapping[str, OperatorStats]) -> dict[str, Noted]:
        """What the tables hold that batches write to; what has not changed is as it was."""
        rows = {state_table(key): work.state_rows for key, work in operators.items()}
        known = {t: n for t, n in self.progress.tables.items() if t in self._tables}
        return known | {
            table: Noted(batch.number, version, self.store.outside(table), rows.get(table))
            for table, version in sorted(batch.versions.items())
        }

    def _migration(self, batch: _Batch, wrong: str) -> dict[str, Any] | None:
        figures = self._migrator.figures(self.plans, batch.watermark)
        return figures | {"wrong": wrong} if figures and wrong else figures

    def _advance(self, batch: _Batch) -> None:
        """Make the batch part of the states, and forget what nobody needs any more."""
        for operator in self._kept:
            files = batch.written[state_table(operator.key)]
            self.states.add(operator.key, operator.relation, files, batch.number)
        self.backend.release()
        self._purge(batch.watermark)
        for table, files in batch.useless.items():
            self.store.discard(table, files)

    def _purge(self, watermark: int | None) -> None:
        for operator in self._kept:
            if watermark is not None and operator.key in self.states.files:
                self.states.purge(operator.key, watermark - operator.retention)

    @property
    def _tables(self) -> list[str]:
        """Those that batches write to."""
        asides = [of(name) for of in (late_table, rejected_table) for name in self.job.streams]
        states = [state_table(operator.key) for operator in self._kept]
        return [*states, *(result_table(o.query) for o in self.program.outputs), *asides]

    @property
    def _kept(self) -> list[Operator]:
        return [operator for operator in self.program.operators if operator.kept]

    @contextmanager
    def _timed(self, batch: _Batch, what: str) -> Iterator[None]:
        began = perf_counter()
        yield
        batch.took[what] = (perf_counter() - began) * 1000


def differing(backend: SqlBackend, one: str, other: str) -> exp.Query:
    """Counts the rows that only one of two relations has; floating sums may differ in last bits."""
    columns = ", ".join(
        f"CAST({quote(field.name)} AS FLOAT) AS {quote(field.name)}"
        if pa.types.is_floating(field.type)
        else quote(field.name)
        for field in backend.schema(one)
    )
    sides = [f"SELECT {columns} FROM {quote(name)}" for name in (one, other)]
    halves = [f"({a} EXCEPT ALL {b})" for a, b in (sides, sides[::-1])]
    return parse(f"SELECT count(*) AS n FROM ({' UNION ALL '.join(halves)}) AS d")


WINDOWS = 8
"""A batch that spans more of them is joined in slices of time."""

_PHASES = ("ingest", "operators", "results", "write")


def fingerprint(query: Query) -> str:
    """What a query computes, whatever its plan."""
    return sha256(repr(query).encode()).hexdigest()[:16]


def _resumed(job: Job, progress: Progress, decided: Mapping[str, Any]) -> dict[str, Plan]:
    """The plans to go on with: those decided last, where the job has run before."""
    plans = {}
    known = decided or progress.plans
    for name, plan in job.plans.items():
        if name not in known:
            plans[name] = plan
            continue
        if progress.queries.get(name, fingerprint(plan.query)) != fingerprint(plan.query):
            raise EngineError(
                f"query {name} is not the one that this storage has results of: "
                "give the changed query another name, or the job another storage"
            )
        plans[name] = from_json(plan.query, known[name])
    return plans


def _watermark(
    ingests: Mapping[str, Ingest], flows: Mapping[str, StreamStats], clock: int, before: int | None
) -> int | None:
    """The next batch's watermark: no stream that still speaks has tuples before it.

    A stream that has been silent for its `idle_after` is not waited for.
    """
    awaited = {
        name: ingest
        for name, ingest in ingests.items()
        if ingest.idle_after is None or clock - (flows[name].seen or 0) < ingest.idle_after
    }
    reached = [flows[name].newest for name in awaited]
    if not awaited or any(newest is None for newest in reached):
        return before
    lowest = min(
        newest - ingest.lateness
        for newest, ingest in zip(reached, awaited.values(), strict=True)
        if newest is not None
    )
    return lowest if before is None else max(before, lowest)
