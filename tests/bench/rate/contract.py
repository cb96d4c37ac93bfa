"""The exact model beside the simulator, on random plans."""

from statistics import fmean
from typing import Any

from jobs import show
from jobs.rating.simulated import simulated
from tests.optimizer.cost.rates import draw


def contract(plans: int, runs: int) -> dict[str, Any]:
    """How far the mean of some runs is from what the model says."""
    errors = []
    with show.progress("random plans") as told:
        for seed in range(plans):
            drawn = draw(seed)
            mean = simulated(drawn.judge, drawn.plan, runs, 1).value.mean or 0.0
            errors.append(abs(mean / (drawn.judge.value(drawn.plan) or 1.0) - 1))
            told(seed + 1, plans)
    return {
        "plans": plans,
        "runs": runs,
        "mean_error": fmean(errors),
        "worst_error": max(errors),
        "beyond_5_percent": sum(error > 0.05 for error in errors),
    }
