"""`parallel-track`: both plans run until no older tuple can join any more (Zhu 12.2, 13, 14).

The new plan takes tuples from just past the slowest stream on.  Its states need only what is that
young, little at the boundary, so nothing has to match for it to be right: what is there already is
shared, however short, and where the young rows of before cannot be made it begins past them.
Both plans feed the same group-by, Zhu's temporary merging operator (14.1).  He refuses what is not
distributive there; our panes hold distributive parts of every aggregate that a query may have.
"""

from optimizer.migration.matching import Context, States, shared
from optimizer.migration.steps import CutOver, Drop, Keep, Parallel, Refused, Steps, Wait
from optimizer.plan import Plan


def parallel_track(old: Plan, new: Plan, context: Context) -> Steps:
    """Run both, wait, cut over, drop."""
    for aggregate in old.query.grouping.aggregates if old.query.grouping else ():
        if not aggregate.parts:
            raise Refused(f"{aggregate} cannot be put together from the parts of two plans")
    found = shared(old, new, context)
    missing = tuple(key for key in States.of(new).nodes if key not in found.kept)
    kept, dropped = map(Keep, found.kept), map(Drop, found.dropped)
    return (*kept, Parallel(missing), Wait(), CutOver(), *dropped)
