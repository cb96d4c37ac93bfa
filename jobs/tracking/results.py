"""The picture of a decision for results: what each plan gets through over time."""

from io import BytesIO

from jobs.deciding.decisions import Decision
from optimizer.cost.dual import Priced
from optimizer.cost.throughput import Throughput

FURTHER = 1.25
"""Times as far as the objective looks."""


def results(decision: Decision, throughput: Throughput, plans: dict[str, Priced]) -> bytes:
    """A PNG with a line for each plan."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    values = [throughput.value(plan.total) for plan in plans.values()]
    seconds = throughput.objective.by or max((value or 0.0 for value in values), default=0.0)
    for name, plan in plans.items():
        rate = throughput.rate / throughput.slowness(plan.total)
        axes.plot([0, FURTHER * seconds], [0, FURTHER * seconds * rate], label=name)
    if throughput.objective.by is not None:
        axes.axvline(seconds, color="gray", linestyle=":")
    else:
        axes.axhline(throughput.objective.first or 0.0, color="gray", linestyle=":")
    axes.set(xlabel="seconds", ylabel="results", title=f"{decision.query}, {throughput.objective}")
    axes.legend(fontsize="small")
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    return picture.getvalue()
