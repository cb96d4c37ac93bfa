"""What a migration costs in our engine: rows scanned, probed, matched and written by each fill.

Sizes are those measured, or else estimated from the workload; seconds are the `batch` method's unit
costs, whichever method prices the plans.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, prod

from optimizer.cost.dual import join_cost, keep_cost, price
from optimizer.estimate import Estimate, Estimator
from optimizer.explain import compact
from optimizer.migration.matching import Recipe, States, core, recipe
from optimizer.migration.steps import Fill, How, Parallel, Prove, Step, Track
from optimizer.plan import Combine, Join, Node, Plan, walk
from optimizer.window import MICROSECONDS
from optimizer.workload import Method, Workload

SHARE = 0.2
"""How much longer than usual results may be away while states are rebuilt in the background: what
batches do for these states already counts."""

TRUST = 0.75
"""How much to count on what is said of plans and states that nobody has seen at work."""

READY = 0.9
"""By when, of the time between two batches, there should be peace."""


@dataclass(frozen=True)
class Range:
    """How many rows there will be, about and at most."""

    likely: float
    most: float


@dataclass(frozen=True)
class Beginning:
    """What a parallel track fills at its boundary: rows past the newest of the slowest stream."""

    fills: tuple[Fill, ...] = ()
    rows: Mapping[str, float] = field(default_factory=dict)
    """Of each state that is there by key, those so young, at most."""


@dataclass(frozen=True)
class Figures:
    """What an estimate goes by."""

    workload: Workload
    rows: Mapping[str, float] = field(default_factory=dict)
    """How many rows states hold, by key, where that was measured."""
    lateness: int = 0
    """How far the watermark lags, in microseconds."""
    interval: float = 0.0
    """Seconds from the beginning of one batch to that of the next, if none takes longer."""
    made: Mapping[str, Range] = field(default_factory=dict)
    """How many rows states will hold once they are filled, by key, where that was tried."""
    begins: Beginning = Beginning()


@dataclass(frozen=True)
class Filled:
    """The work of one fill."""

    step: Fill
    scanned: float
    probed: float
    matched: float
    written: float
    seconds: float
    most: float
    """Rows written at most, as far as is known."""
    slowest: float
    """Seconds with so many."""


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
    forgone: float = 0.0
    """CPU-seconds that the new plan would have saved until the cut-over."""
    longest: float = 0.0
    """Seconds of the pause, with as many rows as there may be at most."""

    @property
    def cost(self) -> float:
        """CPU-seconds of having the new plan, and of not having it yet."""
        return self.work + self.forgone


def effort(steps: Sequence[Step], old: Plan, new: Plan, figures: Figures) -> Effort:
    """What these steps take; a state that is tracked before it is filled stops nobody."""
    beat = _Beat.of(old, new, figures)
    sizes = _Sizes(beat.estimator, dict(figures.rows), figures.made)
    fills = [sizes.fill(s, recipe(old, new, s)) for s in steps if isinstance(s, Fill)]
    filling = {filled.step: filled.seconds for filled in fills}
    borne = beat.bears(sum(filling.values()))
    missing = [s.state for s in steps if isinstance(s, Fill)]
    missing += [state for s in steps if isinstance(s, Parallel) for state in s.states]
    beside = beside_cost(new, missing, beat.estimator)
    slowest = {filled.step: filled.slowest for filled in fills}
    tracked: list[str] = []
    pause = longest = lasts = work = 0.0
    for step in steps:
        match step:
            case Track(states):
                tracked += states
            case Fill(state) if state not in tracked:
                pause, lasts = pause + filling[step], lasts + filling[step]
                work, longest = work + filling[step], longest + slowest[step]
            case Fill() if borne:
                lasts, work = lasts + filling[step], work + filling[step]
            case Fill():
                length = beat.slices(filling[step])
                lasts += length
                work += filling[step] + length * upkeep(new, tracked, beat.estimator)
            case Parallel():
                length, begins = track_length(new, figures.lateness), sizes.begin(old, new, figures)
                pause, longest = pause + begins, longest + begins
                lasts, work = lasts + begins + length, work + begins + length * beside
            case Prove(batches):
                length = batches * beat.length
                lasts, work = lasts + length, work + length * beside
    takes = _ratio(sum(filling.values()), beat.usual)
    forgone = lasts * beat.saves
    return Effort(tuple(fills), pause, lasts, work, beside, takes, forgone, longest)


@dataclass(frozen=True)
class _Beat:
    """The batches in between: how long, what they take, and what room they leave."""

    estimator: Estimator
    length: float
    """Seconds of input."""
    usual: float
    """CPU-seconds of a batch by the old plan."""
    saves: float
    """CPU-seconds per second that the new one takes less."""
    interval: float

    @classmethod
    def of(cls, old: Plan, new: Plan, figures: Figures) -> "_Beat":
        workload = replace(figures.workload, method=Method.BATCH)
        estimator = Estimator(new.query, workload)
        now, then = (price(plan, estimator).total.cpu for plan in (old, new))
        length, saves = workload.batch, max(0.0, now - then)
        return cls(estimator, length, length * now, saves, figures.interval)

    def bears(self, seconds: float) -> bool:
        """Whether the next batch bears all fills at once: the same rule as the running job's."""
        idle = max(0.0, READY * self.interval - self.usual)
        room = idle + SHARE * max(self.usual, self.interval) + TRUST * self.saves * self.length
        return seconds <= TRUST * room

    def slices(self, seconds: float) -> float:
        """Seconds of input that go by while a state is filled in what batches leave."""
        room = max(SHARE * self.usual, (1 + SHARE) * self.interval - self.usual)
        return self.length * (max(1, ceil(seconds / room)) if room > 0 else 1)


def spell(seconds: float) -> str:
    """A time for people: `12 ms`, `3.4 s`, `5 min`, `2 h`."""
    for unit, length in (("h", 3600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= length:
            return f"{compact(seconds / length)} {unit}"
    return f"{compact(seconds * 1000)} ms"


def track_length(plan: Plan, lateness: int) -> float:
    """Seconds until no older tuple can join any more: once the watermark has passed its window."""
    return (plan.query.bounds.longest + lateness) / MICROSECONDS


def beside_cost(new: Plan, missing: Iterable[str], estimator: Estimator) -> float:
    """CPU-seconds per second of running the new plan beside the old one.

    A state that is kept costs nothing, nor does the join that computes it; the last join always
    runs twice, and so does the statement of its results.
    """
    joins = [node for node in walk(new.root) if isinstance(node, Join)]
    again = sum(_probes(join, estimator) for join in joins[-1:])
    return upkeep(new, missing, estimator) + again + estimator.workload.rates.statement


def upkeep(new: Plan, states: Iterable[str], estimator: Estimator) -> float:
    """CPU-seconds per second of maintaining some of the new plan's states, besides those below."""
    total = 0.0
    for nodes in map(States.of(new).nodes.__getitem__, states):
        total += keep_cost(estimator.node(nodes[0]), estimator).cpu
        base = core(nodes[0])
        total += _probes(base, estimator) if isinstance(base, Join) else 0.0
    return total


def _probes(join: Join, estimator: Estimator) -> float:
    """What a join takes without the keeping of its inputs."""
    parts = [estimator.node(part) for part in join.parts]
    keeps = sum(keep_cost(part, estimator).cpu for part in parts)
    return join_cost(parts, join.orders, estimator).cpu - keeps


@dataclass
class _Sizes:
    """How many rows states hold, those filled before included."""

    estimator: Estimator
    rows: dict[str, float]
    made: Mapping[str, Range]

    def fill(self, step: Fill, made: Recipe) -> Filled:
        """The work of a fill, whose rows later ones then read."""
        estimates = [self.estimator.node(source) for source in made.sources]
        rows = [self._held(*one) for one in zip(made.keys, made.sources, strict=True)]
        passed = prod(self.estimator.workload.select(self.estimator.query, p) for p in made.selects)
        probed = matched = 0.0
        match made.how:
            case How.JOIN:
                base = core(made.target)
                assert isinstance(base, Join)
                flows = self._flows(base, estimates, rows)
                probed, matched = sum(flows[:-1]), sum(flows[1:])
                written = flows[-1] * passed
            case How.EXPAND:
                written = rows[0] * passed / (self._left(core(made.sources[0])) or 1.0)
            case How.COMBINE:
                probed = rows[0] * passed
                written = probed * self._left(core(made.target))
            case How.DERIVE:
                written = rows[0] * passed
        found = self.made.get(step.state, Range(written, written))
        if made.how is How.JOIN:
            matched += found.likely - written
        self.rows[step.state] = found.likely
        width = self.estimator.node(made.target).width
        fixed = self._seconds(len(rows), sum(rows), probed)
        each = self._row(width, matched=made.how is How.JOIN)
        rest = self.estimator.workload.unit_costs.match * (matched - found.likely)
        rest = fixed + (max(0.0, rest) if made.how is How.JOIN else 0.0)
        return Filled(
            step, sum(rows), probed, matched, found.likely, rest + each * found.likely,
            found.most, rest + each * found.most,
        )  # fmt: skip

    def begin(self, old: Plan, new: Plan, figures: Figures) -> float:
        """Seconds of what a parallel track fills first: of few rows, but states are read whole."""
        few, seconds = _Sizes(self.estimator, dict(figures.begins.rows), {}), 0.0
        scan, made_here = self.estimator.workload.unit_costs.scan, set[str]()
        for step in figures.begins.fills:
            made = recipe(old, new, step)
            older = sum(
                max(0.0, self._held(key, source) - figures.begins.rows.get(key, 0.0))
                for key, source in zip(made.keys, made.sources, strict=True)
                if key not in made_here
            )
            seconds += few.fill(step, made).seconds + scan * older
            made_here.add(step.state)
        return seconds

    def _held(self, key: str, source: Node) -> float:
        """The rows of a state, as measured or else estimated."""
        return self.rows.get(key, self.estimator.node(source).held)

    def _seconds(self, inputs: int, scanned: float, probed: float) -> float:
        """Of a statement for each input and one for a table, and of what goes in."""
        costs = self.estimator.workload.unit_costs
        return costs.statement * (inputs + 1) + costs.scan * scanned + costs.probe * probed

    def _row(self, width: float, *, matched: bool) -> float:
        """Of each row that comes out."""
        costs = self.estimator.workload.unit_costs
        return (costs.match if matched else 0.0) + costs.write + costs.write_byte * width

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

    def _left(self, base: Node) -> float:
        """The share of an input's tuples that is left once equal ones are combined."""
        assert isinstance(base, Combine)
        held = self.estimator.node(base.input).held
        return self.estimator.node(base).held / held if held else 1.0


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
