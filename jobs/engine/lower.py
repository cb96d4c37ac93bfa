"""From plans to the program of a batch: which statements run, in which order, and what is kept.

Each operator whose rows are needed more than once, or kept, becomes one statement over named
relations.  While a query changes its plan, its batches do more than its plan says: a `Change` is
what they do beside it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from sqlglot import exp

from jobs.engine.statements import (
    SLOT,
    Split,
    finished,
    inside,
    least,
    parse,
    partials,
    physical,
    quote,
    rows,
    times_of,
    with_until,
)
from optimizer.identity import identity, retention
from optimizer.plan import Emit, GroupBy, Join, Node, Plan, walk


@dataclass(frozen=True)
class Operator:
    """One statement of a batch, and what becomes of its rows."""

    key: str
    node: Node
    statement: exp.Query
    content: str
    kept: bool = False
    retention: int = 0
    """How long after its time (`@until`) a kept row may still be needed, in microseconds."""

    @property
    def relation(self) -> str:
        """What it computes from this batch."""
        return f"new_{self.key}"


@dataclass(frozen=True)
class Output:
    """What a query puts out in a batch; `horizon` is its windows' lag behind the watermark."""

    query: str
    statement: exp.Query
    horizon: int | None = None

    @property
    def relation(self) -> str:
        """What it is called."""
        return f"out_{self.query}"


@dataclass(frozen=True)
class Proof:
    """What the plan to come makes of a batch, and the relation that must have the same rows."""

    query: str
    statement: exp.Query
    same_as: str

    @property
    def relation(self) -> str:
        """What it is called."""
        return f"proof_{self.query}"


@dataclass(frozen=True)
class Program:
    """The statements of a batch, in an order in which each finds what it reads."""

    operators: tuple[Operator, ...]
    outputs: tuple[Output, ...]
    proofs: tuple[Proof, ...] = ()


@dataclass(frozen=True)
class Change:
    """The plan that a query is to have, and what its batches do for it already."""

    plan: Plan
    tracked: frozenset[str] = frozenset()
    """States of that plan alone that batches maintain; those that it shares are kept for both."""
    since: int | None = None
    """Both plans put out: the one to come what has no tuple older than this event time."""
    shown: bool = False
    """Whether its results are computed, to be compared with those of the plan that runs."""

    @property
    def younger(self) -> Split | None:
        """What the plan to come puts out meanwhile."""
        return None if self.since is None else Split(self.since, younger=True)

    @property
    def older(self) -> Split | None:
        """What is left to the plan that runs."""
        return None if self.since is None else Split(self.since, younger=False)


_NONE: Mapping[str, Change] = MappingProxyType({})


def lower(
    plans: Mapping[str, Plan], changes: Mapping[str, Change] = _NONE, *, sliced: bool = False
) -> Program:
    """The program of a job's queries; what two of them both need is computed and kept once.

    `sliced`: for a batch that spans many windows; it makes the same rows.
    """
    found = [o for plan in plans.values() for o in _inputs(plan, sliced=sliced)]
    for change in changes.values():
        wanted = change.tracked | {o.key for o in found}
        found += [o for o in _inputs(change.plan, change.younger, sliced=sliced) if o.key in wanted]
    for name, plan in plans.items():
        found += _groups(plan, changes.get(name), sliced=sliced)
    operators: dict[str, Operator] = {}
    for operator in found:
        known = operators.get(operator.key, operator)
        kept = max(operator.retention, known.retention)
        operators[operator.key] = replace(known, retention=kept)
    return Program(
        tuple(operators.values()),
        tuple(
            _output(name, plan, changes.get(name), sliced=sliced) for name, plan in plans.items()
        ),
        tuple(
            _proof(name, change, sliced=sliced) for name, change in changes.items() if change.shown
        ),
    )


def _inputs(plan: Plan, split: Split | None = None, *, sliced: bool) -> Iterator[Operator]:
    """The inputs of a plan's joins, each after what it is made of."""
    for node in walk(plan.root):
        for part in node.parts if isinstance(node, Join) else ():
            names = identity(part)
            statement = with_until(rows(part, split, sliced=sliced), least(times(part)))
            yield Operator(
                names.key,
                part,
                parse(statement),
                names.content,
                kept=True,
                retention=retention(plan.query, part),
            )


def _groups(plan: Plan, change: Change | None, *, sliced: bool) -> Iterator[Operator]:
    node = grouped(plan)
    if node is None:
        return
    names = identity(node)
    made = _panes(node, sliced=sliced)
    if change is not None and change.since is not None and (coming := grouped(change.plan)):
        older, younger = change.older, change.younger
        both = ((node, older), (coming, younger))
        made = " UNION ALL ".join(_panes(one, split, sliced=sliced) for one, split in both)
    wait = retention(plan.query, node)
    yield Operator(names.key, node, parse(made), names.content, kept=True, retention=wait)


def _panes(node: GroupBy, split: Split | None = None, *, sliced: bool) -> str:
    end = f"{quote(SLOT)} + {node.grouping.size}"
    return with_until(partials(node, split, sliced=sliced), end)


def _output(name: str, plan: Plan, change: Change | None, *, sliced: bool) -> Output:
    node = grouped(plan)
    if node is not None:
        return Output(name, parse(_emitted(plan, finished(node))), retention(plan.query, node))
    if change is None or change.since is None:
        return Output(name, parse(_results(plan, sliced=sliced)))
    older, younger = (
        _results(plan, change.older, sliced=sliced),
        _results(change.plan, change.younger, sliced=sliced),
    )
    both = f"{older} UNION ALL {younger}"
    return Output(name, parse(both))


def _proof(name: str, change: Change, *, sliced: bool) -> Proof:
    node = grouped(change.plan)
    if node is None:
        return Proof(name, parse(_results(change.plan, sliced=sliced)), f"out_{name}")
    return Proof(name, parse(_panes(node, sliced=sliced)), f"new_{identity(node).key}")


def _results(plan: Plan, split: Split | None = None, *, sliced: bool) -> str:
    assert isinstance(plan.root, Emit)
    return _emitted(plan, rows(plan.root.input, split, sliced=sliced))


def _emitted(plan: Plan, computed: str) -> str:
    assert isinstance(plan.root, Emit)
    scope = inside(identity(plan.root.input), "r")
    columns = [f"{o.expression.sql(scope)} AS {quote(o.name)}" for o in plan.root.output]
    return f"SELECT {', '.join(columns)} FROM ({computed}) AS r"


def grouped(plan: Plan) -> GroupBy | None:
    """The group-by of a plan, if it has one."""
    return next((node for node in walk(plan.root) if isinstance(node, GroupBy)), None)


def times(part: Node) -> list[str]:
    """The columns that hold the event times of an operator's rows."""
    names = identity(part)
    return [quote(physical(names, time)) for _, time in sorted(times_of(part).items())]
