"""A decision as an experiment's run shows it: values and files, without anyone to send them to."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from json import dumps
from math import isfinite
from typing import TYPE_CHECKING, Any

from jobs import workloads
from jobs.deciding.decisions import Candidate, Decision
from jobs.documents import Document
from jobs.objectives import COST, objective
from jobs.planning_task import Task, from_job
from jobs.specs import Job
from jobs.tables.paths import local
from jobs.tracking.filling import filling
from jobs.tracking.results import results
from optimizer.cost.dual import Priced, gain, price
from optimizer.cost.filling import Filling
from optimizer.estimate import Estimator
from optimizer.plan import from_json
from optimizer.workload import Budget
from stats.store import GATHERED, VERDICTS, StatsStore, Window

if TYPE_CHECKING:
    from optimizer.memo import Offer

DECISION = "midstream.decision"
"""The tag by which a decision's run is found again."""

NOTE = "mlflow.note.content"
"""What MLflow shows on top of a run's page."""

PACKAGES = ("midstream", "pyspark", "deltalake", "duckdb", "mlflow")


@dataclass(frozen=True)
class Account:
    """A run: what to compare it by, and what to look at."""

    name: str
    params: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    series: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Metrics with a value for each window."""
    tags: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    children: tuple["Account", ...] = ()


def account(job: Job, decision: Decision) -> Account:
    """What there is to say of a decision."""
    figures = decision.figures
    whole = {name: value for name, value in figures.items() if _is_figure(value)}
    searched = decision.candidates
    return Account(
        f"{decision.outcome} {decision.query}",
        params=dict(_params(job, decision)),
        metrics={
            **whole,
            "examined": sum(one.examined for one in searched),
            "search_seconds": sum(one.seconds for one in searched),
            **({"predicted_gain": decision.gain} if whole else {}),
        },
        series={name: value for name, value in figures.items() if isinstance(value, Sequence)
                and not isinstance(value, str)},
        tags=_tags(decision),
        files=dict(_files(job, decision)),
        children=tuple(_child(decision, one) for one in searched),
    )  # fmt: skip


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float) and isfinite(value)


# --- what compares -------------------------------------------------------------------------------


def _params(job: Job, decision: Decision) -> Iterator[tuple[str, str]]:
    """What the decision was made from."""
    policy, limits = job.reoptimize, job.budget.limits
    yield "query", decision.query
    yield "running", decision.running
    yield "chosen", decision.chosen
    yield "found by", decision.strategy
    yield "migration", decision.migration
    yield "priced by", decision.figures.get("priced_by", "")
    yield "budget.cpu", str(limits.cpu)
    yield "budget.memory", str(job.budget.memory)
    yield "objective", decision.figures.get("objective", COST)
    for name in ("drift", "windows", "cooldown", "horizon", "strategy", "approve"):
        yield f"policy.{name}", str(getattr(policy, name))
    for name, stream in decision.workload.get("streams", {}).items():
        yield f"rate.{name}", f"{stream['rate']:.4g}"
    for join in decision.workload.get("joins", ()):
        yield f"selectivity.{'-'.join(join['between'])}", f"{join['selectivity']:.4g}"
    for package in PACKAGES:
        yield f"version.{package}", version(package)


def _tags(decision: Decision) -> dict[str, str]:
    """What it belongs to, and what a person reads first."""
    found = {
        DECISION: decision.id,
        "outcome": decision.outcome,
        "trigger": decision.trigger,
        "by": decision.by,
        "why": decision.why,
        "migration": decision.request,
        "airflow": airflow(decision.by),
        NOTE: note(decision),
    }
    return {name: value for name, value in found.items() if value}


def airflow(by: str, dag: str = "reoptimize") -> str:
    """The page of the run in Airflow that asked, as far as that is known."""
    run = re.search(r"in Airflow, (\S+)$", by)
    base = os.environ.get("AIRFLOW__API__BASE_URL", "")
    return f"{base}/dags/{dag}/runs/{run[1]}" if run else ""


def note(decision: Decision) -> str:
    """The reasons, as MLflow shows them on top of the run's page."""
    to = f" to `{decision.chosen}`" if decision.migrates else ""
    lines = [f"**{decision.outcome}**: from `{decision.running}`{to}", ""]
    lines += [f"- {reason}" for reason in decision.reasons]
    asked = f"Asked by {verbatim(decision.by) or 'nobody'}. {verbatim(decision.why)}"
    return "\n".join([*lines, "", asked.rstrip()])


def verbatim(text: str) -> str:
    """Words of a person's in Markdown: no link, no picture, no page's element comes of them."""
    return re.sub(r"([\\`*_{}\[\]<>#+!|&~])", r"\\\1", " ".join(text.split()))


def _child(decision: Decision, one: Candidate) -> Account:
    """A strategy and the plan that it came to, beside the others."""
    figures = {
        "cpu": one.cpu,
        "memory_tuples": one.memory_tuples,
        "memory_bytes": one.memory_bytes,
        "qualified": float(one.qualified),
        "examined": float(one.examined),
        "search_seconds": one.seconds,
        **{name: value for name, value in _of_objective(one).items() if value is not None},
    }
    running = decision.figures.get("running_cpu")
    predicted = {"predicted_gain": gain(running, one.cpu)} if running else {}
    taken = {"taken": "yes"} if one.plan == decision.chosen else {}
    return Account(
        f"{one.strategy} {one.plan}",
        params={"strategy": one.strategy, "plan": one.plan, "query": decision.query},
        metrics={name: value for name, value in (figures | predicted).items() if isfinite(value)},
        tags={"outcome": "candidate", **taken},
    )


def _of_objective(one: Candidate) -> dict[str, float | None]:
    return {"results_by": one.results_by, "seconds_to": one.seconds_to}


# --- what to look at -----------------------------------------------------------------------------


def _files(job: Job, decision: Decision) -> Iterator[tuple[str, str | bytes]]:
    yield "decision.json", dumps(decision.to_json(), indent=2)
    windows = [Window(start, end) for start, end in decision.windows]
    store = StatsStore.of(local(job.storage))
    if windows:
        yield "validation.json", _json(store.rows(VERDICTS, windows))
        for table in GATHERED:
            yield f"statistics/{table}.json", _json(store.rows(table, windows))
    if not decision.workload:
        return
    yield "workload.json", dumps(decision.workload, indent=2)
    task = task_of(job, decision)
    running = priced(task, decision.running_plan)
    yield from _plan("running", running, task.budget)
    if decision.chosen_plan and decision.chosen_plan != decision.running_plan:
        yield from _plan("chosen", (chosen := priced(task, decision.chosen_plan)), task.budget)
        yield "plans/diff.svg", _diff(running, chosen, decision)
    yield "front.png", _front(task, decision, running)
    throughput = task.memo().throughput
    if throughput is not None and decision.chosen_plan:
        chosen = priced(task, decision.chosen_plan)
        plans = {f"runs: {decision.running}": running, f"to take: {decision.chosen}": chosen}
        yield "results.png", results(decision, throughput, plans)
    if decision.figures.get("at_batch") is not None:
        states = Filling(task.query, task.workload, decision.figures["state_age_seconds"])
        chosen = priced(task, decision.chosen_plan)
        yield "filling.png", filling(decision, states, running.plan, chosen.plan)


def task_of(job: Job, decision: Decision) -> Task:
    """The query under the workload that the decision saw, and for its objective."""
    task = from_job(job, decision.query)
    document = Document(job.file, decision.workload)
    _, load, _ = workloads.of(document, task.query)
    wanted = objective(decision.figures.get("objective", COST))
    return replace(task, workload=load, objective=wanted)


def priced(task: Task, plan: Mapping[str, Any]) -> Priced:
    """A plan that was written down, under that workload."""
    return price(from_json(task.query, plan), Estimator(task.query, task.workload))


def _plan(name: str, plan: Priced, budget: Budget) -> Iterator[tuple[str, str]]:
    from optimizer.explain import as_json, as_text
    from optimizer.picture import as_svg

    yield f"plans/{name}.json", dumps(as_json(plan), indent=2)
    yield f"plans/{name}.txt", as_text(plan)
    yield f"plans/{name}.svg", as_svg(plan, name, budget)


def _diff(running: Priced, chosen: Priced, decision: Decision) -> str:
    from optimizer.picture import diff

    return diff(running, chosen, title=f"{decision.query}: what changes")


def _json(rows: Sequence[Mapping[str, Any]]) -> str:
    return dumps(rows, indent=2, default=str)


# --- the front -----------------------------------------------------------------------------------


def _front(task: Task, decision: Decision, running: Priced) -> bytes:
    """CPU against memory: the plans that no other one beats, those found, the one that runs."""
    from io import BytesIO

    from matplotlib.figure import Figure

    from optimizer.search import search

    strategies = [one.strategy for one in decision.candidates]
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    offers = [
        offer for name in dict.fromkeys(strategies) if _searches(name)
        for offer in search(name, task.memo()).front
    ]  # fmt: skip
    unbeaten = sorted(_unbeaten(offers), key=lambda offer: offer.total.cpu)
    points = [(offer.total.cpu, offer.total.tuples) for offer in unbeaten]
    if points:
        axes.step(*zip(*points, strict=True), where="post", color="0.6", marker=".",
                  label="no plan is better in both")  # fmt: skip
    for one in decision.candidates:
        axes.plot(one.cpu, one.memory_tuples, "o", mfc="none", label=f"{one.strategy} {one.plan}")
    total = running.total
    axes.plot(total.cpu, total.tuples, "k*", markersize=12, label=f"runs: {decision.running}")
    _limits(axes, task.budget)
    axes.set(xlabel="CPU, seconds a second", ylabel="memory, tuples", title=decision.query)
    axes.legend(fontsize="small")
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    return picture.getvalue()


def _searches(name: str) -> bool:
    from optimizer.search import COSTS

    return name in COSTS


def _unbeaten(offers: Sequence["Offer"]) -> list["Offer"]:
    """Those that none of the others beats in both."""
    return [
        one
        for one in offers
        if not any(
            other.total.cpu <= one.total.cpu
            and other.total.tuples <= one.total.tuples
            and (other.total.cpu, other.total.tuples) != (one.total.cpu, one.total.tuples)
            for other in offers
        )
    ]


def _limits(axes: Any, budget: Budget) -> None:
    if isfinite(budget.cpu):
        axes.axvline(budget.cpu, color="tab:red", linestyle=":", label="budget")
    if isfinite(budget.tuples):
        axes.axhline(budget.tuples, color="tab:red", linestyle=":")
