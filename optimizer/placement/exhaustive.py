"""`exhaustive`: all 2^n placements of n operators, each priced as a whole (Ji section 6).

It shares no step with the pruning, so that it can judge it: arrays of placements go through the
operators, inputs first, and a part in the database is priced where it ends.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from optimizer.cost.feasibility import ROUNDING, Objective
from optimizer.cost.fragments import LogicalPlan, Mask

LARGEST = 28
"""So many operators are a matter of minutes; each further one doubles it."""

BITS = 62
"""So many operators a number of an array holds."""

CHUNK = 1 << 16

Floats = NDArray[np.float64]
Masks = NDArray[np.int64]


class TooLargeError(ValueError):
    """A plan of more operators than can be placed by trying all placements."""


def exhaustive(
    plan: LogicalPlan,
    objective: Objective,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> tuple[Mask, int]:
    """The best placement, and how many were looked at."""
    if plan.space > 1 << LARGEST or len(plan) > BITS:
        free = len(plan) - plan.fixed.bit_count()
        raise TooLargeError(
            f"{len(plan)} operators have 2^{free} placements, too many to try all; "
            "take the strategy federated"
        )
    best: list[Mask] = []
    for start in range(0, plan.space, CHUNK):
        masks = _spread(np.arange(start, min(start + CHUNK, plan.space)), plan)
        best.append(_best(masks, plan, objective))
        progress(start, plan.space)
    return objective.best(best, plan.price, plan.order), plan.space


def _spread(numbers: Masks, plan: LogicalPlan) -> Masks:
    """The placements of those numbers: their bits are the operators that are free."""
    masks = np.full_like(numbers, plan.obeying(0))
    free = [at for at in range(len(plan)) if not plan.fixed >> at & 1]
    for position, at in enumerate(free):
        masks |= (numbers >> position & 1) << at
    return masks


def _best(masks: Masks, plan: LogicalPlan, objective: Objective) -> Mask:
    """As `Objective.best`, of many at once."""
    bottleneck, total = _price(masks, plan)
    strain = np.maximum(bottleneck, total / objective.cores)
    fine = (strain <= 1 + ROUNDING) | (not objective.feasibility)
    keys = np.array([~fine, np.where(fine, total, strain), total])
    for figure in range(len(keys)):
        near = keys[figure] <= keys[figure].min() * (1 + ROUNDING)
        masks, keys = masks[near], keys[:, near]
    return _first(masks, len(plan))


def _first(masks: Masks, operators: int) -> Mask:
    """The first by notation: Spark before the database, operator by operator."""
    for at in range(operators):
        spark = masks >> at & 1 == 0
        masks = masks[spark] if spark.any() else masks
    return int(masks[0])


def _price(masks: Masks, plan: LogicalPlan) -> tuple[Floats, Floats]:
    """Bottleneck and total of each placement."""
    bottleneck, total = np.zeros(len(masks)), np.zeros(len(masks))
    needs: list[Floats] = []
    parts: list[Masks] = []
    for at, one in enumerate(plan.operators):
        inside = masks >> at & 1 == 1
        work = np.full(len(masks), one.db + one.from_streams * plan.border.enter)
        part = np.full(len(masks), 1 << at)
        for below in one.below:
            beside = masks >> below & 1 == 1
            taken = plan.operators[below].rate * plan.border.enter
            work += np.where(beside, needs[below], taken)
            part |= np.where(beside, parts[below], 0)
            ends = np.where(beside & ~inside, _closed(below, needs, parts, plan), 0.0)
            bottleneck, total = np.maximum(bottleneck, ends), total + ends
        spark = np.where(inside, 0.0, one.spark)
        bottleneck, total = np.maximum(bottleneck, spark), total + spark
        needs.append(work)
        parts.append(part)
    last = len(plan) - 1
    ends = np.where(masks >> last & 1 == 1, _closed(last, needs, parts, plan), 0.0)
    return np.maximum(bottleneck, ends), total + ends


def _closed(at: int, needs: list[Floats], parts: list[Masks], plan: LogicalPlan) -> Floats:
    """What a part needs that ends there: as measured, or by the formula."""
    border = plan.border
    fixed = border.statement * border.executions + plan.operators[at].rate * border.leave
    whole = needs[at] + fixed
    for part, measured in plan.measured.items():
        whole = np.where(parts[at] == part, measured, whole)
    return whole
