"""`db`: every operator in the database, unless it was given another place."""

from optimizer.cost.fragments import LogicalPlan, Mask


def db(plan: LogicalPlan) -> Mask:
    """The pure plan of the database: the whole query is one statement."""
    return plan.obeying(plan.everywhere)
