"""What fills take, as estimated and as measured; and what the estimate is short of here."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median

from optimizer.cost.dual import gain
from optimizer.migration import MIGRATIONS
from optimizer.migration.cost import Effort, Figures, effort
from optimizer.migration.matching import Context
from optimizer.plan import Plan
from optimizer.window import MICROSECONDS
from optimizer.workload import Workload
from stats.costs import SHIPPED
from tests.bench.chain import Chain, Values
from tests.bench.migration.run import Setup, Wish, scratch, travel
from tests.bench.unit_costs import Fit, fit

MOVING = "moving-state"


@dataclass(frozen=True)
class Move:
    """A migration by moving state: CPU-seconds of each fill, estimated and measured.

    CPU time counts, as in the unit costs: a busy machine changes it little.
    """

    estimated: tuple[float, ...]
    measured: tuple[float, ...]
    seconds: float
    """What it took in all."""

    @property
    def cpu(self) -> float:
        """The work of it."""
        return sum(self.measured)

    def predicted(self, fitted: Fit) -> float:
        """What it should take on this machine."""
        costs = fitted.costs
        return sum(costs["fill"] + costs["second"] * seconds for seconds in self.estimated)


def move(chain: Chain, values: Values, plans: tuple[Plan, Plan], engine: str, runs: int) -> Move:
    """There and back again, so many times; the median of each fill counts."""
    old, new = plans
    begins = chain.filling + 2
    wishes = {begins + at: Wish(MOVING, (new, old)[at % 2]) for at in range(2 * runs - 1)}
    with scratch() as directory:
        count = begins + len(wishes)
        chain.write(directory / "data", [values] * count)
        trip = travel(Setup(chain, engine, directory / "data", count), old, wishes)
    fills = predict(MOVING, plans, told(chain, values, engine), trip.held).fills
    found = [[one for one in trip.fills if one.state == fill.step.state] for fill in fills]
    return Move(
        tuple(fill.seconds for fill in fills),
        tuple(median(one.cpu for one in each) for each in found),
        sum(median(one.seconds for one in each) for each in found),
    )


def told(chain: Chain, values: Values, engine: str) -> Workload:
    """What a job on that engine reckons with before anything is fitted to the machine."""
    return replace(chain.workload(values), unit_costs=SHIPPED[engine].units)


def foretold(
    strategy: str, plans: tuple[Plan, Plan], chain: Chain, values: Values, engine: str
) -> Wish:
    """A request that says what the product would."""
    load = told(chain, values, engine)
    saves = gain(*(chain.cpu(plan, load) for plan in plans))
    return Wish(strategy, plans[1], saves, predict(strategy, plans, load, {}).takes)


def predict(
    strategy: str,
    plans: tuple[Plan, Plan],
    load: Workload,
    held: Mapping[str, float],
    lateness: int = 0,
) -> Effort:
    """What the product would say beforehand."""
    figures = Figures(load, held, lateness * MICROSECONDS)
    return effort(MIGRATIONS[strategy](*plans, Context()), *plans, figures)


def calibrate(moves: Iterable[Move]) -> Fit:
    """What a fill takes besides its work (a table, a commit), and a second of estimated work."""
    pairs = [pair for one in moves for pair in zip(one.estimated, one.measured, strict=True)]
    work = [(1.0, estimated) for estimated, _ in pairs]
    return fit(("fill", "second"), work, [measured for _, measured in pairs])
