"""What a running job gets through: the results of its plans where one server does all the work.

The job's states are filled, and all tuples wait for the same CPU: a plan that keeps up makes all
results that there are, one that needs twice the CPU that there is makes half of them.
"""

from dataclasses import dataclass
from math import isfinite

from optimizer.cost.dual import Cost
from optimizer.cost.rate.objective import Objective
from optimizer.workload import Budget


@dataclass(frozen=True)
class Throughput:
    """Judges plans of one query for an objective; `rate` results a second come if a plan keeps up.

    All plans have the same results, so that theirs differ by what CPU they need.
    """

    objective: Objective
    rate: float
    budget: Budget

    @property
    def capacity(self) -> float:
        """CPU-seconds a second: those of the budget, or one."""
        return self.budget.cpu if isfinite(self.budget.cpu) else 1.0

    def slowness(self, total: Cost) -> float:
        """How many seconds a second of input takes, at least one."""
        return max(1.0, total.cpu / self.capacity)

    def value(self, total: Cost) -> float | None:
        """Results by the time, or seconds to so many; nothing if they never come."""
        rate = self.rate / self.slowness(total)
        if self.objective.by is not None:
            return rate * self.objective.by
        return (self.objective.first or 0.0) / rate if rate else None

    def order(self, total: Cost) -> tuple[float, float]:
        """The least first: results, then CPU."""
        return self.slowness(total), total.cpu
