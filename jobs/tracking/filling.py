"""The picture of a change of plan that is due later: what both plans need while states fill."""

from io import BytesIO

from jobs.deciding.decisions import Decision
from optimizer.cost.filling import Filling
from optimizer.plan import Plan

POINTS = 60


def filling(decision: Decision, states: Filling, running: Plan, chosen: Plan) -> bytes:
    """A PNG with a line for each plan, from now until the states are full."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    times = [states.full * point / POINTS for point in range(POINTS + 1)]
    needs = zip(*(states.cpus((running, chosen), at) for at in times), strict=True)
    names = (f"runs: {decision.running}", f"to take: {decision.chosen}")
    for name, cpu in zip(names, needs, strict=True):
        axes.plot(times, cpu, label=name)
    when = f"before batch {decision.figures['at_batch']}"
    axes.axvline(decision.figures["better_after_seconds"], color="gray", linestyle=":", label=when)
    axes.set(xlabel="seconds from now", ylabel="CPU, seconds a second", title=decision.query)
    axes.legend(fontsize="small")
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    return picture.getvalue()
