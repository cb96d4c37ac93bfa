"""The operator file: a logical plan to place, operator by operator, without a job.

    streams: {plugs: {rate: 2000}}
    operators:
      - {name: s5, kind: select, inputs: [plugs], window: 300, selectivity: 0.5, cost: 1e-6,
         db_cost: 1e-7}
    db: {statement: 1e-3, in: 2e-6, out: 2e-6}

Operators stand behind their inputs, the root last; whoever reads a stream says its window.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from jobs.databases import DatabaseFields, NotNegative, measured
from jobs.documents import Document, Loc, Model, Positive, check, expected, wrong
from jobs.errors import InputError
from jobs.words import unknown
from jobs.workloads import Span
from optimizer.cost.feasibility import (
    Relation,
    aggregated,
    joined,
    selected,
    utilisation,
    windowed,
)
from optimizer.cost.fragments import LogicalPlan, Operator

# --- fields --------------------------------------------------------------------------------------


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _several(value: Any, most: float, what: str) -> tuple[float, ...]:
    """One number or a list of them, each within its range."""
    values = value if isinstance(value, list | tuple) else [value]
    try:
        if all(_is_number(one) and isfinite(one) and 0 <= one <= most for one in values):
            return tuple(map(float, values))
    except OverflowError:
        pass
    raise expected(what)


def _costs(value: Any) -> tuple[float, ...]:
    return _several(value, float("inf"), "seconds of at least 0, or a list of one for each input")


def _shares(value: Any) -> tuple[float, ...]:
    return _several(value, 1.0, "a number from 0 to 1, or a list of two for the sides of a join")


def _name(name: str) -> str:
    if not name or name != name.strip():
        raise expected("a name, without blanks around it")
    return name


Name = Annotated[str, AfterValidator(_name)]
Costs = Annotated[tuple[float, ...], BeforeValidator(_costs)]
Shares = Annotated[tuple[float, ...], BeforeValidator(_shares)]
Kind = Literal["select", "project", "aggregate", "join"]

_OWN: Mapping[str, tuple[str, ...]] = {
    "select": ("selectivity",),
    "project": (),
    "aggregate": ("groups", "slide", "slide_tuples"),
    "join": ("selectivity",),
}
"""What only some kinds have."""

_ONLY_SOME = ("selectivity", "groups", "slide", "slide_tuples")


class StreamFields(Model):
    """A stream that operators read."""

    rate: NotNegative = Field(description="tuples per second")


class OperatorFields(Model):
    """An operator: what it reads, what comes out, and what a tuple costs in either place."""

    name: Name = Field(description="a name that no other one has")
    kind: Kind = Field(description="select, project, aggregate or join")
    inputs: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="streams, or operators that stand before it"
    )
    cost: Costs = Field(description="seconds for an input tuple on Spark")
    db_cost: Costs = Field(description="seconds for an input tuple in the database")
    window: Span | None = None
    selectivity: Shares | None = None
    groups: Positive | None = None
    slide: Span | None = None
    slide_tuples: Positive | None = None

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        problems: dict[Loc, str] = {(name,): problem for name, problem in self._problems()}
        if problems:
            raise wrong(problems)
        return self

    def _problems(self) -> list[tuple[str, str]]:
        own = _OWN[self.kind]
        found = [
            (name, f"a {self.kind} has none: remove it")
            for name in _ONLY_SOME
            if name not in own and getattr(self, name) is not None
        ]
        count = 2 if self.kind == "join" else 1
        if len(self.inputs) != count:
            found.append(("inputs", f"a {self.kind} reads {count}, not {len(self.inputs)}"))
        return found + self._missing(own) + self._too_many(count)

    def _missing(self, own: Sequence[str]) -> list[tuple[str, str]]:
        if "groups" not in own:
            absent = [name for name in own if getattr(self, name) is None]
            return [(name, "missing; needed: a number from 0 to 1") for name in absent]
        found = []
        if self.groups is None:
            found.append(("groups", "missing; needed: the number of groups of a window"))
        if (self.slide is None) == (self.slide_tuples is None):
            found.append(("slide", "give one of slide, in seconds, and slide_tuples"))
        return found

    def _too_many(self, inputs: int) -> list[tuple[str, str]]:
        found = [
            (name, f"found {len(costs)} costs; allowed: one, or one for each of {inputs}")
            for name, costs in (("cost", self.cost), ("db_cost", self.db_cost))
            if len(costs) not in (1, inputs)
        ]
        if self.selectivity is not None and len(self.selectivity) not in (1, inputs):
            allowed = "one, or one for each side" if self.kind == "join" else "one"
            found.append(("selectivity", f"found {len(self.selectivity)}; allowed: {allowed}"))
        return found


def _some(operators: tuple[OperatorFields, ...]) -> tuple[OperatorFields, ...]:
    if not operators:
        raise expected("at least one")
    return operators


class OperatorFile(Model):
    """The whole file."""

    streams: Annotated[Mapping[Name, StreamFields], Field(min_length=1)] = Field(
        description="the streams by name, each with its rate"
    )
    operators: Annotated[tuple[OperatorFields, ...], AfterValidator(_some)] = Field(
        description="the operators, inputs first and the root last"
    )
    db: DatabaseFields = Field(description="what a statement and its transfers cost")

    @model_validator(mode="after")
    def _is_a_tree(self) -> Self:
        if problems := _names(self) or _readers(self):
            raise wrong(problems)
        return self


def _names(file: OperatorFile) -> dict[Loc, str]:
    """Names that come twice, and inputs that are not there, or not before."""
    every = [one.name for one in file.operators]
    problems: dict[Loc, str] = {}
    known = set(file.streams)
    for at, one in enumerate(file.operators):
        if one.name in known:
            problems["operators", at, "name"] = f"{one.name!r} is the name of another"
        for number, name in enumerate(one.inputs):
            loc: Loc = ("operators", at, "inputs", number)
            if name not in known:
                problems[loc] = _absent(name, one.name, file, every)
        known.add(one.name)
    return problems


def _absent(name: str, reader: str, file: OperatorFile, every: Sequence[str]) -> str:
    if name not in every:
        return unknown("stream or operator", name, [*file.streams, *every])
    if way := _cycle(name, reader, file):
        return f"a cycle: {' → '.join(way)}"
    return f"{name!r} stands further down: inputs come first"


def _cycle(name: str, reader: str, file: OperatorFile) -> list[str]:
    """The way from an input back to its reader, if there is one."""
    inputs = {one.name: one.inputs for one in file.operators}
    ways, seen = [[name, reader]], {name}
    while ways:
        way = ways.pop()
        if way[0] == reader:
            return way
        for below in inputs.get(way[0], ()):
            if below not in seen:
                seen.add(below)
                ways.append([below, *way])
    return []


def _readers(file: OperatorFile) -> dict[Loc, str]:
    """Operators with two readers, or none; windows of those that read no stream."""
    problems: dict[Loc, str] = {}
    read: dict[str, str] = {}
    for at, one in enumerate(file.operators):
        for number, name in enumerate(one.inputs):
            if name in read:
                message = f"{name!r} feeds {read[name]!r} already: a plan is a tree"
                problems["operators", at, "inputs", number] = message
            elif name not in file.streams:
                read[name] = one.name
        reads_stream = any(name in file.streams for name in one.inputs)
        if reads_stream and one.window is None:
            problems["operators", at, "window"] = "missing; needed: seconds, as it reads a stream"
        if not reads_stream and one.window is not None:
            problems["operators", at, "window"] = "it reads no stream: remove it"
    roots = [at for at, one in enumerate(file.operators) if one.name not in read]
    last = file.operators[-1].name
    for at in roots[:-1]:
        name = file.operators[at].name
        problems["operators", at, "name"] = f"nobody reads {name!r}: two roots, it and {last!r}"
    return problems


# --- the plan ------------------------------------------------------------------------------------


def is_operators(document: Document) -> bool:
    """Whether the file is one of operators."""
    return isinstance(document.data, Mapping) and "operators" in document.data


def of(document: Document) -> LogicalPlan:
    """The logical plan of an operator file."""
    file = check(OperatorFile, document)
    positions = {one.name: at for at, one in enumerate(file.operators)}
    relations: dict[str, Relation] = {}
    sources: dict[str, frozenset[str]] = {name: frozenset({name}) for name in file.streams}
    operators = []
    for at, one in enumerate(file.operators):
        sources[one.name] = frozenset().union(*(sources[name] for name in one.inputs))
        inputs = [_input(name, one, file, relations) for name in one.inputs]
        slides = _slides(one, sources[one.name], file, document.where(("operators", at)))
        relations[one.name] = _output(one, inputs, slides)
        operators.append(_operator(one, inputs, relations[one.name], positions))
    _refuse_endless(operators, document)
    plan = LogicalPlan(tuple(operators), file.db.border)
    return replace(plan, measured=measured(file.db.fragments, plan, document))


def _input(
    name: str, one: OperatorFields, file: OperatorFile, relations: Mapping[str, Relation]
) -> Relation:
    if name in relations:
        return relations[name]
    assert one.window is not None
    return windowed(file.streams[name].rate, one.window)


def _slides(one: OperatorFields, sources: frozenset[str], file: OperatorFile, where: str) -> float:
    """How often a second an aggregate's window slides."""
    if one.slide is not None:
        return 1 / one.slide
    if one.slide_tuples is None:
        return 0.0
    if len(sources) > 1:
        names = ", ".join(sorted(sources))
        message = f"slides by tuples of one stream, and it reads {names}: give slide in seconds"
        raise InputError(message, f"{where}.slide_tuples")
    (stream,) = sources
    return file.streams[stream].rate / one.slide_tuples


def _output(one: OperatorFields, inputs: Sequence[Relation], slides: float) -> Relation:
    match one.kind:
        case "select":
            assert one.selectivity is not None
            return selected(inputs[0], one.selectivity[0])
        case "project":
            return selected(inputs[0], 1.0)
        case "aggregate":
            assert one.groups is not None
            return aggregated(slides, one.groups)
        case "join":
            assert one.selectivity is not None
            of_left, of_right = _each(one.selectivity, 2)
            return joined(inputs[0], inputs[1], (of_left, of_right))


def _operator(
    one: OperatorFields, inputs: Sequence[Relation], output: Relation, at: Mapping[str, int]
) -> Operator:
    rates = tuple(below.rate for below in inputs)
    return Operator(
        one.name,
        one.kind,
        tuple(at.get(name, name) for name in one.inputs),
        rates,
        output.rate,
        output.size,
        utilisation(rates, _each(one.cost, len(rates))),
        utilisation(rates, _each(one.db_cost, len(rates))),
    )


def _each(values: Sequence[float], count: int) -> Sequence[float]:
    return values if len(values) == count else [*values] * count


def _refuse_endless(operators: Sequence[Operator], document: Document) -> None:
    for at, one in enumerate(operators):
        if not all(map(isfinite, (*one.rates, one.rate, one.size, one.spark, one.db))):
            message = "figures are beyond any number: lower rates, windows or costs"
            raise InputError(message, document.where(("operators", at)))
