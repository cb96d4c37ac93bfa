"""`moving-state`: the job stops at a boundary, fills what has no match, goes on (Zhu 12.1, 13, 14).

A boundary is Zhu's synchronised point: a batch leaves no queues behind, so that every tuple that an
old state still needs is in the lower states as well (the closure property of 12.1.4).
"""

from optimizer.migration.matching import Context, match
from optimizer.migration.steps import CutOver, Drop, Keep, Refused, Steps
from optimizer.plan import Plan


def moving_state(old: Plan, new: Plan, context: Context) -> Steps:
    """Keep, fill bottom-up, cut over, drop."""
    found = match(old, new, context)
    if found.refused is not None:
        raise Refused(found.refused)
    kept, dropped = map(Keep, found.kept), map(Drop, found.dropped)
    return (*kept, *found.fills, CutOver(), *dropped)
