"""In which order new tuples of each input of a join probe the other inputs."""

from collections.abc import Sequence

from optimizer.cost.dual import probe_cost
from optimizer.estimate import Estimate, Estimator
from optimizer.plan import Order


def best_orders(parts: Sequence[Estimate], estimator: Estimator) -> tuple[Order, ...]:
    """For each input, the cheapest way that we know through the states of the others."""
    return tuple(_best_order(position, parts, estimator) for position in range(len(parts)))


def _best_order(position: int, parts: Sequence[Estimate], estimator: Estimator) -> Order:
    from itertools import permutations

    others = [other for other in range(len(parts)) if other != position]
    return min(
        permutations(others),
        key=lambda order: probe_cost(parts[position], [parts[o] for o in order], estimator),
    )
