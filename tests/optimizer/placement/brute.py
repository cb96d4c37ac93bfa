"""All placements priced from the paper's words, sharing nothing with the optimizer but the tree."""

from itertools import product


def priced(plan, places):
    """(bottleneck, total) of a placement, a list of "spark" or "db"."""
    fed = {below: at for at, one in enumerate(plan.operators) for below in one.below}
    needs = []
    for at, one in enumerate(plan.operators):
        if places[at] == "spark":
            needs.append(one.spark)
        elif at not in fed or places[fed[at]] == "spark":  # the last one of a part
            needs.append(_part(plan, places, at))
    return max(needs), sum(needs)


def _part(plan, places, root):
    members, pending, needs = set(), [root], 0.0
    while pending:
        at = pending.pop()
        members.add(at)
        needs += plan.operators[at].db
        for below, rate in zip(plan.operators[at].inputs, plan.operators[at].rates, strict=True):
            if isinstance(below, str):
                needs += rate * plan.border.enter
            elif places[below] == "db":
                pending.append(below)
            else:
                needs += plan.operators[below].rate * plan.border.enter
    mask = sum(1 << at for at in members)
    if mask in plan.measured:
        return plan.measured[mask]
    border = plan.border
    needs += border.statement * border.executions
    return needs + plan.operators[root].rate * border.leave


def everything(plan):
    """All of them."""
    for places in product(("spark", "db"), repeat=len(plan.operators)):
        if all(one.only in ("", place) for one, place in zip(plan.operators, places, strict=True)):
            yield priced(plan, places)


def judged(costs, cores=float("inf"), feasibility=True):
    """What Definition 1 says of the best: feasible, and the figure that then counts."""
    if not feasibility:
        return True, min(total for _, total in costs)
    strains = [(max(bottleneck, total / cores), total) for bottleneck, total in costs]
    fine = [total for strain, total in strains if strain <= 1]
    return (True, min(fine)) if fine else (False, min(strain for strain, _ in strains))
