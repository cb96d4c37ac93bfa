"""The workload file: what to optimize without a running job.

With a job's query it says how much work the query has; without one it says what the query is, too:
streams, which of them join, and the windows.  The query is then made up: an equality on a key
column for each join, a boolean column for each select, and everything in the result, so that
nothing narrows the tuples on their way.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from jobs.databases import UnitDatabaseFields
from jobs.documents import (
    Document,
    Loc,
    Model,
    Positive,
    Share,
    check,
    dotted,
    expected,
    parse_bytes,
    parse_tuples,
    read,
    wrong,
)
from jobs.errors import InputError
from jobs.words import unknown
from optimizer.keys import Shares
from optimizer.query import (
    RESULT,
    Aggregate,
    Column,
    ColumnRef,
    Expression,
    Grouping,
    Named,
    Predicate,
    Query,
    QueryError,
    Stream,
)
from optimizer.window import MICROSECONDS, WindowError, close, ranges
from optimizer.workload import Budget, Method, StreamLoad, UnitCosts, Workload, WorkloadError

# --- fields --------------------------------------------------------------------------------------


def _pair(names: tuple[str, str]) -> tuple[str, str]:
    if names[0] == names[1]:
        raise expected("two different streams")
    return names


def _interval(limits: tuple[float, float]) -> tuple[float, float]:
    if limits[0] > limits[1]:
        raise expected("the smaller number first")
    return limits


def _memory(value: Any) -> Any:
    if value is None:
        return None
    tuples, size = parse_tuples(value), parse_bytes(value)
    if (tuples or 0) > 0 or (size or 0) > 0:
        return value
    raise expected("an amount such as 600 tuples, 30MB or 2GiB")


def _bytes(value: Any) -> float:
    size = parse_bytes(value) if isinstance(value, str | int | float) else None
    if size is None or size <= 0:
        raise expected("an amount such as 30MB or 2GiB")
    return size


def _two(value: Any) -> Any:
    """Two of them, in words that a person knows."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise expected("a list of two")
    return tuple(value)


def _stream_name(name: str) -> str:
    if not re.fullmatch(r"[^\W\d]\w*", name):
        raise expected("a name such as A or check_ins: letters, digits and _, letter first")
    return name


def _span(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    from optimizer.sql import parse_duration

    try:
        return parse_duration(value) / MICROSECONDS
    except QueryError:
        raise expected("seconds, or a length of time such as 5 minutes") from None


Name = Annotated[str, AfterValidator(_stream_name)]
Pair = Annotated[tuple[Name, Name], BeforeValidator(_two), AfterValidator(_pair)]
LONGEST = 1e10
"""Seconds, at most: more than three centuries."""

Seconds = Annotated[float, Field(strict=True, ge=-LONGEST, le=LONGEST)]
Interval = Annotated[tuple[Seconds, Seconds], BeforeValidator(_two), AfterValidator(_interval)]
Span = Annotated[Positive, Field(ge=1 / MICROSECONDS, le=LONGEST), BeforeValidator(_span)]
"""Seconds, from a microsecond on, or words such as 5 minutes."""
NotNegative = Annotated[float, Field(strict=True, ge=0)]


class SelectFields(Model):
    """A predicate of one stream: the share that passes it, and seconds that it takes a tuple."""

    name: Annotated[str, Field(min_length=1)] = Field(description="a name, once in each stream")
    selectivity: Share = Field(description="the share of tuples that pass, 0 to 1")
    cost: NotNegative = 0.0


class StreamFields(Model):
    """How much a stream carries, how wide its tuples are, how long they count."""

    rate: NotNegative = Field(description="tuples per second")
    width: Positive = 100.0
    window: Span | None = None
    """Seconds that a tuple may be older than its partners: CQL's RANGE."""
    select: Share | None = None
    """The share of its tuples that pass its WHERE."""
    tuples: NotNegative | None = None
    """How many there are in all; only `midstream rate` asks."""
    selects: tuple[SelectFields, ...] = ()

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        names = [select.name for select in self.selects]
        again = [i for i, name in enumerate(names) if name in names[:i]]
        if again:
            raise wrong({("selects", i, "name"): f"{names[i]} is there already" for i in again})
        return self

    @property
    def passing(self) -> float | None:
        """The share of its tuples that all its selects let through, if it has any."""
        if self.select is None and not self.selects:
            return None
        own = 1.0 if self.select is None else self.select
        return prod((select.selectivity for select in self.selects), start=own)


class JoinFields(Model):
    """How many of the pairs of two streams match."""

    between: Pair = Field(description="two streams, such as [A, B]")
    selectivity: Share = Field(description="the share of pairs that match, 0 to 1")
    cost: NotNegative = 0.0
    """Seconds more that each input takes; only `midstream rate` asks."""


class BoundFields(Model):
    """How far apart two streams' tuples may be: the second's time less the first's."""

    between: Pair = Field(description="two streams, such as [A, B]")
    seconds: Interval = Field(description="two numbers, the earliest and the latest: B less A")


class GroupFields(Model):
    """How many groups a window has, and what equal tuples of an input come to once combined."""

    groups: Positive = Field(description="the number of groups of a window")
    combine: Mapping[Name, NotNegative] = {}
    by: Name | None = None
    """The stream whose key is grouped by, where the file makes the query; by default the first."""
    size: Span = 60.0
    slide: Span | None = None

    @model_validator(mode="after")
    def _overlap(self) -> Self:
        if self.slide is not None and self.slide > self.size:
            limit = f"found {self.slide:g}; allowed: at most the size, {self.size:g} seconds"
            raise wrong({("slide",): limit})
        return self


class ValueFields(Model):
    """Values of a key that are as frequent as each other: how many, and each one's share."""

    count: NotNegative = 1.0
    shares: tuple[Share, ...] = Field(description="the share of each input's tuples, 0 to 1")


class KeyFields(Model):
    """What a query's inputs, three or more, are joined on, and how its values are spread."""

    key: Annotated[str, Field(min_length=1)] = Field(description="such as a.k = b.k = c.k")
    inputs: tuple[Name, ...] = Field(description="the inputs, in the order of the shares")
    values: tuple[ValueFields, ...]

    @model_validator(mode="after")
    def _a_share_each(self) -> Self:
        wanted = len(self.inputs)
        problems: dict[Loc, str] = {
            ("values", at, "shares"): f"found {len(one.shares)}; allowed: {wanted}, one an input"
            for at, one in enumerate(self.values)
            if len(one.shares) != wanted
        }
        if problems:
            raise wrong(problems)
        return self

    def shares(self) -> Shares:
        """As the optimizer has them."""
        return Shares(self.inputs, tuple((one.count, one.shares) for one in self.values))


class UnitCostFields(Model):
    """Seconds that one unit of work takes."""

    join: NotNegative | None = None
    insert: NotNegative | None = None
    delete: NotNegative | None = None
    statement: NotNegative | None = None
    scan: NotNegative | None = None
    probe: NotNegative | None = None
    match: NotNegative | None = None
    write: NotNegative | None = None
    write_byte: NotNegative | None = None
    move: NotNegative | None = None
    comp: NotNegative | None = None
    hash: NotNegative | None = None

    def costs(self) -> UnitCosts:
        """The papers' and our own where nothing is given; `midstream rate` has others."""
        return UnitCosts(**self.model_dump(exclude_none=True, exclude={"move", "comp", "hash"}))


class BudgetFields(Model):
    """What the plan may use."""

    cpu: Positive | None = None
    memory: Annotated[Any, BeforeValidator(_memory)] = None
    bytes: Annotated[float | None, BeforeValidator(_bytes)] = None

    @model_validator(mode="after")
    def _once(self) -> Self:
        if self.memory is not None and self.bytes is not None:
            raise wrong({("bytes",): "memory is given already; allowed: one of memory and bytes"})
        return self

    def budget(self) -> Budget:
        """As the optimizer counts it."""
        limits: dict[str, float] = {} if self.cpu is None else {"cpu": self.cpu}
        if self.memory is not None and (tuples := parse_tuples(self.memory)) is not None:
            return Budget(**limits, tuples=tuples)
        size = self.bytes if self.memory is None else parse_bytes(self.memory)
        return Budget(**limits) if size is None else Budget(**limits, bytes=size)


class WorkloadFile(Model):
    """The whole file."""

    window: Span | None = None
    bounds: tuple[BoundFields, ...] = ()
    streams: Annotated[Mapping[Name, StreamFields], Field(min_length=1)] = Field(
        description="the streams by name, each with its rate"
    )
    joins: tuple[JoinFields, ...] = ()
    keys: tuple[KeyFields, ...] = ()
    """Of a job's query; one that the file makes has a key of its own for each join."""
    selects: Mapping[str, Share] = {}
    """The share that passes a select, by its text as `explain` writes it, or by the stream."""
    group_by: GroupFields | None = None
    join_method: Method = Method.HASH
    unit_costs: UnitCostFields = UnitCostFields()
    batch: Positive = 10.0
    budget: BudgetFields = BudgetFields()
    db: UnitDatabaseFields | None = None
    """What the database beside Spark costs, for `place`."""

    @model_validator(mode="after")
    def _priced_in_the_database(self) -> Self:
        """Our own method's unit costs are shipped for both engines, the papers' are not."""
        if self.db is not None and self.db.join is None and self.join_method != Method.BATCH:
            needed = "missing; needed: seconds for a unit of work in the database"
            raise wrong({("db", "join"): needed})
        return self

    @model_validator(mode="after")
    def _known_streams(self) -> Self:
        problems = {
            loc: unknown("stream", name, self.streams)
            for loc, name in self._mentioned()
            if name not in self.streams
        }
        pairs: set[frozenset[str]] = set()
        for number, join in enumerate(self.joins):
            if frozenset(join.between) in pairs:
                problems["joins", number, "between"] = "these two are joined above already"
            pairs.add(frozenset(join.between))
        if problems:
            raise wrong(problems)
        return self

    def _mentioned(self) -> list[tuple[Loc, str]]:
        """Every name of a stream outside `streams`, and where it stands."""
        joins = [(("joins", i, "between"), join.between) for i, join in enumerate(self.joins)]
        bounds = [(("bounds", i, "between"), b.between) for i, b in enumerate(self.bounds)]
        named: list[tuple[Loc, str]] = [
            (loc, name) for loc, pair in joins + bounds for name in pair
        ]
        if self.group_by is not None:
            named += [(("group_by", "combine", name), name) for name in self.group_by.combine]
            if self.group_by.by is not None:
                named.append((("group_by", "by"), self.group_by.by))
        return named


# --- workload ------------------------------------------------------------------------------------


def load(path: Path, query: Query | None = None) -> tuple[Query, Workload, Budget]:
    """The workload of a file, for that query or else for the one that the file describes."""
    return of(read(path), query)


def of(document: Document, query: Query | None = None) -> tuple[Query, Workload, Budget]:
    """The same of a document that is read already."""
    file = check(WorkloadFile, document)
    if query is not None:
        _refuse_windows(file, document)
    return made(file, document, query)


def made(
    file: WorkloadFile, document: Document, query: Query | None = None
) -> tuple[Query, Workload, Budget]:
    """The same of a file that is checked already."""
    keys = {} if query is None else {one.key: one.shares() for one in file.keys}
    query = _query(file, document) if query is None else query
    _check_selects(file, query, document)
    try:
        workload = replace(_workload(file), keys=keys)
        workload.check(query)
    except WorkloadError as error:
        raise InputError(str(error), str(document.path)) from None
    return query, workload, file.budget.budget()


def database(document: Document) -> UnitDatabaseFields | None:
    """What a workload file says of the database beside Spark."""
    return check(WorkloadFile, document).db


def _workload(file: WorkloadFile) -> Workload:
    group = file.group_by
    by_stream = {n: s.passing for n, s in file.streams.items() if s.passing is not None}
    return Workload(
        streams={name: StreamLoad(s.rate, s.width) for name, s in file.streams.items()},
        joins={frozenset(join.between): join.selectivity for join in file.joins},
        selects=by_stream | dict(file.selects),
        combine=dict(group.combine) if group else {},
        groups=group.groups if group else 1.0,
        method=file.join_method,
        unit_costs=file.unit_costs.costs(),
        batch=file.batch,
    )


def to_json(workload: Workload) -> dict[str, Any]:
    """The file that says the same of a query, but for the budget."""
    joins = [
        {"between": sorted(edge), "selectivity": share} for edge, share in workload.joins.items()
    ]
    grouped = {"groups": workload.groups, "combine": dict(workload.combine)}
    return {
        "streams": {name: dict(vars(load)) for name, load in workload.streams.items()},
        "joins": sorted(joins, key=lambda join: str(join["between"])),
        "keys": [_key_to_json(key, shares) for key, shares in workload.keys.items()],
        "selects": dict(workload.selects),
        "group_by": grouped,
        "join_method": str(workload.method),
        "batch": workload.batch,
        "unit_costs": dict(vars(workload.unit_costs)),
    }


def _key_to_json(key: str, shares: Shares) -> dict[str, Any]:
    values = [{"count": count, "shares": list(each)} for count, each in shares.values]
    return {"key": key, "inputs": list(shares.inputs), "values": values}


def _check_selects(file: WorkloadFile, query: Query, document: Document) -> None:
    selects = [str(p) for p in query.predicates if len(p.aliases) == 1]
    for name in file.selects:
        if name not in {*selects, *query.aliases}:
            message = unknown("select or stream", name, [*selects, *query.aliases])
            raise InputError(message, document.where(("selects", name)))


def _refuse_windows(file: WorkloadFile, document: Document) -> None:
    """The job's SQL has windows; others here would be ignored."""
    loc: Loc = ()
    if file.window is not None:
        loc = ("window",)
    elif file.bounds:
        loc = ("bounds",)
    elif local := [name for name, stream in file.streams.items() if stream.window is not None]:
        loc = ("streams", local[0], "window")
    if loc:
        raise InputError("the job's query says its windows itself: remove it", document.where(loc))


# --- a query without SQL -------------------------------------------------------------------------

TIME = "ts"
PASSES = "passes"


def key(one: str, other: str) -> str:
    """The column on which two made-up streams are joined."""
    return "_".join(sorted((one, other))).lower()


def _query(file: WorkloadFile, document: Document) -> Query:
    streams = {name: _stream(name, file) for name in file.streams}
    try:
        grouping = _grouping(file)
        return Query(
            inputs=tuple(streams.items()),
            predicates=tuple(_predicates(file)),
            bounds=close(tuple(streams), _limits(file)),
            output=_everything(streams) if grouping is None else _results(grouping),
            grouping=grouping,
        )
    except WindowError as error:
        one, other = error.pair
        advice = "" if "exclude" in str(error) else _window_advice(one, other)
        where = document.where(("bounds",)) if file.bounds else str(document.path)
        raise InputError(f"{error}{advice}", where) from None
    except QueryError as error:
        raise InputError(str(error), str(document.path)) from None


def _window_advice(one: str, other: str) -> str:
    bound = dotted(("bounds",))
    return (
        f"; give a window in seconds, or {bound} such as"
        f" [{{between: [{one}, {other}], seconds: [-60, 300]}}]"
    )


def _stream(name: str, file: WorkloadFile) -> Stream:
    keys = [Column(key(*join.between), "BIGINT") for join in file.joins if name in join.between]
    if file.streams[name].passing is not None or name in file.selects:
        keys.append(Column(PASSES, "BOOLEAN"))
    if file.group_by is not None and name == _grouped(file):
        keys.append(Column("grouped", "BIGINT"))
    return Stream(name, (*keys, Column(TIME, "TIMESTAMP")), TIME)


def _predicates(file: WorkloadFile) -> list[Predicate]:
    selects = [
        Predicate(Expression.of(ColumnRef(name, PASSES)))
        for name, stream in file.streams.items()
        if stream.passing is not None or name in file.selects
    ]
    return selects + [_equality(*join.between) for join in file.joins]


def _equality(one: str, other: str) -> Predicate:
    column = key(one, other)
    left, right = (Expression.of(ColumnRef(name, column)) for name in (one, other))
    return Predicate.equality(left, right)


def _limits(file: WorkloadFile) -> dict[tuple[str, str], int]:
    """The tightest of everything said: one window for all pairs, each stream's, and bounds."""
    names = tuple(file.streams)
    limits: dict[tuple[str, str], int] = {}

    def tighten(pair: tuple[str, str], limit: float) -> None:
        limits[pair] = min(round(limit), limits.get(pair, round(limit)))

    if file.window is not None:
        for one in names:
            for other in names:
                if one != other:
                    tighten((one, other), file.window * MICROSECONDS)
    local = {n: round(s.window * MICROSECONDS) for n, s in file.streams.items() if s.window}
    for pair, limit in ranges(names, local).items():
        tighten(pair, limit)
    for bound in file.bounds:
        first, second = bound.between
        earliest, latest = bound.seconds
        tighten((second, first), latest * MICROSECONDS)
        tighten((first, second), -earliest * MICROSECONDS)
    return limits


def _everything(streams: Mapping[str, Stream]) -> tuple[Named, ...]:
    return tuple(
        Named(f"{name}_{column.name}", Expression.of(ColumnRef(name, column.name)))
        for name, stream in streams.items()
        for column in stream.columns
    )


def _grouped(file: WorkloadFile) -> str:
    assert file.group_by is not None
    return file.group_by.by or next(iter(file.streams))


def _grouping(file: WorkloadFile) -> Grouping | None:
    """Count the results by a column of one stream; windows are over the first stream's time."""
    group = file.group_by
    if group is None:
        return None
    size = round(group.size * MICROSECONDS)
    return Grouping(
        keys=(Named("grouped", Expression.of(ColumnRef(_grouped(file), "grouped"))),),
        aggregates=(Aggregate("results", "count"),),
        time=ColumnRef(next(iter(file.streams)), TIME),
        size=size,
        slide=size if group.slide is None else round(group.slide * MICROSECONDS),
    )


def _results(grouping: Grouping) -> tuple[Named, ...]:
    return tuple(Named(name, Expression.of(ColumnRef(RESULT, name))) for name in grouping.names)
