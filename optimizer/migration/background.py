"""`background`: unmatched states are tracked and filled while the old plan serves (our own).

A state is filled from what was there before it was tracked, and tracked on top of what is whole:
so it is whole as well once it is filled, and the cut-over has nothing left to do.
"""

from optimizer.migration.matching import Context, match
from optimizer.migration.steps import CutOver, Drop, Keep, Refused, Steps, Track
from optimizer.plan import Plan


def background(old: Plan, new: Plan, context: Context) -> Steps:
    """Keep, track and fill state by state, bottom-up, cut over, drop."""
    found = match(old, new, context)
    if found.refused is not None:
        raise Refused(found.refused)
    kept, dropped = map(Keep, found.kept), map(Drop, found.dropped)
    built = [step for fill in found.fills for step in (Track((fill.state,)), fill)]
    return (*kept, *built, CutOver(), *dropped)
