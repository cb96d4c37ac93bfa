"""The workload file as `midstream rate` reads it: windows may be none, streams may end."""

from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import ValidatorFunctionWrapHandler, WrapValidator, model_validator

from jobs import workloads
from jobs.documents import Document, Loc, check, read, wrong
from jobs.errors import InputError
from jobs.workloads import Span, StreamFields, WorkloadFile
from optimizer.cost.rate.load import Feed, Filter, Match, RateLoad, UnitCosts
from optimizer.query import Query
from optimizer.workload import Method, Workload

NONE = "none"
"""The window of tuples that count for ever."""

STAND_IN = 1.0
"""Seconds of a window that nobody asks for: only the joins of such a query matter."""


def _none_or(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    return inf if isinstance(value, str) and value.strip().lower() == NONE else read(value)


class RateFile(WorkloadFile):
    """The whole file; `window: none` keeps every tuple."""

    window: Annotated[Span | None, WrapValidator(_none_or)] = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.unbounded and (loc := self._narrower):
            raise wrong({loc: "window is none already; allowed: one of the two"})
        return self

    @property
    def unbounded(self) -> bool:
        """Whether tuples count for ever."""
        return self.window == inf

    @property
    def _narrower(self) -> Loc:
        local = [name for name, stream in self.streams.items() if stream.window is not None]
        return ("bounds",) if self.bounds else ("streams", local[0], "window") if local else ()


@dataclass(frozen=True)
class RateTask:
    """What a workload file says about rates, and the query of its joins."""

    name: str
    load: RateLoad
    query: Query
    workload: Workload
    document: Document


def load(path: Path) -> RateTask:
    """The task of a file."""
    document = read(path)
    file = check(RateFile, document)
    if file.join_method is Method.BATCH:
        allowed = "found batch; allowed: hash or nested-loop, as a plan here is of one server each"
        raise InputError(allowed, document.where(("join_method",)))
    stand_in = file.model_copy(update={"window": STAND_IN}) if file.unbounded else file
    query, workload, _ = workloads.made(stand_in, document)
    given = RateLoad(
        {name: _feed(name, stream, file) for name, stream in file.streams.items()},
        {frozenset(j.between): Match(j.selectivity, j.cost) for j in file.joins},
        _costs(file),
        None if file.unbounded else query.bounds,
    )
    return RateTask(path.stem, given, query, workload, document)


def _feed(name: str, stream: StreamFields, file: WorkloadFile) -> Feed:
    selects = [Filter(s.name, s.selectivity, s.cost, name) for s in stream.selects]
    plain = file.selects.get(name, stream.select)
    if plain is not None:
        selects.append(Filter("select", plain, of=name))
    return Feed(stream.rate, inf if stream.tuples is None else stream.tuples, tuple(selects))


def _costs(file: WorkloadFile) -> UnitCosts:
    given = file.unit_costs
    return UnitCosts(
        given.move or 0.0,
        given.comp or 0.0,
        given.hash or 0.0,
        given.probe or 0.0,
        file.join_method is Method.NESTED_LOOP,
    )
