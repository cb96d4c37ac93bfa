"""The job file: streams, queries, budget and when to change plans, as immutable values.

Light to import: no Spark, and no SQL parser until a query or a length of time is read.
docs/examples/airline.yaml shows every field that most jobs need.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PrivateAttr,
    model_validator,
)
from pydantic_core import PydanticCustomError

from jobs.documents import (
    Document,
    Location,
    Model,
    Number,
    Positive,
    check,
    expected,
    parse_bytes,
    parse_tuples,
    read,
    wrong,
)
from jobs.errors import InputError, RefusedError
from jobs.objectives import COST, FORMS, objective
from jobs.options import options
from jobs.options import problems as wrong_options
from jobs.words import unknown
from optimizer.plan import Plan, PlanError, as_written, build
from optimizer.plan import parse as parse_plan
from optimizer.workload import Budget

if TYPE_CHECKING:
    from optimizer.cost.rate.objective import Objective
    from optimizer.query import Query, Stream

# --- fields --------------------------------------------------------------------------------------

MICROSECOND = timedelta(microseconds=1)


def _job_name(name: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,62}", name):
        raise expected("a name such as airline-2: lower-case letters, digits and -, letter first")
    return name


def _stream_name(name: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", name):
        raise expected("a name such as check_ins: lower-case letters, digits and _, letter first")
    return name


def _query_name(name: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", name):
        raise expected("a name such as by-gate: lower-case letters, digits, - and _, letter first")
    return name


def _column_name(name: str) -> str:
    if not re.fullmatch(r"[^\W\d]\w*", name):
        raise expected("the name of a column")
    return name


def _duration(value: Any) -> Any:
    from optimizer.query import QueryError
    from optimizer.sql import parse_duration

    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise expected("a length of time such as 10 seconds or 5 minutes")
    try:
        return timedelta(microseconds=parse_duration(value))
    except QueryError:
        raise expected("a length of time such as 10 seconds or 5 minutes") from None


def _positive_duration(value: timedelta) -> timedelta:
    if not value:
        raise expected("a length of time above zero")
    return value


def _never(value: Any) -> Any:
    try:
        return None if value is None or value == "never" else _duration(value)
    except PydanticCustomError:
        raise expected("never, or a length of time such as 5 minutes") from None


def _option(value: Any) -> Any:
    if isinstance(value, str | int | float):
        return value
    raise expected("text, a number, true or false")


def _memory(value: Any) -> Budget:
    limit = Budget()
    if isinstance(value, Budget):
        return value
    if isinstance(value, str | int | float):
        if (tuples := parse_tuples(value)) is not None and tuples > 0:
            return Budget(tuples=tuples)
        if (size := parse_bytes(value)) is not None and size > 0:
            return Budget(bytes=size)
    if value is None:
        return limit
    raise expected("an amount such as 2GiB, 30MB or 600 tuples")


def _plan(text: str) -> str:
    try:
        return str(parse_plan(text))
    except PlanError as error:
        raise expected(f"a plan such as ((f b) c); {error}") from None


def _auto(value: Any) -> Any:
    try:
        return None if value is None or value == "auto" else _positive_duration(_duration(value))
    except PydanticCustomError:
        raise expected("auto, or a length of time above zero such as 1 hour") from None


_WORDS = PlainSerializer(lambda value: None if value is None else f"{value // MICROSECOND} us")

JobName = Annotated[str, AfterValidator(_job_name)]
StreamName = Annotated[str, AfterValidator(_stream_name)]
QueryName = Annotated[str, AfterValidator(_query_name)]
ColumnName = Annotated[str, AfterValidator(_column_name)]
Duration = Annotated[timedelta, BeforeValidator(_duration), _WORDS]
PositiveDuration = Annotated[Duration, AfterValidator(_positive_duration)]
Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(strict=True, ge=1)]
Option = Annotated[str | int | float | bool, BeforeValidator(_option)]
Options = Mapping[str, Option]
Columns = Literal["declared", "exact"]

# --- streams -------------------------------------------------------------------------------------


class Layout(Model):
    """How the states of a job lie on the disk."""

    width: Annotated[timedelta | None, BeforeValidator(_auto), _WORDS] = None
    """The least range of event time that a partition of a state holds, if not as it thinks best."""


class _Stream(Model):
    """What every stream has, wherever its tuples come from."""

    ddl: Text = Field(
        alias="schema", description="columns and their types, such as num STRING, ts TIMESTAMP"
    )
    event_time: ColumnName = Field(description="the column that tells when a tuple happened")
    lateness: Duration = timedelta(0)
    idle_after: Annotated[timedelta | None, BeforeValidator(_never), _WORDS] = None
    ahead: Duration = timedelta(hours=1)
    """How far in the future an event time may lie before its tuple is rejected."""
    layout: Layout = Layout()
    site: Text | None = None
    """Where it comes in; by default where the job runs."""
    options: Options = Field(default={})

    @model_validator(mode="after")
    def _known_options(self) -> "_Stream":
        if faults := wrong_options(self.kind, self.options):
            raise wrong({("options", name): fault for name, fault in faults.items()})
        return self

    @property
    def kind(self) -> str:
        """What its options depend on."""
        return str(getattr(self, "format", getattr(self, "source", "")))

    @property
    def exact(self) -> bool:
        """Whether there may be no columns but the declared ones."""
        return True


class FilesStream(_Stream):
    """Files that appear in a directory."""

    source: Literal["files"]
    path: Location = Field(description="the directory in which files appear")
    format: Literal["parquet", "json", "csv"] = Field(description="parquet, json or csv")
    columns: Columns | None = None
    """Whether columns that are not declared are ignored, or stop the job."""

    @model_validator(mode="after")
    def _named_columns(self) -> "FilesStream":
        if self.columns == "declared" and self.format == "csv" and not self._has_header:
            raise wrong({("columns",): "declared needs `header: true` under options: without it, "
                         "values go by their place"})  # fmt: skip
        return self

    @property
    def exact(self) -> bool:
        """By default where columns have no names, or each row has its own."""
        named = self.format == "parquet" or (self.format == "csv" and self._has_header)
        return self.columns == "exact" if self.columns or named else True

    @property
    def _has_header(self) -> bool:
        return options("csv", self.options).get("header", "false").lower() == "true"


class DeltaStream(_Stream):
    """Rows appended to a Delta table."""

    source: Literal["delta"]
    path: Location = Field(description="the Delta table's directory")
    columns: Columns = "declared"
    """Whether columns that are not declared are ignored, or stop the job."""

    @property
    def exact(self) -> bool:
        """Only if the job says so."""
        return self.columns == "exact"


class KafkaStream(_Stream):
    """Records of a topic; accepted, and refused when the job is to run."""

    source: Literal["kafka"]
    topic: Text = Field(description="the topic to read")
    servers: Text = Field(description="the brokers, such as host:9092,other:9092")


class Shift(Model):
    """From some time on, a generated stream is another one."""

    after: Duration = Field(description="how long after the start, such as 5 minutes")
    rate: Positive | None = None
    keys: Mapping[ColumnName, Count] = {}


class Generator(Model):
    """How made-up tuples look: how many, drawn from how many keys, changing when."""

    rate: Positive = Field(description="tuples per second")
    keys: Mapping[ColumnName, Count] = {}
    """The number of different values of a column."""
    drift: tuple[Shift, ...] = ()
    seed: Annotated[int, Field(strict=True, ge=0)] = 0


class GeneratorStream(_Stream):
    """Tuples made up at a steady rate; the same seed makes the same ones."""

    source: Literal["generator"]
    generator: Generator = Field(description="rate, keys, drift and seed of the tuples to make")


StreamSpec = Annotated[
    FilesStream | DeltaStream | GeneratorStream | KafkaStream, Field(discriminator="source")
]

# --- queries, budget, policy ---------------------------------------------------------------------


class Sink(Model):
    """Where results go."""

    format: Literal["delta"] = "delta"
    path: Location | None = None
    site: Text | None = None
    """Where results go; by default where the job runs."""


class QuerySpec(Model):
    """A continuous query, and perhaps the plan to start with."""

    sql: Text = Field(description="a SELECT over the streams")
    window: Annotated[PositiveDuration | None, Field(description="for all pairs of streams")] = None
    sink: Sink = Sink()
    plan: Annotated[str, AfterValidator(_plan)] | None = None


class BudgetSpec(Model):
    """What the job's queries may use."""

    cpu: Positive | None = None
    memory: Annotated[Budget, BeforeValidator(_memory)] = Budget()

    @property
    def limits(self) -> Budget:
        """As the optimizer counts it."""
        cpu = Budget().cpu if self.cpu is None else self.cpu
        return Budget(cpu, self.memory.tuples, self.memory.bytes)


def _objective(text: str) -> str:
    try:
        objective(text)
    except ValueError:
        raise expected(FORMS) from None
    return text


class Reoptimize(Model):
    """When to look for a better plan, and when to move to it."""

    strategy: Text = "two-layer"
    objective: Annotated[Text, AfterValidator(_objective)] = COST
    drift: Annotated[Number, Field(ge=0)] = 0.2
    usage: Annotated[Number, Field(ge=0)] = 0.2
    """The same for what the job takes of its network."""
    windows: Count = 3
    cooldown: Duration = timedelta(minutes=10)
    horizon: PositiveDuration = timedelta(hours=1)
    migration: Text = "auto"
    approve: Annotated[bool, Field(strict=True)] = False

    @property
    def wanted(self) -> "Objective | None":
        """The objective of output rates, if there is one."""
        return objective(self.objective)


class Statistics(Model):
    """What is gathered of the streams: how finely, how often, and for how long it is kept."""

    window: PositiveDuration = timedelta(minutes=1)
    every: PositiveDuration = timedelta(minutes=5)
    keep: PositiveDuration = timedelta(days=30)

    @property
    def stale(self) -> timedelta:
        """What ended longer ago says nothing of now; a busy machine gathers a little late."""
        return max(3 * max(self.every, self.window), timedelta(minutes=5))


class Job(Model):
    """A running Spark application, as its file describes it."""

    job: JobName = Field(description="the job's name, such as airline")
    engine: Literal["spark", "spark-duckdb", "duckdb"] = "spark-duckdb"
    storage: Location
    durable: Annotated[bool, Field(strict=True)] = True
    """Whether what a batch has written survives a power cut, as it survives any other crash."""
    layout: Layout = Layout()
    trigger: PositiveDuration = timedelta(seconds=10)
    streams: Annotated[Mapping[StreamName, StreamSpec], Field(min_length=1)] = Field(
        description="the streams by name"
    )
    queries: Annotated[Mapping[QueryName, QuerySpec], Field(min_length=1)] = Field(
        description="the queries by name"
    )
    budget: BudgetSpec = BudgetSpec()
    statistics: Statistics = Statistics()
    reoptimize: Reoptimize = Reoptimize()
    network: Location | None = None
    """The file of the sites and links that the job is planned over."""
    site: Text | None = None
    """Where the job runs."""
    _document: Document = PrivateAttr()

    @model_validator(mode="before")
    @classmethod
    def _default_storage(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            return {"storage": f".midstream/{data.get('job')}"} | dict(data)
        return data

    @model_validator(mode="after")
    def _on_a_network(self) -> "Job":
        if self.network is not None and self.site is None:
            raise wrong({("site",): "missing; needed: the site of the network where the job runs"})
        if self.network is None and (named := dict(self.sites)):
            loc = next(iter(named))
            raise wrong({loc: "is a site of no network: name its file under network"})
        return self

    @property
    def widths(self) -> dict[str, int]:
        """How much event time the partitions of states hold, in microseconds, if the file says."""
        asked = {name: one.layout.width or self.layout.width for name, one in self.streams.items()}
        return {name: width // MICROSECOND for name, width in asked.items() if width}

    @model_validator(mode="after")
    def _own_sinks(self) -> "Job":
        owners: dict[str, str] = {}
        for name in self.queries:
            if (owner := owners.setdefault(self.sink(name), name)) != name:
                raise wrong({("queries", name, "sink"): f"query {owner} writes there already"})
        return self

    def model_post_init(self, context: Any) -> None:
        """Remember the file, so that later errors can name it."""
        self._document = context["document"]

    @property
    def document(self) -> Document:
        """What errors name."""
        return self._document

    @property
    def file(self) -> Path:
        """Where the job is written down."""
        return self._document.path

    def deciding(self, **wishes: str | None) -> "Job":
        """The same job, for somebody who wants it reoptimized in another way."""
        wanted = {name: wish for name, wish in wishes.items() if wish is not None}
        return self.model_copy(update={"reoptimize": self.reoptimize.model_copy(update=wanted)})

    @property
    def sites(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """The sites that are named, each by its field."""
        named: list[tuple[tuple[str, ...], str | None]] = [(("site",), self.site)]
        named += [(("streams", name, "site"), one.site) for name, one in self.streams.items()]
        named += [(("queries", n, "sink", "site"), q.sink.site) for n, q in self.queries.items()]
        yield from ((loc, site) for loc, site in named if site is not None)

    @property
    def definition(self) -> dict[str, Any]:
        """What decides about results, as it can be kept: the streams and the queries."""
        dumped = self.model_dump(
            mode="json", by_alias=True, include={"streams", "queries", "trigger"}
        )
        for stream in dumped["streams"].values():
            del stream["layout"], stream["site"]
        for query in dumped["queries"].values():
            del query["sink"]["site"]
        return dumped

    def defined(self, by: Mapping[str, Any]) -> "Job":
        """The same job with the streams and the queries of a definition that was kept."""
        kept = {"job": self.job, "storage": self.storage, **by}
        other = Job.model_validate(kept, context={"document": self._document})
        return self.model_copy(update={name: getattr(other, name) for name in by})

    def sink(self, query: str) -> str:
        """Where that query's results go; by default under the storage."""
        return self.queries[query].sink.path or f"{self.storage}/out/{query}"

    def stream(self, name: str) -> "Stream":
        """The stream as the optimizer sees it."""
        from optimizer.query import QueryError, Stream
        from optimizer.sql import SqlError, parse_schema

        spec = self.streams[name]
        try:
            columns = parse_schema(spec.ddl)
        except SqlError as error:
            raise self._sql_error(error, "streams", name, "schema") from None
        try:
            return Stream(name, columns, spec.event_time)
        except QueryError as error:
            where = self._document.where(("streams", name, "event_time"))
            there = ", ".join(column.name for column in columns)
            raise InputError(f"{error}; there is {there}", where) from None

    def query(self, name: str) -> "Query":
        """The query as the optimizer sees it."""
        from optimizer.query import QueryError
        from optimizer.sql import SqlError, parse
        from optimizer.window import WindowError

        self._check_name(name)
        spec = self.queries[name]
        streams = {stream: self.stream(stream) for stream in self.streams}
        window = None if spec.window is None else spec.window // MICROSECOND
        try:
            return parse(spec.sql, streams, window)
        except SqlError as error:
            raise self._sql_error(error, "queries", name, "sql") from None
        except (QueryError, WindowError) as error:
            raise InputError(str(error), self._document.where(("queries", name, "sql"))) from None

    def plan(self, name: str) -> Plan:
        """The plan to start with; by default the one that the query's text suggests."""
        query = self.query(name)
        text = self.queries[name].plan
        try:
            return build(query, parse_plan(text) if text else as_written(query))
        except PlanError as error:
            where = self._document.where(("queries", name, "plan"))
            raise InputError(str(error), where) from None

    def check(self) -> None:
        """Read everything that `load` leaves for later: schemas, SQL, plans."""
        for name in self.queries:
            self.plan(name)

    def check_runnable(self) -> None:
        """Refuse what can be described but not run yet."""
        for name, stream in self.streams.items():
            if isinstance(stream, KafkaStream):
                where = self._document.where(("streams", name, "source"))
                raise RefusedError(
                    "kafka is not supported yet; use files, delta or generator", where
                )

    def _check_name(self, query: str) -> None:
        if query not in self.queries:
            raise InputError(
                unknown("query", query, self.queries), self._document.where(("queries",))
            )

    def _sql_error(self, error: Any, *loc: str) -> InputError:
        where = f"{self._document.where(loc)}, line {error.line}, column {error.column}"
        shown = error.pretty().partition("\n")[2]
        return InputError(error.message, where, detail=shown)


def load(path: Path) -> Job:
    """The job of a file, its paths absolute; its SQL is read when it is asked for."""
    return check(Job, read(path))


def is_job(document: Document) -> bool:
    """Whether a document looks like a job file; otherwise it is a workload."""
    return isinstance(document.data, Mapping) and bool({"job", "queries"} & document.data.keys())
