"""What plans cost while their states fill: a query that has just begun keeps less than it will.

States that have been filling for so long hold what windows of that length admit.  So a plan's cost
then is its cost under windows that reach no further back.  A plan that keeps nothing between its
joins may need less at first and more in the end: their costs cross.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from optimizer.cost.dual import price
from optimizer.estimate import Estimator
from optimizer.plan import Plan
from optimizer.query import Query
from optimizer.window import MICROSECONDS
from optimizer.workload import Workload

STEPS = 16
"""Ages at which plans are compared, until the states are full."""

HALVINGS = 8
"""Of a step, to find where costs cross."""

LITTLE = 0.005
"""A share of the cost that is not worth waiting for."""


@dataclass(frozen=True)
class Filling:
    """A query whose states have been filling for `age` seconds."""

    query: Query
    workload: Workload
    age: float

    @property
    def full(self) -> float:
        """Seconds from now until states hold all that the windows admit."""
        return max(0.0, self.query.bounds.longest / MICROSECONDS - self.age)

    def cpus(self, plans: Sequence[Plan], ahead: float) -> list[float]:
        """CPU-seconds a second of each plan, so many seconds from now."""
        age = max(1, round((self.age + ahead) * MICROSECONDS))
        estimator = Estimator(self.query, self.workload, self.query.bounds.within(age))
        return [price(plan, estimator).total.cpu for plan in plans]

    def better_after(self, running: Plan, chosen: Plan) -> float:
        """Seconds from now until the plan chosen needs no more than the running one."""
        if not self.full or not self._ahead(running, chosen, 0.0, LITTLE):
            return 0.0
        step = self.full / STEPS
        times = (step * (number + 1) for number in range(STEPS))
        after = next((t for t in times if not self._ahead(running, chosen, t)), None)
        if after is None:
            return 0.0
        before = after - step
        for _ in range(HALVINGS):
            middle = (before + after) / 2
            still = self._ahead(running, chosen, middle)
            before, after = (middle, after) if still else (before, middle)
        return after

    def _ahead(self, running: Plan, chosen: Plan, ahead: float, by: float = 0.0) -> bool:
        """Whether the running plan needs less then."""
        one, other = self.cpus((running, chosen), ahead)
        return one < (1 - by) * other
