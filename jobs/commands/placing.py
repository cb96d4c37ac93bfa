"""Placements as people and programs read them: where operators run, and what that needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from jobs import show
from jobs.commands.pictures import picture
from jobs.pictures import write
from optimizer.cost.fragments import DB, SPARK, Part
from optimizer.explain import compact, cpu_number, per_second
from optimizer.placement import Placed

if TYPE_CHECKING:
    from jobs.placement import Subject


@dataclass(frozen=True)
class Run:
    """What a strategy placed, and how long it took."""

    placed: Placed
    seconds: float


# --- programs ------------------------------------------------------------------------------------


def as_json(run: Run, subject: "Subject") -> dict[str, Any]:
    """The result in the form that scripts rely on."""
    placed, found = run.placed, run.placed.found
    places = _places(placed)
    return {
        "strategy": placed.strategy,
        "logical": {
            "plan": subject.notation(),
            "bottleneck": subject.cost.bottleneck,
            "total": subject.cost.total,
            "examined": subject.examined,
            "seconds": subject.seconds,
        },
        "plan": subject.notation(found.mask),
        "placement": places,
        "fragments": [_fragment(part, placed) for part in placed.parts],
        "operators": {
            one.name: {
                "place": places[one.name],
                "rate_in": list(one.rates),
                "rate_out": one.rate,
                "size": one.size,
                "utilisation": one.db if places[one.name] == DB else one.spark,
            }
            for one in placed.plan.operators
        },
        "feasible": placed.feasible,
        "bottleneck": placed.cost.bottleneck,
        "busiest": _root(placed.busiest, placed),
        "total": placed.cost.total,
        "examined": found.examined,
        "partial": found.partial,
        "space": placed.plan.space,
        "cut": [[placed.plan.operators[at].name for at in piece] for piece in found.cut],
        "seconds": run.seconds,
    }


def _places(placed: Placed) -> dict[str, str]:
    mask = placed.found.mask
    return {
        one.name: DB if mask >> at & 1 else SPARK for at, one in enumerate(placed.plan.operators)
    }


def _fragment(part: Part, placed: Placed) -> dict[str, Any]:
    return {
        "operators": _names(part, placed),
        "place": part.place,
        "utilisation": part.utilisation,
        "transfer_in": part.transfer_in,
        "statement": part.statement,
        "transfer_out": part.transfer_out,
    }


def _names(part: Part, placed: Placed) -> list[str]:
    return [placed.plan.operators[at].name for at in part.operators]


def _root(part: Part, placed: Placed) -> str:
    """The operator that a part is known by: its last one."""
    return _names(part, placed)[-1]


# --- people --------------------------------------------------------------------------------------


def report(runs: Sequence[Run], subject: "Subject") -> None:
    """The strategies side by side, or the one placement in full."""
    show.plain(f"{subject.notation()}: {_needs(subject.cost.bottleneck, subject.cost.total)}")
    if subject.objective.shared:
        show.plain(f"Operators share {subject.objective.cores:g} CPU.")
    show.heading("Strategies" if len(runs) > 1 else runs[0].placed.strategy)
    _side_by_side(runs)
    if len(runs) == 1:
        _operators(runs[0].placed)
        _parts(runs[0].placed)
    if not any(run.placed.feasible for run in runs):
        show.heading("No placement keeps up")
        least = min(runs, key=lambda run: run.placed.objective.key(run.placed.cost)).placed
        show.plain(_shortfall(least))
    if subject.assumed:
        show.note("Rates and selectivities are assumed: --workload FILE gives others.")


def _needs(bottleneck: float, total: float) -> str:
    return (
        f"on Spark the busiest needs {cpu_number(bottleneck)} s a second, all {cpu_number(total)}"
    )


def _side_by_side(runs: Sequence[Run]) -> None:
    """One line a strategy."""
    columns = ("strategy", "in the database", "bottleneck", "total", "feasible", "examined", "time")
    rows = [_line(run) for run in runs]
    show.table(columns, rows, right="bottleneck total examined time")


def _line(run: Run) -> list[str | Text]:
    placed = run.placed
    return [
        Text(placed.strategy, "cyan"),
        _inside(placed),
        cpu_number(placed.cost.bottleneck),
        cpu_number(placed.cost.total),
        Text("yes", "green") if placed.feasible else Text("no", "red"),
        f"{placed.found.examined:,}",
        f"{run.seconds * 1000:.1f} ms" if run.seconds < 1 else f"{run.seconds:.1f} s",
    ]


def _inside(placed: Placed) -> str:
    """The operators in the database."""
    names = [name for name, place in _places(placed).items() if place == DB]
    if len(names) == len(placed.plan):
        return "everything"
    return ", ".join(names) or "nothing"


def _operators(placed: Placed) -> None:
    """Each operator with what arrives and what comes out."""
    show.heading("Operators")
    columns = ("operator", "kind", "place", "in", "out", "size", "needs")
    places = _places(placed)
    rows = [
        (
            one.name,
            one.kind,
            Text(places[one.name], "green" if places[one.name] == DB else "cyan"),
            ", ".join(map(per_second, one.rates)),
            per_second(one.rate),
            compact(one.size),
            cpu_number(one.db if places[one.name] == DB else one.spark),
        )
        for one in placed.plan.operators
    ]
    show.table(columns, rows, right="in out size needs")


def _parts(placed: Placed) -> None:
    """What runs as one statement in the database."""
    inside = [part for part in placed.parts if part.place == DB]
    if not inside:
        return
    show.heading("In the database, each one statement")
    columns = ("operators", "in", "statement", "out", "needs")
    rows = [
        (
            ", ".join(_names(part, placed)),
            _figure(part.transfer_in),
            _figure(part.statement),
            _figure(part.transfer_out),
            cpu_number(part.utilisation),
        )
        for part in inside
    ]
    show.table(columns, rows, right="in statement out needs")


def _figure(seconds: float | None) -> str:
    return "measured" if seconds is None else cpu_number(seconds)


def _shortfall(placed: Placed) -> str:
    """What is short, and by how much."""
    cost, cores = placed.cost, placed.objective.cores
    busiest = _root(placed.busiest, placed)
    texts = []
    if cost.bottleneck > 1:
        texts.append(f"{busiest} needs {cpu_number(cost.bottleneck)} s a second")
    if cost.total > cores:
        texts.append(f"all operators need {cpu_number(cost.total)} of {cores:g} CPU")
    return f"{placed.strategy} comes nearest: {', and '.join(texts)}."


def draw(runs: Sequence[Run], path: Path, subject: "Subject") -> None:
    """Write the picture of each placement."""
    from optimizer.picture.placement import as_svg

    for run in runs:
        one = picture(path, run.placed.strategy)
        write(one, as_svg(run.placed, f"{subject.name}: {run.placed.strategy}"))
