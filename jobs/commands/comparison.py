"""Searches side by side, as people read them: what each found, what it costs, what is missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from rich.text import Text

from jobs import show
from optimizer.explain import as_text, compact, cpu_number, cpu_text, memory_text, share, size
from optimizer.workload import Budget

if TYPE_CHECKING:
    from jobs.planning_task import Task
    from optimizer.cost.dual import Cost
    from optimizer.memo import Offer
    from optimizer.search import Found


@dataclass(frozen=True)
class Run:
    """What a search found, and how long it took."""

    found: "Found"
    seconds: float


def report(runs: Sequence[Run], task: "Task") -> None:
    """The searches side by side, or the one plan in full; and why it is not good enough."""
    show.plain(budget_text(task.budget))
    show.heading("Strategies" if len(runs) > 1 else runs[0].found.strategy)
    side_by_side(runs, task)
    if len(runs) == 1:
        show.heading("Plan")
        show.tree(as_text(runs[0].found.chosen))
    front(runs, task.budget)
    if not any(run.found.qualified for run in runs):
        show.heading("No plan within the budget")
        show.plain(shortfall(runs, task.budget))


def side_by_side(runs: Sequence[Run], task: "Task") -> None:
    """One line a search; with an objective, what its plan makes of it."""
    columns = ["strategy", "plan", "CPU", "memory", "within", "examined", "time"]
    rows = [_line(run, task.budget) for run in runs]
    if made := task.memo().throughput:
        columns.insert(2, "results" if made.objective.by else "seconds")
        values = (made.value(run.found.chosen.total) for run in runs)
        amounts = ("never" if value is None else f"{value:,.4g}" for value in values)
        rows = [[*row[:2], one, *row[2:]] for row, one in zip(rows, amounts, strict=True)]
        show.plain(f"{made.objective}, of one server whose states are filled")
    show.table(columns, rows, right="CPU memory examined time results seconds")


def _line(run: Run, budget: Budget) -> list[str | Text]:
    found, total = run.found, run.found.chosen.total
    within = Text("yes", "green") if found.qualified else Text(f"no: {found.binding}", "red")
    return [
        Text(found.strategy, "cyan"),
        str(found.chosen.plan),
        cpu_number(total.cpu),
        _memory(total, budget),
        within,
        f"{found.examined:,}",
        _time(run.seconds) if found.complete else f"> {_time(run.seconds)}",
    ]


def front(runs: Sequence[Run], budget: Budget) -> None:
    """What one pays in one resource for less of the other."""
    offers = _unbeaten([offer for run in runs for offer in run.found.front], budget)
    if len(offers) < 2:
        return
    show.heading("The plans that no other one beats in both CPU and memory")
    best = str(min(runs, key=lambda run: strain(run.found.chosen.total, budget)).found.chosen.plan)
    rows: list[list[str | Text]] = [
        [
            Text("→" if str(offer) == best else " ", "green"),
            str(offer),
            cpu_number(offer.total.cpu),
            _memory(offer.total, budget),
            _shares(offer.total, budget),
        ]
        for offer in offers
    ]
    show.table(("", "plan", "CPU", "memory", "of the budget"), rows, right="CPU memory")


def _unbeaten(offers: "Sequence[Offer]", budget: Budget) -> "list[Offer]":
    """The Pareto front, the least CPU first."""
    kept: list[Offer] = []
    for offer in sorted(offers, key=lambda o: (o.total.cpu, o.total.memory(budget))):
        if not kept or offer.total.memory(budget) < kept[-1].total.memory(budget):
            kept.append(offer)
    return kept


def shortfall(runs: Sequence[Run], budget: Budget) -> str:
    """Which resource is short, and by how much at least."""
    nearest = min(runs, key=lambda run: strain(run.found.chosen.total, budget)).found
    points = [offer.total for run in runs for offer in run.found.front]
    least_cpu = min(points, key=lambda total: total.cpu)
    least_memory = min(points, key=lambda total: total.memory(budget))
    return (
        f"{nearest.strategy} comes nearest, and {nearest.binding} is what it lacks: "
        f"{nearest.reason.removeprefix('not qualified: ')}.\n"
        f"Least CPU: {cpu_text(least_cpu.cpu)} with {memory_text(least_cpu)}; "
        f"least memory: {cpu_text(least_memory.cpu)} with {memory_text(least_memory)}."
    )


def strain(total: "Cost", budget: Budget) -> tuple[float, float]:
    """The share of the budget that the scarcer resource takes, and the CPU for ties."""
    return max(total.cpu / budget.cpu, total.memory(budget) / budget.memory), total.cpu


def budget_text(budget: Budget) -> str:
    """What a plan may use, in a line."""
    if budget == Budget():
        return "Without a budget: the plan that needs least CPU is best."
    cpu = f"{budget.cpu:g} CPU" if isfinite(budget.cpu) else "any CPU"
    memory = _limit(budget) if isfinite(budget.memory) else "any memory"
    return f"Budget: {cpu}, {memory}"


def _limit(budget: Budget) -> str:
    return size(budget.bytes) if budget.in_bytes else f"{budget.tuples:,.0f} tuples"


def _memory(total: "Cost", budget: Budget) -> str:
    return size(total.bytes) if budget.in_bytes else f"{compact(total.tuples)} rows"


def _shares(total: "Cost", budget: Budget) -> Text:
    """How much of each limit it takes; nothing where there is no limit."""
    parts = []
    for name, used, limit in (
        ("CPU", total.cpu, budget.cpu),
        ("memory", total.memory(budget), budget.memory),
    ):
        if isfinite(limit):
            parts.append(Text(f"{name} {share(used, limit)}", "" if used <= limit else "red"))
    return Text(", ").join(parts)


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"
