"""What a query works on and may use, as values: rates, selectivities, unit costs, a budget."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf, isfinite

from optimizer.keys import Shares, keys_of
from optimizer.query import Predicate, Query


class WorkloadError(ValueError):
    """A workload that does not fit its query, and where."""


class Method(StrEnum):
    """How an operator's work is counted."""

    HASH = "hash"
    """Work per match (Zhu-Raghavan 2.2)."""

    NESTED_LOOP = "nested-loop"
    """Work per pair compared (Zhu 4.1)."""

    PIPELINED = "pipelined"
    """Work per input tuple of an operator, each of them on a CPU of its own (Ji 5.1)."""

    BATCH = "batch"
    """Our engine's own: statements, scans, probes, matches and writes of each micro-batch."""


@dataclass(frozen=True)
class UnitCosts:
    """Seconds that one unit of work takes.

    The first three are the papers' (Table 3).  The others are the `batch` method's, their defaults
    measured with `midstream bench unit-costs`.
    """

    join: float = 2.2e-6
    insert: float = 2.0e-7
    delete: float = 2.0e-7
    statement: float = 1.7e-3
    scan: float = 1.0e-8
    probe: float = 1.9e-8
    match: float = 4.2e-8
    write: float = 4.4e-8
    write_byte: float = 5.8e-9

    def __post_init__(self) -> None:
        for name, cost in vars(self).items():
            if not (isfinite(cost) and cost >= 0):
                raise WorkloadError(f"unit cost {name} must not be negative: {cost}")


@dataclass(frozen=True)
class Rates:
    """Seconds per second that each kind of work costs under a method: what prices all plans."""

    match: float = 0.0
    """Per tuple that a probe step yields."""
    pair: float = 0.0
    """Per pair that a probe step compares."""
    probe: float = 0.0
    """Per tuple that enters a probe step."""
    scan: float = 0.0
    """Per tuple of a state, each time a step probes it."""
    statement: float = 0.0
    """Per input of an operator."""
    keep: float = 0.0
    """Per tuple that enters a state, and later leaves it."""
    keep_byte: float = 0.0
    """Per byte that enters a state."""
    aggregate: float = 0.0
    """Per tuple and window that enters a group-by."""
    enter: float = 0.0
    """Per tuple that enters a select or a group-by, however many windows it falls into."""


@dataclass(frozen=True)
class StreamLoad:
    """How fast tuples arrive (per second), and how wide they are (bytes)."""

    rate: float
    width: float = 100.0

    def __post_init__(self) -> None:
        if not (isfinite(self.rate) and self.rate >= 0):
            raise WorkloadError(f"a rate must not be negative: {self.rate}")
        if not (isfinite(self.width) and self.width > 0):
            raise WorkloadError(f"a width must be positive: {self.width}")


@dataclass(frozen=True)
class Budget:
    """CPU-seconds per second and memory that a query may use; memory in tuples or in bytes."""

    cpu: float = inf
    tuples: float = inf
    bytes: float = inf

    def __post_init__(self) -> None:
        if min(self.cpu, self.tuples, self.bytes) <= 0:
            raise WorkloadError("a budget must be positive")
        if isfinite(self.tuples) and isfinite(self.bytes):
            raise WorkloadError("a memory budget is in tuples or in bytes, not both")

    @property
    def in_bytes(self) -> bool:
        """Whether memory is counted in bytes; otherwise in tuples."""
        return isfinite(self.bytes)

    @property
    def memory(self) -> float:
        """The limit, in its own unit."""
        return self.bytes if self.in_bytes else self.tuples


@dataclass(frozen=True)
class Workload:
    """Observed over a window, or assumed.

    `joins` gives the selectivity of all predicates between two inputs together, `selects` that of a
    predicate (by its text) or of all the selects of an input (by its alias), `combine` the tuples
    per second left of an input once equal ones are combined, `groups` the groups of a window.
    """

    streams: Mapping[str, StreamLoad]
    joins: Mapping[frozenset[str], float] = field(default_factory=dict)
    selects: Mapping[str, float] = field(default_factory=dict)
    combine: Mapping[str, float] = field(default_factory=dict)
    groups: float = 1.0
    method: Method = Method.HASH
    unit_costs: UnitCosts = field(default_factory=UnitCosts)
    batch: float = 10.0
    """Seconds of input in a micro-batch."""
    keys: Mapping[str, Shares] = field(default_factory=dict)
    """How the keys are spread that three inputs or more are joined on, by the key's name."""
    assumed: bool = False
    """Not observed: defaults that stand in for a workload that nobody gave."""

    def __post_init__(self) -> None:
        named = {"-".join(sorted(pair)): s for pair, s in self.joins.items()} | dict(self.selects)
        for name, selectivity in named.items():
            if not 0 <= selectivity <= 1:
                raise WorkloadError(f"the selectivity of {name} is {selectivity}, not within 0..1")
        if not (isfinite(self.batch) and self.batch > 0):
            raise WorkloadError(f"a batch must take some seconds, not {self.batch}")
        if not (isfinite(self.groups) and self.groups > 0):
            raise WorkloadError(f"the number of groups must be positive, not {self.groups}")

    @classmethod
    def assume(cls, query: Query, rate: float = 100.0, **settings: object) -> "Workload":
        """The same modest load everywhere, for a first look at a query nobody has observed."""
        streams = {alias: StreamLoad(rate) for alias in query.aliases}
        joins = {
            edge: min(0.01 if p.sides else 1 / 3 for p in predicates)
            for edge, predicates in query.graph.edges.items()
        }
        selects = {str(p): 1 / 3 for p in query.predicates if len(p.aliases) == 1}
        assumed = cls(streams, joins, selects, assumed=True)
        return replace(assumed, **settings)  # type: ignore[arg-type]

    def check(self, query: Query) -> None:
        """Refuse a workload that leaves out a stream or a join of the query, or names another's."""
        for alias in query.aliases:
            if alias not in self.streams:
                raise WorkloadError(f"the workload says nothing of stream {alias}")
        for edge in query.graph.edges:
            if edge not in self.joins:
                raise WorkloadError(f"the workload has no selectivity between {_names(edge)}")
        for edge in self.joins:
            if edge not in query.graph.edges:
                raise WorkloadError(f"the query has no predicate between {_names(edge)}")
        for unknown in self.keys.keys() - {k.name for k in keys_of(query)} if self.keys else ():
            raise WorkloadError(f"no three streams of the query are joined on {unknown}")
        for unknown in set(self.streams) | set(self.combine):
            if unknown not in query.streams:
                raise WorkloadError(f"the query has no stream {unknown}")

    def selectivity(self, left: str, right: str) -> float:
        """Of the join between two inputs; 1 where nothing connects them."""
        return self.joins.get(frozenset((left, right)), 1.0)

    def select(self, query: Query, predicate: Predicate) -> float:
        """The selectivity of one select; an alias's is shared evenly by its selects."""
        if (text := str(predicate)) in self.selects:
            return self.selects[text]
        (alias,) = predicate.aliases
        named = [p for p in query.selects(alias) if str(p) in self.selects]
        others = len(query.selects(alias)) - len(named)
        share: float = self.selects.get(alias, 1.0) ** (1 / others)
        return share

    @property
    def rates(self) -> Rates:
        """What work costs under this workload's method."""
        costs = self.unit_costs
        maintain = costs.insert + costs.delete
        match self.method:
            case Method.HASH:
                return Rates(match=costs.join, keep=maintain, aggregate=costs.insert)
            case Method.NESTED_LOOP:
                return Rates(pair=costs.join, keep=maintain, aggregate=costs.insert)
            case Method.PIPELINED:
                return Rates(probe=costs.join, enter=costs.join)
            case Method.BATCH:
                return Rates(
                    match=costs.match,
                    probe=costs.probe,
                    scan=costs.scan / self.batch,
                    statement=costs.statement / self.batch,
                    keep=costs.write,
                    keep_byte=costs.write_byte,
                    aggregate=costs.probe,
                )


def _names(edge: frozenset[str]) -> str:
    return " and ".join(sorted(edge))
