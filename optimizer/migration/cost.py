"""What a migration costs in our engine: rows scanned, probed, matched and written by each fill.

Sizes are those measured, or else estimated from the workload; seconds are the `batch` method's unit
costs, whichever method prices the plans.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from optimizer.cost.dual import keep_cost, price
from optimizer.estimate import Estimate, Estimator
from optimizer.explain import compact
from optimizer.identity import identity
from optimizer.migration.matching import Recipe, States, core, recipe
from optimizer.migration.steps import Fill, How, Keep, Parallel, Prove, Step, Track
from optimizer.plan import Combine, Join, Plan
from optimizer.window import MICROSECONDS
from optimizer.workload import Method, Workload


@dataclass(frozen=True)
class Figures:
    """What an estimate goes by."""

    workload: Workload
    rows: Mapping[str, float] = field(default_factory=dict)
    """How many rows states hold, by key, where that was measured."""
    lateness: int = 0
    """How far the watermark lags, in microseconds."""


@dataclass(frozen=True)
class Filled:
    """The work of one fill."""

    step: Fill
    scanned: float
    probed: float
    matched: float
    written: float
    seconds: float


@dataclass(frozen=True)
class Effort:
    """The work of a whole migration."""

    fills: tuple[Filled, ...]
    pause: float
    """Seconds for which no batch runs."""
    lasts: float
    """Seconds until the cut-over, at least."""
    work: float
    """CPU-seconds in all."""
    beside: float
    """CPU-seconds per second of running the new plan beside the old one, as far as it has to."""
    takes: float
    """CPU-seconds of its fills, as a share of what a batch takes by the old plan."""


def effort(steps: Sequence[Step], old: Plan, new: Plan, figures: Figures) -> Effort:
    """What these steps take; a state that is tracked before it is filled stops nobody."""
    workload = replace(figures.workload, method=Method.BATCH)
    estimator = Estimator(new.query, workload)
    sizes = _Sizes(estimator, dict(figures.rows))
    kept = {step.state for step in steps if isinstance(step, Keep)}
    beside = beside_cost(new, kept, estimator)
    tracked: set[str] = set()
    fills: list[Filled] = []
    pause = lasts = work = 0.0
    for step in steps:
        match step:
            case Track(states):
                tracked.update(states)
            case Fill(state):
                fills.append(filled := sizes.fill(step, recipe(old, new, step)))
                work += filled.seconds
                lasts += filled.seconds + (workload.batch if state in tracked else 0.0)
                pause += 0.0 if state in tracked else filled.seconds
            case Parallel():
                length = track_length(new, figures.lateness)
                lasts, work = lasts + length, work + length * beside
            case Prove(batches):
                length = batches * workload.batch
                lasts, work = lasts + length, work + length * beside
    usual = workload.batch * price(old, Estimator(old.query, workload)).total.cpu
    takes = _ratio(sum(fill.seconds for fill in fills), usual)
    return Effort(tuple(fills), pause, lasts, work, beside, takes)


def spell(seconds: float) -> str:
    """A time for people: `12 ms`, `3.4 s`, `5 min`, `2 h`."""
    for unit, length in (("h", 3600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= length:
            return f"{compact(seconds / length)} {unit}"
    return f"{compact(seconds * 1000)} ms"


def track_length(plan: Plan, lateness: int) -> float:
    """Seconds until no older tuple can join any more: once the watermark has passed its window."""
    return (plan.query.bounds.longest + lateness) / MICROSECONDS


def beside_cost(new: Plan, kept: Container[str], estimator: Estimator) -> float:
    """CPU-seconds per second of running the new plan beside the old one.

    A state that is kept costs nothing, nor does the join that computes it; the last join always
    runs twice.
    """
    priced = price(new, estimator)
    computed = {
        core(node) for key, nodes in States.of(new).nodes.items() for node in nodes if key in kept
    }
    total = 0.0
    for node in priced.costs:
        if isinstance(node, Join):
            keeps = {part: keep_cost(priced.estimates[part], estimator).cpu for part in node.parts}
            total += sum(cpu for part, cpu in keeps.items() if identity(part).key not in kept)
            total += 0.0 if node in computed else priced.costs[node].cpu - sum(keeps.values())
    return total


@dataclass
class _Sizes:
    """How many rows states hold, those filled before included."""

    estimator: Estimator
    rows: dict[str, float]

    def fill(self, step: Fill, made: Recipe) -> Filled:
        """The work of a fill, whose rows later ones then read."""
        estimates = [self.estimator.node(source) for source in made.sources]
        rows = [
            self.rows.get(key, estimate.held)
            for key, estimate in zip(made.keys, estimates, strict=True)
        ]
        passed = prod(self.estimator.workload.select(self.estimator.query, p) for p in made.selects)
        probed = matched = 0.0
        match made.how:
            case How.JOIN:
                base = core(made.target)
                assert isinstance(base, Join)
                flows = self._flows(base, estimates, rows)
                probed, matched = sum(flows[:-1]), sum(flows[1:])
                written = flows[-1] * passed
            case How.COMBINE:
                probed = rows[0] * passed
                written = probed * self._left(made)
            case How.DERIVE:
                written = rows[0] * passed
        self.rows[step.state] = written
        costs, width = self.estimator.workload.unit_costs, self.estimator.node(made.target).width
        seconds = costs.statement * (len(rows) + 1)  # for each input, and for a table
        seconds += costs.scan * sum(rows) + costs.probe * probed
        seconds += costs.match * matched + (costs.write + costs.write_byte * width) * written
        return Filled(step, sum(rows), probed, matched, written, seconds)

    def _flows(self, join: Join, estimates: list[Estimate], rows: list[float]) -> list[float]:
        """What is left after each probe, the first input's rows going through the others.

        The estimate of as many windows' tuples, corrected by how many rows there really are.
        """
        flows, order = [], (0, *join.orders[0])
        for count in range(1, len(order) + 1):
            joined = order[:count]
            whole = self.estimator.joined([estimates[i] for i in joined], 0.0).held
            flows.append(whole * prod(_ratio(rows[i], estimates[i].held) for i in joined))
        return flows

    def _left(self, made: Recipe) -> float:
        """The share of an input's tuples that is left once equal ones are combined."""
        base = core(made.target)
        assert isinstance(base, Combine)
        return _ratio(self.estimator.node(base).held, self.estimator.node(base.input).held)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
