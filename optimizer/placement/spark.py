"""`spark`: every operator on Spark, unless it was given another place."""

from optimizer.cost.fragments import LogicalPlan, Mask


def spark(plan: LogicalPlan) -> Mask:
    """The pure plan of the stream engine."""
    return plan.obeying(0)
